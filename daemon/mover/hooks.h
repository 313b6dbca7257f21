/* Hooks are called meanwhile by code that sends much. */
#ifndef RM_MOVER_HOOKS_H
#define RM_MOVER_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/mover/rounds.h"

struct mover_hooks {
        void *ctx;
        /* Now and then; nonzero ends it with this value. */
        int (*poll)(void *ctx, const char *what, struct rm_error *err);
        /* Called at the end of a round: the collected data should be sent. */
        int (*idle)(void *ctx, struct rm_error *err);
        /* The receiver goes on with what it has of that process, from the stream before. NULL ok,
         * if there was none. */
        int (*continues)(void *ctx, uint32_t inner_pid, struct rm_error *err);
        struct rounds_deadline *deadline; /* of rounds; NULL: none */
        bool sums; /* for tests: the receiver compares what it has with what is read once more */
        unsigned rounds_max;              /* 0: as many as gain something */
};

#endif
