/*
 * Snapshots: making them, checking them, and their JSON form (version 1):
 *
 *      { "version": 1,
 *        "params": { "distribution_weight": 10, "age_weight": 1, "backfill": false,
 *                    "move_budget": 0, "bytes_per_cost": 1 },   all optional
 *        "nodes": [ { "name": "n1", "cores": 16, "penalty": 3,   optional from here:
 *                     "state": "IDLE", "topology": "package:2 core:8", "switch": ["leaf", "spine"],
 *                     "memory": 64000000000, "memory_free": 16000000000 } ],
 *        "jobs": [ { "name": "j1", "ranks": 8, "priority": 5,   optional from here:
 *                    "group_size": 1, "age": 0, "policy": "distrib", "time_limit_usec": 0,
 *                    "move_cost": 0, "group_memory": 2000000000,
 *                    "availability": { "n1": 4 },
 *                    "placed": [ { "node": "n1", "ranks": 8, "pinned": false } ],
 *                    "traffic": [ [0, 1, 1048576] ] } ] }
 *
 * "switch" is the way up from the node. A node without "memory" has no limit of it; without
 * "memory_free" all of it is free. "placed" names the groups in order, as runs: groups 0.. with
 * together "ranks" ranks on the node, then the next ones; "node": null for groups that have none;
 * what is not named has none. "move_cost" and "group_memory" are for each group: one number, or an
 * array with one for each group. "traffic": rank, rank, bytes from the one to the other; each
 * ordered pair at most once. Unknown fields are refused, but those that begin with "x_".
 *
 * Pure: no files, no clock.
 */
#ifndef RM_SCHED_SNAPSHOT_H
#define RM_SCHED_SNAPSHOT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/sched/name_index.h"
#include "rm/policy.h"

#define SNAPSHOT_MAX_BYTES (512u * 1024 * 1024)
#define SNAPSHOT_MAX_NODES 100000u
#define SNAPSHOT_MAX_JOBS 100000u
#define SNAPSHOT_MAX_SWITCHES 100000u
#define SNAPSHOT_MAX_DEPTH 64u /* switches above each other */
#define SNAPSHOT_MAX_RANKS (1u << 20)       /* of a job, and cores of a node */
#define SNAPSHOT_MAX_TOTAL_RANKS (1u << 24) /* of all jobs, and cores of all nodes */

/* A snapshot that owns all it points to. */
struct snapshot;

struct snapshot *snapshot_create(void); /* empty, parameters at their defaults */
void snapshot_destroy(struct snapshot *snapshot);
static inline void snapshot_destroyp(struct snapshot **snapshot) {
        snapshot_destroy(*snapshot);
}
#define cleanup_snapshot __attribute__((cleanup(snapshot_destroyp)))

/* The view for readers. Valid until the next change. */
const struct rm_snapshot *snapshot_view(const struct snapshot *snapshot);
struct rm_params *snapshot_params(struct snapshot *snapshot);

/* Building. All nodes before the first job. The element returned is to be filled in (name is copied
 * already) and is valid until the next element of its kind is added. Strings set into it must
 * outlive the snapshot, or be snapshot_string()s of it. */
struct rm_node *snapshot_add_node(struct snapshot *snapshot, const char *name, uint32_t cores);
/* Groups are made, none has a node, none costs anything to move. group_size is cut to ranks; both
 * at least 1. */
struct rm_job *snapshot_add_job(struct snapshot *snapshot, const char *name, uint32_t ranks, uint32_t group_size);
const char *snapshot_string(struct snapshot *snapshot, const char *text); /* a copy; NULL gives NULL */

void *snapshot_alloc(struct snapshot *snapshot, size_t size_bytes);           /* zeroed; lives as long as the snapshot */

/* Find or add; the index. Its parent is to be set by the caller. */
int32_t snapshot_add_switch(struct snapshot *snapshot, const char *name);
void snapshot_set_parent(struct snapshot *snapshot, int32_t child, int32_t parent);

/* Writable access to an element (of a job of this snapshot only). What a copy shares becomes its
 * own by that, so only what is written to should be asked for; elements that were asked for before
 * may have moved. */
struct rm_node *snapshot_node(struct snapshot *snapshot, uint32_t node);
struct rm_job *snapshot_job(struct snapshot *snapshot, uint32_t job);
struct rm_group *snapshot_group(struct snapshot *snapshot, uint32_t job, uint32_t group);
/* Limit what `job` may have on `node`; the other nodes stay without a limit, or as they were
 * set. */
void snapshot_set_limit(struct snapshot *snapshot, uint32_t job, uint32_t node, uint32_t cores);
/* Give a job without limits these (n_nodes entries, from snapshot_alloc() or older); jobs may share
 * them, if none is then set apart. */
void snapshot_share_limits(struct snapshot *snapshot, uint32_t job, const uint32_t *limits);

/* A copy of `source` with the jobs that `wanted` marks (NULL: all), in the same order. What is not
 * changed is shared with the source, which must outlive the copy and stay as it is. */
struct snapshot *snapshot_copy(const struct rm_snapshot *source, const bool *requested);

/* Every rule on the content: names unique, numbers in range, sum of costs below 2^53, groups in
 * order, switches without a cycle. */
int snapshot_check(const struct rm_snapshot *snapshot, struct rm_error *err);
/* The rules on jobs and costs alone: for many snapshots of nodes that have been checked once, and
 * have no more cores now. */
int snapshot_check_jobs(const struct rm_snapshot *snapshot, struct rm_error *err);

/* The rules that job `index` can break by itself: what passes, snapshot_parse() reads from what
 * snapshot_to_json() wrote. The rest are those on sums: at most SNAPSHOT_MAX_TOTAL_RANKS, and worst
 * costs of FIELD_MAX. */
int snapshot_check_job(const struct rm_snapshot *snapshot, uint32_t index, struct rm_error *err);
/* Computes for each job the most that it could add to the cost of a plan. */
void snapshot_worst_costs(const struct rm_snapshot *snapshot, long double *ret_costs);

/* Strict; any bytes at all give a checked snapshot or one clear error (-EINVAL). */
int snapshot_parse(const void *data, size_t size_bytes, struct snapshot **ret_snapshot, struct rm_error *err);

/* Set the traffic of a job: `bytes` from one rank to another. Ranks of the job; what is between the
 * same two is added up. Sums must stay within 2^53. */
struct snapshot_edge {
        uint32_t from, to;
        uint64_t bytes;
};
void snapshot_set_traffic(struct snapshot *snapshot, uint32_t job, const struct snapshot_edge *edges, size_t n);
/* Set the traffic of a job from an array of [rank, rank, bytes]; `where` names the job in
 * errors. */
int snapshot_read_traffic(struct snapshot *snapshot, uint32_t job, const json_t *triples, const char *where, struct rm_error *err);

/* The JSON that snapshot_parse() reads. The caller owns it. */
json_t *snapshot_to_json(const struct rm_snapshot *snapshot);

/* Index of a name, or RM_NO_NODE. Linear; for many look-ups use struct name_index. */
int32_t snapshot_find_node(const struct rm_snapshot *snapshot, const char *name);

/* "IDLE", ... and back (-EINVAL). */
const char *node_state_name(uint32_t state);
int node_state_parse(const char *word, uint32_t *ret_state);

struct name_index *snapshot_index_nodes(const struct rm_snapshot *snapshot);
struct name_index *snapshot_index_jobs(const struct rm_snapshot *snapshot);

#endif
