/* Starts the payload's root: the user's program, with the user's rights. */
#ifndef RM_DAEMON_CAPSULE_INIT_PAYLOAD_H
#define RM_DAEMON_CAPSULE_INIT_PAYLOAD_H

#include "daemon/capsule/init/init.h"

struct rm_error;

/* Returns when the program runs, with init->payload_pid set, or tells why it does not. */
int payload_start(struct init *init, const Capsule__Run *run, struct rm_error *error);

#endif
