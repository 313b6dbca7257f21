#include "tests/sim/fakemover_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "tests/sim/network.h"

#define WANTS_SLOW 100U /* of a thousand */
/* The share of late events, of a thousand: where all are busy. */
#define LATE 50U
#define LATE_MAX_USEC 1000000U

struct movers *movers_create(struct timeline *t) {
        struct movers *movers = xcalloc(1, sizeof(*movers));

        movers->timeline = t;
        LIST_INIT(&movers->list);
        return movers;
}

void movers_destroy(struct movers *movers) {
        free(movers);
}

void movers_begin(struct movers *movers, struct host *host) {
        host_set_part(host, HOST_MOVERS, movers);
}

struct mover *fakemover_find(const struct movers *movers, uint64_t number) {
        struct mover *mover;

        LIST_FOREACH (mover, &movers->list, entry)
                if (mover->number == number)
                        return mover;
        return NULL;
}

struct mover *fakemover_peer(const struct mover *mover) {
        struct mover *other;

        LIST_FOREACH (other, &mover->movers->list, entry)
                if (other->send != mover->send && other->stage > STAGE_BEGIN &&
                    memcmp(other->token, mover->token, TOKEN_BYTES) == 0)
                        return other;
        return NULL;
}

bool fakemover_chance(const struct mover *mover, unsigned per_mille) {
        return timeline_chance(mover->movers->timeline, per_mille);
}

uint64_t fakemover_draw(const struct mover *mover, uint64_t max_usec) {
        return timeline_random(mover->movers->timeline, max_usec + 1);
}

/* ---- what it tells ---- */

struct reported {
        struct movers *movers;
        struct host *host;
        uint64_t number, life;
        Rm__MoverEvent *event; /* NULL: it is gone */
};

static void reported_free(void *userdata) {
        struct reported *reported = userdata;

        if (reported->event)
                rm__mover_event__free_unpacked(reported->event, NULL);
        free(reported);
}

static void on_reported(void *userdata) {
        struct reported *reported = userdata;
        struct mover *mover = fakemover_find(reported->movers, reported->number);

        if (mover && reported->event)
                mover->ops->on_event(mover->userdata, reported->event);
        else if (mover)
                mover->ops->on_gone(mover->userdata);
        reported_free(reported);
}

static void on_arrival(void *userdata) {
        struct reported *reported = userdata;

        host_deliver(reported->host, reported->life, on_reported, reported_free, reported);
}

void fakemover_report(struct mover *mover, const Rm__MoverEvent *event) {
        struct timeline *t = mover->movers->timeline;
        uint64_t usec =
                timeline_now_usec(t) + fakemover_draw(mover, fakemover_chance(mover, LATE) ? LATE_MAX_USEC : MESSAGE_MAX_USEC);
        struct reported *reported = xcalloc(1, sizeof(*reported));

        if (usec > mover->last_usec)
                mover->last_usec = usec;
        *reported = (struct reported) { mover->movers, mover->host, mover->number, mover->life, NULL };
        reported->event = event ? (Rm__MoverEvent *) message_copy(&event->base) : NULL;
        timeline_at(t, mover->last_usec, on_arrival, reported_free, reported);
}

void fakemover_fail(struct mover *mover, int code, const char *text, bool by_peer) {
        Rm__MoverEvent event = RM__MOVER_EVENT__INIT;
        Rm__MoverFailed failed = RM__MOVER_FAILED__INIT;

        failed.code = code;
        failed.text = (char *) text;
        failed.end_mark_sent = mover->send && mover->stage >= STAGE_SENT;
        failed.by_peer = by_peer;
        event.body_case = RM__MOVER_EVENT__BODY_FAILED;
        event.failed = &failed;
        mover->stage = STAGE_FAILED;
        fakemover_report(mover, &event);
        fakemover_report(mover, NULL);
}

void fakemover_report_figures(struct mover *mover, Rm__MoverEvent__BodyCase kind) {
        Rm__MoverEvent event = RM__MOVER_EVENT__INIT;
        Rm__MoverFigures figures = RM__MOVER_FIGURES__INIT;
        Rm__MoverSent body = RM__MOVER_SENT__INIT;
        Rm__MoverAcknowledged acknowledged = RM__MOVER_ACKNOWLEDGED__INIT;
        Rm__MoverReceived received = RM__MOVER_RECEIVED__INIT;
        Rm__MoverPrecopied precopied = RM__MOVER_PRECOPIED__INIT;

        figures.raw_bytes = figures.wire_bytes = 1000000;
        figures.pages = mover->pages;
        body.figures = acknowledged.figures = received.figures = precopied.figures = &figures;
        event.body_case = kind;
        if (kind == RM__MOVER_EVENT__BODY_SENT)
                event.sent = &body;
        else if (kind == RM__MOVER_EVENT__BODY_ACKNOWLEDGED)
                event.acknowledged = &acknowledged;
        else if (kind == RM__MOVER_EVENT__BODY_RECEIVED)
                event.received = &received;
        else
                event.precopied = &precopied;
        fakemover_report(mover, &event);
}

/* ---- what it does ---- */

static void on_step(void *userdata);

struct step {
        struct movers *movers;
        uint64_t number;
};

void fakemover_step_after(struct mover *mover, uint64_t delay_usec) {
        struct timeline *t = mover->movers->timeline;
        struct step *step = xcalloc(1, sizeof(*step));

        *step = (struct step) { mover->movers, mover->number };
        timeline_at(t, timeline_now_usec(t) + delay_usec, on_step, free, step);
}

/* Packets come through, both ways. */
static bool reaches(const struct mover *mover, const struct mover *peer) {
        struct network *network = host_part(mover->host, HOST_NETWORK);
        unsigned a = host_number(mover->host), b = host_number(peer->host);

        return !network_link(network, a, b)->cut && !network_link(network, b, a)->cut;
}

/* False: not now; it is looked again, or given up. */
bool fakemover_has_peer(struct mover *mover, struct mover *peer, uint64_t max_usec) {
        uint64_t now_usec = timeline_now_usec(mover->movers->timeline);

        if (peer && peer->stage != STAGE_FAILED && reaches(mover, peer)) {
                mover->since_usec = now_usec;
                return true;
        }
        if (mover->send && (!peer || (reaches(mover, peer) && peer->stage == STAGE_FAILED)))
                fakemover_fail(mover, mover->stage == STAGE_CONNECT ? -ECONNREFUSED : -ECONNRESET, "the other rm-mover is gone",
                               false);
        else if (!mover->send && mover->stage > STAGE_CONNECT && (!peer || (peer->stage == STAGE_FAILED && reaches(mover, peer))))
                fakemover_fail(mover, -ECONNRESET, "the other rm-mover is gone", false);
        else if (now_usec - mover->since_usec > max_usec)
                fakemover_fail(mover, -ETIMEDOUT, "the other rm-mover is silent", false);
        else
                fakemover_step_after(mover, SCAN_USEC);
        return false;
}

static void step_listen(struct mover *mover) {
        Rm__MoverEvent event = RM__MOVER_EVENT__INIT;
        Rm__MoverListening listening = RM__MOVER_LISTENING__INIT;

        mover->stage = STAGE_CONNECT;
        listening.port = 1000;
        event.body_case = RM__MOVER_EVENT__BODY_LISTENING;
        event.listening = &listening;
        fakemover_report(mover, &event);
        fakemover_step_after(mover, SCAN_USEC);
}

static void step_connect(struct mover *mover) {
        Rm__MoverEvent event = RM__MOVER_EVENT__INIT;
        Rm__MoverReady ready = RM__MOVER_READY__INIT;
        struct mover *peer = fakemover_peer(mover);

        if (!fakemover_has_peer(mover, peer, SILENCE_MAX_USEC))
                return;
        mover->stage = peer->stage = STAGE_READY;
        peer->since_usec = mover->since_usec;
        event.body_case = RM__MOVER_EVENT__BODY_READY;
        event.ready = &ready;
        fakemover_report(mover, &event);
        fakemover_report(peer, &event);
}

static void step_precopy(struct mover *mover) {
        Rm__MoverEvent event = RM__MOVER_EVENT__INIT;
        Rm__MoverProgress progress = RM__MOVER_PROGRESS__INIT;
        Rm__MoverWantsSlow wants = RM__MOVER_WANTS_SLOW__INIT;

        if (!fakemover_has_peer(mover, fakemover_peer(mover), SILENCE_MAX_USEC))
                return;
        if (fakemover_chance(mover, FAIL_PRECOPY)) {
                fakemover_fail(mover, -EIO, "it has failed", false);
        } else if (mover->rounds == 1) {
                mover->rounds = 0;
                fakemover_report_figures(mover, RM__MOVER_EVENT__BODY_PRECOPIED);
        } else if (mover->rounds == 2 && mover->pages && fakemover_chance(mover, WANTS_SLOW)) {
                mover->rounds = 1; /* and goes on with MoverSlow */
                event.body_case = RM__MOVER_EVENT__BODY_WANTS_SLOW;
                event.wants_slow = &wants;
                fakemover_report(mover, &event);
        } else {
                mover->rounds--;
                event.body_case = RM__MOVER_EVENT__BODY_PROGRESS;
                event.progress = &progress;
                fakemover_report(mover, &event);
                fakemover_step_after(mover, fakemover_draw(mover, ROUND_MAX_USEC));
        }
}

static void step_send(struct mover *mover) {
        if (!fakemover_has_peer(mover, fakemover_peer(mover), SILENCE_MAX_USEC))
                return;
        if (fakemover_chance(mover, FAIL_TRANSFER)) {
                fakemover_fail(mover, -EIO, "it has failed", false);
                return;
        }
        mover->stage = STAGE_SENT;
        fakemover_report_figures(mover, RM__MOVER_EVENT__BODY_SENT);
        fakemover_step_after(mover, fakemover_draw(mover, MESSAGE_MAX_USEC));
}

/* The end mark arrives, and is answered. */
static void step_sent(struct mover *mover) {
        struct mover *peer = fakemover_peer(mover);

        if (!fakemover_has_peer(mover, peer, SILENCE_MAX_USEC))
                return;
        if (peer->stage == STAGE_READY && fakemover_chance(mover, FAIL_VERIFY)) {
                fakemover_fail(peer, -EBADMSG, "a checksum is wrong", false);
                fakemover_fail(mover, -EBADMSG, "a checksum is wrong", true);
        } else if (peer->stage == STAGE_READY) {
                peer->stage = STAGE_RECEIVED;
                peer->image = mover->image;
                peer->pages = mover->pages;
                peer->has_image = true;
                fakemover_report_figures(peer, RM__MOVER_EVENT__BODY_RECEIVED);
                fakemover_report(peer, NULL);
                fakemover_step_after(mover, fakemover_draw(mover, MESSAGE_MAX_USEC));
        } else {
                mover->stage = STAGE_RECEIVED;
                fakemover_report_figures(mover, RM__MOVER_EVENT__BODY_ACKNOWLEDGED);
                fakemover_report(mover, NULL);
        }
}

static void step_receive(struct mover *mover) {
        uint64_t max_usec = mover->stage == STAGE_CONNECT ? ACCEPT_MAX_USEC : SILENCE_MAX_USEC;

        if (fakemover_has_peer(mover, fakemover_peer(mover), max_usec))
                fakemover_step_after(mover, SCAN_USEC);
}

static void on_step(void *userdata) {
        struct step *step = userdata;
        struct mover *mover = fakemover_find(step->movers, step->number);

        free(step);
        if (!mover || mover->stage == STAGE_FAILED || mover->stage == STAGE_RECEIVED)
                return;
        if (mover->role >= ROLE_SAVE)
                fakesaver_step(mover);
        else if (!mover->send && mover->stage == STAGE_BEGIN)
                step_listen(mover);
        else if (!mover->send)
                step_receive(mover);
        else if (mover->stage == STAGE_CONNECT)
                step_connect(mover);
        else if (mover->stage == STAGE_READY && mover->rounds > 0)
                step_precopy(mover);
        else if (mover->stage == STAGE_SEND)
                step_send(mover);
        else if (mover->stage == STAGE_SENT)
                step_sent(mover);
}

/* ---- for PID 1 ---- */

static struct mover *find_dir(const struct host *host, const char *dir, bool receives) {
        const struct movers *movers = host_part(host, HOST_MOVERS);
        struct mover *mover;

        LIST_FOREACH (mover, &movers->list, entry)
                if (mover->host == host && (mover->role == ROLE_RECEIVE) == receives && mover->dir && strcmp(mover->dir, dir) == 0)
                        return mover;
        return NULL;
}

bool mover_captured(struct host *host, const char *dir, const struct image *image, const struct saved *saved) {
        struct mover *mover = find_dir(host, dir, false);

        if (!mover || mover->stage != STAGE_CAPTURE)
                return false;
        mover->image = *image;
        mover->has_image = true;
        if (mover->role == ROLE_SAVE) {
                mover->saved = xrealloc(mover->saved, sizeof(*mover->saved));
                *mover->saved = *saved;
        }
        return true;
}

bool mover_image(struct host *host, const char *dir, struct image *ret) {
        const struct mover *mover = find_dir(host, dir, true);

        if (!mover || !mover->has_image)
                return false;
        *ret = mover->image;
        return true;
}

bool mover_saved(struct host *host, const char *dir, struct saved *ret) {
        const struct mover *mover = find_dir(host, dir, true);

        if (!mover || !mover->saved)
                return false;
        *ret = *mover->saved;
        return true;
}

/* ---- for rmd ---- */

static enum role role_of(const char *name) {
        static const char *const names[] = { "send", "receive", "save", "load", "verify" };
        enum role role = ROLE_SEND;

        while (strcmp(names[role], name) != 0) /* none is exported or imported */
                if ((size_t) ++role == ARRAY_SIZE(names))
                        abort();
        return role;
}

int mover_start(struct rmd *rmd, const char *role, const Rm__MoverCommand *first, const struct mover_ops *ops, void *userdata,
                struct mover **ret, struct rm_error *err) {
        struct host *host = host_current();
        struct movers *movers = host_part(host, HOST_MOVERS);
        struct mover *mover = xcalloc(1, sizeof(*mover));

        *mover = (struct mover) { .movers = movers, .host = host, .life = host_life(host), .ops = ops, .userdata = userdata };
        mover->number = ++movers->last_number;
        mover->role = role_of(role);
        mover->send = mover->role == ROLE_SEND || mover->role == ROLE_LOAD;
        LIST_INSERT_HEAD(&movers->list, mover, entry);
        *ret = mover;
        return mover_command(mover, first);
}

void fakemover_take(struct mover *mover, const ProtobufCBinaryData *token, const char *dir) {
        memcpy(mover->token, token->data, TOKEN_BYTES);
        mover->dir = xstrdup(dir);
        mover->since_usec = timeline_now_usec(mover->movers->timeline);
        fakemover_step_after(mover, fakemover_draw(mover, START_MAX_USEC));
}

int mover_command(struct mover *mover, const Rm__MoverCommand *command) {
        if (mover->stage == STAGE_FAILED)
                return 0; /* it has not told yet */
        if (fakesaver_command(mover, command))
                return 0;
        switch (command->body_case) {
        case RM__MOVER_COMMAND__BODY_SEND:
                mover->stage = STAGE_CONNECT;
                fakemover_take(mover, &command->send->token, command->send->images_dir);
                break;
        case RM__MOVER_COMMAND__BODY_RECEIVE:
                fakemover_take(mover, &command->receive->token, command->receive->images_dir);
                fakesaver_receive(mover, command->receive);
                break;
        case RM__MOVER_COMMAND__BODY_PRECOPY:
                mover->pages = command->precopy->pages && !fakemover_chance(mover, UNTRACKED);
                mover->rounds = 1 + (unsigned) fakemover_draw(mover, ROUNDS_MAX);
                fakemover_step_after(mover, fakemover_draw(mover, ROUND_MAX_USEC));
                break;
        case RM__MOVER_COMMAND__BODY_SLOW:
                fakemover_step_after(mover, fakemover_draw(mover, ROUND_MAX_USEC));
                break;
        case RM__MOVER_COMMAND__BODY_START:
                mover->stage = STAGE_CAPTURE;
                break;
        case RM__MOVER_COMMAND__BODY_DUMP_DONE:
                mover->stage = STAGE_SEND;
                fakemover_step_after(mover, fakemover_draw(mover, TRANSFER_MAX_USEC));
                break;
        default:
                break;
        }
        return 0;
}

/* SIGKILL, or it dies with its rmd. */
void mover_stop(struct mover *mover, struct remover *remover, const char *dir) {
        if (!mover)
                return;
        LIST_REMOVE(mover, entry);
        fakesaver_finish(mover);
        free(mover->dir);
        free(mover);
}

/* Nothing is left at a source here. */
void mover_leave(struct mover *mover) {
        mover_stop(mover, NULL, NULL);
}
