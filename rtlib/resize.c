#include "rtlib/resize.h"

#define NEVER UINT64_MAX

/* The word that is said in each phase, and how long its answer is waited for. */
static const struct {
        Door__Resize__Word word;
        uint64_t usec; /* 0: nothing */
} spoken[RESIZE_PHASES] = {
        [RESIZE_IDLE] = { DOOR__RESIZE__WORD__ASK, 1000000 },       [RESIZE_WANTED] = { DOOR__RESIZE__WORD__BEGIN, 100000 },
        [RESIZE_MADE] = { DOOR__RESIZE__WORD__MADE, 100000 },       [RESIZE_FINISHING] = { DOOR__RESIZE__WORD__FINISH, 100000 },
        [RESIZE_PARKING] = { DOOR__RESIZE__WORD__PARKED, 1000000 }, [RESIZE_WOKEN] = { DOOR__RESIZE__WORD__AWAKE, NEVER },
        [RESIZE_ENDED] = { DOOR__RESIZE__WORD__AWAKE, NEVER },
};

static void enter(struct resize *resize, enum resize_phase phase) {
        resize->phase = phase;
        resize->send_usec = spoken[phase].usec ? 0 : NEVER;
}

void resize_init(struct resize *resize, uint32_t rank, uint32_t ranks) {
        *resize = (struct resize) { .rank = rank, .ranks = ranks };
        enter(resize, ranks == 0 ? RESIZE_FIXED : rank == 0 ? RESIZE_IDLE : rank < ranks ? RESIZE_MEMBER : RESIZE_PARKING);
}

/* An epoch that is not newer is that of a change that was made, or that a restart has taken
 * back. */
static void hear_number(struct resize *resize, const Door__Resize *notice, enum resize_phase phase) {
        bool known = resize->phase == phase && resize->next.epoch == notice->epoch;

        if (notice->epoch <= resize->epoch || notice->ranks == 0 || known)
                return;
        resize->next = (struct rmrt_change) { .epoch = notice->epoch, .before = resize->ranks, .now = notice->ranks };
        enter(resize, phase);
}

static void hear_answer(struct resize *resize, uint64_t epoch) {
        if (resize->phase == RESIZE_FINISHING)
                enter(resize, RESIZE_FINISHED);
        else if (resize->phase == RESIZE_MADE && epoch == resize->epoch)
                enter(resize, RESIZE_IDLE);
        else if (resize->phase == RESIZE_PARKING && epoch == resize->epoch)
                enter(resize, RESIZE_PARKED);
}

void resize_hear(struct resize *resize, const Door__Resize *notice) {
        bool asks = resize->phase == RESIZE_IDLE || resize->phase == RESIZE_WANTED;
        bool parked = resize->phase == RESIZE_PARKING || resize->phase == RESIZE_PARKED;

        if (notice->word == DOOR__RESIZE__WORD__HEARD)
                hear_answer(resize, notice->epoch);
        else if (asks && notice->word == DOOR__RESIZE__WORD__WANTED) /* as many as there are: it was taken back */
                hear_number(resize, notice, notice->ranks == resize->ranks ? RESIZE_IDLE : RESIZE_WANTED);
        else if (asks && notice->word == DOOR__RESIZE__WORD__BEGUN)
                hear_number(resize, notice, RESIZE_BEGUN);
        else if (parked && notice->word == DOOR__RESIZE__WORD__WAKE && notice->ranks > resize->rank)
                hear_number(resize, notice, RESIZE_WOKEN);
        else if ((parked || resize->phase == RESIZE_WOKEN) && notice->word == DOOR__RESIZE__WORD__END)
                enter(resize, RESIZE_ENDED);
}

bool resize_say(struct resize *resize, uint64_t now_usec, Door__Resize *ret) {
        bool of_next = resize->phase == RESIZE_WANTED || resize->phase == RESIZE_WOKEN;

        if (now_usec < resize->send_usec)
                return false;
        resize->send_usec = spoken[resize->phase].usec == NEVER ? NEVER : now_usec + spoken[resize->phase].usec;
        *ret = (Door__Resize) DOOR__RESIZE__INIT;
        ret->word = spoken[resize->phase].word;
        ret->rank = resize->rank;
        ret->epoch = of_next ? resize->next.epoch : resize->epoch;
        ret->ranks = of_next ? resize->next.now : resize->ranks;
        return true;
}

void resize_made(struct resize *resize, const struct rmrt_change *change) {
        resize->epoch = change->epoch;
        resize->ranks = change->now;
        enter(resize, resize->rank == 0 ? RESIZE_MADE : RESIZE_MEMBER);
}

void resize_park(struct resize *resize) {
        enter(resize, RESIZE_PARKING);
}

void resize_finish(struct resize *resize) {
        if (resize->phase != RESIZE_FIXED)
                enter(resize, resize->rank == 0 ? RESIZE_FINISHING : RESIZE_FINISHED);
}
