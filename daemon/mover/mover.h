/* The two roles of rm-mover. Both hear their setup from rmd first, report to rmd, and return 0 when all went well, or a negative
 * errno that rmd has been told of. */
#ifndef RM_MOVER_MOVER_H
#define RM_MOVER_MOVER_H

#include "daemon/mover/control.h"

#define MOVER_TIMEOUT_MSEC 10000U
#define MOVER_ACCEPT_TIMEOUT_MSEC 60000U
#define MOVER_TOKEN_MIN_BYTES 16U
#define MOVER_TOKEN_MAX_BYTES 64U

int mover_send(struct control *control);
int mover_receive(struct control *control);

#endif
