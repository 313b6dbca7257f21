#include "bench/placement/treematch_twostep.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/placement/treematch_graphs.h"
#include "common/util.h"

enum { TRIALS = 20 };

struct partition {
        const struct rm_traffic *traffic;
        const uint32_t *rank; /* the members */
        uint32_t n;
        const uint32_t *space; /* each part */
        uint32_t n_parts;
        uint64_t *state;
};

static uint32_t roll(uint64_t *state, uint32_t n) {
        *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
        return (uint32_t) ((*state >> 33) % n);
}

static uint64_t bytes_between(const struct rm_traffic *traffic, uint32_t a, uint32_t b) {
        for (uint64_t e = traffic->offset[a]; e < traffic->offset[a + 1]; e++)
                if (traffic->peer[e] == b)
                        return traffic->bytes[e];
        return 0;
}

/* The part, with room, of the placed member that i talks to most; one of those that it talks to
 * equally, or not at all, is as good as the other. */
static uint32_t best_part(const struct partition *p, uint32_t i, const uint32_t *part, const uint32_t *used) {
        uint32_t best = UINT32_MAX;
        uint64_t most = 0;

        for (uint32_t k = 0; k < p->n; k++) {
                uint64_t bytes;

                if (part[k] == UINT32_MAX || used[part[k]] >= p->space[part[k]])
                        continue;
                bytes = bytes_between(p->traffic, p->rank[i], p->rank[k]);
                if (best == UINT32_MAX || bytes > most) {
                        most = bytes;
                        best = part[k];
                }
        }
        return best;
}

static void grow_once(const struct partition *p, uint32_t *part, uint32_t *used) {
        memset(part, 0xff, sizeof(*part) * p->n);
        memset(used, 0, sizeof(*used) * p->n_parts);
        for (uint32_t k = 0; k < p->n_parts; k++) {
                uint32_t seed;

                if (p->space[k] == 0)
                        continue;
                do
                        seed = roll(p->state, p->n);
                while (part[seed] != UINT32_MAX);
                part[seed] = k;
                used[k]++;
        }
        for (uint32_t i = 0; i < p->n; i++)
                if (part[i] == UINT32_MAX) {
                        part[i] = best_part(p, i, part, used);
                        used[part[i]]++;
                }
}

/* Rooms add up to the members. */
static void partition(const struct partition *p, uint32_t *ret_part) {
        cleanup_free uint32_t *part = xcalloc(p->n, sizeof(*part)), *used = xcalloc(p->n_parts, sizeof(*used));
        uint64_t least = UINT64_MAX;

        for (uint32_t trial = 0; trial < TRIALS; trial++) {
                uint64_t cut = 0;

                grow_once(p, part, used);
                for (uint32_t i = 0; i < p->n; i++)
                        for (uint32_t k = i + 1; k < p->n; k++)
                                cut += part[i] != part[k] ? bytes_between(p->traffic, p->rank[i], p->rank[k]) : 0;
                if (cut < least) {
                        least = cut;
                        memcpy(ret_part, part, sizeof(*part) * p->n);
                }
        }
}

/* Marks the ranks that leave node n in `leaves`. Returns how many stay. */
static uint32_t step_one(const struct rm_job *job, const uint32_t *home, uint32_t n, uint64_t *state, bool *leaves) {
        cleanup_free uint32_t *rank = xcalloc(job->ranks, sizeof(*rank)), *part = xcalloc(job->ranks, sizeof(*part));
        uint32_t here = 0, space[2];
        struct partition p = { .traffic = &job->traffic, .rank = rank, .space = space, .n_parts = 2, .state = state };

        for (uint32_t r = 0; r < job->ranks; r++)
                if (home[r] == n)
                        rank[here++] = r;
        if (here <= NODE_CORES)
                return here;
        p.n = here;
        space[0] = NODE_CORES;
        space[1] = here - NODE_CORES;
        partition(&p, part);
        for (uint32_t i = 0; i < here; i++)
                leaves[rank[i]] = part[i] == 1;
        return NODE_CORES;
}

void twostep_plain(const struct rm_job *job, const uint32_t *home, uint32_t n_nodes, uint64_t seed, uint32_t *ret_core) {
        cleanup_free bool *leaves = xcalloc(job->ranks, sizeof(*leaves));
        cleanup_free uint32_t *space = xcalloc(n_nodes, sizeof(*space)), *used = xcalloc(n_nodes, sizeof(*used));
        cleanup_free uint32_t *rank = xcalloc(job->ranks, sizeof(*rank)), *part = xcalloc(job->ranks, sizeof(*part));
        uint64_t state = seed;
        struct partition p = { .traffic = &job->traffic, .rank = rank, .space = space, .n_parts = n_nodes, .state = &state };
        uint32_t spare = 0;

        for (uint32_t n = 0; n < n_nodes; n++)
                space[n] = NODE_CORES - step_one(job, home, n, &state, leaves);
        for (uint32_t r = 0; r < job->ranks; r++)
                if (leaves[r])
                        rank[p.n++] = r;
        /* Only as many cores are used as are needed, those of the first nodes. */
        for (uint32_t n = 0; n < n_nodes; n++) {
                space[n] = space[n] < p.n - spare ? space[n] : p.n - spare;
                spare += space[n];
        }
        if (p.n > 0)
                partition(&p, part);
        for (uint32_t r = 0, i = 0; r < job->ranks; r++) {
                uint32_t node = leaves[r] ? part[i++] : home[r];

                ret_core[r] = node * NODE_CORES + used[node]++;
        }
}
