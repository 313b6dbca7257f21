/*
 * rm-node-facts: what there is to be known of this machine for moving and restoring jobs. It may
 * hang on a disk or in a program without harm: rmd kills it, and its process group, when its time
 * is over.
 *
 *      rm-node-facts --cluster C --key FILE [--second-key FILE] --state-dir DIR
 *                    --runtime-dir DIR --uplink NAME --address A --ports FIRST-LAST
 *                    --criu PATH
 *
 * Writes a packed NodeFacts (proto/local.proto). Exit status: 0, 1 it could not be written, 2
 * usage.
 */
#include <argp.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/doctor/collect.h"

enum { KEY_CLUSTER = 256, KEY_KEY, KEY_SECOND, KEY_STATE, KEY_RUNTIME, KEY_UPLINK, KEY_ADDRESS, KEY_PORTS, KEY_CRIU };

static const struct argp_option options[] = {
        { "cluster", KEY_CLUSTER, "NAME", 0, "Name of the cluster", 0 },
        { "key", KEY_KEY, "FILE", 0, "Its key", 0 },
        { "second-key", KEY_SECOND, "FILE", 0, "A second key", 0 },
        { "state-dir", KEY_STATE, "DIR", 0, "[cluster] state_dir", 0 },
        { "runtime-dir", KEY_RUNTIME, "DIR", 0, "[node] runtime_dir", 0 },
        { "uplink", KEY_UPLINK, "NAME", 0, "[node] uplink", 0 },
        { "address", KEY_ADDRESS, "ADDRESS", 0, "[node] address", 0 },
        { "ports", KEY_PORTS, "FIRST-LAST", 0, "[node] move_ports; 0-0: any", 0 },
        { "criu", KEY_CRIU, "PATH", 0, "CRIU", 0 },
        { 0 },
};

static error_t parse_option(int key, char *arg, struct argp_state *state) {
        struct collect_config *config = state->input;

        switch (key) {
        case KEY_CLUSTER:
                config->cluster = arg;
                return 0;
        case KEY_KEY:
                config->key_file = arg;
                return 0;
        case KEY_SECOND:
                config->second_key_file = arg;
                return 0;
        case KEY_STATE:
                config->state_dir = arg;
                return 0;
        case KEY_RUNTIME:
                config->runtime_dir = arg;
                return 0;
        case KEY_UPLINK:
                config->uplink = arg;
                return 0;
        case KEY_ADDRESS:
                config->address = arg;
                return 0;
        case KEY_PORTS: {
                char *dash = strchr(arg, '-');
                int64_t first = 0, last = 0;

                if (dash)
                        *dash = '\0';
                if (!dash || parse_i64(arg, 0, UINT16_MAX, &first) < 0 || parse_i64(dash + 1, first, UINT16_MAX, &last) < 0)
                        argp_error(state, "--ports is FIRST-LAST");
                config->port_first = (uint16_t) first;
                config->port_last = (uint16_t) last;
                return 0;
        }
        case KEY_CRIU:
                config->criu = arg;
                return 0;
        default:
                return ARGP_ERR_UNKNOWN;
        }
}

static const struct argp argp_facts = { options, parse_option, NULL, "What there is to be known of this machine for moving jobs.",
                                        NULL,    NULL,         NULL };

/* Libraries and mpirun may be of any origin; they run without rights. */
static int become_nobody(void) {
        const struct passwd *nobody = getpwnam("nobody");

        if (geteuid() != 0)
                return 0;
        if (!nobody || setgroups(0, NULL) < 0 || setresgid(nobody->pw_gid, nobody->pw_gid, nobody->pw_gid) < 0 ||
            setresuid(nobody->pw_uid, nobody->pw_uid, nobody->pw_uid) < 0)
                return -EPERM;
        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

static int write_facts(const Rm__NodeFacts *facts) {
        size_t bytes = rm__node_facts__get_packed_size(facts);
        cleanup_free uint8_t *packed = xcalloc(1, bytes + 1);

        (void) rm__node_facts__pack(facts, packed);
        return write_all(STDOUT_FILENO, packed, bytes);
}

int main(int argc, char **argv) {
        struct collect_config config = { .root = "",
                                         .cluster = "",
                                         .key_file = "",
                                         .second_key_file = "",
                                         .state_dir = "",
                                         .runtime_dir = "",
                                         .uplink = "",
                                         .address = "",
                                         .criu = "" };
        Rm__NodeFacts *facts = xcalloc(1, sizeof(*facts));
        int r;

        if (argp_parse(&argp_facts, argc, argv, 0, NULL, &config) != 0)
                return 2;
        log_setup("rm-node-facts", LOG_WARNING);
        (void) umask(077);
        rm__node_facts__init(facts);
        collect_as_root(&config, facts);
        r = become_nobody();
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of the user clears it */
        if (r == 0)
                collect_as_anyone(&config, facts);
        else
                log_error("cannot become nobody: %s", strerror(-r));
        r = r < 0 ? r : write_facts(facts);
        rm__node_facts__free_unpacked(facts, NULL);
        return r < 0 ? 1 : 0;
}
