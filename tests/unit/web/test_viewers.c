/* Viewers of the page: who sees what, in which order and how often, and what a slow one is sent.
 * HTTP and streams are the real ones; in the place of rmd's requests are a few jobs with owners, of
 * which each client gets those that it may see. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/util.h"
#include "daemon/client/client.h"
#include "daemon/client/users.h"
#include "daemon/cluster/cluster.h"
#include "daemon/config/config.h"
#include "daemon/requests/requests.h"
#include "daemon/requests/service.h"
#include "daemon/web/viewers.h"

#define ALICE 1000U
#define BOB 1001U
#define ADMIN 1002U
#define LONG_USEC UINT64_C(20000000)
#define PASS_USEC UINT64_C(250000) /* as in viewers.c */

struct fixture {
        struct rmd rmd;
        struct config config;
        Rm__State state;
        struct http *http;
        struct viewers *viewers;
        struct {
                uint64_t id;
                uid_t uid;
                const char *reason;
                uint64_t loss_usec;
        } jobs[5];
        size_t n_jobs, page_jobs;
        size_t status_bytes; /* of a warning */
        int users_error; /* of the user data base; 0: it answers */
        bool leader_silent, leader_lost;
        uint64_t end_usec; /* of streams */
        uint64_t since; /* the events that were asked for last */
        unsigned asked_jobs, asked_use, clients;
};

/* ---- the rest of rmd ---- */

static struct fixture *fixture_of(const struct rmd *rmd) {
        return (struct fixture *) rmd->cluster;
}

const Rm__State *cluster_state(const struct cluster *cluster) {
        return &((const struct fixture *) cluster)->state;
}

bool cluster_is_leader(const struct cluster *cluster) {
        return true;
}

struct users *service_users(struct service *service) {
        return (struct users *) service;
}

int users_find(struct users *users, uid_t uid, gid_t gid, const struct user **ret_user) {
        static const struct user plain = { .name = "user" }, admin = { .name = "admin", .admin = true };
        const struct fixture *f = (const struct fixture *) users;

        *ret_user = uid == ADMIN || uid == 0 ? &admin : &plain;
        return f->users_error;
}

struct client *client_create(struct rmd *rmd, uid_t uid, gid_t gid) {
        struct client *client = xcalloc(1, sizeof(*client));

        client->rmd = rmd;
        client->uid = uid;
        client->admin = uid == 0;
        fixture_of(rmd)->clients++;
        return client;
}

void client_identify(struct client *client, const struct user *user) {
        client->admin = user->admin;
        client->identified = true;
}

void client_leave(struct client *client) {
        fixture_of(client->rmd)->clients--;
        free(client);
}

void events_publish(struct client *client) {
}

struct patience waiting_begin(void) {
        return (struct patience) { 0 };
}

static void reply_jobs(const struct fixture *f, const struct client *client, uint64_t after, Rm__LocalReply *reply) {
        Rm__JobList list = RM__JOB_LIST__INIT;
        Rm__JobView views[ARRAY_SIZE(f->jobs)], *pointers[ARRAY_SIZE(f->jobs)];
        Rm__Job jobs[ARRAY_SIZE(f->jobs)];

        list.jobs = pointers;
        for (size_t i = 0; i < f->n_jobs; i++) {
                if (f->jobs[i].id <= after || (!client->admin && f->jobs[i].uid != client->uid))
                        continue;
                list.more = list.n_jobs == f->page_jobs;
                if (list.more)
                        break;
                rm__job__init(&jobs[list.n_jobs]);
                jobs[list.n_jobs].id = f->jobs[i].id;
                jobs[list.n_jobs].reason = (char *) f->jobs[i].reason;
                rm__job_view__init(&views[list.n_jobs]);
                views[list.n_jobs].job = &jobs[list.n_jobs];
                views[list.n_jobs].expected_loss_usec = f->jobs[i].loss_usec;
                pointers[list.n_jobs] = &views[list.n_jobs];
                list.n_jobs++;
        }
        reply->body_case = RM__LOCAL_REPLY__BODY_JOBS;
        reply->jobs = &list;
        client->sink->reply(client->sink->userdata, reply);
}

static void reply_nodes(const struct client *client, Rm__LocalReply *reply) {
        Rm__NodeList list = RM__NODE_LIST__INIT;
        Rm__NodeView view = RM__NODE_VIEW__INIT, *pointer = &view;
        Rm__Node node = RM__NODE__INIT;

        node.name = (char *) "n1";
        view.node = &node;
        list.nodes = &pointer;
        list.n_nodes = 1;
        reply->body_case = RM__LOCAL_REPLY__BODY_NODES;
        reply->nodes = &list;
        client->sink->reply(client->sink->userdata, reply);
}

static void reply_status(const struct fixture *f, const struct client *client, Rm__LocalReply *reply) {
        Rm__Status status = RM__STATUS__INIT;
        cleanup_free char *warning = xcalloc(1, f->status_bytes + 1);
        char *warnings[] = { warning };

        memset(warning, 'x', f->status_bytes);
        status.warnings = warnings;
        status.n_warnings = 1;
        reply->body_case = RM__LOCAL_REPLY__BODY_STATUS;
        reply->status = &status;
        client->sink->reply(client->sink->userdata, reply);
}

static void reply_use(struct fixture *f, const struct client *client, Rm__LocalReply *reply) {
        Rm__Use use = RM__USE__INIT;
        Rm__Error error = RM__ERROR__INIT;

        f->asked_use++;
        if (f->leader_silent)
                return;
        error.text = (char *) "there is no leader";
        reply->body_case = f->leader_lost ? RM__LOCAL_REPLY__BODY_ERROR : RM__LOCAL_REPLY__BODY_USE;
        if (f->leader_lost)
                reply->error = &error;
        else
                reply->use = &use;
        client->sink->reply(client->sink->userdata, reply);
}

static void reply_events(struct fixture *f, const struct client *client, uint64_t since, Rm__LocalReply *reply) {
        Rm__EventList list = RM__EVENT_LIST__INIT;

        f->since = since;
        reply->body_case = RM__LOCAL_REPLY__BODY_EVENTS;
        reply->events = &list;
        client->sink->reply(client->sink->userdata, reply);
}

/* Nothing may be asked for somebody of whom it is not known who he is, while that can be had. */
void request_dispatch(struct client *client, const Rm__LocalRequest *request, struct patience patience) {
        struct fixture *f = fixture_of(client->rmd);
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;

        assert_true(client->identified || f->users_error == -ETIMEDOUT);
        switch (request->body_case) {
        case RM__LOCAL_REQUEST__BODY_LIST_NODES:
                reply_nodes(client, &reply);
                break;
        case RM__LOCAL_REQUEST__BODY_LIST_JOBS:
                f->asked_jobs++;
                reply_jobs(f, client, request->list_jobs->after, &reply);
                break;
        case RM__LOCAL_REQUEST__BODY_GET_STATUS:
                reply_status(f, client, &reply);
                break;
        case RM__LOCAL_REQUEST__BODY_GET_USE:
                reply_use(f, client, &reply);
                break;
        case RM__LOCAL_REQUEST__BODY_FOLLOW_EVENTS:
                reply_events(f, client, request->follow_events->since, &reply);
                break;
        default:
                break;
        }
}

/* ---- a browser ---- */

struct browser {
        int fd;
        bool closed; /* by rmd */
        char text[1 << 20]; /* what has come */
        size_t bytes;
};

static void answer(void *context, const struct http_request *request, struct http_answer *ret) {
        struct fixture *f = context;
        const char *since = http_request_argument(request, "since");
        const struct viewer_wish wish = { request->uid, since ? strtoull(since, NULL, 10) : 0, f->end_usec };

        ret->stream = viewers_add(f->viewers, f->http, &wish);
        ret->status = ret->stream ? 200 : 503;
        ret->type = "text/event-stream";
        ret->text = "too many\n";
}

static int set_up(void **state) {
        const struct http_limits limits = { .connections = 8,
                                            .connections_all = 16,
                                            .requests = { .usec_each = 1000, .burst = 100 },
                                            .life_usec = LONG_USEC,
                                            .streams = 2,
                                            .streams_all = 4,
                                            .stream_bytes = 1 << 20 };
        struct fixture *f = xcalloc(1, sizeof(*f));

        rm__state__init(&f->state);
        f->config.node_name = (char *) "n1";
        f->config.cluster_name = (char *) "rmd";
        f->rmd = (struct rmd) {
                .base = event_base_new(), .config = &f->config, .cluster = (struct cluster *) f, .service = (struct service *) f
        };
        f->page_jobs = 2;
        f->end_usec = UINT64_MAX;
        f->jobs[0].id = 1, f->jobs[0].uid = ALICE, f->jobs[0].reason = "of-alice";
        f->jobs[1].id = 2, f->jobs[1].uid = BOB, f->jobs[1].reason = "of-bob";
        f->n_jobs = 2;
        f->viewers = viewers_create(&f->rmd);
        *state = f;
        return http_create(f->rmd.base, &limits, answer, f, &f->http, NULL);
}

/* The end of the server ends all streams, and no client of a viewer is left. */
static int tear_down(void **state) {
        struct fixture *f = *state;
        unsigned left;

        http_destroy(f->http);
        viewers_destroy(f->viewers);
        event_base_free(f->rmd.base);
        left = f->clients;
        free(f);
        return left == 0 ? 0 : -1;
}

static struct browser *scan(struct fixture *f, uid_t uid, const char *query) {
        struct browser *b = xcalloc(1, sizeof(*b));
        cleanup_free char *request = xasprintf("GET /stream%s HTTP/1.0\r\nHost: localhost\r\n\r\n", query);
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
        assert_true(http_add(f->http, pair[1], uid, false));
        b->fd = pair[0];
        assert_int_equal(send(b->fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t) strlen(request));
        return b;
}

static void leave(struct browser *b) {
        (void) close(b->fd);
        free(b);
}

static void browser_read(struct browser *b) {
        ssize_t n = recv(b->fd, b->text + b->bytes, sizeof(b->text) - 1 - b->bytes, 0);

        assert_true(b->bytes + 1 < sizeof(b->text));
        b->closed |= n == 0 || (n < 0 && errno != EAGAIN);
        b->bytes += n > 0 ? (size_t) n : 0;
}

static unsigned count(const struct browser *b, const char *text) {
        unsigned n = 0;

        for (const char *at = b->text; (at = strstr(at, text)); at++)
                n++;
        return n;
}

/* Runs rmd's loop until the text has come so many times. */
static void await(struct fixture *f, struct browser *b, const char *text, unsigned times) {
        uint64_t end_usec = now_usec() + LONG_USEC;

        while (count(b, text) < times && now_usec() < end_usec) {
                (void) event_base_loop(f->rmd.base, EVLOOP_NONBLOCK);
                browser_read(b);
                assert_true(!b->closed || count(b, text) >= times);
        }
        if (count(b, text) < times)
                fail_msg("'%s' has not come %u times in: %s", text, times, b->text);
}

static void run_for(struct fixture *f, uint64_t usec) {
        uint64_t end_usec = now_usec() + usec;

        while (now_usec() < end_usec)
                (void) event_base_loop(f->rmd.base, EVLOOP_NONBLOCK);
}

static void await_pass(struct fixture *f, struct browser *b) {
        b->bytes = 0;
        memset(b->text, 0, sizeof(b->text));
        viewers_wake(f->viewers);
        await(f, b, "event: pass\n", 1);
}

/* ---- who sees what ---- */

static void test_own_jobs(void **state) {
        static const struct {
                uid_t uid;
                bool alices, bobs;
        } rows[] = {
                { ALICE, true, false }, { BOB, false, true }, { 1003, false, false }, { ADMIN, true, true }, { 0, true, true }
        };
        struct fixture *f = *state;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct browser *b = scan(f, rows[i].uid, "");

                await(f, b, "event: pass\n", 1);
                assert_int_equal(count(b, "of-alice"), rows[i].alices);
                assert_int_equal(count(b, "of-bob"), rows[i].bobs);
                assert_int_equal(count(b, "\"admin\":true"), rows[i].uid == ADMIN || rows[i].uid == 0);
                leave(b);
        }
}

/* An administrator is not shown his own jobs as if these were all, while the data base is asked;
 * where it does not answer he is nobody special. */
static void test_slow_user_data_base(void **state) {
        struct fixture *f = *state;
        struct browser *b;

        f->users_error = -EAGAIN;
        b = scan(f, ADMIN, "");
        run_for(f, 300000);
        browser_read(b);
        assert_null(strstr(b->text, "event:"));
        f->users_error = 0;
        await(f, b, "event: pass\n", 1);
        assert_int_equal(count(b, "of-bob"), 1);
        leave(b);
        f->users_error = -ETIMEDOUT;
        b = scan(f, ADMIN, "");
        await(f, b, "event: pass\n", 1);
        assert_int_equal(count(b, "of-bob"), 0);
        assert_int_equal(count(b, "\"admin\":false"), 1);
        leave(b);
}

/* ---- what is sent ---- */

static void test_order(void **state) {
        static const char *const events[] = { "hello", "events", "nodes", "jobs", "status", "use", "pass" };
        struct fixture *f = *state;
        struct browser *b = scan(f, ALICE, "");
        const char *at = b->text;

        await(f, b, "event: pass\n", 1);
        for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
                cleanup_free char *line = xasprintf("event: %s\ndata: {", events[i]);

                at = strstr(at, line);
                if (!at)
                        fail_msg("no %s in its place: %s", events[i], b->text);
        }
        assert_int_equal(count(b, "event: "), ARRAY_SIZE(events));
        /* A proxy in between is told to pass on each piece as it comes. */
        assert_int_equal(count(b, "X-Accel-Buffering: no\r\n"), 1);
        leave(b);
}

static void test_long_lists(void **state) {
        struct fixture *f = *state;
        struct browser *b;

        for (f->n_jobs = 0; f->n_jobs < ARRAY_SIZE(f->jobs); f->n_jobs++) {
                f->jobs[f->n_jobs].id = f->n_jobs + 1;
                f->jobs[f->n_jobs].uid = ALICE;
                f->jobs[f->n_jobs].reason = "long";
        }
        b = scan(f, ALICE, "");
        await(f, b, "event: pass\n", 1);
        assert_int_equal(count(b, "\"reason\":\"long\""), ARRAY_SIZE(f->jobs));
        assert_int_equal(f->asked_jobs, 3);
        leave(b);
}

/* A job that only loses more if its node is lost is as it was, since that grows with time. */
static void test_only_what_is_new(void **state) {
        struct fixture *f = *state;
        struct browser *b = scan(f, ADMIN, "");

        await(f, b, "event: pass\n", 1);
        f->jobs[0].loss_usec = 5000000;
        await_pass(f, b);
        assert_int_equal(count(b, "event: jobs") + count(b, "event: nodes") + count(b, "event: gone"), 0);
        f->jobs[1].reason = "of-bob-again";
        await_pass(f, b);
        assert_int_equal(count(b, "of-bob-again"), 1);
        assert_int_equal(count(b, "of-alice"), 0);
        f->n_jobs = 1;
        await_pass(f, b);
        assert_int_equal(count(b, "event: gone\ndata: {\"jobs\":[\"2\"]}"), 1);
        assert_int_equal(count(b, "event: jobs"), 0);
        leave(b);
}

/* A page that comes back gets the events that it has missed, as long as they are there. */
static void test_events_since(void **state) {
        static const struct {
                const char *query;
                uint64_t since;
        } rows[] = { { "", 700 }, { "?since=5", 700 }, { "?since=900", 900 }, { "?since=1000", 1000 }, { "?since=1001", 700 } };
        struct fixture *f = *state;

        f->state.index = 1000;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct browser *b = scan(f, ALICE, rows[i].query);

                await(f, b, "event: pass\n", 1);
                assert_int_equal(f->since, rows[i].since);
                leave(b);
        }
}

/* A leader that does not answer is asked once, and holds nothing up. */
static void test_leader_gone(void **state) {
        struct fixture *f = *state;
        struct browser *b;

        f->leader_silent = true;
        b = scan(f, ALICE, "");
        await(f, b, "event: pass\n", 1);
        await_pass(f, b);
        assert_int_equal(f->asked_use, 1);
        assert_int_equal(count(b, "event: use"), 0);
        leave(b);
        f->leader_silent = false;
        f->leader_lost = true;
        b = scan(f, ALICE, "");
        await(f, b, "event: pass\n", 1);
        assert_int_equal(count(b, "event: no-use\ndata: {\"text\":\"there is no leader\"}"), 1);
        f->leader_lost = false;
        await_pass(f, b);
        assert_int_equal(count(b, "event: use"), 1);
        leave(b);
}

/* ---- how often, and how many ---- */

static void test_many_changes(void **state) {
        struct fixture *f = *state;
        struct browser *b = scan(f, ALICE, "");
        uint64_t begin_usec, passed;

        await(f, b, "event: pass\n", 1);
        begin_usec = now_usec();
        for (unsigned i = 0; i < 1000; i++) {
                viewers_wake(f->viewers);
                run_for(f, 1000);
        }
        browser_read(b);
        passed = now_usec() - begin_usec;
        assert_in_range(count(b, "event: pass\n"), 2, 2 + passed / PASS_USEC);
        leave(b);
}

/* A viewer who does not read is sent no more, others go on, and once he reads he sees how it is
 * now. */
static void test_slow_viewer(void **state) {
        struct fixture *f = *state;
        struct browser *slow, *other;
        unsigned asked;

        f->status_bytes = 400000; /* more than a socket takes */
        slow = scan(f, ALICE, "");
        run_for(f, 100000);
        f->status_bytes = 0;
        other = scan(f, BOB, "");
        await(f, other, "event: pass\n", 1);
        asked = f->asked_jobs;
        f->jobs[0].reason = "missed";
        await_pass(f, other);
        f->jobs[0].reason = "newest";
        await_pass(f, other);
        assert_int_equal(f->asked_jobs - asked, 2); /* both of them for the other one */
        await(f, slow, "newest", 1);
        assert_int_equal(count(slow, "missed"), 0);
        leave(slow);
        leave(other);
}

static void test_limits(void **state) {
        struct fixture *f = *state;
        struct browser *first = scan(f, ALICE, ""), *second = scan(f, ALICE, ""), *third = scan(f, ALICE, ""), *bobs;

        await(f, second, "event: pass\n", 1);
        await(f, third, "HTTP/1.1 503 ", 1);
        assert_int_equal(f->clients, 2);
        bobs = scan(f, BOB, "");
        await(f, bobs, "event: pass\n", 1);
        leave(third);
        leave(first);
        for (unsigned i = 0; i < 1000 && f->clients > 2; i++)
                run_for(f, 1000);
        third = scan(f, ALICE, "");
        await(f, third, "event: pass\n", 1);
        leave(second);
        leave(third);
        leave(bobs);
}

static void test_session_ends(void **state) {
        struct fixture *f = *state;
        struct browser *b;

        f->end_usec = now_usec();
        b = scan(f, ALICE, "");
        for (uint64_t end_usec = now_usec() + LONG_USEC; !b->closed && now_usec() < end_usec; browser_read(b))
                (void) event_base_loop(f->rmd.base, EVLOOP_NONBLOCK);
        assert_true(b->closed);
        assert_int_equal(f->clients, 0);
        leave(b);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_own_jobs, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_slow_user_data_base, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_order, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_long_lists, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_only_what_is_new, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_events_since, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_leader_gone, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_many_changes, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_slow_viewer, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_limits, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_session_ends, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
