#include "daemon/log/uvloop.h"

#include <errno.h>
#include <stdbool.h>

#include "common/timer.h"
#include "common/util.h"

struct uvloop {
        uv_loop_t uv;
        struct event *readable;
        struct event *timer;
};

static void on_event(evutil_socket_t fd, short what, void *userdata) {
        struct uvloop *loop = userdata;
        int timeout_msec;

        (void) uv_run(&loop->uv, UV_RUN_NOWAIT);
        /* libuv tells its descriptor of new watchers only while it runs; 0 says that it wants to
         * run again for that. */
        timeout_msec = uv_backend_timeout(&loop->uv);
        if (timeout_msec < 0) {
                (void) evtimer_del(loop->timer);
                return;
        }
        timer_arm(loop->timer, (uint64_t) timeout_msec * 1000U);
}

int uvloop_create(struct event_base *base, struct uvloop **ret) {
        struct uvloop *loop = xcalloc(1, sizeof(*loop));
        int r = uv_loop_init(&loop->uv);

        if (r < 0) {
                free(loop);
                return r; /* libuv's codes are negative errno */
        }
        loop->readable = event_new(base, uv_backend_fd(&loop->uv), EV_READ | EV_PERSIST, on_event, loop);
        loop->timer = evtimer_new(base, on_event, loop);
        if (!loop->readable || !loop->timer || event_add(loop->readable, NULL) < 0) {
                uvloop_destroy(loop);
                return -ENOMEM;
        }
        *ret = loop;
        return 0;
}

uv_loop_t *uvloop_get(struct uvloop *loop) {
        return &loop->uv;
}

void uvloop_kick(struct uvloop *loop) {
        event_active(loop->timer, EV_TIMEOUT, 0);
}

void uvloop_destroy(struct uvloop *loop) {
        if (!loop)
                return;
        if (loop->readable)
                event_free(loop->readable);
        if (loop->timer)
                event_free(loop->timer);
        (void) uv_run(&loop->uv, UV_RUN_DEFAULT);
        (void) uv_loop_close(&loop->uv);
        free(loop);
}
