#include "tests/sim/park.h"

#include <inttypes.h>

#include "common/util.h"
#include "tests/sim/ranks.h"

/* The intervals are those of park.c. */
#define STIR_USEC 1500000U
#define SCAN_USEC 1000000U

static uint64_t now(const struct copy *copy) {
        return timeline_now_usec(copy->world->timeline);
}

static void report_rmd(struct copy *copy) {
        const Capsule__ResizeSaid *said = parking_state_reported(copy->parking);
        const struct report report = { .kind = REPORT_SAID };

        copy->status.resize_said = (struct capsule_resize_said) {
                .listens = said->listens, .ending = said->ending, .begun = said->begun, .done = said->done, .ranks = said->ranks
        };
        timeline_trace(copy->world->timeline, host_name(copy->host),
                       "rank 0 in capsule %s has said:%s begun %" PRIu64 ", done %" PRIu64 " with %" PRIu32 " ranks%s", copy->id,
                       said->listens ? " listens," : "", said->begun, said->done, said->ranks, said->ending ? ", ends" : "");
        copy_report(copy, &report);
}

static bool may_touch(const struct copy *copy) {
        return copy->status.phase == CAPSULE_RUNNING && !copy->busy && copy_runs(copy) && !copy->status.fenced;
}

static void hold(struct copy *copy) {
        copy->held = true;
        timeline_trace(copy->world->timeline, host_name(copy->host), "capsule %s stands still: it is parked", copy->id);
        copy->world->counts.held++;
        ranks_check_held(copy);
}

static void let_go(struct copy *copy) {
        copy->held = false;
        timeline_trace(copy->world->timeline, host_name(copy->host), "capsule %s stands still no longer", copy->id);
        copy->rest_usec = now(copy) + STIR_USEC;
}

/* Some input has come for the payload. */
static bool is_called(const struct copy *copy) {
        return copy->payload && !copy->payload->ended && copy->payload->end_usec <= now(copy);
}

static void report_ranks(struct copy *copy) {
        Program__Resize word;
        size_t at = 0;

        while (parking_state_next(copy->parking, &at, &word))
                ranks_receive(copy, &word);
}

static void scan(struct copy *copy);

static void on_time(struct copy *copy) {
        copy->looks = false;
        scan(copy);
}

static void set_deadline(struct copy *copy) {
        bool quiet = parking_state_is_quiet(copy->parking);
        size_t at = 0;
        Program__Resize word;

        if (copy->looks || (!quiet && !copy->held && !parking_state_next(copy->parking, &at, &word)))
                return;
        copy->looks = true;
        copy_later(copy, quiet && !copy->held && copy->rest_usec > now(copy) ? copy->rest_usec - now(copy) : SCAN_USEC, on_time);
}

static void scan(struct copy *copy) {
        bool quiet = parking_state_is_quiet(copy->parking);

        if (copy->dead || !copy->payload || copy->payload->ended)
                return;
        if (may_touch(copy)) {
                if (copy->held && (!quiet || is_called(copy)))
                        let_go(copy);
                else if (!copy->held && quiet && now(copy) >= copy->rest_usec)
                        hold(copy);
                if (!copy->held)
                        report_ranks(copy);
        }
        set_deadline(copy);
}

void park_order(struct copy *copy, const Capsule__ResizeOrder *order) {
        timeline_trace(copy->world->timeline, host_name(copy->host),
                       "capsule %s is to know: %" PRIu32 " of its job are active%s, %" PRIu32 " are wanted (%" PRIu64 ")%s%s",
                       copy->id, order->active, order->freeze ? " and none of these is here" : "", order->requested, order->epoch,
                       order->begun ? ", begun" : "", order->end ? ", it ends" : "");
        copy->first_rank = order->first;
        copy->n_ranks = order->ranks;
        if (copy->payload)
                ranks_start(copy);
        parking_state_order(copy->parking, order);
        scan(copy);
}

bool park_receive(struct copy *copy, const Program__Resize *word, Program__Resize *ret_answer) {
        Capsule__ResizeSaid before = *parking_state_reported(copy->parking);
        const Capsule__ResizeSaid *said = parking_state_reported(copy->parking);
        bool quiet = parking_state_is_quiet(copy->parking), answered = parking_state_receive(copy->parking, word, ret_answer);

        if (before.listens != said->listens || before.ending != said->ending || before.begun != said->begun ||
            before.done != said->done)
                report_rmd(copy);
        if (!quiet && parking_state_is_quiet(copy->parking)) {
                copy->rest_usec = now(copy) + STIR_USEC;
                scan(copy);
        }
        set_deadline(copy);
        return answered;
}

void park_stir(struct copy *copy) {
        copy->rest_usec = now(copy) + STIR_USEC;
        if (copy->held && may_touch(copy))
                let_go(copy);
        scan(copy);
}

void park_scan(struct copy *copy) {
        if (!copy->held)
                copy->rest_usec = now(copy) + STIR_USEC;
        scan(copy);
}

void park_get_saved_state(struct copy *copy) {
        if (copy->payload->parking)
                capsule__parking__free_unpacked(copy->payload->parking, NULL);
        copy->payload->parking = parking_state_save(copy->parking);
}

void park_set_saved_state(struct copy *copy) {
        if (!copy->payload->parking)
                return;
        parking_state_load(copy->parking, copy->payload->parking);
        copy->first_rank = copy->payload->parking->order->first;
        copy->n_ranks = copy->payload->parking->order->ranks;
        report_rmd(copy);
}

void park_finish(struct copy *copy) {
        parking_state_destroy(copy->parking);
}
