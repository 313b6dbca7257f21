#include "daemon/config/config.h"

#include <arpa/inet.h>
#include <ini.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/config/listen.h"
#include "daemon/config/value.h"

enum kind {
        KIND_STRING,
        KIND_PATHS, /* absolute, separated by spaces */
        KIND_NAME,
        KIND_BOOL,
        KIND_U16,
        KIND_U32,
        KIND_DURATION,
        KIND_BYTES,
        KIND_NETWORK,
        KIND_PORTS,
        KIND_LEVEL,
        KIND_AUTO_U32,
        KIND_COUNT,
        KIND_MOST_BYTES,
        KIND_MOST_COUNT,
        KIND_BACKFILL,
        KIND_CODEC,
        KIND_LAST,
        KIND_MOVE_TIMEOUT,
        KIND_CALLBACK_WAIT,
        KIND_PLACE_WAIT,
        KIND_PENALTIES,
        KIND_SENSORS,
};

/* The rule of name_valid(), in a message. */
#define NAME_RULE "up to 63 letters, digits, '.', '_' and '-', of which the first is a letter or digit"

/* Less starts no MPI program. */
#define MEMORY_MAX_LEAST (UINT64_C(64) << 20)
#define PIDS_MAX_LEAST 64U

struct key {
        const char *section;
        const char *name;
        enum kind kind;
        size_t offset;
        const char *fallback; /* as it would stand in the file */
};

#define KEY(section, name, kind, field, fallback) { section, name, kind, offsetof(struct config, field), fallback }

static const struct key keys[] = {
        KEY("cluster", "name", KIND_NAME, cluster_name, "rmd"),
        KEY("cluster", "key_file", KIND_STRING, key_file, "/etc/rmd/cluster.key"),
        KEY("cluster", "second_key_file", KIND_STRING, second_key_file, ""),
        KEY("cluster", "peers", KIND_STRING, peers, ""),
        KEY("cluster", "bootstrap", KIND_BOOL, bootstrap, "no"),
        KEY("cluster", "port", KIND_U16, port, "7700"),
        KEY("cluster", "node_timeout", KIND_DURATION, node_timeout_usec, "5s"),
        KEY("cluster", "heartbeat", KIND_DURATION, heartbeat_usec, "1s"),
        KEY("cluster", "lease", KIND_DURATION, lease_usec, "5s"),
        KEY("cluster", "voters", KIND_U32, voters, "3"),
        KEY("cluster", "voter_timeout", KIND_DURATION, voter_timeout_usec, "2m"),
        KEY("cluster", "election_timeout", KIND_DURATION, election_usec, "300ms"),
        KEY("cluster", "state_dir", KIND_STRING, state_dir, "/var/lib/rmd"),
        KEY("cluster", "topology", KIND_STRING, topology, ""),
        KEY("node", "name", KIND_STRING, node_name, ""),
        KEY("node", "address", KIND_STRING, address, ""),
        KEY("node", "uplink", KIND_STRING, uplink, "eth0"),
        KEY("node", "cores", KIND_AUTO_U32, cores, "auto"),
        KEY("node", "memory", KIND_MOST_BYTES, memory, "auto"),
        KEY("node", "socket", KIND_STRING, socket_path, "/run/rmd/rmd.sock"),
        KEY("node", "runtime_dir", KIND_STRING, runtime_dir, "/run/rmd"),
        KEY("node", "move_ports", KIND_PORTS, move_port_first, "any"),
        KEY("node", "move_rate", KIND_BYTES, move_rate_bytes_per_sec, "0"),
        KEY("move", "codec", KIND_CODEC, move_codec, "auto"),
        KEY("move", "tracking", KIND_BOOL, move_tracking, "yes"),
        KEY("move", "last", KIND_LAST, move_last, "slow"),
        KEY("move", "slow_for", KIND_DURATION, move_slow_usec, "2s"),
        KEY("move", "callback_wait", KIND_CALLBACK_WAIT, callback_wait_usec, "1s"),
        KEY("capsule", "network", KIND_NETWORK, network, "10.201.0.0/16"),
        KEY("capsule", "group_size", KIND_AUTO_U32, group_size, "auto"),
        KEY("capsule", "cgroup", KIND_STRING, cgroup_parent, ""),
        KEY("capsule", "writable", KIND_PATHS, writable, "/home /scratch /var/tmp"),
        KEY("capsule", "memory_max", KIND_MOST_BYTES, memory_max, "auto"),
        KEY("capsule", "pids_max", KIND_MOST_COUNT, pids_max, "auto"),
        KEY("availability", "file", KIND_STRING, availability_file, "/etc/rmd/availability"),
        KEY("availability", "poll", KIND_DURATION, availability_poll_usec, "1s"),
        KEY("sched", "policy", KIND_NAME, policy, "distrib"),
        KEY("sched", "policy_dir", KIND_STRING, policy_dir, RM_POLICY_DIR),
        KEY("sched", "budget", KIND_DURATION, budget_usec, "1s"),
        KEY("sched", "settle", KIND_DURATION, settle_usec, "20ms"),
        KEY("sched", "move_timeout", KIND_MOVE_TIMEOUT, move_timeout_usec, "2m"),
        KEY("sched", "moves_at_once", KIND_U32, moves_at_once, "8"),
        KEY("sched", "spare_nodes", KIND_COUNT, spare_nodes, "0"),
        KEY("sched", "horizon", KIND_DURATION, horizon_usec, "10m"),
        KEY("sched", "move_budget", KIND_COUNT, move_budget, "4"),
        KEY("sched", "traffic_interval", KIND_DURATION, traffic_interval_usec, "10s"),
        KEY("sched", "link_speed", KIND_U32, link_mbit_per_sec, "1000"),
        KEY("sched", "interval", KIND_DURATION, interval_usec, "1m"),
        KEY("sched", "resize_interval", KIND_DURATION, resize_interval_usec, "30s"),
        KEY("sched", "age_weight", KIND_COUNT, age_weight, "1"),
        KEY("sched", "backfill", KIND_BACKFILL, backfill, "limits"),
        KEY("sched", "distribution_weight", KIND_COUNT, distribution_weight, "10"),
        KEY("sched", "node_penalty", KIND_PENALTIES, node_penalty, ""),
        KEY("fence", "plugin", KIND_NAME, fence_plugin, "none"),
        KEY("fence", "program", KIND_STRING, fence_program, ""),
        KEY("fence", "timeout", KIND_DURATION, fence_timeout_usec, "1m"),
        KEY("fence", "retry", KIND_DURATION, fence_retry_usec, "10s"),
        KEY("health", "warn_penalty", KIND_COUNT, warn_penalty, "100"),
        KEY("sensors", "load", KIND_SENSORS, sensors, ""),
        KEY("sensors", "interval", KIND_DURATION, sensor.interval_usec, "1m"),
        KEY("sensors", "timeout", KIND_DURATION, sensor.timeout_usec, "10s"),
        KEY("sensors", "readings", KIND_U32, sensor.readings, "3"),
        KEY("sensors", "hold", KIND_DURATION, sensor.hold_usec, "10m"),
        KEY("checkpoint", "store", KIND_STRING, checkpoint_store, "partner"),
        KEY("checkpoint", "copies", KIND_COUNT, checkpoint_copies, "1"),
        KEY("checkpoint", "keep", KIND_U32, checkpoint_keep, "2"),
        KEY("checkpoint", "rate", KIND_BYTES, checkpoint_rate_bytes_per_sec, "0"),
        KEY("checkpoint", "codec", KIND_CODEC, checkpoint_codec, "auto"),
        KEY("checkpoint", "space_max_per_user", KIND_BYTES, checkpoint_space_bytes, "0"),
        KEY("checkpoint", "verify", KIND_DURATION, checkpoint_verify_usec, "1d"),
        KEY("checkpoint", "place_wait", KIND_PLACE_WAIT, place_wait_usec, "10s"),
        KEY("checkpoint", "mtbf", KIND_DURATION, checkpoint_mtbf_usec, "1000h"),
        KEY("job", "keep", KIND_DURATION, keep_jobs_usec, "1d"),
        KEY("job", "kill_wait", KIND_DURATION, kill_wait_usec, "10s"),
        KEY("job", "admin_group", KIND_STRING, admin_group, "rmadmin"),
        KEY("job", "max_priority", KIND_COUNT, max_priority, "1000"),
        KEY("job", "max_jobs_per_user", KIND_COUNT, max_jobs_per_user, "1000"),
        KEY("job", "max_ranks_per_user", KIND_COUNT, max_ranks_per_user, "1000000"),
        KEY("job", "max_groups_per_job", KIND_COUNT, max_groups_per_job, "4096"),
        KEY("job", "max_capsules_per_core", KIND_COUNT, max_capsules_per_core, "8"),
        KEY("job", "spool_max", KIND_BYTES, spool_max_bytes, "1G"),
        KEY("job", "spool_reserve", KIND_BYTES, spool_reserve_bytes, "256M"),
        KEY("web", "listen", KIND_STRING, web_listen, "/run/rmd/web.sock"),
        KEY("log", "level", KIND_LEVEL, log_level, "info"),
};

struct reader {
        struct config *config;
        struct rm_error *err;
        FILE *file;
        int line;
        int stopped_line; /* that read_line() could not take, 0 = none */
};

static void *field(struct config *config, const struct key *key) {
        return (char *) config + key->offset;
}

static int set_number(const char *text, uint64_t min, uint64_t max, uint32_t *ret) {
        const struct value_kind range = { .min = min, .max = max };

        return value_set_u32(ret, text, &range);
}

/* `out`: the configuration, two fields of which are set. */
static int set_network(void *out, const char *value, const struct value_kind *kind) {
        struct config *config = out;
        cleanup_free char *copy = xstrdup(value);
        char *slash = strchr(copy, '/');
        struct in_addr address;
        uint32_t prefix = 0;

        if (!slash)
                return -EINVAL;
        *slash = 0;
        if (inet_pton(AF_INET, copy, &address) != 1 || set_number(slash + 1, 8, 16, &prefix) < 0)
                return -EINVAL;
        if (ntohl(address.s_addr) & (UINT32_MAX >> prefix))
                return -EINVAL;
        config->network = ntohl(address.s_addr);
        config->network_prefix = (uint8_t) prefix;
        return 0;
}

/* `out` is as above. */
static int set_ports(void *out, const char *value, const struct value_kind *kind) {
        struct config *config = out;
        cleanup_free char *copy = xstrdup(value);
        char *dash = strchr(copy, '-');
        uint32_t first = 0;
        uint32_t last = 0;

        if (strcmp(value, "any") == 0) {
                config->move_port_first = config->move_port_last = 0;
                return 0;
        }
        if (!dash)
                return -EINVAL;
        *dash = 0;
        if (set_number(copy, 1, 65535, &first) < 0 || set_number(dash + 1, 1, 65535, &last) < 0 || last < first)
                return -EINVAL;
        config->move_port_first = (uint16_t) first;
        config->move_port_last = (uint16_t) last;
        return 0;
}

static bool all_absolute(const char *paths) {
        for (paths += strspn(paths, " \t"); *paths; paths += strspn(paths, " \t")) {
                if (*paths != '/')
                        return false;
                paths += strcspn(paths, " \t");
        }
        return true;
}

static int set_auto_u32(void *out, const char *value, const struct value_kind *kind) {
        if (strcmp(value, "auto") != 0)
                return value_set_u32(out, value, kind);
        *(uint32_t *) out = 0;
        return 0;
}

/* 0: auto, UINT64_MAX: none. */
static int set_most(uint64_t *out, const char *value, uint64_t least, int (*parse)(const char *, uint64_t *)) {
        uint64_t v = 0;
        int r = 0;

        if (strcmp(value, "none") == 0)
                v = UINT64_MAX;
        else if (strcmp(value, "auto") != 0 && (r = parse(value, &v)) == 0 && v < least)
                r = -ERANGE;
        if (r == 0)
                *out = v;
        return r;
}

static int set_most_bytes(void *out, const char *value, const struct value_kind *kind) {
        return set_most(out, value, MEMORY_MAX_LEAST, parse_bytes);
}

static int parse_count(const char *text, uint64_t *ret) {
        return parse_i64(text, 1, INT32_MAX, (int64_t *) ret);
}

static int set_most_count(void *out, const char *value, const struct value_kind *kind) {
        return set_most(out, value, PIDS_MAX_LEAST, parse_count);
}

static int set_penalties(void *out, const char *value, const struct value_kind *kind) {
        return penalties_add(out, value, NULL);
}

static int set_sensors(void *out, const char *value, const struct value_kind *kind) {
        return sensor_configs_load(out, value);
}

static const char *const levels[] = { [LOG_ERR] = "error", [LOG_WARNING] = "warning", [LOG_INFO] = "info", [LOG_DEBUG] = "debug" };
static const char
        *const backfills[] = { [CONFIG_BACKFILL_NO] = "no", [CONFIG_BACKFILL_LIMITS] = "limits", [CONFIG_BACKFILL_ANY] = "any" };
static const char *const codecs[] = { [CONFIG_CODEC_AUTO] = "auto",
                                      [CONFIG_CODEC_NONE] = "none",
                                      [CONFIG_CODEC_LZ4] = "lz4",
                                      [CONFIG_CODEC_ZSTD] = "zstd" };
static const char
        *const lasts[] = { [CONFIG_LAST_SLOW] = "slow", [CONFIG_LAST_FREEZE] = "freeze", [CONFIG_LAST_POSTCOPY] = "postcopy" };

static const struct value_kind kinds[] = {
        [KIND_STRING] = { value_set_text, "text" },
        [KIND_PATHS] = { value_set_text, "text", .valid = all_absolute },
        [KIND_NAME] = { value_set_text, "a name of letters, digits, '.', '_' and '-'", .valid = name_valid },
        [KIND_BOOL] = { value_set_bool, "yes or no" },
        [KIND_U16] = { value_set_u16, "a number from 1 to 65535", 1, 65535 },
        [KIND_U32] = { value_set_u32, "a number from 1 to 1000000", 1, 1000000 },
        [KIND_DURATION] = { value_set_duration, "a time such as 500ms, 5s, 2m, 1h or 1d" },
        [KIND_BYTES] = { value_set_bytes, "a number of bytes such as 500K, 50M or 1G" },
        [KIND_NETWORK] = { set_network, "a network such as 10.201.0.0/16 (prefix 8 to 16, host bits 0)" },
        [KIND_PORTS] = { set_ports, "any, or a range such as 7800-7899" },
        [KIND_LEVEL] = { value_set_word, "error, warning, info or debug", VALUE_WORDS(levels) },
        [KIND_AUTO_U32] = { set_auto_u32, "a number from 1 to 1000000, or auto", 1, 1000000 },
        [KIND_COUNT] = { value_set_u32, "a number from 0 to 1000000", 0, 1000000 },
        [KIND_MOST_BYTES] = { set_most_bytes, "auto, none, or a number of bytes such as 500M or 4G, at least 64M" },
        [KIND_MOST_COUNT] = { set_most_count, "auto, none, or a number of at least 64" },
        [KIND_BACKFILL] = { value_set_word, "no, limits or any", VALUE_WORDS(backfills) },
        [KIND_CODEC] = { value_set_word, "auto, none, lz4 or zstd", VALUE_WORDS(codecs) },
        [KIND_LAST] = { value_set_word, "slow, freeze or postcopy", VALUE_WORDS(lasts) },
        [KIND_MOVE_TIMEOUT] = { value_set_duration,
                                "a time from 1s to 2m: connections to a group that stands still for longer would break",
                                CONFIG_MOVE_TIMEOUT_MIN_USEC, CONFIG_MOVE_TIMEOUT_MAX_USEC },
        [KIND_CALLBACK_WAIT] = { value_set_duration, "a time from 0s to 10s", 0, CONFIG_CALLBACK_WAIT_MAX_USEC },
        [KIND_PLACE_WAIT] = { value_set_duration, "a time from 0s to 1m", 0, CONFIG_PLACE_WAIT_MAX_USEC },
        [KIND_PENALTIES] = { set_penalties, "nodes with numbers from 0 to 1000000, such as n7:3 n[10-12]:5" },
        [KIND_SENSORS] = { set_sensors, "up to 15 names of letters and digits" },
};

static int set_key(struct config *config, const struct key *key, const char *value) {
        const struct value_kind *kind = &kinds[key->kind];
        bool two_fields = key->kind == KIND_NETWORK || key->kind == KIND_PORTS;

        return kind->set(two_fields ? config : field(config, key), value, kind);
}

static int refuse(struct reader *reader, const char *section, const char *name, const char *value, const char *expected) {
        (void) error_set(reader->err, -EINVAL, "[%s] %s = '%s': expected %s", section, name, value, expected);
        return 0;
}

static int read_key(void *user, const char *section, const char *name, const char *value) {
        struct reader *reader = user;
        const char *expected = "";
        int r;

        if (reader->err->code)
                return 0; /* the first one is told, with the line ini_parse() returns */
        if (strcmp(section, "mpirun") == 0)
                return 1;
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
                if (strcmp(keys[i].section, section) != 0 || strcmp(keys[i].name, name) != 0)
                        continue;
                if (set_key(reader->config, &keys[i], value) == 0)
                        return 1;
                return refuse(reader, section, name, value, kinds[keys[i].kind].expected);
        }
        r = strcmp(section, "sensors") == 0 ? sensor_configs_set(&reader->config->sensors, name, value, &expected) : -ENOENT;
        if (r != -ENOENT)
                return r == 0 ? 1 : refuse(reader, section, name, value, expected);
        (void) error_set(reader->err, -EINVAL, "there is no key '%s' in section [%s]; see rmd.conf(5)", name, section);
        return 0;
}

/* rm-mpirun's own section is read by rm-mpirun. */
static bool section_known(const char *section, size_t length) {
        if (length == strlen("mpirun") && memcmp(section, "mpirun", length) == 0)
                return true;
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                if (strlen(keys[i].section) == length && memcmp(keys[i].section, section, length) == 0)
                        return true;
        return false;
}

/* inih tells of a section only when it comes to a key in it. */
static int check_section(const char *text, struct rm_error *err) {
        const char *end = text[0] == '[' ? strchr(text, ']') : NULL;

        if (!end || section_known(text + 1, (size_t) (end - text - 1)))
                return 0;
        return error_set(err, -EINVAL, "there is no section %.*s; see rmd.conf(5)", (int) (end - text + 1), text);
}

/* Reads a line for inih, which by itself would take an indented line for more of the one before,
 * and cut off what is too long. */
static char *read_line(char *buf, int space, void *user) {
        struct reader *reader = user;
        cleanup_free char *line = NULL;
        size_t allocated = 0;
        ssize_t n = getline(&line, &allocated, reader->file);
        size_t blanks;

        if (n < 0 || reader->err->code)
                return NULL;
        reader->line++;
        blanks = strspn(line, " \t");
        if (strlen(line) < (size_t) n)
                (void) error_set(reader->err, -EINVAL, "not a text file");
        else if ((size_t) n - blanks >= (size_t) space)
                (void) error_set(reader->err, -EINVAL, "the line is longer than %d bytes", space - 1);
        else if (check_section(line + blanks, reader->err) == 0)
                return strcpy(buf, line + blanks);
        reader->stopped_line = reader->line;
        return NULL;
}

static int read_config(const char *path, struct reader *reader) {
        int line;

        reader->file = fopen(path, "re");
        if (!reader->file)
                return error_sys(reader->err, -errno, "cannot read %s", path);
        line = ini_parse_stream(read_line, reader, read_key, reader);
        if (line == 0 && ferror(reader->file))
                (void) error_sys(reader->err, -EIO, "cannot read %s", path);
        else if (line == 0 && reader->stopped_line)
                (void) error_prefix(reader->err, "%s:%d", path, reader->stopped_line);
        else if (line > 0 && reader->err->code && !reader->stopped_line)
                (void) error_prefix(reader->err, "%s:%d", path, line);
        else if (line > 0)
                (void) error_set(reader->err, -EINVAL, "%s:%d: not a section, a key = value or a comment", path, line);
        (void) fclose(reader->file);
        return reader->err->code;
}

static int check_fence(const struct config *config, const char *path, struct rm_error *err) {
        if (config->fence_program[0] && config->fence_program[0] != '/')
                return error_set(err, -EINVAL, "%s: [fence] program must be an absolute path", path);
        if (strcmp(config->fence_plugin, "program") == 0 && !config->fence_program[0])
                return error_set(err, -EINVAL, "%s: [fence] plugin 'program' needs the key program", path);
        if (config->fence_timeout_usec < CONFIG_FENCE_LEAST_USEC || config->fence_retry_usec < CONFIG_FENCE_LEAST_USEC ||
            config->fence_timeout_usec > CONFIG_FENCE_MOST_USEC || config->fence_retry_usec > CONFIG_FENCE_MOST_USEC)
                return error_set(err, -EINVAL, "%s: [fence] timeout and retry must be from 1s to 1h", path);
        return 0;
}

static int check_checkpoint(const struct config *config, const char *path, struct rm_error *err) {
        const char *store = config->checkpoint_store;

        if (store[0] != '/' && strcmp(store, CONFIG_STORE_PARTNER) != 0)
                return error_set(err, -EINVAL, "%s: [checkpoint] store must be 'partner' or an absolute path", path);
        if (config->checkpoint_copies > CONFIG_COPIES_MOST)
                return error_set(err, -EINVAL, "%s: [checkpoint] copies must be from 0 to %u", path, CONFIG_COPIES_MOST);
        if (config->checkpoint_keep > CONFIG_KEEP_MOST)
                return error_set(err, -EINVAL, "%s: [checkpoint] keep must be from 1 to %u", path, CONFIG_KEEP_MOST);
        if (config->checkpoint_mtbf_usec < CONFIG_MTBF_LEAST_USEC || config->checkpoint_mtbf_usec > CONFIG_MTBF_MOST_USEC)
                return error_set(err, -EINVAL, "%s: [checkpoint] mtbf must be from 1m to 36500d", path);
        return 0;
}

static int check_web(const struct config *config, const char *path, struct rm_error *err) {
        struct listen_at at[LISTENS_MAX];
        size_t n;

        return listens_parse(config->web_listen, at, &n, err) < 0 ? error_prefix(err, "%s: [web] listen", path) : 0;
}

int config_host_name(char **ret, struct rm_error *err) {
        char host[256] = "";

        (void) gethostname(host, sizeof(host) - 1);
        host[strcspn(host, ".")] = 0;
        if (!name_valid(host))
                return error_set(err, -EINVAL,
                                 "this host's name '%s' cannot be that of a node, which has " NAME_RULE
                                 ": set another one ('hostnamectl set-hostname NAME'), or [node] name in rmd.conf",
                                 host);
        *ret = xstrdup(host);
        return 0;
}

static int check_name(struct config *config, const char *path, struct rm_error *err) {
        if (!config->node_name[0]) {
                free(take_ptr(config->node_name));
                return config_host_name(&config->node_name, err) < 0 ? error_prefix(err, "%s", path) : 0;
        }
        if (!name_valid(config->node_name))
                return error_set(err, -EINVAL, "%s: [node] name '%s' is not a valid name, which has " NAME_RULE, path,
                                 config->node_name);
        return 0;
}

/* Each is given to parts that work in other directories, and sockets have short paths. */
static int check_paths(const struct config *config, const char *path, struct rm_error *err) {
        const struct {
                const char *key, *value;
                size_t most_bytes;
        } paths[] = {
                { "[cluster] state_dir", config->state_dir, PATH_MAX - 1 },
                { "[node] socket", config->socket_path, CONFIG_SOCKET_MOST_BYTES },
                { "[node] runtime_dir", config->runtime_dir, CONFIG_RUNTIME_DIR_MOST_BYTES },
        };

        for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
                if (paths[i].value[0] != '/' || strlen(paths[i].value) > paths[i].most_bytes)
                        return error_set(err, -EINVAL, "%s: %s must be an absolute path of at most %zu bytes", path, paths[i].key,
                                         paths[i].most_bytes);
        return 0;
}

static int check(struct config *config, const char *path, struct rm_error *err) {
        struct in_addr address;

        if (check_name(config, path, err) < 0 || check_paths(config, path, err) < 0)
                return err->code;
        if (config->address[0] && inet_pton(AF_INET, config->address, &address) != 1)
                return error_set(err, -EINVAL, "%s: [node] address '%s' is not an IPv4 address", path, config->address);
        if (config->heartbeat_usec < 10000 || config->node_timeout_usec < 2 * config->heartbeat_usec)
                return error_set(err, -EINVAL,
                                 "%s: [cluster] node_timeout must be at least twice heartbeat, and heartbeat at least 10ms", path);
        if (config->lease_usec < CONFIG_LEASE_HEARTBEATS * config->heartbeat_usec || config->lease_usec > CONFIG_LEASE_MAX_USEC)
                return error_set(err, -EINVAL, "%s: [cluster] lease must be at least three times heartbeat, and at most 1m", path);
        if (config->voters != 1 && config->voters != 3 && config->voters != 5)
                return error_set(err, -EINVAL, "%s: [cluster] voters must be 1, 3 or 5", path);
        if (config->election_usec < CONFIG_ELECTION_MIN_USEC || config->election_usec > CONFIG_ELECTION_MAX_USEC)
                return error_set(err, -EINVAL, "%s: [cluster] election_timeout must be between 50ms and 10s", path);
        if (!config->bootstrap && !config->peers[0])
                return error_set(
                        err, -EINVAL,
                        "%s: [cluster] peers is empty: name a node to join through, or set bootstrap = yes on the first node",
                        path);
        if (sensor_configs_check(&config->sensors, &config->sensor, err) < 0)
                return error_prefix(err, "%s", path);
        if (check_checkpoint(config, path, err) < 0)
                return err->code;
        if (check_web(config, path, err) < 0)
                return err->code;
        return check_fence(config, path, err);
}

int config_load(const char *path, struct config *ret_config, struct rm_error *err) {
        struct config config = { 0 };
        struct rm_error local = { 0 };
        struct reader reader = { .config = &config, .err = err ? err : &local };
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                if (set_key(&config, &keys[i], keys[i].fallback) < 0)
                        abort();
        if (path)
                r = read_config(path, &reader);
        if (r == 0)
                r = check(&config, path ? path : "configuration", reader.err);
        if (r < 0) {
                config_finish(&config);
                return r;
        }
        *ret_config = config;
        return 0;
}

int config_load_switches(const struct config *config, struct switches *ret_switches, struct rm_error *err) {
        int r;

        if (!config->topology[0]) {
                *ret_switches = (struct switches) { 0 };
                return 0;
        }
        r = switches_load(config->topology, ret_switches, err);
        if (r < 0 && r != -EINVAL) /* which names file and line */
                (void) error_prefix(err, "[cluster] topology");
        return r;
}

void config_finish(struct config *config) {
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                if (kinds[keys[i].kind].set == value_set_text) {
                        free(*(char **) field(config, &keys[i]));
                        *(char **) field(config, &keys[i]) = NULL;
                }
        penalties_finish(&config->node_penalty);
        sensor_configs_finish(&config->sensors);
}
