#include "tests/sim/host.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "common/util.h"

#define MILLION 1000000
/* Any time; hosts do not agree on it. */
#define REAL_BEGIN_USEC UINT64_C(1700000000000000)

struct delivery {
        struct host *host;
        uint64_t life;
        event_fn fn, drop;
        void *userdata;
        STAILQ_ENTRY(delivery) entry;
};

struct host {
        struct timeline *timeline;
        unsigned number;
        char *name;
        struct host_ops ops;
        void *userdata;
        enum host_state state;
        uint64_t life;
        STAILQ_HEAD(, delivery) held; /* while it is stopped, in the order in which they came */
        /* The monotonic clock showed `base_usec` at `since_usec` of the timeline. */
        uint64_t base_usec, since_usec;
        int drift_ppm;
        uint64_t asleep_usec; /* in all */
        int64_t real_ahead_usec; /* of the monotonic clock */
        void *parts[HOST_PARTS];
};

/* Code that is made for one process of its own cannot be given the host. */
static struct host *current;

struct host *host_current(void) {
        return current;
}

struct host *host_create(struct timeline *t, unsigned number, const char *name, const struct host_ops *ops, void *userdata) {
        struct host *host = xcalloc(1, sizeof(*host));

        host->timeline = t;
        host->number = number;
        host->name = xstrdup(name);
        host->ops = *ops;
        host->userdata = userdata;
        host->state = HOST_DEAD;
        host->base_usec = timeline_between(t, MILLION, 1000 * (uint64_t) MILLION);
        host->since_usec = timeline_now_usec(t);
        host->real_ahead_usec = (int64_t) (REAL_BEGIN_USEC - host->base_usec + timeline_random(t, MILLION));
        STAILQ_INIT(&host->held);
        return host;
}

static void delivery_drop(void *userdata) {
        struct delivery *delivery = userdata;

        if (delivery->drop)
                delivery->drop(delivery->userdata);
        free(delivery);
}

static void drop_held(struct host *host) {
        while (!STAILQ_EMPTY(&host->held)) {
                struct delivery *delivery = STAILQ_FIRST(&host->held);

                STAILQ_REMOVE_HEAD(&host->held, entry);
                delivery_drop(delivery);
        }
}

void host_destroy(struct host *host) {
        if (!host)
                return;
        drop_held(host);
        free(host->name);
        free(host);
}

unsigned host_number(const struct host *host) {
        return host->number;
}

const char *host_name(const struct host *host) {
        return host->name;
}

enum host_state host_state(const struct host *host) {
        return host->state;
}

struct timeline *host_timeline(const struct host *host) {
        return host->timeline;
}

uint64_t host_life(const struct host *host) {
        return host->life;
}

void *host_part(const struct host *host, enum host_part part) {
        return host->parts[part];
}

void host_set_part(struct host *host, enum host_part part, void *what) {
        host->parts[part] = what;
}

/* ---- its process ---- */

static void idle(struct host *host) {
        if (host->state == HOST_RUNS && host->ops.on_idle)
                host->ops.on_idle(host->userdata);
}

void host_start(struct host *host) {
        if (host->state != HOST_DEAD)
                return;
        timeline_trace(host->timeline, host->name, "starts");
        host->state = HOST_RUNS;
        host->life++;
        current = host;
        if (host->ops.on_start)
                host->ops.on_start(host->userdata);
        idle(host);
        current = NULL;
}

void host_kill(struct host *host) {
        if (host->state == HOST_DEAD)
                return;
        timeline_trace(host->timeline, host->name, "is killed");
        host->state = HOST_DEAD;
        drop_held(host);
        current = host;
        if (host->ops.on_killed)
                host->ops.on_killed(host->userdata);
        current = NULL;
}

void host_stop(struct host *host) {
        if (host->state != HOST_RUNS)
                return;
        timeline_trace(host->timeline, host->name, "is stopped");
        host->state = HOST_STOPPED;
}

static void delivery_arrive(void *userdata) {
        struct delivery *delivery = userdata;
        struct host *host = delivery->host;

        if (host->state == HOST_DEAD || (delivery->life > 0 && delivery->life != host->life)) {
                delivery_drop(delivery);
        } else if (host->state == HOST_STOPPED) {
                STAILQ_INSERT_TAIL(&host->held, delivery, entry);
        } else {
                current = host;
                delivery->fn(delivery->userdata);
                free(delivery);
                idle(host);
                current = NULL;
        }
}

void host_continue(struct host *host) {
        if (host->state != HOST_STOPPED)
                return;
        timeline_trace(host->timeline, host->name, "is continued");
        host->state = HOST_RUNS;
        while (host->state == HOST_RUNS && !STAILQ_EMPTY(&host->held)) {
                struct delivery *delivery = STAILQ_FIRST(&host->held);

                STAILQ_REMOVE_HEAD(&host->held, entry);
                delivery_arrive(delivery);
        }
}

/* ---- what comes to it ---- */

static struct delivery *delivery_create(struct host *host, uint64_t life, event_fn fn, event_fn drop, void *userdata) {
        struct delivery *delivery = xcalloc(1, sizeof(*delivery));

        *delivery = (struct delivery) { .host = host, .life = life, .fn = fn, .drop = drop, .userdata = userdata };
        return delivery;
}

void host_deliver(struct host *host, uint64_t life, event_fn fn, event_fn drop, void *userdata) {
        delivery_arrive(delivery_create(host, life, fn, drop, userdata));
}

void host_packet(struct host *host, unsigned from, const void *data, size_t size_bytes) {
        if (host->ops.on_packet)
                host->ops.on_packet(host->userdata, from, data, size_bytes);
}

/* Rounded up, so that a process that waits for its clock does see it go. What was asked for before
 * the clock is set to another pace stays as it was computed. */
void host_after(struct host *host, uint64_t delay_usec, event_fn fn, event_fn drop, void *userdata) {
        uint64_t speed = (uint64_t) (MILLION + host->drift_ppm), real_delay_usec = (delay_usec * MILLION + speed - 1) / speed;

        timeline_at(host->timeline, timeline_now_usec(host->timeline) + real_delay_usec, delivery_arrive, delivery_drop,
                    delivery_create(host, host->life, fn, drop, userdata));
}

/* ---- clocks ---- */

uint64_t host_monotonic_usec(const struct host *host) {
        int64_t passed_usec = (int64_t) (timeline_now_usec(host->timeline) - host->since_usec);

        return host->base_usec + (uint64_t) (passed_usec + passed_usec * host->drift_ppm / MILLION);
}

uint64_t host_awake_usec(const struct host *host) {
        return host_monotonic_usec(host) - host->asleep_usec;
}

uint64_t host_real_usec(const struct host *host) {
        return host_monotonic_usec(host) + (uint64_t) host->real_ahead_usec;
}

static void set_base(struct host *host, uint64_t ahead_usec) {
        host->base_usec = host_monotonic_usec(host) + ahead_usec;
        host->asleep_usec += ahead_usec;
        host->since_usec = timeline_now_usec(host->timeline);
}

void host_set_drift(struct host *host, int drift_ppm) {
        timeline_trace(host->timeline, host->name, "has a clock that drifts by %d ppm", drift_ppm);
        set_base(host, 0);
        host->drift_ppm = drift_ppm;
}

void host_jump(struct host *host, uint64_t ahead_usec) {
        timeline_trace(host->timeline, host->name, "has a clock that jumps by %" PRIu64 " ms", ahead_usec / 1000);
        set_base(host, ahead_usec);
}

void host_set_real(struct host *host, int64_t change_usec) {
        timeline_trace(host->timeline, host->name, "has its time of day set by %" PRId64 " s", change_usec / MILLION);
        host->real_ahead_usec += change_usec;
}
