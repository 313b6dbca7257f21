/* rmd.conf: read once at start, checked by `rmd --check-config`. The annotated reference is
 * config/rmd.conf. */
#ifndef RM_CONFIG_CONFIG_H
#define RM_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/config/penalties.h"
#include "daemon/config/sensors.h"
#include "daemon/config/switches.h"

/* The bounds of [sched] move_timeout. While a group is frozen its peers send to it in vain; after
 * some time their kernels give up. */
#define CONFIG_MOVE_TIMEOUT_MIN_USEC UINT64_C(1000000)
#define CONFIG_MOVE_TIMEOUT_MAX_USEC UINT64_C(120000000)
#define CONFIG_CALLBACK_WAIT_MAX_USEC UINT64_C(10000000)
#define CONFIG_PLACE_WAIT_MAX_USEC UINT64_C(60000000)

/* The bounds of [cluster] lease. A lease is renewed one heartbeat late, and one heartbeat may be
 * lost. */
#define CONFIG_LEASE_HEARTBEATS 3U
#define CONFIG_LEASE_MAX_USEC UINT64_C(60000000)

/* The bounds of [cluster] election_timeout. A busy machine may be silent for some milliseconds; a
 * lost leader is to be replaced within a minute. */
#define CONFIG_ELECTION_MIN_USEC UINT64_C(50000)
#define CONFIG_ELECTION_MAX_USEC UINT64_C(10000000)
/* The path of a socket may have so many, with ".new" behind it while it is made. */
#define CONFIG_SOCKET_MOST_BYTES 103U
/* Sockets of capsules have up to 50 bytes more, such as "/capsules/j7.0/ctl.sock". */
#define CONFIG_RUNTIME_DIR_MOST_BYTES 48U
#define CONFIG_FENCE_NONE "none" /* [fence] plugin */
#define CONFIG_FENCE_LEAST_USEC UINT64_C(1000000) /* [fence] timeout and retry */
#define CONFIG_FENCE_MOST_USEC UINT64_C(3600000000)
#define CONFIG_STORE_PARTNER "partner" /* [checkpoint] store */
#define CONFIG_COPIES_MOST 8U /* [checkpoint] copies: each costs the time of storing once more */
#define CONFIG_KEEP_MOST 16U /* [checkpoint] keep: less than the log knows of a job (STATE_CHECKPOINTS_MAX) */
#define CONFIG_MTBF_LEAST_USEC UINT64_C(60000000) /* [checkpoint] mtbf */
#define CONFIG_MTBF_MOST_USEC (UINT64_C(36500) * 86400 * 1000000)

/* All strings are owned by the structure. */
struct config {
        /* [cluster] */
        char *cluster_name;
        char *key_file;
        char *second_key_file; /* of a key that is accepted too; empty: none */
        char *peers; /* "host[:port] host[:port] ..." to join through */
        bool bootstrap;
        uint16_t port;
        uint64_t node_timeout_usec;
        uint64_t heartbeat_usec;
        uint64_t lease_usec; /* that other nodes get from this one while it leads */
        uint32_t voters; /* nodes that keep the log, while this one leads */
        uint64_t voter_timeout_usec; /* a voter that is DOWN for so long is replaced */
        uint64_t election_usec; /* silence of the leader, up to twice that, after which another voter wants to lead */
        char *state_dir;
        char *topology; /* file with the switches; empty: nothing is known of them */
        /* [node] */
        char *node_name;
        char *address; /* IPv4 */
        char *uplink;
        uint32_t cores; /* 0 = what hwloc finds */
        uint64_t memory; /* for groups, bytes; 0 = what is available, UINT64_MAX = it is not looked at */
        char *socket_path;
        char *runtime_dir;
        uint16_t move_port_first; /* 0 = any */
        uint16_t move_port_last;
        uint64_t move_rate_bytes_per_sec; /* of what goes ahead in a move; 0 = no limit */
        /* [move] */
        uint32_t move_codec; /* enum config_codec */
        bool move_tracking; /* of the pages that a group writes while its memory goes ahead */
        uint32_t move_last; /* enum config_last */
        uint64_t move_slow_usec; /* at most so long */
        uint64_t callback_wait_usec; /* for programs, before they are moved or saved; 0 = not at all */
        /* [capsule] */
        uint32_t network; /* IPv4, host byte order */
        uint8_t network_prefix;
        uint32_t group_size; /* 0 = auto */
        char *cgroup_parent; /* NULL = found by itself */
        char *writable; /* absolute paths, separated by spaces */
        uint64_t memory_max; /* of one capsule, bytes; 0 = its cores' share, UINT64_MAX = no limit */
        uint64_t pids_max; /* the same, processes and threads */
        /* [availability] */
        char *availability_file;
        uint64_t availability_poll_usec;
        /* [sched] */
        char *policy;
        char *policy_dir;
        uint64_t budget_usec;
        uint64_t settle_usec;
        uint64_t move_timeout_usec; /* of a group's freeze, up to the commit */
        uint32_t moves_at_once;
        uint32_t spare_nodes; /* kept free for whichever job needs room */
        uint64_t horizon_usec;
        uint32_t move_budget; /* groups that one round may move for the sake of traffic */
        uint64_t traffic_interval_usec; /* 0 = traffic is not looked at */
        uint32_t link_mbit_per_sec; /* what saved traffic is worth */
        uint64_t interval_usec; /* 0 = only when something changes */
        uint64_t resize_interval_usec; /* 0 = jobs change their number of ranks only by hand */
        uint32_t age_weight;
        uint32_t backfill; /* enum config_backfill */
        uint32_t distribution_weight; /* K of the objective */
        struct penalties node_penalty;
        /* [fence] */
        char *fence_plugin; /* CONFIG_FENCE_NONE: a lease is enough */
        char *fence_program; /* absolute path; empty: none */
        uint64_t fence_timeout_usec; /* of one try */
        uint64_t fence_retry_usec; /* from a failed try to the next one, doubled from then on */
        /* [health] */
        uint32_t warn_penalty; /* of a node whose condition is warn, beside that of node_penalty */
        /* [sensors] */
        struct sensor_configs sensors;
        struct sensor_config sensor; /* interval, timeout, readings and hold, for those that have none of their own */
        /* [checkpoint] */
        char *checkpoint_store; /* CONFIG_STORE_PARTNER, or the absolute path of a directory that all nodes share */
        uint32_t checkpoint_copies; /* with CONFIG_STORE_PARTNER: on how many nodes beside the own */
        uint32_t checkpoint_keep; /* of each job */
        uint64_t checkpoint_rate_bytes_per_sec; /* to disk and to other nodes; 0 = no limit */
        uint32_t checkpoint_codec; /* enum config_codec */
        uint64_t checkpoint_space_bytes; /* of a user's checkpoints on one node; 0 = half of the file system */
        uint64_t checkpoint_verify_usec; /* so often what is stored is read again; 0 = never */
        uint64_t place_wait_usec; /* for ranks to come to places at which they want to be saved; 0 = not at all */
        uint64_t checkpoint_mtbf_usec; /* of a node, as long as nothing is known of it */
        /* [job] */
        uint64_t keep_jobs_usec;
        uint64_t kill_wait_usec;
        char *admin_group;
        uint32_t max_priority; /* of users' jobs */
        uint32_t max_jobs_per_user; /* that have not ended, and as many ended ones; 0 = no limit */
        uint32_t max_ranks_per_user; /* of jobs that have not ended; 0 = no limit */
        uint32_t max_groups_per_job; /* of users' jobs; 0 = as many as there are addresses for */
        uint32_t max_capsules_per_core; /* of a node that groups come to that may be parked, or that users move; 0 = no limit */
        uint64_t spool_max_bytes; /* of a user's output on one node */
        uint64_t spool_reserve_bytes; /* of the file system of state_dir that output leaves free */
        /* [web] */
        char *web_listen; /* see listen.h */
        /* [log] */
        int log_level;
};

enum config_backfill {
        CONFIG_BACKFILL_NO,
        CONFIG_BACKFILL_LIMITS,
        CONFIG_BACKFILL_ANY,
};

enum config_codec {
        CONFIG_CODEC_AUTO,
        CONFIG_CODEC_NONE,
        CONFIG_CODEC_LZ4,
        CONFIG_CODEC_ZSTD,
};

/* The ways to end pre-copy of a group that writes its memory as fast as it is sent. */
enum config_last {
        CONFIG_LAST_SLOW,
        CONFIG_LAST_FREEZE,
        CONFIG_LAST_POSTCOPY,
};

/* Defaults, then `path`. NULL path: only defaults. Unknown sections, unknown keys and bad values
 * are errors that name file, line and key. Free with config_finish(). */
int config_load(const char *path, struct config *ret_config, struct rm_error *err);
/* The name of a node whose configuration gives none: the host's, up to its first dot. The caller
 * frees it. -EINVAL: that cannot be the name of a node; the text says what can. */
int config_host_name(char **ret, struct rm_error *err);
/* Reads what [cluster] topology names; none, if it names nothing. Errors name that file and its
 * line. */
int config_load_switches(const struct config *config, struct switches *ret_switches, struct rm_error *err);
void config_finish(struct config *config);

#endif
