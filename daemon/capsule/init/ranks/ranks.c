#include "daemon/capsule/init/ranks/ranks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/program_socket.h"
#include "common/util.h"

/* 1 << Program__Event, of each that there is; a library that is newer may name others. */
#define EVENTS_KNOWN                                                                                                               \
        (1U << PROGRAM__EVENT__EVENT_BEFORE_MOVE | 1U << PROGRAM__EVENT__EVENT_BEFORE_CHECKPOINT |                                 \
         1U << PROGRAM__EVENT__EVENT_AFTER_MOVE | 1U << PROGRAM__EVENT__EVENT_AFTER_CHECKPOINT |                                   \
         1U << PROGRAM__EVENT__EVENT_AFTER_RESTART | 1U << PROGRAM__EVENT__EVENT_DROP | 1U << PROGRAM__EVENT__EVENT_PLACE)

struct rank {
        uint32_t number;
        bool reported; /* the next two */
        uint64_t done;
        uint64_t total;
        uint64_t done_usec; /* when it first said that it has done so many */
        uint32_t events; /* that it wants to be told */
        bool awaited;    /* its answer to the last notice that asks */
        UT_hash_handle hh;
};

struct ranks {
        struct rank *all;
        double goal_min, goal_max; /* the last one that was said */
        uint64_t serial; /* of the last notice */
        uint64_t asked;  /* of the last one that asks; 0: none is open */
        size_t awaited;
        bool news;
        bool own_state_said; /* by rank 0, and what */
        bool own_state;
};

struct ranks *ranks_create(void) {
        return xcalloc(1, sizeof(struct ranks));
}

void ranks_destroy(struct ranks *ranks) {
        struct rank *rank, *next;

        if (!ranks)
                return;
        HASH_ITER (hh, ranks->all, rank, next) {
                HASH_DEL(ranks->all, rank);
                free(rank);
        }
        free(ranks);
}

static struct rank *find(const struct ranks *ranks, uint32_t number) {
        struct rank *rank = NULL;

        HASH_FIND(hh, ranks->all, &number, sizeof(number), rank);
        return rank;
}

/* NULL: it is one too many. */
static struct rank *find_or_add(struct ranks *ranks, uint32_t number) {
        struct rank *rank = find(ranks, number);

        if (!rank && HASH_COUNT(ranks->all) < RANKS_MAX) {
                rank = xcalloc(1, sizeof(*rank));
                rank->number = number;
                HASH_ADD(hh, ranks->all, number, sizeof(rank->number), rank);
        }
        return rank;
}

/* ---- what it says ---- */

static bool is_goal(double goal) {
        return goal >= 0 && isfinite(goal);
}

static int take_report(struct ranks *ranks, const Program__Report *report, uint64_t now_usec) {
        struct rank *rank;

        if ((report->total > 0 && report->done > report->total) || !is_goal(report->goal_min) || !is_goal(report->goal_max))
                return -EBADMSG;
        rank = find_or_add(ranks, report->rank);
        if (!rank)
                return -EUSERS;
        if (!rank->reported || rank->done != report->done)
                rank->done_usec = now_usec;
        rank->reported = true;
        rank->done = report->done;
        rank->total = report->total;
        ranks->goal_min = report->goal_min;
        ranks->goal_max = report->goal_max;
        return 0;
}

static void forget_awaited(struct ranks *ranks, struct rank *rank) {
        ranks->awaited -= rank->awaited;
        rank->awaited = false;
}

static int listen_to(struct ranks *ranks, uint32_t number, uint32_t events) {
        uint32_t known = events & EVENTS_KNOWN;
        struct rank *rank = known ? find_or_add(ranks, number) : find(ranks, number);

        if (!rank)
                return known ? -EUSERS : 0;
        ranks->news |= rank->events != known;
        rank->events = known;
        if (!known)
                forget_awaited(ranks, rank);
        return 0;
}

static int take_answer(struct ranks *ranks, const Program__Answer *answer) {
        struct rank *rank = find(ranks, answer->rank);

        if (!rank || !rank->awaited || answer->serial != ranks->asked)
                return -ESTALE;
        forget_awaited(ranks, rank);
        return 0;
}

static int take_own_state(struct ranks *ranks, const Program__OwnState *said) {
        if (said->rank != 0)
                return -EBADMSG;
        ranks->news |= !ranks->own_state_said || ranks->own_state != said->own_state;
        ranks->own_state_said = true;
        ranks->own_state = said->own_state;
        return 0;
}

int ranks_take(struct ranks *ranks, const Program__Request *request, uint64_t now_usec) {
        switch (request->body_case) {
        case PROGRAM__REQUEST__BODY_REPORT:
                return take_report(ranks, request->report, now_usec);
        case PROGRAM__REQUEST__BODY_LISTEN:
                return listen_to(ranks, request->listen->rank, request->listen->events);
        case PROGRAM__REQUEST__BODY_ANSWER:
                return take_answer(ranks, request->answer);
        case PROGRAM__REQUEST__BODY_OWN_STATE:
                return take_own_state(ranks, request->own_state);
        default:
                return -EBADMSG;
        }
}

bool ranks_take_news(struct ranks *ranks) {
        bool news = ranks->news;

        ranks->news = false;
        return news;
}

void ranks_rest(struct ranks *ranks, uint32_t number) {
        struct rank *rank = find(ranks, number);

        if (!rank)
                return;
        rank->reported = false;
        rank->events &= ~(1U << PROGRAM__EVENT__EVENT_PLACE); /* said again when it comes to one */
}

/* The rank is further behind; or as far as the other, and came there later. */
static bool is_behind(const struct rank *rank, const struct rank *last) {
        return !last || rank->done < last->done || (rank->done == last->done && rank->done_usec > last->done_usec);
}

void ranks_sum(const struct ranks *ranks, uint64_t now_usec, Capsule__Progress *ret) {
        struct rank *rank, *next, *last = NULL;

        ret->ranks = ret->listening = ret->excluding = ret->placing = 0;
        ret->goal_min = ranks->goal_min;
        ret->goal_max = ranks->goal_max;
        ret->own_state_said = ranks->own_state_said;
        ret->own_state = ranks->own_state;
        HASH_ITER (hh, ranks->all, rank, next) {
                ret->listening += rank->events != 0;
                ret->excluding += (rank->events & 1U << PROGRAM__EVENT__EVENT_DROP) != 0;
                ret->placing += (rank->events & 1U << PROGRAM__EVENT__EVENT_PLACE) != 0;
                if (!rank->reported)
                        continue;
                if (is_behind(rank, last))
                        last = rank;
                ret->ranks++;
        }
        ret->done = last ? last->done : 0;
        ret->total = last ? last->total : 0;
        ret->age_usec = last ? now_usec - last->done_usec : 0;
}

/* ---- what it is told ---- */

static bool report_one(struct ranks *ranks, uint32_t number, const struct ranks_news *news, ranks_send_fn send, void *ctx) {
        Program__Happens happens = PROGRAM__HAPPENS__INIT;
        Program__Notice notice = PROGRAM__NOTICE__INIT;
        uint8_t data[PROGRAM_SOCKET_MESSAGE_BYTES];

        happens.event = news->event;
        happens.hold_usec = news->hold_usec;
        notice.serial = ranks->serial;
        notice.body_case = PROGRAM__NOTICE__BODY_HAPPENS;
        notice.happens = &happens;
        return send(ctx, number, data, program__notice__pack(&notice, data));
}

size_t ranks_report(struct ranks *ranks, const struct ranks_news *news, ranks_send_fn send, void *ctx) {
        struct rank *rank, *next;

        ranks->serial++;
        if (news->ask) {
                ranks_stop_waiting(ranks);
                ranks->asked = ranks->serial;
        }
        HASH_ITER (hh, ranks->all, rank, next) {
                if (!(rank->events & 1U << news->event) || !report_one(ranks, rank->number, news, send, ctx) || !news->ask)
                        continue;
                rank->awaited = true;
                ranks->awaited++;
        }
        return ranks->awaited;
}

size_t ranks_awaited(const struct ranks *ranks) {
        return ranks->awaited;
}

void ranks_stop_waiting(struct ranks *ranks) {
        struct rank *rank, *next;

        HASH_ITER (hh, ranks->all, rank, next)
                rank->awaited = false;
        ranks->asked = 0;
        ranks->awaited = 0;
}

/* ---- with the capsule ---- */

void ranks_saved_state(const struct ranks *ranks, Capsule__SavedState *saved_state) {
        struct rank *rank, *next;

        saved_state->notices = ranks->serial;
        saved_state->own_state_said = ranks->own_state_said;
        saved_state->own_state = ranks->own_state;
        saved_state->listeners = xcalloc(HASH_COUNT(ranks->all) + 1, sizeof(*saved_state->listeners));
        HASH_ITER (hh, ranks->all, rank, next) {
                Capsule__Listener *listener;

                if (rank->events == 0)
                        continue;
                listener = xcalloc(1, sizeof(*listener));
                capsule__listener__init(listener);
                listener->rank = rank->number;
                listener->events = rank->events;
                saved_state->listeners[saved_state->n_listeners++] = listener;
        }
}

void ranks_saved_state_finish(Capsule__SavedState *saved_state) {
        for (size_t i = 0; i < saved_state->n_listeners; i++)
                free(saved_state->listeners[i]);
        free(saved_state->listeners);
        saved_state->listeners = NULL;
        saved_state->n_listeners = 0;
}

void ranks_set_saved_state(struct ranks *ranks, const Capsule__SavedState *saved_state) {
        ranks->serial = saved_state->notices;
        ranks->own_state_said = saved_state->own_state_said;
        ranks->own_state = saved_state->own_state;
        for (size_t i = 0; i < saved_state->n_listeners; i++)
                (void) listen_to(ranks, saved_state->listeners[i]->rank, saved_state->listeners[i]->events);
}
