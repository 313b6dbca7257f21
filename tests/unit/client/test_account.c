/* Places of local clients: one user cannot take what others need, and root has its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/frame.h"
#include "common/util.h"
#include "daemon/client/account.h"
#include "daemon/client/client.h"

struct world {
        struct event_base *base;
        struct event *turn;
        struct event *over;
        struct accounts *accounts;
        struct client *all[3000];
        unsigned n;
        uint64_t now_usec;
};

static void nothing(evutil_socket_t fd, short what, void *arg) {
}

static void start(struct world *w) {
        memset(w, 0, sizeof(*w));
        w->base = event_base_new();
        w->turn = evtimer_new(w->base, nothing, NULL);
        w->over = event_new(w->base, -1, 0, nothing, NULL);
        w->accounts = accounts_create(w->turn, w->over);
}

static void leave(struct world *w, struct client *client) {
        for (unsigned i = 0; i < w->n; i++)
                if (w->all[i] == client)
                        w->all[i] = w->all[--w->n];
        account_leave(client);
        conn_destroy(client->conn);
        client_leave(client);
}

static void finish(struct world *w) {
        while (w->n > 0)
                leave(w, w->all[0]);
        accounts_destroy(w->accounts);
        event_free(w->turn);
        event_free(w->over);
        event_base_free(w->base);
}

/* NULL: refused. */
static struct client *come(struct world *w, uid_t uid, bool greets) {
        struct account *account = NULL;
        struct client *victim = NULL;
        struct client *client;

        if (!accounts_admit(w->accounts, uid, w->now_usec, &account, &victim))
                return NULL;
        if (victim)
                leave(w, victim);
        client = client_create(NULL, uid, uid);
        account_join(account, client, w->now_usec);
        w->all[w->n++] = client;
        if (greets && !account_greet(client)) {
                leave(w, client);
                return NULL;
        }
        return client;
}

static unsigned count(const struct world *w, uid_t uid) {
        unsigned n = 0;

        for (unsigned i = 0; i < w->n; i++)
                n += w->all[i]->uid == uid;
        return n;
}

static void test_silent_ones_push_out_their_own(void **state) {
        struct world w;
        struct client *client;

        start(&w);
        for (unsigned i = 1; i <= 100; i++) {
                client = come(&w, 1000, false);
                assert_non_null(client);
                client->head_id = i;
                w.now_usec += 100000;
        }
        assert_int_equal(count(&w, 1000), 8);
        for (unsigned i = 0; i < w.n; i++)
                assert_in_range(w.all[i]->head_id, 93, 100); /* the oldest went */
        /* A flood is refused where it comes in. */
        for (unsigned i = 0; i < 8; i++)
                assert_non_null(come(&w, 1002, false));
        w.now_usec += 100000;
        assert_null(come(&w, 1002, false));
        assert_non_null(come(&w, 1001, true));
        assert_int_equal(count(&w, 1000), 8);
        finish(&w);
}

static void test_one_user_has_so_many(void **state) {
        struct world w;

        start(&w);
        for (unsigned i = 0; i < 64; i++)
                assert_non_null(come(&w, 1000, true));
        assert_null(come(&w, 1000, true));
        assert_int_equal(count(&w, 1000), 64);
        assert_non_null(come(&w, 1001, true));
        finish(&w);
}

/* All places are taken by users who have 64 each: who has none gets one, who has as many as they does not. Root does not mind. */
static void test_newcomer_comes_in_where_all_is_full(void **state) {
        struct world w;

        start(&w);
        for (unsigned i = 0; i < 1024; i++)
                assert_non_null(come(&w, 2000 + i / 64, true));
        assert_int_equal(w.n, 1024);
        for (unsigned i = 0; i < 20; i++)
                assert_non_null(come(&w, 1000, true));
        assert_int_equal(count(&w, 1000), 20);
        assert_int_equal(w.n, 1024);
        for (unsigned i = 0; i < 200; i++)
                assert_non_null(come(&w, 0, true));
        assert_int_equal(count(&w, 0), 200);
        assert_int_equal(w.n, 1224);
        finish(&w);
}

static void test_equals_do_not_push_each_other_out(void **state) {
        struct world w;

        start(&w);
        for (unsigned i = 0; i < 1024; i++)
                assert_non_null(come(&w, 2000 + i, true));
        assert_null(come(&w, 1000, true)); /* the 1,025th user */
        assert_int_equal(w.n, 1024);
        finish(&w);
}

static void test_users_are_served_in_turn(void **state) {
        struct client *hers[3], *his;
        struct world w;

        start(&w);
        for (unsigned i = 0; i < 3; i++) {
                hers[i] = come(&w, 1000, true);
                account_ready(hers[i]);
        }
        his = come(&w, 1001, true);
        account_ready(his);
        account_ready(his); /* said twice */
        assert_true(evtimer_pending(w.turn, NULL));
        assert_ptr_equal(accounts_next(w.accounts), hers[0]);
        assert_ptr_equal(accounts_next(w.accounts), his);
        assert_ptr_equal(accounts_next(w.accounts), hers[1]);
        account_ready(his);
        leave(&w, hers[2]); /* with a request waiting */
        assert_ptr_equal(accounts_next(w.accounts), his);
        assert_null(accounts_next(w.accounts));
        finish(&w);
}

/* A user with eight requests under way waits for one to be answered; others do not. */
static void test_open_requests_hold_up_their_own_user(void **state) {
        struct client *client, *other, *gone;
        struct world w;

        start(&w);
        client = come(&w, 1000, true);
        other = come(&w, 1001, true);
        for (unsigned i = 0; i < 8; i++)
                (void) client_hold(client);
        account_ready(client);
        account_ready(other);
        assert_ptr_equal(accounts_next(w.accounts), other);
        assert_null(accounts_next(w.accounts));
        (void) evtimer_del(w.turn);
        client_release(client);
        assert_true(evtimer_pending(w.turn, NULL));
        assert_ptr_equal(accounts_next(w.accounts), client);
        /* Also what was asked by those who have gone counts. */
        gone = client;
        leave(&w, client);
        client = come(&w, 1000, true);
        (void) client_hold(client);
        account_ready(client);
        assert_null(accounts_next(w.accounts));
        client_release(client);
        /* And may be answered after everything else has gone. */
        finish(&w);
        for (unsigned i = 0; i < 7; i++)
                client_release(gone);
}

/* Of all users together so many are open; root's do not count. */
static void test_open_requests_of_all(void **state) {
        struct client *clients[9], *root;
        struct world w;

        start(&w);
        for (unsigned u = 0; u < 9; u++) {
                clients[u] = come(&w, 1000 + u, true);
                for (unsigned i = 0; i < 7; i++)
                        (void) client_hold(clients[u]);
        }
        root = come(&w, 0, true);
        for (unsigned i = 0; i < 100; i++)
                (void) client_hold(root);
        account_ready(clients[0]);
        assert_ptr_equal(accounts_next(w.accounts), clients[0]);
        account_ready(clients[0]);
        (void) client_hold(clients[1]); /* the 64th */
        assert_null(accounts_next(w.accounts));
        client_release(clients[1]);
        assert_ptr_equal(accounts_next(w.accounts), clients[0]);
        for (unsigned u = 0; u < 9; u++)
                for (unsigned i = 0; i < 7; i++)
                        client_release(clients[u]);
        for (unsigned i = 0; i < 100; i++)
                client_release(root);
        finish(&w);
}

static void hold_bytes(struct world *w, struct client *client, size_t bytes) {
        struct conn_config config = { .magic = FRAME_MAGIC_LOCAL, .max_bytes = 1000, .type = &rm__local_request__descriptor };
        struct conn_ops ops = { 0 };
        int fds[2];

        config.meter = &client->account->meter;
        config.name = "test";
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        assert_int_equal(conn_create(w->base, fds[0], &config, &ops, client, &client->conn), 0);
        (void) close(fds[1]);
        conn_charge(client->conn, (ssize_t) bytes);
}

/* Whoever holds most memory goes: of one user over 8 MiB, or of the user who has most when all have 64 MiB. */
static void test_heaviest_goes(void **state) {
        struct client *small, *large, *others[12];
        struct world w;

        start(&w);
        small = come(&w, 1000, true);
        large = come(&w, 1000, true);
        hold_bytes(&w, small, 3U << 20);
        hold_bytes(&w, large, 5U << 20);
        assert_null(accounts_heaviest(w.accounts));
        conn_charge(small->conn, 1 << 20);
        assert_ptr_equal(accounts_heaviest(w.accounts), large);
        leave(&w, large);
        assert_null(accounts_heaviest(w.accounts));
        for (unsigned i = 0; i < 12; i++) {
                others[i] = come(&w, 2000 + i, true);
                hold_bytes(&w, others[i], (5U << 20) - 1000 + i);
        }
        assert_null(accounts_heaviest(w.accounts));
        conn_charge(small->conn, 1 << 16);
        assert_ptr_equal(accounts_heaviest(w.accounts), others[11]); /* not the one who came last */
        leave(&w, others[11]);
        assert_null(accounts_heaviest(w.accounts));
        /* Root's own budget is apart. */
        large = come(&w, 0, true);
        hold_bytes(&w, large, 60U << 20);
        assert_null(accounts_heaviest(w.accounts));
        conn_charge(large->conn, 5 << 20);
        assert_ptr_equal(accounts_heaviest(w.accounts), large);
        finish(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_silent_ones_push_out_their_own),
                cmocka_unit_test(test_one_user_has_so_many),
                cmocka_unit_test(test_newcomer_comes_in_where_all_is_full),
                cmocka_unit_test(test_equals_do_not_push_each_other_out),
                cmocka_unit_test(test_users_are_served_in_turn),
                cmocka_unit_test(test_open_requests_hold_up_their_own_user),
                cmocka_unit_test(test_open_requests_of_all),
                cmocka_unit_test(test_heaviest_goes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
