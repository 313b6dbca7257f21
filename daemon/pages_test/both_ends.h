/* A move of one small process from and to the same place, with everything that a move whose private
 * memory travels apart needs: tracking, the library in CRIU's dump, and a lazy restore. */
#ifndef RM_DAEMON_PAGES_TEST_BOTH_ENDS_H
#define RM_DAEMON_PAGES_TEST_BOTH_ENDS_H

#include "common/error.h"

/* There is one on each node, and neither CRIU nor its libraries lie there. */
#define OWN_DIR "/dev/shm"

struct both_ends {
        const char *criu; /* path */
        const char *library; /* path */
        const char *kdat; /* content of CRIU's file of that name; NULL: none */
        size_t kdat_bytes;
        const char **stage; /* what is being done, for the one that waits */
};

/* Tries both ends as PID 1 in namespaces of its own, on whose OWN_DIR it may write. */
int both_ends_try(const struct both_ends *ends, struct rm_error *error);

#endif
