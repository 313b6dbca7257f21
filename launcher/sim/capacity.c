#include "launcher/sim/capacity.h"

#include <inttypes.h>
#include <string.h>

#include "common/util.h"
#include "launcher/sim/lines.h"

enum { CAPACITY_MAX_BYTES = 1024 * 1024 * 1024 };

#define MAX_SECONDS 1e10

/* ---- clusters ---- */

/* "100x16", whatever the numbers. */
static bool is_size(const char *text) {
        size_t nodes = strspn(text, "0123456789"), cores = nodes && text[nodes] == 'x' ? strspn(text + nodes + 1, "0123456789") : 0;

        return cores > 0 && text[nodes + 1 + cores] == '\0';
}

static int parse_size(const char *text, uint32_t *ret_nodes, uint32_t *ret_cores, struct rm_error *err) {
        cleanup_free char *copy = xstrdup(text);
        char *cross = strchr(copy, 'x');
        int64_t nodes, cores;

        *cross = '\0';
        if (parse_i64(copy, 1, SNAPSHOT_MAX_NODES, &nodes) < 0 || parse_i64(cross + 1, 1, SNAPSHOT_MAX_RANKS, &cores) < 0)
                return error_set(err, -EINVAL, "cluster '%s': from 1 to %u nodes, with 1 to %u cores each", text,
                                 SNAPSHOT_MAX_NODES, SNAPSHOT_MAX_RANKS);
        *ret_nodes = (uint32_t) nodes;
        *ret_cores = (uint32_t) cores;
        return 0;
}

static struct snapshot *make_nodes(uint32_t n_nodes, uint32_t cores) {
        struct snapshot *cluster = snapshot_create();

        for (uint32_t s = 1; s <= n_nodes; s++) {
                char name[16];

                (void) snprintf(name, sizeof(name), "n%" PRIu32, s);
                (void) snapshot_add_node(cluster, name, cores);
        }
        return cluster;
}

static int read_size(const char *text, struct snapshot **ret_cluster, struct rm_error *err) {
        struct snapshot *cluster;
        uint32_t nodes = 0, cores = 0;
        int r = parse_size(text, &nodes, &cores, err);

        if (r < 0)
                return r;
        cluster = make_nodes(nodes, cores);
        r = snapshot_check(snapshot_view(cluster), err);
        if (r < 0)
                snapshot_destroy(cluster);
        else
                *ret_cluster = cluster;
        return r < 0 ? error_prefix(err, "cluster '%s'", text) : 0;
}

int cluster_read(const char *text, struct snapshot **ret_cluster, struct rm_error *err) {
        cleanup_free char *data = NULL;
        size_t size_bytes;
        int r;

        if (is_size(text))
                return read_size(text, ret_cluster, err);
        if ((r = read_file(text, SNAPSHOT_MAX_BYTES, &data, &size_bytes)) < 0)
                return error_sys(err, r, "cluster '%s' is neither NODESxCORES nor a file that can be read", text);
        if ((r = snapshot_parse(data, size_bytes, ret_cluster, err)) < 0)
                error_prefix(err, "%s", text);
        else if (snapshot_view(*ret_cluster)->n_jobs > 0) {
                snapshot_destroy(take_ptr(*ret_cluster));
                r = error_set(err, -EINVAL, "%s: has jobs; only nodes are wanted here, \"jobs\": []", text);
        }
        return r;
}

/* ---- changes ---- */

static int read_change(const struct lines *lines, const struct rm_snapshot *cluster, const struct name_index *nodes,
                       struct capacity_change *ret, struct rm_error *err) {
        double seconds, cores;
        int32_t node;
        int r;

        if (lines->n_fields != 3)
                return lines_wrong(lines, err, "a change is: seconds node cores");
        if ((r = lines_number(lines, 0, "time", 0, MAX_SECONDS, &seconds, err)) < 0)
                return r;
        node = name_index_find(nodes, lines->field[1]);
        if (node < 0)
                return lines_wrong(lines, err, "there is no node '%s'", lines->field[1]);
        cores = cluster->nodes[node].cores;
        if (strcmp(lines->field[2], "all") != 0 && (r = lines_whole(lines, 2, "cores", 0, cores, &cores, err)) < 0)
                return r;
        *ret = (struct capacity_change) { .time_usec = (int64_t) (seconds * 1e6),
                                          .node = (uint32_t) node,
                                          .cores = (uint32_t) cores };
        return 0;
}

static int add_change(const struct lines *lines, const struct capacity_change *change, struct capacity *capacity, size_t *allocated,
                      struct rm_error *err) {
        if (capacity->n_changes > 0 && change->time_usec < capacity->changes[capacity->n_changes - 1].time_usec)
                return lines_wrong(lines, err, "time goes back: sort the file by time");
        if (capacity->n_changes == *allocated) {
                *allocated = *allocated ? 2 * *allocated : 1024;
                capacity->changes = xrealloc(capacity->changes, *allocated * sizeof(*capacity->changes));
        }
        capacity->changes[capacity->n_changes++] = *change;
        return 0;
}

int capacity_parse(const char *name, const char *text, size_t size_bytes, const struct rm_snapshot *cluster,
                   struct capacity *ret_capacity, struct rm_error *err) {
        cleanup_name_index struct name_index *nodes = snapshot_index_nodes(cluster);
        struct lines *lines = xcalloc(1, sizeof(*lines));
        struct capacity capacity = { 0 };
        struct capacity_change change;
        struct rm_error own = { 0 };
        size_t allocated = 0;
        int r = 0;

        *lines = (struct lines) { .name = name, .at = text, .end = text + size_bytes, .comment = "#;" };
        while (r == 0 && lines_next(lines, &own)) {
                r = read_change(lines, cluster, nodes, &change, &own);
                if (r == 0)
                        r = add_change(lines, &change, &capacity, &allocated, &own);
        }
        free(lines);
        if (own.code < 0) {
                capacity_finish(&capacity);
                return error_set(err, own.code, "%s", own.text);
        }
        *ret_capacity = capacity;
        return 0;
}

int capacity_read(const char *path, const struct rm_snapshot *cluster, struct capacity *ret_capacity, struct rm_error *err) {
        cleanup_free char *text = NULL;
        size_t size_bytes;
        int r = read_file(path, CAPACITY_MAX_BYTES, &text, &size_bytes);

        return r < 0 ? error_sys(err, r, "%s", path) : capacity_parse(path, text, size_bytes, cluster, ret_capacity, err);
}

void capacity_finish(struct capacity *capacity) {
        free(capacity->changes);
        *capacity = (struct capacity) { 0 };
}
