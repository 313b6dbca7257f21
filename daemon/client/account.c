#include "daemon/client/account.h"

#include <errno.h>
#include <stdlib.h>

#include "common/timer.h"
#include "common/util.h"
#include "daemon/client/client.h"
#include "daemon/state/state.h"

/* The number of clients before their hello, for which one message is enough. A user with more than
 * this at once starts many commands at the same moment; the one that is closed tries again. */
#define SILENT_MAX 8U
/* Younger ones are not closed for newer ones of the same user: refusing costs a tenth of taking in,
 * and floods come from there. */
#define SILENT_YOUNG_USEC UINT64_C(250000)
/* Front ends that are attached, on one node. */
#define KNOWN_MAX 64U
/* The limits of all users together: 16 users at their limit, 128 with eight clients each. */
#define USERS_CLIENTS_MAX 1024U
/* Requests that wait for the log, another node or a policy. Each may be as large as a job, 1
 * MiB. */
#define OPEN_MAX 8U
#define USERS_OPEN_MAX 64U
/* A job on its way in and an answer on its way out for each of eight clients; as much for eight
 * such users. */
#define USER_BYTES_MAX (8U << 20)
#define USERS_BYTES_MAX (64U << 20)

/* Carried requests that wait may have so many bytes, beside those of the connections. */
#define FORWARDED_BYTES_MAX USER_BYTES_MAX
#define USERS_FORWARDED_BYTES_MAX USERS_BYTES_MAX
#define REQUEST_ITSELF_BYTES 512U /* what a request takes that is nearly empty */

/* rmd has a real-time priority, which users must not get hold of by asking without end: a third of
 * a core for all, which are 4,000 to 10,000 requests a second, and 5 ms at once, before everything
 * else has the loop again. A request takes far less than that. */
static const struct rate_limit users_work = { .usec_each = 3, .burst = 5000 };
/* To read and decode a small request and to send the answer, which is done apart from handling it.
 * A carried one has a channel of its own, and goes through TLS. */
static const uint64_t exchange_usec[ACCOUNT_WAYS] = { [ACCOUNT_LOCAL] = 25, [ACCOUNT_FORWARDED] = 80, [ACCOUNT_ATTACHED] = 40 };
static const struct rate_limit user_work = { .usec_each = 6, .burst = 2500 };
/* A user who submits jobs in a loop makes one entry each, some 100 a second at most; a voter's disk
 * takes thousands. */
static const struct rate_limit user_changes = { .usec_each = 20000, .burst = 1000 };

/* Root's own: a script of root's may go wild too, but is not to be refused for what users do. */
#define ROOT_SILENT_MAX 64U
#define ROOT_KNOWN_MAX 256U
#define ROOT_BYTES_MAX (64U << 20)

struct accounts {
        struct event *turn;
        struct event *over;
        struct conn_meter users;
        unsigned n_clients; /* local ones, of users */
        unsigned open[ACCOUNT_WAYS]; /* of users */
        size_t carried_bytes; /* of users */
        struct rate work; /* of users */
        LIST_HEAD(, account) all;
        TAILQ_HEAD(, account) turns; /* users that may be served, in that order */
};

static bool is_root(const struct account *account) {
        return account->uid == 0;
}

/* The account has neither clients nor requests. */
static bool is_idle(const struct account *account) {
        unsigned open = 0;

        for (unsigned way = 0; way < ACCOUNT_WAYS; way++)
                open += account->open[way];
        return account->n_silent == 0 && account->n_known == 0 && account->n_forwarded == 0 && open == 0;
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

/* A request that is open when the accounts go is closed later, by the code that handles it. */
void accounts_destroy(struct accounts *accounts) {
        struct account *account;

        if (!accounts)
                return;
        while ((account = LIST_FIRST(&accounts->all))) {
                if (is_idle(account)) {
                        account_free(account);
                        continue;
                }
                LIST_REMOVE(account, entry);
                account->accounts = NULL;
        }
        free(accounts);
}

static struct account *find(const struct accounts *accounts, uid_t uid) {
        struct account *account;

        LIST_FOREACH (account, &accounts->all, entry)
                if (account->uid == uid)
                        return account;
        return NULL;
}

/* Accounts without clients are removed only here: a connection that is being closed still counts
 * its bytes in its account. A user who exceeded a rate cannot reset it by leaving. */
static void sweep(struct accounts *accounts, uid_t but, uint64_t now) {
        struct account *next;

        for (struct account *account = LIST_FIRST(&accounts->all); account; account = next) {
                next = LIST_NEXT(account, entry);
                if (account->uid != but && is_idle(account) && rate_is_full(&account->work, now) &&
                    rate_is_full(&account->changes, now) && rate_is_full(&account->lines.rate, now))
                        account_free(account);
        }
}

static struct account *account_get(struct accounts *accounts, uid_t uid) {
        struct account *account = find(accounts, uid);

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
        for (unsigned way = 0; way < ACCOUNT_WAYS; way++)
                TAILQ_INIT(&account->ready[way]);
        LIST_INSERT_HEAD(&accounts->all, account, entry);
        return account;
}

/* ---- admission ---- */

static unsigned clients_of(const struct account *account) {
        return account->n_silent + account->n_known;
}

/* Chooses a client of the user who has most: one that has not said hello, else the newest, which
 * has least to lose. */
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

        sweep(accounts, uid, now);
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

bool account_resync(struct client *client) {
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

static bool may_serve(const struct account *account, enum account_way way) {
        return !TAILQ_EMPTY(&account->ready[way]) && account->open[way] < OPEN_MAX;
}

static bool may_serve_some(const struct account *account) {
        for (unsigned way = 0; way < ACCOUNT_WAYS; way++)
                if (may_serve(account, way))
                        return true;
        return false;
}

static void queue(struct account *account) {
        struct accounts *accounts = account->accounts;

        if (account->queued || !may_serve_some(account))
                return;
        account->queued = true;
        TAILQ_INSERT_TAIL(&accounts->turns, account, turn);
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
        TAILQ_INSERT_TAIL(&client->account->ready[client->way], client, ready_place);
        queue(client->account);
}

static void not_ready(struct client *client) {
        struct account *account = client->account;

        if (!client->ready)
                return;
        client->ready = false;
        TAILQ_REMOVE(&account->ready[client->way], client, ready_place);
        if (!may_serve_some(account))
                unqueue(account);
}

/* How long a user has to wait who has exceeded a rate; 0: he need not. */
static uint64_t wait_of(const struct account *account, uint64_t now) {
        uint64_t work_usec = rate_wait_usec(&account->work, &user_work, now);
        uint64_t changes_usec = rate_wait_usec(&account->changes, &user_changes, now);

        return work_usec > changes_usec ? work_usec : changes_usec;
}

/* Takes a client of the way that has its turn, else of the other one; NULL: too many requests of
 * all users are open. */
static struct client *take_client(struct account *account) {
        for (unsigned i = 0; i < ACCOUNT_WAYS; i++) {
                enum account_way way = (account->turn_way + i) % ACCOUNT_WAYS;

                if (!may_serve(account, way) || account->accounts->open[way] >= USERS_OPEN_MAX)
                        continue;
                account->turn_way = (way + 1) % ACCOUNT_WAYS;
                return TAILQ_FIRST(&account->ready[way]);
        }
        return NULL;
}

struct client *accounts_next(struct accounts *accounts, uint64_t now, uint64_t *ret_wait_usec) {
        uint64_t all_usec = rate_wait_usec(&accounts->work, &users_work, now), least_usec = UINT64_MAX;
        struct account *account;

        TAILQ_FOREACH (account, &accounts->turns, turn) {
                uint64_t wait_usec = wait_of(account, now);
                struct client *client = NULL;

                if (wait_usec < all_usec)
                        wait_usec = all_usec;
                if (wait_usec == 0)
                        client = take_client(account);
                else if (wait_usec < least_usec)
                        least_usec = wait_usec;
                if (!client)
                        continue;
                unqueue(account);
                not_ready(client);
                queue(account); /* behind all others */
                return client;
        }
        *ret_wait_usec = least_usec;
        return NULL;
}

void account_charge_request(struct account *account, enum account_way way, uint64_t now, uint64_t work_usec) {
        work_usec += exchange_usec[way];
        rate_take(&account->work, &user_work, now, work_usec);
        if (account->accounts)
                rate_take(&account->accounts->work, &users_work, now, work_usec);
}

void accounts_charge_change(struct accounts *accounts, uid_t uid, uint64_t now) {
        rate_take(&account_get(accounts, uid)->changes, &user_changes, now, 1);
}

struct log_rate *accounts_lines(struct accounts *accounts, uid_t uid) {
        return &account_get(accounts, uid)->lines;
}

void account_open(struct account *account, enum account_way way) {
        if (!account)
                return;
        account->open[way]++;
        if (is_root(account) || !account->accounts)
                return;
        account->accounts->open[way]++;
        if (!may_serve_some(account))
                unqueue(account);
}

void account_close(struct account *account, enum account_way way) {
        if (!account)
                return;
        account->open[way]--;
        if (!account->accounts) {
                if (is_idle(account))
                        free(account);
                return;
        }
        if (!is_root(account))
                account->accounts->open[way]--;
        queue(account);
        if (!TAILQ_EMPTY(&account->accounts->turns))
                timer_arm(account->accounts->turn, 0);
}

/* ---- carried requests ---- */

struct forwarded_request {
        Rm__LocalRequest *request;
        size_t bytes;
        STAILQ_ENTRY(forwarded_request) entry;
};

void account_join_forwarded(struct accounts *accounts, struct client *client, enum account_way way) {
        client->account = account_get(accounts, client->uid);
        client->way = way;
        STAILQ_INIT(&client->requests);
        client->account->n_forwarded++;
}

static void count_waiting(struct account *account, size_t bytes, bool comes) {
        account->carried_bytes += comes ? bytes : 0 - bytes;
        if (account->accounts)
                account->accounts->carried_bytes += comes ? bytes : 0 - bytes;
}

int account_put_request(struct client *client, const Rm__LocalRequest *request) {
        struct account *account = client->account;
        size_t bytes = rm__local_request__get_packed_size(request) + REQUEST_ITSELF_BYTES;
        struct forwarded_request *waits;

        if (!account->accounts || account->carried_bytes + bytes > FORWARDED_BYTES_MAX ||
            account->accounts->carried_bytes + bytes > USERS_FORWARDED_BYTES_MAX)
                return -EDQUOT;
        waits = xcalloc(1, sizeof(*waits));
        waits->request = (Rm__LocalRequest *) message_copy(&request->base);
        waits->bytes = bytes;
        STAILQ_INSERT_TAIL(&client->requests, waits, entry);
        count_waiting(account, bytes, true);
        account_ready(client);
        return 0;
}

static Rm__LocalRequest *take_first(struct client *client) {
        struct forwarded_request *waits = STAILQ_FIRST(&client->requests);
        Rm__LocalRequest *request = waits->request;

        STAILQ_REMOVE_HEAD(&client->requests, entry);
        count_waiting(client->account, waits->bytes, false);
        free(waits);
        return request;
}

Rm__LocalRequest *account_take_request(struct client *client) {
        Rm__LocalRequest *request = take_first(client);

        if (!STAILQ_EMPTY(&client->requests))
                account_ready(client);
        return request;
}

static void leave_carried(struct client *client) {
        struct account *account = client->account;

        if (account->accounts)
                not_ready(client);
        while (!STAILQ_EMPTY(&client->requests))
                rm__local_request__free_unpacked(take_first(client), NULL);
        account->n_forwarded--;
        if (!account->accounts && is_idle(account))
                free(account);
}

void account_leave(struct client *client) {
        struct account *account = client->account;

        if (!account)
                return;
        if (client->way != ACCOUNT_LOCAL) {
                leave_carried(client);
                return;
        }
        not_ready(client);
        TAILQ_REMOVE(client->silent ? &account->silent : &account->known, client, place);
        *(client->silent ? &account->n_silent : &account->n_known) -= 1;
        if (!is_root(account))
                account->accounts->n_clients--;
}

/* ---- memory ---- */

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
