#include "daemon/setup/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/child.h"
#include "common/text.h"
#include "common/util.h"
#include "daemon/config/config.h"
#include "daemon/setup/uplink.h"
#include "daemon/wire/tls.h"

#define PEERS_MAX 64U /* as many as rmd reads */
#define HOST_BYTES_MAX 255U

/* The plan of the set-up, which is complete before anything is written. */
struct plan {
        const struct setup *setup;
        char *key_path;
        char *peers; /* as in the configuration, with blanks; "" if a cluster begins here */
        char *uplink;
        char *address; /* of the uplink */
        bool has_config, has_key;
};

static void plan_finish(struct plan *plan) {
        free(plan->key_path);
        free(plan->peers);
        free(plan->uplink);
        free(plan->address);
}

/* A dangling symbolic link counts, too: it was put there by a user. */
static bool is_there(const char *path) {
        struct stat st;

        return lstat(path, &st) == 0;
}

/* ---- what is wanted ---- */

static bool is_host(const char *text) {
        size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_");
        int64_t port;

        if (n == 0 || n > HOST_BYTES_MAX || *text == '-' || *text == '.')
                return false;
        return !text[n] || (text[n] == ':' && parse_i64(text + n + 1, 1, UINT16_MAX, &port) == 0);
}

/* "n1,n2" to "n1 n2". */
static int read_peers(const char *join, char **ret, struct rm_error *err) {
        cleanup_free char *list = xstrdup(join);
        cleanup_free char *peers = xstrdup("");
        char *saved = NULL;
        size_t n = 0;

        for (char *word = strtok_r(list, ", ", &saved); word; word = strtok_r(NULL, ", ", &saved)) {
                if (!is_host(word))
                        return error_set(err, -EINVAL,
                                         "'%s' is not a node to join through: give host names or IPv4 addresses, such as n1,n2",
                                         word);
                if (++n > PEERS_MAX)
                        return error_set(err, -EINVAL, "these are more than %u nodes to join through: two or three are enough",
                                         PEERS_MAX);
                peers = text_add_word(peers, " ", word);
        }
        if (n == 0)
                return error_set(err, -EINVAL, "no node to join through is named: give the first node of the cluster, such as n1");
        *ret = take_ptr(peers);
        return 0;
}

/* Each of `wanted` is one of `peers`. */
static bool names_all(const char *peers, const char *requested) {
        cleanup_free char *list = xstrdup(requested);
        cleanup_free char *padded = xasprintf(" %s ", peers);
        char *saved = NULL;

        for (char *c = padded; *c; c++)
                if (*c == ',' || *c == '\t')
                        *c = ' ';
        for (char *word = strtok_r(list, " ", &saved); word; word = strtok_r(NULL, " ", &saved)) {
                cleanup_free char *whole = xasprintf(" %s ", word);

                if (!strstr(padded, whole))
                        return false;
        }
        return true;
}

/* A configuration that is there is the administrator's: it must say what is wanted, and is not
 * changed. */
static int read_existing(struct plan *plan, struct rm_error *err) {
        const struct setup *setup = plan->setup;
        struct config config;
        int r = config_load(setup->config_path, &config, err);

        if (r < 0)
                return r;
        if (!setup->join && !config.bootstrap)
                r = error_set(err, -EEXIST,
                              "%s is there, and does not say 'bootstrap = yes': a node with it joins a cluster and begins none",
                              setup->config_path);
        else if (setup->join && !names_all(config.peers, plan->peers))
                r = error_set(err, -EEXIST, "%s is there, and its peers are '%s': add '%s' there", setup->config_path, config.peers,
                              plan->peers);
        free(plan->key_path);
        plan->key_path = xstrdup(config.key_file);
        plan->uplink = xstrdup(config.uplink);
        plan->address = xstrdup(config.address);
        config_finish(&config);
        return r;
}

/* All hosts can have the name "localhost", and no two nodes of a cluster may have the same. */
static int check_host_name(struct rm_error *err) {
        cleanup_free char *name = NULL;
        int r = config_host_name(&name, err);

        if (r == 0 && strcmp(name, "localhost") == 0)
                r = error_set(err, -EINVAL,
                              "this host is called 'localhost', as others may be: give it a name of its own first "
                              "('hostnamectl set-hostname NAME')");
        return r;
}

/* Nodes speak IPv4. One that is down has an address all the same. */
static int check_peers(const char *peers, struct rm_error *err) {
        const struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
        cleanup_free char *list = xstrdup(peers);
        char *saved = NULL;

        for (char *word = strtok_r(list, " ", &saved); word; word = strtok_r(NULL, " ", &saved)) {
                struct addrinfo *found = NULL;
                int code;

                word[strcspn(word, ":")] = 0;
                code = getaddrinfo(word, NULL, &hints, &found);
                if (code != 0)
                        return error_set(err, -EHOSTUNREACH, "no IPv4 address of '%s' is known here: %s", word, gai_strerror(code));
                freeaddrinfo(found);
        }
        return 0;
}

/* A configuration that is not there yet is made of this. */
static int look_at_host(struct plan *plan, struct rm_error *err) {
        int r = check_host_name(err);

        if (r == 0)
                r = uplink_find(plan->setup->uplink, &plan->uplink, &plan->address, err);
        return r < 0 ? r : check_peers(plan->peers, err);
}

static int make_plan(struct plan *plan, struct rm_error *err) {
        const struct setup *setup = plan->setup;
        int r = 0;

        plan->key_path = xstrdup(setup->key_path);
        if (setup->join)
                r = read_peers(setup->join, &plan->peers, err);
        else
                plan->peers = xstrdup("");
        if (r < 0)
                return r;
        plan->has_config = is_there(setup->config_path);
        r = plan->has_config ? read_existing(plan, err) : look_at_host(plan, err);
        if (r < 0)
                return r;
        plan->has_key = is_there(plan->key_path);
        if (plan->has_key) {
                uint8_t key[TLS_KEY_BYTES];

                r = tls_key_read(plan->key_path, key, err);
                explicit_bzero(key, sizeof(key));
                return r;
        }
        if (setup->join)
                return error_set(
                        err, -ENOKEY,
                        "there is no key of the cluster: copy it from a node that has it (scp -p %.*s:%s %s), and try again",
                        (int) strcspn(plan->peers, " :"), plan->peers, plan->key_path, plan->key_path);
        return 0;
}

/* ---- writing ---- */

/* Writes a new file, never over an existing one: link(2) refuses that. */
static int write_new(const char *path, const char *text, mode_t mode, struct rm_error *err) {
        cleanup_free char *tmp = xasprintf("%s.new.%d", path, (int) getpid());
        cleanup_close int fd = -1;
        cleanup_free char *dir = xasprintf("%.*s", (int) (strrchr(path, '/') - path), path);
        int r = *dir ? mkdir_p(dir, 0755) : 0;

        if (r < 0)
                return error_sys(err, r, "making %s", dir);
        fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
        if (fd < 0)
                return error_sys(err, -errno, "writing %s", path);
        r = write_all(fd, text, strlen(text));
        /* The mode is set explicitly, since the umask of this process may have taken bits away. */
        if (r == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0 || link(tmp, path) < 0))
                r = -errno;
        (void) unlink(tmp);
        if (r == 0)
                r = sync_name(path);
        return r < 0 ? error_sys(err, r, "writing %s", path) : 0;
}

static int write_key(const struct plan *plan, struct rm_error *err) {
        uint8_t key[TLS_KEY_BYTES];
        char text[2 * TLS_KEY_BYTES + 2];
        int r;

        if (getrandom(key, sizeof(key), 0) != (ssize_t) sizeof(key))
                return error_sys(err, -errno, "drawing a key");
        for (size_t i = 0; i < sizeof(key); i++)
                (void) snprintf(text + 2 * i, 3, "%02x", key[i]);
        text[sizeof(text) - 2] = '\n';
        text[sizeof(text) - 1] = '\0';
        r = write_new(plan->key_path, text, 0600, err);
        explicit_bzero(key, sizeof(key));
        explicit_bzero(text, sizeof(text));
        return r;
}

static int write_config(const struct plan *plan, struct rm_error *err) {
        static const char first[] = "# This node begins the cluster. Later this changes nothing.\n"
                                    "bootstrap = yes\n"
                                    "# Two or three other nodes: through them this one joins again, should it lose its disk.\n"
                                    "#peers =\n";
        cleanup_free char *peers = xasprintf("# Nodes through which this one joins the cluster.\npeers = %s\n", plan->peers);
        cleanup_free char *text =
                xasprintf("# Configuration of rmd, written by 'rmd %s'. See rmd.conf(5); /usr/share/rmd/rmd.conf has all keys.\n"
                          "[cluster]\n%s\n"
                          "[node]\n"
                          "# The interface that connects the nodes.\n"
                          "uplink = %s\n",
                          plan->setup->join ? "--join" : "--init-cluster", plan->setup->join ? peers : first, plan->uplink);

        return write_new(plan->setup->config_path, text, 0644, err);
}

/* ---- the unit ---- */

static int enable_unit(const char *systemctl, struct rm_error *err) {
        char *argv[] = { (char *) "systemctl", (char *) "enable", (char *) "--now", (char *) "rmd.service", NULL };
        const struct child_spec spec = {
                .program = systemctl, .argv = argv, .environment = environ, .streams = { -1, STDOUT_FILENO, STDERR_FILENO }
        };
        cleanup_close int pidfd = -1;
        int status = 0;
        pid_t pid;
        int r = child_start(&spec, &pid, &pidfd);

        if (r < 0)
                return error_sys(err, r, "running %s", systemctl);
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return error_sys(err, -errno, "waiting for %s", systemctl);
        if (status != 0)
                return error_set(err, -EIO, "'systemctl enable --now rmd.service' failed: 'journalctl -u rmd' says why");
        return 0;
}

static void say_next(const struct plan *plan, FILE *out) {
        const char *address = *plan->address ? plan->address : "THIS-NODE";

        if (!plan->setup->systemctl)
                (void) fprintf(out, "systemd does not run here: start 'rmd' as root\n");
        if (plan->setup->join)
                (void) fprintf(out, "Then 'rmctl list-nodes' shows this node, and 'rmctl doctor' whether it is fit to move jobs;\n"
                                    "until then 'rmctl status' says why it has not joined.\n");
        else
                (void) fprintf(out,
                               "On each further node, with the same packages:\n"
                               "    scp -p %s:%s %s    # whoever has the key is root on all nodes\n"
                               "    rmd --join %s\n"
                               "Then 'rmctl list-nodes' shows the nodes, and 'rmctl doctor' whether they are fit to move jobs.\n",
                               address, plan->key_path, plan->key_path, address);
}

static int carry_out(const struct plan *plan, FILE *out, struct rm_error *err) {
        const struct setup *setup = plan->setup;
        int r = plan->has_key ? 0 : write_key(plan, err);

        if (r < 0)
                return r;
        (void) fprintf(out, "%s: %s\n", plan->key_path, plan->has_key ? "kept" : "a new key, readable by root only");
        if (plan->has_key && !plan->has_config && !setup->join)
                (void) fprintf(out,
                               "    If it is of a cluster that is there, this node begins a second one: then stop rmd, remove\n"
                               "    %s and what is in /var/lib/rmd, and run 'rmd --join' instead.\n",
                               setup->config_path);
        r = plan->has_config ? 0 : write_config(plan, err);
        if (r < 0)
                return r;
        (void) fprintf(out, "%s: %s, uplink %s\n", setup->config_path, plan->has_config ? "kept" : "written", plan->uplink);
        if (setup->systemctl) {
                (void) fflush(out);
                r = enable_unit(setup->systemctl, err);
                if (r < 0)
                        return r;
                (void) fprintf(out, "rmd.service: enabled and started\n");
        }
        say_next(plan, out);
        return 0;
}

int setup_node(const struct setup *setup, FILE *out, struct rm_error *err) {
        struct plan plan = { .setup = setup };
        int r = make_plan(&plan, err);

        if (r == 0)
                r = carry_out(&plan, out, err);
        plan_finish(&plan);
        return r;
}
