/* The quota bounds how much output is kept on the node's disk: so much by each user, and never the
 * last of what the log lives on too. */
#ifndef RM_DAEMON_CAPSULE_INIT_QUOTA_H
#define RM_DAEMON_CAPSULE_INIT_QUOTA_H

#include <stdint.h>
#include <sys/types.h>

#include "proto/capsule.pb-c.h"

/*
 * Every capsule looks for itself, since rmd may be away: its spool's directory is beside those of
 * all others, and their group is the number of the user they belong to (with mode 0700, which gives
 * that group nothing). Capsules that look at once may each take a slice too much.
 */
enum { QUOTA_SLICE_BYTES = 4 * 1024 * 1024 };

/* Says whose the spool is. 0 or negative errno. */
int quota_mark(int spool_fd, uid_t uid);

/* Returns how many bytes may be kept before the next look, at most a slice. 0: none, for `ret_why`.
 * `unread`: what the stream has that its reader has not confirmed; a stream that is read as it is
 * written is not stopped by the owner's other ones, which could then wait for each other. */
uint64_t quota_scan(const Capsule__Spec *spec, int spool_fd, uint64_t unread, Capsule__Stall *ret_why);

#endif
