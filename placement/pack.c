#include "placement/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/cost.h"
#include "placement/memory.h"

enum { SHELF_NODES = 48 }; /* from here on, nodes are looked for by class */

/* ---- orders ---- */

static int compare_stay(const void *a, const void *b, void *context) {
        const struct rm_group *groups = context;
        const struct rm_group *x = &groups[*(const uint32_t *) a], *y = &groups[*(const uint32_t *) b];
        uint32_t pinned_x = x->flags & RM_GROUP_PINNED, pinned_y = y->flags & RM_GROUP_PINNED;

        if (pinned_x != pinned_y)
                return pinned_x ? -1 : 1;
        if (x->move_cost != y->move_cost)
                return x->move_cost > y->move_cost ? -1 : 1;
        return x < y ? -1 : x > y;
}

/* Groups of a job, those first that should rather stay where they are. */
static uint32_t *stay_order(const struct rm_job *job) {
        uint32_t *order = malloc(sizeof(*order) * job->n_groups);
        bool sorted = true;

        if (!order)
                return NULL;
        for (uint32_t g = 0; g < job->n_groups; g++) {
                order[g] = g;
                sorted = sorted && (g == 0 || compare_stay(&order[g - 1], &order[g], (void *) job->groups) < 0);
        }
        if (!sorted) /* most jobs are: their groups are alike */
                qsort_r(order, job->n_groups, sizeof(*order), compare_stay, (void *) job->groups);
        return order;
}

static int64_t effective_priority(const struct rm_snapshot *snapshot, const struct rm_job *job) {
        return job->priority + snapshot->params.age_weight * (int64_t) job->age;
}

static int compare_priority(const void *a, const void *b, void *context) {
        const struct rm_snapshot *snapshot = context;
        uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
        int64_t px = effective_priority(snapshot, &snapshot->jobs[x]), py = effective_priority(snapshot, &snapshot->jobs[y]);

        if (px != py)
                return px > py ? -1 : 1;
        return x < y ? -1 : x > y;
}

/* Large groups first: they are the ones that are hard to place. */
static int compare_size(const void *a, const void *b, void *context) {
        const struct rm_snapshot *snapshot = context;
        uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
        const struct rm_job *jx = &snapshot->jobs[x], *jy = &snapshot->jobs[y];

        if (jx->group_size != jy->group_size)
                return jx->group_size > jy->group_size ? -1 : 1;
        if (jx->ranks != jy->ranks)
                return jx->ranks > jy->ranks ? -1 : 1;
        return x < y ? -1 : x > y;
}

uint32_t pack_order(const struct rm_snapshot *snapshot, uint32_t *ret_order) {
        uint32_t n = 0;

        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                if (!job_runs(&snapshot->jobs[j]))
                        ret_order[n++] = j;
        qsort_r(ret_order, n, sizeof(*ret_order), compare_priority, (void *) snapshot);
        return n;
}

/* ---- putting one group down, taking it up ---- */

/* Sets the free memory as it is before anything is planned. */
static void reset_memory(struct pack *pack) {
        for (uint32_t s = 0; s < pack->snapshot->n_nodes; s++)
                pack->free_memory[s] = pack->snapshot->nodes[s].memory_free;
}

static void take_memory(struct pack *pack, uint32_t j, uint32_t g, int32_t node) {
        if (pack->free_memory[node] != RM_NO_MEMORY_LIMIT)
                pack->free_memory[node] -= memory_taken(&pack->snapshot->jobs[j], g, node);
}

uint32_t pack_memory_groups(const struct pack *pack, int64_t each, uint32_t node, uint32_t most) {
        return memory_groups(each, pack->free_memory[node], most);
}

int pack_init(struct pack *pack, const struct rm_snapshot *snapshot, struct rm_plan *plan) {
        size_t n = snapshot->n_nodes + 1u;

        *pack = (struct pack) {
                .snapshot = snapshot,
                .plan = plan,
                .free_cores = calloc(n, sizeof(*pack->free_cores)),
                .free_memory = calloc(n, sizeof(*pack->free_memory)),
                .used = calloc(n, sizeof(*pack->used)),
        };
        if (!pack->free_cores || !pack->free_memory || !pack->used)
                return -ENOMEM;
        reset_memory(pack);
        for (uint32_t s = 0; s < snapshot->n_nodes; s++)
                pack->free_cores[s] = snapshot->nodes[s].cores;
        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                plan->jobs[j].decision = RM_WAIT;
                for (uint32_t g = 0; g < snapshot->jobs[j].n_groups; g++)
                        plan->jobs[j].group_node[g] = RM_NO_NODE;
        }
        return 0;
}

void pack_finish(struct pack *pack) {
        free(pack->free_cores);
        free(pack->free_memory);
        free(pack->used);
        shelf_finish(&pack->shelf);
        *pack = (struct pack) { 0 };
}

static void put(struct pack *pack, uint32_t j, uint32_t g, int32_t node) {
        uint32_t ranks = pack->snapshot->jobs[j].groups[g].ranks;

        pack->plan->jobs[j].group_node[g] = node;
        pack->free_cores[node] -= ranks;
        take_memory(pack, j, g, node);
        pack->used[node] += ranks;
        if (pack->shelved)
                shelf_set(&pack->shelf, (uint32_t) node, pack->free_cores[node]);
}

/* Make `used` count job j. Every use is undone by leave_job(), so that it costs the job's groups,
 * not all nodes. */
static void enter_job(struct pack *pack, uint32_t j) {
        const int32_t *node = pack->plan->jobs[j].group_node;

        for (uint32_t g = 0; g < pack->snapshot->jobs[j].n_groups; g++)
                if (node[g] >= 0)
                        pack->used[node[g]] += pack->snapshot->jobs[j].groups[g].ranks;
}

static void leave_job(struct pack *pack, uint32_t j) {
        const int32_t *node = pack->plan->jobs[j].group_node;

        for (uint32_t g = 0; g < pack->snapshot->jobs[j].n_groups; g++)
                if (node[g] >= 0)
                        pack->used[node[g]] = 0;
}

/* Outside enter/leave. */
static void lift_job(struct pack *pack, uint32_t j) {
        const struct rm_job *job = &pack->snapshot->jobs[j];
        int32_t *node = pack->plan->jobs[j].group_node;

        for (uint32_t g = 0; g < job->n_groups; g++) {
                if (node[g] >= 0) {
                        pack->free_cores[node[g]] += job->groups[g].ranks;
                        if (pack->free_memory[node[g]] != RM_NO_MEMORY_LIMIT)
                                pack->free_memory[node[g]] += memory_taken(job, g, node[g]);
                        if (pack->shelved)
                                shelf_set(&pack->shelf, (uint32_t) node[g], pack->free_cores[node[g]]);
                }
                node[g] = RM_NO_NODE;
        }
        pack->plan->jobs[j].decision = RM_WAIT;
}

static uint32_t space_on(const struct pack *pack, const struct rm_job *job, uint32_t node) {
        int64_t space = pack->free_cores[node];
        int64_t limit = job_node_limit(job, node);

        if (limit != RM_NO_LIMIT && limit - pack->used[node] < space)
                space = limit - pack->used[node];
        return space > 0 ? (uint32_t) space : 0;
}

/* best_node() among nodes that the job is not on yet. A node that takes more is never dearer than
 * one of the same penalty that takes less. */
static int32_t best_shelved(const struct pack *pack, uint32_t ranks, uint32_t count, double *ret_price, uint32_t *ret_hole,
                            uint32_t *ret_count) {
        const struct shelf *shelf = &pack->shelf;
        int32_t best = RM_NO_NODE;

        for (uint32_t p = 0; p < shelf->n_penalties; p++) {
                uint32_t fit = shelf->top[p] / ranks, free_cores;
                double price;

                if (fit == 0)
                        continue;
                if (best >= 0 && (double) shelf->penalties[p] > *ret_price)
                        break;
                if (fit > count)
                        fit = count;
                price = (double) shelf->penalties[p] + (double) pack->snapshot->params.distribution_weight / ((double) fit * ranks);
                free_cores = shelf_at_least(shelf, p, fit * ranks);
                if (best >= 0 && (price > *ret_price || (price == *ret_price && free_cores - fit * ranks >= *ret_hole)))
                        continue;
                best = shelf->first[p * shelf->stride + free_cores];
                *ret_price = price;
                *ret_hole = free_cores - fit * ranks;
                *ret_count = fit;
        }
        return best;
}

/* The node that takes groups of `ranks` ranks and `memory` bytes, up to `count` of them, at the
 * least cost for each; *ret_count how many. */
static int32_t best_node(const struct pack *pack, const struct rm_job *job, uint32_t ranks, int64_t memory, uint32_t count,
                         uint32_t *ret_count) {
        const struct rm_snapshot *snapshot = pack->snapshot;
        double best_price = 0;
        uint32_t best_hole = 0;
        int32_t best = RM_NO_NODE;

        for (uint32_t s = 0; s < snapshot->n_nodes; s++) {
                uint32_t space = space_on(pack, job, s);
                uint32_t fit = space / ranks, hole;
                double price;

                if (fit > count)
                        fit = count;
                if (fit > 0)
                        fit = pack_memory_groups(pack, memory, s, fit);
                if (fit == 0)
                        continue;
                price = (double) snapshot->nodes[s].penalty;
                if (!pack->used[s])
                        price += (double) snapshot->params.distribution_weight / ((double) fit * ranks);
                hole = space - fit * ranks;
                if (best >= 0 && (price > best_price || (price == best_price && hole >= best_hole)))
                        continue;
                best = (int32_t) s;
                best_price = price;
                best_hole = hole;
                *ret_count = fit;
        }
        return best;
}

/* best_node(), by the shelf where it can be. `fresh`: job j was nowhere before. */
static int32_t find_node(const struct pack *pack, uint32_t j, bool fresh, uint32_t ranks, int64_t memory, uint32_t count,
                         uint32_t *ret_count) {
        const struct rm_job *job = &pack->snapshot->jobs[j];
        const int32_t *node = pack->plan->jobs[j].group_node;
        uint32_t best_hole = 0;
        double best_price = 0;
        int32_t best;

        if (!pack->shelved || !fresh || job->node_limit)
                return best_node(pack, job, ranks, memory, count, ret_count);
        best = best_shelved(pack, ranks, count, &best_price, &best_hole, ret_count);
        /* The shelf is by cores; where memory is short as well, all nodes have to be looked at. */
        if (best >= 0 && pack_memory_groups(pack, memory, (uint32_t) best, *ret_count) < *ret_count)
                return best_node(pack, job, ranks, memory, count, ret_count);
        /* Groups of full size have filled the nodes that the job is on; a smaller one may fit
         * there. */
        for (uint32_t g = 0; ranks < job->group_size && g < job_full_groups(job); g++) {
                double price = (double) pack->snapshot->nodes[node[g]].penalty;
                int64_t hole = pack->free_cores[node[g]] - ranks;

                if (hole < 0 || (best >= 0 && (price > best_price || (price == best_price && hole >= best_hole))) ||
                    pack_memory_groups(pack, memory, (uint32_t) node[g], 1) == 0)
                        continue;
                best = node[g];
                best_price = price;
                best_hole = (uint32_t) hole;
                *ret_count = 1;
        }
        return best;
}

/* Find a node for every group of job j that has none. Full groups first: what they leave over is
 * where the smaller last one goes, and if one alone fits in no other way, this finds it. False: at
 * least one has found none. */
static bool place_missing(struct pack *pack, uint32_t j, pack_overflow overflow, void *context) {
        const struct rm_job *job = &pack->snapshot->jobs[j];
        int32_t *node = pack->plan->jobs[j].group_node;
        uint32_t full = job_full_groups(job), missing = 0, g = 0;
        bool all = true, fresh = !job_runs(job);
        int64_t largest = memory_largest(job);

        enter_job(pack, j);
        for (uint32_t i = 0; i < full; i++)
                missing += node[i] < 0;
        while (missing > 0 && all) {
                uint32_t count = 0;
                int32_t best = find_node(pack, j, fresh, job->group_size, largest, missing, &count);

                for (; g < full && node[g] >= 0; g++)
                        ;
                if (best < 0 && job->groups[g].memory < largest) /* the largest may fit nowhere, this one can */
                        best = find_node(pack, j, fresh, job->group_size, job->groups[g].memory, 1, &count);
                if (best < 0 && overflow) {
                        best = overflow(context, pack, j, g);
                        count = 1;
                }
                if (best < 0)
                        all = false;
                else
                        for (missing -= count; count > 0; g++)
                                if (node[g] < 0) {
                                        put(pack, j, g, best);
                                        count--;
                                }
        }
        if (all && full < job->n_groups && node[full] < 0) {
                uint32_t count;
                int32_t best = find_node(pack, j, fresh, job->groups[full].ranks, job->groups[full].memory, 1, &count);

                if (best < 0 && overflow)
                        best = overflow(context, pack, j, full);
                if (best < 0)
                        all = false;
                else
                        put(pack, j, full, best);
        }
        leave_job(pack, j);
        if (all)
                pack->plan->jobs[j].decision = RM_PLACE;
        return all;
}

/* ---- jobs that run ---- */

static void put_pinned(struct pack *pack) {
        for (uint32_t j = 0; j < pack->snapshot->n_jobs; j++) {
                const struct rm_job *job = &pack->snapshot->jobs[j];

                for (uint32_t g = 0; g < job->n_groups; g++)
                        if (job->groups[g].node >= 0 && (job->groups[g].flags & RM_GROUP_PINNED))
                                put(pack, j, g, job->groups[g].node);
                leave_job(pack, j);
        }
}

/* How many groups have no node after it, or -ENOMEM. */
static int keep_groups(struct pack *pack, uint32_t j) {
        const struct rm_job *job = &pack->snapshot->jobs[j];
        int32_t *node = pack->plan->jobs[j].group_node;
        uint32_t *order = stay_order(job);
        int missing = 0;

        if (!order)
                return -ENOMEM;
        enter_job(pack, j);
        for (uint32_t i = 0; i < job->n_groups; i++) {
                const struct rm_group *group = &job->groups[order[i]];

                if (node[order[i]] < 0 && group->node >= 0 && space_on(pack, job, (uint32_t) group->node) >= group->ranks)
                        put(pack, j, order[i], group->node);
                missing += node[order[i]] < 0;
        }
        leave_job(pack, j);
        free(order);
        return missing;
}

int pack_name_groups(const struct rm_job *job, uint32_t n_nodes, uint32_t *full_count, int32_t rest_node, int32_t *ret_group_node) {
        uint32_t full = job_full_groups(job), next = 0;
        uint32_t *order = stay_order(job);
        int r = 0;

        if (!order)
                return -ENOMEM;
        for (uint32_t g = 0; g < full; g++)
                ret_group_node[g] = RM_NO_NODE;
        for (uint32_t i = 0; i < job->n_groups; i++) {
                uint32_t g = order[i];
                int32_t node = job->groups[g].node;

                if (g >= full)
                        ret_group_node[g] = rest_node;
                else if (node >= 0 && full_count[node] > 0) {
                        full_count[node]--;
                        ret_group_node[g] = node;
                }
                if ((job->groups[g].flags & RM_GROUP_PINNED) && ret_group_node[g] != node)
                        r = -EINVAL;
        }
        for (uint32_t g = 0; g < full; g++) {
                if (ret_group_node[g] >= 0)
                        continue;
                for (; next < n_nodes && full_count[next] == 0; next++)
                        ;
                if (next == n_nodes) {
                        r = -EINVAL;
                        break;
                }
                full_count[next]--;
                ret_group_node[g] = (int32_t) next;
        }
        for (; next < n_nodes; next++)
                if (full_count[next] > 0) {
                        full_count[next] = 0;
                        r = -EINVAL;
                }
        free(order);
        return r;
}

/* Keeps the number of groups of each job on each node after a new packing, but prefers the ones
 * that run there already. */
static int rename_groups(struct pack *pack) {
        uint32_t *count = calloc(pack->snapshot->n_nodes + 1u, sizeof(*count));
        int r = 0;

        if (!count)
                return -ENOMEM;
        for (uint32_t j = 0; j < pack->snapshot->n_jobs && r == 0; j++) {
                const struct rm_job *job = &pack->snapshot->jobs[j];
                int32_t *node = pack->plan->jobs[j].group_node;
                uint32_t full = job_full_groups(job);

                if (pack->plan->jobs[j].decision != RM_PLACE)
                        continue;
                for (uint32_t g = 0; g < full; g++)
                        count[node[g]]++;
                r = pack_name_groups(job, pack->snapshot->n_nodes, count, full < job->n_groups ? node[full] : RM_NO_NODE, node);
        }
        free(count);
        return r;
}

/* Groups with other names: some have come to where they are already, and others may take more than
 * those that were counted. -ENOSPC. */
static int count_memory(struct pack *pack) {
        reset_memory(pack);
        for (uint32_t j = 0; j < pack->snapshot->n_jobs; j++)
                for (uint32_t g = 0; g < pack->snapshot->jobs[j].n_groups; g++)
                        if (pack->plan->jobs[j].group_node[g] >= 0)
                                take_memory(pack, j, g, pack->plan->jobs[j].group_node[g]);
        for (uint32_t s = 0; s < pack->snapshot->n_nodes; s++)
                if (pack->free_memory[s] < 0)
                        return -ENOSPC;
        return 0;
}

/* Pack the jobs that `wanted` marks from nothing. -ENOSPC when that fails too. */
static int pack_again(struct pack *pack, const bool *requested) {
        uint32_t n = pack->snapshot->n_jobs;
        uint32_t *order = malloc(sizeof(*order) * (n + 1u));
        int r = 0;

        if (!order)
                return -ENOMEM;
        for (uint32_t j = 0; j < n; j++) {
                lift_job(pack, j);
                order[j] = j;
        }
        put_pinned(pack);
        qsort_r(order, n, sizeof(*order), compare_size, (void *) pack->snapshot);
        for (uint32_t i = 0; i < n && r == 0; i++)
                if (requested[order[i]] && !place_missing(pack, order[i], NULL, NULL))
                        r = -ENOSPC;
        free(order);
        if (r == 0)
                r = rename_groups(pack);
        return r < 0 ? r : count_memory(pack);
}

/* Running jobs stay where they are, as far as there is room. `jobs`: them, in the order in which
 * they may; those that have groups left without a node come to its front. Returns how many, or
 * -ENOMEM. */
static int keep_running(struct pack *pack, uint32_t *jobs, uint32_t n) {
        uint32_t n_left = 0;

        for (uint32_t i = 0; i < n; i++) {
                int missing = keep_groups(pack, jobs[i]);

                if (missing < 0)
                        return missing;
                if (missing > 0)
                        jobs[n_left++] = jobs[i];
                else
                        pack->plan->jobs[jobs[i]].decision = RM_PLACE;
        }
        return (int) n_left;
}

int pack_running(struct pack *pack, pack_overflow overflow, void *context) {
        uint32_t n = pack->snapshot->n_jobs, n_running = 0;
        uint32_t *order = malloc(sizeof(*order) * (n + 1u));
        bool *runs = calloc(n + 1u, sizeof(*runs));
        int r = order && runs ? 0 : -ENOMEM, n_left = 0;
        bool all = true;

        for (uint32_t j = 0; j < n && r == 0; j++) {
                runs[j] = job_runs(&pack->snapshot->jobs[j]);
                if (runs[j])
                        order[n_running++] = j;
        }
        if (r == 0) {
                put_pinned(pack);
                qsort_r(order, n_running, sizeof(*order), compare_priority, (void *) pack->snapshot);
                n_left = keep_running(pack, order, n_running);
                r = n_left < 0 ? n_left : 0;
        }
        if (r == 0)
                qsort_r(order, (size_t) n_left, sizeof(*order), compare_size, (void *) pack->snapshot);
        for (int i = 0; i < n_left && r == 0; i++)
                all &= place_missing(pack, order[i], overflow, context);
        if (r == 0 && !all)
                r = overflow ? -ENOSPC : pack_again(pack, runs);
        free(order);
        free(runs);
        return r;
}

/* ---- jobs that wait ---- */

/* Limits a number of cores to those of as many groups as `memory` is enough for. */
static uint32_t within_memory(const struct rm_job *job, int64_t largest, int64_t memory, uint32_t cores) {
        uint64_t most = (uint64_t) memory_groups(largest, memory, job->n_groups) * job->group_size;

        return most < cores ? (uint32_t) most : cores;
}

bool pack_fits_alone(const struct rm_snapshot *snapshot, const struct rm_job *job) {
        uint32_t rest = job_rest_ranks(job);
        uint64_t slots = 0, full = job_full_groups(job);
        int64_t largest = memory_largest(job);
        bool rest_fits = rest == 0;

        for (uint32_t s = 0; s < snapshot->n_nodes; s++) {
                uint32_t space = snapshot->nodes[s].cores, limit = job_node_limit(job, s);

                if (limit < space)
                        space = limit;
                if (largest > 0)
                        space = within_memory(job, largest, snapshot->nodes[s].memory, space);
                slots += space / job->group_size;
                rest_fits |= space % job->group_size >= rest;
                if (slots > full)
                        return true;
        }
        return slots > full || (slots == full && rest_fits);
}

static bool *placed_jobs(const struct pack *pack) {
        bool *placed = calloc(pack->snapshot->n_jobs + 1u, sizeof(*placed));

        for (uint32_t j = 0; placed && j < pack->snapshot->n_jobs; j++)
                placed[j] = pack->plan->jobs[j].decision == RM_PLACE;
        return placed;
}

/* Make room for job j by moving what runs. On -ENOSPC everything is as it was. */
static int make_space(struct pack *pack, uint32_t j) {
        uint32_t n = pack->snapshot->n_jobs;
        bool *requested = placed_jobs(pack);
        int32_t **saved = calloc(n + 1u, sizeof(*saved));
        int64_t total = 0;
        bool movable = false;
        int r = requested && saved ? 0 : -ENOMEM;

        for (uint32_t s = 0; s < pack->snapshot->n_nodes; s++)
                total += pack->free_cores[s] > 0 ? pack->free_cores[s] : 0;
        for (uint32_t i = 0; i < n && r == 0; i++) {
                const struct rm_job *job = &pack->snapshot->jobs[i];

                if (!requested[i])
                        continue;
                saved[i] = malloc(sizeof(**saved) * job->n_groups);
                if (!saved[i])
                        r = -ENOMEM;
                else
                        memcpy(saved[i], pack->plan->jobs[i].group_node, sizeof(**saved) * job->n_groups);
                for (uint32_t g = 0; g < job->n_groups && !movable; g++)
                        movable = !(job->groups[g].flags & RM_GROUP_PINNED);
        }
        if (r == 0 && (!movable || total < pack->snapshot->jobs[j].ranks))
                r = -ENOSPC;
        else if (r == 0) {
                requested[j] = true;
                r = pack_again(pack, requested);
                for (uint32_t i = 0; i < n && r < 0; i++) {
                        lift_job(pack, i);
                        if (!saved[i])
                                continue;
                        for (uint32_t g = 0; g < pack->snapshot->jobs[i].n_groups; g++)
                                put(pack, i, g, saved[i][g]);
                        leave_job(pack, i);
                        pack->plan->jobs[i].decision = RM_PLACE;
                }
        }
        for (uint32_t i = 0; saved && i < n; i++)
                free(saved[i]);
        free(saved);
        free(requested);
        return r;
}

int pack_waiting(struct pack *pack, bool repack) {
        const struct rm_snapshot *snapshot = pack->snapshot;
        uint32_t *order = malloc(sizeof(*order) * (snapshot->n_jobs + 1u));
        uint32_t n;
        int r = 0;

        if (!order)
                return -ENOMEM;
        n = pack_order(snapshot, order);
        if (n > 0 && snapshot->n_nodes >= SHELF_NODES && !pack->shelved) {
                r = shelf_init(&pack->shelf, snapshot, pack->free_cores);
                pack->shelved = r == 0;
                if (r == -ENOMEM) {
                        free(order);
                        return r;
                }
                r = 0;
        }
        for (uint32_t i = 0; i < n; i++) {
                uint32_t j = order[i];

                if (!pack_fits_alone(snapshot, &snapshot->jobs[j])) /* it holds up no others */
                        continue;
                if (place_missing(pack, j, NULL, NULL))
                        continue;
                lift_job(pack, j);
                if (repack) {
                        r = make_space(pack, j);
                        if (r == 0)
                                continue;
                        if (r != -ENOSPC)
                                break;
                        r = 0;
                        repack = false; /* once is enough to try: it is as dear as packing all */
                }
                if (!snapshot->params.backfill)
                        break;
        }
        free(order);
        return r;
}

int pack_plan(const struct rm_snapshot *snapshot, struct rm_plan *plan, bool repack) {
        struct pack pack;
        int r = pack_init(&pack, snapshot, plan);

        if (r == 0)
                r = pack_running(&pack, NULL, NULL);
        if (r == 0)
                r = pack_waiting(&pack, repack);
        pack_finish(&pack);
        return r;
}
