/* The setup of rm-movers of this node: keys and addresses. Pure: the strings of the configuration
 * are borrowed. */
#ifndef RM_TRANSFER_MOVER_SETUP_H
#define RM_TRANSFER_MOVER_SETUP_H

#include "daemon/config/config.h"
#include "proto/mover.pb-c.h"

/* The address, ports, keys and token (of `token_bytes`) by which a sender reaches an rm-mover that
 * receives on this node. */
void mover_receive_init(Rm__MoverReceive *ret, const struct config *config, const void *token, size_t token_bytes);
/* Which store, without whose it is. */
void mover_store_init(Rm__MoverStore *ret, const struct config *config, const char *dir);
/* The destination to which an rm-mover loads from the store: a receiver at that address and port,
 * by the token it was given. */
void mover_load_init(Rm__MoverLoad *ret, Rm__MoverStore *store, const char *host, uint32_t port, const ProtobufCBinaryData *token);

#endif
