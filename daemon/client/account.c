#include "daemon/client/account.h"

#include <stdlib.h>

#include "common/timer.h"
#include "common/util.h"
#include "daemon/client/client.h"

/* Between connecting and the hello lies one message. Who has more than this at once starts many commands at the same moment; the
 * one that is closed tries again. */
#define SILENT_MAX 8U
/* Younger ones are not closed for newer ones of the same user: refusing costs a tenth of taking in, and floods come from there. */
#define SILENT_YOUNG_USEC UINT64_C(250000)
/* Front ends that are attached, on one node. */
#define KNOWN_MAX 64U
/* Of all users together. 16 users at their limit, 128 with eight each. */
#define USERS_CLIENTS_MAX 1024U
/* Requests that wait for the log, another node or a policy. Each may be as large as a job, 1 MiB. */
#define OPEN_MAX 8U
#define USERS_OPEN_MAX 64U
/* A job on its way in and an answer on its way out for each of eight clients; as much for eight such users. */
#define USER_BYTES_MAX (8U << 20)
#define USERS_BYTES_MAX (64U << 20)

/* Root's own: a script of root's may go wild too, but is not to be refused for what users do. */
#define ROOT_SILENT_MAX 64U
#define ROOT_KNOWN_MAX 256U
#define ROOT_BYTES_MAX (64U << 20)

struct accounts {
        struct event *turn;
        struct event *over;
        struct conn_meter users;
        unsigned n_clients; /* of users */
        unsigned open;      /* of users */
        LIST_HEAD(, account) all;
        TAILQ_HEAD(, account) turns; /* who may be served, in that order */
};

static bool is_root(const struct account *account) {
        return account->uid == 0;
}

struct accounts *accounts_create(struct event *turn, struct event *over) {
        struct accounts *accounts = xcalloc(1, sizeof(*accounts));

        accounts->turn = turn;
        accounts->over = over;
        accounts->users = (struct conn_meter) { .max_bytes = USERS_BYTES_MAX, .over = over };
        LIST_INIT(&accounts->all);
        TAILQ_INIT(&accounts->turns);
        return accounts;
}

static void account_free(struct account *account) {
        if (account->queued)
                TAILQ_REMOVE(&account->accounts->turns, account, turn);
        LIST_REMOVE(account, entry);
        free(account);
}

/* What is open then is closed later, by whoever works on it. */
void accounts_destroy(struct accounts *accounts) {
        struct account *account;

        if (!accounts)
                return;
        while ((account = LIST_FIRST(&accounts->all))) {
                if (account->open == 0) {
                        account_free(account);
                        continue;
                }
                LIST_REMOVE(account, entry);
                account->accounts = NULL;
        }
        free(accounts);
}

/* Those without clients go only now: a connection that is being closed still counts its bytes there. */
static struct account *find_and_sweep(struct accounts *accounts, uid_t uid) {
        struct account *found = NULL;
        struct account *next;

        for (struct account *account = LIST_FIRST(&accounts->all); account; account = next) {
                next = LIST_NEXT(account, entry);
                if (account->uid == uid)
                        found = account;
                else if (account->n_silent == 0 && account->n_known == 0 && account->open == 0)
                        account_free(account);
        }
        return found;
}

static struct account *account_get(struct accounts *accounts, uid_t uid) {
        struct account *account = find_and_sweep(accounts, uid);

        if (account)
                return account;
        account = xcalloc(1, sizeof(*account));
        account->accounts = accounts;
        account->uid = uid;
        account->meter = (struct conn_meter) {
                .max_bytes = uid == 0 ? ROOT_BYTES_MAX : USER_BYTES_MAX,
                .over = accounts->over,
                .above = uid == 0 ? NULL : &accounts->users,
        };
        TAILQ_INIT(&account->silent);
        TAILQ_INIT(&account->known);
        TAILQ_INIT(&account->ready);
        LIST_INSERT_HEAD(&accounts->all, account, entry);
        return account;
}

/* ---- who may come in ---- */

static unsigned clients_of(const struct account *account) {
        return account->n_silent + account->n_known;
}

/* Of the user who has most: one that has not said hello, else the newest, which has least to lose. */
static struct client *victim_of_most(const struct accounts *accounts, const struct account *newcomer) {
        const struct account *most = NULL;
        const struct account *account;

        LIST_FOREACH (account, &accounts->all, entry)
                if (!is_root(account) && (!most || clients_of(account) > clients_of(most)))
                        most = account;
        if (!most || clients_of(most) <= clients_of(newcomer) + 1)
                return NULL;
        return most->n_silent > 0 ? TAILQ_FIRST(&most->silent) : TAILQ_LAST(&most->known, client_list);
}

bool accounts_admit(struct accounts *accounts, uid_t uid, uint64_t now, struct account **ret_account, struct client **ret_victim) {
        struct account *account = account_get(accounts, uid);
        bool full = !is_root(account) && accounts->n_clients >= USERS_CLIENTS_MAX;
        struct client *victim = NULL;

        if (account->n_silent >= (is_root(account) ? ROOT_SILENT_MAX : SILENT_MAX)) {
                victim = TAILQ_FIRST(&account->silent);
                if (now - victim->since_usec < SILENT_YOUNG_USEC)
                        return false;
        } else if (full) {
                victim = victim_of_most(accounts, account);
                if (!victim)
                        return false;
        }
        *ret_account = account;
        *ret_victim = victim;
        return true;
}

void account_join(struct account *account, struct client *client, uint64_t now) {
        client->since_usec = now;
        client->account = account;
        client->silent = true;
        TAILQ_INSERT_TAIL(&account->silent, client, place);
        account->n_silent++;
        if (!is_root(account))
                account->accounts->n_clients++;
}

unsigned account_known_max(const struct account *account) {
        return is_root(account) ? ROOT_KNOWN_MAX : KNOWN_MAX;
}

bool account_greet(struct client *client) {
        struct account *account = client->account;

        if (account->n_known >= account_known_max(account))
                return false;
        client->silent = false;
        TAILQ_REMOVE(&account->silent, client, place);
        account->n_silent--;
        TAILQ_INSERT_TAIL(&account->known, client, place);
        account->n_known++;
        return true;
}

/* ---- whose turn it is ---- */

static void queue(struct account *account) {
        struct accounts *accounts = account->accounts;

        if (account->queued || TAILQ_EMPTY(&account->ready) || account->open >= OPEN_MAX)
                return;
        account->queued = true;
        TAILQ_INSERT_TAIL(&accounts->turns, account, turn);
        if (accounts->open < USERS_OPEN_MAX)
                timer_arm(accounts->turn, 0);
}

static void unqueue(struct account *account) {
        if (account->queued)
                TAILQ_REMOVE(&account->accounts->turns, account, turn);
        account->queued = false;
}

void account_ready(struct client *client) {
        if (client->ready)
                return;
        client->ready = true;
        TAILQ_INSERT_TAIL(&client->account->ready, client, ready_place);
        queue(client->account);
}

static void not_ready(struct client *client) {
        if (!client->ready)
                return;
        client->ready = false;
        TAILQ_REMOVE(&client->account->ready, client, ready_place);
        if (TAILQ_EMPTY(&client->account->ready))
                unqueue(client->account);
}

struct client *accounts_next(struct accounts *accounts) {
        struct account *account = TAILQ_FIRST(&accounts->turns);
        struct client *client;

        if (!account || accounts->open >= USERS_OPEN_MAX)
                return NULL;
        client = TAILQ_FIRST(&account->ready);
        unqueue(account);
        not_ready(client);
        queue(account); /* behind all others */
        return client;
}

void account_open(struct account *account) {
        if (!account)
                return;
        account->open++;
        if (is_root(account) || !account->accounts)
                return;
        account->accounts->open++;
        if (account->open >= OPEN_MAX)
                unqueue(account);
}

void account_close(struct account *account) {
        if (!account)
                return;
        account->open--;
        if (!account->accounts) {
                if (account->open == 0)
                        free(account);
                return;
        }
        if (!is_root(account))
                account->accounts->open--;
        queue(account);
        if (!TAILQ_EMPTY(&account->accounts->turns))
                timer_arm(account->accounts->turn, 0);
}

void account_leave(struct client *client) {
        struct account *account = client->account;

        if (!account)
                return;
        not_ready(client);
        TAILQ_REMOVE(client->silent ? &account->silent : &account->known, client, place);
        *(client->silent ? &account->n_silent : &account->n_known) -= 1;
        if (!is_root(account))
                account->accounts->n_clients--;
}

/* ---- who holds too much ---- */

static struct client *heaviest_client(const struct account *account) {
        struct client *heaviest = NULL;
        struct client *client;

        TAILQ_FOREACH (client, &account->known, place)
                if (!heaviest || conn_held_bytes(client->conn) > conn_held_bytes(heaviest->conn))
                        heaviest = client;
        TAILQ_FOREACH (client, &account->silent, place)
                if (!heaviest || conn_held_bytes(client->conn) > conn_held_bytes(heaviest->conn))
                        heaviest = client;
        return heaviest;
}

struct client *accounts_heaviest(struct accounts *accounts) {
        const struct account *most = NULL;
        const struct account *account;

        LIST_FOREACH (account, &accounts->all, entry) {
                if (account->meter.bytes > account->meter.max_bytes)
                        return heaviest_client(account);
                if (!is_root(account) && (!most || account->meter.bytes > most->meter.bytes))
                        most = account;
        }
        return most && accounts->users.bytes > accounts->users.max_bytes ? heaviest_client(most) : NULL;
}
