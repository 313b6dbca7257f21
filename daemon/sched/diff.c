#include "daemon/sched/diff.h"

#include <inttypes.h>
#include <string.h>

#include "common/util.h"
#include "policies/place/cost.h"
#include "policies/place/pack.h"

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

/* No cores there for this job: neither the cluster's, nor by its own availability. A job whose own file allows no core anywhere
 * is not made to leave by it. */
static bool must_leave(const struct diff *diff, uint32_t j, int32_t node) {
        return !is_down(diff, node) &&
               (diff->fold->real_cores[node] == 0 || job_node_limit(&folded(diff)->jobs[j], (uint32_t) node) == 0);
}

static struct round_action *add_action(struct round_result *result) {
        result->actions = xrealloc(result->actions, sizeof(*result->actions) * (result->n_actions + 1));
        result->actions[result->n_actions] =
                (struct round_action) { .from = RM_NO_NODE, .to = RM_NO_NODE, .head_node = RM_NO_NODE };
        return &result->actions[result->n_actions++];
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

static void explain_move(const struct diff *diff, const uint64_t *load, struct round_action *action) {
        const char *from = node_name(diff, action->from);
        uint32_t cores = diff->fold->real_cores[action->from];

        if (cores == 0)
                (void) snprintf(action->reason, sizeof(action->reason), "node '%s' is to be left", from);
        else if (must_leave(diff, action->job, action->from))
                (void) snprintf(action->reason, sizeof(action->reason), "the job's availability takes '%s' away", from);
        else if (load[action->from] > cores)
                (void) snprintf(action->reason, sizeof(action->reason), "node '%s' has %" PRIu64 " ranks on %u cores", from,
                                load[action->from], cores);
        else
                (void) snprintf(action->reason, sizeof(action->reason), "a better place than '%s'", from);
        action->must = must_leave(diff, action->job, action->from) || load[action->from] > cores;
}

static void add_moves(const struct diff *diff, const uint64_t *load, bool must, struct round_result *result) {
        for (uint32_t j = 0; j < folded(diff)->n_jobs; j++) {
                const struct rm_job *job = &folded(diff)->jobs[j];

                for (uint32_t g = 0; !waits(diff, j) && g < job->n_groups; g++) {
                        struct round_action move = { .kind = ROUND_MOVE,
                                                     .job = j,
                                                     .group = (int32_t) g,
                                                     .from = job->groups[g].node,
                                                     .to = diff->plan->jobs[j].group_node[g],
                                                     .head_node = RM_NO_NODE };

                        if (move.from < 0 || move.from == move.to)
                                continue;
                        explain_move(diff, load, &move);
                        if (move.must == must)
                                *add_action(result) = move;
                }
        }
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

/* A node with cores: where the job has most ranks, else the one with most free. One that the job may not use only if there is no other. */
static int32_t head_place(const struct diff *diff, uint32_t j, const uint64_t *load) {
        const struct rm_job *job = &folded(diff)->jobs[j];
        uint32_t n = folded(diff)->n_nodes;
        cleanup_free uint32_t *here = xcalloc(n + 1u, sizeof(*here));
        struct head_choice best = { 0 };
        int32_t place = RM_NO_NODE;

        for (uint32_t g = 0; g < job->n_groups; g++)
                if (diff->plan->jobs[j].group_node[g] >= 0)
                        here[diff->plan->jobs[j].group_node[g]] += job->groups[g].ranks;
        for (uint32_t s = 0; s < n; s++) {
                struct head_choice choice = { .allowed = !must_leave(diff, j, (int32_t) s),
                                              .ranks = here[s],
                                              .free_cores = (int64_t) diff->fold->real_cores[s] - (int64_t) load[s] };

                if (diff->fold->real_cores[s] == 0 || (place >= 0 && !better_choice(choice, best)))
                        continue;
                place = (int32_t) s;
                best = choice;
        }
        return place;
}

static void add_head_moves(const struct diff *diff, const uint64_t *load, struct round_result *result) {
        for (uint32_t j = 0; j < folded(diff)->n_jobs; j++) {
                const struct round_job *state = &diff->jobs[j];
                struct round_action move = { .kind = ROUND_MOVE,
                                             .job = j,
                                             .group = ROUND_HEAD,
                                             .from = state->head_node,
                                             .head_node = RM_NO_NODE,
                                             .must = true };

                if (state->head_node < 0 || state->head_moving_to >= 0 || state->pinned || !must_leave(diff, j, state->head_node))
                        continue;
                move.to = head_place(diff, j, load);
                /* Leaving a node goes before what the job may use, the other way round it gains nothing. */
                if (move.to < 0 || (diff->fold->real_cores[move.from] > 0 && must_leave(diff, j, move.to)))
                        continue;
                explain_move(diff, load, &move);
                *add_action(result) = move;
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

static void add_starts(const struct diff *diff, const uint64_t *load, struct round_result *result) {
        cleanup_free uint64_t *held = held_now(diff);

        for (uint32_t j = 0; j < diff->given->n_jobs; j++) {
                const struct rm_job *job = &diff->given->jobs[j];
                struct round_action *start;

                if (job_runs(job))
                        continue;
                result->jobs[j].waits = true;
                if (waits(diff, j))
                        continue;
                if (!take_cores(diff, j, held)) {
                        (void) snprintf(result->jobs[j].reason, RM_REASON_BYTES, "waits for moves that make room for it");
                        continue;
                }
                result->jobs[j].waits = false;
                start = add_action(result);
                start->kind = ROUND_START;
                start->job = j;
                start->head_node = head_place(diff, j, load);
                start->group_node = xcalloc(job->n_groups, sizeof(*start->group_node));
                start->rank_core = xcalloc(job->ranks, sizeof(*start->rank_core));
                memcpy(start->group_node, diff->plan->jobs[j].group_node, sizeof(*start->group_node) * job->n_groups);
                memcpy(start->rank_core, diff->plan->jobs[j].rank_core, sizeof(*start->rank_core) * job->ranks);
        }
}

void diff_actions(const struct diff *diff, struct round_result *result) {
        cleanup_free uint64_t *load = load_now(diff);

        add_moves(diff, load, true, result);
        add_head_moves(diff, load, result);
        add_moves(diff, load, false, result);
        add_starts(diff, load, result);
}

/* ---- what to say ---- */

static uint64_t usable_by(const struct diff *diff, const struct rm_job *job) {
        uint64_t usable = 0;

        for (uint32_t s = 0; s < diff->given->n_nodes; s++)
                usable += fold_usable(job, s, diff->fold->real_cores[s]);
        return usable;
}

static uint64_t free_for(const struct diff *diff, const struct rm_job *job, const uint64_t *load) {
        uint64_t sum = 0;

        for (uint32_t s = 0; s < diff->given->n_nodes; s++) {
                uint64_t real = diff->fold->real_cores[s], left = real > load[s] ? real - load[s] : 0;
                uint64_t limit = fold_usable(job, s, (uint32_t) real);

                sum += left < limit ? left : limit;
        }
        return sum;
}

static void explain_wait(const struct diff *diff, uint32_t j, const uint64_t *load, int32_t ahead,
                         struct round_job_result *job_result) {
        const struct rm_job *job = &diff->given->jobs[j]; /* with its own limits, not those of the fold */
        uint64_t usable = usable_by(diff, job), free_cores = free_for(diff, job, load);
        const char *plural = job->ranks - free_cores == 1 ? "" : "s";
        char *text = job_result->reason;

        if (diff->why_skipped[j][0])
                (void) snprintf(text, RM_REASON_BYTES, "no policy could place it: %.120s", diff->why_skipped[j]);
        else if (usable < job->ranks)
                (void) snprintf(text, RM_REASON_BYTES, "needs %u cores, and only %" PRIu64 " are usable", job->ranks, usable);
        else if (diff->fold->unsettled)
                (void) snprintf(text, RM_REASON_BYTES, "waits for moves to end");
        else if (free_cores < job->ranks)
                (void) snprintf(text, RM_REASON_BYTES,
                                "waits for %" PRIu64 " more core%s; %" PRIu64 " of %" PRIu64 " usable are free",
                                job->ranks - free_cores, plural, free_cores, usable);
        else if (ahead >= 0)
                (void) snprintf(text, RM_REASON_BYTES, "waits behind job '%s'; %" PRIu64 " of %" PRIu64 " usable cores are free",
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

static bool job_is_folded(const struct diff *diff, uint32_t j, const uint64_t *load) {
        const struct rm_job *job = &diff->given->jobs[j];
        cleanup_free uint32_t *here = xcalloc(diff->given->n_nodes + 1u, sizeof(*here));

        for (uint32_t g = 0; g < job->n_groups; g++)
                here[diff->plan->jobs[j].group_node[g]] += job->groups[g].ranks;
        for (uint32_t g = 0; g < job->n_groups; g++) {
                int32_t node = diff->plan->jobs[j].group_node[g];

                if (is_down(diff, node))
                        continue;
                if (load[node] > diff->fold->real_cores[node] || here[node] > job_node_limit(job, (uint32_t) node))
                        return true;
        }
        return false;
}

/* A node that should be left, and is not. */
static void explain_stay(const struct diff *diff, uint32_t j, struct round_job_result *job_result) {
        const struct rm_job *job = &folded(diff)->jobs[j];

        for (uint32_t g = 0; g < job->n_groups; g++) {
                int32_t node = diff->plan->jobs[j].group_node[g];

                if (is_down(diff, node)) {
                        (void) snprintf(job_result->reason, RM_REASON_BYTES, "group %u is on '%s', which is down", g,
                                        node_name(diff, node));
                        return;
                }
                if (diff->fold->real_cores[node] > 0)
                        continue;
                if (diff->fold->real_total == 0)
                        (void) snprintf(job_result->reason, RM_REASON_BYTES, "stays on '%s': no node has usable cores",
                                        node_name(diff, node));
                else
                        (void) snprintf(job_result->reason, RM_REASON_BYTES, "leaves '%s' when it can move", node_name(diff, node));
                return;
        }
}

void diff_outcomes(const struct diff *diff, struct round_result *result) {
        uint32_t n_jobs = diff->given->n_jobs, n_order;
        cleanup_free uint64_t *load = xcalloc(diff->given->n_nodes + 1u, sizeof(*load));
        cleanup_free uint32_t *order = xcalloc(n_jobs + 1u, sizeof(*order));
        int32_t ahead = -1;

        for (uint32_t j = 0; j < n_jobs; j++)
                for (uint32_t g = 0; !waits(diff, j) && g < diff->given->jobs[j].n_groups; g++)
                        load[diff->plan->jobs[j].group_node[g]] += diff->given->jobs[j].groups[g].ranks;
        for (uint32_t j = 0; j < n_jobs; j++) {
                if (!job_runs(&diff->given->jobs[j]))
                        continue;
                result->jobs[j].folded = job_is_folded(diff, j, load);
                explain_stay(diff, j, &result->jobs[j]);
        }
        n_order = pack_order(diff->given, order);
        for (uint32_t i = 0; i < n_order; i++) {
                uint32_t j = order[i];
                struct round_job_result *job_result = &result->jobs[j];

                if (!job_result->waits)
                        continue;
                job_result->lost = waits(diff, j) && !diff->fold->unsettled;
                if (!job_result->reason[0] && diff->plan->jobs[j].reason[0])
                        (void) snprintf(job_result->reason, RM_REASON_BYTES, "%s", diff->plan->jobs[j].reason);
                if (!job_result->reason[0])
                        explain_wait(diff, j, load, ahead, job_result);
                if (ahead < 0 && usable_by(diff, &diff->given->jobs[j]) >= diff->given->jobs[j].ranks)
                        ahead = (int32_t) j;
        }
}
