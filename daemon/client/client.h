/* A client sends requests to rmd and gets the answers: a local connection, or a request carried
 * here from another node. */
#ifndef RM_CLIENT_CLIENT_H
#define RM_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "daemon/client/account.h"
#include "daemon/context.h"
#include "daemon/wire/conn.h"
#include "proto/local.pb-c.h"
#include "proto/peer.pb-c.h"

struct attachment;
struct limits;
struct user;

/* Takes the answers to a client of this process that has no connection of rmd's protocol. */
struct client_sink {
        void (*reply)(void *userdata, const Rm__LocalReply *reply);
        size_t (*pending_bytes)(const void *userdata); /* that wait to be read */
        void *userdata;
};

struct client {
        struct rmd *rmd;
        uid_t uid;
        gid_t gid;
        bool admin; /* root, or of the group in rmd.conf */
        bool greeted;
        bool identified; /* user, admin and groups are what the user data base says, not only the numbers */
        char user[64];
        gid_t *groups; /* as at login */
        size_t n_groups;

        struct conn *conn; /* local one; NULL: carried, or with a sink */
        const struct client_sink *sink; /* of a local one without a connection; borrowed until client_leave() */
        char *node;        /* carried: from this node */
        uint32_t channel;

        /* client/account.h, whose the following four are; NULL: a carried one of root's, whose
         * requests do not wait */
        struct account *account;
        enum account_way way;
        STAILQ_HEAD(, forwarded_request) requests; /* carried ones that wait */
        TAILQ_ENTRY(client) place;
        TAILQ_ENTRY(client) ready_place;
        TAILQ_ENTRY(client) all; /* requests/service.c */
        uint64_t since_usec; /* it is connected */
        bool silent;
        bool ready;
        bool held;           /* its next request waits until it has read the answers to those before */
        bool waits_for_user; /* its hello waits for the user data base */
        uint32_t head_id;    /* of the request that comes */
        struct limits *limits; /* of the process that connected; NULL: unknown */
        char *limits_error;    /* why */

        struct attachment *attachment; /* requests/attachment.c: the job this local client is attached to */
        uint32_t follow_id;  /* requests/events.c: request that follows events, */
        bool follows;        /* still */
        uint64_t follow_since;
        uint64_t follow_position; /* of the next one to be sent */
        uint64_t follow_end;      /* where the request ends; UINT64_MAX: nowhere */
        unsigned refs;
        struct client *next; /* carried: client/forwarding.c */
};

/* The user is a number, and no administrator but for uid 0, until client_identify(). The caller has
 * the first reference. */
struct client *client_create(struct rmd *rmd, uid_t uid, gid_t gid);
/* Copies what it needs. */
void client_identify(struct client *client, const struct user *user);
/* Holds the client for a request that is answered later: the client may leave meanwhile, then
 * answers to it are dropped. Counts as one more request of its user's that is open, until
 * client_release(). */
struct client *client_hold(struct client *client);
void client_release(struct client *client); /* NULL ok */
/* The client has left: nothing is sent any more, the caller's reference is given back. */
void client_leave(struct client *client);

/* Send one answer; sets its id. Lost without a word when the client has gone. One that does not fit
 * into a frame becomes an error that says so; a client that reads none of its answers is closed. */
void client_reply(struct client *client, uint32_t request_id, Rm__LocalReply *reply);
/* The same for one with this body. */
void client_answer(struct client *client, uint32_t request_id, const ProtobufCMessage *body);
void client_error(struct client *client, uint32_t request_id, int code, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void client_ok(struct client *client, uint32_t request_id, uint64_t id, const char *text);
/* True while it is there and asked here: its requests were not carried from another node. */
bool client_is_local(const struct client *client);
/* Bytes waiting to be read by a local client; 0 for a carried one. */
size_t client_pending_bytes(const struct client *client);
/* May see and touch things of this uid. */
bool client_may(const struct client *client, uid_t owner);

#endif
