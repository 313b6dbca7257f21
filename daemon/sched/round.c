#include "daemon/sched/round.h"

#include <string.h>

#include "common/util.h"
#include "daemon/sched/backfill.h"
#include "daemon/sched/diff.h"
#include "daemon/sched/fold.h"
#include "daemon/sched/hysteresis.h"
#include "daemon/sched/return_to_faster.h"
#include "daemon/sched/return_when_paid.h"
#include "daemon/sched/round_state.h"
#include "daemon/sched/spare.h"
#include "placement/cost.h"
#include "placement/memory.h"
#include "placement/pack.h"

enum { POLICY_BYTES = sizeof(((struct round_job_result *) NULL)->policy) };

struct round {
        const struct rm_snapshot *given;
        struct round_job_state *jobs;
        struct fold *fold;
        struct rm_plan *plan;    /* of all jobs, as far as decided */
        const char **passes;     /* the policy of each; NULL: the cluster's */
        uint32_t n_passes, n_decided; /* passes go in order */
        bool chose_cores; /* some policy did */
        uint32_t *held; /* each node: its cores, where they are kept free for a job */
        uint32_t n_regular; /* passes without those of jobs that overtake */
        int32_t next; /* the job that waits and is served next; -1: none, or it is not certain when it can start */
        uint64_t next_usec; /* when that is, from now */
        struct snapshot *asked;  /* of the pass in hand */
        uint32_t *asked_job;     /* its jobs: their index in the round */
};

/* ---- what is, in the words of a policy ---- */

static bool left(const struct rm_node *node) {
        return node->state == RM_NODE_DRAINING || node->state == RM_NODE_DRAINED || node->state == RM_NODE_DOWN;
}

/* Nodes to be left have no cores. Groups that move count where they go; those that cannot be
 * reached stay. */
static int describe(const struct rm_snapshot *given, const struct round_job *jobs, struct snapshot *ret, uint32_t *ret_held,
                    struct rm_error *err) {
        if (given->params.backfill == ROUND_BACKFILL_LIMITS)
                snapshot_params(ret)->backfill = 0;
        for (uint32_t s = 0; s < given->n_nodes; s++)
                if (left(&given->nodes[s]))
                        snapshot_node(ret, s)->cores = 0;
        for (uint32_t j = 0; j < given->n_jobs; j++) {
                for (uint32_t g = 0; g < given->jobs[j].n_groups; g++) {
                        int32_t to = jobs && jobs[j].group_moving_to ? jobs[j].group_moving_to[g] : RM_NO_NODE;
                        int32_t node = given->jobs[j].groups[g].node;

                        if (to >= (int32_t) given->n_nodes || (to >= 0 && node < 0))
                                return error_set(err, -EINVAL, "job '%s': group %u moves from or to no node", given->jobs[j].name,
                                                 g);
                        if (to >= 0)
                                snapshot_group(ret, j, g)->node = node = to;
                        if (node >= 0 && (to >= 0 || (jobs && jobs[j].pinned) || given->nodes[node].state == RM_NODE_DOWN))
                                snapshot_group(ret, j, g)->flags |= RM_GROUP_PINNED;
                }
        }
        if (jobs)
                spare_describe(ret, jobs, ret_held);
        return 0;
}

/* ---- passes ---- */

static bool same_policy(const char *a, const char *b) {
        return a == b || (a && b && strcmp(a, b) == 0);
}

/* Add passes for the jobs that `wanted` marks (NULL: all): the cluster's policy first, then the
 * others in the order of the jobs that asked for them. */
static void add_passes(struct round *round, const bool *requested) {
        const struct rm_snapshot *view = snapshot_view(round->fold->snapshot);
        uint32_t first = round->n_passes;

        for (int own = 0; own < 2; own++)
                for (uint32_t j = 0; j < view->n_jobs; j++) {
                        uint32_t p;

                        if ((requested && !requested[j]) || (view->jobs[j].policy != NULL) != own)
                                continue;
                        for (p = first; p < round->n_passes && !same_policy(round->passes[p], view->jobs[j].policy); p++)
                                ;
                        if (p == round->n_passes)
                                round->passes[round->n_passes++] = view->jobs[j].policy;
                        round->jobs[j].pass = p;
                }
}

/* The job that is served next has a reservation once all jobs are decided: it tells when that job
 * can start for certain, and those that may overtake it get one more pass. Where any job may
 * overtake, nothing is certain. */
static void reserve_next(struct round *round) {
        const struct rm_snapshot *view = snapshot_view(round->fold->snapshot);
        cleanup_free uint64_t *left_usec = NULL;
        cleanup_free bool *may = NULL;
        struct backfill_reservation reservation;
        int32_t head;

        if (round->given->params.backfill == 1 || round->fold->unsettled || round->n_decided != round->n_regular ||
            round->n_passes > round->n_regular)
                return;
        head = backfill_head(view, round->plan);
        if (head < 0)
                return;
        left_usec = xcalloc(view->n_jobs, sizeof(*left_usec));
        may = xcalloc(view->n_jobs, sizeof(*may));
        for (uint32_t j = 0; j < view->n_jobs; j++)
                left_usec[j] = round->jobs[j].given.left_usec;
        reservation = backfill_reserve(view, round->plan, left_usec, (uint32_t) head);
        if (reservation.usec > 0 && reservation.usec != BACKFILL_NEVER) {
                round->next = head;
                round->next_usec = reservation.usec;
        }
        if (round->given->params.backfill == ROUND_BACKFILL_LIMITS &&
            backfill_candidates(view, round->plan, (uint32_t) head, &reservation, may) > 0)
                add_passes(round, may);
}

static void decided(struct round *round, uint32_t pass) {
        round->n_decided = pass + 1;
        reserve_next(round);
}

static void *keep(struct round *round, const void *data, size_t size_bytes) {
        return memcpy(snapshot_alloc(round->fold->snapshot, size_bytes), data, size_bytes);
}

static void take_steps(struct round *round, uint32_t j, const struct steps *steps) {
        struct steps_place *places = steps->n_places > 0 ? keep(round, steps->places, sizeof(*places) * steps->n_places) : NULL;

        for (uint32_t i = 0; i < steps->n_places; i++)
                places[i].group_node = keep(round, steps->places[i].group_node, sizeof(int32_t) * round->given->jobs[j].n_groups);
        round->jobs[j].given.steps.places = places;
}

static const struct round_kinds *keep_kinds(struct round *round, const struct round_kinds *given) {
        struct round_kinds *kinds = given ? keep(round, given, sizeof(*given)) : NULL;

        if (kinds) {
                kinds->of_node = keep(round, given->of_node, sizeof(*given->of_node) * round->given->n_nodes);
                kinds->lacks = keep(round, given->lacks, sizeof(*given->lacks) * given->n * given->n);
        }
        return kinds;
}

/* The caller's arrays may go after round_create(). Where groups move to is in the fold's
 * snapshot. */
static void take_job(struct round *round, uint32_t j, const struct round_job *job) {
        struct round_job *own = &round->jobs[j].given;

        *own = job ? *job : (struct round_job) { .head_node = RM_NO_NODE, .head_moving_to = RM_NO_NODE };
        own->group_moving_to = NULL;
        if (!job)
                return;
        if (job->n_spare_nodes > 0)
                own->spare_nodes = keep(round, job->spare_nodes, sizeof(*job->spare_nodes) * job->n_spare_nodes);
        if (job->kept_off && j > 0 && job[-1].kept_off == job->kept_off)
                own->kept_off = round->jobs[j - 1].given.kept_off; /* mostly the same for all */
        else if (job->kept_off)
                own->kept_off = keep(round, job->kept_off, sizeof(*job->kept_off) * round->given->n_nodes);
        take_steps(round, j, &job->steps);
        if (job->pool && j > 0 && job[-1].pool == job->pool)
                own->pool = round->jobs[j - 1].given.pool;
        else if (job->pool)
                own->pool = keep(round, job->pool, sizeof(*job->pool) * round->given->n_nodes);
        own->kinds = j > 0 ? round->jobs[0].given.kinds : keep_kinds(round, job->kinds);
        if (job->group_move_usec)
                own->group_move_usec =
                        keep(round, job->group_move_usec, sizeof(*job->group_move_usec) * round->given->jobs[j].n_groups);
}

int round_create_checked(const struct rm_snapshot *snapshot, const struct round_job *jobs, struct round **ret_round,
                         struct rm_error *err) {
        struct round *round = xcalloc(1, sizeof(*round));
        struct snapshot *described = snapshot_copy(snapshot, NULL);
        int r;

        round->given = snapshot;
        round->next = -1;
        round->held = xcalloc(snapshot->n_nodes + 1u, sizeof(*round->held));
        r = describe(snapshot, jobs, described, round->held, err);
        if (r < 0)
                snapshot_destroy(described);
        else
                r = fold_create(described, jobs, &round->fold, err);
        if (r < 0) {
                round_destroy(round);
                return r;
        }
        round->jobs = xcalloc(snapshot->n_jobs + 1u, sizeof(*round->jobs));
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                take_job(round, j, jobs ? &jobs[j] : NULL);
        round->plan = plan_create(snapshot);
        round->passes = xcalloc(2 * snapshot->n_jobs + 1u, sizeof(*round->passes));
        round->asked_job = xcalloc(snapshot->n_jobs + 1u, sizeof(*round->asked_job));
        add_passes(round, NULL);
        round->n_regular = round->n_passes;
        *ret_round = round;
        return 0;
}

int round_create(const struct rm_snapshot *snapshot, const struct round_job *jobs, struct round **ret_round, struct rm_error *err) {
        int r = snapshot_check(snapshot, err);

        return r < 0 ? r : round_create_checked(snapshot, jobs, ret_round, err);
}

void round_destroy(struct round *round) {
        if (!round)
                return;
        fold_destroy(round->fold);
        plan_destroy(round->plan);
        snapshot_destroy(round->asked);
        free(round->jobs);
        free(round->held);
        free(round->passes);
        free(round->asked_job);
        free(round);
}

int round_policy_snapshot(const struct rm_snapshot *snapshot, const struct round_job *jobs, struct snapshot **ret_snapshot,
                          struct rm_error *err) {
        struct round *round;
        int r = round_create(snapshot, jobs, &round, err);

        if (r < 0)
                return r;
        *ret_snapshot = round->fold->snapshot;
        round->fold->snapshot = NULL;
        round_destroy(round);
        return 0;
}

uint32_t round_passes(const struct round *round) {
        return round->n_passes;
}

const char *round_policy(const struct round *round, uint32_t pass) {
        return round->passes[pass];
}

/* ---- asking ---- */

/* Where a job stands that is not this pass's to place: where an earlier pass put it, else where the
 * fold has room for it. */
static const struct rm_plan_job *settled_job(const struct round *round, uint32_t job, uint32_t pass) {
        return round->jobs[job].pass < pass ? &round->plan->jobs[job] : &round->fold->witness->jobs[job];
}

/* Mark the waiting jobs of the pass that could be placed at all: in the order they are served in,
 * as long as there are cores. A job that needs more than there are holds up those behind it, but
 * where it could not run even alone: that one takes no cores from them either. So a long queue
 * costs nothing. */
static void want_waiting(const struct round *round, uint32_t pass, bool *requested) {
        const struct rm_snapshot *view = snapshot_view(round->fold->snapshot);
        cleanup_free uint32_t *order = xcalloc(view->n_jobs + 1u, sizeof(*order));
        bool strict = view->params.backfill == 0 && pass < round->n_regular;
        uint32_t n = pack_order(view, order);
        uint64_t cores = n > 0 ? backfill_free_cores(view) : 0;

        for (uint32_t i = 0; i < n; i++) {
                const struct rm_job *job = &view->jobs[order[i]];

                if (round->jobs[order[i]].pass != pass || !pack_fits_alone(view, job))
                        continue;
                requested[order[i]] = job->ranks <= cores;
                if (!strict)
                        continue;
                if (!requested[order[i]])
                        return;
                cores -= job->ranks;
        }
}

/* A job that is not this pass's to place has its groups where they are settled, with the memory
 * that they take there. */
static void settle_groups(struct round *round, uint32_t pass, uint32_t i) {
        uint32_t j = round->asked_job[i];
        const struct rm_job *job = &snapshot_view(round->fold->snapshot)->jobs[j];
        const struct rm_plan_job *settled = settled_job(round, j, pass);

        for (uint32_t g = 0; g < job->n_groups; g++) {
                struct rm_group *group = snapshot_group(round->asked, i, g);
                int32_t at = settled->group_node[g];
                struct rm_node *node;

                if (memory_taken(job, g, at) > 0 && snapshot_view(round->asked)->nodes[at].memory_free != RM_NO_MEMORY_LIMIT) {
                        node = snapshot_node(round->asked, (uint32_t) at);
                        node->memory_free -=
                                memory_taken(job, g, at) < node->memory_free ? memory_taken(job, g, at) : node->memory_free;
                }
                group->node = at;
                group->flags |= RM_GROUP_PINNED;
        }
}

const struct rm_snapshot *round_prepare(struct round *round, uint32_t pass) {
        const struct rm_snapshot *view = snapshot_view(round->fold->snapshot);
        cleanup_free bool *requested = xcalloc(view->n_jobs + 1u, sizeof(*requested));
        uint32_t n = 0;

        /* Cores that moving groups will have to have next are not for starting jobs on. */
        if (!round->fold->unsettled)
                want_waiting(round, pass, requested);
        for (uint32_t j = 0; j < view->n_jobs; j++) {
                if (round->jobs[j].pass != pass)
                        requested[j] = settled_job(round, j, pass)->decision == RM_PLACE;
                else
                        requested[j] |= job_runs(&view->jobs[j]);
                if (requested[j])
                        round->asked_job[n++] = j;
        }
        snapshot_destroy(round->asked);
        round->asked = snapshot_copy(view, requested);
        if (pass >= round->n_regular)
                snapshot_params(round->asked)->backfill = 1; /* each of them has been looked at */
        for (uint32_t i = 0; i < n; i++)
                if (round->jobs[round->asked_job[i]].pass != pass)
                        settle_groups(round, pass, i);
        return snapshot_view(round->asked);
}

/* Policies see limits of a job, and not that one group of it can go where another one cannot. */
static bool is_barred(const struct round *round, uint32_t j, const struct rm_plan_job *planned) {
        const struct rm_job *job = &snapshot_view(round->fold->snapshot)->jobs[j];
        bool barred = false;

        for (uint32_t g = 0; planned->decision == RM_PLACE && g < job->n_groups; g++)
                barred |= round_kinds_bar(round->jobs[j].given.kinds, job->groups[g].node, planned->group_node[g]);
        return barred;
}

static void take_decision(struct round *round, uint32_t j, const struct rm_plan_job *planned) {
        const struct rm_job *job = &round->given->jobs[j];
        struct rm_plan_job *own = &round->plan->jobs[j];

        own->decision = planned->decision;
        memcpy(own->group_node, planned->group_node, sizeof(*own->group_node) * job->n_groups);
        memcpy(own->rank_core, planned->rank_core, sizeof(*own->rank_core) * job->ranks);
        round->chose_cores |= planned->rank_core[0] != RM_NO_CORE;
        if (own->decision == RM_PLACE)
                own->reason[0] = '\0'; /* policies say why jobs wait */
        else if (own->reason[0] || planned->reason[0])
                memcpy(own->reason, planned->reason, sizeof(own->reason));
}

int round_accept(struct round *round, uint32_t pass, const char *policy, const struct rm_plan *plan, struct rm_error *err) {
        const struct rm_snapshot *asked = snapshot_view(round->asked);
        int r = plan_validate(asked, plan, err);
        char *name;

        if (r < 0)
                return r;
        name = snapshot_alloc(round->fold->snapshot, POLICY_BYTES);
        (void) snprintf(name, POLICY_BYTES, "%s", policy);
        for (uint32_t i = 0; i < asked->n_jobs; i++) {
                uint32_t j = round->asked_job[i];

                if (round->jobs[j].pass != pass)
                        continue;
                take_decision(round, j, is_barred(round, j, &plan->jobs[i]) ? &round->fold->witness->jobs[j] : &plan->jobs[i]);
                if (plan->jobs[i].decision == RM_PLACE)
                        round->jobs[j].policy = name;
        }
        decided(round, pass);
        return 0;
}

void round_skip(struct round *round, uint32_t pass, const char *why) {
        const char *reason = snapshot_string(round->fold->snapshot, why);

        for (uint32_t j = 0; j < round->given->n_jobs; j++) {
                if (round->jobs[j].pass != pass)
                        continue;
                take_decision(round, j, &round->fold->witness->jobs[j]);
                round->jobs[j].why_skipped = reason;
        }
        decided(round, pass);
}

/* ---- the answer ---- */

static void *take_copy(const void *data, size_t size_bytes) {
        return memcpy(xcalloc(1, size_bytes), data, size_bytes);
}

static void take_cores(const struct round *round, struct round_result *result) {
        for (uint32_t j = 0; j < result->n_jobs && round->chose_cores; j++) {
                const struct rm_job *job = &round->given->jobs[j];
                const struct rm_plan_job *planned = &round->plan->jobs[j];
                bool any = false;

                for (uint32_t rank = 0; planned->decision == RM_PLACE && rank < job->ranks; rank++)
                        any |= planned->rank_core[rank] != RM_NO_CORE;
                if (!any)
                        continue;
                result->jobs[j].group_node = take_copy(planned->group_node, sizeof(*planned->group_node) * job->n_groups);
                result->jobs[j].rank_core = take_copy(planned->rank_core, sizeof(*planned->rank_core) * job->ranks);
        }
}

void round_finish(struct round *round, struct round_result **ret_result) {
        cleanup_free uint32_t *kept = xcalloc(round->given->n_jobs + 1u, sizeof(*kept));
        struct round_result *result = xcalloc(1, sizeof(*result));
        struct diff diff = {
                .given = round->given,
                .fold = round->fold,
                .plan = round->plan,
                .jobs = round->jobs,
                .held = round->held,
        };

        result->n_jobs = round->given->n_jobs;
        result->jobs = xcalloc(result->n_jobs + 1u, sizeof(*result->jobs));
        for (uint32_t j = 0; j < result->n_jobs; j++) {
                result->jobs[j].checkpoint = round->jobs[j].given.checkpoint;
                if (round->jobs[j].policy)
                        memcpy(result->jobs[j].policy, round->jobs[j].policy, POLICY_BYTES);
        }
        while (round->n_decided < round->n_passes)
                round_skip(round, round->n_decided, NULL);
        hysteresis_apply(snapshot_view(round->fold->snapshot), round->plan, kept);
        for (uint32_t j = 0; j < result->n_jobs; j++)
                result->jobs[j].kept = kept[j];
        return_when_paid(round->fold, round->jobs, round->plan);
        return_to_faster(round->fold, round->jobs, round->held, round->plan);
        diff_actions(&diff, result);
        diff_outcomes(&diff, result);
        if (round->next >= 0 && result->jobs[round->next].waits)
                result->jobs[round->next].start_usec = round->next_usec;
        take_cores(round, result);
        *ret_result = result;
}

struct round_action *round_add_action(struct round_result *result) {
        result->actions = xrealloc(result->actions, sizeof(*result->actions) * (result->n_actions + 1));
        result->actions[result->n_actions] =
                (struct round_action) { .from = RM_NO_NODE, .to = RM_NO_NODE, .head_node = RM_NO_NODE };
        return &result->actions[result->n_actions++];
}

void round_result_destroy(struct round_result *result) {
        if (!result)
                return;
        for (size_t i = 0; i < result->n_actions; i++) {
                free(result->actions[i].group_node);
                free(result->actions[i].spare_nodes);
        }
        for (uint32_t j = 0; j < result->n_jobs; j++) {
                free(result->jobs[j].group_node);
                free(result->jobs[j].rank_core);
        }
        free(result->actions);
        free(result->jobs);
        free(result);
}
