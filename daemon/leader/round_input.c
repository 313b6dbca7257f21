#include "daemon/leader/round_input.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/groups.h"
#include "common/util.h"
#include "daemon/leader/admit.h"
#include "daemon/leader/cooldown.h"
#include "daemon/leader/processors.h"
#include "daemon/leader/spare_pool.h"
#include "daemon/sched/fields.h"
#include "daemon/sched/malleable.h"
#include "daemon/sched/move_cost.h"

/* Moves looked at to say what one usually takes. */
#define RECENT_MOVES 20U
/* Dearer than all that a plan gains; some thousands of them are still no more than costs may be
 * (FIELD_MAX). */
#define STAY_COST_MAX (INT64_C(1) << 40)

uint32_t round_input_group_size(const Rm__State *state, const Rm__JobSpec *spec, uint32_t configured) {
        uint32_t least = groups_least_size(spec->ranks, STATE_GROUPS_MAX);
        uint32_t smallest = 0;
        uint32_t size = spec->group_size ? spec->group_size : configured;

        for (size_t i = 0; i < state->n_nodes && size == 0; i++) {
                uint32_t cores = node_usable_cores(state->nodes[i]);

                if (cores > 0 && (smallest == 0 || cores < smallest))
                        smallest = cores;
        }
        /* Half of the smallest node: large enough to share memory, small enough to spread over what
         * is left. */
        if (size == 0)
                size = smallest / 2;
        if (size < 1)
                size = 1;
        if (size > spec->ranks)
                size = spec->ranks;
        if (spec->active_ranks > 0 && spec->group_size == 0)
                size = malleable_group_size(spec->active_ranks, size);
        /* There is an address for each group, whatever the size of nodes and the number of active
         * ranks are. */
        return size < least ? least : size;
}

/* The snapshot has as many groups as active ranks are in. Parked ranks need no cores: policies
 * never see groups of them (parked.h), nor those, or spare ones, of the last group. */
static uint32_t seen_ranks(const Rm__State *state, const Rm__Job *job, uint32_t group_size) {
        uint32_t active = job_active_ranks(state, job);
        uint64_t in_groups = ((uint64_t) active + group_size - 1) / group_size * group_size;

        if (!job_parked_have_cores(state, job))
                return active;
        return in_groups < job->spec->ranks ? (uint32_t) in_groups : job->spec->ranks;
}

/* Policies need not tell a node that fails from one that is drained: everything is to leave
 * both. */
static uint32_t node_state(const struct state_index *index, const Rm__Node *node) {
        uint32_t word = RM_NODE_DOWN, capsules = 0;

        if (node->health == RM__NODE_HEALTH__NODE_HEALTH_UP && node_to_be_left(node)) {
                (void) state_node_ranks(index, node->name, &capsules);
                return capsules > 0 ? RM_NODE_DRAINING : RM_NODE_DRAINED;
        }
        (void) node_state_parse(state_node_name(index, node), &word); /* UNKNOWN counts as DOWN: not used */
        return word;
}

static void add_switches(const Rm__State *state, struct snapshot *snapshot) {
        for (size_t i = 0; i < state->n_switches; i++)
                (void) snapshot_add_switch(snapshot, state->switches[i]->name);
        for (size_t i = 0; i < state->n_switches; i++)
                if (state->switches[i]->above > 0)
                        snapshot_set_parent(snapshot, (int32_t) i, (int32_t) state->switches[i]->above - 1);
}

static bool has_warning(const Rm__Node *node) {
        return node_condition(node) == RM__CONDITION__CONDITION_WARN;
}

void round_input_nodes(const struct state_index *index, const struct penalties *penalties, int64_t warn_penalty,
                       struct snapshot *snapshot) {
        const Rm__State *state = state_index_state(index);
        cleanup_free int32_t *switches = state_node_switches(state);

        add_switches(state, snapshot);
        for (size_t i = 0; i < state->n_nodes; i++) {
                const Rm__Node *node = state->nodes[i];
                struct rm_node *n = snapshot_add_node(snapshot, node->name, node_usable_cores(node));

                n->state = node_state(index, node);
                n->switch_index = switches[i];
                n->penalty = penalties ? penalties_of(penalties, node->name) : 0;
                n->penalty += has_warning(node) ? warn_penalty : 0;
                n->topology = node->topology[0] ? snapshot_string(snapshot, node->topology) : NULL;
        }
}

/* Where a capsule is for the scheduler, and where it is going. */
static int32_t capsule_place(const struct state_index *index, const Rm__Job *job, const Rm__Capsule *capsule,
                             int32_t *ret_moving_to) {
        const Rm__Move *move = state_capsule_move(index, job->id, capsule->index);

        *ret_moving_to = move ? state_node_position(index, move->to) : RM_NO_NODE;
        return move ? state_node_position(index, move->from) : state_capsule_position(index, job, capsule->index);
}

static void fill_spares(const struct state_index *index, const Rm__Job *job, struct snapshot *snapshot, struct round_job *round) {
        int32_t *nodes = snapshot_alloc(snapshot, sizeof(*nodes) * job->n_spare_nodes);

        if (job->state != RM__JOB_STATE__JOB_PENDING && !job_running(job))
                return; /* it ends, and needs no more */
        round->spares = job->spec->spares;
        for (size_t i = 0; i < job->n_spare_nodes; i++)
                nodes[i] = state_node_position(index, job->spare_nodes[i]);
        round->spare_nodes = nodes;
        round->n_spare_nodes = job->n_capsules > 0 ? (uint32_t) job->n_spare_nodes : 0;
}

static bool node_up(const Rm__State *state, int32_t index) {
        return index >= 0 && state->nodes[index]->health == RM__NODE_HEALTH__NODE_HEALTH_UP;
}

/* The mean time of the last moves, for groups of jobs that have never moved; 0 when there was
 * none. */
static uint64_t usual_freeze(const Rm__State *state) {
        uint64_t sum = 0;
        uint32_t n = 0;

        for (size_t i = state->n_moves; i > 0 && n < RECENT_MOVES; i--) {
                const Rm__Move *move = state->moves[i - 1];

                if (move->state != RM__MOVE_STATE__MOVE_DONE || move->capsule == STATE_HEAD)
                        continue;
                sum += move->freeze_usec;
                n++;
        }
        return n > 0 ? sum / n : 0;
}

/* The rest of the job's time limit; a job that is over it is about to end. */
static uint64_t left_usec(const Rm__Job *job, uint64_t now_usec) {
        uint64_t end = job->start_usec + job->spec->time_limit_usec;

        if (!job->spec->time_limit_usec || !job->start_usec)
                return 0;
        return end > now_usec ? end - now_usec : 1;
}

/* ---- jobs that start again ---- */

/* A job that starts again goes before all others of its priority that wait. */
static bool starts_again(const Rm__Job *job) {
        return job->state == RM__JOB_STATE__JOB_PENDING && job->attempt > 1;
}

/* The age of the oldest job of this priority that waits. */
struct oldest {
        int32_t priority;
        uint32_t age;
};

struct oldest_list {
        struct oldest *items; /* of each priority that a job which starts again has */
        size_t n;
};

static struct oldest *find_oldest(const struct oldest_list *list, int32_t priority) {
        for (size_t i = 0; i < list->n; i++)
                if (list->items[i].priority == priority)
                        return &list->items[i];
        return NULL;
}

static void collect_oldest(const Rm__State *state, struct oldest_list *list) {
        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Job *job = state->jobs[i];

                if (!starts_again(job) || find_oldest(list, job->spec->priority))
                        continue;
                list->items = xrealloc(list->items, (list->n + 1) * sizeof(*list->items));
                list->items[list->n++] = (struct oldest) { job->spec->priority, 0 };
        }
        for (size_t i = 0; list->n > 0 && i < state->n_jobs; i++) {
                const Rm__Job *job = state->jobs[i];
                struct oldest *oldest = job->state == RM__JOB_STATE__JOB_PENDING ? find_oldest(list, job->spec->priority) : NULL;

                if (oldest && oldest->age < job->age)
                        oldest->age = job->age;
        }
}

/* A job that starts again is as old as the oldest, and before it in the snapshot (see make()): so
 * no age of others passes it. */
static uint32_t age_of(const struct oldest_list *list, const Rm__Job *job) {
        const struct oldest *oldest = starts_again(job) ? find_oldest(list, job->spec->priority) : NULL;

        return oldest ? oldest->age : job->age;
}

/* ---- jobs ---- */

struct placing {
        const Rm__State *state;
        const struct state_index *index;
        const struct round_input_config *config;
        struct round_input *input;
        uint64_t usual_freeze_usec;
        bool *pool; /* of the snapshot: nodes that are kept free for jobs that need room; NULL: none is */
        struct oldest_list oldest;
        bool *skip; /* each job of the state: it is not in the input */
        size_t *job_at; /* each job of the input: where it stands in the state */
        bool *failing;  /* each node: a move to it failed not long ago */
        bool any_failing;
        bool any_warned; /* some node has a warning */
        bool *warned;    /* each node; the snapshot's */
        const struct round_kinds *kinds; /* the snapshot's */
};

/* The penalty keeps others away from a node with a warning. What runs there stays: to leave is as
 * dear as the penalty that it saves. */
static int64_t stay_cost(const struct placing *p, const struct rm_job *job, const struct rm_group *group) {
        double cost = (double) job->priority * (double) p->config->warn_penalty * group->ranks;

        if (group->node < 0 || !has_warning(p->state->nodes[group->node]))
                return 0;
        return cost < (double) STAY_COST_MAX ? (int64_t) cost : STAY_COST_MAX;
}

static void find_warned(struct placing *p) {
        p->warned = snapshot_alloc(p->input->snapshot, p->state->n_nodes + 1);
        for (size_t i = 0; i < p->state->n_nodes; i++)
                p->any_warned |= p->warned[i] = has_warning(p->state->nodes[i]);
}

/* Nothing begins on a node with a warning; what runs may come there, if it must leave another one.
 * Of a waiting job those are told where it would be allowed otherwise. */
static void keep_off_warned(const struct placing *p, uint32_t index) {
        struct snapshot *snapshot = p->input->snapshot;
        const struct rm_job *job = &snapshot_view(snapshot)->jobs[index];
        bool *kept_off = p->warned;

        if (job->node_limit)
                kept_off = memcpy(snapshot_alloc(snapshot, p->state->n_nodes + 1), p->warned, p->state->n_nodes);
        p->input->jobs[index].kept_off = kept_off;
        for (size_t i = 0; i < p->state->n_nodes; i++) {
                if (!p->warned[i])
                        continue;
                if (job->node_limit && job->node_limit[i] == 0)
                        kept_off[i] = false;
                snapshot_set_limit(snapshot, index, (uint32_t) i, 0);
        }
}

/* Guesses the freeze of groups that have never moved: that of the job's others, as its groups are
 * alike, or else the usual one. */
static uint64_t guess_freeze(const struct placing *p, const Rm__Job *job) {
        uint64_t sum = 0;
        uint32_t n = 0;

        for (size_t i = 0; i < job->n_capsules; i++) {
                const Rm__Capsule *capsule = job->capsules[i];

                if (capsule->index == STATE_HEAD || capsule->moves == 0)
                        continue;
                sum += capsule->freeze_usec;
                n++;
        }
        return n > 0 ? sum / n : p->usual_freeze_usec;
}

/* A set of nodes counts while all of them are known, and for as many groups as the job has now;
 * those that are parked are the last ones. */
static bool fill_place(const struct placing *p, uint32_t index, const struct job_place *place, struct steps_place *ret) {
        uint32_t n_groups = snapshot_view(p->input->snapshot)->jobs[index].n_groups;
        int32_t *nodes = snapshot_alloc(p->input->snapshot, sizeof(*nodes) * n_groups);

        for (size_t g = 0; g < place->n_nodes; g++) {
                int32_t node = place->nodes[g] ? state_node_position(p->index, place->nodes[g]) : RM_NO_NODE;

                if ((node >= 0) != (g < n_groups))
                        return false;
                if (node >= 0)
                        nodes[g] = node;
        }
        *ret = (struct steps_place) { .group_node = nodes, .rate = place->rate, .left = place->left };
        return true;
}

static void fill_steps(const struct placing *p, const Rm__Job *job, uint32_t index, struct steps *ret) {
        const struct job_place *known[JOB_PLACES_MOST];
        struct steps_place *places;
        size_t n;

        if (!p->config->progress)
                return;
        progress_steps(p->config->progress, job->id, ret);
        n = progress_places(p->config->progress, job->id, known);
        places = n > 0 ? snapshot_alloc(p->input->snapshot, sizeof(*places) * n) : NULL;
        for (size_t i = 0; i < n; i++)
                if (fill_place(p, index, known[i], &places[ret->n_places]))
                        ret->n_places++;
        ret->places = places;
}

static void fill_placed(const struct placing *p, const Rm__Job *job, uint32_t index) {
        const Rm__State *state = p->state;
        struct snapshot *snapshot = p->input->snapshot;
        struct round_job *round = &p->input->jobs[index];
        const struct rm_job *shown = &snapshot_view(snapshot)->jobs[index];
        int32_t *moving = snapshot_alloc(snapshot, sizeof(int32_t) * shown->n_groups);
        uint64_t *move_usec = snapshot_alloc(snapshot, sizeof(*move_usec) * shown->n_groups);
        uint64_t guess_usec = guess_freeze(p, job);

        round->group_moving_to = moving;
        round->group_move_usec = move_usec;
        round->left_usec = left_usec(job, p->config->now_usec);
        round->pinned = job->state != RM__JOB_STATE__JOB_RUNNING;
        fill_steps(p, job, index, &round->steps);
        for (size_t i = 0; i < job->n_capsules; i++) {
                const Rm__Capsule *capsule = job->capsules[i];
                int32_t to;
                int32_t at = capsule_place(p->index, job, capsule, &to);
                struct rm_group *group;

                if (capsule->index == STATE_HEAD) {
                        round->head_node = at;
                        round->head_moving_to = to;
                        /* mpirun cannot leave a node that does not answer; nothing of the job is
                         * moved meanwhile. */
                        round->pinned = round->pinned || !node_up(state, at);
                        continue;
                }
                if ((uint32_t) capsule->index >= shown->n_groups)
                        continue;
                moving[capsule->index] = to;
                group = snapshot_group(snapshot, index, (uint32_t) capsule->index);
                group->node = at;
                move_usec[capsule->index] = capsule->moves > 0 ? capsule->freeze_usec : guess_usec;
                group->move_cost = move_cost(move_usec[capsule->index], p->config->horizon_usec) + stay_cost(p, shown, group);
                if (at >= 0 && !node_up(state, at))
                        group->flags |= RM_GROUP_PINNED;
        }
}

/* Limits the job to the groups that are on the node, or on the way to it. The head, which is none,
 * stays as well, unless the job may not use the node anyway. */
static void limit_to_present(const struct placing *p, uint32_t index, uint32_t node) {
        struct snapshot *snapshot = p->input->snapshot;
        const struct rm_job *job = &snapshot_view(snapshot)->jobs[index];
        struct round_job *round = &p->input->jobs[index];
        uint32_t here = 0;

        if (round->head_node == (int32_t) node && (!job->node_limit || job->node_limit[node] > 0))
                round->head_stays = true;
        for (uint32_t g = 0; g < job->n_groups; g++)
                if (job->groups[g].node == (int32_t) node || round->group_moving_to[g] == (int32_t) node)
                        here += job->groups[g].ranks;
        if (!job->node_limit || here < job->node_limit[node])
                snapshot_set_limit(snapshot, index, node, here);
}

/* A destination that keeps failing is not tried once more while there is another. */
static void avoid_failing(const struct placing *p, const Rm__Job *job, uint32_t index) {
        const Rm__State *state = p->state;

        for (size_t i = 0; i < state->n_nodes; i++) {
                if (!p->failing[i] || cooldown_destination_until(state, job->id, state->nodes[i]->name) <= p->config->now_usec)
                        continue;
                limit_to_present(p, index, (uint32_t) i);
                p->input->avoids = true;
        }
}

/* The job goes to no node whose processors lack what it may use. What is there already stays. */
static void keep_off_lesser(const struct placing *p, const Rm__Job *job, const Rm__Checkpoint *checkpoint, uint32_t index) {
        const Rm__State *state = p->state;
        struct processors processors;

        processors_needed(state, job, checkpoint, &processors);
        for (size_t i = 0; processors.n > 0 && i < state->n_nodes; i++) {
                cleanup_free char *against = processors_against(&processors, state->nodes[i]);

                if (against && job->n_capsules > 0)
                        limit_to_present(p, index, (uint32_t) i);
                else if (against)
                        snapshot_set_limit(p->input->snapshot, index, (uint32_t) i, 0);
        }
        processors_finish(&processors);
}

/* A restored group takes at least the memory that was saved. */
static void fill_saved_memory(const Rm__Checkpoint *checkpoint, struct snapshot *snapshot, uint32_t index, uint32_t n_groups) {
        for (uint32_t g = 0; g < n_groups && g + 1u < checkpoint->n_parts; g++) {
                struct rm_group *group = snapshot_group(snapshot, index, g);
                int64_t saved = (int64_t) checkpoint->parts[g + 1]->raw_bytes;

                if (group->memory < saved)
                        group->memory = saved;
        }
}

uint32_t round_input_group_size_of(const Rm__State *state, const Rm__Job *job, const Rm__Checkpoint *checkpoint,
                                   uint32_t configured) {
        if (checkpoint)
                return checkpoint->group_size;
        return job->group_size ? job->group_size : round_input_group_size(state, job->spec, configured);
}

static void add_job(const struct placing *p, const Rm__Job *job) {
        const Rm__State *state = p->state;
        struct round_input *input = p->input;
        struct round_job *round = &input->jobs[input->n_jobs];
        const Rm__Checkpoint *checkpoint = job->n_capsules == 0 ? job_newest_checkpoint(state, job) : NULL;
        uint32_t size = round_input_group_size_of(state, job, checkpoint, p->config->group_size);
        struct rm_job *j;
        char name[24];

        (void) snprintf(name, sizeof(name), "%" PRIu64, job->id);
        j = snapshot_add_job(input->snapshot, name, seen_ranks(state, job, size), size);
        j->priority = job->spec->priority < 0 ? 0 : 1 + (int64_t) job->spec->priority;
        j->age = age_of(&p->oldest, job);
        j->policy = job->spec->policy[0] ? snapshot_string(input->snapshot, job->spec->policy) : NULL;
        j->time_limit_usec = job->spec->time_limit_usec;
        node_memory_fill_job(p->config->memory, job, size, input->snapshot, input->n_jobs);
        if (checkpoint)
                fill_saved_memory(checkpoint, input->snapshot, input->n_jobs, j->n_groups);
        for (size_t i = 0; job->available_set && i < job->n_available; i++) {
                int32_t node = state_node_position(p->index, job->available[i]->node);

                if (node >= 0)
                        snapshot_set_limit(input->snapshot, input->n_jobs, (uint32_t) node, job->available[i]->cores);
        }
        *round = (struct round_job) { .head_node = RM_NO_NODE, .head_moving_to = RM_NO_NODE, .pool = p->pool };
        round->checkpoint = checkpoint ? checkpoint->id : 0;
        round->kinds = p->kinds;
        round->uses_pool = job_running(job) || starts_again(job);
        fill_spares(p->index, job, input->snapshot, round);
        if (job->n_capsules > 0) {
                round->kept_off = p->any_warned ? p->warned : NULL;
                fill_placed(p, job, input->n_jobs);
                if (p->any_failing)
                        avoid_failing(p, job, input->n_jobs);
        } else if (p->any_warned) {
                keep_off_warned(p, input->n_jobs);
        }
        keep_off_lesser(p, job, checkpoint, input->n_jobs);
        if (p->config->traffic)
                traffic_fill(p->config->traffic, job->id, p->config->horizon_usec, input->snapshot, input->n_jobs);
        input->n_jobs++;
}

/* ---- jobs that a round cannot be made with ---- */

static void leave_out(struct placing *p, size_t index, const char *reason) {
        struct round_input *input = p->input;
        struct round_input_left_out *entry;

        input->left_out = xrealloc(input->left_out, (input->n_left_out + 1) * sizeof(*input->left_out));
        entry = &input->left_out[input->n_left_out++];
        entry->job = p->state->jobs[index]->id;
        entry->reason = xasprintf("left out of scheduling: %s", reason);
        p->skip[index] = true;
}

static struct admit_job admission(const struct placing *p, const Rm__Job *job, uint64_t cores, long double weight) {
        return (struct admit_job) {
                .weight = weight,
                .priority = job->spec->priority + (int64_t) p->config->age_weight * age_of(&p->oldest, job),
                .runs = job->n_capsules > 0,
                .too_large = job_active_ranks(p->state, job) > cores,
        };
}

static uint64_t usable_cores(const Rm__State *state) {
        uint64_t cores = 0;

        for (size_t i = 0; i < state->n_nodes; i++)
                cores += node_usable_cores(state->nodes[i]);
        return cores;
}

/* Leaves out jobs before anything is made of them: so many ranks would not fit into memory
 * either. */
static void leave_out_by_ranks(struct placing *p) {
        const Rm__State *state = p->state;
        cleanup_free struct admit_job *jobs = xcalloc(state->n_jobs + 1, sizeof(*jobs));
        cleanup_free size_t *index = xcalloc(state->n_jobs + 1, sizeof(*index));
        cleanup_free bool *marked = xcalloc(state->n_jobs + 1, sizeof(*marked));
        uint64_t cores = usable_cores(state);
        size_t n = 0;

        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Job *job = state->jobs[i];

                if (p->skip[i])
                        continue;
                if (job->spec->ranks > SNAPSHOT_MAX_RANKS) {
                        leave_out(p, i, "it has more ranks than a policy can be shown");
                        continue;
                }
                jobs[n] = admission(p, job, cores, job->spec->ranks);
                index[n++] = i;
        }
        if (admit_within(jobs, n, SNAPSHOT_MAX_TOTAL_RANKS, marked) == 0)
                return;
        for (size_t k = 0; k < n; k++)
                if (marked[k])
                        leave_out(p, index[k], "all jobs have more ranks than a policy can be shown at once");
}

/* A group can only come from where it is. */
static bool moves_from_nowhere(const struct rm_job *job, const struct round_job *round) {
        for (uint32_t g = 0; round->group_moving_to && g < job->n_groups; g++)
                if (round->group_moving_to[g] >= 0 && job->groups[g].node < 0)
                        return true;
        return false;
}

/* True: there were some, so that the input is to be made again. */
static bool leave_out_wrong(struct placing *p) {
        const struct rm_snapshot *snapshot = snapshot_view(p->input->snapshot);
        size_t before = p->input->n_left_out;

        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                struct rm_error err = { 0 };

                if (snapshot_check_job(snapshot, j, &err) < 0)
                        leave_out(p, p->job_at[j], error_text(&err));
                else if (moves_from_nowhere(&snapshot->jobs[j], &p->input->jobs[j]))
                        leave_out(p, p->job_at[j], "one of its groups moves, and is on no node that is known");
        }
        return p->input->n_left_out > before;
}

static bool leave_out_by_costs(struct placing *p) {
        const struct rm_snapshot *snapshot = snapshot_view(p->input->snapshot);
        cleanup_free long double *costs = xcalloc(snapshot->n_jobs + 1u, sizeof(*costs));
        cleanup_free struct admit_job *jobs = xcalloc(snapshot->n_jobs + 1u, sizeof(*jobs));
        cleanup_free bool *marked = xcalloc(snapshot->n_jobs + 1u, sizeof(*marked));
        uint64_t cores = usable_cores(p->state);

        snapshot_worst_costs(snapshot, costs);
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                jobs[j] = admission(p, p->state->jobs[p->job_at[j]], cores, costs[j]);
        if (admit_within(jobs, snapshot->n_jobs, (long double) FIELD_MAX, marked) == 0)
                return false;
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                if (marked[j])
                        leave_out(p, p->job_at[j], "the costs of all jobs are more than a policy can be shown at once");
        return true;
}

/* Nothing else is put on the cores of what runs. */
static void hold_cores(const struct placing *p, const Rm__Job *job) {
        for (size_t i = 0; i < job->n_capsules; i++) {
                const Rm__Capsule *capsule = job->capsules[i];
                uint32_t needed = job_capsule_cores(job, capsule);
                int32_t at[2];

                at[0] = capsule_place(p->index, job, capsule, &at[1]);
                for (int k = 0; k < 2; k++) {
                        struct rm_node *node = at[k] >= 0 ? snapshot_node(p->input->snapshot, (uint32_t) at[k]) : NULL;

                        if (node)
                                node->cores -= needed < node->cores ? needed : node->cores;
                }
        }
}

/* ---- the input ---- */

static void set_params(const struct round_input_config *config, struct rm_params *params) {
        params->distribution_weight = config->distribution_weight;
        params->age_weight = config->age_weight;
        params->move_budget = config->move_budget;
        params->bytes_per_cost = config->bytes_per_cost;
        params->backfill = config->backfill;
}

/* Once more from the start, without those to be skipped. */
static void make(struct placing *p) {
        struct round_input *input = p->input;

        snapshot_destroy(input->snapshot);
        input->snapshot = snapshot_create();
        input->n_jobs = 0;
        set_params(p->config, snapshot_params(input->snapshot));
        round_input_nodes(p->index, p->config->node_penalty, p->config->warn_penalty, input->snapshot);
        node_memory_fill(p->config->memory, p->index, input->snapshot);
        find_warned(p);
        p->kinds = processors_kinds(p->state, input->snapshot);
        p->pool = NULL;
        if (p->config->spare_nodes > 0) {
                p->pool = snapshot_alloc(input->snapshot, sizeof(*p->pool) * (p->state->n_nodes + 1));
                (void) spare_pool_choose(p->index, p->config->spare_nodes, p->pool);
        }
        for (size_t i = 0; i < input->n_left_out; i++)
                hold_cores(p, state_job(p->state, input->left_out[i].job));
        for (int again = 1; again >= 0; again--)
                for (size_t i = 0; i < p->state->n_jobs; i++) {
                        if (p->skip[i] || starts_again(p->state->jobs[i]) != again)
                                continue;
                        p->job_at[input->n_jobs] = i;
                        add_job(p, p->state->jobs[i]);
                }
}

static void find_failing(struct placing *p) {
        const Rm__State *state = p->state;

        for (size_t i = 0; i < state->n_moves; i++) {
                const Rm__Move *move = state->moves[i];
                int32_t node = state_node_position(p->index, move->to);

                if (move->state != RM__MOVE_STATE__MOVE_ABORTED || node < 0 ||
                    move->end_usec + COOLDOWN_DESTINATION_MAX_USEC <= p->config->now_usec)
                        continue;
                p->failing[node] = p->any_failing = true;
        }
}

static bool not_for_round(const struct round_input_config *config, const Rm__Job *job) {
        if (job_ended(job))
                return true;
        return job->n_capsules == 0 && (job->cancel || job->held || (config->waits && config->waits(config->waits_context, job)));
}

/* A new beginning would throw away the saved state, and the node that has it may be back. */
static void leave_out_awaiting(struct placing *p) {
        for (size_t i = 0; i < p->state->n_jobs; i++) {
                const Rm__Job *job = p->state->jobs[i];
                const Rm__Checkpoint *checkpoint;
                cleanup_free char *text = NULL;
                const char *node = "";

                if (p->skip[i] || job->n_capsules > 0 || job->n_checkpoints == 0)
                        continue;
                checkpoint = job_awaited_checkpoint(p->state, job, &node);
                if (!checkpoint)
                        continue;
                text = xasprintf("it waits for node %s, which has a part of checkpoint %" PRIu64 ".%" PRIu64
                                 " (without its checkpoints, see remove-checkpoint, it begins anew)",
                                 node, job->id, checkpoint->id);
                leave_out(p, i, text);
        }
}

void round_input_create(const struct state_index *index, const struct round_input_config *config, struct round_input *ret) {
        const Rm__State *state = state_index_state(index);
        cleanup_free bool *skip = xcalloc(state->n_jobs + 1, sizeof(*skip));
        cleanup_free size_t *job_at = xcalloc(state->n_jobs + 1, sizeof(*job_at));
        cleanup_free bool *failing = xcalloc(state->n_nodes + 1, sizeof(*failing));
        struct round_input input = { .jobs = xcalloc(state->n_jobs + 1, sizeof(input.jobs[0])) };
        struct placing placing = { .state = state,
                                   .index = index,
                                   .config = config,
                                   .input = &input,
                                   .usual_freeze_usec = usual_freeze(state),
                                   .skip = skip,
                                   .job_at = job_at,
                                   .failing = failing };

        collect_oldest(state, &placing.oldest);
        find_failing(&placing);
        for (size_t i = 0; i < state->n_jobs; i++)
                skip[i] = not_for_round(config, state->jobs[i]);
        leave_out_awaiting(&placing);
        leave_out_by_ranks(&placing);
        make(&placing);
        if (leave_out_wrong(&placing))
                make(&placing);
        if (leave_out_by_costs(&placing))
                make(&placing);
        free(placing.oldest.items);
        *ret = input;
}

void round_input_finish(struct round_input *input) {
        snapshot_destroy(input->snapshot);
        free(input->jobs);
        for (size_t i = 0; i < input->n_left_out; i++)
                free(input->left_out[i].reason);
        free(input->left_out);
        *input = (struct round_input) { 0 };
}
