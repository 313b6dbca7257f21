#include "tests/sim/ranks.h"

#include <inttypes.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/util.h"
#include "daemon/state/state.h"
#include "tests/sim/park.h"

#define LOST 30U /* of a thousand words */
#define SLOW_USEC 4000000U /* of one that answers late */
#define STEP_USEC 120000U
#define MAKE_MAX_USEC 400000U

enum program {
        ANSWERS,
        ANSWERS_LATE,
        NEVER_ANSWERS, /* it asks, and does nothing of it */
        STAYS_AS_IT_IS,
        IS_DEAF, /* it knows nothing of librmrt, and parks no rank */
};

/* All groups of an attempt have the same. */
static enum program program_of(const struct payload *payload) {
        static const enum program programs[] = { ANSWERS, ANSWERS, ANSWERS,       ANSWERS,        ANSWERS_LATE,
                                                 ANSWERS, ANSWERS, NEVER_ANSWERS, STAYS_AS_IT_IS, IS_DEAF };
        const uint64_t key[] = { payload->world->salt, payload->job, payload->born };

        return programs[XXH3_64bits(key, sizeof(key)) % ARRAY_SIZE(programs)];
}

static uint64_t now(const struct payload *payload) {
        return timeline_now_usec(payload->world->timeline);
}

static bool same_program(const struct payload *a, const struct payload *b) {
        return a->job == b->job && a->attempt == b->attempt && b->n_ranks > 0;
}

/* ---- words ---- */

static bool is_lost(const struct payload *payload) {
        return timeline_chance(payload->world->timeline, LOST);
}

static struct resize *rank_of(const struct payload *payload, uint32_t rank) {
        return payload->n_ranks > 0 && rank >= payload->ranks[0].rank && rank - payload->ranks[0].rank < payload->n_ranks
                       ? &payload->ranks[rank - payload->ranks[0].rank]
                       : NULL;
}

void ranks_receive(struct copy *copy, const Program__Resize *word) {
        struct resize *rank = rank_of(copy->payload, word->rank);

        if (rank && program_of(copy->payload) != IS_DEAF && !is_lost(copy->payload))
                resize_state_receive(rank, word);
}

static void say(struct copy *copy, struct resize *rank) {
        Program__Resize word, answer;

        if (!resize_state_send(rank, now(copy->payload), &word) || is_lost(copy->payload))
                return;
        if (park_receive(copy, &word, &answer) && !is_lost(copy->payload))
                resize_state_receive(rank, &answer);
}

/* ---- a change ---- */

static bool takes_part(const struct resize *rank, const struct rmrt_change *change) {
        if (rank->rank == 0)
                return true;
        if (rank->rank < change->before)
                return rank->phase == RESIZE_MEMBER;
        return rank->rank >= change->now || (rank->phase == RESIZE_WOKEN && rank->next.epoch == change->epoch);
}

/* All ranks that are to be in the change have called it: they run, and none is on its way. */
static bool have_met(const struct payload *first, const struct rmrt_change *change) {
        const struct payload *payload;
        uint32_t met = 0, requested = change->now > change->before ? change->now : change->before;

        LIST_FOREACH (payload, &first->world->payloads, entry)
                for (uint32_t i = 0; same_program(first, payload) && i < payload->n_ranks; i++)
                        if (payload->ranks[i].rank < requested && takes_part(&payload->ranks[i], change))
                                met++;
        return met == requested;
}

static void leave_or_stay(struct resize *rank, const struct rmrt_change *made, uint32_t most) {
        if (rank->rank >= most)
                return;
        resize_state_made(rank, made);
        if (rank->rank >= made->now)
                resize_state_park(rank);
}

static void make(const struct payload *first, const struct rmrt_change *change) {
        uint32_t most = change->now > change->before ? change->now : change->before;
        struct rmrt_change made = *change;
        struct payload *payload;

        if (program_of(first) == STAYS_AS_IT_IS)
                made.now = made.before;
        LIST_FOREACH (payload, &first->world->payloads, entry)
                for (uint32_t i = 0; same_program(first, payload) && i < payload->n_ranks; i++)
                        leave_or_stay(&payload->ranks[i], &made, most);
        timeline_trace(first->world->timeline, "ranks",
                       "of job %" PRIu64 " make change %" PRIu64 ": %" PRIu32 " of them compute, not %" PRIu32, first->job,
                       change->epoch, made.now, made.before);
        first->world->counts.changed += made.now != made.before;
}

/* Rank 0 is at a place where the program can change. */
static void go_on(struct payload *payload, struct resize *rank) {
        if (rank->phase != RESIZE_BEGUN) {
                payload->make_usec = 0;
        } else if (payload->make_usec == 0) {
                if (have_met(payload, &rank->next))
                        payload->make_usec = now(payload) + timeline_random(payload->world->timeline, MAKE_MAX_USEC);
        } else if (now(payload) >= payload->make_usec) {
                struct rmrt_change change = rank->next;

                make(payload, &change);
                payload->make_usec = 0;
        }
}

static bool is_silent(const struct payload *payload, const struct resize *rank) {
        return rank->rank == 0 && rank->phase == RESIZE_REQUESTED &&
               (program_of(payload) == NEVER_ANSWERS ||
                (program_of(payload) == ANSWERS_LATE && now(payload) % SLOW_USEC > STEP_USEC));
}

static void step(struct copy *copy) {
        struct payload *payload = copy->payload;

        for (uint32_t i = 0; i < payload->n_ranks && !copy->held && copy->payload; i++) {
                struct resize *rank = &payload->ranks[i];

                if (!is_silent(payload, rank))
                        say(copy, rank);
                if (rank->rank == 0)
                        go_on(payload, rank);
        }
}

/* ---- time ---- */

struct tick {
        struct capsules *world;
        uint64_t payload;
};

static void on_tick(void *userdata) {
        struct tick *tick = userdata;
        struct timeline *t = tick->world->timeline;
        struct payload *payload = payload_find(tick->world, tick->payload);
        struct copy *home = payload && !payload->ended ? payload_home(payload) : NULL;

        if (!payload || payload->ended) {
                free(tick);
                return;
        }
        if (home && !home->held && !home->status.cut)
                step(home);
        timeline_at(t, timeline_now_usec(t) + STEP_USEC / 2 + timeline_random(t, STEP_USEC), on_tick, free, tick);
}

/* The number of active ranks that mpirun was told. */
static uint32_t active_at_first(const struct payload *payload) {
        const struct payload *head;

        LIST_FOREACH (head, &payload->world->payloads, entry)
                if (head->job == payload->job && head->attempt == payload->attempt && head->index == STATE_HEAD)
                        return head->active;
        return 0;
}

bool ranks_follow(const struct payload *payload) {
        return payload->index > 0 && active_at_first(payload) > 0 && program_of(payload) != IS_DEAF;
}

static void begin(const struct payload *payload) {
        struct timeline *t = payload->world->timeline;
        struct tick *tick;

        if (program_of(payload) == IS_DEAF)
                return;
        tick = xcalloc(1, sizeof(*tick));
        *tick = (struct tick) { payload->world, payload->number };
        timeline_at(t, timeline_now_usec(t) + timeline_random(t, STEP_USEC), on_tick, free, tick);
}

void ranks_restore(struct payload *payload, const struct saved *saved) {
        payload->n_ranks = saved->n_ranks;
        if (saved->n_ranks == 0)
                return;
        payload->ranks = xcalloc(saved->n_ranks, sizeof(*payload->ranks));
        for (uint32_t i = 0; i < saved->n_ranks; i++)
                payload->ranks[i] = saved->ranks[i];
        begin(payload);
}

void ranks_start(struct copy *copy) {
        struct payload *payload = copy->payload;
        uint32_t active = active_at_first(payload);

        if (active == 0 || payload->index == STATE_HEAD || payload->n_ranks > 0 || copy->n_ranks == 0)
                return;
        payload->n_ranks = copy->n_ranks;
        payload->ranks = xcalloc(payload->n_ranks, sizeof(*payload->ranks));
        for (uint32_t i = 0; i < payload->n_ranks; i++)
                resize_state_init(&payload->ranks[i], copy->first_rank + i, active);
        begin(payload);
}

void ranks_check_held(const struct copy *copy) {
        for (uint32_t i = 0; i < copy->payload->n_ranks; i++) {
                const struct resize *rank = &copy->payload->ranks[i];

                if (rank->phase != RESIZE_PARKING && rank->phase != RESIZE_PARKED)
                        checks_fail(copy->world->checks,
                                    "capsule %s of %s stands still, and its rank %" PRIu32 " does not wait there (%d)", copy->id,
                                    host_name(copy->host), rank->rank, (int) rank->phase);
        }
}

/* ---- the end ---- */

/* MPI_Init is for all ranks. */
static bool all_began(const struct payload *first) {
        const struct payload *payload;
        unsigned n = 0;

        LIST_FOREACH (payload, &first->world->payloads, entry)
                n += same_program(first, payload);
        return n == first->n_groups;
}

/* MPI_Finalize is for all ranks: those that are parked come to it when they are told of the end. */
static bool all_finish(const struct payload *first) {
        const struct payload *payload;

        LIST_FOREACH (payload, &first->world->payloads, entry)
                for (uint32_t i = 0; same_program(first, payload) && i < payload->n_ranks; i++)
                        if (payload->ranks[i].phase == RESIZE_PARKING || payload->ranks[i].phase == RESIZE_PARKED ||
                            payload->ranks[i].phase == RESIZE_WOKEN)
                                return false;
        return true;
}

/* With a group that fails, MPI of the others does, also of those that mpirun has not told yet. */
static bool has_failed(const struct payload *first) {
        const struct payload *payload;

        LIST_FOREACH (payload, &first->world->payloads, entry)
                if (same_program(first, payload) && payload->ended && payload->end_status != 0)
                        return true;
        return false;
}

static const struct payload *first_of(const struct payload *group) {
        const struct payload *payload;

        LIST_FOREACH (payload, &group->world->payloads, entry)
                if (same_program(group, payload) && payload->index == 0)
                        return payload;
        return NULL;
}

bool ranks_may_end(const struct payload *payload) {
        const struct payload *first = payload->n_ranks > 0 ? first_of(payload) : NULL;
        struct resize *rank = first ? &first->ranks[0] : NULL;

        if (!rank || payload->end_status != 0 || program_of(payload) == IS_DEAF || has_failed(first))
                return true; /* it is killed, or fails */
        if (!all_began(first))
                return false;
        if (rank->phase == RESIZE_IDLE || rank->phase == RESIZE_REQUESTED)
                resize_state_finish(rank);
        return rank->phase == RESIZE_FINISHED && all_finish(first);
}

void ranks_finish(struct payload *payload) {
        if (payload->parking)
                capsule__parking__free_unpacked(payload->parking, NULL);
        free(payload->ranks);
}
