/* The present owner of a job, for requests that continue from saved state: its uid may have been
 * another person's when it was saved. */
#ifndef RM_REQUESTS_OWNER_TODAY_H
#define RM_REQUESTS_OWNER_TODAY_H

#include "daemon/client/client.h"
#include "daemon/client/users.h"

/* Returns the user whom the user data base has for `uid` now (within a minute), whatever it said
 * when the client connected. NULL: `client` was told that the data base does not answer, or
 * `request` comes again when it has. */
const struct user *owner_today(struct client *client, const Rm__LocalRequest *request, const char *verb, uid_t uid);

#endif
