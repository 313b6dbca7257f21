#include "daemon/sched/malleable.h"

#define NONE SIZE_MAX

struct decision {
        const struct malleable_job *jobs;
        size_t n_jobs;
        uint32_t *wanted; /* each job: what it has once all changes are made */
};

static uint32_t coming(const struct malleable_job *job) {
        return job->wanted ? job->wanted : job->active;
}

static bool may_change(const struct malleable_job *job) {
        return job->may_change && job->wanted == 0 && job->most > 0 && job->step > 0;
}

/* By how many ranks it can shrink next, so that its last group is whole or gone. */
static uint32_t shrinks_by(const struct decision *d, size_t j) {
        const struct malleable_job *job = &d->jobs[j];
        uint32_t now = d->wanted[j], by;

        if (!may_change(job))
                return 0;
        by = now % job->step ? now % job->step : job->step;
        return now > by && now - by >= job->least ? by : 0;
}

static uint32_t grows_by(const struct decision *d, size_t j) {
        const struct malleable_job *job = &d->jobs[j];
        uint32_t now = d->wanted[j], by;

        if (!may_change(job) || now >= job->most || job->goal == MALLEABLE_AHEAD)
                return 0;
        by = job->step - now % job->step;
        return by < job->most - now ? by : job->most - now;
}

static bool shrinks_before(const struct decision *d, size_t a, size_t b) {
        const struct malleable_job *x = &d->jobs[a], *y = &d->jobs[b];

        if (x->priority != y->priority)
                return x->priority < y->priority;
        if ((x->goal == MALLEABLE_AHEAD) != (y->goal == MALLEABLE_AHEAD))
                return x->goal == MALLEABLE_AHEAD;
        return d->wanted[a] >= d->wanted[b]; /* and the youngest */
}

static bool grows_before(const struct decision *d, size_t a, size_t b) {
        const struct malleable_job *x = &d->jobs[a], *y = &d->jobs[b];

        if (x->priority != y->priority)
                return x->priority > y->priority;
        if ((x->goal == MALLEABLE_BEHIND) != (y->goal == MALLEABLE_BEHIND))
                return x->goal == MALLEABLE_BEHIND;
        return d->wanted[a] < d->wanted[b];
}

/* By `need` ranks, as far as that goes; of jobs of no higher priority than `priority`. How many cores that leaves free. */
static int64_t shrink(struct decision *d, int64_t need, int64_t priority) {
        int64_t freed = 0;

        while (freed < need) {
                size_t best = NONE;

                for (size_t j = 0; j < d->n_jobs; j++)
                        if (d->jobs[j].priority <= priority && shrinks_by(d, j) > 0 && (best == NONE || shrinks_before(d, j, best)))
                                best = j;
                if (best == NONE)
                        return freed;
                freed += shrinks_by(d, best);
                d->wanted[best] -= shrinks_by(d, best);
        }
        return freed;
}

static void grow(struct decision *d, int64_t spare) {
        for (;;) {
                size_t best = NONE;

                for (size_t j = 0; j < d->n_jobs; j++)
                        if (grows_by(d, j) > 0 && grows_by(d, j) <= spare && (best == NONE || grows_before(d, j, best)))
                                best = j;
                if (best == NONE)
                        return;
                spare -= grows_by(d, best);
                d->wanted[best] += grows_by(d, best);
        }
}

static void reset(struct decision *d) {
        for (size_t j = 0; j < d->n_jobs; j++)
                d->wanted[j] = coming(&d->jobs[j]);
}

uint64_t malleable_limit(const struct rm_snapshot *snapshot, const struct rm_job *job) {
        uint64_t cores = 0;

        for (uint32_t n = 0; n < snapshot->n_nodes; n++) {
                uint32_t most = snapshot->nodes[n].cores;

                cores += job->node_limit && job->node_limit[n] < most ? job->node_limit[n] : most;
        }
        return cores;
}

struct malleable_waiting malleable_first_waiting(const struct rm_snapshot *snapshot, const struct round_result *result) {
        const struct rm_job *first = NULL;

        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                const struct rm_job *job = &snapshot->jobs[j];

                if (!result->jobs[j].waits || (first && job->priority < first->priority) ||
                    (first && job->priority == first->priority && job->age <= first->age))
                        continue;
                if (job->ranks <= malleable_limit(snapshot, job))
                        first = job;
        }
        return first ? (struct malleable_waiting) { first->ranks, first->priority } : (struct malleable_waiting) { 0 };
}

void malleable_decide(const struct malleable_job *jobs, size_t n_jobs, const struct malleable_waiting *waiting, uint64_t cores,
                      uint32_t *ret_wanted) {
        struct decision d = { jobs, n_jobs, ret_wanted };
        int64_t later = (int64_t) cores, now = (int64_t) cores; /* free cores: when all changes are made, and until then */

        reset(&d);
        for (size_t j = 0; j < n_jobs; j++) {
                later -= coming(&jobs[j]);
                now -= jobs[j].wanted > jobs[j].active ? jobs[j].wanted : jobs[j].active;
        }
        if (later < 0)
                (void) shrink(&d, -later, INT64_MAX);
        else if (waiting->ranks > later && shrink(&d, waiting->ranks - later, waiting->priority) < waiting->ranks - later)
                reset(&d); /* it would not fit all the same */
        else if (waiting->ranks == 0 && now > 0)
                grow(&d, now);
        for (size_t j = 0; j < n_jobs; j++)
                if (d.wanted[j] == coming(&jobs[j]))
                        ret_wanted[j] = 0;
}
