#include "tests/sim/checks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/util.h"

/* A state that differs once does so from then on: of nodes that keep the log, and of those that
 * follow, one in so many is enough. */
#define KEPT_EACH 4U
#define FOLLOWED_EACH 8U

struct operation {
        const char *kind;
        unsigned host; /* above 0: that proposed it; 0: a leader by itself */
        uint64_t life;
        unsigned in_log, done; /* entries, and those that had an effect */
        int code; /* of the last entry that was no repetition, and what that made */
        uint64_t created;
        uint64_t begin_usec, acknowledged_usec;
        uint32_t token; /* of a submission; 0: it is none */
};

/* The number of a command, by its origin. */
struct number {
        uint64_t instance, sequence;
};

struct numbered {
        struct number number;
        uint32_t operation;
        UT_hash_handle hh;
};

/* A leader meant it for this place in the log; there may be others. */
struct proposal {
        uint64_t entry_hash;
        uint32_t operation;
};

struct state_hash {
        uint64_t effect; /* of the state without the index, the clock and the sessions, which every command changes */
        uint64_t all;
};

/* An index of the log, and the result of its entry, as the first voter that applied it found. */
struct place {
        struct proposal *proposals;
        size_t n_proposals;
        bool applied;
        bool numbered; /* it has an origin: its order is kept */
        uint64_t entry_hash, result_hash;
        struct state_hash hash;
        uint32_t operation;
        int code;
        uint64_t created;
};

/* A process that proposes: the last of its operations that was done. */
struct proposer {
        uint64_t life;
        uint32_t last_done;
};

struct checks {
        struct timeline *timeline;
        char *violation;
        struct proposer *proposers; /* by host + 1 */
        size_t n_proposers;
        struct operation *operations;
        uint32_t n_operations;
        struct place *places; /* by index */
        size_t n_places;
        unsigned *leaders; /* by term: the host above 0; 0: none that we have seen */
        size_t n_leaders;
        uint64_t last_acknowledged;
        uint64_t last_term; /* the latest that a node has led */
        struct numbered *numbered;
        uint8_t *packed;
        size_t packed_bytes;
};

static struct place *place_at(struct checks *c, uint64_t index);
static struct state_hash hash_state(struct checks *c, Rm__State *state);

struct checks *checks_create(struct timeline *t) {
        struct checks *c = xcalloc(1, sizeof(*c));
        Rm__State *empty = state_create(CHECKS_CLUSTER);

        c->timeline = t;
        place_at(c, 0)->applied = true;
        c->places[0].hash = hash_state(c, empty);
        rm__state__free_unpacked(empty, NULL);
        return c;
}

void checks_destroy(struct checks *c) {
        struct numbered *numbered, *next;

        if (!c)
                return;
        HASH_ITER (hh, c->numbered, numbered, next) {
                HASH_DEL(c->numbered, numbered);
                free(numbered);
        }
        for (size_t i = 0; i < c->n_places; i++)
                free(c->places[i].proposals);
        free(c->places);
        free(c->operations);
        free(c->leaders);
        free(c->proposers);
        free(c->violation);
        free(c->packed);
        free(c);
}

const char *checks_violation(const struct checks *c) {
        return c->violation;
}

void checks_fail(struct checks *c, const char *fmt, ...) {
        va_list ap;

        if (c->violation)
                return;
        va_start(ap, fmt);
        c->violation = xvasprintf(fmt, ap);
        va_end(ap);
        timeline_trace(c->timeline, "****", "%s", c->violation);
}

/* An array with room for `i`, zeroed. */
static void *grow(void *array, size_t *n, size_t i, size_t size_bytes) {
        size_t needed = i < 256 ? 256 : 2 * i;

        if (i < *n)
                return array;
        array = xrealloc(array, needed * size_bytes);
        memset((uint8_t *) array + *n * size_bytes, 0, (needed - *n) * size_bytes);
        *n = needed;
        return array;
}

static struct place *place_at(struct checks *c, uint64_t index) {
        c->places = grow(c->places, &c->n_places, index, sizeof(*c->places));
        return &c->places[index];
}

/* ---- clients ---- */

uint32_t checks_operation(struct checks *c, const char *kind) {
        if (c->n_operations % 256 == 0)
                c->operations = xrealloc(c->operations, (c->n_operations + 257) * sizeof(*c->operations));
        c->operations[++c->n_operations] = (struct operation) { .kind = kind, .begin_usec = timeline_now_usec(c->timeline) };
        return c->n_operations;
}

void checks_proposer(struct checks *c, uint32_t operation, unsigned host, uint64_t life) {
        c->operations[operation].host = host + 1;
        c->operations[operation].life = life;
}

void checks_acknowledged(struct checks *c, uint32_t operation, uint64_t index, int code, uint64_t created) {
        struct operation *op = &c->operations[operation];
        const struct place *place = place_at(c, index);

        if (!place->applied || place->operation != operation)
                checks_fail(c, "operation %u (%s) was acknowledged at %" PRIu64 ", where another is", operation, op->kind, index);
        else if (code != place->code || created != place->created)
                checks_fail(c, "operation %u (%s) gave %d and made %" PRIu64 ", and was told of %d and %" PRIu64, operation,
                            op->kind, place->code, place->created, code, created);
        if (index > c->last_acknowledged)
                c->last_acknowledged = index;
        if (op->acknowledged_usec == 0)
                op->acknowledged_usec = timeline_now_usec(c->timeline);
}

void checks_submission(struct checks *c, uint32_t operation, uint32_t token) {
        c->operations[operation].token = token;
}

uint32_t checks_unanswered(const struct checks *c, uint64_t wait_usec) {
        uint64_t now = timeline_now_usec(c->timeline);

        for (uint32_t i = c->n_operations; i >= 1 && now - c->operations[i].begin_usec <= 2 * wait_usec; i--) {
                const struct operation *op = &c->operations[i];

                if (op->token == i && op->acknowledged_usec == 0 && now - op->begin_usec >= wait_usec)
                        return i;
        }
        return 0;
}

uint64_t checks_acknowledged_usec(const struct checks *c, uint32_t operation) {
        return operation >= 1 && operation <= c->n_operations ? c->operations[operation].acknowledged_usec : 0;
}

uint64_t checks_last_acknowledged(const struct checks *c) {
        return c->last_acknowledged;
}

unsigned checks_repeated(const struct checks *c) {
        unsigned n = 0;

        for (uint32_t i = 1; i <= c->n_operations; i++)
                n += c->operations[i].in_log > 1;
        return n;
}

unsigned checks_resubmitted(const struct checks *c) {
        unsigned n = 0;

        for (uint32_t i = 1; i <= c->n_operations; i++)
                n += c->operations[i].in_log > 0 && c->operations[i].token != 0 && c->operations[i].token != i;
        return n;
}

/* ---- voters ---- */

static uint64_t hash_message(struct checks *c, const ProtobufCMessage *message) {
        size_t n = protobuf_c_message_get_packed_size(message);

        if (n > c->packed_bytes) {
                c->packed_bytes = 2 * n;
                c->packed = xrealloc(c->packed, c->packed_bytes);
        }
        (void) protobuf_c_message_pack(message, c->packed);
        return XXH3_64bits(c->packed, n);
}

/* A command that is sent again has been stamped by a leader before: then its origin tells which it
 * is. */
static uint32_t operation_of(struct checks *c, const Rm__Command *command, uint32_t operation) {
        const Rm__Origin *origin = command->origin;
        struct numbered *numbered = NULL;
        struct number key;

        if (!origin)
                return operation ? operation : checks_operation(c, "leader's own");
        memset(&key, 0, sizeof(key));
        key = (struct number) { origin->instance, origin->sequence };
        HASH_FIND(hh, c->numbered, &key, sizeof(key), numbered);
        if (!numbered) {
                numbered = xcalloc(1, sizeof(*numbered));
                numbered->number = key;
                numbered->operation = operation;
                HASH_ADD(hh, c->numbered, number, sizeof(key), numbered);
        }
        return numbered->operation;
}

void checks_proposed(struct checks *c, uint64_t index, const Rm__Command *command, uint32_t operation) {
        struct place *place = place_at(c, index);

        operation = operation_of(c, command, operation <= c->n_operations ? operation : 0);
        place->proposals = xrealloc(place->proposals, (place->n_proposals + 1) * sizeof(*place->proposals));
        place->proposals[place->n_proposals++] = (struct proposal) { hash_message(c, &command->base), operation };
}

static struct state_hash hash_state(struct checks *c, Rm__State *state) {
        const uint64_t index = state->index, time_usec = state->time_usec;
        const size_t n_sessions = state->n_sessions;
        Rm__State rest = RM__STATE__INIT;
        struct state_hash hash;
        uint64_t parts[2];

        state->index = state->time_usec = 0;
        state->n_sessions = 0;
        hash.effect = hash_message(c, &state->base);
        rest.index = state->index = index;
        rest.time_usec = state->time_usec = time_usec;
        rest.n_sessions = state->n_sessions = n_sessions;
        rest.sessions = state->sessions;
        parts[0] = hash.effect;
        parts[1] = hash_message(c, &rest.base);
        hash.all = XXH3_64bits(parts, sizeof(parts));
        return hash;
}

static uint64_t hash_result(struct checks *c, const struct state_result *result) {
        uint64_t parts[3] = { (uint64_t) result->error.code, result->created, 0 };

        for (size_t i = 0; i < result->n_events; i++)
                parts[2] = parts[2] * 31 + hash_message(c, &result->events[i]->base);
        return XXH3_64bits(parts, sizeof(parts));
}

static uint64_t effect_hash_before(const struct checks *c, uint64_t index) {
        do
                index--;
        while (index > 0 && !c->places[index].applied);
        return c->places[index].hash.effect;
}

/* Checks that operations of one process that were done later were made later. A process that knows
 * no state yet gives no numbers. */
static void check_order(struct checks *c, uint32_t operation, uint64_t index) {
        const struct operation *op = &c->operations[operation];
        struct proposer *proposer;

        c->proposers = grow(c->proposers, &c->n_proposers, op->host, sizeof(*c->proposers));
        proposer = &c->proposers[op->host];
        if (op->host == 0 || op->life < proposer->life)
                return;
        if (op->life == proposer->life && operation < proposer->last_done)
                checks_fail(c, "operation %u (%s) was done at %" PRIu64 ", after %u, which was made later", operation, op->kind,
                            index, proposer->last_done);
        *proposer = (struct proposer) { op->life, operation };
}

static void count_operation(struct checks *c, const struct place *place, uint64_t index, const struct state_result *result) {
        struct operation *op = &c->operations[place->operation];
        bool changed = result->n_events > 0 || place->hash.effect != effect_hash_before(c, index);

        op->in_log++;
        if (!result->repeated) {
                op->code = result->error.code;
                op->created = result->created;
        } else if (result->error.code != -ESTALE && (result->error.code != op->code || result->created != op->created)) {
                checks_fail(c, "operation %u (%s) gave %d and made %" PRIu64 ", and gives %d and %" PRIu64 " again at %" PRIu64,
                            place->operation, op->kind, op->code, op->created, result->error.code, result->created, index);
        }
        if ((result->error.code < 0 || result->repeated) && changed)
                checks_fail(c, "operation %u (%s) was refused or repeated at %" PRIu64 ", and changed the state", place->operation,
                            op->kind, index);
        if (result->repeated || result->error.code < 0)
                return;
        op->done++;
        if (op->done > 1)
                checks_fail(c, "operation %u (%s) was done %u times, again at %" PRIu64, place->operation, op->kind, op->done,
                            index);
        if (place->numbered)
                check_order(c, place->operation, index);
}

/* However often it was submitted it is one job, whose number all are told. */
static void check_token(struct checks *c, uint64_t index, const Rm__JobSpec *spec, const Rm__State *state, uint64_t created) {
        unsigned n = 0;

        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Job *job = state->jobs[i];

                if (job->spec->uid != spec->uid || strcmp(job->spec->token, spec->token) != 0)
                        continue;
                n++;
                if (job->id != created)
                        checks_fail(c, "the submission at %" PRIu64 " made job %" PRIu64 ", and job %" PRIu64 " has its token",
                                    index, created, job->id);
        }
        if (n != 1)
                checks_fail(c, "the submission at %" PRIu64 " left %u jobs with its token", index, n);
}

static void first_applied(struct checks *c, struct place *place, uint64_t index, const struct state_result *result) {
        place->applied = true;
        for (size_t i = 0; i < place->n_proposals; i++)
                if (place->proposals[i].entry_hash == place->entry_hash)
                        place->operation = place->proposals[i].operation;
        if (place->operation == 0)
                checks_fail(c, "the entry at %" PRIu64 " was never proposed", index);
        else
                count_operation(c, place, index, result);
}

static void trace_applied(const struct checks *c, uint64_t index, const Rm__Command *command, const struct state_result *result) {
        const ProtobufCFieldDescriptor *kind;

        if (!timeline_traced(c->timeline))
                return;
        kind = protobuf_c_message_descriptor_get_field(&rm__command__descriptor, command->body_case);
        timeline_trace(c->timeline, "log", "%" PRIu64 ": %s%s%s%s", index, kind ? kind->name : "nothing",
                       result->repeated ? ", again" : "", result->error.code < 0 ? ": " : "",
                       result->error.code < 0 ? error_text(&result->error) : "");
        for (size_t i = 0; i < result->n_events; i++)
                timeline_trace(c->timeline, "log", "%s", result->events[i]->text);
}

static void check_index(struct checks *c, const char *host, Rm__State *state, const struct state_index *indexed) {
        const char *what = index_difference(state, indexed);

        if (what)
                checks_fail(c, "%s has at %" PRIu64 " an index that is not of its state: %s", host, state->index, what);
}

static void check_resize(struct checks *c, uint64_t index, const Rm__Job *job) {
        const Rm__Resize *resize = job->resize;

        if (resize->active < job->spec->min_ranks || resize->active > job->spec->ranks || resize->active == 0)
                checks_fail(c, "job %" PRIu64 " has at %" PRIu64 " %u active ranks, not %u to %u", job->id, index, resize->active,
                            job->spec->min_ranks, job->spec->ranks);
        if (resize->requested != 0 && (resize->requested < job->spec->min_ranks || resize->requested > job->spec->ranks))
                checks_fail(c, "job %" PRIu64 " is at %" PRIu64 " to have %u active ranks, not %u to %u", job->id, index,
                            resize->requested, job->spec->min_ranks, job->spec->ranks);
        if (resize->begun && resize->requested == 0)
                checks_fail(c, "job %" PRIu64 " has begun at %" PRIu64 " what nobody wants", job->id, index);
}

static void check_resizes(struct checks *c, uint64_t index, const Rm__State *state) {
        for (size_t i = 0; i < state->n_jobs; i++)
                if (state->jobs[i]->resize && !job_ended(state->jobs[i]))
                        check_resize(c, index, state->jobs[i]);
}

void checks_applied(struct checks *c, const char *host, uint64_t index, const Rm__Command *command, Rm__State *state,
                    const struct state_index *indexed, const struct state_result *result, bool all) {
        struct place *place = place_at(c, index);
        uint64_t entry_hash = hash_message(c, &command->base), result_hash = hash_result(c, result);

        if (result->unknown)
                checks_fail(c, "%s does not understand the command at %" PRIu64 ": %s", host, index, error_text(&result->error));
        if (!place->applied) {
                place->numbered = command->origin;
                place->entry_hash = entry_hash;
                place->hash = hash_state(c, state);
                place->result_hash = result_hash;
                place->code = result->error.code;
                place->created = result->created;
                trace_applied(c, index, command, result);
                first_applied(c, place, index, result);
                check_resizes(c, index, state);
                if (command->body_case == RM__COMMAND__BODY_JOB_SUBMIT && result->error.code == 0 && !result->repeated)
                        check_token(c, index, command->job_submit->spec, state, result->created);
        }
        if (place->entry_hash != entry_hash)
                checks_fail(c, "%s applies another entry at %" PRIu64 " than was applied there before", host, index);
        else if (place->result_hash != result_hash)
                checks_fail(c, "%s has another result at %" PRIu64 " than others", host, index);
        if (index % (all ? KEPT_EACH : FOLLOWED_EACH) != 0)
                return;
        if (place->hash.all != hash_state(c, state).all)
                checks_fail(c, "%s has another state at %" PRIu64 " than others", host, index);
        check_index(c, host, state, indexed);
}

void checks_restored(struct checks *c, const char *host, Rm__State *state, const struct state_index *indexed) {
        const struct place *place = place_at(c, state->index);

        if (!place->applied || place->hash.all != hash_state(c, state).all)
                checks_fail(c, "%s restores another state at %" PRIu64 " than others have", host, state->index);
        check_index(c, host, state, indexed);
}

void checks_leads(struct checks *c, unsigned host, const char *name, uint64_t term, uint64_t last_index) {
        c->leaders = grow(c->leaders, &c->n_leaders, term, sizeof(*c->leaders));
        if (c->leaders[term] == host + 1)
                return;
        timeline_trace(c->timeline, name, "LEADS term %" PRIu64 ", its log ends at %" PRIu64, term, last_index);
        if (c->leaders[term] != 0)
                checks_fail(c, "%s leads term %" PRIu64 ", which host %u led", name, term, c->leaders[term] - 1);
        c->leaders[term] = host + 1;
        /* A node may hear of its votes only when another one leads a later term already. It has not
         * what that one has acknowledged, and nobody follows it. */
        if (term < c->last_term)
                return;
        c->last_term = term;
        if (last_index < c->last_acknowledged)
                checks_fail(c, "%s leads, and its log ends at %" PRIu64 ", before %" PRIu64 " that was acknowledged", name,
                            last_index, c->last_acknowledged);
}
