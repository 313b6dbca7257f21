#include "policies/distrib/refit.h"

#include <errno.h>
#include <stdlib.h>

#include "policies/distrib/filling.h"
#include "policies/distrib/oust.h"
#include "policies/distrib/roll.h"

enum {
        MOST_OUT = 4, /* jobs taken out at a time */
        NEAR = 12,    /* jobs this close in priority are often taken out together */
        OUSTED = 13,  /* where it is known what jobs wish for, so many rounds are for that, */
        ROUNDS = 16,  /* of so many */
};

struct refit {
        struct fitting fitting;
        struct filling filling;
        struct oust *oust; /* NULL: it is not known what jobs wish for */
};

static uint32_t roll(struct refit *refit, uint32_t n) {
        return roll_below(&refit->fitting.random, n);
}

struct refit *refit_create(const struct rm_snapshot *snapshot, const struct rm_plan *plan, uint64_t seed) {
        struct refit *refit = calloc(1, sizeof(*refit));

        if (!refit)
                return NULL;
        if (!fitting_init(&refit->fitting, snapshot, plan, seed) || !filling_init(&refit->filling, &refit->fitting)) {
                refit_destroy(refit);
                return NULL;
        }
        return refit;
}

void refit_destroy(struct refit *refit) {
        if (!refit)
                return;
        oust_destroy(refit->oust);
        filling_finish(&refit->filling);
        fitting_finish(&refit->fitting);
        free(refit);
}

int64_t refit_gain(const struct refit *refit) {
        return refit->fitting.gain;
}

void refit_set_prices(struct refit *refit, const struct relaxation *relaxation) {
        fitting_set_prices(&refit->fitting, relaxation);
}

void refit_set_worth(struct refit *refit, const struct pieces *pieces) {
        fitting_set_worth(&refit->fitting, pieces);
}

int refit_set_wishes(struct refit *refit, const struct wishes *wishes) {
        if (!refit_is_whole(refit, wishes->classes))
                return 0;
        refit->oust = oust_create(&refit->filling, wishes);
        return refit->oust ? 0 : -ENOMEM;
}

int refit_all(struct refit *refit) {
        return refit_adopt(refit, NULL, 0, 0);
}

bool refit_is_whole(const struct refit *refit, const struct relaxation *relaxation) {
        return refit->fitting.n_jobs == relaxation->n_demands;
}

int refit_adopt(struct refit *refit, const struct portion *portions, uint32_t n, int64_t loss) {
        int64_t before = 0, after = -loss;
        uint32_t in = 0;
        int r = 0;

        for (uint32_t i = 0; i < refit->fitting.n_jobs; i++) {
                struct fit_job *job = &refit->fitting.jobs[i];

                fitting_remember(job);
                before += job->cost;
                fitting_take_out(&refit->fitting, job);
                job->n_pieces = 0;
                job->left = job->ranks;
        }
        for (uint32_t i = 0; i < n; i++) {
                struct fit_job *job = &refit->fitting.jobs[portions[i].demand];

                job->left -= portions[i].ranks;
                fitting_add_piece(&refit->fitting, job, portions[i].node, portions[i].ranks);
        }
        while (in < refit->fitting.n_jobs && after <= before && r == 0) {
                struct fit_job *job = &refit->fitting.jobs[in];

                if (job->left > 0)
                        r = filling_put_left(&refit->filling, job);
                else
                        fitting_settle(&refit->fitting, job);
                if (r == 0) {
                        after += job->cost;
                        in++;
                }
        }
        if (in == refit->fitting.n_jobs && after <= before) {
                refit->fitting.gain += before - after - loss;
                return 0;
        }
        for (uint32_t i = 0; i < refit->fitting.n_jobs; i++)
                fitting_take_out(&refit->fitting, &refit->fitting.jobs[i]);
        for (uint32_t i = 0; i < refit->fitting.n_jobs; i++)
                fitting_restore(&refit->fitting, &refit->fitting.jobs[i]);
        return r == -ENOSPC ? 0 : r;
}

/* Another job than those drawn before, often one of about the same priority. */
static struct fit_job *draw_job(struct refit *refit, struct fit_job *const drawn[], uint32_t n) {
        for (;;) {
                uint32_t i = roll(refit, refit->fitting.n_jobs);
                bool fresh = true;

                if (n > 0 && roll(refit, 2) > 0) {
                        uint32_t at = (uint32_t) (drawn[0] - refit->fitting.jobs), low = at > NEAR ? at - NEAR : 0;
                        uint32_t high = at + NEAR < refit->fitting.n_jobs ? at + NEAR : refit->fitting.n_jobs - 1;

                        i = low + roll(refit, high - low + 1);
                }
                for (uint32_t k = 0; k < n; k++)
                        fresh &= drawn[k] != &refit->fitting.jobs[i];
                if (fresh)
                        return &refit->fitting.jobs[i];
        }
}

static int put_some_anew(struct refit *refit) {
        struct fit_job *jobs[MOST_OUT];
        uint32_t n = 2 + roll(refit, MOST_OUT - 1);

        n = n < refit->fitting.n_jobs ? n : refit->fitting.n_jobs;
        for (uint32_t k = 0; k < n; k++)
                jobs[k] = draw_job(refit, jobs, k);
        return filling_put_anew(&refit->filling, jobs, n, NULL, 0);
}

int refit_some(struct refit *refit, const struct deadline *deadline, int64_t until_usec, int64_t enough, uint64_t rounds) {
        int r = 0;

        for (uint64_t i = 0; i < rounds && r == 0 && refit->fitting.gain < enough && deadline_left_usec(deadline) > until_usec; i++)
                r = refit->oust && roll(refit, ROUNDS) < OUSTED ? oust_try(refit->oust) : put_some_anew(refit);
        return r;
}

void refit_write(const struct refit *refit, struct rm_plan *plan) {
        fitting_write(&refit->fitting, plan);
}
