/* What verbs about checkpoints have in common. */
#ifndef RM_LAUNCHER_RMCTL_CHECKPOINT_H
#define RM_LAUNCHER_RMCTL_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/rmctl/verb.h"

/* The first argument: "7.2"; `any`: "7" is good, too, and the number 0. */
int checkpoint_read_name(struct call *call, bool any, uint64_t *ret_job, uint64_t *ret_number);
/* A line on a terminal that is written over; "" takes it away. */
void checkpoint_progress(const char *text);

#endif
