/* Carries out what rmd asks for. */
#ifndef RM_DAEMON_CAPSULE_INIT_OPS_H
#define RM_DAEMON_CAPSULE_INIT_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/capsule/init/core.h"
#include "proto/capsule.pb-c.h"

struct init;
struct ops;

int ops_create(struct init *init, struct ops **ret);
/* Takes over `request`. */
void ops_handle(struct ops *ops, Capsule__Request *request, struct ticket ticket);
/* A new connection learns the state and everything that waits for it. */
void ops_resync(struct ops *ops);

/* Tells rmd the status, which has changed. */
void ops_report(struct ops *ops);
/* The payload's group has changed its state. */
void ops_check_frozen(struct ops *ops);
/* The payload's root is gone. */
void ops_payload_exited(struct ops *ops, int wait_status);
/* Time (now_usec) at which ops_timeout wants to be called; UINT64_MAX: not. */
uint64_t ops_deadline(const struct ops *ops);
void ops_timeout(struct ops *ops);

#endif
