#include <string.h>

#include "common/util.h"
#include "launcher/sim/scheduler.h"

enum { QUEUE_DEPTH = 1000 }; /* waiting jobs that are looked at for overtaking */

struct easy {
        uint32_t *expected; /* running jobs, the one that is expected to end first in front */
        uint32_t n_expected;
        int32_t *node; /* of the ranks of the job in hand */
        uint32_t node_allocated;
        uint32_t first_free; /* no node before it has a free core */
};

/* ---- when running jobs end, as far as is known ---- */

static int64_t expected_end(const struct sim_job *job) {
        return job->start_usec + job->trace->limit_usec;
}

static void expect(struct easy *easy, const struct world *world, uint32_t j) {
        int64_t end = expected_end(&world->jobs[j]);
        uint32_t low = 0, high = easy->n_expected;

        while (low < high) {
                uint32_t middle = (low + high) / 2;

                if (expected_end(&world->jobs[easy->expected[middle]]) <= end)
                        low = middle + 1;
                else
                        high = middle;
        }
        memmove(easy->expected + low + 1, easy->expected + low, sizeof(*easy->expected) * (easy->n_expected - low));
        easy->expected[low] = j;
        easy->n_expected++;
}

static void forget_ended(struct easy *easy, const struct world *world) {
        uint32_t kept = 0;

        for (uint32_t i = 0; i < easy->n_expected; i++)
                if (world->jobs[easy->expected[i]].state == SIM_RUNNING)
                        easy->expected[kept++] = easy->expected[i];
        easy->n_expected = kept;
}

/* ---- starting and killing ---- */

static uint64_t free_cores(const struct world *world) {
        return world->usable - world->busy; /* nothing is overloaded after kill_lost() */
}

static void start(struct easy *easy, struct world *world, uint32_t j) {
        uint32_t ranks = world->jobs[j].trace->ranks, placed = 0;

        if (ranks > easy->node_allocated) {
                easy->node_allocated = ranks;
                easy->node = xrealloc(easy->node, sizeof(*easy->node) * ranks);
        }
        for (uint32_t s = easy->first_free; placed < ranks; s++) {
                uint32_t space = world->nodes[s].cores - world->nodes[s].load;

                for (; space > 0 && placed < ranks; space--)
                        easy->node[placed++] = (int32_t) s;
                easy->first_free = space > 0 ? s : s + 1;
        }
        world_start(world, j, 1, easy->node);
        expect(easy, world, j);
}

static bool is_on_overloaded(const struct world *world, const struct sim_job *job) {
        for (uint32_t g = 0; g < job->n_groups; g++) {
                const struct sim_node *node = &world->nodes[job->groups[g].node];

                if (node->load > node->cores)
                        return true;
        }
        return false;
}

/* Jobs on nodes that have lost cores, those that started last first, until what is left fits. */
static void kill_lost(struct world *world) {
        while (world->n_overloaded > 0) {
                const struct sim_job *last = NULL;

                for (uint32_t i = 0; i < world->n_running; i++) {
                        const struct sim_job *job = &world->jobs[world->running[i]];

                        if (last && (job->start_usec < last->start_usec || (job->start_usec == last->start_usec && job < last)))
                                continue;
                        if (is_on_overloaded(world, job))
                                last = job;
                }
                world_kill(world, (uint32_t) (last - world->jobs));
        }
}

/* ---- backfill ---- */

struct reservation {
        int64_t time_usec; /* when the first that waits can start */
        uint64_t extra; /* cores that it will not need then */
};

static struct reservation reserve(const struct easy *easy, const struct world *world, uint32_t ranks) {
        uint64_t cores = free_cores(world);

        for (uint32_t i = 0; i < easy->n_expected; i++) {
                const struct sim_job *job = &world->jobs[easy->expected[i]];
                int64_t end = expected_end(job);

                cores += job->trace->ranks;
                if (cores >= ranks)
                        return (struct reservation) { .time_usec = end > world->now_usec ? end : world->now_usec + 1,
                                                      .extra = cores - ranks };
        }
        /* The job does not fit with the cores there are now. */
        return (struct reservation) { .time_usec = WORLD_NEVER, .extra = free_cores(world) };
}

static void backfill(struct easy *easy, struct world *world) {
        struct reservation reservation = reserve(easy, world, world->jobs[world->waiting[0]].trace->ranks);
        uint32_t seen = 1;

        for (uint32_t i = 1; i < world->n_waiting && seen < QUEUE_DEPTH && free_cores(world) > 0; seen++) {
                uint32_t j = world->waiting[i];
                const struct swf_job *trace = world->jobs[j].trace;
                bool ends_in_time = trace->limit_usec <= reservation.time_usec - world->now_usec;

                if (trace->ranks > free_cores(world) || (!ends_in_time && trace->ranks > reservation.extra)) {
                        i++;
                        continue;
                }
                if (!ends_in_time)
                        reservation.extra -= trace->ranks;
                start(easy, world, j); /* the next one is at i now */
        }
}

static int run(void *self, struct world *world, struct rm_error *err) {
        struct easy *easy = self;

        (void) err;
        if (!easy->expected)
                easy->expected = xcalloc(world->trace->n_jobs, sizeof(*easy->expected));
        kill_lost(world);
        forget_ended(easy, world);
        easy->first_free = 0;
        while (world->n_waiting > 0 && world->jobs[world->waiting[0]].trace->ranks <= free_cores(world))
                start(easy, world, world->waiting[0]);
        if (world->n_waiting > 1)
                backfill(easy, world);
        return 0;
}

static void destroy(void *self) {
        struct easy *easy = self;

        free(easy->expected);
        free(easy->node);
        free(easy);
}

struct sim_scheduler easy_create(void) {
        return (struct sim_scheduler) { .self = xcalloc(1, sizeof(struct easy)), .run = run, .destroy = destroy };
}
