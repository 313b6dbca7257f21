#include "policies/place/staircase.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* ---- sorting ---- */

static int compare_stairs(const void *a, const void *b) {
        const struct stair *x = a, *y = b;

        if (x->penalty != y->penalty)
                return x->penalty < y->penalty ? -1 : 1;
        return x->cores < y->cores ? -1 : x->cores > y->cores;
}

static double key_of(const struct stair *stair, int64_t distribution_weight) {
        return (double) stair->penalty + (double) distribution_weight / stair->cores;
}

static int compare_keys(const void *a, const void *b, void *context) {
        int64_t weight = *(const int64_t *) context;
        double x = key_of(a, weight), y = key_of(b, weight);

        if (x != y)
                return x < y ? -1 : 1;
        return compare_stairs(a, b);
}

static int compare_treads(const void *a, const void *b) {
        const struct tread *x = a, *y = b;

        if (x->priority != y->priority)
                return x->priority > y->priority ? -1 : 1;
        return x->job < y->job ? -1 : x->job > y->job;
}

/* ---- making ---- */

/* Behind the `n` that are there, or, when it is as the last of them, into that one: neighbours are often alike. How many there are now. */
static uint32_t add_stair(struct stair *stairs, uint32_t n, const struct stair *stair) {
        if (n > 0 && compare_stairs(&stairs[n - 1], stair) == 0) {
                stairs[n - 1].nodes += stair->nodes;
                return n;
        }
        stairs[n] = *stair;
        return n + 1;
}

static int list_stairs(struct staircase *staircase, const struct rm_snapshot *snapshot) {
        uint64_t *pinned = calloc(snapshot->n_nodes + 1u, sizeof(*pinned));
        uint32_t n = 0;

        staircase->stairs = calloc(snapshot->n_nodes + 1u, sizeof(*staircase->stairs));
        if (!staircase->stairs || !pinned) {
                free(pinned);
                return -ENOMEM;
        }
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                for (uint32_t g = 0; g < snapshot->jobs[j].n_groups; g++)
                        if (snapshot->jobs[j].groups[g].node >= 0 && (snapshot->jobs[j].groups[g].flags & RM_GROUP_PINNED))
                                pinned[snapshot->jobs[j].groups[g].node] += snapshot->jobs[j].groups[g].ranks;
        for (uint32_t s = 0; s < snapshot->n_nodes; s++) {
                uint64_t cores = snapshot->nodes[s].cores > pinned[s] ? snapshot->nodes[s].cores : pinned[s];
                struct stair stair = { .penalty = snapshot->nodes[s].penalty, .cores = (uint32_t) cores, .nodes = 1 };

                if (cores > 0)
                        n = add_stair(staircase->stairs, n, &stair);
        }
        free(pinned);
        qsort(staircase->stairs, n, sizeof(*staircase->stairs), compare_stairs);
        for (uint32_t i = 0; i < n; i++) {
                struct stair stair = staircase->stairs[i];

                staircase->n_stairs = add_stair(staircase->stairs, staircase->n_stairs, &stair);
        }
        return 0;
}

static int list_treads(struct staircase *staircase, const struct rm_snapshot *snapshot, const struct rm_plan *plan) {
        staircase->treads = calloc(snapshot->n_jobs + 1u, sizeof(*staircase->treads));
        if (!staircase->treads)
                return -ENOMEM;
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                if (plan->jobs[j].decision == RM_PLACE)
                        staircase->treads[staircase->n_treads++] = (struct tread) { .job = j,
                                                                                    .ranks = snapshot->jobs[j].ranks,
                                                                                    .priority = snapshot->jobs[j].priority };
        qsort(staircase->treads, staircase->n_treads, sizeof(*staircase->treads), compare_treads);
        return 0;
}

/* As fine as sums of costs, which stay below 2^53, allow: prices times cores of all nodes must fit too. */
static int choose_shift(const struct staircase *staircase, int64_t weight) {
        double most = 1, cores = 1;
        int shift = 0;

        for (uint32_t i = 0; i < staircase->n_stairs; i++) {
                most = fmax(most, key_of(&staircase->stairs[i], weight) + (double) weight);
                cores += (double) staircase->stairs[i].cores * staircase->stairs[i].nodes;
        }
        if (staircase->n_treads > 0)
                most *= (double) staircase->treads[0].priority + 1;
        for (uint32_t i = 0; i < staircase->n_treads; i++)
                cores += staircase->treads[i].ranks;
        while (shift < 20 && ldexp(most * cores, shift + 1) < 0x1p60)
                shift++;
        return shift;
}

/* Along the stairs from the last used one up: a core costs what its job saves by being here and not on the next stair. */
static void set_prices(struct staircase *staircase, int64_t weight) {
        uint32_t *owner = calloc(staircase->n_stairs + 1u, sizeof(*owner)), t = 0, used = 0;
        uint64_t left = staircase->n_treads > 0 ? staircase->treads[0].ranks : 0;
        double price = 0;

        if (!owner) /* prices of 0 will do */
                return;
        for (uint32_t i = 0; i < staircase->n_stairs && t < staircase->n_treads; i++) {
                uint64_t room = (uint64_t) staircase->stairs[i].cores * staircase->stairs[i].nodes;

                owner[i] = t;
                used = i;
                while (t < staircase->n_treads && room >= left) {
                        room -= left;
                        if (++t < staircase->n_treads)
                                left = staircase->treads[t].ranks;
                }
                left -= t < staircase->n_treads ? room : 0;
        }
        for (uint32_t i = used; i-- > 0;) {
                double step = key_of(&staircase->stairs[i + 1], weight) - key_of(&staircase->stairs[i], weight);

                price += step * (double) staircase->treads[owner[i + 1]].priority;
                staircase->stairs[i].price = llround(ldexp(price, staircase->shift));
        }
        free(owner);
}

int staircase_init(struct staircase *staircase, const struct rm_snapshot *snapshot, const struct rm_plan *plan) {
        int64_t weight = snapshot->params.distribution_weight;
        int r;

        *staircase = (struct staircase) { 0 };
        if ((r = list_stairs(staircase, snapshot)) < 0 || (r = list_treads(staircase, snapshot, plan)) < 0)
                return r;
        qsort_r(staircase->stairs, staircase->n_stairs, sizeof(*staircase->stairs), compare_keys, &weight);
        staircase->shift = choose_shift(staircase, weight);
        set_prices(staircase, weight);
        return 0;
}

void staircase_finish(struct staircase *staircase) {
        free(staircase->stairs);
        free(staircase->treads);
        *staircase = (struct staircase) { 0 };
}

/* ---- the bound ---- */

/* The least that a rank of the job costs, scaled, where a node costs at least its part of the distribution weight. */
static int64_t rank_cost(const struct staircase *staircase, const struct tread *tread, int64_t weight) {
        int64_t scale = (int64_t) 1 << staircase->shift, least = INT64_MAX;

        for (uint32_t i = 0; i < staircase->n_stairs; i++) {
                const struct stair *stair = &staircase->stairs[i];
                int64_t together = stair->cores < tread->ranks ? stair->cores : tread->ranks;
                int64_t cost =
                        tread->priority * stair->penalty * scale + tread->priority * weight * scale / together + stair->price;

                least = cost < least ? cost : least;
        }
        return least;
}

uint32_t staircase_find(const struct staircase *staircase, int64_t penalty, uint32_t cores) {
        uint32_t i = 0;

        while (i < staircase->n_stairs && (staircase->stairs[i].penalty != penalty || staircase->stairs[i].cores != cores))
                i++;
        return i;
}

int64_t staircase_bound(const struct staircase *staircase, int64_t distribution_weight) {
        int64_t sum = 0, last_cost = 0;
        const struct tread *last = NULL;
        uint32_t most = 0;

        for (uint32_t i = 0; i < staircase->n_stairs; i++) {
                sum -= staircase->stairs[i].price * staircase->stairs[i].cores * staircase->stairs[i].nodes;
                most = staircase->stairs[i].cores > most ? staircase->stairs[i].cores : most;
        }
        for (uint32_t i = 0; i < staircase->n_treads && staircase->n_stairs > 0; i++) {
                const struct tread *tread = &staircase->treads[i];

                if (!last || last->priority != tread->priority ||
                    (last->ranks != tread->ranks && (last->ranks < most || tread->ranks < most)))
                        last_cost = rank_cost(staircase, tread, distribution_weight);
                last = tread;
                sum += last_cost * tread->ranks;
        }
        return -(-sum >> staircase->shift);
}
