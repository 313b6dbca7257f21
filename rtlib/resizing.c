#include "rtlib/resizing.h"

#include <errno.h>
#include <stdbool.h>
#include <time.h>

#include "rm/rmrt.h"
#include "rtlib/channel.h"
#include "rtlib/notices.h"
#include "rtlib/resize_state.h"

#define FINISH_USEC UINT64_C(10000000)
#define SCAN_USEC UINT64_C(1000000) /* another thread may have taken what came */
#define CALL_USEC UINT64_C(1000)

/* Used by one thread at a time, as rm/rmrt_resize.h says; resizing_receive() comes from there, or
 * while it is not used. */
static struct {
        struct resize state;
        bool begun; /* the program has had its first communicator */
} resizing;

static uint64_t now_usec(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * 1000000 + (uint64_t) t.tv_nsec / 1000;
}

void resizing_init(uint32_t rank, uint32_t ranks) {
        resize_state_init(&resizing.state, rank, ranks);
}

void resizing_receive(const Program__Resize *notice) {
        resize_state_receive(&resizing.state, notice);
}

static void say(void) {
        Program__Resize resize;
        Program__Request request = PROGRAM__REQUEST__INIT;

        if (!resize_state_send(&resizing.state, now_usec(), &resize))
                return;
        request.body_case = PROGRAM__REQUEST__BODY_RESIZE;
        request.resize = &resize;
        channel_send(&request);
}

bool rmrt_is_resizable(void) {
        return rmrt_is_managed() && resizing.state.phase != RESIZE_FIXED;
}

static bool waits(void) {
        return resizing.state.phase == RESIZE_PARKING || resizing.state.phase == RESIZE_PARKED;
}

/* Until it is woken, or the program ends. */
static int wait_parked(struct rmrt_change *ret) {
        while (waits()) {
                int r = channel_listen(resizing.state.rank);

                if (r < 0)
                        return r;
                say();
                channel_wait(SCAN_USEC);
                notices_take(resizing.state.rank);
        }
        say();
        if (resizing.state.phase != RESIZE_WOKEN)
                return 0;
        *ret = resizing.state.next;
        return 1;
}

int rmrt_resize_wait(struct rmrt_change *ret) {
        struct resize *state = &resizing.state;
        bool first = !resizing.begun;

        resizing.begun = true;
        *ret = (struct rmrt_change) { .now = state->ranks };
        if (first && !waits())
                return 1;
        if (state->phase == RESIZE_FIXED || (!first && state->rank < state->ranks))
                return -EINVAL; /* it is one of the active ones */
        if (state->phase == RESIZE_MEMBER)
                resize_state_park(state);
        return wait_parked(ret);
}

bool rmrt_resize_is_on(void) {
        channel_wait(CALL_USEC);
        notices_take(resizing.state.rank);
        say();
        return resizing.state.phase == RESIZE_WOKEN;
}

bool rmrt_resize_poll(struct rmrt_change *ret) {
        if (!rmrt_is_resizable() || channel_listen(resizing.state.rank) < 0)
                return false;
        notices_take(resizing.state.rank);
        say();
        if (resizing.state.phase != RESIZE_BEGUN)
                return false;
        *ret = resizing.state.next;
        return true;
}

void rmrt_resize_made(const struct rmrt_change *change) {
        if (change->epoch > 0) /* at the beginning there is none */
                resize_state_made(&resizing.state, change);
}

void resizing_finish(void) {
        struct resize *state = &resizing.state;
        uint64_t end = now_usec() + FINISH_USEC;

        resize_state_finish(state);
        while (state->phase == RESIZE_FINISHING && now_usec() < end && channel_listen(state->rank) == 0) {
                say();
                channel_wait(SCAN_USEC / 20);
                notices_take(resizing.state.rank);
        }
}
