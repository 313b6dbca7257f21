/* The requests to export and to import a checkpoint share this: the client is told of a socket, and
 * later how it ended. */
#ifndef RM_REQUESTS_EXCHANGE_REQUEST_H
#define RM_REQUESTS_EXCHANGE_REQUEST_H

#include "common/error.h"
#include "daemon/requests/answer.h"

/* The file goes through this socket: the client is told. `userdata`: the struct request_answer. */
void exchange_opened(void *userdata, const char *socket);
/* Answers, and ends it. */
void exchange_ended(struct request_answer *asked, const char *verb, int error, const char *text);

/* Checks that this client may give the key of such a file; "": none is given. A client with the key
 * can read an image, and make images that are restored: -EPERM for all but root of this node.
 * -EINVAL: the path is not absolute. */
int sealed_key_check(const struct client *client, const char *verb, const char *key_file, struct rm_error *err);

#endif
