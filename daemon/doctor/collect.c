#include "daemon/doctor/collect.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "common/util.h"
#include "daemon/doctor/programs.h"
#include "daemon/wire/tls.h"

#define LDCONFIG "/sbin/ldconfig"
#define MPIRUN "/usr/bin/mpirun"
#define LIBRARY_MAX_BYTES (256 << 20) /* a hundred times what any of them has */
#define LIBRARIES_MAX 16U
#define DIGEST_SHOWN_BYTES 8U /* of SHA-256: two files that differ by chance are told apart */
#define PORTS_TRIED_MAX 256U /* each takes a system call or three; a move needs one */
#define LINE_BYTES 512U

/* A protobuf string that was never set is a constant and must not be freed. */
static void put(char **field, char *text) {
        if (*field != (char *) protobuf_c_empty_string)
                free(*field);
        *field = text;
}

/* Returns a line of printable ASCII, as programs and error texts may be told to others. */
static char *one_line(const char *text) {
        char *line = xcalloc(1, LINE_BYTES);
        size_t n = strcspn(text, "\n");

        (void) snprintf(line, LINE_BYTES, "%.*s", (int) (n < LINE_BYTES ? n : LINE_BYTES), text);
        for (char *p = line; *p; p++)
                if (!isprint((unsigned char) *p))
                        *p = '?';
        return line;
}

static void put_line(char **field, const char *text) {
        put(field, one_line(text));
}

static void put_errno(char **field, int r) {
        put(field, xstrdup(strerror(-r)));
}

/* ---- the machine ---- */

static void collect_kernel(Rm__NodeFacts *facts) {
        struct utsname name;
        struct rlimit files;

        if (uname(&name) == 0) {
                put_line(&facts->kernel, name.release);
                put_line(&facts->machine, name.machine);
        }
        if (getrlimit(RLIMIT_NOFILE, &files) == 0)
                facts->open_files_max = files.rlim_max;
}

/* The value of "key : value"; NULL: another line. */
static const char *value_of(const char *line, const char *key) {
        size_t n = strlen(key);

        if (strncmp(line, key, n) != 0)
                return NULL;
        line += n + strspn(line + n, " \t");
        return *line == ':' ? line + 1 + strspn(line + 1, " \t") : NULL;
}

/* All processors of a machine have the same, as far as programs may use it: the kernel shows what
 * they have in common. */
void collect_processor(const char *root, Rm__NodeFacts *facts) {
        cleanup_free char *path = xasprintf("%s/proc/cpuinfo", root);
        cleanup_file FILE *f = fopen(path, "re");
        cleanup_free char *line = NULL;
        size_t size = 0;

        while (f && getline(&line, &size, f) > 0 && line[0] != '\n') {
                const char *model = value_of(line, "model name");
                const char *flags = value_of(line, "flags");

                flags = flags ? flags : value_of(line, "Features"); /* of ARM */
                if (model)
                        put_line(&facts->processor, model);
                if (flags)
                        put(&facts->processor_flags, xasprintf("%.*s", (int) strcspn(flags, "\n"), flags));
        }
}

/* Kernels before 4.19 do not tell, and cannot track memory either. */
void collect_huge_pages(const char *root, Rm__NodeFacts *facts) {
        cleanup_free char *path = xasprintf("%s/proc/meminfo", root);
        cleanup_file FILE *f = fopen(path, "re");
        cleanup_free char *line = NULL;
        size_t size = 0;

        while (f && getline(&line, &size, f) > 0) {
                const char *kib = value_of(line, "Hugetlb");

                if (kib)
                        facts->huge_page_bytes = strtoull(kib, NULL, 10) << 10;
        }
}

/* The first line of a file of /sys; NULL: errno says why. */
static char *read_line(const char *path) {
        cleanup_file FILE *f = fopen(path, "re");
        cleanup_free char *line = NULL;
        size_t size = 0;

        return f && getline(&line, &size, f) > 0 ? one_line(line) : NULL;
}

void collect_uplink(const char *root, const char *uplink, Rm__NodeFacts *facts) {
        cleanup_free char *mtu_path = xasprintf("%s/sys/class/net/%s/mtu", root, uplink);
        cleanup_free char *state_path = xasprintf("%s/sys/class/net/%s/operstate", root, uplink);
        cleanup_free char *mtu = read_line(mtu_path);
        char *state;
        int64_t bytes = 0;

        put(&facts->uplink, xstrdup(uplink));
        if (!mtu || parse_i64(mtu, 1, UINT32_MAX, &bytes) < 0) {
                put(&facts->uplink_error, xstrdup("there is no such interface"));
                return;
        }
        facts->mtu = (uint32_t) bytes;
        state = read_line(state_path);
        if (state)
                put(&facts->uplink_state, state);
}

/* ---- libraries and programs ---- */

static int digest_file(int fd, char ret_hex[static 2 * DIGEST_SHOWN_BYTES + 1]) {
        EVP_MD_CTX *ctx = EVP_MD_CTX_new();
        unsigned char digest[EVP_MAX_MD_SIZE];
        uint8_t block[65536];
        ssize_t n = -1;
        int r = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1 ? 0 : -ENOMEM;

        while (r == 0 && (n = read(fd, block, sizeof(block))) != 0) {
                if (n < 0 && errno != EINTR)
                        r = -errno;
                else if (n > 0 && EVP_DigestUpdate(ctx, block, (size_t) n) != 1)
                        r = -EIO;
        }
        if (r == 0 && EVP_DigestFinal_ex(ctx, digest, NULL) != 1)
                r = -EIO;
        EVP_MD_CTX_free(ctx);
        for (size_t i = 0; r == 0 && i < DIGEST_SHOWN_BYTES; i++)
                (void) snprintf(ret_hex + 2 * i, 3, "%02x", digest[i]);
        return r;
}

void collect_library(const char *name, const char *path, Rm__NodeFacts *facts) {
        cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        Rm__LibraryFact *library = xcalloc(1, sizeof(*library));
        char hex[2 * DIGEST_SHOWN_BYTES + 1] = "";
        struct stat st;
        int r = fd < 0 ? -errno : 0;

        rm__library_fact__init(library);
        put_line(&library->name, name);
        put_line(&library->path, path);
        if (r == 0 && fstat(fd, &st) < 0)
                r = -errno;
        if (r == 0 && (!S_ISREG(st.st_mode) || st.st_size > LIBRARY_MAX_BYTES))
                r = -EINVAL;
        if (r == 0)
                r = digest_file(fd, hex);
        if (r == 0)
                put(&library->digest, xstrdup(hex));
        else
                put_errno(&library->error, r);
        facts->libraries = xrealloc(facts->libraries, (facts->n_libraries + 1) * sizeof(Rm__LibraryFact *));
        facts->libraries[facts->n_libraries++] = library;
}

static bool is_mapped_by_ranks(const char *name) {
        static const char *const stems[] = { "libc.so.", "libm.so.", "libmpi.so.", "libopen-pal.so.", "libpmix.so." };

        for (size_t i = 0; i < ARRAY_SIZE(stems); i++)
                if (strncmp(name, stems[i], strlen(stems[i])) == 0)
                        return true;
        return false;
}

/* ldconfig writes "(libc6)" for 32 bits, "(libc6,x86-64)" and the like for 64. */
static bool is_native(const char *kind) {
        bool wide = strncmp(kind, "libc6,", 6) == 0 && strncmp(kind, "libc6,x32", 9) != 0 && strncmp(kind, "libc6, ", 7) != 0;

        return wide == (sizeof(void *) == 8);
}

static bool is_known(const Rm__NodeFacts *facts, const char *name) {
        for (size_t i = 0; i < facts->n_libraries; i++)
                if (strcmp(facts->libraries[i]->name, name) == 0)
                        return true;
        return false;
}

void collect_libraries(const char *ldconfig, Rm__NodeFacts *facts) {
        cleanup_free char *copy = xstrdup(ldconfig);
        char *saved = NULL;

        for (char *line = strtok_r(copy, "\n", &saved); line; line = strtok_r(NULL, "\n", &saved)) {
                char *arrow = strstr(line, " => "), *kind = strstr(line, " (");

                line += strspn(line, " \t");
                if (!arrow || !kind || kind > arrow || !is_mapped_by_ranks(line) || !is_native(kind + 2))
                        continue;
                *kind = '\0';
                if (!is_known(facts, line) && facts->n_libraries < LIBRARIES_MAX)
                        collect_library(line, arrow + 4, facts);
        }
}

static void find_libraries(Rm__NodeFacts *facts) {
        char *const argv[] = { (char *) "ldconfig", (char *) "-p", NULL };
        cleanup_free char *output = NULL;

        if (program_run(LDCONFIG, argv, &output, NULL) == 0)
                collect_libraries(output, facts);
}

/* Asks `program` for its version; or says why it has none. */
static void ask_version(const char *program, char **version, char **error) {
        char *const argv[] = { (char *) program, (char *) "--version", NULL };
        cleanup_free char *output = NULL;
        struct rm_error err = { 0 };

        if (program_run(program, argv, &output, &err) < 0)
                put_line(error, error_text(&err));
        else
                put_line(version, strncmp(output, "Version: ", 9) == 0 ? output + 9 : output);
}

/* Returns the last line that names an error: those before it may be about what CRIU can do without,
 * such as a tun device. NULL: there is none. */
static const char *last_error(const char *output) {
        const char *last = NULL;

        for (const char *at = strstr(output, "Error"); at; at = strstr(at + strcspn(at, "\n"), "Error"))
                last = at;
        return last;
}

/* Keeps the last line of "criu check" that names an error. */
static void check_criu(const char *criu, Rm__NodeFacts *facts) {
        char *const argv[] = { (char *) "criu", (char *) "check", NULL };
        cleanup_free char *output = NULL;
        struct rm_error err = { 0 };
        const char *line;

        if (program_run(criu, argv, &output, &err) == 0)
                return;
        line = output ? last_error(output) : NULL;
        put_line(&facts->criu_check_error, line ? line : error_text(&err));
}

/* ---- what only root may see ---- */

/* A key file that cannot be used is told as rmd would tell it when it starts. */
void collect_key(const struct collect_config *config, Rm__NodeFacts *facts) {
        struct rm_error err = { 0 };
        struct tls *tls = NULL;
        uint8_t second[TLS_KEY_BYTES];

        put(&facts->key_file, xstrdup(config->key_file));
        if (tls_create_from_files(config->cluster, TLS_PEER, config->key_file, "", &tls, &err) < 0) {
                put_line(&facts->key_error, error_text(&err));
                return;
        }
        put(&facts->key_fingerprint, xstrdup(tls_fingerprint(tls, false)));
        tls_destroy(tls);
        if (config->second_key_file[0] && tls_key_read(config->second_key_file, second, &err) < 0)
                put_line(&facts->key_error, error_text(&err));
        OPENSSL_cleanse(second, sizeof(second));
}

void collect_disk(const char *setting, const char *path, Rm__NodeFacts *facts) {
        Rm__DiskFact *disk = xcalloc(1, sizeof(*disk));
        struct statvfs fs;

        rm__disk_fact__init(disk);
        put(&disk->setting, xstrdup(setting));
        put(&disk->path, xstrdup(path));
        if (statvfs(path, &fs) < 0) {
                put_errno(&disk->error, -errno);
        } else {
                disk->total_bytes = (uint64_t) fs.f_blocks * fs.f_frsize;
                disk->free_bytes = (uint64_t) fs.f_bfree * fs.f_frsize; /* rmd is root: what is kept back is for it */
                disk->total_files = fs.f_files;
                disk->free_files = fs.f_ffree;
                disk->read_only = fs.f_flag & ST_RDONLY;
        }
        facts->disks = xrealloc(facts->disks, (facts->n_disks + 1) * sizeof(Rm__DiskFact *));
        facts->disks[facts->n_disks++] = disk;
}

static int try_port(const struct sockaddr_in *address) {
        cleanup_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const int on = 1;

        if (fd < 0)
                return -errno;
        /* The option is set as rm-mover sets it: a connection of an earlier move that has not quite
         * ended is no blocker. */
        (void) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        return bind(fd, (const struct sockaddr *) address, sizeof(*address)) < 0 || listen(fd, 1) < 0 ? -errno : 0;
}

void collect_ports(const struct collect_config *config, Rm__NodeFacts *facts) {
        struct sockaddr_in address = { .sin_family = AF_INET };
        uint32_t n = config->port_first ? (uint32_t) config->port_last - config->port_first + 1 : 1;
        int r = 0;

        facts->port_first = config->port_first;
        facts->port_last = config->port_last;
        if (inet_pton(AF_INET, config->address, &address.sin_addr) != 1) {
                put(&facts->port_error, xstrdup("the address is none"));
                return;
        }
        for (uint32_t i = 0; i < n && i < PORTS_TRIED_MAX; i++) {
                int error;

                address.sin_port = htons((uint16_t) (config->port_first + i));
                error = try_port(&address);
                r = error < 0 ? error : r;
                facts->ports_tried++;
                facts->ports_free += error == 0;
        }
        if (facts->ports_free == 0)
                put_errno(&facts->port_error, r);
}

void collect_as_root(const struct collect_config *config, Rm__NodeFacts *facts) {
        collect_key(config, facts);
        collect_disk("state_dir", config->state_dir, facts);
        collect_disk("runtime_dir", config->runtime_dir, facts);
        collect_ports(config, facts);
        check_criu(config->criu, facts);
}

void collect_as_anyone(const struct collect_config *config, Rm__NodeFacts *facts) {
        collect_kernel(facts);
        collect_processor(config->root, facts);
        collect_huge_pages(config->root, facts);
        collect_uplink(config->root, config->uplink, facts);
        ask_version(config->criu, &facts->criu_version, &facts->criu_error);
        ask_version(MPIRUN, &facts->mpi_version, &facts->mpi_error);
        find_libraries(facts);
}
