/* Messages of a node to itself: delivered from the loop, in order, as those of other nodes are. */
#ifndef RM_CLUSTER_LOOPBACK_H
#define RM_CLUSTER_LOOPBACK_H

#include <event2/event.h>

#include "proto/peer.pb-c.h"

struct loopback;

typedef void (*loopback_fn)(void *userdata, const Rm__PeerMessage *message);

struct loopback *loopback_create(struct event_base *base, loopback_fn deliver, void *userdata);
void loopback_destroy(struct loopback *loopback); /* what waits is dropped; NULL ok */
/* The message is copied. */
void loopback_send(struct loopback *loopback, const Rm__PeerMessage *message);

#endif
