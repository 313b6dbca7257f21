#include "policies/distrib/repair.h"

#include <errno.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "placement/cost.h"
#include "placement/pack.h"

/* The time it takes to look at a node, for a place of a job. */
static const double scan_usec = 0.003;

struct repair {
        const struct rm_snapshot *snapshot;
        const struct relaxation *relaxation;
        const struct portion *portions; /* by demands */
        uint32_t *free_cores;           /* each node */
        int32_t *answer;                /* nodes of the groups of all jobs, one job after another */
        /* Each node, all 0 between jobs: of the job in hand, */
        uint32_t *full; /* full groups there, */
        uint32_t *here; /* those that run there */
        uint8_t *scratch;
        int32_t rest_node;
        uint32_t left; /* full groups that are nowhere yet */
        struct arena arena;
};

/* ---- what is left of a job ---- */

/* The price of a full group, on average: the first `groups` of those that run there need not
 * move. */
static double price_of(const struct repair *repair, const struct rm_job *job, double move_cost, uint32_t node, uint32_t groups) {
        uint32_t there = repair->full[node], at_home = repair->here[node] > there ? repair->here[node] - there : 0;
        double price = (double) job->priority * (double) repair->snapshot->nodes[node].penalty * job->group_size;

        if (there == 0 && repair->rest_node != (int32_t) node)
                price += (double) (job->priority * repair->snapshot->params.distribution_weight) / groups;
        return price - move_cost * (at_home < groups ? at_home : groups) / groups;
}

/* The best node for some of the full groups. False: there is none. */
static bool put_some(struct repair *repair, const struct rm_job *job, double move_cost) {
        uint32_t best = 0, best_groups = 0;
        double least = DBL_MAX;

        for (uint32_t s = 0; s < repair->snapshot->n_nodes; s++) {
                uint32_t groups = repair->free_cores[s] / job->group_size;
                double price;

                groups = groups < repair->left ? groups : repair->left;
                if (groups == 0 || (price = price_of(repair, job, move_cost, s, groups)) >= least)
                        continue;
                least = price;
                best = s;
                best_groups = groups;
        }
        repair->full[best] += best_groups;
        repair->free_cores[best] -= best_groups * job->group_size;
        repair->left -= best_groups;
        return best_groups > 0;
}

/* The smaller last group, beside others if it can be. */
static bool put_rest(struct repair *repair, const struct rm_job *job) {
        const struct rm_snapshot *snapshot = repair->snapshot;
        uint32_t rest = job_rest_ranks(job);
        int32_t runs_on = job->groups[job->n_groups - 1].node;
        int64_t least = INT64_MAX;

        for (uint32_t s = 0; s < snapshot->n_nodes; s++) {
                int64_t price = job->priority * snapshot->nodes[s].penalty * rest;

                if (repair->free_cores[s] < rest)
                        continue;
                price += repair->full[s] > 0 ? 0 : job->priority * snapshot->params.distribution_weight;
                price -= runs_on == (int32_t) s ? job->groups[job->n_groups - 1].move_cost : 0;
                if (price < least) {
                        least = price;
                        repair->rest_node = (int32_t) s;
                }
        }
        if (repair->rest_node >= 0)
                repair->free_cores[repair->rest_node] -= rest;
        return repair->rest_node >= 0;
}

/* ---- one job ---- */

static void read_portions(struct repair *repair, const struct rm_job *job, const struct portion *portions, uint32_t n) {
        for (uint32_t i = 0; i < n; i++) {
                repair->full[portions[i].node] = portions[i].ranks / job->group_size;
                repair->left -= portions[i].ranks / job->group_size;
                if (portions[i].ranks % job->group_size > 0)
                        repair->rest_node = (int32_t) portions[i].node;
        }
}

/* Reads where the job's groups are, and returns the rough cost of moving one of them. */
static double read_groups(struct repair *repair, const struct rm_job *job) {
        double sum = 0;
        uint32_t n = 0;

        for (uint32_t g = 0; g < job_full_groups(job); g++)
                if (job->groups[g].node >= 0) {
                        repair->here[job->groups[g].node]++;
                        sum += (double) job->groups[g].move_cost;
                        n++;
                }
        return n > 0 ? sum / n : 0;
}

/* 0, or -ENOSPC: no room was found. */
static int put_job(struct repair *repair, uint32_t demand, const struct portion *portions, uint32_t n, int32_t *ret_node) {
        const struct rm_job *job = &repair->snapshot->jobs[repair->relaxation->demands[demand].job];
        double move_cost = read_groups(repair, job);
        bool done = true;
        int r = -ENOSPC;

        repair->left = job_full_groups(job);
        repair->rest_node = RM_NO_NODE;
        read_portions(repair, job, portions, n);
        while (done && repair->left > 0)
                done = put_some(repair, job, move_cost);
        if (done && job_rest_ranks(job) > 0 && repair->rest_node < 0)
                done = put_rest(repair, job);
        if (done)
                r = pack_name_groups(job, repair->snapshot->n_nodes, repair->full, repair->rest_node, ret_node);
        for (uint32_t g = 0; g < job->n_groups; g++)
                if (job->groups[g].node >= 0)
                        repair->here[job->groups[g].node] = 0;
        return r;
}

/* ---- all of them ---- */

double repair_work_usec(const struct rm_snapshot *snapshot, const struct relaxation *relaxation, const struct portion *portions,
                        uint32_t n) {
        double left = 0, cores = 0, places;

        for (uint32_t t = 0; t < relaxation->n_demands; t++)
                left += relaxation->demands[t].ranks;
        for (uint32_t i = 0; i < n; i++)
                left -= portions[i].ranks;
        for (uint32_t s = 0; s < snapshot->n_nodes; s++)
                cores += snapshot->nodes[s].cores;
        places = left * snapshot->n_nodes / (cores + 1) + 3.0 * relaxation->n_demands;
        return places * snapshot->n_nodes * scan_usec;
}

static int compare_portions(const void *a, const void *b) {
        const struct portion *x = a, *y = b;

        if (x->demand != y->demand)
                return x->demand < y->demand ? -1 : 1;
        return x->node < y->node ? -1 : x->node > y->node;
}

static bool applies(const struct rm_snapshot *snapshot, const struct relaxation *relaxation) {
        for (uint32_t t = 0; t < relaxation->n_demands; t++) {
                const struct rm_job *job = &snapshot->jobs[relaxation->demands[t].job];

                if (job->node_limit)
                        return false;
                for (uint32_t g = 0; g < job->n_groups; g++)
                        if (job->groups[g].node >= 0 && (job->groups[g].flags & RM_GROUP_PINNED))
                                return false;
        }
        return true;
}

static int init(struct repair *repair, const struct portion *portions, uint32_t n) {
        const struct rm_snapshot *snapshot = repair->snapshot;
        struct portion *sorted = arena_alloc(&repair->arena, n, sizeof(*sorted));
        size_t groups = 0, nodes = snapshot->n_nodes;

        for (uint32_t t = 0; t < repair->relaxation->n_demands; t++)
                groups += snapshot->jobs[repair->relaxation->demands[t].job].n_groups;
        repair->free_cores = arena_alloc(&repair->arena, nodes, sizeof(*repair->free_cores));
        repair->full = arena_alloc(&repair->arena, nodes, sizeof(*repair->full));
        repair->here = arena_alloc(&repair->arena, nodes, sizeof(*repair->here));
        repair->scratch = arena_alloc(&repair->arena, nodes, sizeof(*repair->scratch));
        repair->answer = arena_alloc(&repair->arena, groups, sizeof(*repair->answer));
        if (repair->arena.failed)
                return -ENOMEM;
        for (uint32_t s = 0; s < nodes; s++)
                repair->free_cores[s] = snapshot->nodes[s].cores;
        for (uint32_t i = 0; i < n; i++) {
                sorted[i] = portions[i];
                repair->free_cores[portions[i].node] -= portions[i].ranks;
        }
        qsort(sorted, n, sizeof(*sorted), compare_portions);
        repair->portions = sorted;
        return 0;
}

/* Puts all groups into repair->answer; *ret_cost: its cost. */
static int put_all(struct repair *repair, uint32_t n, int64_t *ret_cost) {
        int32_t *node = repair->answer;
        int64_t cost = 0;
        int r = 0;

        for (uint32_t t = 0, first = 0, end; t < repair->relaxation->n_demands && r == 0; t++, first = end) {
                const struct rm_job *job = &repair->snapshot->jobs[repair->relaxation->demands[t].job];

                for (end = first; end < n && repair->portions[end].demand == t; end++)
                        ;
                r = put_job(repair, t, repair->portions + first, end - first, node);
                if (r == 0)
                        cost += cost_job(repair->snapshot, job, node, repair->scratch) + cost_job_moves(job, node);
                node += job->n_groups;
        }
        *ret_cost = cost;
        return r;
}

int repair_run(const struct rm_snapshot *snapshot, const struct relaxation *relaxation, const struct portion *portions, uint32_t n,
               struct rm_plan *plan, int64_t *cost) {
        struct repair repair = { .snapshot = snapshot, .relaxation = relaxation };
        const int32_t *node;
        int64_t now = 0;
        int r = 0;

        if (!applies(snapshot, relaxation))
                return 0;
        r = init(&repair, portions, n);
        if (r == 0)
                r = put_all(&repair, n, &now);
        node = repair.answer;
        for (uint32_t t = 0; t < relaxation->n_demands && r == 0 && now < *cost; t++) {
                uint32_t job = relaxation->demands[t].job, n_groups = snapshot->jobs[job].n_groups;

                memcpy(plan->jobs[job].group_node, node, sizeof(*node) * n_groups);
                node += n_groups;
        }
        if (r == 0 && now < *cost)
                *cost = now;
        arena_finish(&repair.arena);
        return r == -ENOSPC ? 0 : r;
}
