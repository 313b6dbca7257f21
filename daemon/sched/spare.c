#include "daemon/sched/spare.h"

#include "common/util.h"
#include "placement/pack.h"

/* ---- what a round sees ---- */

static bool is_on(const struct rm_job *job, int32_t node) {
        for (uint32_t g = 0; g < job->n_groups; g++)
                if (job->groups[g].node == node)
                        return true;
        return false;
}

/* Some group of the job must find a place: its node has no cores or too few, or is lost. */
static bool needs_space(const struct rm_snapshot *view, const uint64_t *load, const struct rm_job *job) {
        for (uint32_t g = 0; g < job->n_groups; g++) {
                int32_t node = job->groups[g].node;

                if (node < 0 || load[node] > view->nodes[node].cores)
                        return true;
        }
        return false;
}

static void keep_others_off(struct snapshot *snapshot, uint32_t owner, uint32_t node) {
        const struct rm_snapshot *view = snapshot_view(snapshot);

        for (uint32_t j = 0; j < view->n_jobs; j++)
                if (j != owner && !is_on(&view->jobs[j], (int32_t) node))
                        snapshot_set_limit(snapshot, j, node, 0);
}

static bool may_use_pool(const struct rm_snapshot *view, const uint64_t *load, const struct round_job *jobs, uint32_t j) {
        return jobs[j].uses_pool && needs_space(view, load, &view->jobs[j]);
}

/* Jobs that need room may have any node of the pool, all others none. */
static void open_pool(struct snapshot *snapshot, const uint64_t *load, const struct round_job *jobs) {
        const struct rm_snapshot *view = snapshot_view(snapshot);

        for (uint32_t j = 0; j < view->n_jobs; j++) {
                if (may_use_pool(view, load, jobs, j))
                        continue;
                for (uint32_t s = 0; s < view->n_nodes; s++)
                        if (jobs[0].pool[s] && load[s] == 0)
                                snapshot_set_limit(snapshot, j, s, 0);
        }
}

/* Describes the pool without the jobs' own spare nodes. */
static void describe_pool(struct snapshot *snapshot, const uint64_t *load, const struct round_job *jobs, uint32_t *ret_held) {
        const struct rm_snapshot *view = snapshot_view(snapshot);
        bool needed = false;

        for (uint32_t j = 0; j < view->n_jobs && !needed; j++)
                needed = may_use_pool(view, load, jobs, j);
        if (needed) {
                open_pool(snapshot, load, jobs);
                return;
        }
        for (uint32_t s = 0; s < view->n_nodes; s++) {
                if (!jobs[0].pool[s] || load[s] > 0 || view->nodes[s].cores == 0)
                        continue;
                ret_held[s] = view->nodes[s].cores;
                snapshot_node(snapshot, s)->cores = 0;
        }
}

void spare_describe(struct snapshot *snapshot, const struct round_job *jobs, uint32_t *ret_held) {
        const struct rm_snapshot *view = snapshot_view(snapshot);
        cleanup_free uint64_t *load = xcalloc(view->n_nodes + 1u, sizeof(*load));
        bool any = false;

        for (uint32_t j = 0; j < view->n_jobs; j++) {
                any |= jobs[j].n_spare_nodes > 0;
                for (uint32_t g = 0; g < view->jobs[j].n_groups; g++)
                        if (view->jobs[j].groups[g].node >= 0)
                                load[view->jobs[j].groups[g].node] += view->jobs[j].groups[g].ranks;
        }
        for (uint32_t j = 0; any && j < view->n_jobs; j++) {
                bool needed = jobs[j].n_spare_nodes > 0 && needs_space(view, load, &view->jobs[j]);

                for (uint32_t i = 0; i < jobs[j].n_spare_nodes; i++) {
                        int32_t node = jobs[j].spare_nodes[i];

                        if (node < 0 || view->nodes[node].cores == 0)
                                continue;
                        if (needed || load[node] > 0) {
                                keep_others_off(snapshot, j, (uint32_t) node);
                                continue;
                        }
                        ret_held[node] = view->nodes[node].cores;
                        snapshot_node(snapshot, (uint32_t) node)->cores = 0;
                }
        }
        if (view->n_jobs > 0 && jobs[0].pool)
                describe_pool(snapshot, load, jobs, ret_held);
}

/* ---- choosing ---- */

struct spare_choice {
        struct spare_question question;
        uint32_t *cores; /* each node: that may be used, held ones included */
        uint32_t *load; /* each node: ranks there now, and those that are planned to be */
        bool *taken; /* each node: a spare of some job, or a head is there */
        uint32_t *here; /* scratch, all 0 */
};

static const struct rm_snapshot *view_of(const struct spare_choice *choice) {
        return snapshot_view(choice->question.fold->snapshot);
}

static void note_load(struct spare_choice *choice) {
        const struct rm_snapshot *view = view_of(choice);

        for (uint32_t j = 0; j < view->n_jobs; j++) {
                const struct rm_plan_job *planned = &choice->question.plan->jobs[j];

                for (uint32_t g = 0; g < view->jobs[j].n_groups; g++) {
                        if (view->jobs[j].groups[g].node >= 0)
                                choice->load[view->jobs[j].groups[g].node] += view->jobs[j].groups[g].ranks;
                        if (planned->decision == RM_PLACE)
                                choice->load[planned->group_node[g]] += view->jobs[j].groups[g].ranks;
                }
        }
}

static void note_taken(struct spare_choice *choice) {
        for (uint32_t j = 0; j < view_of(choice)->n_jobs; j++) {
                const struct round_job *job = &choice->question.jobs[j].given;

                if (job->head_node >= 0)
                        choice->taken[job->head_node] = true;
                if (job->head_moving_to >= 0)
                        choice->taken[job->head_moving_to] = true;
                for (uint32_t i = 0; i < job->n_spare_nodes; i++)
                        if (job->spare_nodes[i] >= 0)
                                choice->taken[job->spare_nodes[i]] = true;
        }
}

struct spare_choice *spare_choice_create(const struct spare_question *question) {
        struct spare_choice *choice = xcalloc(1, sizeof(*choice));
        uint32_t n;

        choice->question = *question;
        n = view_of(choice)->n_nodes;
        choice->cores = xcalloc(n + 1u, sizeof(*choice->cores));
        choice->load = xcalloc(n + 1u, sizeof(*choice->load));
        choice->taken = xcalloc(n + 1u, sizeof(*choice->taken));
        choice->here = xcalloc(n + 1u, sizeof(*choice->here));
        for (uint32_t s = 0; s < n; s++) {
                choice->cores[s] = question->held[s] ? question->held[s] : question->fold->real_cores[s];
                choice->taken[s] = question->pool && question->pool[s];
        }
        note_load(choice);
        note_taken(choice);
        return choice;
}

void spare_choice_destroy(struct spare_choice *choice) {
        if (!choice)
                return;
        free(choice->cores);
        free(choice->load);
        free(choice->taken);
        free(choice->here);
        free(choice);
}

/* Most ranks the job has on one node: what a spare must take over. */
static uint32_t most_on_one(struct spare_choice *choice, uint32_t j) {
        const struct rm_job *job = &view_of(choice)->jobs[j];
        const int32_t *node = choice->question.plan->jobs[j].group_node;
        uint32_t most = 0;

        for (uint32_t g = 0; g < job->n_groups; g++) {
                choice->here[node[g]] += job->groups[g].ranks;
                most = choice->here[node[g]] > most ? choice->here[node[g]] : most;
        }
        for (uint32_t g = 0; g < job->n_groups; g++)
                choice->here[node[g]] = 0;
        return most;
}

/* The job may go there if need be. */
static bool may_have(const struct spare_choice *choice, uint32_t j, uint32_t node) {
        const struct round_job *job = &choice->question.jobs[j].given;

        return !(job->kept_off && job->kept_off[node]) && job_node_limit(&choice->question.given->jobs[j], node) > 0;
}

static bool is_candidate(const struct spare_choice *choice, uint32_t j, uint32_t node, uint32_t cores) {
        return choice->cores[node] >= cores && choice->load[node] == 0 && !choice->taken[node] && may_have(choice, j, node);
}

uint32_t spare_choose(struct spare_choice *choice, uint32_t j, int32_t *ret_nodes) {
        const struct round_job *job = &choice->question.jobs[j].given;
        uint32_t n = 0, cores = most_on_one(choice, j);

        for (uint32_t i = 0; i < job->n_spare_nodes && n < job->spares; i++) {
                int32_t node = job->spare_nodes[i];

                if (node >= 0 && choice->cores[node] > 0 && choice->load[node] == 0 && may_have(choice, j, (uint32_t) node))
                        ret_nodes[n++] = node;
        }
        for (uint32_t s = 0; s < view_of(choice)->n_nodes && n < job->spares; s++)
                if (is_candidate(choice, j, s, cores)) {
                        choice->taken[s] = true;
                        ret_nodes[n++] = (int32_t) s;
                }
        return n;
}
