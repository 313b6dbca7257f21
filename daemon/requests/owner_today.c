#include "daemon/requests/owner_today.h"

#include <errno.h>

#include "daemon/requests/service.h"
#include "daemon/requests/waiting.h"

const struct user *owner_today(struct client *client, const Rm__LocalRequest *request, const char *verb, uid_t uid) {
        struct service *service = client->rmd->service;
        const struct user *user = NULL;
        int r = users_find(service_users(service), uid, USERS_PRIMARY_GROUP, &user);

        if (r == 0)
                return user;
        if (r == -EAGAIN && client->conn)
                waiting_add(service_waiting(service), client, request, waiting_begin());
        else
                client_error(client, request->id, -EAGAIN,
                             "%s: the user data base does not say who uid %u is today (does LDAP or NIS hang?): try again later",
                             verb, (unsigned) uid);
        return NULL;
}
