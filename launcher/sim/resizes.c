#include "launcher/sim/resizes.h"

#include "common/util.h"
#include "daemon/sched/malleable.h"

/* The time from the start of a job until its program asks for changes. */
#define LISTENS_USEC INT64_C(1000000)

static int64_t may_change_usec(const struct sim_job *own, int64_t interval_usec) {
        int64_t listens = own->start_usec + LISTENS_USEC, rested = own->resized_usec + interval_usec;

        return own->resized_usec >= own->start_usec && rested > listens ? rested : listens;
}

static struct malleable_job describe(const struct rm_job *view, const struct sim_job *own) {
        return (struct malleable_job) {
                .active = own->ranks,
                .requested = own->requested,
                .least = own->least,
                .most = own->most,
                .step = own->group_size,
                .may_change = own->most > 0 && own->n_moving == 0,
                .priority = view->priority,
        };
}

static struct malleable_node *nodes_of(const struct world *world) {
        struct malleable_node *nodes = xcalloc(world->cluster->n_nodes + 1u, sizeof(*nodes));

        for (uint32_t s = 0; s < world->cluster->n_nodes; s++)
                nodes[s] = (struct malleable_node) { (int64_t) world->nodes[s].cores - world->nodes[s].load, RM_NO_MEMORY_LIMIT };
        for (uint32_t i = 0; i < world->n_running && world->n_moving > 0; i++) {
                const struct sim_job *job = &world->jobs[world->running[i]];

                for (uint32_t g = 0; g < job->n_groups; g++)
                        if (job->groups[g].moving_to >= 0)
                                nodes[job->groups[g].moving_to].free_cores -= job->group_size;
        }
        return nodes;
}

static int32_t emptiest(const int64_t *space, uint32_t n_nodes) {
        uint32_t best = 0;

        for (uint32_t s = 1; s < n_nodes; s++)
                if (space[s] > space[best])
                        best = s;
        return (int32_t) best;
}

/* Groups that are added begin where most cores are free; where too few are, the next rounds mend
 * that. */
static void grow(struct world *world, uint32_t j, uint32_t ranks) {
        const struct sim_job *job = &world->jobs[j];
        uint32_t n_nodes = world->cluster->n_nodes, n_groups = (ranks - 1) / job->group_size + 1;
        cleanup_free int64_t *space = xcalloc(n_nodes, sizeof(*space));
        cleanup_free int32_t *group_node = xcalloc(n_groups, sizeof(*group_node));
        uint32_t left = ranks - job->ranks,
                 fills = job->n_groups * job->group_size - job->ranks; /* of the last group that it has */

        for (uint32_t s = 0; s < n_nodes; s++)
                space[s] = (int64_t) world->nodes[s].cores - world->nodes[s].load;
        fills = fills < left ? fills : left;
        space[job->groups[job->n_groups - 1].node] -= fills;
        left -= fills;
        for (uint32_t g = 0; left > 0; g++) {
                uint32_t here = left < job->group_size ? left : job->group_size;

                group_node[g] = emptiest(space, n_nodes);
                space[group_node[g]] -= here;
                left -= here;
        }
        world_resize(world, j, ranks, group_node);
}

int64_t resizes_decide(struct world *world, const struct rm_snapshot *snapshot, const struct round_result *result,
                       const uint32_t *job_at, int64_t interval_usec) {
        cleanup_free struct malleable_job *jobs = xcalloc(snapshot->n_jobs + 1u, sizeof(*jobs));
        cleanup_free uint32_t *numbers = xcalloc(snapshot->n_jobs + 1u, sizeof(*numbers));
        cleanup_free struct malleable_node *nodes = nodes_of(world);
        struct malleable_question question = { .jobs = jobs,
                                               .waiting = malleable_first_waiting(snapshot, result),
                                               .nodes = nodes,
                                               .n_nodes = world->cluster->n_nodes,
                                               .cores = world->usable };
        struct malleable_answer answer;
        int64_t again = WORLD_NEVER;
        size_t n = 0;

        for (uint32_t i = 0; i < snapshot->n_jobs; i++)
                if (!result->jobs[i].waits) {
                        numbers[n] = job_at[i];
                        jobs[n++] = describe(&snapshot->jobs[i], &world->jobs[job_at[i]]);
                }
        question.n_jobs = n;
        malleable_decide(&question, &answer);
        for (size_t i = 0; i < n; i++) {
                const struct sim_job *own = &world->jobs[numbers[i]];
                int64_t from = may_change_usec(own, interval_usec);

                if (answer.requested[i] == 0)
                        continue;
                if (from > world->now_usec)
                        again = from < again ? from : again;
                else if (answer.requested[i] > own->ranks)
                        grow(world, numbers[i], answer.requested[i]);
                else
                        world_resize(world, numbers[i], answer.requested[i], NULL);
        }
        malleable_answer_finish(&answer);
        return again;
}
