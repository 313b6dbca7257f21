/* Requests carried to the node that answers them, and their answers carried back. */
#ifndef RM_CLIENT_FORWARDING_H
#define RM_CLIENT_FORWARDING_H

#include <stdint.h>

#include "daemon/client/client.h"
#include "daemon/context.h"

/* Called with each answer to a carried request; `reply` NULL: the other node is lost, nothing more
 * will come and the channel is gone. The callback may close the channel. */
typedef void (*forward_reply_fn)(void *userdata, uint32_t channel, Rm__LocalReply *reply);
/* A request that was carried here: to be answered to `client`. */
typedef void (*forward_request_fn)(struct rmd *rmd, struct client *client, const Rm__LocalRequest *request);
/* A client that was carried here has gone; it is freed after this returns. */
typedef void (*forward_gone_fn)(struct rmd *rmd, struct client *client);

struct forwarding *forwarding_create(struct rmd *rmd, forward_request_fn on_request, forward_gone_fn on_gone);
void forwarding_destroy(struct forwarding *forwarding);

/* Open a channel to `node` on behalf of this client's user. Sends nothing yet. Never 0. */
uint32_t forwarding_open(struct forwarding *forwarding, const char *node, const struct client *client, forward_reply_fn on_reply,
                         void *userdata);
/* -ENOTCONN when the node cannot be reached now, -EBUSY when too much that users have sent waits to
 * be sent there; the channel stays. */
int forwarding_send(struct forwarding *forwarding, uint32_t id, const Rm__LocalRequest *request);
void forwarding_close(struct forwarding *forwarding, uint32_t id);

/* Takes a message from another node. False: the message is of another kind. */
bool forwarding_on_message(struct forwarding *forwarding, const char *node, const Rm__PeerMessage *message);
/* Keep the connections that channels go over. */
void forwarding_keep(struct forwarding *forwarding);
void forwarding_on_peer(struct forwarding *forwarding, const char *node, bool connected);

#endif
