#include "daemon/capsule/init/ranks/park.h"

#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/capsule/init/core.h"
#include "daemon/capsule/init/net/flows.h"
#include "daemon/capsule/init/ranks/notice.h"
#include "daemon/capsule/init/ranks/parking_state.h"

enum {
        SCAN_USEC = 1000000,
        /* A group runs so long before it is frozen: the ranks read that they were heard, and what a
         * move restored comes to rest. It runs so long also when there is something for it to
         * do. */
        STIR_USEC = 1500000,
        /* Tracking begins within a second, and within some on a machine that is busy. */
        TRACK_USEC = 10000000,
        /* A group is woken so long after the last time that something has come for it, and longer
         * each time: a program that keeps sending would have a core that the group does not ask
         * for. */
        CALL_USEC = 2000000,
        CALL_MOST_USEC = 64000000,
        /* A program may have much to do before its first rmrt_resize_wait(), on cores that others
         * use. */
        AWAKE_USEC = 30000000,
};

struct park {
        struct core *core;
        struct parking *parking;
        bool frozen; /* by it, and so to be thawed by it */
        uint64_t unread_bytes; /* when it was: what waited for it at its connections */
        uint64_t rest_usec; /* not to be frozen before */
        uint64_t called_usec; /* when something last had come for it; 0: never */
        uint64_t call_usec; /* no sooner after that again */
        uint64_t awake_usec; /* since when it runs though it is parked; 0: it does not */
        uint64_t deadline;
};

struct park *park_create(struct core *core) {
        struct park *park = xcalloc(1, sizeof(*park));

        park->core = core;
        park->parking = parking_state_create();
        park->deadline = UINT64_MAX;
        return park;
}

bool park_holds(const struct park *park) {
        return park && park->frozen;
}

uint64_t park_deadline(const struct park *park) {
        return park->deadline;
}

void park_resync(const struct park *park) {
        park->core->ops->send(park->core, &parking_state_reported(park->parking)->base);
}

/* Moves, checkpoints and a lease that has ended have the freezer then, and what they leave is
 * looked at afterwards. */
static bool may_touch(const struct park *park) {
        return park->core->ops->runs_freely(park->core);
}

static uint64_t unread(void) {
        uint64_t bytes = 0;

        return flows_unread(&bytes) < 0 ? 0 : bytes;
}

/* Lets the group run so long; the longest time that was asked for counts. */
static void rest(struct park *park, uint64_t usec) {
        uint64_t until = now_usec() + usec;

        if (park->rest_usec < until)
                park->rest_usec = until;
}

static void freeze(struct park *park) {
        struct rm_error error = { 0 };

        park->unread_bytes = unread();
        if (park->core->ops->freeze(park->core, &error) < 0) {
                log_error("parked ranks: %s", error_text(&error));
                rest(park, STIR_USEC);
                return;
        }
        park->frozen = true;
}

/* Lets the group go on as if it had not been stopped. */
static void thaw(struct park *park) {
        struct rm_error error = { 0 };

        park->frozen = false;
        rest(park, STIR_USEC);
        if (park->core->ops->thaw(park->core, &error) < 0)
                log_error("parked ranks: %s", error_text(&error));
}

/* mpirun may end the job, which a group that stands still would not hear of. */
static bool is_called(struct park *park) {
        uint64_t now = now_usec(), longer = 2 * park->call_usec < CALL_MOST_USEC ? 2 * park->call_usec : CALL_MOST_USEC;

        if (park->called_usec > 0 && now < park->called_usec + park->call_usec)
                return false;
        if (unread() <= park->unread_bytes)
                return false;
        park->call_usec = now < park->called_usec + 2 * CALL_MOST_USEC && park->called_usec > 0 ? longer : CALL_USEC;
        park->called_usec = now;
        return true;
}

static void report_ranks(const struct park *park) {
        Program__Resize word;
        size_t at = 0;

        while (parking_state_next(park->parking, &at, &word))
                notice_send_resize(&word);
}

static bool has_to_report(const struct park *park) {
        Program__Resize word;
        size_t at = 0;

        return parking_state_next(park->parking, &at, &word);
}

/* Returns until when a group that is parked may run before that is told; UINT64_MAX: it does not
 * run, or that was told. */
static uint64_t awake_until(struct park *park) {
        bool awake = parking_state_is_awake(park->parking);

        if (!awake)
                park->awake_usec = 0;
        else if (park->awake_usec == 0)
                park->awake_usec = now_usec();
        if (parking_state_set_awake(park->parking, awake && now_usec() >= park->awake_usec + AWAKE_USEC))
                park_resync(park);
        return awake && !parking_state_reported(park->parking)->awake ? park->awake_usec + AWAKE_USEC : UINT64_MAX;
}

static void set_deadline(struct park *park) {
        bool quiet = parking_state_is_quiet(park->parking);
        uint64_t now = now_usec(), until = awake_until(park);

        if (quiet && !park->frozen && park->rest_usec > now)
                park->deadline = park->rest_usec;
        else if (quiet || park->frozen || has_to_report(park))
                park->deadline = now + SCAN_USEC;
        else
                park->deadline = UINT64_MAX;
        if (until < park->deadline)
                park->deadline = until;
}

static void scan(struct park *park) {
        bool quiet = parking_state_is_quiet(park->parking);

        if (may_touch(park)) {
                if (park->frozen && (!quiet || is_called(park)))
                        thaw(park);
                else if (!park->frozen && quiet && now_usec() >= park->rest_usec)
                        freeze(park);
                if (!park->frozen)
                        report_ranks(park);
        }
        set_deadline(park);
}

void park_order(struct park *park, const Capsule__ResizeOrder *order) {
        parking_state_order(park->parking, order);
        scan(park);
}

void park_receive(struct park *park, const Program__Resize *word) {
        Capsule__ResizeSaid before = *parking_state_reported(park->parking);
        const Capsule__ResizeSaid *now = parking_state_reported(park->parking);
        bool quiet = parking_state_is_quiet(park->parking);
        Program__Resize answer;

        if (parking_state_receive(park->parking, word, &answer))
                notice_send_resize(&answer);
        if (before.listens != now->listens || before.ending != now->ending || before.begun != now->begun ||
            before.done != now->done)
                park_resync(park);
        if (!quiet && parking_state_is_quiet(park->parking))
                rest(park, STIR_USEC);
        set_deadline(park);
}

void park_stir(struct park *park) {
        rest(park, STIR_USEC);
        if (park->frozen && may_touch(park))
                thaw(park);
        set_deadline(park);
}

void park_rest(struct park *park) {
        rest(park, TRACK_USEC);
        set_deadline(park);
}

void park_forget(struct park *park) {
        park->frozen = false;
}

void park_scan(struct park *park) {
        if (!park->frozen)
                rest(park, STIR_USEC);
        scan(park);
}

void park_timeout(struct park *park) {
        scan(park);
}

Capsule__Parking *park_saved_state(const struct park *park) {
        return parking_state_save(park->parking);
}

void park_set_saved_state(struct park *park, const Capsule__Parking *saved_state) {
        parking_state_load(park->parking, saved_state);
        park_resync(park); /* rmd was told of nothing when it came */
}
