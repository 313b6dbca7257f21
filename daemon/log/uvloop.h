/* A libuv loop inside the libevent loop: runs when its descriptor or its timer says so, never by
 * polling. */
#ifndef RM_LOG_UVLOOP_H
#define RM_LOG_UVLOOP_H

#include <event2/event.h>
#include <uv.h>

struct uvloop;

/* 0 or negative errno. */
int uvloop_create(struct event_base *base, struct uvloop **ret);
uv_loop_t *uvloop_get(struct uvloop *loop);
/* After any call into a library that uses the loop, made from outside of it: its work is seen to
 * from the event loop. */
void uvloop_kick(struct uvloop *loop);
/* Run until no handle is left, then free. NULL ok. */
void uvloop_destroy(struct uvloop *loop);

#endif
