/* Traffic between ranks: triples from JSON or counters become compressed sparse rows. */
#include <inttypes.h>

#include "common/text.h"
#include "common/util.h"
#include "daemon/sched/fields.h"
#include "daemon/sched/snapshot.h"

static int compare_edges(const void *a, const void *b) {
        const struct snapshot_edge *x = a, *y = b;

        if (x->from != y->from)
                return x->from < y->from ? -1 : 1;
        return x->to < y->to ? -1 : x->to > y->to;
}

/* Sorted edges in both directions to rows; neighbours that are the same pair are added up. */
static void fill_rows(struct snapshot *snapshot, uint32_t job_index, const struct snapshot_edge *edges, size_t n) {
        struct rm_job *job = snapshot_job(snapshot, job_index);
        uint64_t *offset = snapshot_alloc(snapshot, sizeof(*offset) * (job->ranks + 1u));
        uint32_t *peer = snapshot_alloc(snapshot, sizeof(*peer) * (n + 1));
        uint64_t *bytes = snapshot_alloc(snapshot, sizeof(*bytes) * (n + 1));
        uint64_t used = 0;

        for (size_t i = 0; i < n; i++) {
                if (i > 0 && compare_edges(&edges[i - 1], &edges[i]) == 0) {
                        bytes[used - 1] += edges[i].bytes;
                        continue;
                }
                peer[used] = edges[i].to;
                bytes[used] = edges[i].bytes;
                used++;
                offset[edges[i].from + 1] = used;
        }
        for (uint32_t rank = 1; rank <= job->ranks; rank++)
                if (offset[rank] < offset[rank - 1])
                        offset[rank] = offset[rank - 1];
        job->traffic = (struct rm_traffic) { .offset = offset, .peer = peer, .bytes = bytes };
}

void snapshot_set_traffic(struct snapshot *snapshot, uint32_t job_index, const struct snapshot_edge *edges, size_t n) {
        cleanup_free struct snapshot_edge *both = xcalloc(2 * n + 1, sizeof(*both));

        for (size_t i = 0; i < n; i++) {
                both[2 * i] = edges[i];
                both[2 * i + 1] = (struct snapshot_edge) { .from = edges[i].to, .to = edges[i].from, .bytes = edges[i].bytes };
        }
        qsort(both, 2 * n, sizeof(*both), compare_edges);
        fill_rows(snapshot, job_index, both, 2 * n);
}

int snapshot_read_traffic(struct snapshot *snapshot, uint32_t job_index, const json_t *triples, const char *where,
                          struct rm_error *err) {
        uint32_t ranks = snapshot_job(snapshot, job_index)->ranks;
        cleanup_free struct snapshot_edge *edges = xcalloc(json_array_size(triples) + 1, sizeof(*edges));
        size_t i, n = json_array_size(triples);
        json_t *triple;

        json_array_foreach(triples, i, triple) {
                int64_t value[3];
                char at[96];
                int r = 0;

                (void) text_format(at, sizeof(at), "%s: traffic[%zu]", where, i);
                if (json_array_size(triple) != 3)
                        return error_set(err, -EINVAL, "%s must be [rank, rank, bytes]", at);
                for (size_t k = 0; k < 3 && r == 0; k++) {
                        (void) text_format(at, sizeof(at), "%s: traffic[%zu][%zu]", where, i, k);
                        r = value_int(json_array_get(triple, k), at, 0, k < 2 ? (int64_t) ranks - 1 : FIELD_MAX / 2, &value[k],
                                      err);
                }
                if (r < 0)
                        return r;
                if (value[0] == value[1])
                        return error_set(err, -EINVAL,
                                         "%s: traffic[%zu]: rank %" PRId64 " does not need a network to talk to itself", where, i,
                                         value[0]);
                edges[i] = (struct snapshot_edge) { (uint32_t) value[0], (uint32_t) value[1], (uint64_t) value[2] };
        }
        qsort(edges, n, sizeof(*edges), compare_edges);
        for (i = 1; i < n; i++)
                if (compare_edges(&edges[i - 1], &edges[i]) == 0)
                        return error_set(err, -EINVAL, "%s: traffic from rank %u to rank %u is given twice", where, edges[i].from,
                                         edges[i].to);
        snapshot_set_traffic(snapshot, job_index, edges, n);
        return 0;
}
