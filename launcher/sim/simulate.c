#include "launcher/sim/simulate.h"

#include <stdlib.h>

#include "common/util.h"

#define SECOND 1000000
#define MOST_WORK 2e8 /* rounds times what one looks at: half a minute */
#define JOB_WORK 3.5  /* of a job that runs, where that of a node is 1 */

/* ---- how often to ask ---- */

/* A change of the number of running ranks if every job starts when it is submitted. */
struct change {
        int64_t time_usec;
        int32_t running; /* so many more */
};

struct forecast {
        struct change *changes;
        size_t n_changes;
        double n_nodes;
        double most_running; /* jobs, for want of cores */
};

static int compare_changes(const void *a, const void *b) {
        const struct change *x = a, *y = b;

        return x->time_usec < y->time_usec ? -1 : x->time_usec > y->time_usec;
}

static double most_running(const struct rm_snapshot *cluster, const struct swf *trace) {
        double cores = 0, ranks = 0;

        for (uint32_t s = 0; s < cluster->n_nodes; s++)
                cores += cluster->nodes[s].cores;
        for (size_t j = 0; j < trace->n_jobs; j++)
                ranks += trace->jobs[j].ranks;
        return cores * (double) trace->n_jobs / (ranks + 1);
}

static struct forecast make_forecast(const struct rm_snapshot *cluster, const struct swf *trace, const struct capacity *capacity) {
        struct forecast forecast = { .n_nodes = cluster->n_nodes, .most_running = most_running(cluster, trace) };
        struct change *at = forecast.changes = xcalloc(2 * trace->n_jobs + capacity->n_changes + 1, sizeof(*at));

        for (size_t j = 0; j < trace->n_jobs; j++) {
                const struct swf_job *job = &trace->jobs[j];

                *at++ = (struct change) { job->submit_usec, 1 };
                *at++ = (struct change) { job->submit_usec + job->run_usec, -1 };
        }
        for (size_t i = 0; i < capacity->n_changes; i++)
                *at++ = (struct change) { capacity->changes[i].time_usec, 0 };
        forecast.n_changes = (size_t) (at - forecast.changes);
        qsort(forecast.changes, forecast.n_changes, sizeof(*at), compare_changes);
        return forecast;
}

/* All rounds together, when each waits so long for more. */
static double work_of(const struct forecast *forecast, int64_t settle_usec) {
        double work = 0, running = 0;

        for (size_t i = 0; i < forecast->n_changes;) {
                int64_t round_usec = forecast->changes[i].time_usec + settle_usec;

                for (; i < forecast->n_changes && forecast->changes[i].time_usec <= round_usec; i++)
                        running += forecast->changes[i].running;
                work += forecast->n_nodes + JOB_WORK * (running < forecast->most_running ? running : forecast->most_running);
        }
        return work;
}

int64_t simulate_usual_settle_usec(const struct rm_snapshot *cluster, const struct swf *trace, const struct capacity *capacity) {
        struct forecast forecast = make_forecast(cluster, trace, capacity);
        int64_t least = SECOND, most;
        double run = 0;

        for (size_t j = 0; j < trace->n_jobs; j++)
                run += (double) trace->jobs[j].run_usec;
        most = trace->n_jobs > 0 ? (int64_t) (run / (50.0 * (double) trace->n_jobs)) : 0;
        if (most < least || work_of(&forecast, least) <= MOST_WORK)
                most = least;
        while (most - least > SECOND / 10) {
                int64_t middle = least + (most - least) / 2;

                if (work_of(&forecast, middle) > MOST_WORK)
                        least = middle;
                else
                        most = middle;
        }
        free(forecast.changes);
        return most;
}

/* ---- the simulation ---- */

int simulate(struct world *world, const struct sim_scheduler *scheduler, int64_t settle_usec, uint64_t *ret_rounds,
             struct rm_error *err) {
        uint64_t rounds = 0;

        for (;;) {
                int64_t next = world_next_usec(world);
                int r;

                if (next == WORLD_NEVER)
                        break;
                world_advance(world, next);
                if (!world->touched)
                        continue;
                if (settle_usec > 0)
                        world_advance(world, world->now_usec + settle_usec);
                world->touched = false;
                rounds++;
                r = scheduler->run(scheduler->self, world, err);
                if (r < 0)
                        return r;
        }
        *ret_rounds = rounds;
        return 0;
}
