/* Names, groups and administrators by uid, from the user data base. That may lie on another machine
 * (LDAP, NIS) and hang, so a thread asks it; the loop only takes the results. */
#ifndef RM_CLIENT_USERS_H
#define RM_CLIENT_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <event2/event.h>

struct users;

struct user {
        char name[64]; /* the uid as a number where there is no name */
        bool admin; /* root, or of the administrators' group */
        gid_t *groups; /* as at login, the primary one among them */
        size_t n_groups;
};

/* From the loop, when anything that users_find() said to wait for is there, or too late. */
typedef void (*users_changed_fn)(void *userdata);

/* `admin_group` "": none. Copied. */
struct users *users_create(struct event_base *base, const char *admin_group, users_changed_fn on_changed, void *userdata);
/* A look-up that hangs is left to hang. NULL ok. */
void users_destroy(struct users *users);

/* A value of `gid` for the primary group in the data base instead of the group of a process; a uid
 * that the data base does not have has no groups. */
#define USERS_PRIMARY_GROUP ((gid_t) - 1)

/* Finds the user of a process with these ids; valid until the loop runs again. Known for a minute,
 * then asked again. -EAGAIN: on_changed comes, within 2 s. -ETIMEDOUT: the data base has not
 * answered in time, and is not asked again for 10 s. */
int users_find(struct users *users, uid_t uid, gid_t gid, const struct user **ret_user);

#endif
