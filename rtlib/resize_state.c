#include "rtlib/resize_state.h"

#define NEVER UINT64_MAX

/* The word that is said in each phase, and how long its answer is waited for. */
static const struct {
        Program__Resize__Step step;
        uint64_t usec; /* 0: nothing */
} spoken[RESIZE_PHASES] = {
        [RESIZE_IDLE] = { PROGRAM__RESIZE__STEP__ASK, 1000000 },
        [RESIZE_REQUESTED] = { PROGRAM__RESIZE__STEP__BEGIN, 100000 },
        [RESIZE_MADE] = { PROGRAM__RESIZE__STEP__MADE, 100000 },
        [RESIZE_FINISHING] = { PROGRAM__RESIZE__STEP__FINISH, 100000 },
        [RESIZE_PARKING] = { PROGRAM__RESIZE__STEP__PARKED, 1000000 },
        [RESIZE_WOKEN] = { PROGRAM__RESIZE__STEP__AWAKE, NEVER },
        [RESIZE_ENDED] = { PROGRAM__RESIZE__STEP__AWAKE, NEVER },
};

static void enter(struct resize *resize, enum resize_phase phase) {
        resize->phase = phase;
        resize->send_usec = spoken[phase].usec ? 0 : NEVER;
}

void resize_state_init(struct resize *resize, uint32_t rank, uint32_t ranks) {
        *resize = (struct resize) { .rank = rank, .ranks = ranks };
        enter(resize, ranks == 0 ? RESIZE_FIXED : rank == 0 ? RESIZE_IDLE : rank < ranks ? RESIZE_MEMBER : RESIZE_PARKING);
}

/* An epoch that is not newer is that of a change that was made, or that a restart has taken
 * back. */
static void receive_number(struct resize *resize, const Program__Resize *notice, enum resize_phase phase) {
        bool known = resize->phase == phase && resize->next.epoch == notice->epoch;

        if (notice->epoch <= resize->epoch || notice->ranks == 0 || known)
                return;
        resize->next = (struct rmrt_change) { .epoch = notice->epoch, .before = resize->ranks, .now = notice->ranks };
        enter(resize, phase);
}

static void receive_answer(struct resize *resize, uint64_t epoch) {
        if (resize->phase == RESIZE_FINISHING)
                enter(resize, RESIZE_FINISHED);
        else if (resize->phase == RESIZE_MADE && epoch == resize->epoch)
                enter(resize, RESIZE_IDLE);
        else if (resize->phase == RESIZE_PARKING && epoch == resize->epoch)
                enter(resize, RESIZE_PARKED);
}

void resize_state_receive(struct resize *resize, const Program__Resize *notice) {
        bool asks = resize->phase == RESIZE_IDLE || resize->phase == RESIZE_REQUESTED;
        bool parked = resize->phase == RESIZE_PARKING || resize->phase == RESIZE_PARKED;

        if (notice->step == PROGRAM__RESIZE__STEP__RECEIVED)
                receive_answer(resize, notice->epoch);
        else if (asks && notice->step == PROGRAM__RESIZE__STEP__REQUESTED) /* as many as there are: it was taken back */
                receive_number(resize, notice, notice->ranks == resize->ranks ? RESIZE_IDLE : RESIZE_REQUESTED);
        else if (asks && notice->step == PROGRAM__RESIZE__STEP__BEGUN)
                receive_number(resize, notice, RESIZE_BEGUN);
        else if (parked && notice->step == PROGRAM__RESIZE__STEP__WAKE && notice->ranks > resize->rank)
                receive_number(resize, notice, RESIZE_WOKEN);
        else if ((parked || resize->phase == RESIZE_WOKEN) && notice->step == PROGRAM__RESIZE__STEP__END)
                enter(resize, RESIZE_ENDED);
}

bool resize_state_send(struct resize *resize, uint64_t now_usec, Program__Resize *ret) {
        bool of_next = resize->phase == RESIZE_REQUESTED || resize->phase == RESIZE_WOKEN;

        if (now_usec < resize->send_usec)
                return false;
        resize->send_usec = spoken[resize->phase].usec == NEVER ? NEVER : now_usec + spoken[resize->phase].usec;
        *ret = (Program__Resize) PROGRAM__RESIZE__INIT;
        ret->step = spoken[resize->phase].step;
        ret->rank = resize->rank;
        ret->epoch = of_next ? resize->next.epoch : resize->epoch;
        ret->ranks = of_next ? resize->next.now : resize->ranks;
        return true;
}

void resize_state_made(struct resize *resize, const struct rmrt_change *change) {
        resize->epoch = change->epoch;
        resize->ranks = change->now;
        enter(resize, resize->rank == 0 ? RESIZE_MADE : RESIZE_MEMBER);
}

void resize_state_park(struct resize *resize) {
        enter(resize, RESIZE_PARKING);
}

void resize_state_finish(struct resize *resize) {
        if (resize->phase != RESIZE_FIXED)
                enter(resize, resize->rank == 0 ? RESIZE_FINISHING : RESIZE_FINISHED);
}
