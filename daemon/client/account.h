/* Accounts say what each user's clients take up of this node, so that no user can take what others
 * need, and root is always served. They come by the local socket, or other nodes carry their
 * requests here (client/forwarding.h). Keeps count, chooses the next request, and the client to
 * close; closes nothing itself.
 *
 * Users share 1,024 connections and 64 MiB; one user has 64 connections that have said hello, 8
 * that have not, and 8 MiB. Where all of it is taken, the user who has most loses some. As much
 * memory again holds carried requests that wait for their turn. Root has places and memory of its
 * own.
 *
 * Requests of users take at most a third of a processor, those of one user a sixth, whichever way
 * and from however many nodes they come. So a user who asks without end takes half of what users
 * have, and others do not wait for him. A user who changes the state of the cluster more often than
 * 50 times a second, after 1,000 times at once, waits as well: each change is an entry of the log
 * that all voters write and all nodes apply. */
#ifndef RM_CLIENT_ACCOUNT_H
#define RM_CLIENT_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <event2/event.h>

#include "common/log_rate.h"
#include "common/rate.h"
#include "daemon/wire/conn.h"
#include "proto/local.pb-c.h"

struct client;
struct accounts;

/* How a request has come. Each way has its own number of requests that may be open: local ones may
 * wait for another node, where they are carried ones; those wait for no node, so that no two nodes
 * wait for each other. */
enum account_way {
        ACCOUNT_LOCAL,
        ACCOUNT_FORWARDED,
        /* Carried, from a front end that is attached to its job: none stays open, and none waits
         * for those that do. */
        ACCOUNT_ATTACHED,
        ACCOUNT_WAYS,
};

TAILQ_HEAD(client_list, client);

/* An account is of one user. */
struct account {
        struct accounts *accounts;
        uid_t uid;
        struct conn_meter meter;
        struct client_list silent; /* have not said hello, oldest first */
        struct client_list known;
        struct client_list ready[ACCOUNT_WAYS]; /* whose next request is whole and waits */
        unsigned n_silent;
        unsigned n_known;
        unsigned n_forwarded;
        size_t carried_bytes; /* of carried requests that wait */
        unsigned open[ACCOUNT_WAYS]; /* requests that are still being handled */
        struct rate work; /* microseconds of the processor */
        struct rate changes; /* entries of the log */
        struct log_rate lines; /* of the daemon's log, about changes and what follows from them */
        enum account_way turn_way; /* that has its turn */
        bool queued;
        TAILQ_ENTRY(account) turn;
        LIST_ENTRY(account) entry;
};

/* `turn` is added as a timer of 0 when accounts_next() has a client, `over` activated when
 * accounts_heaviest() has one. Both remain the caller's. */
struct accounts *accounts_create(struct event *turn, struct event *over);
/* The caller has destroyed all local clients; requests may still be open, and carried clients may
 * remain. NULL ok. */
void accounts_destroy(struct accounts *accounts);

/* May one more of this user connect? `ret_victim`: this one is to be closed for it first; NULL:
 * none. False: refuse it: all places are taken by users who have no more than this one, or its own
 * by some that have only just come. The account is made when not there, and goes some time after
 * its last client. Not from inside a callback of a conn. */
bool accounts_admit(struct accounts *accounts, uid_t uid, uint64_t now_usec, struct account **ret_account,
                    struct client **ret_victim);
/* The client has connected. Sets client->account. */
void account_join(struct account *account, struct client *client, uint64_t now_usec);
/* The client has said hello. False: its user has as many clients as allowed already. */
bool account_resync(struct client *client);
/* The client, local or carried, leaves: requests of a carried one that wait are dropped. */
void account_leave(struct client *client);
/* How many may have said hello. */
unsigned account_known_max(const struct account *account);

/* A client whose requests another node carries here, by this way. Sets client->account and
 * client->way. Also from inside a callback of a conn. */
void account_join_forwarded(struct accounts *accounts, struct client *client, enum account_way way);
/* Copies a request of such a client, which waits for its turn. -EDQUOT: the user, or all users
 * together, have too much that waits. */
int account_put_request(struct client *client, const Rm__LocalRequest *request);
/* Takes the next request, which becomes the caller's, of a carried client that accounts_next() has
 * given. */
Rm__LocalRequest *account_take_request(struct client *client);

/* The next request of this local client is whole. */
void account_ready(struct client *client);
/* Returns the client whose request is to be handled now: users in turn, each one's clients in turn.
 * NULL: there is none; `ret_wait_usec` is then how long until a user may be served who has exceeded
 * a rate, UINT64_MAX: no such user waits. */
struct client *accounts_next(struct accounts *accounts, uint64_t now_usec, uint64_t *ret_wait_usec);
/* Handling one of its requests took so much of the processor; what reading and answering it takes
 * is added. */
void account_charge_request(struct account *account, enum account_way way, uint64_t now_usec, uint64_t work_usec);
/* The log has an entry that this user caused, on whatever node. */
void accounts_charge_change(struct accounts *accounts, uid_t uid, uint64_t now_usec);
/* The rate of lines in the daemon's log about this user's jobs. */
struct log_rate *accounts_lines(struct accounts *accounts, uid_t uid);
/* A request of its is worked on; and no more. Between the two the account stays, also without
 * clients. `account` NULL ok. */
void account_open(struct account *account, enum account_way way);
void account_close(struct account *account, enum account_way way);

/* While the clients of a user, or all users', hold more memory than they may: the one to be closed.
 * Otherwise NULL. */
struct client *accounts_heaviest(struct accounts *accounts);

#endif
