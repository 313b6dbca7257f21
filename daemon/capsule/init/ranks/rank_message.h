/* A message of a rank at the program socket: decoded once, and then of one kind, which says who
 * takes it. Pure. The bytes are the user's: any. */
#ifndef RM_DAEMON_CAPSULE_INIT_RANKS_RANK_MESSAGE_H
#define RM_DAEMON_CAPSULE_INIT_RANKS_RANK_MESSAGE_H

#include <stddef.h>

#include "proto/program.pb-c.h"

enum rank_message_kind {
        RANK_MESSAGE_NONE, /* it is none of librmrt's, or of a newer one */
        RANK_MESSAGE_STATE, /* for ranks_take() */
        RANK_MESSAGE_RESIZE, /* for park_receive() */
        RANK_MESSAGE_LOSS, /* for rank_watch_receive() */
};

/* Free `*ret` with program__request__free_unpacked(); it is NULL for RANK_MESSAGE_NONE. */
enum rank_message_kind rank_message_read(const void *data, size_t size, Program__Request **ret);

#endif
