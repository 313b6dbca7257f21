/* What those who send much call meanwhile. */
#ifndef RM_MOVER_HOOKS_H
#define RM_MOVER_HOOKS_H

#include "common/error.h"
#include "daemon/mover/rounds.h"

struct mover_hooks {
        void *ctx;
        /* Now and then; nonzero ends it with this value. */
        int (*poll)(void *ctx, const char *what, struct rm_error *err);
        /* At the end of a round: what has been collected should go out. */
        int (*idle)(void *ctx, struct rm_error *err);
        struct rounds_deadline *deadline; /* of rounds; NULL: none */
};

#endif
