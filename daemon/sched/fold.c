#include "daemon/sched/fold.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "placement/cost.h"
#include "placement/pack.h"
#include "placement/topology/synthetic.h"

uint32_t fold_max_procs(uint32_t cores, uint64_t ranks, uint64_t total_cores) {
        return (uint32_t) ((cores * ranks + total_cores - 1) / total_cores);
}

uint32_t fold_usable(const struct rm_job *job, uint32_t node, uint32_t real_cores) {
        uint32_t limit = job_node_limit(job, node);

        return limit < real_cores ? limit : real_cores;
}

static bool pinned_at(const struct rm_group *group) {
        return group->node >= 0 && (group->flags & RM_GROUP_PINNED);
}

/* Ranks that need cores: of the running jobs, but those pinned where there are none. */
static uint64_t count_ranks(const struct fold *fold) {
        const struct rm_snapshot *view = snapshot_view(fold->snapshot);
        uint64_t ranks = 0;

        for (uint32_t j = 0; j < view->n_jobs; j++) {
                const struct rm_job *job = &view->jobs[j];

                if (!job_runs(job))
                        continue;
                for (uint32_t g = 0; g < job->n_groups; g++)
                        if (!pinned_at(&job->groups[g]) || fold->real_cores[job->groups[g].node] > 0)
                                ranks += job->groups[g].ranks;
        }
        return ranks;
}

/* ---- limits of one job ---- */

/* Would the groups fit if only these limits counted? */
static bool limits_hold(const struct rm_job *job, const uint32_t *limits, uint32_t n_nodes) {
        uint32_t rest = job_rest_ranks(job);
        uint64_t slots = 0, full = job_full_groups(job);
        bool rest_fits = rest == 0;

        for (uint32_t s = 0; s < n_nodes; s++) {
                slots += limits[s] / job->group_size;
                rest_fits |= limits[s] % job->group_size >= rest;
        }
        return slots > full || (slots == full && rest_fits);
}

/* Limits a job whose availability allows no usable core at all. It stays where it is as far as that
 * is usable, and where it is not, leaving the node goes before the wishes of the job. */
static void limit_to_place(struct fold *fold, uint32_t j) {
        const struct rm_snapshot *view = snapshot_view(fold->snapshot);
        const struct rm_job *job = &view->jobs[j];
        cleanup_free uint32_t *here = xcalloc(view->n_nodes + 1u, sizeof(*here));
        bool must_leave = false;

        for (uint32_t g = 0; g < job->n_groups; g++) {
                int32_t node = job->groups[g].node;

                if (node >= 0)
                        here[node] += job->groups[g].ranks;
                must_leave |= node < 0 || (fold->real_cores[node] == 0 && !pinned_at(&job->groups[g]));
        }
        for (uint32_t s = 0; s < view->n_nodes; s++)
                snapshot_set_limit(fold->snapshot, j, s, must_leave ? RM_NO_LIMIT : here[s]);
}

static void fold_limits(struct fold *fold, uint32_t j) {
        const struct rm_snapshot *view = snapshot_view(fold->snapshot);
        const struct rm_job *job = &view->jobs[j];
        cleanup_free uint32_t *usable = xcalloc(view->n_nodes + 1u, sizeof(*usable));
        cleanup_free uint32_t *limits = xcalloc(view->n_nodes + 1u, sizeof(*limits));
        uint64_t total = 0, ranks, step = 1 + job->ranks / 256;

        for (uint32_t s = 0; s < view->n_nodes; s++)
                total += usable[s] = fold_usable(job, s, fold->real_cores[s]);
        if (total == 0) {
                limit_to_place(fold, j);
                return;
        }
        memcpy(limits, usable, sizeof(*limits) * view->n_nodes);
        /* Enough cores may still be too few for whole groups: then it is as if there were more
         * ranks, until they fit. */
        for (ranks = job->ranks > total ? job->ranks : total; !limits_hold(job, limits, view->n_nodes); ranks += step)
                for (uint32_t s = 0; s < view->n_nodes; s++)
                        limits[s] = fold_max_procs(usable[s], ranks, total);
        for (uint32_t s = 0; s < view->n_nodes; s++)
                if (job_node_limit(job, s) != RM_NO_LIMIT)
                        snapshot_set_limit(fold->snapshot, j, s, limits[s]);
}

/* ---- how bad a placement is ---- */

struct excess {
        uint64_t ranks; /* above the capacities and limits */
        double worst; /* ranks for each core, on the worst node that is above its capacity */
};

static struct excess measure(const struct fold *fold, int32_t (*node_of)(const struct fold *, uint32_t job, uint32_t group)) {
        const struct rm_snapshot *view = snapshot_view(fold->snapshot);
        cleanup_free uint64_t *load = xcalloc(view->n_nodes + 1u, sizeof(*load));
        cleanup_free uint32_t *here = xcalloc(view->n_nodes + 1u, sizeof(*here));
        struct excess excess = { 0 };

        for (uint32_t j = 0; j < view->n_jobs; j++) {
                const struct rm_job *job = &view->jobs[j];

                if (!job_runs(job))
                        continue;
                for (uint32_t g = 0; g < job->n_groups; g++) {
                        int32_t node = node_of(fold, j, g);

                        load[node] += job->groups[g].ranks;
                        here[node] += job->node_limit ? job->groups[g].ranks : 0;
                }
                for (uint32_t g = 0; job->node_limit && g < job->n_groups; g++) {
                        int32_t node = node_of(fold, j, g);

                        if (here[node] > job_node_limit(job, (uint32_t) node))
                                excess.ranks += here[node] - job_node_limit(job, (uint32_t) node);
                        here[node] = 0;
                }
        }
        for (uint32_t s = 0; s < view->n_nodes; s++) {
                double ratio = fold->real_cores[s] ? (double) load[s] / fold->real_cores[s] : 0;

                if (load[s] <= view->nodes[s].cores)
                        continue;
                excess.ranks += load[s] - view->nodes[s].cores;
                if (ratio > excess.worst)
                        excess.worst = ratio;
        }
        return excess;
}

static int32_t node_now(const struct fold *fold, uint32_t job, uint32_t group) {
        return snapshot_view(fold->snapshot)->jobs[job].groups[group].node;
}

static int32_t node_of_witness(const struct fold *fold, uint32_t job, uint32_t group) {
        return fold->witness->jobs[job].group_node[group];
}

/* Nothing has to leave the node it is on. */
static bool may_stay(const struct fold *fold) {
        const struct rm_snapshot *view = snapshot_view(fold->snapshot);

        for (uint32_t j = 0; j < view->n_jobs; j++) {
                const struct rm_job *job = &view->jobs[j];

                for (uint32_t g = 0; job_runs(job) && g < job->n_groups; g++) {
                        int32_t node = job->groups[g].node;

                        if (node < 0)
                                return false;
                        if (pinned_at(&job->groups[g]))
                                continue;
                        if (fold->real_cores[node] == 0 || job_node_limit(job, (uint32_t) node) == 0)
                                return false;
                }
        }
        return true;
}

static void witness_stays(struct fold *fold) {
        const struct rm_snapshot *view = snapshot_view(fold->snapshot);

        for (uint32_t j = 0; j < view->n_jobs; j++) {
                fold->witness->jobs[j].decision = job_runs(&view->jobs[j]) ? RM_PLACE : RM_WAIT;
                for (uint32_t g = 0; g < view->jobs[j].n_groups; g++)
                        fold->witness->jobs[j].group_node[g] = view->jobs[j].groups[g].node;
        }
}

/* ---- finding room ---- */

/* A node for a group that fits nowhere. */
struct raise {
        bool within; /* the job's limit */
        bool first; /* as of fold_turns_bears() */
        double ratio; /* ranks for each core */
};

static bool is_first(const struct fold *fold, uint32_t node, double ratio, bool there) {
        double even = (double) fold->ranks / (double) fold->real_total;

        return fold->turns && fold_turns_bears(fold->turns, node, ratio, even, there);
}

static bool better_raise(const struct raise *a, const struct raise *best, bool equal) {
        if (a->within != best->within)
                return a->within;
        if (a->first != best->first)
                return a->first;
        return a->ratio < best->ratio || (a->ratio <= best->ratio && equal);
}

/* A group that fits nowhere: where it is to share cores by the goals of programs, on the node where
 * ranks for each core come out least, and within the job's limit if that can be. Where memory is
 * short on all of them, or they have other processors, it stays. */
static int32_t raise_node(void *context, const struct pack *pack, uint32_t j, uint32_t g) {
        const struct fold *fold = context;
        const struct rm_job *job = &pack->snapshot->jobs[j];
        uint32_t ranks = job->groups[g].ranks;
        bool kept = false;
        int32_t best = RM_NO_NODE, now = job->groups[g].node;
        struct raise best_raise = { 0 };

        for (uint32_t s = 0; s < pack->snapshot->n_nodes; s++) {
                uint64_t limit = job_node_limit(job, s);
                struct raise raise = { .within = (uint64_t) pack->used[s] + ranks <= limit };

                if (fold->real_cores[s] == 0 || limit == 0)
                        continue;
                if ((int32_t) s != now && (round_kinds_bar(fold->kinds, now, (int32_t) s) ||
                                           pack_memory_groups(pack, job->groups[g].memory, s, 1) == 0)) {
                        kept = true;
                        continue;
                }
                raise.ratio =
                        (double) ((int64_t) pack->snapshot->nodes[s].cores - pack->free_cores[s] + ranks) / fold->real_cores[s];
                raise.first = is_first(fold, s, raise.ratio, (int32_t) s == now);
                if (best >= 0 && !better_raise(&raise, &best_raise, (int32_t) s == now))
                        continue;
                best = (int32_t) s;
                best_raise = raise;
        }
        return best < 0 && kept ? now : best;
}

/* Packing knows no processors: a group that it has put on a node of others stays instead. */
static void take_back_barred(struct fold *fold) {
        const struct rm_snapshot *view = snapshot_view(fold->snapshot);

        for (uint32_t j = 0; fold->kinds && j < view->n_jobs; j++)
                for (uint32_t g = 0; fold->witness->jobs[j].decision == RM_PLACE && g < view->jobs[j].n_groups; g++)
                        if (round_kinds_bar(fold->kinds, node_now(fold, j, g), node_of_witness(fold, j, g)))
                                fold->witness->jobs[j].group_node[g] = node_now(fold, j, g);
}

static int find_witness(struct fold *fold, struct rm_error *err) {
        bool stays = may_stay(fold);
        struct excess found, now = { 0 };
        struct pack pack;
        int r;

        if (stays) {
                now = measure(fold, node_now);
                if (now.ranks == 0) { /* nothing can be better */
                        witness_stays(fold);
                        return 0;
                }
        }
        r = pack_init(&pack, snapshot_view(fold->snapshot), fold->witness);
        if (r == 0)
                r = pack_running(&pack, raise_node, fold);
        pack_finish(&pack);
        if (r < 0)
                return error_sys(err, r, "finding room for what runs");
        take_back_barred(fold);
        if (!stays)
                return 0;
        /* The present placement stays if it is as good as the one that was found. Else two equally
         * good placements could take turns. */
        found = measure(fold, node_of_witness);
        if (now.ranks < found.ranks || (now.ranks == found.ranks && now.worst <= found.worst))
                witness_stays(fold);
        return 0;
}

/* Waiting jobs may not have cores that are not really there. */
static void keep_waiting_off(struct fold *fold) {
        const struct rm_snapshot *view = snapshot_view(fold->snapshot);
        uint32_t *limits = NULL; /* of all that have none of their own */

        for (uint32_t s = 0; s < view->n_nodes; s++) {
                if (view->nodes[s].cores <= fold->real_cores[s])
                        continue;
                if (!limits) {
                        limits = snapshot_alloc(fold->snapshot, sizeof(*limits) * view->n_nodes);
                        memset(limits, 0xff, sizeof(*limits) * view->n_nodes); /* RM_NO_LIMIT */
                }
                limits[s] = 0;
        }
        for (uint32_t j = 0; limits && j < view->n_jobs; j++) {
                if (fold->witness->jobs[j].decision == RM_PLACE)
                        continue;
                if (!view->jobs[j].node_limit)
                        snapshot_share_limits(fold->snapshot, j, limits);
                else
                        for (uint32_t s = 0; s < view->n_nodes; s++)
                                if (limits[s] == 0)
                                        snapshot_set_limit(fold->snapshot, j, s, 0);
        }
}

/* Raise capacities and limits to what the witness needs, and keep waiting jobs off what is raised:
 * it would look like free cores. */
static void grant_witness(struct fold *fold) {
        const struct rm_snapshot *view = snapshot_view(fold->snapshot);
        uint32_t n = view->n_nodes;
        cleanup_free uint32_t *load = xcalloc(n + 1u, sizeof(*load)), *here = xcalloc(n + 1u, sizeof(*here));

        for (uint32_t j = 0; j < view->n_jobs; j++) {
                const struct rm_job *job = &view->jobs[j];

                if (fold->witness->jobs[j].decision != RM_PLACE)
                        continue;
                for (uint32_t g = 0; g < job->n_groups; g++) {
                        uint32_t node = (uint32_t) node_of_witness(fold, j, g);

                        load[node] += job->groups[g].ranks;
                        here[node] += job->node_limit ? job->groups[g].ranks : 0;
                }
                for (uint32_t g = 0; job->node_limit && g < job->n_groups; g++) {
                        uint32_t node = (uint32_t) node_of_witness(fold, j, g);

                        if (here[node] > job_node_limit(job, node))
                                snapshot_set_limit(fold->snapshot, j, node, here[node]);
                        here[node] = 0;
                }
        }
        for (uint32_t s = 0; s < n; s++)
                if (load[s] > view->nodes[s].cores)
                        snapshot_node(fold->snapshot, s)->cores = load[s];
        keep_waiting_off(fold);
}

static void stay_all(struct fold *fold) {
        const struct rm_snapshot *view = snapshot_view(fold->snapshot);

        for (uint32_t j = 0; j < view->n_jobs; j++)
                for (uint32_t g = 0; g < view->jobs[j].n_groups; g++)
                        if (view->jobs[j].groups[g].node >= 0)
                                snapshot_group(fold->snapshot, j, g)->flags |= RM_GROUP_PINNED;
}

static bool any_unplaced_group(const struct rm_snapshot *view) {
        for (uint32_t j = 0; j < view->n_jobs; j++)
                for (uint32_t g = 0; job_runs(&view->jobs[j]) && g < view->jobs[j].n_groups; g++)
                        if (view->jobs[j].groups[g].node < 0)
                                return true;
        return false;
}

static void set_cores(struct fold *fold) {
        const struct rm_snapshot *view = snapshot_view(fold->snapshot);

        fold->ranks = count_ranks(fold);
        for (uint32_t s = 0; s < view->n_nodes; s++) {
                uint32_t real = fold->real_cores[s];
                uint32_t cores = fold->ranks > fold->real_total ? fold_max_procs(real, fold->ranks, fold->real_total) : real;

                if (fold->turns)
                        cores = fold_turns_cores(fold->turns, s, real, cores);
                if (view->nodes[s].cores != cores)
                        snapshot_node(fold->snapshot, s)->cores = cores;
        }
}

bool fold_bars(const struct fold *fold, const struct round_kinds *kinds, const struct rm_job *job, int32_t from) {
        bool any = false;

        for (uint32_t s = 0; kinds && s < snapshot_view(fold->snapshot)->n_nodes; s++) {
                if (fold->real_cores[s] == 0 || (job && job_node_limit(job, s) == 0))
                        continue;
                if (!round_kinds_bar(kinds, from, (int32_t) s))
                        return false;
                any = true;
        }
        return any;
}

/* Groups that should leave their nodes, and for which there is no memory elsewhere, or only other
 * processors, stay for now. Those that go need fewer cores then. */
static void keep_without_place(struct fold *fold) {
        const struct rm_snapshot *view = snapshot_view(fold->snapshot);
        bool any = false;

        for (uint32_t j = 0; j < view->n_jobs; j++)
                for (uint32_t g = 0; fold->witness->jobs[j].decision == RM_PLACE && g < view->jobs[j].n_groups; g++) {
                        const struct rm_group *group = &view->jobs[j].groups[g];

                        if (group->node < 0 || fold->real_cores[group->node] > 0 || pinned_at(group) ||
                            node_of_witness(fold, j, g) != group->node)
                                continue;
                        snapshot_group(fold->snapshot, j, g)->flags |=
                                RM_GROUP_PINNED | FOLD_GROUP_KEPT |
                                (fold_bars(fold, fold->kinds, &view->jobs[j], group->node) ? FOLD_GROUP_BARRED : 0);
                        any = true;
                }
        if (any)
                set_cores(fold);
}

static void set_capacities(struct fold *fold) {
        const struct rm_snapshot *view = snapshot_view(fold->snapshot);

        set_cores(fold);
        for (uint32_t j = 0; j < view->n_jobs; j++)
                if (view->jobs[j].node_limit && job_runs(&view->jobs[j]))
                        fold_limits(fold, j);
}

static bool pinned_on_empty(const struct fold *fold) {
        const struct rm_snapshot *view = snapshot_view(fold->snapshot);

        for (uint32_t j = 0; j < view->n_jobs; j++)
                for (uint32_t g = 0; g < view->jobs[j].n_groups; g++) {
                        const struct rm_group *group = &view->jobs[j].groups[g];

                        if (pinned_at(group) && fold->real_cores[group->node] == 0 &&
                            view->nodes[group->node].state != RM_NODE_DOWN)
                                return true;
                }
        return false;
}

/* Policies that choose cores are to see those that ranks share, and no others: of a node that has
 * more, or of which nothing is known, these. */
static void show_shared_cores(struct fold *fold) {
        const struct rm_snapshot *view = snapshot_view(fold->snapshot);

        for (uint32_t s = 0; s < view->n_nodes; s++) {
                uint32_t real = fold->real_cores[s];
                struct synthetic inside = { 0 };
                char text[24];

                if (real == 0 || view->nodes[s].cores <= real)
                        continue;
                if (view->nodes[s].topology && synthetic_parse(view->nodes[s].topology, &inside) == 0 &&
                    inside.things * inside.cores == real)
                        continue;
                (void) snprintf(text, sizeof(text), "core:%" PRIu32, real);
                snapshot_node(fold->snapshot, s)->topology = snapshot_string(fold->snapshot, text);
        }
}

int fold_create(struct snapshot *snapshot, const struct round_job *jobs, struct fold **ret_fold, struct rm_error *err) {
        struct fold *fold = xcalloc(1, sizeof(*fold));
        const struct rm_snapshot *view = snapshot_view(snapshot);
        int r = 0;

        fold->snapshot = snapshot;
        fold->kinds = jobs && view->n_jobs > 0 ? jobs[0].kinds : NULL;
        fold->real_cores = xcalloc(view->n_nodes + 1u, sizeof(*fold->real_cores));
        for (uint32_t s = 0; s < view->n_nodes; s++)
                fold->real_total += fold->real_cores[s] = view->nodes[s].cores;
        fold->unsettled = pinned_on_empty(fold);
        fold->witness = plan_create(view);
        fold->turns = fold_turns_create(view, jobs);
        if (fold->real_total == 0) {
                if (any_unplaced_group(view))
                        r = error_set(err, -ENOSPC, "a running job has groups without a node, and there are no cores");
                stay_all(fold);
                witness_stays(fold);
        } else {
                set_capacities(fold);
                r = find_witness(fold, err);
                if (r == 0)
                        keep_without_place(fold);
        }
        if (r == 0) {
                grant_witness(fold);
                show_shared_cores(fold);
        }
        fold->kinds = NULL;
        if (r < 0)
                fold_destroy(fold);
        else
                *ret_fold = fold;
        return r;
}

void fold_destroy(struct fold *fold) {
        if (!fold)
                return;
        snapshot_destroy(fold->snapshot);
        plan_destroy(fold->witness);
        fold_turns_destroy(fold->turns);
        free(fold->real_cores);
        free(fold);
}
