/* Calls that end after their caller may have gone: operations of a capsule, proposals to the log.
 *
 * A caller has a number among those of its list. A call keeps the number and not the caller, and
 * finds the caller by it when it is done; once the caller has ended, or has taken another number,
 * it finds none. */
#ifndef RM_COMMON_CALLS_H
#define RM_COMMON_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct caller {
        struct calls *calls;
        uint64_t number;
        void *owner; /* borrowed: what call_done() returns */
        LIST_ENTRY(caller) entry;
};

/* All callers of one kind; zero-initialised. It lives at least as long as any of them. */
struct calls {
        uint64_t last_number;
        LIST_HEAD(, caller) callers;
};

void caller_init(struct caller *caller, struct calls *calls, void *owner);
/* Calls made so far have no caller any more. */
void caller_renew(struct caller *caller);
/* Calls made so far have no caller any more, and none can be made. NULL ok; nothing happens to a
 * caller that was never initialised. */
void caller_finish(struct caller *caller);

struct call;
/* Freed by call_done(), which is called exactly once for it if call_begun() has returned true. */
struct call *call_create(const struct caller *caller);
/* The operation has returned `result`: 0, or a negative errno; then it will not end, and the call
 * is freed. Returns whether it goes on. */
bool call_begun(struct call *call, int result);
/* Returns the owner of the caller, or NULL. `error` -ECANCELED: rmd ends, or the capsule goes, and
 * the list of callers may be gone as well; NULL then. */
void *call_done(struct call *call, int error);

#endif
