/* Is the owner of a job still the same person as when it was submitted? What was saved runs as that
 * uid and with those groups, however long ago that was; a restart gives a user no more rights than
 * a login now. Pure: what the user data base says today is given. */
#ifndef RM_STATE_OWNER_H
#define RM_STATE_OWNER_H

#include <stddef.h>
#include <sys/types.h>

#include "common/error.h"
#include "proto/state.pb-c.h"

/* Borrowed. */
struct owner_today {
        const char *name; /* of the job's uid; the uid as a number where it has no name */
        const gid_t *groups; /* the primary one among them */
        size_t n_groups;
};

/* -EPERM: the uid is another user's by now, or the job has groups that its owner is no member of;
 * `err` names them. A job of root's is never refused. */
int owner_check(const Rm__JobSpec *spec, const struct owner_today *today, struct rm_error *err);

#endif
