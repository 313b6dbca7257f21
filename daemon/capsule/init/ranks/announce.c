#include "daemon/capsule/init/ranks/announce.h"

#include "common/log.h"
#include "common/util.h"
#include "daemon/capsule/init/core.h"
#include "daemon/capsule/init/ranks/notice.h"
#include "daemon/capsule/init/ranks/park.h"
#include "daemon/capsule/init/ranks/ranks.h"

/* A rank at its place waits for so much longer than rmd: until it is captured. */
#define HOLD_USEC UINT64_C(5000000)

struct announce {
        struct core *core;
        struct ranks *ranks;
        const struct park *park;
        Capsule__Capture capture; /* that is near, or under way; CAPTURE_NONE: neither */
        bool orphan;
        struct ticket ticket;
        uint64_t deadline; /* for the ranks' answers; UINT64_MAX: nobody waits */
};

struct announce *announce_create(struct core *core, struct ranks *ranks, const struct park *park) {
        struct announce *announce = xcalloc(1, sizeof(*announce));

        announce->core = core;
        announce->ranks = ranks;
        announce->park = park;
        announce->deadline = UINT64_MAX;
        return announce;
}

static bool send_notice(void *ctx, uint32_t rank, const void *data, size_t size) {
        return notice_send(rank, data, size);
}

static void stop_waiting(struct announce *announce) {
        if (announce->deadline == UINT64_MAX)
                return;
        announce->deadline = UINT64_MAX;
        ranks_stop_waiting(announce->ranks);
        announce->core->ops->reply(announce->core, announce->ticket, 0, NULL);
}

static Program__Event event_before(Capsule__Capture capture) {
        switch (capture) {
        case CAPSULE__CAPTURE__CAPTURE_DROP:
                return PROGRAM__EVENT__EVENT_DROP;
        case CAPSULE__CAPTURE__CAPTURE_PLACE:
                return PROGRAM__EVENT__EVENT_PLACE;
        case CAPSULE__CAPTURE__CAPTURE_MOVE:
                return PROGRAM__EVENT__EVENT_BEFORE_MOVE;
        default:
                return PROGRAM__EVENT__EVENT_BEFORE_CHECKPOINT;
        }
}

static Program__Event event_after(Capsule__Capture capture) {
        return capture == CAPSULE__CAPTURE__CAPTURE_MOVE ? PROGRAM__EVENT__EVENT_AFTER_MOVE
                                                         : PROGRAM__EVENT__EVENT_AFTER_CHECKPOINT;
}

static void report(struct announce *announce, Program__Event event) {
        struct ranks_news news = { .event = event };

        (void) ranks_report(announce->ranks, &news, send_notice, NULL);
}

static void end(struct announce *announce) {
        stop_waiting(announce);
        if (announce->capture != CAPSULE__CAPTURE__CAPTURE_NONE)
                report(announce, event_after(announce->capture));
        announce->capture = CAPSULE__CAPTURE__CAPTURE_NONE;
        announce->orphan = false;
}

/* Returns the capture that is over later, if this is announced. */
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
        if (!park_holds(announce->park)) /* else nobody would come by */
                (void) ranks_report(announce->ranks, &news, send_notice, NULL);
        announce_scan(announce);
}

void announce_over(struct announce *announce, Capsule__Capture capture) {
        if (announce->capture == capture)
                end(announce);
}

void announce_arrived(struct announce *announce, bool back) {
        report(announce, back ? PROGRAM__EVENT__EVENT_AFTER_RESTART : PROGRAM__EVENT__EVENT_AFTER_MOVE);
}

void announce_orphan(struct announce *announce) {
        announce->orphan = announce->capture != CAPSULE__CAPTURE__CAPTURE_NONE;
        if (announce->core->phase == CAPSULE__PHASE__PHASE_RUNNING)
                announce_runs(announce);
}

void announce_runs(struct announce *announce) {
        if (announce->orphan)
                end(announce);
}

void announce_scan(struct announce *announce) {
        if (announce->deadline != UINT64_MAX && ranks_awaited(announce->ranks) == 0)
                stop_waiting(announce);
}

uint64_t announce_deadline(const struct announce *announce) {
        return announce->deadline;
}

void announce_timeout(struct announce *announce) {
        log_info("%zu ranks did not come by in time to do what they want to do before they are captured",
                 ranks_awaited(announce->ranks));
        stop_waiting(announce);
}
