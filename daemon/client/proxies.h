/* Requests carried to the node that answers them, and their answers carried back. */
#ifndef RM_CLIENT_PROXIES_H
#define RM_CLIENT_PROXIES_H

#include <stdint.h>

#include "daemon/client/client.h"
#include "daemon/context.h"

/* One answer to a carried request; `reply` NULL: the other node is lost, nothing more will come and the channel is gone.
 * The callback may close the channel. */
typedef void (*proxy_reply_fn)(void *userdata, uint32_t channel, Rm__LocalReply *reply);
/* A request that was carried here: to be answered to `client`. */
typedef void (*proxy_request_fn)(struct rmd *rmd, struct client *client, const Rm__LocalRequest *request);
/* A client that was carried here has gone; it is freed after this returns. */
typedef void (*proxy_gone_fn)(struct rmd *rmd, struct client *client);

struct proxies *proxies_create(struct rmd *rmd, proxy_request_fn on_request, proxy_gone_fn on_gone);
void proxies_destroy(struct proxies *proxies);

/* Open a channel to `node` on behalf of this client's user. Sends nothing yet. Never 0. */
uint32_t proxies_open(struct proxies *proxies, const char *node, const struct client *client, proxy_reply_fn on_reply,
                      void *userdata);
/* -ENOTCONN when the node cannot be reached now, -EBUSY when too much that users have sent waits to be sent there; the channel
 * stays. */
int proxies_send(struct proxies *proxies, uint32_t id, const Rm__LocalRequest *request);
void proxies_close(struct proxies *proxies, uint32_t id);

/* From the cluster. False when the message is none of ours. */
bool proxies_on_message(struct proxies *proxies, const char *node, const Rm__PeerMessage *message);
/* Keep the connections that channels go over. */
void proxies_keep(struct proxies *proxies);
void proxies_on_peer(struct proxies *proxies, const char *node, bool connected);

#endif
