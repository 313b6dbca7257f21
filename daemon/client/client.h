/* Who asks something of rmd, and where the answers go: a local connection, or a request carried here from another node. */
#ifndef RM_CLIENT_CLIENT_H
#define RM_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/context.h"
#include "daemon/wire/conn.h"
#include "proto/local.pb-c.h"
#include "proto/peer.pb-c.h"

struct front;

struct client {
        struct rmd *rmd;
        uid_t uid;
        gid_t gid;
        bool admin; /* root, or of the group in rmd.conf */
        bool greeted;
        char user[64];

        struct conn *conn; /* local one; NULL: carried */
        char *node;        /* carried: from this node */
        uint32_t channel;

        struct front *front; /* requests/front.c: the job this local client is attached to */
        uint32_t follow_id;  /* requests/events.c: request that follows events */
        bool follows;
        uint64_t follow_position;
        unsigned refs;
        struct client *next;
};

/* Fills in user and admin from uid and the user data base. The caller has the first reference. */
struct client *client_create(struct rmd *rmd, uid_t uid, gid_t gid);
/* For who must answer later: the client may leave meanwhile, then answers to it go nowhere. */
struct client *client_hold(struct client *client);
void client_release(struct client *client); /* NULL ok */
/* It has left: nothing is sent any more, the caller's reference is given back. */
void client_leave(struct client *client);

/* Send one answer; sets its id. Lost without a word when the client has gone. */
void client_reply(struct client *client, uint32_t request_id, Rm__LocalReply *reply);
void client_error(struct client *client, uint32_t request_id, int code, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void client_ok(struct client *client, uint32_t request_id, uint64_t id, const char *text);
/* Bytes waiting to be read by a local client; 0 for a carried one. */
size_t client_pending_bytes(const struct client *client);
/* May see and touch things of this uid. */
bool client_may(const struct client *client, uid_t owner);

#endif
