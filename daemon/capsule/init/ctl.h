/* The control socket: one connection at a time, to rmd. */
#ifndef RM_DAEMON_CAPSULE_INIT_CTL_H
#define RM_DAEMON_CAPSULE_INIT_CTL_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/capsule/flow.h"
#include "daemon/capsule/init/core.h"
#include "proto/capsule.pb-c.h"

struct init;
struct ctl;

struct ctl_handlers {
        /* Takes over `request`. */
        void (*request)(struct init *init, Capsule__Request *request, struct ticket ticket);
        /* There is a new connection. */
        void (*connected)(struct init *init);
        /* The messages that waited to be sent were all sent. */
        void (*drained)(struct init *init);
};

int ctl_create(struct init *init, const struct ctl_handlers *handlers, struct ctl **ret);
/* Sends an event if somebody is there. */
void ctl_send(struct ctl *ctl, const ProtobufCMessage *body);
/* `text` may be NULL. */
void ctl_reply(struct ctl *ctl, struct ticket ticket, int error, const char *text);
void ctl_reply_saved_state(struct ctl *ctl, struct ticket ticket, Capsule__SavedState *saved_state);
void ctl_reply_flows(struct ctl *ctl, struct ticket ticket, const struct capsule_flow *flows, size_t n);
void ctl_reply_rank_ends(struct ctl *ctl, struct ticket ticket, Capsule__RankEnds *ends);
/* Bytes waiting to be sent; 0 when nobody is there. */
size_t ctl_backlog(const struct ctl *ctl);

#endif
