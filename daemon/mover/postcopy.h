/* Pages that come when all else of the image has come, and the group may run at its destination
 * already: the sender reads them from the frozen processes, which are first waited for first, and
 * the receiver passes them on to the uffd handler under the capsule's PID 1. From here on both go
 * on without rmd: the group needs them. */
#ifndef RM_MOVER_POSTCOPY_H
#define RM_MOVER_POSTCOPY_H

#include "daemon/mover/link.h"
#include "daemon/mover/pages.h"

struct postcopy_figures {
        uint64_t bytes;
        uint64_t requested; /* pages that were waited for */
        uint64_t usec;
};

/* Until all is sent, and the receiver has hung up. Every error is the end of the group at the
 * destination, if it has not failed there yet. */
int postcopy_send(struct control *c, struct link *link, struct pages *pages, struct postcopy_figures *ret, struct rm_error *err);

/* Where the uffd handler is to connect to: LATER_SOCKET in that directory. */
int postcopy_listen(const char *images_dir, int *ret_fd, struct rm_error *err);
/* Serves until the uffd handler hangs up: it has all pages, or has died. -ETIMEDOUT: there was
 * none. Owns `listen_fd`. */
int postcopy_receive(struct control *c, struct link *link, int listen_fd, struct rm_error *err);

#endif
