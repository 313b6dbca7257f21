#include "policies/distrib/refit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/distrib/roll.h"
#include "policies/distrib/vectorised.h"
#include "policies/place/cost.h"
#include "policies/place/pack.h"
#include "policies/place/shelf.h"

enum {
        MOST_OUT = 4,     /* jobs taken out at a time */
        SPARE_NODES = 60, /* nodes of the largest size looked at beyond what a job needs, all penalties together, */
        LEAST_SPARE = 12, /* but at least so many */
        NEAR = 12,        /* jobs this close in priority are often taken out together */
        PIECE_TRIES = 16,
};

struct piece {
        uint32_t node, ranks;
};

struct refit_job {
        uint32_t index; /* in the snapshot */
        uint32_t ranks, n_pieces;
        uint32_t left; /* ranks that are nowhere yet, while it is put */
        int64_t priority, cost;
        struct piece *pieces, *old_pieces; /* `ranks` entries */
        uint32_t n_old_pieces;
        int64_t old_cost;
};

/* Nodes of one penalty with equally many free cores, as a job sees them. */
struct offer {
        uint32_t class, free_cores, count;
        double price; /* of filling one */
        bool banned;  /* all of them are to be filled already */
};

/* So many nodes of an offer at once. */
struct bundle {
        uint32_t offer, nodes;
};

struct refit {
        const struct rm_snapshot *snapshot;
        int64_t weight;
        struct shelf shelf;
        double *worth; /* each class of the shelf: what such a node is worth to other jobs */
        struct refit_job *jobs; /* highest priority first */
        uint32_t n_jobs, most_ranks;
        int64_t gain;
        struct offer *offers;
        uint32_t n_offers, n_used; /* used: those looked at */
        struct bundle *bundles;
        uint32_t n_bundles, max_bundles;
        float *least, *next; /* each number of ranks */
        uint8_t *taken;      /* bundles x (ranks + 1) */
        size_t taken_bytes;
        uint32_t *trace; /* each offer: nodes filled */
        uint64_t random;
};

static uint32_t roll(struct refit *refit, uint32_t n) {
        return roll_below(&refit->random, n);
}

/* ---- making ---- */

static int compare_jobs(const void *a, const void *b) {
        const struct refit_job *x = a, *y = b;

        if (x->priority != y->priority)
                return x->priority > y->priority ? -1 : 1;
        return x->index < y->index ? -1 : x->index > y->index;
}

static bool is_free(const struct rm_job *job) {
        return job->group_size == 1 && !job->node_limit && !job_runs(job);
}

static int64_t cost_of(const struct refit *refit, const struct refit_job *job) {
        int64_t cost = 0;

        for (uint32_t i = 0; i < job->n_pieces; i++)
                cost += refit->snapshot->nodes[job->pieces[i].node].penalty * (int64_t) job->pieces[i].ranks + refit->weight;
        return cost * job->priority;
}

/* Groups of a fresh job are put node by node, so pieces are runs. */
static bool read_job(struct refit *refit, struct refit_job *job, const int32_t *node, uint32_t *on_node) {
        job->pieces = calloc(job->ranks, sizeof(*job->pieces));
        job->old_pieces = calloc(job->ranks, sizeof(*job->old_pieces));
        if (!job->pieces || !job->old_pieces)
                return false;
        for (uint32_t g = 0; g < job->ranks; g++)
                on_node[node[g]]++;
        for (uint32_t g = 0; g < job->ranks; g++)
                if (on_node[node[g]] > 0) {
                        job->pieces[job->n_pieces++] = (struct piece) { (uint32_t) node[g], on_node[node[g]] };
                        on_node[node[g]] = 0;
                }
        job->cost = cost_of(refit, job);
        return true;
}

static bool read_plan(struct refit *refit, const struct rm_plan *plan) {
        const struct rm_snapshot *snapshot = refit->snapshot;
        int64_t *free_cores = calloc(snapshot->n_nodes + 1u, sizeof(*free_cores));
        uint32_t *on_node = calloc(snapshot->n_nodes + 1u, sizeof(*on_node));
        bool done = free_cores && on_node;

        for (uint32_t s = 0; s < snapshot->n_nodes && done; s++)
                free_cores[s] = snapshot->nodes[s].cores;
        if (done) /* classes for nodes that are empty, whatever is on them now */
                done = shelf_init(&refit->shelf, snapshot, free_cores) == 0;
        for (uint32_t j = 0; j < snapshot->n_jobs && done; j++) {
                const struct rm_job *job = &snapshot->jobs[j];

                if (plan->jobs[j].decision != RM_PLACE)
                        continue;
                for (uint32_t g = 0; g < job->n_groups; g++)
                        free_cores[plan->jobs[j].group_node[g]] -= job->groups[g].ranks;
                if (!is_free(job))
                        continue;
                refit->jobs[refit->n_jobs] = (struct refit_job) { .index = j, .ranks = job->ranks, .priority = job->priority };
                done = read_job(refit, &refit->jobs[refit->n_jobs++], plan->jobs[j].group_node, on_node);
                refit->most_ranks = job->ranks > refit->most_ranks ? job->ranks : refit->most_ranks;
        }
        for (uint32_t s = 0; s < snapshot->n_nodes && done; s++)
                shelf_set(&refit->shelf, s, free_cores[s]);
        free(free_cores);
        free(on_node);
        return done;
}

struct refit *refit_create(const struct rm_snapshot *snapshot, const struct rm_plan *plan, uint64_t seed) {
        struct refit *refit = calloc(1, sizeof(*refit));
        bool done;

        if (!refit)
                return NULL;
        refit->snapshot = snapshot;
        refit->weight = snapshot->params.distribution_weight;
        refit->random = ROLL_BEGIN + seed;
        refit->jobs = calloc(snapshot->n_jobs + 1u, sizeof(*refit->jobs));
        done = refit->jobs && read_plan(refit, plan) && refit->n_jobs > 0;
        if (done) {
                size_t classes = shelf_classes(&refit->shelf), ranks = refit->most_ranks + 1u;

                qsort(refit->jobs, refit->n_jobs, sizeof(*refit->jobs), compare_jobs);
                refit->worth = calloc(classes + 1, sizeof(*refit->worth));
                refit->offers = calloc(classes + 1, sizeof(*refit->offers));
                refit->trace = calloc(classes + 1, sizeof(*refit->trace));
                refit->max_bundles = (uint32_t) classes * 18;
                refit->bundles = calloc(refit->max_bundles + 1u, sizeof(*refit->bundles));
                refit->least = calloc(ranks, sizeof(*refit->least));
                refit->next = calloc(ranks, sizeof(*refit->next));
                done = refit->worth && refit->offers && refit->trace && refit->bundles && refit->least && refit->next;
        }
        if (!done) {
                refit_destroy(refit);
                return NULL;
        }
        return refit;
}

void refit_destroy(struct refit *refit) {
        if (!refit)
                return;
        for (uint32_t i = 0; i < refit->n_jobs; i++) {
                free(refit->jobs[i].pieces);
                free(refit->jobs[i].old_pieces);
        }
        shelf_finish(&refit->shelf);
        free(refit->jobs);
        free(refit->worth);
        free(refit->offers);
        free(refit->trace);
        free(refit->bundles);
        free(refit->least);
        free(refit->next);
        free(refit->taken);
        free(refit);
}

int64_t refit_gain(const struct refit *refit) {
        return refit->gain;
}

void refit_set_prices(struct refit *refit, const struct staircase *staircase) {
        const struct shelf *shelf = &refit->shelf;

        /* Known sizes first, then those between: as the next smaller one, for each core. */
        for (uint32_t i = 0; i < shelf_classes(shelf); i++)
                refit->worth[i] = -1;
        for (uint32_t i = 0; i < staircase->n_stairs; i++) {
                const struct stair *stair = &staircase->stairs[i];

                for (uint32_t p = 0; p < shelf->n_penalties; p++)
                        if (shelf->penalties[p] == stair->penalty && stair->cores < shelf->stride)
                                refit->worth[p * shelf->stride + stair->cores] =
                                        ldexp((double) stair->price, -staircase->shift) * stair->cores;
        }
        for (uint32_t p = 0; p < shelf->n_penalties; p++) {
                double each = 0;

                for (uint32_t f = 0; f < shelf->stride; f++) {
                        double *worth = &refit->worth[p * shelf->stride + f];

                        if (*worth < 0)
                                *worth = each * f;
                        else if (f > 0)
                                each = *worth / f;
                }
        }
}

void refit_set_worth(struct refit *refit, const struct pieces *pieces) {
        const struct shelf *shelf = &refit->shelf;

        for (uint32_t p = 0; p < shelf->n_penalties; p++)
                for (uint32_t f = 0; f < shelf->stride; f++)
                        refit->worth[p * shelf->stride + f] = pieces_worth(pieces, shelf->penalties[p], f);
}

/* ---- out and in ---- */

static void take_out(struct refit *refit, const struct refit_job *job) {
        for (uint32_t i = 0; i < job->n_pieces; i++)
                shelf_set(&refit->shelf, job->pieces[i].node,
                          (int64_t) refit->shelf.free_of[job->pieces[i].node] + job->pieces[i].ranks);
}

static void put_in(struct refit *refit, const struct refit_job *job) {
        for (uint32_t i = 0; i < job->n_pieces; i++)
                shelf_set(&refit->shelf, job->pieces[i].node,
                          (int64_t) refit->shelf.free_of[job->pieces[i].node] - job->pieces[i].ranks);
}

static int compare_offers(const void *a, const void *b) {
        const struct offer *x = a, *y = b;
        double price_x = x->price / x->free_cores, price_y = y->price / y->free_cores;

        if (price_x != price_y)
                return price_x < price_y ? -1 : 1;
        return x->class < y->class ? -1 : 1;
}

/* The classes there are, the cheapest for each core first; as many of them are used as the job could need. */
static void list_offers(struct refit *refit, const struct refit_job *job) {
        const struct shelf *shelf = &refit->shelf;
        uint32_t spare = SPARE_NODES / shelf->n_penalties > LEAST_SPARE ? SPARE_NODES / shelf->n_penalties : LEAST_SPARE;
        uint64_t enough = job->left + (uint64_t) spare * shelf->stride, cores = 0;

        refit->n_offers = 0;
        for (uint32_t p = 0; p < shelf->n_penalties; p++)
                for (uint32_t f = 1; f <= shelf->top[p]; f++) {
                        uint32_t class = p * shelf->stride + f, ranks = f < job->left ? f : job->left;

                        if (shelf->count[class] == 0)
                                continue;
                        refit->offers[refit->n_offers++] = (struct offer) {
                                .class = class,
                                .free_cores = f,
                                .count = shelf->count[class],
                                .price = (double) job->priority * ((double) refit->weight + (double) shelf->penalties[p] * ranks) +
                                         refit->worth[class],
                        };
                }
        qsort(refit->offers, refit->n_offers, sizeof(*refit->offers), compare_offers);
        for (refit->n_used = 0; refit->n_used < refit->n_offers && cores < enough; refit->n_used++) {
                const struct offer *offer = &refit->offers[refit->n_used];

                cores += (uint64_t) offer->free_cores * offer->count;
        }
}

/* Nodes to be filled, in bundles of 1, 2, 4, .. so that every number can be had. */
static int list_bundles(struct refit *refit, uint32_t ranks) {
        size_t bytes;

        refit->n_bundles = 0;
        for (uint32_t i = 0; i < refit->n_used; i++) {
                const struct offer *offer = &refit->offers[i];
                uint32_t left = ranks / offer->free_cores < offer->count ? ranks / offer->free_cores : offer->count;

                for (uint32_t k = 1; left > 0; k *= 2) {
                        uint32_t nodes = k < left ? k : left;

                        if (refit->n_bundles == refit->max_bundles)
                                return -ENOMEM;
                        refit->bundles[refit->n_bundles++] = (struct bundle) { i, nodes };
                        left -= nodes;
                }
        }
        bytes = (size_t) refit->n_bundles * (ranks + 1u);
        if (bytes > refit->taken_bytes) {
                free(refit->taken);
                refit->taken = malloc(2 * bytes);
                refit->taken_bytes = refit->taken ? 2 * bytes : 0;
                if (!refit->taken)
                        return -ENOMEM;
        }
        return 0;
}

/* With nodes that hold `size` ranks together for `price`, where that is less than without them. */
VECTORISED static void take(const float *restrict from, float *restrict to, uint8_t *restrict taken, uint32_t size, uint32_t ranks,
                            float price) {
        memcpy(to, from, sizeof(*to) * size);
        memset(taken, 0, size);
        for (size_t m = size; m <= ranks; m++) {
                float with = from[m - size] + price;

                to[m] = with < from[m] ? with : from[m];
        }
        for (size_t m = size; m <= ranks; m++)
                taken[m] = to[m] < from[m];
}

/* least[m]: of filling nodes with m ranks together. */
static void fill(struct refit *refit, uint32_t ranks) {
        for (uint32_t m = 0; m <= ranks; m++)
                refit->least[m] = m == 0 ? 0 : INFINITY;
        for (uint32_t i = 0; i < refit->n_bundles; i++) {
                const struct bundle *bundle = &refit->bundles[i];
                const struct offer *offer = &refit->offers[bundle->offer];
                float *swap = refit->least;

                take(refit->least, refit->next, refit->taken + (size_t) i * (ranks + 1u), bundle->nodes * offer->free_cores, ranks,
                     (float) (bundle->nodes * offer->price));
                refit->least = refit->next;
                refit->next = swap;
        }
}

/* How many nodes of each offer are filled to get `ranks` together. */
static void trace_fill(struct refit *refit, uint32_t ranks, uint32_t stride) {
        memset(refit->trace, 0, sizeof(*refit->trace) * (refit->n_offers + 1u));
        for (uint32_t i = refit->n_bundles; i-- > 0 && ranks > 0;)
                if (refit->taken[(size_t) i * stride + ranks]) {
                        refit->trace[refit->bundles[i].offer] += refit->bundles[i].nodes;
                        ranks -= refit->bundles[i].nodes * refit->offers[refit->bundles[i].offer].free_cores;
                }
}

/* How many ranks on a node of the offer that has room for more, where the others fill nodes, cost less than `*best`, all together: that
 * is the new best. 0: none do. */
static uint32_t best_part(const struct refit *refit, const struct refit_job *job, const struct offer *offer, double *best) {
        const float *least = refit->least + job->left;
        const double *worth = refit->worth + offer->class;
        uint32_t row = offer->class / refit->shelf.stride, part = 0;
        double piece = (double) job->priority * (double) refit->weight + *worth;
        double rank = (double) job->priority * (double) refit->shelf.penalties[row];

        for (uint32_t x = 1; x < offer->free_cores && x <= job->left; x++, least--, worth--) {
                double price = least[-1] + piece + rank * x - worth[-1];

                if (price < *best) {
                        *best = price;
                        part = x;
                }
        }
        return part;
}

/* The best way to put all ranks: nodes filled, and at most one in part. *ret_part: ranks on that one. -1: there is none. */
static int32_t choose_part(struct refit *refit, const struct refit_job *job, uint32_t *ret_part) {
        for (uint32_t i = 0; i < refit->n_used; i++)
                refit->offers[i].banned = false;
        for (int tries = 0; tries < PIECE_TRIES; tries++) {
                double best = refit->least[job->left];
                int32_t offer = (int32_t) refit->n_offers;
                uint32_t part = 0, x;

                for (uint32_t i = 0; i < refit->n_used; i++)
                        if (!refit->offers[i].banned && (x = best_part(refit, job, &refit->offers[i], &best)) > 0) {
                                offer = (int32_t) i;
                                part = x;
                        }
                if (isinf(best))
                        return -1;
                trace_fill(refit, job->left - part, job->left + 1);
                *ret_part = part;
                if (part == 0 || refit->trace[offer] < refit->offers[offer].count)
                        return offer;
                refit->offers[offer].banned = true;
        }
        return -1;
}

static void add_piece(struct refit *refit, struct refit_job *job, uint32_t class, uint32_t ranks) {
        uint32_t node = (uint32_t) refit->shelf.first[class];

        job->pieces[job->n_pieces++] = (struct piece) { node, ranks };
        shelf_set(&refit->shelf, node, (int64_t) refit->shelf.free_of[node] - ranks);
}

/* What is left of the job, beside what it has. 0, or -ENOSPC: no way was found. */
static int insert_left(struct refit *refit, struct refit_job *job) {
        uint32_t part = 0;
        int32_t offer;

        list_offers(refit, job);
        if (list_bundles(refit, job->left) < 0)
                return -ENOMEM;
        fill(refit, job->left);
        offer = choose_part(refit, job, &part);
        if (offer < 0)
                return -ENOSPC;
        /* The part first: its class must not have been emptied. */
        if (part > 0)
                add_piece(refit, job, refit->offers[offer].class, part);
        for (uint32_t i = 0; i < refit->n_used; i++)
                for (uint32_t k = 0; k < refit->trace[i]; k++)
                        add_piece(refit, job, refit->offers[i].class, refit->offers[i].free_cores);
        job->left = 0;
        job->cost = cost_of(refit, job);
        return 0;
}

static int insert(struct refit *refit, struct refit_job *job) {
        job->n_pieces = 0;
        job->left = job->ranks;
        return insert_left(refit, job);
}

/* ---- rounds ---- */

static void remember(struct refit_job *job) {
        memcpy(job->old_pieces, job->pieces, sizeof(*job->pieces) * job->n_pieces);
        job->n_old_pieces = job->n_pieces;
        job->old_cost = job->cost;
}

static void restore(struct refit_job *job) {
        memcpy(job->pieces, job->old_pieces, sizeof(*job->pieces) * job->n_old_pieces);
        job->n_pieces = job->n_old_pieces;
        job->cost = job->old_cost;
}

/* Put `n` jobs anew, in that order; as before when that is dearer or not possible. */
static int put_anew(struct refit *refit, struct refit_job *jobs[], uint32_t n) {
        int64_t before = 0, after = 0;
        uint32_t in = 0;
        int r = 0;

        for (uint32_t i = 0; i < n; i++) {
                remember(jobs[i]);
                before += jobs[i]->cost;
                take_out(refit, jobs[i]);
        }
        while (in < n && after <= before && (r = insert(refit, jobs[in])) == 0)
                after += jobs[in++]->cost;
        if (in == n && after <= before) {
                refit->gain += before - after;
                return 0;
        }
        for (uint32_t i = 0; i < in; i++)
                take_out(refit, jobs[i]);
        for (uint32_t i = 0; i < n; i++) {
                restore(jobs[i]);
                put_in(refit, jobs[i]);
        }
        return r == -ENOSPC ? 0 : r;
}

int refit_all(struct refit *refit) {
        return refit_adopt(refit, NULL, 0, 0);
}

bool refit_is_whole(const struct refit *refit, const struct staircase *staircase) {
        return refit->n_jobs == staircase->n_treads;
}

int refit_adopt(struct refit *refit, const struct portion *portions, uint32_t n, int64_t loss) {
        int64_t before = 0, after = -loss;
        uint32_t in = 0;
        int r = 0;

        for (uint32_t i = 0; i < refit->n_jobs; i++) {
                struct refit_job *job = &refit->jobs[i];

                remember(job);
                before += job->cost;
                take_out(refit, job);
                job->n_pieces = 0;
                job->left = job->ranks;
        }
        for (uint32_t i = 0; i < n; i++) {
                struct refit_job *job = &refit->jobs[portions[i].tread];

                job->pieces[job->n_pieces++] = (struct piece) { portions[i].node, portions[i].ranks };
                job->left -= portions[i].ranks;
                shelf_set(&refit->shelf, portions[i].node, (int64_t) refit->shelf.free_of[portions[i].node] - portions[i].ranks);
        }
        while (in < refit->n_jobs && after <= before && r == 0) {
                struct refit_job *job = &refit->jobs[in];

                if (job->left > 0)
                        r = insert_left(refit, job);
                else
                        job->cost = cost_of(refit, job);
                if (r == 0) {
                        after += job->cost;
                        in++;
                }
        }
        if (in == refit->n_jobs && after <= before) {
                refit->gain += before - after - loss;
                return 0;
        }
        for (uint32_t i = 0; i < refit->n_jobs; i++)
                take_out(refit, &refit->jobs[i]);
        for (uint32_t i = 0; i < refit->n_jobs; i++) {
                restore(&refit->jobs[i]);
                put_in(refit, &refit->jobs[i]);
        }
        return r == -ENOSPC ? 0 : r;
}

/* Another job than those drawn before, often one of about the same priority. */
static struct refit_job *draw_job(struct refit *refit, struct refit_job *const drawn[], uint32_t n) {
        for (;;) {
                uint32_t i = roll(refit, refit->n_jobs);
                bool fresh = true;

                if (n > 0 && roll(refit, 2) > 0) {
                        uint32_t at = (uint32_t) (drawn[0] - refit->jobs), low = at > NEAR ? at - NEAR : 0;
                        uint32_t high = at + NEAR < refit->n_jobs ? at + NEAR : refit->n_jobs - 1;

                        i = low + roll(refit, high - low + 1);
                }
                for (uint32_t k = 0; k < n; k++)
                        fresh &= drawn[k] != &refit->jobs[i];
                if (fresh)
                        return &refit->jobs[i];
        }
}

int refit_some(struct refit *refit, const struct deadline *deadline, int64_t until_usec, int64_t enough, uint64_t rounds) {
        int r = 0;

        for (uint64_t i = 0; i < rounds && r == 0 && refit->gain < enough && deadline_left_usec(deadline) > until_usec; i++) {
                struct refit_job *jobs[MOST_OUT];
                uint32_t n = 2 + roll(refit, MOST_OUT - 1);

                n = n < refit->n_jobs ? n : refit->n_jobs;
                for (uint32_t k = 0; k < n; k++)
                        jobs[k] = draw_job(refit, jobs, k);
                r = put_anew(refit, jobs, n);
        }
        return r;
}

void refit_write(const struct refit *refit, struct rm_plan *plan) {
        for (uint32_t i = 0; i < refit->n_jobs; i++) {
                const struct refit_job *job = &refit->jobs[i];
                int32_t *node = plan->jobs[job->index].group_node;

                for (uint32_t k = 0; k < job->n_pieces; k++)
                        for (uint32_t rank = 0; rank < job->pieces[k].ranks; rank++)
                                *node++ = (int32_t) job->pieces[k].node;
        }
}
