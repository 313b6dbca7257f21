/* Places of local clients: one user cannot take what others need, and root has its own. */
#include <errno.h>
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
        int deaf[16]; /* other ends, of which none reads */
        unsigned n_deaf;
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
        while (w->n_deaf > 0)
                (void) close(w->deaf[--w->n_deaf]);
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
        if (greets && !account_resync(client)) {
                leave(w, client);
                return NULL;
        }
        return client;
}

static struct client *next(struct world *w) {
        uint64_t wait_usec;

        return accounts_next(w->accounts, w->now_usec, &wait_usec);
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

/* All places are taken by users who have 64 each: who has none gets one, who has as many as they
 * does not. Root does not mind. */
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
        assert_ptr_equal(next(&w), hers[0]);
        assert_ptr_equal(next(&w), his);
        assert_ptr_equal(next(&w), hers[1]);
        account_ready(his);
        leave(&w, hers[2]); /* with a request waiting */
        assert_ptr_equal(next(&w), his);
        assert_null(next(&w));
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
        assert_ptr_equal(next(&w), other);
        assert_null(next(&w));
        (void) evtimer_del(w.turn);
        client_release(client);
        assert_true(evtimer_pending(w.turn, NULL));
        assert_ptr_equal(next(&w), client);
        /* Requests of clients that have left count, too. */
        gone = client;
        leave(&w, client);
        client = come(&w, 1000, true);
        (void) client_hold(client);
        account_ready(client);
        assert_null(next(&w));
        client_release(client);
        /* A request may be answered after all other objects have gone. */
        finish(&w);
        for (unsigned i = 0; i < 7; i++)
                client_release(gone);
}

/* The number of open requests of all users together is limited; root's do not count. */
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
        assert_ptr_equal(next(&w), clients[0]);
        account_ready(clients[0]);
        (void) client_hold(clients[1]); /* the 64th */
        assert_null(next(&w));
        client_release(clients[1]);
        assert_ptr_equal(next(&w), clients[0]);
        for (unsigned u = 0; u < 9; u++)
                for (unsigned i = 0; i < 7; i++)
                        client_release(clients[u]);
        for (unsigned i = 0; i < 100; i++)
                client_release(root);
        finish(&w);
}

/* The socket is full, and nobody reads from it: what is sent to the client stays in memory. */
static void connect_deaf(struct world *w, struct client *client) {
        struct conn_config config = { .magic = FRAME_MAGIC_LOCAL, .max_bytes = 100U << 20, .type = &rm__local_request__descriptor };
        struct conn_ops ops = { 0 };
        static const char data[4096];
        int fds[2];

        config.meter = &client->account->meter;
        config.name = "test";
        assert_true(w->n_deaf < ARRAY_SIZE(w->deaf));
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        while (send(fds[0], data, sizeof(data), MSG_DONTWAIT) > 0)
                ;
        w->deaf[w->n_deaf++] = fds[1];
        assert_int_equal(conn_create(w->base, fds[0], &config, &ops, client, &client->conn), 0);
        assert_int_equal(event_base_loop(w->base, EVLOOP_NONBLOCK), 0);
}

/* A frame of so many bytes. */
static void hold_more(struct client *client, size_t bytes) {
        Rm__DrainNode body = RM__DRAIN_NODE__INIT;
        cleanup_free char *text = xcalloc(1, bytes + 1);

        memset(text, 'x', bytes);
        body.reason = text;
        text[2 * bytes - FRAME_HEADER_BYTES - rm__drain_node__get_packed_size(&body)] = '\0';
        assert_int_equal(FRAME_HEADER_BYTES + rm__drain_node__get_packed_size(&body), bytes);
        assert_int_equal(conn_send(client->conn, &body.base), 0);
}

static void hold_bytes(struct world *w, struct client *client, size_t bytes) {
        connect_deaf(w, client);
        hold_more(client, bytes);
        assert_int_equal(conn_held_bytes(client->conn), bytes);
}

/* The client that holds most memory goes: of one user over 8 MiB, or of the user who has most when
 * all have 64 MiB. */
static void test_heaviest_goes(void **state) {
        struct client *small, *large, *others[12];
        struct world w;

        start(&w);
        small = come(&w, 1000, true);
        large = come(&w, 1000, true);
        hold_bytes(&w, small, 3U << 20);
        hold_bytes(&w, large, 5U << 20);
        assert_null(accounts_heaviest(w.accounts));
        hold_more(small, 1U << 20);
        assert_ptr_equal(accounts_heaviest(w.accounts), large);
        leave(&w, large);
        assert_null(accounts_heaviest(w.accounts));
        for (unsigned i = 0; i < 12; i++) {
                others[i] = come(&w, 2000 + i, true);
                hold_bytes(&w, others[i], (5U << 20) - 1000 + i);
        }
        assert_null(accounts_heaviest(w.accounts));
        hold_more(small, 1U << 16);
        assert_ptr_equal(accounts_heaviest(w.accounts), others[11]); /* not the one who came last */
        leave(&w, others[11]);
        assert_null(accounts_heaviest(w.accounts));
        /* Root's own budget is apart. */
        large = come(&w, 0, true);
        hold_bytes(&w, large, 60U << 20);
        assert_null(accounts_heaviest(w.accounts));
        hold_more(large, 5U << 20);
        assert_ptr_equal(accounts_heaviest(w.accounts), large);
        finish(&w);
}

/* ---- carried requests, and what users take of the processor and of the log ---- */

static struct client *come_carried(struct world *w, uid_t uid) {
        struct client *client = client_create(NULL, uid, uid);

        account_join_forwarded(w->accounts, client, ACCOUNT_FORWARDED);
        w->all[w->n++] = client;
        return client;
}

static int put(struct client *client, uint32_t id, size_t bytes) {
        cleanup_free char *text = xcalloc(1, bytes + 1);
        Rm__DrainNode body = RM__DRAIN_NODE__INIT;
        Rm__LocalRequest request = RM__LOCAL_REQUEST__INIT;

        memset(text, 'x', bytes);
        body.reason = text;
        request.id = id;
        request.body_case = RM__LOCAL_REQUEST__BODY_DRAIN_NODE;
        request.drain_node = &body;
        return account_put_request(client, &request);
}

static uint32_t take(struct client *client) {
        Rm__LocalRequest *request = account_take_request(client);
        uint32_t id = request->id;

        rm__local_request__free_unpacked(request, NULL);
        return id;
}

/* As the service does: each request takes `work_usec`, and whoever was served has the next one
 * ready. What `only` this user got (0: all did). */
static uint64_t work_for(struct world *w, uint64_t usec, uint64_t work_usec, uid_t only) {
        uint64_t end_usec = w->now_usec + usec, spent_usec = 0, wait_usec = 0;

        while (w->now_usec < end_usec) {
                struct client *client = accounts_next(w->accounts, w->now_usec, &wait_usec);
                enum account_way way;
                uint64_t all_usec;

                if (!client) {
                        w->now_usec += wait_usec;
                        continue;
                }
                if (client->way == ACCOUNT_FORWARDED)
                        (void) take(client);
                way = client->way;
                all_usec = work_usec + (client->way == ACCOUNT_FORWARDED ? 80 : 25); /* it has to be read and answered, too */
                w->now_usec += all_usec;
                account_charge_request(client->account, way, w->now_usec, work_usec);
                if (only == 0 || client->uid == only)
                        spent_usec += all_usec;
                if (client->way == ACCOUNT_FORWARDED)
                        assert_int_equal(put(client, 1, 10), 0);
                else
                        account_ready(client);
        }
        return spent_usec;
}

/* A user asks by the socket, and from 50 other nodes at once. */
static void test_user_who_floods_takes_a_share_of_the_processor(void **state) {
        struct client *client, *hers;
        uint64_t spent_usec;
        struct world w;

        start(&w);
        w.now_usec = 1000000;
        for (unsigned i = 0; i < 8; i++)
                account_ready(come(&w, 1000, true));
        for (unsigned i = 0; i < 50 * 8; i++)
                assert_int_equal(put(come_carried(&w, 1000), i, 10), 0);
        spent_usec = work_for(&w, 1000000, 100, 0);
        assert_in_range(spent_usec, 1000000 / 6 - 5000, 1000000 / 6 + 5000);
        /* A user who asks once need not wait until the other may again. */
        hers = come_carried(&w, 1001);
        assert_int_equal(put(hers, 7, 10), 0);
        client = next(&w);
        if (client->uid == 1000) {
                account_charge_request(client->account, ACCOUNT_LOCAL, w.now_usec, 100);
                if (client->way == ACCOUNT_FORWARDED)
                        (void) take(client);
                client = next(&w); /* at most one of the other's comes before it */
        }
        assert_ptr_equal(client, hers);
        assert_int_equal(take(hers), 7);
        /* Large requests do not get more, nor leaving and coming again. */
        spent_usec = work_for(&w, 10000000, 20000, 1000);
        assert_in_range(spent_usec, 10000000 / 6 - 120000, 10000000 / 6 + 20000);
        finish(&w);
}

static void test_users_together_leave_two_thirds_of_the_processor(void **state) {
        uint64_t spent_usec, one_usec;
        struct world w;

        start(&w);
        w.now_usec = 1000000;
        for (unsigned u = 0; u < 10; u++)
                for (unsigned i = 0; i < 8; i++)
                        assert_int_equal(put(come_carried(&w, 1000 + u), i, 10), 0);
        for (unsigned i = 0; i < 60; i++) /* more clients get no more turns */
                account_ready(come(&w, 1009, true));
        spent_usec = work_for(&w, 1000000, 100, 0);
        assert_in_range(spent_usec, 1000000 / 3 - 5000, 1000000 / 3 + 10000);
        one_usec = work_for(&w, 1000000, 100, 1009);
        assert_in_range(one_usec, 25000, 1000000 / 30 + 2000); /* its local ones take less each */
        finish(&w);
}

/* A script that submits 100 jobs, one after the other, never waits, and nor do 50 commands that are
 * begun at once. */
static void test_script_is_not_held_up(void **state) {
        uint64_t wait_usec;
        struct client *client;
        struct world w;

        start(&w);
        w.now_usec = 1000000;
        client = come(&w, 1000, true);
        for (unsigned i = 0; i < 100; i++) {
                account_ready(client);
                assert_ptr_equal(accounts_next(w.accounts, w.now_usec, &wait_usec), client);
                w.now_usec += 3000; /* a process is started, and the log written */
                account_charge_request(client->account, ACCOUNT_LOCAL, w.now_usec, 300);
                accounts_charge_change(w.accounts, 1000, w.now_usec);
        }
        w.now_usec += 10000;
        for (unsigned i = 0; i < 7; i++)
                account_ready(come(&w, 1000, true));
        for (unsigned i = 0; i < 7; i++) {
                assert_non_null(client = accounts_next(w.accounts, w.now_usec, &wait_usec));
                account_charge_request(client->account, ACCOUNT_LOCAL, w.now_usec, 300);
        }
        finish(&w);
}

/* A user whose requests have changed the state 1,000 times at once may do so 50 times a second,
 * also if he leaves and comes again. */
static void test_user_who_floods_the_log_waits(void **state) {
        uint64_t wait_usec = 0;
        struct client *client;
        struct world w;
        unsigned changes = 0;

        start(&w);
        w.now_usec = 1000000;
        client = come(&w, 1000, true);
        for (uint64_t end_usec = w.now_usec + 10000000; w.now_usec < end_usec; w.now_usec += 1000) {
                account_ready(client);
                if (!next(&w))
                        continue;
                changes += 4; /* three other nodes have let him, too */
                for (unsigned i = 0; i < 4; i++)
                        accounts_charge_change(w.accounts, 1000, w.now_usec);
        }
        assert_in_range(changes, 1000 + 50 * 9, 1000 + 50 * 11);
        leave(&w, client);
        assert_non_null(come(&w, 1001, true)); /* accounts without clients go by that */
        client = come(&w, 1000, true);
        account_ready(client);
        assert_null(accounts_next(w.accounts, w.now_usec, &wait_usec));
        assert_in_range(wait_usec, 1, 200000);
        assert_ptr_equal(accounts_next(w.accounts, w.now_usec + wait_usec, &wait_usec), client);
        finish(&w);
}

/* At two nodes a user has as many requests open as he may, each of which waits for the other node:
 * these are answered. */
static void test_nodes_do_not_wait_for_each_other(void **state) {
        struct client *local, *carried, *attached;
        struct world w;

        start(&w);
        local = come(&w, 1000, true);
        for (unsigned i = 0; i < 8; i++)
                (void) client_hold(local);
        account_ready(local);
        carried = come_carried(&w, 1000);
        assert_int_equal(put(carried, 1, 10), 0);
        assert_int_equal(put(carried, 2, 10), 0);
        assert_ptr_equal(next(&w), carried);
        assert_int_equal(take(carried), 1);
        for (unsigned i = 0; i < 8; i++)
                (void) client_hold(carried);
        assert_null(next(&w)); /* eight of them wait for the log here */
        /* Nor does the output of a job wait for them, which its front end acknowledges from another
         * node. */
        attached = client_create(NULL, 1000, 1000);
        account_join_forwarded(w.accounts, attached, ACCOUNT_ATTACHED);
        w.all[w.n++] = attached;
        assert_int_equal(put(attached, 3, 10), 0);
        assert_ptr_equal(next(&w), attached);
        assert_int_equal(take(attached), 3);
        client_release(carried);
        assert_ptr_equal(next(&w), carried);
        assert_int_equal(take(carried), 2);
        for (unsigned i = 0; i < 7; i++)
                client_release(carried);
        for (unsigned i = 0; i < 8; i++)
                client_release(local);
        finish(&w);
}

/* Carried requests that wait take as much memory as connections may: 8 MiB of one user, 64 MiB of
 * all, however small they are. */
static void test_carried_requests_that_wait_are_limited(void **state) {
        struct client *client, *other;
        unsigned n = 0;
        struct world w;

        start(&w);
        client = come_carried(&w, 1000);
        for (unsigned i = 0; i < 7; i++)
                assert_int_equal(put(client, i, 1U << 20), 0);
        assert_int_equal(put(client, 8, (1U << 20) + 10000), -EDQUOT);
        assert_int_equal(put(come_carried(&w, 1000), 8, 2U << 20), -EDQUOT); /* from another node */
        other = come_carried(&w, 1001);
        while (put(other, n, 0) == 0)
                n++;
        assert_in_range(n, 10000, 16384);
        assert_int_equal(take(client), 0);
        assert_int_equal(put(client, 8, 1U << 20), 0);
        leave(&w, client); /* with what waits */
        client = come_carried(&w, 1000);
        for (unsigned i = 0; i < 7; i++)
                assert_int_equal(put(client, i, 1U << 20), 0);
        for (unsigned u = 0; u < 6; u++) {
                client = come_carried(&w, 2000 + u);
                for (unsigned i = 0; i < 7; i++)
                        assert_int_equal(put(client, i, 1U << 20), 0);
        }
        n = 0;
        client = come_carried(&w, 3000);
        while (put(client, n, 1U << 20) == 0)
                n++;
        assert_in_range(n, 5, 7);
        finish(&w);
}

/* Clients of other nodes may leave after the service has ended. */
static void test_carried_ones_outlive_the_accounts(void **state) {
        struct client *client, *held;
        struct world w;

        start(&w);
        client = client_create(NULL, 1000, 1000);
        account_join_forwarded(w.accounts, client, ACCOUNT_FORWARDED);
        held = client_create(NULL, 1000, 1000);
        account_join_forwarded(w.accounts, held, ACCOUNT_FORWARDED);
        assert_int_equal(put(client, 1, 10), 0);
        (void) client_hold(held);
        finish(&w);
        assert_int_equal(put(client, 2, 10), -EDQUOT);
        account_leave(client);
        client_leave(client);
        account_leave(held);
        client_leave(held);
        client_release(held);
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
                cmocka_unit_test(test_user_who_floods_takes_a_share_of_the_processor),
                cmocka_unit_test(test_users_together_leave_two_thirds_of_the_processor),
                cmocka_unit_test(test_script_is_not_held_up),
                cmocka_unit_test(test_user_who_floods_the_log_waits),
                cmocka_unit_test(test_nodes_do_not_wait_for_each_other),
                cmocka_unit_test(test_carried_requests_that_wait_are_limited),
                cmocka_unit_test(test_carried_ones_outlive_the_accounts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
