/* Who the owner of a job is today, for requests that let go on what was saved when he may have been
 * somebody else. */
#ifndef RM_REQUESTS_OWNER_TODAY_H
#define RM_REQUESTS_OWNER_TODAY_H

#include "daemon/client/client.h"
#include "daemon/client/users.h"

/* What the user data base says of `uid` now (within a minute), whatever it said when the client
 * connected. NULL: `client` was told that it does not answer, or `request` comes again when it
 * has. */
const struct user *owner_today(struct client *client, const Rm__LocalRequest *request, const char *verb, uid_t uid);

#endif
