#include "daemon/capsule/init/ranks/parking.h"

#include <stdlib.h>

#include "common/util.h"
#include "daemon/capsule/init/ranks/ranks.h"

struct parking {
        Capsule__ResizeOrder order; /* `ranks` 0: there is none */
        Capsule__ResizeSaid said;
        Capsule__ParkedRank *ranks; /* those of the order, from its `first` on */
};

struct parking *parking_create(void) {
        struct parking *parking = xcalloc(1, sizeof(*parking));

        capsule__resize_order__init(&parking->order);
        capsule__resize_said__init(&parking->said);
        return parking;
}

void parking_destroy(struct parking *parking) {
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
        return order->begun && order->wanted >= order->active;
}

/* A change that has begun needs them. */
static void call_up(struct parking *parking) {
        const Capsule__ResizeOrder *order = &parking->order;

        for (uint32_t i = 0; grows(order) && i < order->ranks; i++) {
                Capsule__ParkedRank *rank = &parking->ranks[i];

                if (order->first + i >= order->wanted || rank->wake_epoch >= order->epoch)
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

void parking_order(struct parking *parking, const Capsule__ResizeOrder *order) {
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

static bool answer(const Door__Resize *word, Door__Resize__Word with, uint64_t epoch, uint32_t ranks, Door__Resize *ret) {
        door__resize__init(ret);
        ret->word = with;
        ret->rank = word->rank;
        ret->epoch = epoch;
        ret->ranks = ranks;
        return true;
}

/* Says what rank 0 is told of the change under way, if there is one. */
static bool answer_change(const struct parking *parking, const Door__Resize *word, Door__Resize *ret) {
        const Capsule__ResizeOrder *order = &parking->order;

        if (order->wanted == 0 || parking->said.done == order->epoch)
                return false;
        return answer(word, order->begun ? DOOR__RESIZE__WORD__BEGUN : DOOR__RESIZE__WORD__WANTED, order->epoch, order->wanted,
                      ret);
}

/* A change that rmd does not want any more was taken back: as many ranks are wanted as there
 * are. */
static bool hear_begin(struct parking *parking, const Door__Resize *word, Door__Resize *ret) {
        const Capsule__ResizeOrder *order = &parking->order;

        parking->said.listens = true;
        if (order->wanted == 0 && word->epoch < order->epoch)
                return answer(word, DOOR__RESIZE__WORD__WANTED, order->epoch, order->active, ret);
        if (word->epoch == order->epoch && order->wanted > 0)
                parking->said.begun = word->epoch;
        return (word->epoch != order->epoch || order->begun) && answer_change(parking, word, ret);
}

static bool hear_made(struct parking *parking, const Door__Resize *word, Door__Resize *ret) {
        const Capsule__ResizeOrder *order = &parking->order;

        if (word->epoch > order->epoch)
                return false;
        if (word->epoch == order->epoch && order->begun && parking->said.done != word->epoch) {
                parking->said.done = word->epoch;
                parking->said.ranks = word->ranks;
        }
        return answer(word, DOOR__RESIZE__WORD__HEARD, word->epoch, 0, ret);
}

/* Takes a word of rank 0, which speaks for the active ones. */
static bool hear_first(struct parking *parking, const Door__Resize *word, Door__Resize *ret) {
        switch (word->word) {
        case DOOR__RESIZE__WORD__ASK:
                parking->said.listens = true;
                return answer_change(parking, word, ret);
        case DOOR__RESIZE__WORD__BEGIN:
                return hear_begin(parking, word, ret);
        case DOOR__RESIZE__WORD__MADE:
                return hear_made(parking, word, ret);
        case DOOR__RESIZE__WORD__FINISH:
                parking->said.ending = true;
                return answer(word, DOOR__RESIZE__WORD__HEARD, word->epoch, 0, ret);
        default:
                return false;
        }
}

static bool hear_parked(Capsule__ParkedRank *rank, const Door__Resize *word, Door__Resize *ret) {
        rank->parked = true;
        rank->epoch = word->epoch;
        rank->answered = false;
        return answer(word, DOOR__RESIZE__WORD__HEARD, word->epoch, 0, ret);
}

bool parking_hear(struct parking *parking, const Door__Resize *word, Door__Resize *ret) {
        const Capsule__ResizeOrder *order = &parking->order;
        Capsule__ParkedRank *rank;

        if (word->rank < order->first || word->rank - order->first >= order->ranks)
                return false;
        if (word->rank == 0)
                return hear_first(parking, word, ret);
        rank = &parking->ranks[word->rank - order->first];
        if (word->word == DOOR__RESIZE__WORD__PARKED)
                return hear_parked(rank, word, ret);
        if (word->word == DOOR__RESIZE__WORD__AWAKE)
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

bool parking_is_quiet(const struct parking *parking) {
        return is_to_freeze(&parking->order) && all_parked(parking);
}

bool parking_is_awake(const struct parking *parking) {
        return is_to_freeze(&parking->order) && !all_parked(parking);
}

bool parking_set_awake(struct parking *parking, bool awake) {
        bool differs = parking->said.awake != awake;

        parking->said.awake = awake;
        return differs;
}

static bool tell_rank(const struct parking *parking, uint32_t i, Door__Resize *ret) {
        const Capsule__ResizeOrder *order = &parking->order;
        const Capsule__ParkedRank *rank = &parking->ranks[i];
        const Door__Resize to = { .rank = order->first + i };
        bool called;

        if (to.rank == 0)
                return parking->said.listens && answer_change(parking, &to, ret);
        if (!rank->parked || rank->answered)
                return false;
        called = grows(order) && rank->wake_epoch == order->epoch && rank->epoch < order->epoch;
        if (order->end) /* also if it was called: rank 0 may have had its last step before it knew that it may go on */
                return (is_parked(rank) || called) && answer(&to, DOOR__RESIZE__WORD__END, order->epoch, 0, ret);
        return called && answer(&to, DOOR__RESIZE__WORD__WAKE, order->epoch, order->wanted, ret);
}

bool parking_next(const struct parking *parking, size_t *at, Door__Resize *ret) {
        while (*at < parking->order.ranks)
                if (tell_rank(parking, (uint32_t) (*at)++, ret))
                        return true;
        return false;
}

const Capsule__ResizeSaid *parking_said(const struct parking *parking) {
        return &parking->said;
}

/* ---- to the other end ---- */

Capsule__Parking *parking_carry(const struct parking *parking) {
        Capsule__Parking *carry;

        if (parking->order.ranks == 0)
                return NULL;
        carry = xcalloc(1, sizeof(*carry));
        capsule__parking__init(carry);
        carry->order = xcalloc(1, sizeof(*carry->order));
        *carry->order = parking->order;
        carry->said = xcalloc(1, sizeof(*carry->said));
        *carry->said = parking->said;
        carry->ranks = xcalloc(parking->order.ranks, sizeof(*carry->ranks)); /* NOLINT(bugprone-sizeof-expression) */
        for (uint32_t i = 0; i < parking->order.ranks; i++) {
                carry->ranks[i] = xcalloc(1, sizeof(**carry->ranks));
                *carry->ranks[i] = parking->ranks[i];
        }
        carry->n_ranks = parking->order.ranks;
        return carry;
}

void parking_set_carry(struct parking *parking, const Capsule__Parking *carry) {
        if (!carry->order || !carry->said || carry->n_ranks != carry->order->ranks)
                return;
        parking_order(parking, carry->order);
        if (parking->order.ranks != carry->order->ranks) /* too many */
                return;
        parking->said = *carry->said;
        forget_unknown(&parking->said.base);
        for (uint32_t i = 0; i < parking->order.ranks; i++) {
                parking->ranks[i] = *carry->ranks[i];
                forget_unknown(&parking->ranks[i].base);
        }
}
