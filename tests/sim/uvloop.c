/* This file is in place of daemon/log/uvloop.c: nothing waits in libuv, for raft's disk is a
 * virtual one (raftio.c), and node.c calls the callbacks that raft has completed. */
#include "daemon/log/uvloop.h"

#include <stdlib.h>

#include "common/util.h"

struct uvloop {
        uv_loop_t uv; /* its time is set, and not read */
};

int uvloop_create(struct event_base *base, struct uvloop **ret) {
        *ret = xcalloc(1, sizeof(**ret));
        return 0;
}

uv_loop_t *uvloop_get(struct uvloop *loop) {
        return &loop->uv;
}

void uvloop_kick(struct uvloop *loop) {
}

void uvloop_destroy(struct uvloop *loop) {
        free(loop);
}
