#include "daemon/capsule/init/announce.h"

#include "common/log.h"
#include "common/util.h"
#include "daemon/capsule/init/door.h"
#include "daemon/capsule/init/init.h"
#include "daemon/capsule/init/park.h"
#include "daemon/capsule/init/ranks.h"

/* A rank at its place waits for so much longer than rmd: until it is captured. */
#define HOLD_USEC UINT64_C(5000000)

struct announce {
        struct init *init;
        Capsule__Capture capture; /* that is near, or under way; CAPTURE_NONE: neither */
        bool orphan;
        struct ticket ticket;
        uint64_t deadline; /* for the ranks' answers; UINT64_MAX: nobody waits */
};

struct announce *announce_create(struct init *init) {
        struct announce *announce = xcalloc(1, sizeof(*announce));

        announce->init = init;
        announce->deadline = UINT64_MAX;
        return announce;
}

static void stop_waiting(struct announce *announce) {
        if (announce->deadline == UINT64_MAX)
                return;
        announce->deadline = UINT64_MAX;
        door_stop_waiting(announce->init->door);
        ctl_reply(announce->init->ctl, announce->ticket, 0, NULL);
}

static Door__Event event_before(Capsule__Capture capture) {
        switch (capture) {
        case CAPSULE__CAPTURE__CAPTURE_DROP:
                return DOOR__EVENT__EVENT_DROP;
        case CAPSULE__CAPTURE__CAPTURE_PLACE:
                return DOOR__EVENT__EVENT_PLACE;
        case CAPSULE__CAPTURE__CAPTURE_MOVE:
                return DOOR__EVENT__EVENT_BEFORE_MOVE;
        default:
                return DOOR__EVENT__EVENT_BEFORE_CHECKPOINT;
        }
}

static Door__Event event_after(Capsule__Capture capture) {
        return capture == CAPSULE__CAPTURE__CAPTURE_MOVE ? DOOR__EVENT__EVENT_AFTER_MOVE : DOOR__EVENT__EVENT_AFTER_CHECKPOINT;
}

static void tell(struct announce *announce, Door__Event event) {
        struct ranks_news news = { .event = event };

        (void) door_tell(announce->init->door, &news);
}

static void end(struct announce *announce) {
        stop_waiting(announce);
        if (announce->capture != CAPSULE__CAPTURE__CAPTURE_NONE)
                tell(announce, event_after(announce->capture));
        announce->capture = CAPSULE__CAPTURE__CAPTURE_NONE;
        announce->orphan = false;
}

/* What is over later, if this is announced. */
static Capsule__Capture becomes(Capsule__Capture capture) {
        if (capture == CAPSULE__CAPTURE__CAPTURE_DROP)
                return CAPSULE__CAPTURE__CAPTURE_NONE;
        return capture == CAPSULE__CAPTURE__CAPTURE_PLACE ? CAPSULE__CAPTURE__CAPTURE_CHECKPOINT : capture;
}

void announce_near(struct announce *announce, Capsule__Capture capture, uint64_t wait_usec, struct ticket ticket) {
        struct ranks_news news = { .event = event_before(capture), .ask = true };

        if (capture == CAPSULE__CAPTURE__CAPTURE_PLACE) {
                stop_waiting(announce);
                news.hold_usec = wait_usec + HOLD_USEC;
        } else
                end(announce);
        announce->capture = becomes(capture);
        announce->ticket = ticket;
        announce->deadline = now_usec() + wait_usec;
        if (!park_holds(announce->init->park)) /* else nobody would come by */
                (void) door_tell(announce->init->door, &news);
        announce_look(announce);
}

void announce_over(struct announce *announce, Capsule__Capture capture) {
        if (announce->capture == capture)
                end(announce);
}

void announce_arrived(struct announce *announce, bool back) {
        tell(announce, back ? DOOR__EVENT__EVENT_AFTER_RESTART : DOOR__EVENT__EVENT_AFTER_MOVE);
}

void announce_orphan(struct announce *announce) {
        announce->orphan = announce->capture != CAPSULE__CAPTURE__CAPTURE_NONE;
        if (announce->init->phase == CAPSULE__PHASE__PHASE_RUNNING)
                announce_runs(announce);
}

void announce_runs(struct announce *announce) {
        if (announce->orphan)
                end(announce);
}

void announce_look(struct announce *announce) {
        if (announce->deadline != UINT64_MAX && door_awaited(announce->init->door) == 0)
                stop_waiting(announce);
}

uint64_t announce_deadline(const struct announce *announce) {
        return announce->deadline;
}

void announce_timeout(struct announce *announce) {
        log_info("%zu ranks did not come by in time to do what they want to do before they are captured",
                 door_awaited(announce->init->door));
        stop_waiting(announce);
}
