#include "policies/distrib/problem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/pack.h"

/* The groups that one job has on each node now. */
struct standing {
        uint32_t *here;   /* full groups */
        uint32_t *pinned; /* of these */
        uint32_t *ranks;  /* pinned, the smaller last group included */
        size_t *first;    /* its movable full groups there, cheapest first: move costs from this entry on.. */
        uint32_t *filled;
        int64_t *leave; /* ..of this */
};

static int64_t gcd(int64_t a, int64_t b) {
        while (b != 0) {
                int64_t rest = a % b;

                a = b;
                b = rest;
        }
        return a < 0 ? -a : a;
}

static int compare_cost(const void *a, const void *b) {
        int64_t x = *(const int64_t *) a, y = *(const int64_t *) b;

        return x < y ? -1 : x > y;
}

/* ---- where a job stands ---- */

static bool standing_init(struct standing *standing, struct arena *arena, uint32_t n_nodes, uint32_t n_groups) {
        standing->here = arena_alloc(arena, n_nodes, sizeof(*standing->here));
        standing->pinned = arena_alloc(arena, n_nodes, sizeof(*standing->pinned));
        standing->ranks = arena_alloc(arena, n_nodes, sizeof(*standing->ranks));
        standing->first = arena_alloc(arena, n_nodes, sizeof(*standing->first));
        standing->filled = arena_alloc(arena, n_nodes, sizeof(*standing->filled));
        standing->leave = arena_alloc(arena, n_groups, sizeof(*standing->leave));
        return !arena->failed;
}

static void standing_count(struct standing *standing, const struct rm_job *job) {
        uint32_t full = job_full_groups(job);
        size_t first = 0;

        for (uint32_t g = 0; g < job->n_groups; g++) {
                int32_t node = job->groups[g].node;
                bool pinned = job->groups[g].flags & RM_GROUP_PINNED;

                if (node < 0)
                        continue;
                if (pinned)
                        standing->ranks[node] += job->groups[g].ranks;
                if (g < full) {
                        standing->here[node]++;
                        standing->pinned[node] += pinned;
                }
        }
        for (uint32_t g = 0; g < full; g++) {
                int32_t node = job->groups[g].node;

                if (node < 0 || (job->groups[g].flags & RM_GROUP_PINNED))
                        continue;
                if (standing->filled[node] == 0) {
                        standing->first[node] = first;
                        first += standing->here[node] - standing->pinned[node];
                }
                standing->leave[standing->first[node] + standing->filled[node]++] = job->groups[g].move_cost;
        }
        for (uint32_t g = 0; g < full; g++) {
                int32_t node = job->groups[g].node;

                if (node < 0 || standing->filled[node] == 0)
                        continue;
                qsort(standing->leave + standing->first[node], standing->filled[node], sizeof(*standing->leave), compare_cost);
                standing->filled[node] = 0;
        }
}

static void standing_clear(struct standing *standing, const struct rm_job *job) {
        for (uint32_t g = 0; g < job->n_groups; g++) {
                int32_t node = job->groups[g].node;

                if (node >= 0)
                        standing->here[node] = standing->pinned[node] = standing->ranks[node] = 0;
        }
}

/* ---- cells ---- */

static uint32_t cell_space(const struct rm_snapshot *snapshot, const struct rm_job *job, uint32_t node, uint32_t pinned_ranks) {
        uint32_t space = snapshot->nodes[node].cores, limit = job_node_limit(job, node);

        if (limit < space)
                space = limit;
        if (space < pinned_ranks)
                space = pinned_ranks;
        return space < job->ranks ? space : job->ranks;
}

static int64_t price_of(const struct problem *problem, const struct rm_job *job, uint32_t node, const struct standing *standing,
                        uint32_t x, uint32_t y) {
        const struct rm_snapshot *snapshot = problem->snapshot;
        uint32_t full = job_full_groups(job), rest = job_rest_ranks(job), here = standing->here[node];
        uint32_t ranks = x * job->group_size + y * rest;
        const struct rm_group *last = rest > 0 ? &job->groups[full] : NULL;
        int64_t price;

        if (x < standing->pinned[node] ||
            (last && last->node >= 0 && (last->flags & RM_GROUP_PINNED) && (last->node == (int32_t) node) != (y == 1)))
                return PRICE_NEVER;
        if (ranks > cell_space(snapshot, job, node, standing->ranks[node]))
                return PRICE_NEVER;
        price = snapshot->nodes[node].penalty * (int64_t) ranks + (ranks > 0 ? snapshot->params.distribution_weight : 0);
        price *= job->priority;
        for (uint32_t i = 0; x + i < here; i++)
                price += standing->leave[standing->first[node] + i];
        if (last && last->node == (int32_t) node && y == 0)
                price += last->move_cost;
        return price;
}

static void shape_cell(const struct problem *problem, const struct rm_job *job, uint32_t node, const struct standing *standing,
                       struct cell *cell) {
        uint32_t space = cell_space(problem->snapshot, job, node, standing->ranks[node]), rest = job_rest_ranks(job);
        uint32_t n_x = space / job->group_size + 1;

        if (n_x > job_full_groups(job) + 1)
                n_x = job_full_groups(job) + 1;
        cell->n_x = n_x;
        cell->here = standing->here[node];
        cell->n = rest > 0 && rest <= space ? 2 * n_x : n_x;
}

static int fill_cells(struct problem *problem, struct standing *standing, size_t max_prices) {
        size_t n = 0;

        for (uint32_t j = 0; j < problem->n_jobs; j++) {
                const struct rm_job *job = &problem->snapshot->jobs[problem->jobs[j].index];

                standing_count(standing, job);
                for (uint32_t s = 0; s < problem->n_nodes; s++) {
                        struct cell *cell = &problem->cells[(size_t) j * problem->n_nodes + s];

                        shape_cell(problem, job, problem->nodes[s].index, standing, cell);
                        cell->first = n;
                        n += cell->n;
                }
                standing_clear(standing, job);
                if (n > max_prices)
                        return -EFBIG;
        }
        problem->n_prices = n;
        problem->prices = arena_alloc(&problem->arena, n, sizeof(*problem->prices));
        if (!problem->prices)
                return -ENOMEM;
        for (uint32_t j = 0; j < problem->n_jobs; j++) {
                const struct rm_job *job = &problem->snapshot->jobs[problem->jobs[j].index];

                standing_count(standing, job);
                for (uint32_t s = 0; s < problem->n_nodes; s++) {
                        const struct cell *cell = problem_cell(problem, j, s);

                        for (uint32_t v = 0; v < cell->n; v++)
                                problem->prices[cell->first + v] =
                                        price_of(problem, job, problem->nodes[s].index, standing, v % cell->n_x, v / cell->n_x);
                }
                standing_clear(standing, job);
        }
        return 0;
}

/* ---- the whole ---- */

/* Every job is on nodes as often as it has groups, so what a price has in common with those of the
 * job's other cells, for each group, does not count. */
static int64_t common_step(const struct problem *problem) {
        int64_t step = 0;

        for (uint32_t j = 0; j < problem->n_jobs; j++) {
                int64_t slope_x = 0, slope_y = 0;
                bool known_x = false, known_y = false;

                for (uint32_t s = 0; s < problem->n_nodes; s++) {
                        const struct cell *cell = problem_cell(problem, j, s);
                        const int64_t *price = problem->prices + cell->first;
                        int64_t base = 0;
                        uint32_t v0 = 0;

                        while (v0 < cell->n && price[v0] >= PRICE_NEVER)
                                v0++;
                        if (v0 < cell->n)
                                base = price[v0];
                        for (uint32_t v = v0 + 1; v < cell->n; v++) {
                                int64_t dx = (int64_t) (v % cell->n_x) - v0 % cell->n_x,
                                        dy = (int64_t) (v / cell->n_x) - v0 / cell->n_x;

                                if (price[v] >= PRICE_NEVER)
                                        continue;
                                if (!known_x && dx == 1 && dy == 0) {
                                        slope_x = price[v] - base;
                                        known_x = true;
                                }
                                if (!known_y && dx == 0 && dy == 1) {
                                        slope_y = price[v] - base;
                                        known_y = true;
                                }
                                step = gcd(step, price[v] - base - dx * slope_x - dy * slope_y);
                        }
                }
        }
        return step;
}

static void choose_unit(struct problem *problem, const struct rm_plan *plan) {
        int64_t unit = 0;

        for (uint32_t j = 0; j < problem->snapshot->n_jobs; j++)
                if (plan->jobs[j].decision == RM_PLACE)
                        unit = gcd(gcd(unit, problem->snapshot->jobs[j].group_size), job_rest_ranks(&problem->snapshot->jobs[j]));
        problem->unit_ranks = unit > 0 ? (uint32_t) unit : 1;
}

static void list_jobs(struct problem *problem, const struct rm_plan *plan) {
        for (uint32_t j = 0; j < problem->snapshot->n_jobs; j++) {
                const struct rm_job *job = &problem->snapshot->jobs[j];

                if (plan->jobs[j].decision != RM_PLACE)
                        continue;
                problem->jobs[problem->n_jobs++] = (struct problem_job) {
                        .index = j,
                        .full = job_full_groups(job),
                        .size = job->group_size / problem->unit_ranks,
                        .rest = job_rest_ranks(job) / problem->unit_ranks,
                        .units = job->ranks / problem->unit_ranks,
                        .priority = job->priority,
                };
        }
}

/* Nodes that have room, or that groups of the jobs are on: to leave one costs. */
static bool list_nodes(struct problem *problem) {
        const struct rm_snapshot *snapshot = problem->snapshot;
        uint64_t *pinned = arena_alloc(&problem->arena, snapshot->n_nodes, sizeof(*pinned));
        bool *used = arena_alloc(&problem->arena, snapshot->n_nodes, sizeof(*used));

        if (!pinned || !used)
                return false;
        for (uint32_t j = 0; j < problem->n_jobs; j++) {
                const struct rm_job *job = &snapshot->jobs[problem->jobs[j].index];

                for (uint32_t g = 0; g < job->n_groups; g++)
                        if (job->groups[g].node >= 0) {
                                used[job->groups[g].node] = true;
                                if (job->groups[g].flags & RM_GROUP_PINNED)
                                        pinned[job->groups[g].node] += job->groups[g].ranks;
                        }
        }
        for (uint32_t s = 0; s < snapshot->n_nodes; s++) {
                uint64_t capacity = pinned[s] > snapshot->nodes[s].cores ? pinned[s] : snapshot->nodes[s].cores;

                if (capacity >= problem->unit_ranks || used[s])
                        problem->nodes[problem->n_nodes++] = (struct problem_node) {
                                .index = s,
                                .capacity = (uint32_t) (capacity / problem->unit_ranks),
                                .penalty = snapshot->nodes[s].penalty,
                        };
        }
        return true;
}

int problem_init(struct problem *problem, const struct rm_snapshot *snapshot, const struct rm_plan *plan, size_t max_prices) {
        struct standing standing;
        uint32_t most_groups = 0;

        *problem = (struct problem) { .snapshot = snapshot };
        problem->jobs = arena_alloc(&problem->arena, snapshot->n_jobs, sizeof(*problem->jobs));
        problem->nodes = arena_alloc(&problem->arena, snapshot->n_nodes, sizeof(*problem->nodes));
        if (problem->arena.failed)
                return -ENOMEM;
        choose_unit(problem, plan);
        list_jobs(problem, plan);
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                if (snapshot->jobs[j].n_groups > most_groups)
                        most_groups = snapshot->jobs[j].n_groups;
        if (!list_nodes(problem) || !standing_init(&standing, &problem->arena, snapshot->n_nodes, most_groups))
                return -ENOMEM;
        if ((uint64_t) problem->n_jobs * problem->n_nodes > max_prices)
                return -EFBIG;
        problem->cells = arena_alloc(&problem->arena, (size_t) problem->n_jobs * problem->n_nodes, sizeof(*problem->cells));
        if (!problem->cells)
                return -ENOMEM;
        int r = fill_cells(problem, &standing, max_prices);
        if (r == 0)
                problem->step = common_step(problem);
        return r;
}

void problem_finish(struct problem *problem) {
        arena_finish(&problem->arena);
}

/* ---- plans ---- */

int64_t problem_read_plan(const struct problem *problem, const struct rm_plan *plan, uint32_t *ret_values) {
        uint32_t *slot = calloc(problem->snapshot->n_nodes + 1u, sizeof(*slot));
        int64_t cost;

        if (!slot)
                return PRICE_NEVER;
        for (uint32_t s = 0; s < problem->n_nodes; s++)
                slot[problem->nodes[s].index] = s;
        memset(ret_values, 0, sizeof(*ret_values) * problem->n_jobs * problem->n_nodes);
        for (uint32_t j = 0; j < problem->n_jobs; j++) {
                const struct rm_job *job = &problem->snapshot->jobs[problem->jobs[j].index];
                const int32_t *node = plan->jobs[problem->jobs[j].index].group_node;

                for (uint32_t g = 0; g < job->n_groups; g++) {
                        uint32_t s = slot[node[g]];

                        ret_values[(size_t) j * problem->n_nodes + s] +=
                                g < problem->jobs[j].full ? 1 : problem_cell(problem, j, s)->n_x;
                }
        }
        free(slot);
        cost = problem_judge(problem, ret_values);
        return cost;
}

int problem_write_plan(const struct problem *problem, const uint32_t *values, struct rm_plan *plan) {
        uint32_t *count = calloc(problem->snapshot->n_nodes + 1u, sizeof(*count));
        int r = count ? 0 : -ENOMEM;

        for (uint32_t j = 0; j < problem->n_jobs && r == 0; j++) {
                const struct rm_job *job = &problem->snapshot->jobs[problem->jobs[j].index];
                int32_t rest_node = RM_NO_NODE;

                for (uint32_t s = 0; s < problem->n_nodes; s++) {
                        const struct cell *cell = problem_cell(problem, j, s);
                        uint32_t v = values[(size_t) j * problem->n_nodes + s];

                        count[problem->nodes[s].index] = v % cell->n_x;
                        if (v >= cell->n_x)
                                rest_node = (int32_t) problem->nodes[s].index;
                }
                r = pack_name_groups(job, problem->snapshot->n_nodes, count, rest_node,
                                     plan->jobs[problem->jobs[j].index].group_node);
        }
        free(count);
        return r;
}

int64_t problem_judge(const struct problem *problem, const uint32_t *values) {
        uint64_t *load = calloc(problem->n_nodes + 1u, sizeof(*load));
        bool valid = load;
        int64_t cost = 0;

        for (uint32_t j = 0; j < problem->n_jobs && valid; j++) {
                const struct problem_job *job = &problem->jobs[j];
                uint64_t x = 0, y = 0;

                for (uint32_t s = 0; s < problem->n_nodes && valid; s++) {
                        const struct cell *cell = problem_cell(problem, j, s);
                        uint32_t v = values[(size_t) j * problem->n_nodes + s];

                        if (v >= cell->n || problem->prices[cell->first + v] >= PRICE_NEVER) {
                                valid = false;
                                break;
                        }
                        cost += problem->prices[cell->first + v];
                        x += v % cell->n_x;
                        y += v / cell->n_x;
                        load[s] += (uint64_t) (v % cell->n_x) * job->size + (uint64_t) (v / cell->n_x) * job->rest;
                }
                valid = valid && x == job->full && y == (job->rest > 0);
        }
        for (uint32_t s = 0; s < problem->n_nodes && valid; s++)
                valid = load[s] <= problem->nodes[s].capacity;
        free(load);
        return valid ? cost : PRICE_NEVER;
}

bool problem_is_running(const struct problem *problem) {
        bool running = false;

        for (size_t i = 0; i < (size_t) problem->n_jobs * problem->n_nodes && !running; i++)
                running = problem->cells[i].here > 0;
        return running;
}
