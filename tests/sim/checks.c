#include "tests/sim/checks.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/util.h"

struct operation {
        const char *kind;
        bool token;
        unsigned in_log, done; /* entries, and those that changed the state */
        uint64_t created;      /* by the first of them */
        uint64_t acknowledged_usec;
};

/* A leader meant it for this place in the log; there may be others. */
struct proposal {
        uint64_t entry_hash;
        uint32_t operation;
};

/* What one place of the log holds, and what came of it, as the first voter that applied it found. */
struct place {
        struct proposal *proposals;
        size_t n_proposals;
        bool applied;
        uint64_t entry_hash, state_hash, result_hash;
        uint32_t operation;
};

struct checks {
        struct timeline *timeline;
        bool strict;
        char *violation;
        struct operation *operations;
        uint32_t n_operations;
        struct place *places; /* by index */
        size_t n_places;
        unsigned *leaders; /* by term: the host above 0; 0: none that we have seen */
        size_t n_leaders;
        uint64_t last_acknowledged;
        uint8_t *packed;
        size_t packed_bytes;
};

static struct place *place_at(struct checks *c, uint64_t index);
static uint64_t hash_state(struct checks *c, Rm__State *state);

struct checks *checks_create(struct timeline *t, bool strict) {
        struct checks *c = xcalloc(1, sizeof(*c));
        Rm__State *empty = state_create(CHECKS_CLUSTER);

        c->timeline = t;
        c->strict = strict;
        place_at(c, 0)->applied = true;
        c->places[0].state_hash = hash_state(c, empty);
        rm__state__free_unpacked(empty, NULL);
        return c;
}

void checks_destroy(struct checks *c) {
        if (!c)
                return;
        for (size_t i = 0; i < c->n_places; i++)
                free(c->places[i].proposals);
        free(c->places);
        free(c->operations);
        free(c->leaders);
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

uint32_t checks_operation(struct checks *c, const char *kind, bool token) {
        if (c->n_operations % 256 == 0)
                c->operations = xrealloc(c->operations, (c->n_operations + 257) * sizeof(*c->operations));
        c->operations[++c->n_operations] = (struct operation) { .kind = kind, .token = token };
        return c->n_operations;
}

void checks_acknowledged(struct checks *c, uint32_t operation, uint64_t index, int code, uint64_t created) {
        struct operation *op = &c->operations[operation];
        const struct place *place = place_at(c, index);

        if (!place->applied || place->operation != operation)
                checks_fail(c, "operation %u (%s) was acknowledged at %" PRIu64 ", where another is", operation, op->kind, index);
        if (op->token && code == 0 && created != op->created)
                checks_fail(c, "operation %u (%s) made %" PRIu64 ", and was told of %" PRIu64, operation, op->kind, op->created,
                            created);
        if (index > c->last_acknowledged)
                c->last_acknowledged = index;
        if (op->acknowledged_usec == 0)
                op->acknowledged_usec = timeline_now_usec(c->timeline);
}

uint64_t checks_acknowledged_usec(const struct checks *c, uint32_t operation) {
        return operation >= 1 && operation <= c->n_operations ? c->operations[operation].acknowledged_usec : 0;
}

uint64_t checks_last_acknowledged(const struct checks *c) {
        return c->last_acknowledged;
}

struct checks_repeats checks_repeats(const struct checks *c) {
        struct checks_repeats repeats = { 0 };

        for (uint32_t i = 1; i <= c->n_operations; i++) {
                repeats.sent_again += c->operations[i].in_log > 1;
                repeats.done_again += c->operations[i].done > 1;
        }
        return repeats;
}

/* ---- voters ---- */

void checks_proposed(struct checks *c, uint64_t index, const struct raft_buffer *entry, uint32_t operation) {
        struct place *place = place_at(c, index);

        place->proposals = xrealloc(place->proposals, (place->n_proposals + 1) * sizeof(*place->proposals));
        place->proposals[place->n_proposals++] = (struct proposal) { XXH3_64bits(entry->base, entry->len), operation };
}

static uint64_t hash_message(struct checks *c, const ProtobufCMessage *message) {
        size_t n = protobuf_c_message_get_packed_size(message);

        if (n > c->packed_bytes) {
                c->packed_bytes = 2 * n;
                c->packed = xrealloc(c->packed, c->packed_bytes);
        }
        (void) protobuf_c_message_pack(message, c->packed);
        return XXH3_64bits(c->packed, n);
}

/* Without its index, so that it shows whether a command changed anything else. */
static uint64_t hash_state(struct checks *c, Rm__State *state) {
        uint64_t index = state->index, hash;

        state->index = 0;
        hash = hash_message(c, &state->base);
        state->index = index;
        return hash;
}

static uint64_t hash_result(struct checks *c, const struct state_result *result) {
        uint64_t parts[3] = { (uint64_t) result->error.code, result->created, 0 };

        for (size_t i = 0; i < result->n_events; i++)
                parts[2] = parts[2] * 31 + hash_message(c, &result->events[i]->base);
        return XXH3_64bits(parts, sizeof(parts));
}

static uint64_t state_hash_before(const struct checks *c, uint64_t index) {
        while (index > 0 && !c->places[--index].applied)
                ;
        return c->places[index].state_hash;
}

/* The operation has had an effect, if this is more than its entry's place. */
static void count_operation(struct checks *c, const struct place *place, uint64_t index, const struct state_result *result) {
        struct operation *op = &c->operations[place->operation];
        bool changed = result->n_events > 0 || place->state_hash != state_hash_before(c, index);

        op->in_log++;
        if (result->error.code == 0 && op->created == 0)
                op->created = result->created;
        if (result->error.code < 0 && changed)
                checks_fail(c, "operation %u (%s) was refused at %" PRIu64 ", and changed the state", place->operation, op->kind,
                            index);
        op->done += changed;
        if (op->done > 1 && changed && (op->token || c->strict))
                checks_fail(c, "operation %u (%s) was done %u times, again at %" PRIu64, place->operation, op->kind, op->done,
                            index);
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

static void check_index(struct checks *c, const char *host, Rm__State *state, const struct state_index *indexed) {
        const char *what = index_difference(state, indexed);

        if (what)
                checks_fail(c, "%s has at %" PRIu64 " an index that is not of its state: %s", host, state->index, what);
}

void checks_applied(struct checks *c, const char *host, uint64_t index, const struct raft_buffer *entry, Rm__State *state,
                    const struct state_index *indexed, const struct state_result *result) {
        struct place *place = place_at(c, index);
        uint64_t entry_hash = XXH3_64bits(entry->base, entry->len);
        uint64_t state_hash = hash_state(c, state), result_hash = hash_result(c, result);

        if (!place->applied) {
                place->entry_hash = entry_hash;
                place->state_hash = state_hash;
                place->result_hash = result_hash;
                first_applied(c, place, index, result);
        }
        if (place->entry_hash != entry_hash)
                checks_fail(c, "%s applies another entry at %" PRIu64 " than was applied there before", host, index);
        else if (place->state_hash != state_hash || place->result_hash != result_hash)
                checks_fail(c, "%s has another %s at %" PRIu64 " than others", host,
                            place->state_hash != state_hash ? "state" : "result", index);
        check_index(c, host, state, indexed);
}

void checks_restored(struct checks *c, const char *host, Rm__State *state, const struct state_index *indexed) {
        const struct place *place = place_at(c, state->index);

        if (!place->applied || place->state_hash != hash_state(c, state))
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
        if (last_index < c->last_acknowledged)
                checks_fail(c, "%s leads, and its log ends at %" PRIu64 ", before %" PRIu64 " that was acknowledged", name,
                            last_index, c->last_acknowledged);
}
