#include "policies/distrib/fitting.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placement/cost.h"
#include "placement/pack.h"
#include "policies/distrib/roll.h"

/* ---- making ---- */

static int compare_jobs(const void *a, const void *b) {
        const struct fit_job *x = a, *y = b;

        if (x->priority != y->priority)
                return x->priority > y->priority ? -1 : 1;
        return x->index < y->index ? -1 : x->index > y->index;
}

static bool is_free(const struct rm_job *job) {
        return job->group_size == 1 && !job->node_limit && !job_runs(job);
}

static int64_t cost_of(const struct fitting *fitting, const struct fit_job *job) {
        int64_t cost = 0;

        for (uint32_t i = 0; i < job->n_pieces; i++)
                cost += fitting->snapshot->nodes[job->pieces[i].node].penalty * (int64_t) job->pieces[i].ranks + fitting->weight;
        return cost * job->priority;
}

/* Groups of a fresh job are put node by node, so pieces are runs. */
static bool read_job(struct fitting *fitting, struct fit_job *job, const int32_t *node, uint32_t *on_node) {
        job->pieces = arena_alloc(&fitting->arena, job->ranks, sizeof(*job->pieces));
        job->old_pieces = arena_alloc(&fitting->arena, job->ranks, sizeof(*job->old_pieces));
        if (fitting->arena.failed)
                return false;
        for (uint32_t g = 0; g < job->ranks; g++)
                on_node[node[g]]++;
        for (uint32_t g = 0; g < job->ranks; g++)
                if (on_node[node[g]] > 0) {
                        job->pieces[job->n_pieces++] = (struct fit_piece) { (uint32_t) node[g], on_node[node[g]] };
                        on_node[node[g]] = 0;
                }
        job->cost = cost_of(fitting, job);
        return true;
}

static bool read_plan(struct fitting *fitting, const struct rm_plan *plan) {
        const struct rm_snapshot *snapshot = fitting->snapshot;
        int64_t *free_cores = calloc(snapshot->n_nodes + 1u, sizeof(*free_cores));
        uint32_t *on_node = calloc(snapshot->n_nodes + 1u, sizeof(*on_node));
        bool done = free_cores && on_node;

        for (uint32_t s = 0; s < snapshot->n_nodes && done; s++)
                free_cores[s] = snapshot->nodes[s].cores;
        if (done) /* classes for nodes that are empty, whatever is on them now */
                done = shelf_init(&fitting->shelf, snapshot, free_cores) == 0;
        for (uint32_t j = 0; j < snapshot->n_jobs && done; j++) {
                const struct rm_job *job = &snapshot->jobs[j];

                if (plan->jobs[j].decision != RM_PLACE)
                        continue;
                for (uint32_t g = 0; g < job->n_groups; g++)
                        free_cores[plan->jobs[j].group_node[g]] -= job->groups[g].ranks;
                if (!is_free(job))
                        continue;
                fitting->jobs[fitting->n_jobs] = (struct fit_job) { .index = j, .ranks = job->ranks, .priority = job->priority };
                done = read_job(fitting, &fitting->jobs[fitting->n_jobs++], plan->jobs[j].group_node, on_node);
                fitting->most_ranks = job->ranks > fitting->most_ranks ? job->ranks : fitting->most_ranks;
        }
        for (uint32_t s = 0; s < snapshot->n_nodes && done; s++)
                shelf_set(&fitting->shelf, s, free_cores[s]);
        free(free_cores);
        free(on_node);
        return done;
}

static void add_tenant(struct fitting *fitting, uint32_t job, uint32_t node) {
        fitting->tenants[fitting->first_tenant[node] + fitting->n_tenants[node]++] = job;
}

static void remove_tenant(struct fitting *fitting, uint32_t job, uint32_t node) {
        uint32_t *tenants = fitting->tenants + fitting->first_tenant[node], i = 0;

        while (tenants[i] != job)
                i++;
        tenants[i] = tenants[--fitting->n_tenants[node]];
}

static bool list_tenants(struct fitting *fitting) {
        const struct rm_snapshot *snapshot = fitting->snapshot;

        fitting->first_tenant = arena_alloc(&fitting->arena, snapshot->n_nodes + 1ul, sizeof(*fitting->first_tenant));
        fitting->n_tenants = arena_alloc(&fitting->arena, snapshot->n_nodes + 1ul, sizeof(*fitting->n_tenants));
        if (fitting->arena.failed)
                return false;
        for (uint32_t s = 0; s < snapshot->n_nodes; s++) {
                uint32_t most = snapshot->nodes[s].cores < fitting->n_jobs ? snapshot->nodes[s].cores : fitting->n_jobs;

                fitting->first_tenant[s + 1] = fitting->first_tenant[s] + most;
        }
        fitting->tenants = arena_alloc(&fitting->arena, fitting->first_tenant[snapshot->n_nodes] + 1, sizeof(*fitting->tenants));
        if (fitting->arena.failed)
                return false;
        for (uint32_t i = 0; i < fitting->n_jobs; i++)
                for (uint32_t k = 0; k < fitting->jobs[i].n_pieces; k++)
                        add_tenant(fitting, i, fitting->jobs[i].pieces[k].node);
        return true;
}

bool fitting_init(struct fitting *fitting, const struct rm_snapshot *snapshot, const struct rm_plan *plan, uint64_t seed) {
        *fitting = (struct fitting) {
                .snapshot = snapshot,
                .weight = snapshot->params.distribution_weight,
                .random = ROLL_BEGIN + seed,
        };
        fitting->jobs = arena_alloc(&fitting->arena, snapshot->n_jobs + 1ul, sizeof(*fitting->jobs));
        if (!fitting->jobs || !read_plan(fitting, plan) || fitting->n_jobs == 0)
                return false;
        qsort(fitting->jobs, fitting->n_jobs, sizeof(*fitting->jobs), compare_jobs);
        fitting->worth = arena_alloc(&fitting->arena, shelf_classes(&fitting->shelf) + 1ul, sizeof(*fitting->worth));
        return fitting->worth && list_tenants(fitting);
}

void fitting_finish(struct fitting *fitting) {
        shelf_finish(&fitting->shelf);
        arena_finish(&fitting->arena);
}

/* ---- prices ---- */

void fitting_set_prices(struct fitting *fitting, const struct relaxation *relaxation) {
        const struct shelf *shelf = &fitting->shelf;

        /* Known sizes first, then those between: as the next smaller one, for each core. */
        for (uint32_t i = 0; i < shelf_classes(shelf); i++)
                fitting->worth[i] = -1;
        for (uint32_t i = 0; i < relaxation->n_classes; i++) {
                const struct node_class *class = &relaxation->classes[i];

                for (uint32_t p = 0; p < shelf->n_penalties; p++)
                        if (shelf->penalties[p] == class->penalty && class->cores < shelf->stride)
                                fitting->worth[p * shelf->stride + class->cores] =
                                        ldexp((double) class->price, -relaxation->shift) * class->cores;
        }
        for (uint32_t p = 0; p < shelf->n_penalties; p++) {
                double each = 0;

                for (uint32_t f = 0; f < shelf->stride; f++) {
                        double *worth = &fitting->worth[p * shelf->stride + f];

                        if (*worth < 0)
                                *worth = each * f;
                        else if (f > 0)
                                each = *worth / f;
                }
        }
}

void fitting_set_worth(struct fitting *fitting, const struct pieces *pieces) {
        const struct shelf *shelf = &fitting->shelf;

        for (uint32_t p = 0; p < shelf->n_penalties; p++)
                for (uint32_t f = 0; f < shelf->stride; f++)
                        fitting->worth[p * shelf->stride + f] = pieces_worth(pieces, shelf->penalties[p], f);
}

/* ---- out and in ---- */

static void occupy(struct fitting *fitting, const struct fit_job *job, const struct fit_piece *piece) {
        add_tenant(fitting, (uint32_t) (job - fitting->jobs), piece->node);
        shelf_set(&fitting->shelf, piece->node, (int64_t) fitting->shelf.free_of[piece->node] - piece->ranks);
}

void fitting_take_out(struct fitting *fitting, const struct fit_job *job) {
        for (uint32_t i = 0; i < job->n_pieces; i++) {
                const struct fit_piece *piece = &job->pieces[i];

                remove_tenant(fitting, (uint32_t) (job - fitting->jobs), piece->node);
                shelf_set(&fitting->shelf, piece->node, (int64_t) fitting->shelf.free_of[piece->node] + piece->ranks);
        }
}

static bool is_tenant(const struct fitting *fitting, uint32_t job, uint32_t node) {
        for (uint32_t i = 0; i < fitting->n_tenants[node]; i++)
                if (fitting->tenants[fitting->first_tenant[node] + i] == job)
                        return true;
        return false;
}

void fitting_add_piece(struct fitting *fitting, struct fit_job *job, uint32_t node, uint32_t ranks) {
        uint32_t i = 0;

        if (!is_tenant(fitting, (uint32_t) (job - fitting->jobs), node)) {
                job->pieces[job->n_pieces] = (struct fit_piece) { node, ranks };
                occupy(fitting, job, &job->pieces[job->n_pieces++]);
                return;
        }
        while (job->pieces[i].node != node)
                i++;
        job->pieces[i].ranks += ranks;
        shelf_set(&fitting->shelf, node, (int64_t) fitting->shelf.free_of[node] - ranks);
}

void fitting_settle(const struct fitting *fitting, struct fit_job *job) {
        const struct shelf *shelf = &fitting->shelf;

        job->cost = cost_of(fitting, job);
        job->paid = (double) job->cost;
        for (uint32_t i = 0; i < job->n_pieces; i++) {
                uint32_t node = job->pieces[i].node, left = shelf->free_of[node];
                const double *worth = fitting->worth + (size_t) shelf->penalty_of[node] * shelf->stride;

                job->paid += worth[left + job->pieces[i].ranks] - worth[left];
        }
}

void fitting_remember(struct fit_job *job) {
        memcpy(job->old_pieces, job->pieces, sizeof(*job->pieces) * job->n_pieces);
        job->n_old_pieces = job->n_pieces;
        job->old_cost = job->cost;
        job->old_paid = job->paid;
}

void fitting_restore(struct fitting *fitting, struct fit_job *job) {
        memcpy(job->pieces, job->old_pieces, sizeof(*job->pieces) * job->n_old_pieces);
        job->n_pieces = job->n_old_pieces;
        job->cost = job->old_cost;
        job->paid = job->old_paid;
        for (uint32_t i = 0; i < job->n_pieces; i++)
                occupy(fitting, job, &job->pieces[i]);
}

void fitting_write(const struct fitting *fitting, struct rm_plan *plan) {
        for (uint32_t i = 0; i < fitting->n_jobs; i++) {
                const struct fit_job *job = &fitting->jobs[i];
                int32_t *node = plan->jobs[job->index].group_node;

                for (uint32_t k = 0; k < job->n_pieces; k++)
                        for (uint32_t rank = 0; rank < job->pieces[k].ranks; rank++)
                                *node++ = (int32_t) job->pieces[k].node;
        }
}
