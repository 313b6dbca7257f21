/* What each user's clients take up of this node's local socket, so that no user can take what others need, and root is always
 * served. Keeps count, says who is next and who has to go; closes nothing itself.
 *
 * Users share 1,024 connections and 64 MiB; one user has 64 connections that have said hello, 8 that have not, and 8 MiB. Where all
 * of it is taken, the user who has most loses some. Root has places and memory of its own. */
#ifndef RM_CLIENT_ACCOUNT_H
#define RM_CLIENT_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <event2/event.h>

#include "daemon/wire/conn.h"

struct client;
struct accounts;

TAILQ_HEAD(client_list, client);

/* One user's. */
struct account {
        struct accounts *accounts;
        uid_t uid;
        struct conn_meter meter;
        struct client_list silent; /* have not said hello, oldest first */
        struct client_list known;
        struct client_list ready; /* whose next request is whole and waits */
        unsigned n_silent;
        unsigned n_known;
        unsigned open; /* requests that somebody still works on */
        bool queued;
        TAILQ_ENTRY(account) turn;
        LIST_ENTRY(account) entry;
};

/* `turn` is added as a timer of 0 when accounts_next() has somebody, `over` activated when accounts_heaviest() has. Both remain the
 * caller's. */
struct accounts *accounts_create(struct event *turn, struct event *over);
/* Without clients; requests may still be open. NULL ok. */
void accounts_destroy(struct accounts *accounts);

/* May one more of this user connect? `ret_victim`: this one is to be closed for it first; NULL: none. False: refuse it: all
 * places are taken by users who have no more than this one, or its own by some that have only just come. The account is made when not there, and goes some time after
 * its last client. Not from inside a callback of a conn. */
bool accounts_admit(struct accounts *accounts, uid_t uid, uint64_t now_usec, struct account **ret_account,
                    struct client **ret_victim);
/* It has connected. Sets client->account. */
void account_join(struct account *account, struct client *client, uint64_t now_usec);
/* Its hello is here. False: this user has as many as it may already. */
bool account_greet(struct client *client);
void account_leave(struct client *client);
/* How many may have said hello. */
unsigned account_known_max(const struct account *account);

/* Its next request is whole. */
void account_ready(struct client *client);
/* Whose request is to be handled now: users in turn, each one's clients in turn. NULL: nobody's, or too much is open. */
struct client *accounts_next(struct accounts *accounts);
/* A request of its is worked on; and no more. Between the two the account stays, also without clients. NULL ok. */
void account_open(struct account *account);
void account_close(struct account *account);

/* While the clients of a user, or all users', hold more memory than they may: the one to be closed. Otherwise NULL. */
struct client *accounts_heaviest(struct accounts *accounts);

#endif
