#include "state_test.h"

#include "common/text.h"

struct packed pack_state(const Rm__State *state) {
        struct packed packed = { .bytes = rm__state__get_packed_size(state) };

        packed.data = xcalloc(1, packed.bytes);
        assert_int_equal(rm__state__pack(state, packed.data), packed.bytes);
        return packed;
}

void packed_finish(struct packed *packed) {
        free(packed->data);
        packed->data = NULL;
}

bool packed_equal(const struct packed *a, const struct packed *b) {
        return a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

void world_init(struct world *w) {
        memset(w, 0, sizeof(*w));
        w->state = state_create("test");
        w->indexed = state_index_create(w->state);
        w->twin = state_create("test");
        w->twin_indexed = state_index_create(w->twin);
        w->time_usec = UINT64_C(1700000000000000);
        w->thorough = true;
}

void world_finish(struct world *w) {
        state_index_destroy(w->indexed);
        state_index_destroy(w->twin_indexed);
        rm__state__free_unpacked(w->state, NULL);
        rm__state__free_unpacked(w->twin, NULL);
}

int world_start(void **state, unsigned nodes, uint32_t cores) {
        struct world *w = xcalloc(1, sizeof(*w));

        world_init(w);
        w->state->level = w->twin->level = STATE_LEVEL;
        for (unsigned i = 1; i <= nodes; i++) {
                char name[16];

                (void) snprintf(name, sizeof(name), "n%u", i);
                assert_int_equal(join(w, name, cores), 0);
        }
        *state = w;
        return 0;
}

int world_tear_down(void **state) {
        world_finish(*state);
        free(*state);
        return 0;
}

/* ---- what must always hold ---- */

static bool under_way(const Rm__Move *move) {
        return move->state == RM__MOVE_STATE__MOVE_RUNNING || move->state == RM__MOVE_STATE__MOVE_COMMITTED;
}

static void check_conditions(const Rm__Node *node) {
        assert_true(node->n_conditions <= STATE_CONDITION_SOURCES_MAX);
        for (size_t i = 0; i < node->n_conditions; i++) {
                const Rm__NodeCondition *said = node->conditions[i];

                assert_true(said->condition > RM__CONDITION__CONDITION_OK && said->condition <= node_condition(node));
                assert_true(said->reason[0] && said->since_usec > 0);
                if (i > 0)
                        assert_true(strcmp(node->conditions[i - 1]->source, said->source) < 0);
        }
}

static void check_nodes(const struct state_index *indexed) {
        const Rm__State *state = state_index_state(indexed);

        for (size_t i = 0; i < state->n_nodes; i++) {
                const Rm__Node *node = state->nodes[i];

                assert_true(name_valid(node->name));
                if (i > 0)
                        assert_true(strcmp(state->nodes[i - 1]->name, node->name) < 0);
                assert_int_equal(node->drain, node->drain_since_usec != 0);
                if (!node->drain)
                        assert_string_equal(node->drain_reason, "");
                if (!node->drain)
                        assert_int_equal(node->drain_deadline_usec, 0);
                assert_true(node->drain_deadline_usec > 0 || !node->drain_overdue);
                check_conditions(node);
                assert_true(node_usable_cores(node) <= node->cores);
                assert_non_null(state_node_name(indexed, node));
        }
}

/* Every rank in exactly one capsule, the head first, the groups in order, each on a node. */
static void check_capsules(const Rm__State *state, const Rm__Job *job) {
        uint64_t ranks = 0;

        for (size_t k = 0; k < job->n_capsules; k++) {
                const Rm__Capsule *capsule = job->capsules[k];

                assert_int_equal(capsule->index, (int32_t) k - 1);
                assert_int_equal(capsule->ranks == 0, k == 0);
                /* A capsule that is gone may have been on a node that has left the cluster
                 * since. */
                assert_true(state_node(state, capsule->node) || capsule->state == RM__CAPSULE_STATE__CAPSULE_GONE);
                assert_true(capsule->address >= 1 && capsule->address <= STATE_CAPSULES_MAX);
                assert_true(capsule->state != RM__CAPSULE_STATE__CAPSULE_NONE);
                assert_true(capsule->n_cores == 0 || capsule->n_cores == job_capsule_cores(job, capsule));
                if (job_ended(job))
                        assert_int_equal(capsule->state, RM__CAPSULE_STATE__CAPSULE_GONE);
                ranks += capsule->ranks;
        }
        if (job->n_capsules > 0)
                assert_int_equal(ranks, job->spec->ranks);
}

static void check_resize(const Rm__Job *job) {
        const Rm__Resize *resize = job->resize;

        if (!resize)
                return;
        assert_in_range(resize->active, 1, job->spec->ranks);
        assert_true(resize->requested <= job->spec->ranks && (!resize->begun || resize->requested > 0));
        assert_true(resize->epoch > 0);
        for (size_t k = 0; k < job->n_capsules; k++)
                assert_true(!job_group_parked(job, job->capsules[k]) || job->capsules[k]->n_cores == 0);
}

static void check_rank_losses(const Rm__Job *job) {
        const Rm__RankLosses *losses = job->rank_losses;

        if (!losses)
                return;
        assert_int_equal(job->spec->on_rank_loss, RM__RANK_LOSS__RANK_LOSS_CONTINUE);
        assert_true(losses->n_lost <= job->spec->ranks);
        assert_true(losses->with_cores == 0 ||
                    (losses->with_cores >= job_program_ranks(job->spec) && losses->with_cores <= job->spec->ranks));
        for (size_t i = 0; i < losses->n_lost; i++) {
                assert_true(losses->lost[i] < job->spec->ranks);
                for (size_t k = 0; k < i; k++)
                        assert_int_not_equal(losses->lost[i], losses->lost[k]);
        }
        for (size_t i = 0; i < losses->n_finished; i++)
                assert_true(job->n_capsules == 0 || job_capsule(job, losses->finished[i]));
        if (losses->speaks && job->state == RM__JOB_STATE__JOB_COMPLETED)
                assert_true(losses->n_lost < job->spec->ranks && losses->n_finished == job->n_capsules - 1);
}

static int compare_numbers(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return (x > y) - (x < y);
}

/* Every capsule, and every copy that a move still makes, has an incarnation of its own. */
static void check_incarnations(const Rm__State *state) {
        size_t n = 0, most = state->n_moves;
        uint64_t *seen;

        for (size_t i = 0; i < state->n_jobs; i++)
                most += state->jobs[i]->n_capsules;
        seen = xcalloc(most + 1, sizeof(*seen));
        for (size_t i = 0; i < state->n_jobs; i++)
                for (size_t k = 0; k < state->jobs[i]->n_capsules; k++)
                        seen[n++] = state->jobs[i]->capsules[k]->incarnation;
        for (size_t i = 0; i < state->n_moves; i++)
                if (state->moves[i]->state == RM__MOVE_STATE__MOVE_RUNNING)
                        seen[n++] = state->moves[i]->incarnation;
        qsort(seen, n, sizeof(*seen), compare_numbers);
        for (size_t i = 0; i < n; i++) {
                assert_true(seen[i] >= 1 && seen[i] < state->next_incarnation);
                if (i > 0)
                        assert_true(seen[i - 1] < seen[i]);
        }
        free(seen);
}

static bool anything_left(const Rm__Job *job) {
        for (size_t k = 0; k < job->n_capsules; k++)
                if (job->capsules[k]->state != RM__CAPSULE_STATE__CAPSULE_GONE)
                        return true;
        return false;
}

/* Since when it is folded is there if, and only if, it is. */
static void check_fold(const struct state_index *indexed, const Rm__Job *job) {
        uint32_t ranks;

        assert_int_equal(state_job_fold(indexed, job, &ranks) != NULL, job->fold_since_usec != 0);
}

static void check_jobs(const struct state_index *indexed) {
        const Rm__State *state = state_index_state(indexed);
        static uint8_t used[STATE_CAPSULES_MAX + 1];

        memset(used, 0, sizeof(used));
        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Job *job = state->jobs[i];

                assert_true(job->id >= 1 && job->id < state->next_job);
                if (i > 0)
                        assert_true(state->jobs[i - 1]->id < job->id);
                check_capsules(state, job);
                check_resize(job);
                check_rank_losses(job);
                check_fold(indexed, job);
                if (job->state == RM__JOB_STATE__JOB_PENDING)
                        assert_int_equal(job->n_capsules, 0);
                if (job_running(job) || job->state == RM__JOB_STATE__JOB_COMPLETING || job->state == RM__JOB_STATE__JOB_RECOVERING)
                        assert_true(job->n_capsules >= 2);
                assert_int_equal(job->attempt > 1, job->restart_reason[0] != 0);
                assert_true(job_counted_attempts(job) <= job->spec->restarts + 1);
                if (job->state == RM__JOB_STATE__JOB_RECOVERING)
                        assert_true(anything_left(job));
                if (job->state == RM__JOB_STATE__JOB_COMPLETING)
                        assert_in_range(job->final_state, RM__JOB_STATE__JOB_COMPLETED, RM__JOB_STATE__JOB_NODE_FAIL);
                assert_int_equal(job_ended(job), job->end_usec != 0);
                assert_string_not_equal(state_job_name(indexed, job), "?");
                for (size_t k = 0; k < job->n_capsules && !job_ended(job); k++)
                        assert_int_equal(used[job->capsules[k]->address]++, 0);
        }
}

static void check_move(const Rm__State *state, const Rm__Move *move) {
        const Rm__Job *job = state_job(state, move->job);
        const Rm__Capsule *capsule = job ? job_capsule(job, move->capsule) : NULL;

        assert_string_not_equal(move->from, move->to);
        assert_int_equal(move->state == RM__MOVE_STATE__MOVE_ABORTED || move->state == RM__MOVE_STATE__MOVE_DONE,
                         move->end_usec != 0);
        if (move->state == RM__MOVE_STATE__MOVE_RUNNING) {
                assert_non_null(capsule);
                assert_int_equal(job->state, RM__JOB_STATE__JOB_RUNNING);
                assert_string_equal(capsule->node, move->from);
        }
        if (move->state == RM__MOVE_STATE__MOVE_COMMITTED && capsule) {
                assert_string_equal(capsule->node, move->to);
                assert_int_equal(capsule->incarnation, move->incarnation);
        }
}

static void check_moves(const Rm__State *state) {
        size_t ended = 0;

        for (size_t i = 0; i < state->n_moves; i++) {
                const Rm__Move *move = state->moves[i];

                assert_true(move->id >= 1 && move->id < state->next_move);
                if (i > 0)
                        assert_true(state->moves[i - 1]->id < move->id);
                check_move(state, move);
                ended += !under_way(move);
                for (size_t k = i + 1; k < state->n_moves && under_way(move); k++)
                        assert_false(under_way(state->moves[k]) && state->moves[k]->job == move->job &&
                                     state->moves[k]->capsule == move->capsule);
        }
        assert_true(ended <= STATE_MOVES_KEPT);
}

/* ---- the index, against a walk over the state ---- */

static uint32_t walk_ranks(const Rm__State *state, const char *node, uint32_t *ret_capsules) {
        uint32_t ranks = 0, capsules = 0;

        for (size_t i = 0; i < state->n_jobs; i++)
                for (size_t k = 0; k < state->jobs[i]->n_capsules && !job_ended(state->jobs[i]); k++) {
                        const Rm__Capsule *capsule = state->jobs[i]->capsules[k];

                        if (capsule->state == RM__CAPSULE_STATE__CAPSULE_GONE || strcmp(capsule->node, node) != 0)
                                continue;
                        ranks += job_capsule_cores(state->jobs[i], capsule);
                        capsules++;
                }
        for (size_t i = 0; i < state->n_moves; i++) {
                const Rm__Move *move = state->moves[i];
                const Rm__Job *job = state_job(state, move->job);
                const Rm__Capsule *capsule = job ? job_capsule(job, move->capsule) : NULL;
                bool running = move->state == RM__MOVE_STATE__MOVE_RUNNING;

                if (!capsule || !under_way(move) || strcmp(running ? move->to : move->from, node) != 0)
                        continue;
                ranks += running ? job_capsule_cores(job, capsule) : 0;
                capsules++;
        }
        *ret_capsules = capsules;
        return ranks;
}

static void check_node_entry(const struct state_index *indexed, size_t position) {
        const Rm__State *state = state_index_state(indexed);
        const char *name = state->nodes[position]->name;
        uint32_t capsules, expected_capsules, expected = walk_ranks(state, name, &expected_capsules);
        size_t n, next = 0;
        struct state_placed *placed = state_placed_on(indexed, name, &n);

        assert_int_equal(state_node_ranks(indexed, name, &capsules), expected);
        assert_int_equal(capsules, expected_capsules);
        assert_int_equal(state_node_position(indexed, name), position);
        for (size_t i = 0; i < state->n_jobs; i++)
                for (size_t k = 0; k < state->jobs[i]->n_capsules && !job_ended(state->jobs[i]); k++) {
                        if (state->jobs[i]->capsules[k]->state == RM__CAPSULE_STATE__CAPSULE_GONE ||
                            strcmp(state->jobs[i]->capsules[k]->node, name) != 0)
                                continue;
                        assert_true(next < n);
                        assert_ptr_equal(placed[next].job, state->jobs[i]);
                        assert_ptr_equal(placed[next++].capsule, state->jobs[i]->capsules[k]);
                }
        assert_int_equal(next, n);
        free(placed);
}

static void check_open_moves(const struct state_index *indexed) {
        const Rm__State *state = state_index_state(indexed);
        size_t n, next = 0;
        Rm__Move *const *open = state_open_moves(indexed, &n);

        for (size_t i = 0; i < state->n_moves; i++) {
                Rm__Move *move = state->moves[i];
                const Rm__Job *job = state_job(state, move->job);

                if (!under_way(move))
                        continue;
                assert_true(next < n);
                assert_ptr_equal(open[next++], move);
                assert_ptr_equal(state_capsule_move(indexed, move->job, move->capsule), job ? move : NULL);
        }
        assert_int_equal(next, n);
}

static void check_job_entries(const struct state_index *indexed) {
        const Rm__State *state = state_index_state(indexed);
        size_t in[RM__JOB_STATE__JOB_NODE_FAIL + 1] = { 0 };

        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Job *job = state->jobs[i];

                in[job->state]++;
                for (size_t k = 0; k < job->n_capsules; k++) {
                        const Rm__Capsule *capsule = job->capsules[k];
                        int32_t position = state_capsule_position(indexed, job, capsule->index);
                        const Rm__Move *move = state_capsule_move(indexed, job->id, capsule->index);

                        assert_true(position >= 0 || !state_node(state, capsule->node));
                        if (position >= 0)
                                assert_string_equal(state->nodes[position]->name, capsule->node);
                        assert_true(!move || (under_way(move) && move->job == job->id && move->capsule == capsule->index));
                        assert_true(job_ended(job) || state_address_used(indexed, capsule->address));
                }
                assert_int_equal(state_capsule_position(indexed, job, (int32_t) job->n_capsules - 1), -1);
        }
        for (int i = 0; i <= RM__JOB_STATE__JOB_NODE_FAIL; i++)
                assert_int_equal(state_jobs_in(indexed, (Rm__JobState) i), in[i]);
}

void index_check_addresses(const struct state_index *indexed) {
        const Rm__State *state = state_index_state(indexed);
        size_t used = 0, requested = 0;

        index_check(indexed);
        for (size_t i = 0; i < state->n_jobs; i++)
                if (!job_ended(state->jobs[i]))
                        requested += state->jobs[i]->n_capsules;
        for (uint32_t address = 0; address <= STATE_CAPSULES_MAX + 1; address++)
                used += state_address_used(indexed, address);
        assert_int_equal(used, requested);
}

/* Checks the index that was kept command by command, and one that is made of the state as it is
 * now. */
void index_check(const struct state_index *indexed) {
        struct state_index *again = state_index_create((Rm__State *) state_index_state(indexed));
        const struct state_index *both[] = { indexed, again };

        for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
                for (size_t k = 0; k < state_index_state(indexed)->n_nodes; k++)
                        check_node_entry(both[i], k);
                check_open_moves(both[i]);
                check_job_entries(both[i]);
                assert_null(state_capsule_move(both[i], 0, 0));
                assert_int_equal(state_node_position(both[i], "no-such-node"), -1);
        }
        state_index_destroy(again);
}

static void check_failures(const Rm__State *state) {
        const Rm__Failures *known = state->failures;

        if (!known)
                return;
        assert_true(known->foreseen <= known->losses);
        /* The command that raised the level from where the log had no clock did not tell the clock
         * either. */
        assert_true(known->counted_usec <= state->time_usec || state->time_usec == 0);
}

void state_check(const struct state_index *indexed) {
        const Rm__State *state = state_index_state(indexed);

        check_nodes(indexed);
        check_jobs(indexed);
        check_incarnations(state);
        check_moves(state);
        check_failures(state);
}

/* ---- commands ---- */

/* A refusal changes nothing but the entry that was seen last, and the log's clock. */
static void check_twins(struct world *w, const struct packed *before, uint64_t index_before, uint64_t time_before, int code) {
        struct packed a = pack_state(w->state);
        struct packed b = pack_state(w->twin);
        Rm__State *again = rm__state__unpack(NULL, a.bytes, a.data);
        struct packed c;

        assert_true(packed_equal(&a, &b));
        assert_non_null(again);
        c = pack_state(again);
        assert_true(packed_equal(&a, &c));
        packed_finish(&c);
        if (code < 0) {
                assert_int_equal(again->index, w->index);
                again->index = index_before;
                again->time_usec = time_before;
                c = pack_state(again);
                assert_true(packed_equal(before, &c));
                packed_finish(&c);
        }
        rm__state__free_unpacked(again, NULL);
        packed_finish(&a);
        packed_finish(&b);
}

static void keep_result(struct world *w, const struct state_result *result) {
        size_t used = 0;

        w->created = result->created;
        w->events[0] = 0;
        (void) snprintf(w->error, sizeof(w->error), "%s", result->error.text);
        for (size_t i = 0; i < result->n_events; i++) {
                assert_int_equal(result->events[i]->index, w->index);
                assert_int_equal(result->events[i]->time_usec, w->time_usec);
                assert_true(result->events[i]->text[0]);
                assert_true(text_is_plain(result->events[i]->text));
                (void) snprintf(w->event, sizeof(w->event), "%s", result->events[i]->text);
                if (used + 64 < sizeof(w->events))
                        used += (size_t) snprintf(w->events + used, sizeof(w->events) - used, "%s ", result->events[i]->kind);
        }
}

/* Users and administrators ask for it. */
static bool is_asked_for(const Rm__Command *command) {
        switch (command->body_case) {
        case RM__COMMAND__BODY_NODE_DRAIN:
        case RM__COMMAND__BODY_NODE_RESUME:
        case RM__COMMAND__BODY_NODE_FENCE:
        case RM__COMMAND__BODY_NODE_REMOVE:
        case RM__COMMAND__BODY_NODE_CONDITION:
        case RM__COMMAND__BODY_JOB_SUBMIT:
        case RM__COMMAND__BODY_JOB_CANCEL:
        case RM__COMMAND__BODY_JOB_OUTPUT_DONE:
        case RM__COMMAND__BODY_JOB_RELEASE:
        case RM__COMMAND__BODY_JOB_RESIZE:
        case RM__COMMAND__BODY_MOVE_START:
        case RM__COMMAND__BODY_CHECKPOINT_START:
        case RM__COMMAND__BODY_CHECKPOINT_REMOVE:
        case RM__COMMAND__BODY_CHECKPOINT_IMPORT:
                return true;
        default:
                return false;
        }
}

/* A command for a state that is already as requested is still noted: who has asked last, and
 * when. */
static bool is_noted_again(const Rm__Command *command) {
        switch (command->body_case) {
        case RM__COMMAND__BODY_NODE_DRAIN:
        case RM__COMMAND__BODY_NODE_REMOVE:
        case RM__COMMAND__BODY_JOB_CANCEL:
        case RM__COMMAND__BODY_JOB_RESIZE:
                return true;
        default:
                return false;
        }
}

struct foreseen {
        enum state_effect effect;
        struct state_result result;
        struct packed before;
};

static void foresee(const struct world *w, const Rm__Command *command, struct foreseen *ret) {
        struct packed after;

        ret->before = (struct packed) { 0 };
        if (w->thorough)
                ret->before = pack_state(w->state);
        ret->effect = state_effect(w->state, w->indexed, command, w->time_usec + 1000, &ret->result);
        if (!w->thorough)
                return;
        after = pack_state(w->state);
        assert_true(packed_equal(&ret->before, &after));
        packed_finish(&after);
}

/* The command had the foreseen effect; `state`: as it is after that. */
static void check_foreseen(const struct world *w, struct foreseen *foreseen, const Rm__Command *command,
                           const struct state_result *result) {
        struct packed after;
        Rm__State *again;

        if (foreseen->effect == STATE_EFFECT_CHANGE) {
                assert_true(result->error.code == 0 || !is_asked_for(command));
        } else if (foreseen->effect == STATE_EFFECT_REFUSED) {
                assert_int_equal(foreseen->result.error.code, result->error.code);
                assert_string_equal(foreseen->result.error.text, result->error.text);
        } else {
                assert_int_equal(result->error.code, 0);
                assert_true(is_noted_again(command) || foreseen->result.created == result->created);
                assert_true(is_noted_again(command) || result->n_events == 0);
        }
        if (w->thorough && foreseen->effect == STATE_EFFECT_NONE && !is_noted_again(command)) {
                again = rm__state__unpack(NULL, foreseen->before.bytes, foreseen->before.data);
                again->index = w->state->index;
                again->time_usec = w->state->time_usec;
                packed_finish(&foreseen->before);
                foreseen->before = pack_state(again);
                rm__state__free_unpacked(again, NULL);
                after = pack_state(w->state);
                assert_true(packed_equal(&foreseen->before, &after));
                packed_finish(&after);
        }
        packed_finish(&foreseen->before);
}

int apply_command(struct world *w, const Rm__Command *command) {
        Rm__Command stamped = *command;
        struct packed before = { 0 };
        struct state_result result;
        struct state_result twin;
        struct foreseen foreseen;
        uint64_t index_before = w->state->index, time_before = w->state->time_usec;
        int code;

        if (w->thorough)
                before = pack_state(w->state);
        foresee(w, command, &foreseen);
        w->index++;
        w->time_usec += 1000;
        stamped.time_usec = w->time_usec;
        state_apply(w->state, w->indexed, w->index, &stamped, &result);
        state_apply(w->twin, w->twin_indexed, w->index, &stamped, &twin);
        code = result.error.code;
        assert_true(code <= 0);
        assert_int_equal(result.unknown, twin.unknown);
        if (result.unknown)
                w->index--; /* it is not applied at all */
        assert_int_equal(code, twin.error.code);
        assert_string_equal(result.error.text, twin.error.text);
        assert_int_equal(result.created, twin.created);
        assert_int_equal(result.n_events, twin.n_events);
        assert_int_equal(code < 0, result.error.text[0] != 0);
        if (code < 0)
                assert_int_equal(result.n_events, 0);
        if (!command->origin && !result.unknown)
                check_foreseen(w, &foreseen, command, &result);
        else
                packed_finish(&foreseen.before);
        keep_result(w, &result);
        state_result_finish(&result);
        state_result_finish(&twin);
        if (w->thorough) {
                check_twins(w, &before, index_before, time_before, code);
                state_check(w->indexed);
                index_check(w->indexed);
        }
        packed_finish(&before);
        return code;
}

#define COMMAND(Type, field, BODY)                                                                                                 \
        Rm__Cmd##Type body = RM__CMD_##BODY##__INIT;                                                                               \
        Rm__Command command = RM__COMMAND__INIT;                                                                                   \
        command.body_case = RM__COMMAND__BODY_##BODY;                                                                              \
        command.field = &body

int join(struct world *w, const char *name, uint32_t cores) {
        cleanup_free char *boot = xasprintf("b%u", w->boot);
        Rm__Node node = RM__NODE__INIT;
        COMMAND(NodeJoin, node_join, NODE_JOIN);

        node.level = w->state->level;
        node.name = (char *) name;
        node.address = (char *) "10.0.0.1";
        node.cores = cores;
        node.topology = (char *) "Core:4";
        node.boot_id = boot;
        /* A node may not set these fields by joining. */
        node.drain = true;
        node.drain_deadline_usec = 7;
        node.available_set = true;
        node.health = RM__NODE_HEALTH__NODE_HEALTH_DOWN;
        body.node = &node;
        return apply_command(w, &command);
}

int health(struct world *w, const char *node, int value) {
        COMMAND(NodeHealth, node_health, NODE_HEALTH);

        body.node = (char *) node;
        body.health = (Rm__NodeHealth) value;
        body.why = (char *) "why";
        return apply_command(w, &command);
}

int drain(struct world *w, const char *node, const char *reason, bool update) {
        COMMAND(NodeDrain, node_drain, NODE_DRAIN);

        body.node = (char *) node;
        body.reason = (char *) reason;
        body.by = (char *) "root";
        body.update = update;
        return apply_command(w, &command);
}

int drain_until(struct world *w, const char *node, uint64_t deadline_usec, bool update) {
        COMMAND(NodeDrain, node_drain, NODE_DRAIN);

        body.node = (char *) node;
        body.by = (char *) "root";
        body.drain_deadline_usec = deadline_usec;
        body.update = update;
        return apply_command(w, &command);
}

int overdue(struct world *w, const char *node, uint64_t deadline_usec) {
        COMMAND(NodeOverdue, node_overdue, NODE_OVERDUE);

        body.node = (char *) node;
        body.drain_deadline_usec = deadline_usec;
        return apply_command(w, &command);
}

int condition(struct world *w, const char *node, const char *source, int value, const char *reason) {
        COMMAND(NodeCondition, node_condition, NODE_CONDITION);

        body.node = (char *) node;
        body.source = (char *) source;
        body.condition = (Rm__Condition) value;
        body.reason = (char *) reason;
        body.by = (char *) "root";
        return apply_command(w, &command);
}

int resume(struct world *w, const char *node) {
        COMMAND(NodeResume, node_resume, NODE_RESUME);

        body.node = (char *) node;
        body.by = (char *) "root";
        return apply_command(w, &command);
}

int remove_node(struct world *w, const char *node) {
        COMMAND(NodeRemove, node_remove, NODE_REMOVE);

        body.node = (char *) node;
        body.by = (char *) "root";
        return apply_command(w, &command);
}

int keep_log(struct world *w, const char *const *nodes, size_t n) {
        COMMAND(Voters, voters, VOTERS);

        body.nodes = (char **) nodes;
        body.n_nodes = n;
        return apply_command(w, &command);
}

int available(struct world *w, const char *const *nodes, const uint32_t *cores, size_t n) {
        Rm__AvailabilityStatus status = RM__AVAILABILITY_STATUS__INIT;
        cleanup_free Rm__NodeCores *entries = xcalloc(n, sizeof(*entries));
        cleanup_free Rm__NodeCores **pointers = xcalloc(n, sizeof(*pointers));
        COMMAND(Availability, availability, AVAILABILITY);

        for (size_t i = 0; i < n; i++) {
                rm__node_cores__init(&entries[i]);
                entries[i].node = (char *) nodes[i];
                entries[i].cores = cores[i];
                pointers[i] = &entries[i];
        }
        status.path = (char *) "/f";
        body.status = &status;
        body.nodes = pointers;
        body.n_nodes = n;
        body.content = true;
        return apply_command(w, &command);
}

int available_error(struct world *w, const char *error) {
        Rm__AvailabilityStatus status = RM__AVAILABILITY_STATUS__INIT;
        COMMAND(Availability, availability, AVAILABILITY);

        status.path = (char *) "/f";
        status.error = (char *) error;
        body.status = &status;
        return apply_command(w, &command);
}

int topology(struct world *w, const char *text) {
        cleanup_free char *copy = xstrdup(text);
        Rm__Switch switches[8], *pointers[8];
        char *names[8][8], *next = NULL;
        int code;
        COMMAND(Topology, topology, TOPOLOGY);

        for (char *word = strtok_r(copy, " ", &next); word; word = strtok_r(NULL, " ", &next)) {
                Rm__Switch *at = &switches[body.n_switches];
                char *nodes = strchr(word, ':'), *above = strrchr(word, ':'), *rest = NULL;

                *nodes++ = *above++ = 0;
                rm__switch__init(at);
                at->name = word;
                at->nodes = names[body.n_switches];
                for (char *node = strtok_r(nodes, ",", &rest); node; node = strtok_r(NULL, ",", &rest))
                        at->nodes[at->n_nodes++] = node;
                at->above = (uint32_t) strtoul(above, NULL, 10);
                at->line = (uint32_t) body.n_switches + 1;
                pointers[body.n_switches++] = at;
        }
        body.path = (char *) "/t.conf";
        body.switches = pointers;
        code = apply_command(w, &command);
        return code;
}

int topology_error(struct world *w, const char *error) {
        COMMAND(Topology, topology, TOPOLOGY);

        body.error = (char *) error;
        return apply_command(w, &command);
}

int submit(struct world *w, uint32_t ranks) {
        return submit_resizable(w, ranks, 0, 0);
}

static int submit_spec(struct world *w, Rm__JobSpec *spec) {
        char *argv[] = { (char *) "mpirun", (char *) "./a.out" };
        int code;
        COMMAND(JobSubmit, job_submit, JOB_SUBMIT);

        spec->name = (char *) "a.out";
        spec->user = (char *) "alice";
        spec->argv = argv;
        spec->n_argv = ARRAY_SIZE(argv);
        body.spec = spec;
        code = apply_command(w, &command);
        return code < 0 ? code : (int) w->created;
}

int submit_resizable(struct world *w, uint32_t ranks, uint32_t active, uint32_t least) {
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;

        spec.ranks = ranks;
        spec.active_ranks = active;
        spec.min_ranks = least;
        return submit_spec(w, &spec);
}

int submit_enduring(struct world *w, uint32_t ranks) {
        return submit_critical(w, ranks, 0, "");
}

int submit_critical(struct world *w, uint32_t ranks, uint32_t spare, const char *critical) {
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;

        spec.ranks = ranks;
        spec.on_rank_loss = RM__RANK_LOSS__RANK_LOSS_CONTINUE;
        spec.spare_ranks = spare;
        spec.critical_ranks = (char *) critical;
        return submit_spec(w, &spec);
}

static int resize_by(struct world *w, uint64_t job, uint32_t ranks, const char *by) {
        COMMAND(JobResize, job_resize, JOB_RESIZE);

        body.job = job;
        body.ranks = ranks;
        body.by = (char *) by;
        body.reason = (char *) "there are free cores";
        return apply_command(w, &command);
}

int resize(struct world *w, uint64_t job, uint32_t ranks) {
        return resize_by(w, job, ranks, "alice");
}

int resize_auto(struct world *w, uint64_t job, uint32_t ranks) {
        return resize_by(w, job, ranks, "");
}

int resize_reported(struct world *w, uint64_t job, uint64_t begun, uint64_t done, uint32_t ranks, bool ending) {
        const Rm__Job *of = state_job(w->state, job);
        COMMAND(JobResizeReported, job_resize_reported, JOB_RESIZE_REPORTED);

        body.job = job;
        body.attempt = of ? of->attempt : 0;
        body.listens = true;
        body.begun = begun;
        body.done = done;
        body.ranks = ranks;
        body.ending = ending;
        return apply_command(w, &command);
}

int ranks_reported(struct world *w, uint64_t job, int32_t group, const char *node, const uint32_t *lost, size_t n_lost,
                   bool finished) {
        const Rm__Job *of = state_job(w->state, job);
        COMMAND(JobRanksReported, job_ranks_reported, JOB_RANKS_REPORTED);

        body.job = job;
        body.attempt = of ? of->attempt : 0;
        body.group = group;
        body.node = (char *) node;
        body.speaks = true;
        body.finished = finished;
        body.lost = (uint32_t *) lost;
        body.n_lost = n_lost;
        return apply_command(w, &command);
}

int job_available(struct world *w, uint64_t job, const char *node, uint32_t cores, const char *error) {
        Rm__NodeCores entry = RM__NODE_CORES__INIT;
        Rm__NodeCores *entries[] = { &entry };
        COMMAND(JobAvailability, job_availability, JOB_AVAILABILITY);

        entry.node = (char *) node;
        entry.cores = cores;
        body.job = job;
        body.nodes = entries;
        body.n_nodes = node ? 1 : 0;
        body.set = node != NULL;
        body.error = (char *) error;
        return apply_command(w, &command);
}

int job_wait(struct world *w, uint64_t job, const char *reason, bool lost_round) {
        COMMAND(JobWait, job_wait, JOB_WAIT);

        body.job = job;
        body.reason = (char *) reason;
        body.lost_round = lost_round;
        return apply_command(w, &command);
}

int job_cores(struct world *w, uint64_t job, int32_t group, const char *node, const uint32_t *cores, size_t n) {
        Rm__GroupCores one = RM__GROUP_CORES__INIT;
        Rm__GroupCores *list[] = { &one };
        COMMAND(JobCores, job_cores, JOB_CORES);

        one.group = group;
        one.node = (char *) node;
        one.cores = (uint32_t *) cores;
        one.n_cores = n;
        body.job = job;
        body.groups = list;
        body.n_groups = 1;
        return apply_command(w, &command);
}

int spares(struct world *w, uint64_t job, const char *const *nodes, size_t n) {
        COMMAND(JobSpares, job_spares, JOB_SPARES);

        body.job = job;
        body.nodes = (char **) nodes;
        body.n_nodes = n;
        return apply_command(w, &command);
}

int place(struct world *w, uint64_t job, const char *head, const char *const *nodes, const uint32_t *ranks, size_t n) {
        COMMAND(JobPlace, job_place, JOB_PLACE);

        body.job = job;
        body.group_size = n > 0 && ranks[0] > 0 ? ranks[0] : 2;
        body.head_node = (char *) head;
        body.group_nodes = (char **) nodes;
        body.n_group_nodes = n;
        body.group_ranks = (uint32_t *) ranks;
        body.n_group_ranks = n;
        body.policy = (char *) "greedy";
        return apply_command(w, &command);
}

int ready(struct world *w, uint64_t job, int32_t capsule, const char *node) {
        COMMAND(CapsuleReady, capsule_ready, CAPSULE_READY);

        body.job = job;
        body.capsule = capsule;
        body.node = (char *) node;
        return apply_command(w, &command);
}

int blocker(struct world *w, uint64_t job, int32_t capsule, const char *node, const char *text) {
        COMMAND(CapsuleBlocker, capsule_blocker, CAPSULE_BLOCKER);

        body.job = job;
        body.capsule = capsule;
        body.node = (char *) node;
        body.text = (char *) text;
        return apply_command(w, &command);
}

int gone_of(struct world *w, uint64_t job, int32_t capsule, uint64_t incarnation, const char *node) {
        COMMAND(CapsuleGone, capsule_gone, CAPSULE_GONE);

        body.job = job;
        body.capsule = capsule;
        body.incarnation = incarnation;
        body.node = (char *) node;
        return apply_command(w, &command);
}

int gone(struct world *w, uint64_t job, int32_t capsule, const char *node) {
        const Rm__Job *known = state_job(w->state, job);
        const Rm__Capsule *placed = known ? job_capsule(known, capsule) : NULL;

        return gone_of(w, job, capsule, placed ? placed->incarnation : 0, node);
}

/* The restarts are set here, as submit() has no argument for them. */
void let_restart(struct world *w, uint64_t job, uint32_t restarts) {
        Rm__State *states[] = { w->state, w->twin };

        for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
                Rm__JobSpec *spec = state_job(states[i], job)->spec;

                spec->on_node_loss = STATE_LOSS_RESTART;
                spec->restarts = restarts;
        }
}

int node_fence(struct world *w, const char *node, uint64_t down_since, bool fenced, const char *text) {
        COMMAND(NodeFence, node_fence, NODE_FENCE);

        body.node = (char *) node;
        body.down_since_usec = down_since;
        body.fenced = fenced;
        body.text = (char *) text;
        return apply_command(w, &command);
}

int restart(struct world *w, uint64_t job, uint32_t attempt, const char *node, bool down) {
        COMMAND(JobRestart, job_restart, JOB_RESTART);
        cleanup_free char *reason = xasprintf("node %s is down", node);

        body.job = job;
        body.attempt = attempt;
        body.node = (char *) node;
        body.reason = reason;
        body.down = down;
        return apply_command(w, &command);
}

int running(struct world *w, uint64_t job) {
        COMMAND(JobRunning, job_running, JOB_RUNNING);

        body.job = job;
        return apply_command(w, &command);
}

void start_job(struct world *w, uint64_t job, const char *const *nodes, const uint32_t *ranks, size_t n) {
        assert_int_equal(place(w, job, "n1", nodes, ranks, n), 0);
        assert_int_equal(ready(w, job, STATE_HEAD, "n1"), 0);
        for (size_t i = 0; i < n; i++)
                assert_int_equal(ready(w, job, (int32_t) i, nodes[i]), 0);
        assert_int_equal(running(w, job), 0);
}

Rm__Job *job_of(const struct world *w, uint64_t job) {
        return state_job(w->state, job);
}

void expect_refused(struct world *w, int code, const char *text) {
        assert_int_equal(code, -EDQUOT);
        if (!strstr(w->error, text))
                fail_msg("\"%s\" does not say \"%s\"", w->error, text);
}

int cancel(struct world *w, uint64_t job, uint32_t signal, bool timeout) {
        COMMAND(JobCancel, job_cancel, JOB_CANCEL);

        body.job = job;
        body.signal = signal;
        body.by = (char *) "alice";
        body.timeout = timeout;
        return apply_command(w, &command);
}

int ends(struct world *w, uint64_t job, int32_t exit_code, int final_state, const char *reason) {
        COMMAND(JobExit, job_exit, JOB_EXIT);

        body.job = job;
        body.exit_code = exit_code;
        body.final_state = (Rm__JobState) final_state;
        body.reason = (char *) reason;
        return apply_command(w, &command);
}

int group_end(struct world *w, uint64_t job, int32_t group, const char *node, int32_t exit_code, enum end_way way,
              uint64_t end_usec, const char *reason) {
        COMMAND(GroupEnd, group_end, GROUP_END);

        body.job = job;
        body.group = group;
        body.node = (char *) node;
        body.exit_code = exit_code;
        body.lost = way == LOST;
        body.killed = way == KILLED;
        body.end_usec = end_usec;
        body.reason = (char *) reason;
        return apply_command(w, &command);
}

int forget(struct world *w, uint64_t job) {
        COMMAND(JobForget, job_forget, JOB_FORGET);

        body.job = job;
        return apply_command(w, &command);
}

int output_done(struct world *w, uint64_t job) {
        COMMAND(JobOutputDone, job_output_done, JOB_OUTPUT_DONE);

        body.job = job;
        return apply_command(w, &command);
}

int move_start(struct world *w, uint64_t job, int32_t capsule, const char *to) {
        COMMAND(MoveStart, move_start, MOVE_START);

        body.job = job;
        body.capsule = capsule;
        body.to = (char *) to;
        body.cause = RM__MOVE_CAUSE__MOVE_CAUSE_NEEDED;
        body.reason = (char *) "its node is to be left";
        return apply_command(w, &command);
}

int move_commit(struct world *w, uint64_t move) {
        COMMAND(MoveCommit, move_commit, MOVE_COMMIT);

        body.move = move;
        return apply_command(w, &command);
}

int move_commit_early(struct world *w, uint64_t move, uint64_t later_bytes) {
        COMMAND(MoveCommit, move_commit, MOVE_COMMIT);

        body.move = move;
        body.later_bytes = later_bytes;
        return apply_command(w, &command);
}

int move_abort(struct world *w, uint64_t move, const char *error) {
        COMMAND(MoveAbort, move_abort, MOVE_ABORT);

        body.move = move;
        body.error = (char *) error;
        return apply_command(w, &command);
}

int move_done(struct world *w, uint64_t move, uint64_t memory_bytes, uint64_t freeze_usec) {
        Rm__Move figures = RM__MOVE__INIT;
        COMMAND(MoveDone, move_done, MOVE_DONE);

        figures.id = move;
        figures.memory_bytes = memory_bytes;
        figures.freeze_usec = freeze_usec;
        body.figures = &figures;
        return apply_command(w, &command);
}

int move_done_hurried(struct world *w, uint64_t move, uint64_t expedite_usec) {
        Rm__Move figures = RM__MOVE__INIT;
        COMMAND(MoveDone, move_done, MOVE_DONE);

        figures.id = move;
        figures.expedite_usec = expedite_usec;
        body.figures = &figures;
        return apply_command(w, &command);
}

int move_waiting(struct world *w, uint64_t move, const char *text) {
        COMMAND(MoveWaiting, move_waiting, MOVE_WAITING);

        body.move = move;
        body.text = (char *) text;
        return apply_command(w, &command);
}

int move_filled(struct world *w, uint64_t move, uint64_t fill_usec) {
        COMMAND(MoveFilled, move_filled, MOVE_FILLED);

        body.move = move;
        body.fill_usec = fill_usec;
        return apply_command(w, &command);
}

int scheduling(struct world *w, const char *warning) {
        COMMAND(Scheduling, scheduling, SCHEDULING);

        body.warning = (char *) warning;
        return apply_command(w, &command);
}

int note(struct world *w, const char *text) {
        COMMAND(Note, note, NOTE);

        body.text = (char *) text;
        return apply_command(w, &command);
}
