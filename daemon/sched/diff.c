#include "daemon/sched/diff.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/hostlist.h"
#include "common/text.h"
#include "common/util.h"
#include "daemon/sched/memory_limits.h"
#include "daemon/sched/spare.h"
#include "placement/cost.h"
#include "placement/memory.h"
#include "placement/pack.h"

static const struct rm_snapshot *folded(const struct diff *diff) {
        return snapshot_view(diff->fold->snapshot);
}

static const char *node_name(const struct diff *diff, int32_t node) {
        return diff->given->nodes[node].name;
}

static bool is_down(const struct diff *diff, int32_t node) {
        return diff->given->nodes[node].state == RM_NODE_DOWN;
}

static bool waits(const struct diff *diff, uint32_t j) {
        return diff->plan->jobs[j].decision != RM_PLACE;
}

/* No cores there for this job: neither the cluster's, nor by its own availability. A job whose own
 * file allows no core anywhere is not made to leave by it. */
static bool must_leave(const struct diff *diff, uint32_t j, int32_t node) {
        return !is_down(diff, node) &&
               (diff->fold->real_cores[node] == 0 || job_node_limit(&folded(diff)->jobs[j], (uint32_t) node) == 0);
}

/* ---- moves ---- */

/* Ranks on each node as things are now; caller frees. */
static uint64_t *load_now(const struct diff *diff) {
        uint64_t *load = xcalloc(diff->given->n_nodes + 1u, sizeof(*load));

        for (uint32_t j = 0; j < diff->given->n_jobs; j++)
                for (uint32_t g = 0; g < diff->given->jobs[j].n_groups; g++) {
                        int32_t node = folded(diff)->jobs[j].groups[g].node;

                        if (node >= 0)
                                load[node] += diff->given->jobs[j].groups[g].ranks;
                }
        return load;
}

/* Appended to `text`, of RM_REASON_BYTES, as the next sentence. */
static void add_text(char *text, const char *more) {
        if (more[0])
                (void) text_append(text, RM_REASON_BYTES, "%s%s", text[0] ? "; " : "", more);
}

/* Explains by the measured steps of a job whether it goes back, if that was a question; else empty.
 * Into `text`, of RM_REASON_BYTES. */
static void explain_return(const struct round_return *back, char *text) {
        text[0] = '\0';
        if (back->asked && isinf(back->steps_left))
                (void) snprintf(text, RM_REASON_BYTES, "a step takes %.3g ms here and %.3g ms there, and no end is known",
                                back->usec_here / 1e3, back->usec_there / 1e3);
        else if (back->asked)
                (void) snprintf(text, RM_REASON_BYTES, "a step takes %.3g ms here and %.3g ms there, %.0f are left",
                                back->usec_here / 1e3, back->usec_there / 1e3, back->steps_left);
}

static void explain_move(const struct diff *diff, const uint64_t *load, struct round_action *action) {
        const char *from = node_name(diff, action->from);
        uint32_t cores = diff->fold->real_cores[action->from];
        char steps[RM_REASON_BYTES];

        if (cores == 0 || must_leave(diff, action->job, action->from))
                action->cause = ROUND_NEEDED;
        else
                action->cause = load[action->from] > cores ? ROUND_RETURN : ROUND_CHOICE;
        if (cores == 0)
                (void) text_format(action->reason, sizeof(action->reason), "node '%s' is being evacuated", from);
        else if (action->cause == ROUND_NEEDED)
                (void) text_format(action->reason, sizeof(action->reason), "the job's availability file excludes '%s'", from);
        else if (action->cause == ROUND_RETURN)
                (void) text_format(action->reason, sizeof(action->reason), "node '%s' has %" PRIu64 " ranks on %u cores", from,
                                   load[action->from], cores);
        else
                (void) text_format(action->reason, sizeof(action->reason), "a better place than '%s'", from);
        explain_return(&diff->jobs[action->job].back, steps);
        add_text(action->reason, steps);
}

/* All moves of groups, in the order of jobs. */
static struct round_result list_moves(const struct diff *diff, const uint64_t *load) {
        struct round_result moves = { 0 };

        for (uint32_t j = 0; j < folded(diff)->n_jobs; j++) {
                const struct rm_job *job = &folded(diff)->jobs[j];
                const int32_t *node = diff->plan->jobs[j].group_node;

                for (uint32_t g = 0; !waits(diff, j) && g < job->n_groups; g++) {
                        struct round_action *move;

                        if (job->groups[g].node < 0 || job->groups[g].node == node[g] ||
                            round_kinds_bar(diff->jobs[j].given.kinds, job->groups[g].node, node[g]))
                                continue;
                        move = round_add_action(&moves);
                        move->kind = ROUND_MOVE;
                        move->job = j;
                        move->group = (int32_t) g;
                        move->from = job->groups[g].node;
                        move->to = node[g];
                        explain_move(diff, load, move);
                }
        }
        return moves;
}

static void add_moves(const struct round_result *moves, bool by_choice, struct round_result *result) {
        for (size_t i = 0; i < moves->n_actions; i++)
                if ((moves->actions[i].cause == ROUND_CHOICE) == by_choice)
                        *round_add_action(result) = moves->actions[i];
}

/* ---- the capsule of mpirun: it needs no core, but goes where its job is ---- */

struct head_choice {
        bool allowed; /* the job may use the node */
        uint32_t ranks;
        int64_t free_cores;
};

static bool better_choice(struct head_choice a, struct head_choice b) {
        if (a.allowed != b.allowed)
                return a.allowed;
        return a.ranks != b.ranks ? a.ranks > b.ranks : a.free_cores > b.free_cores;
}

/* Keep the better one of the best so far and node `s`, the first of equals. */
static void consider(const struct diff *diff, uint32_t j, uint32_t s, uint32_t ranks, const uint64_t *load,
                     struct head_choice *best, int32_t *place) {
        struct head_choice choice = { .allowed = !must_leave(diff, j, (int32_t) s),
                                      .ranks = ranks,
                                      .free_cores = (int64_t) diff->fold->real_cores[s] - (int64_t) load[s] };

        if (diff->fold->real_cores[s] == 0 ||
            round_kinds_bar(diff->jobs[j].given.kinds, diff->jobs[j].given.head_node, (int32_t) s))
                return;
        if (*place >= 0 && !better_choice(choice, *best) && (better_choice(*best, choice) || (int32_t) s >= *place))
                return;
        *place = (int32_t) s;
        *best = choice;
}

/* A node with cores: where the job has most ranks, else the one with most free. One that the job
 * may not use only if there is no other. */
static int32_t head_place(const struct diff *diff, uint32_t j, const uint64_t *load, uint32_t *here) {
        const struct rm_job *job = &folded(diff)->jobs[j];
        const int32_t *node = diff->plan->jobs[j].group_node;
        struct head_choice best = { 0 };
        int32_t place = RM_NO_NODE;

        for (uint32_t g = 0; g < job->n_groups; g++)
                if (node[g] >= 0)
                        here[node[g]] += job->groups[g].ranks;
        for (uint32_t g = 0; g < job->n_groups; g++)
                if (node[g] >= 0)
                        consider(diff, j, (uint32_t) node[g], here[node[g]], load, &best, &place);
        for (uint32_t s = 0; !best.allowed && s < folded(diff)->n_nodes; s++)
                consider(diff, j, s, here[s], load, &best, &place);
        for (uint32_t g = 0; g < job->n_groups; g++)
                if (node[g] >= 0)
                        here[node[g]] = 0;
        return place;
}

static void add_head_moves(const struct diff *diff, const uint64_t *load, struct round_result *result) {
        cleanup_free uint32_t *here = xcalloc(folded(diff)->n_nodes + 1u, sizeof(*here));

        for (uint32_t j = 0; j < folded(diff)->n_jobs; j++) {
                const struct round_job_state *state = &diff->jobs[j];
                struct round_action move = {
                        .kind = ROUND_MOVE, .job = j, .group = ROUND_HEAD, .from = state->given.head_node, .head_node = RM_NO_NODE
                };

                if (state->given.head_node < 0 || state->given.head_moving_to >= 0 || state->given.pinned ||
                    !must_leave(diff, j, state->given.head_node))
                        continue;
                if (state->given.head_stays && diff->fold->real_cores[state->given.head_node] > 0)
                        continue;
                move.to = head_place(diff, j, load, here);
                /* Leaving a node goes before what the job may use, the other way round it gains
                 * nothing. */
                if (move.to < 0 || (diff->fold->real_cores[move.from] > 0 && must_leave(diff, j, move.to)))
                        continue;
                explain_move(diff, load, &move);
                *round_add_action(result) = move;
        }
}

/* ---- starts ---- */

/* Cores that something holds now: groups where they are, and where they are going. */
static uint64_t *held_now(const struct diff *diff) {
        uint64_t *held = load_now(diff);

        for (uint32_t j = 0; j < diff->given->n_jobs; j++)
                for (uint32_t g = 0; g < diff->given->jobs[j].n_groups; g++) {
                        int32_t from = diff->given->jobs[j].groups[g].node;

                        if (from >= 0 && from != folded(diff)->jobs[j].groups[g].node)
                                held[from] += diff->given->jobs[j].groups[g].ranks;
                }
        for (uint32_t j = 0; j < diff->given->n_jobs; j++)
                for (uint32_t g = 0; !waits(diff, j) && g < diff->given->jobs[j].n_groups; g++) {
                        int32_t now = folded(diff)->jobs[j].groups[g].node, then = diff->plan->jobs[j].group_node[g];

                        if (now >= 0 && then != now)
                                held[then] += diff->given->jobs[j].groups[g].ranks;
                }
        return held;
}

static bool take_cores(const struct diff *diff, uint32_t j, uint64_t *held) {
        const struct rm_job *job = &diff->given->jobs[j];
        const int32_t *node = diff->plan->jobs[j].group_node;
        bool all = true;

        for (uint32_t g = 0; g < job->n_groups; g++)
                held[node[g]] += job->groups[g].ranks;
        for (uint32_t g = 0; g < job->n_groups; g++)
                all &= held[node[g]] <= diff->fold->real_cores[node[g]];
        for (uint32_t g = 0; !all && g < job->n_groups; g++)
                held[node[g]] -= job->groups[g].ranks;
        return all;
}

static int32_t *copy_of(const int32_t *values, uint32_t n) {
        int32_t *copy = xcalloc(n + 1u, sizeof(*copy));

        memcpy(copy, values, sizeof(*copy) * n);
        return copy;
}

static uint64_t left_on(const struct diff *diff, const uint64_t *load, uint32_t node) {
        uint64_t real = diff->fold->real_cores[node];

        return real > load[node] ? real - load[node] : 0;
}

/*
 * Appended to `text`, of RM_REASON_BYTES: that nodes have warnings, if the job would not wait for
 * `missing` cores (or, `by_nodes`, idle nodes) without these. Administrators see no other sign that
 * cores are left unused.
 */
static void add_warned(const struct diff *diff, uint32_t j, const uint64_t *load, uint64_t missing, bool by_nodes, char *text) {
        const bool *kept_off = diff->jobs[j].given.kept_off;
        struct hostlist names = { 0 };
        uint64_t there = 0;

        for (uint32_t s = 0; kept_off && s < diff->given->n_nodes; s++) {
                uint64_t left = kept_off[s] ? left_on(diff, load, s) : 0;

                if (left == 0 || (by_nodes && load[s] > 0))
                        continue;
                there += by_nodes ? 1 : left;
                hostlist_add(&names, node_name(diff, (int32_t) s));
        }
        if (there >= missing && names.n_names > 0) {
                cleanup_free char *list = hostlist_compress(names.names, names.n_names);

                (void) text_append(text, RM_REASON_BYTES, "; %s %s", list, names.n_names == 1 ? "has a warning" : "have warnings");
        }
        hostlist_finish(&names);
}

/* The same of nodes that are kept free for those that need room. */
static void add_pool(const struct diff *diff, uint32_t j, uint64_t missing, char *text) {
        const bool *pool = diff->jobs[j].given.pool;
        struct hostlist names = { 0 };
        uint64_t there = 0;

        for (uint32_t s = 0; pool && s < diff->given->n_nodes; s++) {
                if (!pool[s])
                        continue;
                there += diff->held[s] ? diff->held[s] : diff->fold->real_cores[s];
                hostlist_add(&names, node_name(diff, (int32_t) s));
        }
        if (there >= missing && names.n_names > 0) {
                cleanup_free char *list = hostlist_compress(names.names, names.n_names);

                (void) text_append(text, RM_REASON_BYTES, "; %s %s kept free (spare_nodes)", list,
                                   names.n_names == 1 ? "is" : "are");
        }
        hostlist_finish(&names);
}

/* A job that has no spare nodes yet does not start without them, and no job behind it takes the
 * nodes that it waits for. */
static bool take_spares(const struct diff *diff, uint32_t j, const uint64_t *load, struct spare_choice *choice, int32_t *spares,
                        uint32_t *ret_n, struct round_job_result *job_result) {
        *ret_n = diff->jobs[j].given.spares > 0 ? spare_choose(choice, j, spares) : 0;
        if (*ret_n == diff->jobs[j].given.spares)
                return true;
        (void) text_format(job_result->reason, RM_REASON_BYTES, "waits for %u spare node%s; %u %s idle", diff->jobs[j].given.spares,
                           diff->jobs[j].given.spares == 1 ? "" : "s", *ret_n, *ret_n == 1 ? "is" : "are");
        add_warned(diff, j, load, diff->jobs[j].given.spares - *ret_n, true, job_result->reason);
        return false;
}

static void add_start(const struct diff *diff, uint32_t j, int32_t head_node, const int32_t *spares, uint32_t n_spares,
                      struct round_result *result) {
        const struct rm_job *job = &diff->given->jobs[j];
        struct round_action *start = round_add_action(result);

        start->kind = ROUND_START;
        start->job = j;
        start->head_node = head_node;
        start->group_node = copy_of(diff->plan->jobs[j].group_node, job->n_groups);
        start->spare_nodes = copy_of(spares, n_spares);
        start->n_spare_nodes = n_spares;
}

struct starting {
        uint64_t *held; /* each node: cores that something holds */
        uint32_t *here; /* scratch */
        int32_t *spares; /* scratch */
        struct spare_choice *choice; /* NULL: no job has spares */
        int32_t behind; /* the job that waits for spare nodes, -1: none */
};

static void start_or_wait(const struct diff *diff, uint32_t j, const uint64_t *load, struct starting *starting,
                          struct round_result *result) {
        struct round_job_result *job_result = &result->jobs[j];
        uint32_t n_spares = 0;

        if (waits(diff, j))
                return;
        if (starting->behind >= 0)
                (void) text_format(job_result->reason, RM_REASON_BYTES, "waits behind job '%s', which waits for spare nodes",
                                   diff->given->jobs[starting->behind].name);
        else if (!take_spares(diff, j, load, starting->choice, starting->spares, &n_spares, job_result))
                starting->behind = diff->jobs[j].given.spares < diff->given->n_nodes ? (int32_t) j : -1;
        else if (!take_cores(diff, j, starting->held))
                (void) text_format(job_result->reason, RM_REASON_BYTES, "waits for moves that make room for it");
        else {
                job_result->waits = false;
                add_start(diff, j, head_place(diff, j, load, starting->here), starting->spares, n_spares, result);
        }
}

/* Spare nodes of running jobs, where they are not what they were. */
static void add_reserves(const struct diff *diff, struct starting *starting, struct round_result *result) {
        for (uint32_t j = 0; j < diff->given->n_jobs; j++) {
                const struct round_job *job = &diff->jobs[j].given;
                struct round_action *reserve;
                uint32_t n;

                if ((job->spares == 0 && job->n_spare_nodes == 0) || !job_runs(&diff->given->jobs[j]) || waits(diff, j))
                        continue;
                n = spare_choose(starting->choice, j, starting->spares);
                if (n == job->n_spare_nodes &&
                    (n == 0 || memcmp(starting->spares, job->spare_nodes, sizeof(*starting->spares) * n) == 0))
                        continue;
                reserve = round_add_action(result);
                reserve->kind = ROUND_RESERVE;
                reserve->job = j;
                reserve->spare_nodes = copy_of(starting->spares, n);
                reserve->n_spare_nodes = n;
        }
}

/* Adds the starts in the order in which waiting jobs are served. */
static void add_starts(const struct diff *diff, const uint64_t *load, struct round_result *result) {
        const struct spare_question question = { .given = diff->given,
                                                 .fold = diff->fold,
                                                 .plan = diff->plan,
                                                 .jobs = diff->jobs,
                                                 .held = diff->held,
                                                 .pool = diff->given->n_jobs > 0 ? diff->jobs[0].given.pool : NULL };
        cleanup_free uint64_t *held = held_now(diff);
        cleanup_free uint32_t *here = xcalloc(diff->given->n_nodes + 1u, sizeof(*here));
        cleanup_free uint32_t *order = xcalloc(diff->given->n_jobs + 1u, sizeof(*order));
        cleanup_free int32_t *spares = NULL;
        struct starting starting = { .held = held, .here = here, .behind = -1 };
        uint32_t n = pack_order(diff->given, order), most = 0;
        bool any = false;

        for (uint32_t j = 0; j < diff->given->n_jobs; j++) {
                most = diff->jobs[j].given.spares > most ? diff->jobs[j].given.spares : most;
                any |= diff->jobs[j].given.spares > 0 || diff->jobs[j].given.n_spare_nodes > 0;
        }
        starting.spares = spares = xcalloc(most + 1u, sizeof(*spares));
        if (any) {
                starting.choice = spare_choice_create(&question);
                add_reserves(diff, &starting, result);
        }
        for (uint32_t i = 0; i < n; i++)
                result->jobs[order[i]].waits = true;
        for (uint32_t i = 0; i < n; i++)
                start_or_wait(diff, order[i], load, &starting, result);
        spare_choice_destroy(starting.choice);
}

void diff_actions(const struct diff *diff, struct round_result *result) {
        cleanup_free uint64_t *load = load_now(diff);
        struct round_result moves = list_moves(diff, load);

        add_moves(&moves, false, result);
        add_head_moves(diff, load, result);
        add_moves(&moves, true, result);
        add_starts(diff, load, result);
        free(moves.actions);
}

/* ---- what to say ---- */

/* For jobs without an availability of their own, which may be many, the sums are always the
 * same. */
struct totals {
        const uint64_t *load;
        const int64_t *memory; /* each node: what groups take that come to it */
        uint64_t usable, free_cores;
};

static uint64_t usable_by(const struct diff *diff, const struct totals *totals, const struct rm_job *job) {
        uint64_t usable = 0;

        if (!job->node_limit)
                return totals->usable;
        for (uint32_t s = 0; s < diff->given->n_nodes; s++)
                usable += fold_usable(job, s, diff->fold->real_cores[s]);
        return usable;
}

static uint64_t free_for(const struct diff *diff, const struct totals *totals, const struct rm_job *job) {
        uint64_t sum = 0;

        if (!job->node_limit)
                return totals->free_cores;
        for (uint32_t s = 0; s < diff->given->n_nodes; s++) {
                uint64_t left = left_on(diff, totals->load, s), limit = fold_usable(job, s, diff->fold->real_cores[s]);

                sum += left < limit ? left : limit;
        }
        return sum;
}

static struct totals sum_up(const struct diff *diff, const uint64_t *load, const int64_t *memory) {
        struct totals totals = { .load = load, .memory = memory };

        for (uint32_t s = 0; s < diff->given->n_nodes; s++) {
                totals.usable += diff->fold->real_cores[s];
                totals.free_cores += left_on(diff, load, s);
        }
        return totals;
}

static int64_t memory_left(const struct diff *diff, const struct totals *totals, uint32_t node) {
        int64_t free_now = diff->given->nodes[node].memory_free;

        if (free_now == RM_NO_MEMORY_LIMIT)
                return free_now;
        return free_now > totals->memory[node] ? free_now - totals->memory[node] : 0;
}

/* There are nodes with cores for all its groups, but not with memory for them: told. */
static bool lacks_memory(const struct diff *diff, uint32_t j, const struct totals *totals, struct round_job_result *job_result) {
        const struct rm_job *job = &diff->given->jobs[j];
        int64_t needed = memory_largest(job), most = -1;
        uint64_t by_cores = 0, by_both = 0;
        int32_t where = RM_NO_NODE;

        for (uint32_t s = 0; needed > 0 && s < diff->given->n_nodes; s++) {
                uint64_t limit = fold_usable(job, s, diff->fold->real_cores[s]), left = left_on(diff, totals->load, s);
                uint32_t groups = (uint32_t) ((left < limit ? left : limit) / job->group_size);

                by_cores += groups;
                by_both += memory_groups(needed, memory_left(diff, totals, s), groups);
                if (groups > 0 && memory_left(diff, totals, s) > most) {
                        most = memory_left(diff, totals, s);
                        where = (int32_t) s;
                }
        }
        if (by_cores < job_full_groups(job) || by_both >= job_full_groups(job))
                return false;
        (void) text_format(job_result->reason, RM_REASON_BYTES,
                           "waits for memory: %" PRId64 " MB needed for each group, at most %" PRId64 " MB free, on '%.63s'",
                           needed / 1000000, most / 1000000, node_name(diff, where));
        return true;
}

static bool has_too_large_groups(const struct diff *diff, uint32_t j, struct round_job_result *job_result) {
        const struct rm_job *job = &diff->given->jobs[j];
        int64_t needed = memory_largest(job), largest;

        if (!memory_never_fits(diff->given, needed, &largest))
                return false;
        (void) text_format(job_result->reason, RM_REASON_BYTES,
                           "needs %" PRId64 " MB of memory for each group, and no usable node has more than %" PRId64 " MB",
                           needed / 1000000, largest / 1000000);
        return true;
}

/* A job holds up others only if it could run on the empty cluster. */
static bool holds_up_others(const struct diff *diff, uint32_t j, const struct totals *totals) {
        const struct rm_job *job = &diff->given->jobs[j];

        return usable_by(diff, totals, job) >= job->ranks && (memory_largest(job) == 0 || pack_fits_alone(diff->given, job));
}

static void explain_wait(const struct diff *diff, uint32_t j, const struct totals *totals, int32_t ahead,
                         struct round_job_result *job_result) {
        const struct rm_job *job = &diff->given->jobs[j]; /* with its own limits, not those of the fold */
        uint64_t usable = usable_by(diff, totals, job), free_cores = free_for(diff, totals, job);
        const char *plural = job->ranks - free_cores == 1 ? "" : "s";
        char *text = job_result->reason;

        if (diff->jobs[j].why_skipped && diff->jobs[j].why_skipped[0])
                (void) text_format(text, RM_REASON_BYTES, "no policy could place it: %s", diff->jobs[j].why_skipped);
        else if (usable < job->ranks) {
                (void) snprintf(text, RM_REASON_BYTES, "needs %u core%s, and only %" PRIu64 " %s usable", job->ranks,
                                job->ranks == 1 ? "" : "s", usable, usable == 1 ? "is" : "are");
                add_warned(diff, j, totals->load, job->ranks - free_cores, false, text);
                add_pool(diff, j, job->ranks - free_cores, text);
        } else if (has_too_large_groups(diff, j, job_result) || lacks_memory(diff, j, totals, job_result))
                return;
        else if (diff->fold->unsettled)
                (void) snprintf(text, RM_REASON_BYTES, "waits for moves to end");
        else if (free_cores < job->ranks) {
                (void) snprintf(text, RM_REASON_BYTES,
                                "waits for %" PRIu64 " more core%s; %" PRIu64 " of %" PRIu64 " usable are free",
                                job->ranks - free_cores, plural, free_cores, usable);
                add_warned(diff, j, totals->load, job->ranks - free_cores, false, text);
                add_pool(diff, j, job->ranks - free_cores, text);
        } else if (ahead >= 0)
                (void) text_format(text, RM_REASON_BYTES, "waits behind job '%s'; %" PRIu64 " of %" PRIu64 " usable cores are free",
                                   diff->given->jobs[ahead].name, free_cores, usable);
        else if (job->group_size == 1)
                (void) snprintf(text, RM_REASON_BYTES, "its policy lets it wait; %" PRIu64 " of %" PRIu64 " usable cores are free",
                                free_cores, usable);
        else
                (void) snprintf(text, RM_REASON_BYTES,
                                "waits for %u cores together on one node for each group; %" PRIu64 " of %" PRIu64
                                " usable are free",
                                job->group_size, free_cores, usable);
}

/* `here`: an entry for each node, all 0; left so. */
static bool job_is_folded(const struct diff *diff, uint32_t j, const uint64_t *load, uint32_t *here) {
        const struct rm_job *job = &diff->given->jobs[j];
        const int32_t *node = diff->plan->jobs[j].group_node;
        bool found = false;

        for (uint32_t g = 0; job->node_limit && g < job->n_groups; g++)
                here[node[g]] += job->groups[g].ranks;
        for (uint32_t g = 0; g < job->n_groups && !found; g++)
                found = !is_down(diff, node[g]) && (load[node[g]] > diff->fold->real_cores[node[g]] ||
                                                    here[node[g]] > job_node_limit(job, (uint32_t) node[g]));
        for (uint32_t g = 0; job->node_limit && g < job->n_groups; g++)
                here[node[g]] = 0;
        return found;
}

/* The node of mpirun is to be left, and all others have other processors. */
static bool head_is_barred(const struct diff *diff, uint32_t j) {
        int32_t head = diff->jobs[j].given.head_node;

        return head >= 0 && !is_down(diff, head) && diff->fold->real_cores[head] == 0 &&
               fold_bars(diff->fold, diff->jobs[j].given.kinds, NULL, head);
}

static void stays_on(const struct diff *diff, int32_t node, struct round_job_result *job_result) {
        (void) text_format(job_result->stays_on, sizeof(job_result->stays_on), "%s", node_name(diff, node));
}

/* A node that should be left, and is not. */
static void explain_stay(const struct diff *diff, uint32_t j, struct round_job_result *job_result) {
        const struct rm_job *job = &folded(diff)->jobs[j];

        for (uint32_t g = 0; g < job->n_groups; g++) {
                int32_t node = diff->plan->jobs[j].group_node[g];

                if (is_down(diff, node)) {
                        (void) text_format(job_result->reason, RM_REASON_BYTES, "group %u is on '%s', which is down", g,
                                           node_name(diff, node));
                        return;
                }
                if (diff->fold->real_cores[node] > 0)
                        continue;
                if ((job->groups[g].flags & (FOLD_GROUP_BARRED | FOLD_GROUP_KEPT)) || diff->fold->real_total == 0)
                        stays_on(diff, node, job_result);
                if (job->groups[g].flags & FOLD_GROUP_BARRED)
                        (void) text_format(job_result->reason, RM_REASON_BYTES,
                                           "stays on '%s': no other node that may be used has the instruction sets that group %u "
                                           "may use",
                                           node_name(diff, node), g);
                else if (job->groups[g].flags & FOLD_GROUP_KEPT)
                        (void) text_format(job_result->reason, RM_REASON_BYTES,
                                           "stays on '%s': no other node has the %" PRId64
                                           " MB of memory free that moving group %u needs",
                                           node_name(diff, node), job->groups[g].memory / 1000000, g);
                else if (diff->fold->real_total == 0)
                        (void) text_format(job_result->reason, RM_REASON_BYTES, "stays on '%s': no node has usable cores",
                                           node_name(diff, node));
                else
                        (void) text_format(job_result->reason, RM_REASON_BYTES, "moves away from '%s' as soon as it can",
                                           node_name(diff, node));
                return;
        }
        if (!head_is_barred(diff, j))
                return;
        stays_on(diff, diff->jobs[j].given.head_node, job_result);
        (void) text_format(job_result->reason, RM_REASON_BYTES,
                           "stays on '%s': no other node that may be used has the instruction sets that mpirun may use",
                           node_name(diff, diff->jobs[j].given.head_node));
}

/* Explains the steps of a job that is folded, or would be the first to be. */
static void explain_steps(const struct round_job_state *state, struct round_job_result *job_result) {
        double bears;
        bool first = steps_above_goal(&state->given.steps, &bears);
        char rates[RM_REASON_BYTES] = "";

        explain_return(&state->back, job_result->measured);
        if (first || (job_result->folded && !state->back.asked))
                steps_explain(&state->given.steps, rates, sizeof(rates));
        add_text(job_result->measured, rates);
}

static bool keeps_group(const struct diff *diff, uint32_t j) {
        const struct rm_job *job = &folded(diff)->jobs[j];
        bool kept = false;

        for (uint32_t g = 0; g < job->n_groups; g++)
                kept |= (job->groups[g].flags & (FOLD_GROUP_KEPT | FOLD_GROUP_BARRED)) == FOLD_GROUP_KEPT;
        return kept;
}

void diff_outcomes(const struct diff *diff, struct round_result *result) {
        uint32_t n_jobs = diff->given->n_jobs, n_order;
        cleanup_free uint64_t *load = xcalloc(diff->given->n_nodes + 1u, sizeof(*load));
        cleanup_free int64_t *memory = xcalloc(diff->given->n_nodes + 1u, sizeof(*memory));
        cleanup_free uint32_t *here = xcalloc(diff->given->n_nodes + 1u, sizeof(*here));
        cleanup_free uint32_t *order = xcalloc(n_jobs + 1u, sizeof(*order));
        struct totals totals;
        int32_t ahead = -1;

        for (uint32_t j = 0; j < n_jobs; j++)
                for (uint32_t g = 0; !waits(diff, j) && g < diff->given->jobs[j].n_groups; g++) {
                        int32_t node = diff->plan->jobs[j].group_node[g];

                        load[node] += diff->given->jobs[j].groups[g].ranks;
                        memory[node] = memory_sum(memory[node], memory_taken(&folded(diff)->jobs[j], g, node));
                }
        for (uint32_t j = 0; j < n_jobs; j++) {
                if (!job_runs(&diff->given->jobs[j]))
                        continue;
                result->jobs[j].folded = job_is_folded(diff, j, load, here);
                explain_stay(diff, j, &result->jobs[j]);
                result->short_of_memory |= keeps_group(diff, j);
                if (!result->jobs[j].reason[0] && diff->plan->jobs[j].reason[0])
                        memcpy(result->jobs[j].reason, diff->plan->jobs[j].reason, RM_REASON_BYTES);
                explain_steps(&diff->jobs[j], &result->jobs[j]);
        }
        n_order = pack_order(diff->given, order);
        totals = sum_up(diff, load, memory);
        for (uint32_t i = 0; i < n_order; i++) {
                uint32_t j = order[i];
                struct round_job_result *job_result = &result->jobs[j];

                if (!job_result->waits)
                        continue;
                result->short_of_memory |= memory_largest(&diff->given->jobs[j]) > 0;
                job_result->lost = waits(diff, j) && !diff->fold->unsettled;
                if (!job_result->reason[0] && diff->plan->jobs[j].reason[0])
                        (void) text_format(job_result->reason, RM_REASON_BYTES, "%s", diff->plan->jobs[j].reason);
                if (!job_result->reason[0])
                        explain_wait(diff, j, &totals, ahead, job_result);
                if (ahead < 0 && holds_up_others(diff, j, &totals))
                        ahead = (int32_t) j;
        }
}
