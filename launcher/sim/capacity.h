/*
 * The capacity of a simulated cluster, and its changes.
 *
 * A cluster is "NxC" (N nodes with C cores, named n1, n2, ...) or the nodes of a snapshot file.
 * Changes are a text file:
 *
 *      # seconds  node  cores that may be used from then on
 *      3600       n17   0
 *      7200.5     n17   all
 */
#ifndef RM_SIM_CAPACITY_H
#define RM_SIM_CAPACITY_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/sched/snapshot.h"

/* `text`: as above. The snapshot has nodes only. -EINVAL, or why the file cannot be read. */
int cluster_read(const char *text, struct snapshot **ret_cluster, struct rm_error *err);

struct capacity_change {
        int64_t time_usec; /* not falling */
        uint32_t node, cores;
};

struct capacity {
        struct capacity_change *changes;
        size_t n_changes;
};

/* Strict: errors begin with "NAME:LINE: " (-EINVAL). */
int capacity_parse(const char *name, const char *text, size_t size_bytes, const struct rm_snapshot *cluster,
                   struct capacity *ret_capacity, struct rm_error *err);
int capacity_read(const char *path, const struct rm_snapshot *cluster, struct capacity *ret_capacity, struct rm_error *err);
void capacity_finish(struct capacity *capacity);

#endif
