/* The control socket: one connection at a time, to rmd. */
#ifndef RM_DAEMON_CAPSULE_INIT_CTL_H
#define RM_DAEMON_CAPSULE_INIT_CTL_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/capsule/flow.h"
#include "proto/capsule.pb-c.h"

struct init;
struct ctl;

/* Names the request an answer belongs to. Answers to a connection that is gone are dropped. */
struct ticket {
        uint64_t connection;
        uint64_t seq;
};

int ctl_create(struct init *init, struct ctl **ret);
/* Sends an event if somebody is there. */
void ctl_send(struct ctl *ctl, const Capsule__Event *event);
/* `text` may be NULL. */
void ctl_reply(struct ctl *ctl, struct ticket ticket, int error, const char *text);
void ctl_reply_carry(struct ctl *ctl, struct ticket ticket, Capsule__Carry *carry);
void ctl_reply_flows(struct ctl *ctl, struct ticket ticket, const struct capsule_flow *flows, size_t n);
void ctl_reply_rank_ends(struct ctl *ctl, struct ticket ticket, Capsule__RankEnds *ends);
/* Bytes waiting to be sent; 0 when nobody is there. */
size_t ctl_backlog(const struct ctl *ctl);

#endif
