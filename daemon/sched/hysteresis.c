#include "daemon/sched/hysteresis.h"

#include <string.h>

#include "common/util.h"
#include "placement/cost.h"
#include "placement/pack.h"
#include "placement/topology/gauge.h"

struct settling {
        const struct rm_snapshot *snapshot;
        struct rm_plan *plan;
        uint64_t *load;   /* each node, of all jobs in the plan */
        uint32_t *here;   /* each node, of the job in hand; all 0 between jobs */
        uint8_t *scratch; /* each node */
        int32_t *try_node; /* groups of the largest job */
        uint32_t *island; /* each node: union-find of nodes that moves connect */
        const struct gauge *gauge; /* NULL: nothing is moved for the sake of traffic */
};

/* Moves that could be taken back at all. */
static bool may_return(const struct settling *s, const struct rm_job *job, uint32_t g, int32_t planned) {
        int32_t node = job->groups[g].node;

        if (node < 0 || node == planned)
                return false;
        return s->snapshot->nodes[node].cores > 0 && job_node_limit(job, (uint32_t) node) > 0;
}

static void move_group(struct settling *s, uint32_t j, uint32_t g, int32_t to) {
        const struct rm_job *job = &s->snapshot->jobs[j];
        int32_t *node = &s->plan->jobs[j].group_node[g];

        s->load[*node] -= job->groups[g].ranks;
        s->load[to] += job->groups[g].ranks;
        *node = to;
}

/* Bytes times hops that weigh as much as such costs of moves. */
static double worth(const struct settling *s, int64_t move_cost) {
        return (double) move_cost * (double) s->snapshot->params.bytes_per_cost;
}

/* Does traffic save more by the groups being on `planned` than by their being on `back`, and more
 * than those moves cost? */
static bool traffic_pays(const struct settling *s, const struct rm_job *job, const int32_t *planned, const int32_t *back) {
        double saved = s->gauge ? gauge_job(s->gauge, job, back) - gauge_job(s->gauge, job, planned) : 0;

        return saved > 0 && saved > worth(s, cost_job_moves(job, planned) - cost_job_moves(job, back));
}

static bool traffic_pays_group(const struct settling *s, const struct rm_job *job, const int32_t *planned, uint32_t g) {
        double saved = s->gauge ? gauge_group(s->gauge, job, planned, g, job->groups[g].node) -
                                          gauge_group(s->gauge, job, planned, g, planned[g])
                                : 0;

        return saved > 0 && saved > worth(s, job->groups[g].move_cost);
}

/* ---- a set of groups of one job ---- */

static int64_t job_cost(struct settling *s, const struct rm_job *job, const int32_t *node) {
        return cost_job(s->snapshot, job, node, s->scratch) + cost_job_moves(job, node);
}

/* Is the job within its limits and the nodes within their cores with its groups on `node` instead
 * of where the plan has them? */
static bool fits(struct settling *s, uint32_t j, const int32_t *node) {
        const struct rm_job *job = &s->snapshot->jobs[j];
        const int32_t *planned = s->plan->jobs[j].group_node;
        bool all = true;

        for (uint32_t g = 0; g < job->n_groups; g++)
                s->load[planned[g]] -= job->groups[g].ranks;
        for (uint32_t g = 0; g < job->n_groups; g++) {
                s->load[node[g]] += job->groups[g].ranks;
                s->here[node[g]] += job->groups[g].ranks;
        }
        for (uint32_t g = 0; g < job->n_groups; g++)
                all = all && s->load[node[g]] <= s->snapshot->nodes[node[g]].cores &&
                      s->here[node[g]] <= job_node_limit(job, (uint32_t) node[g]);
        for (uint32_t g = 0; g < job->n_groups; g++) {
                s->load[node[g]] -= job->groups[g].ranks;
                s->here[node[g]] = 0;
        }
        for (uint32_t g = 0; g < job->n_groups; g++)
                s->load[planned[g]] += job->groups[g].ranks;
        return all;
}

static bool return_job(struct settling *s, uint32_t j) {
        const struct rm_job *job = &s->snapshot->jobs[j];
        int32_t *planned = s->plan->jobs[j].group_node;
        bool any = false;

        for (uint32_t g = 0; g < job->n_groups; g++) {
                bool back = may_return(s, job, g, planned[g]);

                s->try_node[g] = back ? job->groups[g].node : planned[g];
                any |= back;
        }
        if (!any || job_cost(s, job, s->try_node) > job_cost(s, job, planned) || !fits(s, j, s->try_node) ||
            traffic_pays(s, job, planned, s->try_node))
                return false;
        for (uint32_t g = 0; g < job->n_groups; g++)
                if (planned[g] != s->try_node[g])
                        move_group(s, j, g, s->try_node[g]);
        return true;
}

/* ---- single groups ---- */

/* The cost of putting group g back: the change of the objective, less the cost of its move. `here`
 * holds the ranks of the job on each node. */
static int64_t price_of_return(const struct settling *s, const struct rm_job *job, uint32_t g, int32_t planned) {
        const struct rm_node *nodes = s->snapshot->nodes;
        int32_t home = job->groups[g].node;
        int64_t weight = s->snapshot->params.distribution_weight, ranks = job->groups[g].ranks;
        int64_t added = (nodes[home].penalty - nodes[planned].penalty) * ranks;

        added += s->here[home] == 0 ? weight : 0;
        added -= s->here[planned] == ranks ? weight : 0;
        return added * job->priority - job->groups[g].move_cost;
}

static bool return_groups(struct settling *s, uint32_t j) {
        const struct rm_job *job = &s->snapshot->jobs[j];
        int32_t *planned = s->plan->jobs[j].group_node;
        bool any = false;

        for (uint32_t g = 0; g < job->n_groups; g++)
                s->here[planned[g]] += job->groups[g].ranks;
        for (uint32_t g = 0; g < job->n_groups; g++) {
                uint32_t ranks = job->groups[g].ranks;
                int32_t home = job->groups[g].node, away = planned[g];

                if (!may_return(s, job, g, away) || s->load[home] + ranks > s->snapshot->nodes[home].cores ||
                    (uint64_t) s->here[home] + ranks > job_node_limit(job, (uint32_t) home) ||
                    price_of_return(s, job, g, away) > 0 || traffic_pays_group(s, job, planned, g))
                        continue;
                s->here[away] -= ranks;
                s->here[home] += ranks;
                move_group(s, j, g, home);
                any = true;
        }
        for (uint32_t g = 0; g < job->n_groups; g++) {
                s->here[planned[g]] = 0;
                if (job->groups[g].node >= 0)
                        s->here[job->groups[g].node] = 0;
        }
        return any;
}

/* ---- groups that take each other's places ---- */

static uint32_t island_of(struct settling *s, uint32_t node) {
        while (s->island[node] != node) {
                s->island[node] = s->island[s->island[node]];
                node = s->island[node];
        }
        return node;
}

static void find_islands(struct settling *s) {
        for (uint32_t n = 0; n < s->snapshot->n_nodes; n++)
                s->island[n] = n;
        for (uint32_t j = 0; j < s->snapshot->n_jobs; j++) {
                const struct rm_job *job = &s->snapshot->jobs[j];
                uint32_t first = UINT32_MAX;

                /* All moves of a job belong together: its cost is not a sum over groups. */
                for (uint32_t g = 0; s->plan->jobs[j].decision == RM_PLACE && g < job->n_groups; g++) {
                        int32_t planned = s->plan->jobs[j].group_node[g];

                        if (!may_return(s, job, g, planned))
                                continue;
                        s->island[island_of(s, (uint32_t) planned)] = island_of(s, (uint32_t) job->groups[g].node);
                        if (first != UINT32_MAX)
                                s->island[island_of(s, (uint32_t) planned)] = island_of(s, first);
                        first = (uint32_t) planned;
                }
        }
}

/* The groups of the island go back, or (undo) to where `before` had them. */
static void move_island(struct settling *s, uint32_t island, int32_t *const *before) {
        for (uint32_t j = 0; j < s->snapshot->n_jobs; j++) {
                const struct rm_job *job = &s->snapshot->jobs[j];

                for (uint32_t g = 0; s->plan->jobs[j].decision == RM_PLACE && g < job->n_groups; g++)
                        if (may_return(s, job, g, before[j][g]) && island_of(s, (uint32_t) before[j][g]) == island) {
                                bool back = s->plan->jobs[j].group_node[g] == before[j][g];

                                move_group(s, j, g, back ? job->groups[g].node : before[j][g]);
                        }
        }
}

static bool moves_in_island(struct settling *s, uint32_t j, uint32_t island, const int32_t *before) {
        const struct rm_job *job = &s->snapshot->jobs[j];

        for (uint32_t g = 0; s->plan->jobs[j].decision == RM_PLACE && g < job->n_groups; g++)
                if (may_return(s, job, g, before[g]))
                        return island_of(s, (uint32_t) before[g]) == island;
        return false;
}

/* As traffic_pays(), for all jobs of an island that has gone back. */
static bool traffic_pays_island(struct settling *s, uint32_t island, int32_t *const *before) {
        double saved = 0, price = 0;

        for (uint32_t j = 0; s->gauge && j < s->snapshot->n_jobs; j++) {
                const struct rm_job *job = &s->snapshot->jobs[j];
                const int32_t *back = s->plan->jobs[j].group_node;

                if (!moves_in_island(s, j, island, before[j]))
                        continue;
                saved += gauge_job(s->gauge, job, back) - gauge_job(s->gauge, job, before[j]);
                price += worth(s, cost_job_moves(job, before[j]) - cost_job_moves(job, back));
        }
        return saved > 0 && saved > price;
}

static bool all_within(struct settling *s) {
        for (uint32_t n = 0; n < s->snapshot->n_nodes; n++)
                if (s->load[n] > s->snapshot->nodes[n].cores)
                        return false;
        for (uint32_t j = 0; j < s->snapshot->n_jobs; j++)
                if (s->plan->jobs[j].decision == RM_PLACE && !fits(s, j, s->plan->jobs[j].group_node))
                        return false;
        return true;
}

static void return_islands(struct settling *s) {
        uint32_t n_jobs = s->snapshot->n_jobs;
        cleanup_free bool *requested = xcalloc(s->snapshot->n_nodes + 1u, sizeof(*requested));
        int32_t **before = xcalloc(n_jobs + 1u, sizeof(*before));
        int64_t now, then;

        find_islands(s);
        for (uint32_t j = 0; j < n_jobs; j++) {
                const struct rm_job *job = &s->snapshot->jobs[j];

                before[j] = xcalloc(job->n_groups, sizeof(**before));
                memcpy(before[j], s->plan->jobs[j].group_node, sizeof(**before) * job->n_groups);
                for (uint32_t g = 0; s->plan->jobs[j].decision == RM_PLACE && g < job->n_groups; g++)
                        if (may_return(s, job, g, before[j][g]))
                                requested[island_of(s, (uint32_t) before[j][g])] = true;
        }
        for (uint32_t island = 0; island < s->snapshot->n_nodes; island++) {
                if (!requested[island] || cost_plan(s->snapshot, s->plan, &now) < 0)
                        continue;
                move_island(s, island, before);
                if (!all_within(s) || cost_plan(s->snapshot, s->plan, &then) < 0 || then > now ||
                    traffic_pays_island(s, island, before))
                        move_island(s, island, before);
        }
        for (uint32_t j = 0; j < n_jobs; j++)
                free(before[j]);
        free(before);
}

/* ---- all of it ---- */

static bool has_to_return(const struct settling *s, uint32_t j) {
        const struct rm_plan_job *planned = &s->plan->jobs[j];

        for (uint32_t g = 0; planned->decision == RM_PLACE && g < s->snapshot->jobs[j].n_groups; g++)
                if (may_return(s, &s->snapshot->jobs[j], g, planned->group_node[g]))
                        return true;
        return false;
}

static bool any_to_return(const struct settling *s) {
        for (uint32_t j = 0; j < s->snapshot->n_jobs; j++)
                if (has_to_return(s, j))
                        return true;
        return false;
}

/* Cores were chosen for the node the policy chose. Returns for how many groups that is another one
 * now. */
static uint32_t forget_cores(const struct rm_job *job, struct rm_plan_job *planned, const int32_t *chosen) {
        uint32_t back = 0;

        for (uint32_t g = 0; g < job->n_groups; g++) {
                if (chosen[g] == planned->group_node[g])
                        continue;
                back++;
                for (uint32_t i = 0; i < job->groups[g].ranks; i++)
                        planned->rank_core[job->groups[g].first_rank + i] = RM_NO_CORE;
        }
        return back;
}

void hysteresis_apply(const struct rm_snapshot *snapshot, struct rm_plan *plan, uint32_t *ret_back) {
        uint32_t n = snapshot->n_nodes + 1u, most_groups = 1;
        cleanup_free uint64_t *load = xcalloc(n, sizeof(*load));
        cleanup_free uint32_t *here = xcalloc(n, sizeof(*here)), *island = xcalloc(n, sizeof(*island));
        cleanup_free uint8_t *scratch = xcalloc(n, 1);
        cleanup_free int32_t *try_node = NULL, *chosen = NULL;
        size_t total_groups = 0, at = 0;
        struct settling s = {
                .snapshot = snapshot, .plan = plan, .load = load, .here = here, .scratch = scratch, .island = island
        };
        struct gauge gauge;
        bool again = true;

        memset(ret_back, 0, sizeof(*ret_back) * snapshot->n_jobs);
        if (!any_to_return(&s))
                return;
        if (snapshot->params.move_budget > 0) {
                gauge_init(&gauge, snapshot);
                s.gauge = &gauge;
        }
        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                const struct rm_job *job = &snapshot->jobs[j];

                most_groups = job->n_groups > most_groups ? job->n_groups : most_groups;
                total_groups += job->n_groups;
                for (uint32_t g = 0; plan->jobs[j].decision == RM_PLACE && g < job->n_groups; g++)
                        load[plan->jobs[j].group_node[g]] += job->groups[g].ranks;
        }
        s.try_node = try_node = xcalloc(most_groups, sizeof(*try_node));
        chosen = xcalloc(total_groups + 1, sizeof(*chosen));
        for (uint32_t j = 0; j < snapshot->n_jobs; at += snapshot->jobs[j].n_groups, j++)
                memcpy(chosen + at, plan->jobs[j].group_node, sizeof(*chosen) * snapshot->jobs[j].n_groups);
        /* Each return saves a move, so this ends; a few rounds find nearly all there is. */
        for (int round = 0; round < 8 && again; round++) {
                again = false;
                for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                        if (has_to_return(&s, j)) {
                                again |= return_job(&s, j);
                                again |= return_groups(&s, j);
                        }
        }
        if (any_to_return(&s))
                return_islands(&s);
        at = 0;
        for (uint32_t j = 0; j < snapshot->n_jobs; at += snapshot->jobs[j].n_groups, j++)
                ret_back[j] = forget_cores(&snapshot->jobs[j], &plan->jobs[j], chosen + at);
        if (s.gauge)
                gauge_finish(&gauge);
}
