#include "bench/placement/treematch_anneal.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "bench/placement/treematch_graphs.h"
#include "common/util.h"

enum { SCAN = 1024 /* swaps between two looks at the clock */ };

/* The temperatures in bytes that a pair exchanges in the mean. */
static const double hottest = 2, coldest = 0.01;

struct annealing {
        const struct rm_traffic *traffic;
        uint32_t n_ranks;
        uint32_t *node; /* each rank */
        uint32_t *movers, n_movers; /* ranks away from home */
        uint32_t *stayers; /* the others, those of one home after another */
        uint32_t *first_stayer; /* each node; one more */
        uint64_t state;
};

static uint32_t roll(struct annealing *a, uint32_t n) {
        a->state = a->state * 6364136223846793005ULL + 1442695040888963407ULL;
        return (uint32_t) ((a->state >> 33) % n);
}

static double bytes_of_rank(const struct annealing *a, uint32_t r) {
        const struct rm_traffic *traffic = a->traffic;
        double sum = 0;

        for (uint64_t e = traffic->offset[r]; e < traffic->offset[r + 1]; e++)
                sum += a->node[r] != a->node[traffic->peer[e]] ? (double) traffic->bytes[e] : 0;
        return sum;
}

/* The traffic between the two ranks is counted twice, before and after: they are on different
 * nodes. */
static double swap(struct annealing *a, uint32_t r, uint32_t s) {
        double before = bytes_of_rank(a, r) + bytes_of_rank(a, s);
        uint32_t node = a->node[r];

        a->node[r] = a->node[s];
        a->node[s] = node;
        return bytes_of_rank(a, r) + bytes_of_rank(a, s) - before;
}

static void list_ranks(struct annealing *a, const uint32_t *home, const uint32_t *core, uint32_t n_nodes) {
        uint32_t n = 0;

        for (uint32_t r = 0; r < a->n_ranks; r++) {
                a->node[r] = core[r] / NODE_CORES;
                if (a->node[r] != home[r])
                        a->movers[a->n_movers++] = r;
        }
        for (uint32_t k = 0; k < n_nodes; k++) {
                a->first_stayer[k] = n;
                for (uint32_t r = 0; r < a->n_ranks; r++)
                        if (home[r] == k && a->node[r] == k)
                                a->stayers[n++] = r;
        }
        a->first_stayer[n_nodes] = n;
}

static double bytes_of_all(const struct annealing *a, double *ret_mean) {
        double cut = 0, all = 0;

        for (uint32_t r = 0; r < a->n_ranks; r++) {
                cut += bytes_of_rank(a, r);
                for (uint64_t e = a->traffic->offset[r]; e < a->traffic->offset[r + 1]; e++)
                        all += (double) a->traffic->bytes[e];
        }
        *ret_mean = all / fmax((double) a->traffic->offset[a->n_ranks], 1);
        return cut / 2;
}

/* Tries a swap by lot. Returns how many bytes more there are between nodes. */
static double try_swap(struct annealing *a, const uint32_t *home, double heat) {
        uint32_t *mover = &a->movers[roll(a, a->n_movers)], r = *mover, s;
        uint32_t first = a->first_stayer[home[r]], n_stayers = a->first_stayer[home[r] + 1] - first;
        uint32_t *stayer = n_stayers > 0 && roll(a, 2) == 0 ? &a->stayers[first + roll(a, n_stayers)] : NULL;
        double more;

        s = stayer ? *stayer : a->movers[roll(a, a->n_movers)];
        /* A rank that would come home that way would make one move less. */
        if (a->node[r] == a->node[s] || (!stayer && (a->node[s] == home[r] || a->node[r] == home[s])))
                return 0;
        more = swap(a, r, s);
        if (more > 0 && roll(a, 1 << 24) >= (1 << 24) * exp(-more / heat)) {
                (void) swap(a, r, s);
                return 0;
        }
        if (stayer) {
                *stayer = r;
                *mover = s;
        }
        return more;
}

double anneal_moves(const struct rm_job *job, const uint32_t *home, const uint32_t *core, uint32_t n_nodes, uint64_t seed,
                    double seconds) {
        struct annealing a = { .traffic = &job->traffic, .n_ranks = job->ranks, .state = seed };
        double cut, best, mean, part;
        clock_t begin = clock();

        a.node = xcalloc(job->ranks, sizeof(*a.node));
        a.movers = xcalloc(job->ranks, sizeof(*a.movers));
        a.stayers = xcalloc(job->ranks, sizeof(*a.stayers));
        a.first_stayer = xcalloc(n_nodes + 1ul, sizeof(*a.first_stayer));
        list_ranks(&a, home, core, n_nodes);
        best = cut = bytes_of_all(&a, &mean);
        while (a.n_movers > 0 && (part = (double) (clock() - begin) / CLOCKS_PER_SEC / seconds) < 1) {
                double heat = mean * hottest * pow(coldest / hottest, part);

                for (int i = 0; i < SCAN; i++) {
                        cut += try_swap(&a, home, heat);
                        best = cut < best ? cut : best;
                }
        }
        free(a.node);
        free(a.movers);
        free(a.stayers);
        free(a.first_stayer);
        return best;
}
