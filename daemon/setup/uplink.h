/* The network interface that a node's first configuration names. */
#ifndef RM_SETUP_UPLINK_H
#define RM_SETUP_UPLINK_H

#include "common/error.h"

/* The name, and the IPv4 address as text, of the interface of the default route, or else of the
 * only one that is up and has an address. `wanted`: this one, if it has an address; NULL: not said.
 * -EADDRNOTAVAIL: none, or several without a default route. Both are malloc'ed. */
int uplink_find(const char *requested, char **ret_name, char **ret_address, struct rm_error *err);

/* Finds, for tests, the default route's interface in the text of /proc/net/route, the one of the
 * lowest metric; "" if there is none. */
void uplink_of_routes(const char *routes, char ret_name[static 16]);

#endif
