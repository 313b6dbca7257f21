/* System V objects of the capsule's IPC namespace: CRIU leaves them out, as it runs in the same
 * one. Semaphores and message queues are carried; a capsule with shared memory, POSIX message
 * queues, or more than is carried is not moved. */
#ifndef RM_DAEMON_CAPSULE_INIT_VERIFY_SYSV_H
#define RM_DAEMON_CAPSULE_INIT_VERIFY_SYSV_H

#include <stdbool.h>

#include "daemon/capsule/init/verify/blocker.h"
#include "proto/capsule.pb-c.h"

struct rm_error;

/* Bounds of what is carried: both ends obey them. Bytes are those of all messages together. */
enum { SYSV_OBJECTS_MAX = 256, SYSV_SEMAPHORES_MAX = 4096, SYSV_MESSAGES_MAX = 1024, SYSV_TEXT_MAX_BYTES = 32768 };

bool sysv_semaphores_exist(void);
/* Finds what of the namespace keeps it from being moved; kind BLOCKER_NONE: nothing. */
void sysv_find_blocker(struct blocker *ret);

/* Reads all objects, malloc'ed; NULL when there are none, or more than is carried (then
 * sysv_find_blocker() says so). They must not change meanwhile, so: frozen. */
Capsule__Sysv *sysv_read(void);
/* Makes them in a namespace that has none. NULL ok. -EBADMSG: beyond the bounds. Waits for a
 * child. */
int sysv_make(const Capsule__Sysv *sysv, struct rm_error *error);

#endif
