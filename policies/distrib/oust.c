#include "policies/distrib/oust.h"

#include <errno.h>
#include <stdlib.h>

#include "policies/distrib/roll.h"

enum {
        MOST_OUSTED = 6,  /* jobs */
        DRAWN = 3,        /* of which the one that loses most is tried */
        MOST_LOOKS = 64,  /* at nodes of a class, for one to be had */
        SHADES = 1024,    /* of random numbers */
        NONE = -1,
};

/* Where no node is free it counts as dearer, by up to so much of what the job loses. */
static const double hindrance = 0.5;
/* Not worth a try. */
static const double least_loss = 0.5;

struct oust {
        struct filling *filling;
        struct fitting *fitting;
        const struct wishes *wishes;
        struct fit_piece *wanted;
        uint32_t n_wanted;
        struct fit_job *jobs[MOST_OUSTED + 1]; /* that are put anew, the one that gets what it wants first */
        uint32_t n_jobs;
        uint32_t *offer_class; /* each offer */
        uint64_t *wanted_in; /* each node: the last try in which it was wanted */
        uint64_t tries;
        struct arena arena;
};

struct oust *oust_create(struct filling *filling, const struct wishes *wishes) {
        struct oust *oust = calloc(1, sizeof(*oust));
        struct fitting *fitting = filling->fitting;

        if (!oust)
                return NULL;
        oust->filling = filling;
        oust->fitting = fitting;
        oust->wishes = wishes;
        oust->wanted = arena_alloc(&oust->arena, fitting->most_ranks, sizeof(*oust->wanted));
        oust->offer_class = arena_alloc(&oust->arena, shelf_classes(&fitting->shelf) + 1ul, sizeof(*oust->offer_class));
        oust->wanted_in = arena_alloc(&oust->arena, fitting->snapshot->n_nodes, sizeof(*oust->wanted_in));
        if (oust->arena.failed) {
                oust_destroy(oust);
                return NULL;
        }
        for (uint32_t i = 0; i < fitting->n_jobs; i++)
                fitting_settle(fitting, &fitting->jobs[i]);
        return oust;
}

void oust_destroy(struct oust *oust) {
        if (!oust)
                return;
        arena_finish(&oust->arena);
        free(oust);
}

static uint32_t roll(struct oust *oust, uint32_t n) {
        return roll_below(&oust->fitting->random, n);
}

/* 0 .. 1. */
static double shade(struct oust *oust) {
        return roll(oust, SHADES) / (double) SHADES;
}

static double loss_of(const struct oust *oust, const struct fit_job *job) {
        return job->paid - oust->wishes->ideal[job - oust->fitting->jobs];
}

static struct fit_job *draw_job(struct oust *oust) {
        struct fit_job *most = NULL;

        for (int i = 0; i < DRAWN; i++) {
                struct fit_job *job = &oust->fitting->jobs[roll(oust, oust->fitting->n_jobs)];

                if (!most || loss_of(oust, job) > loss_of(oust, most))
                        most = job;
        }
        return most;
}

/* ---- what it wants ---- */

/* All nodes by which it would lose less than now, as if they were empty. */
static void list_offers(struct oust *oust, const struct fit_job *job) {
        struct filling *filling = oust->filling;
        const struct shelf *shelf = &oust->fitting->shelf;
        const struct wishes *wishes = oust->wishes;
        size_t demand = (size_t) (job - oust->fitting->jobs);
        double loss = loss_of(oust, job);

        filling->n_offers = 0;
        for (size_t i = wishes->first[demand]; i < wishes->first[demand + 1] && wishes->wishes[i].loss < loss; i++) {
                uint32_t class = wishes->wishes[i].class, cores = wishes->classes->classes[class].cores;
                uint32_t first = wishes->roster.nodes[wishes->roster.first[class]];
                uint32_t of_shelf = shelf->penalty_of[first] * shelf->stride + cores;

                oust->offer_class[filling->n_offers] = class;
                filling->offers[filling->n_offers++] = (struct offer) {
                        .class = of_shelf,
                        .free_cores = cores,
                        .count = wishes->classes->classes[class].nodes,
                        .price = filling_price(oust->fitting, job, of_shelf) +
                                 (shelf->count[of_shelf] > 0 ? 0 : hindrance * loss * shade(oust)),
                };
        }
        filling->n_used = filling->n_offers;
}

static bool is_out(const struct oust *oust, const struct fit_job *job) {
        for (uint32_t i = 0; i < oust->n_jobs; i++)
                if (oust->jobs[i] == job)
                        return true;
        return false;
}

/* How good it is to oust who is there, who loses much at best. *ret_n: how many more would be out. */
static double rate_node(struct oust *oust, uint32_t node, uint32_t *ret_n) {
        const struct fitting *fitting = oust->fitting;
        double loss = 0;

        *ret_n = 0;
        for (uint32_t k = 0; k < fitting->n_tenants[node] && *ret_n <= MOST_OUSTED; k++) {
                const struct fit_job *job = &fitting->jobs[fitting->tenants[fitting->first_tenant[node] + k]];

                if (is_out(oust, job))
                        continue;
                ++*ret_n;
                loss += loss_of(oust, job) * shade(oust);
        }
        return *ret_n > 0 ? loss / *ret_n : 0;
}

/* A node of the class for so many ranks, and who is there is out. False: there is none to be had. */
static bool want_node(struct oust *oust, uint32_t class, uint32_t ranks) {
        const struct wishes *wishes = oust->wishes;
        const struct fitting *fitting = oust->fitting;
        uint32_t first = wishes->roster.first[class], n = wishes->roster.first[class + 1] - first, at = roll(oust, n), best_n = 0;
        double best_rate = 0;
        int64_t best = NONE;

        for (uint32_t i = 0; i < n && i < MOST_LOOKS && (best == NONE || best_n > 0); i++) {
                uint32_t node = wishes->roster.nodes[first + (at + i) % n], n_more;
                double rate;

                if (oust->wanted_in[node] == oust->tries)
                        continue;
                rate = rate_node(oust, node, &n_more);
                if (oust->n_jobs + n_more > MOST_OUSTED + 1 || (n_more > 0 && best != NONE && rate <= best_rate))
                        continue;
                best = node;
                best_n = n_more;
                best_rate = rate;
        }
        if (best == NONE)
                return false;
        for (uint32_t k = 0; k < fitting->n_tenants[best]; k++) {
                struct fit_job *job = &fitting->jobs[fitting->tenants[fitting->first_tenant[best] + k]];

                if (!is_out(oust, job))
                        oust->jobs[oust->n_jobs++] = job;
        }
        oust->wanted_in[best] = oust->tries;
        oust->wanted[oust->n_wanted++] = (struct fit_piece) { (uint32_t) best, ranks };
        return true;
}

/* What the job wants, and who is to be out for it. 0: too many would have to be, or there is nothing better; 1, or -ENOMEM. */
static int want(struct oust *oust, struct fit_job *job) {
        struct filling *filling = oust->filling;
        uint32_t part = 0;
        int offer;

        oust->tries++;
        oust->n_wanted = 0;
        oust->n_jobs = 0;
        oust->jobs[oust->n_jobs++] = job;
        job->left = job->ranks;
        list_offers(oust, job);
        offer = filling_choose(filling, job, &part);
        if (offer < 0)
                return offer == -ENOSPC ? 0 : offer;
        if (part > 0 && !want_node(oust, oust->offer_class[offer], part))
                return 0;
        for (uint32_t i = 0; i < filling->n_used; i++)
                for (uint32_t k = 0; k < filling->trace[i]; k++)
                        if (!want_node(oust, oust->offer_class[i], filling->offers[i].free_cores))
                                return 0;
        return 1;
}

/* ---- trying ---- */

static void exchange(struct fit_job **a, struct fit_job **b) {
        struct fit_job *swap = *a;

        *a = *b;
        *b = swap;
}

/* Highest priority first, now and then with two exchanged. */
static void order_ousted(struct oust *oust) {
        uint32_t n = oust->n_jobs - 1;
        struct fit_job **ousted = oust->jobs + 1;

        for (uint32_t i = 1; i < n; i++)
                for (uint32_t k = i; k > 0 && ousted[k] < ousted[k - 1]; k--)
                        exchange(&ousted[k], &ousted[k - 1]);
        if (n > 1 && roll(oust, 2) == 0)
                exchange(&ousted[roll(oust, n)], &ousted[roll(oust, n)]);
}

int oust_try(struct oust *oust) {
        struct fit_job *job = draw_job(oust);
        int r;

        if (loss_of(oust, job) < least_loss)
                return 0;
        r = want(oust, job);
        if (r <= 0)
                return r;
        order_ousted(oust);
        return filling_put_anew(oust->filling, oust->jobs, oust->n_jobs, oust->wanted, oust->n_wanted);
}
