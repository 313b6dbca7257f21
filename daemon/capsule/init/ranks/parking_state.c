#include "daemon/capsule/init/ranks/parking_state.h"

#include <stdlib.h>

#include "common/util.h"
#include "daemon/capsule/init/ranks/ranks.h"

struct parking {
        Capsule__ResizeOrder order; /* `ranks` 0: there is none */
        Capsule__ResizeSaid said;
        Capsule__ParkedRank *ranks; /* those of the order, from its `first` on */
};

struct parking *parking_state_create(void) {
        struct parking *parking = xcalloc(1, sizeof(*parking));

        capsule__resize_order__init(&parking->order);
        capsule__resize_said__init(&parking->said);
        return parking;
}

void parking_state_destroy(struct parking *parking) {
        if (parking)
                free(parking->ranks);
        free(parking);
}

static void make_ranks(struct parking *parking, const Capsule__ResizeOrder *order) {
        if (parking->order.ranks == order->ranks && parking->order.first == order->first)
                return;
        free(parking->ranks);
        parking->ranks = order->ranks > 0 ? xcalloc(order->ranks, sizeof(*parking->ranks)) : NULL;
        for (uint32_t i = 0; i < order->ranks; i++)
                capsule__parked_rank__init(&parking->ranks[i]);
}

static bool grows(const Capsule__ResizeOrder *order) {
        return order->begun && order->requested >= order->active;
}

/* A change that has begun needs them. */
static void call_up(struct parking *parking) {
        const Capsule__ResizeOrder *order = &parking->order;

        for (uint32_t i = 0; grows(order) && i < order->ranks; i++) {
                Capsule__ParkedRank *rank = &parking->ranks[i];

                if (order->first + i >= order->requested || rank->wake_epoch >= order->epoch)
                        continue;
                rank->wake_epoch = order->epoch;
                rank->answered = false;
        }
}

/* Fields that are not known here are the message's, and gone with it. */
static void forget_unknown(ProtobufCMessage *copy) {
        copy->n_unknown_fields = 0;
        copy->unknown_fields = NULL;
}

void parking_state_order(struct parking *parking, const Capsule__ResizeOrder *order) {
        bool ends = order->end && !parking->order.end;

        if (order->ranks > RANKS_MAX || order->first > UINT32_MAX - order->ranks)
                return;
        make_ranks(parking, order);
        parking->order = *order;
        forget_unknown(&parking->order.base);
        for (uint32_t i = 0; ends && i < order->ranks; i++)
                parking->ranks[i].answered = false;
        call_up(parking);
}

/* ---- what is said ---- */

static bool answer(const Program__Resize *step, Program__Resize__Step with, uint64_t epoch, uint32_t ranks, Program__Resize *ret) {
        program__resize__init(ret);
        ret->step = with;
        ret->rank = step->rank;
        ret->epoch = epoch;
        ret->ranks = ranks;
        return true;
}

/* Says what rank 0 is told of the change under way, if there is one. */
static bool answer_change(const struct parking *parking, const Program__Resize *step, Program__Resize *ret) {
        const Capsule__ResizeOrder *order = &parking->order;

        if (order->requested == 0 || parking->said.done == order->epoch)
                return false;
        return answer(step, order->begun ? PROGRAM__RESIZE__STEP__BEGUN : PROGRAM__RESIZE__STEP__REQUESTED, order->epoch,
                      order->requested, ret);
}

/* A change that rmd does not want any more was taken back: as many ranks are wanted as there
 * are. */
static bool receive_begin(struct parking *parking, const Program__Resize *step, Program__Resize *ret) {
        const Capsule__ResizeOrder *order = &parking->order;

        parking->said.listens = true;
        if (order->requested == 0 && step->epoch < order->epoch)
                return answer(step, PROGRAM__RESIZE__STEP__REQUESTED, order->epoch, order->active, ret);
        if (step->epoch == order->epoch && order->requested > 0)
                parking->said.begun = step->epoch;
        return (step->epoch != order->epoch || order->begun) && answer_change(parking, step, ret);
}

static bool receive_made(struct parking *parking, const Program__Resize *step, Program__Resize *ret) {
        const Capsule__ResizeOrder *order = &parking->order;

        if (step->epoch > order->epoch)
                return false;
        if (step->epoch == order->epoch && order->begun && parking->said.done != step->epoch) {
                parking->said.done = step->epoch;
                parking->said.ranks = step->ranks;
        }
        return answer(step, PROGRAM__RESIZE__STEP__RECEIVED, step->epoch, 0, ret);
}

/* Takes a word of rank 0, which speaks for the active ones. */
static bool receive_first(struct parking *parking, const Program__Resize *step, Program__Resize *ret) {
        switch (step->step) {
        case PROGRAM__RESIZE__STEP__ASK:
                parking->said.listens = true;
                return answer_change(parking, step, ret);
        case PROGRAM__RESIZE__STEP__BEGIN:
                return receive_begin(parking, step, ret);
        case PROGRAM__RESIZE__STEP__MADE:
                return receive_made(parking, step, ret);
        case PROGRAM__RESIZE__STEP__FINISH:
                parking->said.ending = true;
                return answer(step, PROGRAM__RESIZE__STEP__RECEIVED, step->epoch, 0, ret);
        default:
                return false;
        }
}

static bool receive_parked(Capsule__ParkedRank *rank, const Program__Resize *step, Program__Resize *ret) {
        rank->parked = true;
        rank->epoch = step->epoch;
        rank->answered = false;
        return answer(step, PROGRAM__RESIZE__STEP__RECEIVED, step->epoch, 0, ret);
}

bool parking_state_receive(struct parking *parking, const Program__Resize *step, Program__Resize *ret) {
        const Capsule__ResizeOrder *order = &parking->order;
        Capsule__ParkedRank *rank;

        if (step->rank < order->first || step->rank - order->first >= order->ranks)
                return false;
        if (step->rank == 0)
                return receive_first(parking, step, ret);
        rank = &parking->ranks[step->rank - order->first];
        if (step->step == PROGRAM__RESIZE__STEP__PARKED)
                return receive_parked(rank, step, ret);
        if (step->step == PROGRAM__RESIZE__STEP__AWAKE)
                rank->answered = true;
        return false;
}

/* ---- what follows ---- */

static bool is_parked(const Capsule__ParkedRank *rank) {
        return rank->parked && rank->epoch >= rank->wake_epoch;
}

static bool is_to_freeze(const Capsule__ResizeOrder *order) {
        return order->freeze && !order->end && order->ranks > 0;
}

static bool all_parked(const struct parking *parking) {
        for (uint32_t i = 0; i < parking->order.ranks; i++)
                if (!is_parked(&parking->ranks[i]))
                        return false;
        return true;
}

bool parking_state_is_quiet(const struct parking *parking) {
        return is_to_freeze(&parking->order) && all_parked(parking);
}

bool parking_state_is_awake(const struct parking *parking) {
        return is_to_freeze(&parking->order) && !all_parked(parking);
}

bool parking_state_set_awake(struct parking *parking, bool awake) {
        bool differs = parking->said.awake != awake;

        parking->said.awake = awake;
        return differs;
}

static bool report_rank(const struct parking *parking, uint32_t i, Program__Resize *ret) {
        const Capsule__ResizeOrder *order = &parking->order;
        const Capsule__ParkedRank *rank = &parking->ranks[i];
        const Program__Resize to = { .rank = order->first + i };
        bool called;

        if (to.rank == 0)
                return parking->said.listens && answer_change(parking, &to, ret);
        if (!rank->parked || rank->answered)
                return false;
        called = grows(order) && rank->wake_epoch == order->epoch && rank->epoch < order->epoch;
        if (order->end) /* also if it was called: rank 0 may have had its last step before it knew that it may go on */
                return (is_parked(rank) || called) && answer(&to, PROGRAM__RESIZE__STEP__END, order->epoch, 0, ret);
        return called && answer(&to, PROGRAM__RESIZE__STEP__WAKE, order->epoch, order->requested, ret);
}

bool parking_state_next(const struct parking *parking, size_t *at, Program__Resize *ret) {
        while (*at < parking->order.ranks)
                if (report_rank(parking, (uint32_t) (*at)++, ret))
                        return true;
        return false;
}

const Capsule__ResizeSaid *parking_state_reported(const struct parking *parking) {
        return &parking->said;
}

/* ---- to the other end ---- */

Capsule__Parking *parking_state_save(const struct parking *parking) {
        Capsule__Parking *saved_state;

        if (parking->order.ranks == 0)
                return NULL;
        saved_state = xcalloc(1, sizeof(*saved_state));
        capsule__parking__init(saved_state);
        saved_state->order = xcalloc(1, sizeof(*saved_state->order));
        *saved_state->order = parking->order;
        saved_state->said = xcalloc(1, sizeof(*saved_state->said));
        *saved_state->said = parking->said;
        saved_state->ranks = xcalloc(parking->order.ranks, sizeof(*saved_state->ranks)); /* NOLINT(bugprone-sizeof-expression) */
        for (uint32_t i = 0; i < parking->order.ranks; i++) {
                saved_state->ranks[i] = xcalloc(1, sizeof(**saved_state->ranks));
                *saved_state->ranks[i] = parking->ranks[i];
        }
        saved_state->n_ranks = parking->order.ranks;
        return saved_state;
}

void parking_state_load(struct parking *parking, const Capsule__Parking *saved_state) {
        if (!saved_state->order || !saved_state->said || saved_state->n_ranks != saved_state->order->ranks)
                return;
        parking_state_order(parking, saved_state->order);
        if (parking->order.ranks != saved_state->order->ranks) /* too many */
                return;
        parking->said = *saved_state->said;
        forget_unknown(&parking->said.base);
        for (uint32_t i = 0; i < parking->order.ranks; i++) {
                parking->ranks[i] = *saved_state->ranks[i];
                forget_unknown(&parking->ranks[i].base);
        }
}
