/* The logs of three voters with libraft between them, over its own TCP transport and with short timeouts: who leads, and what is told of it.
 * The functions of libraft below take the place of its own for raftlog.c, which has no transport yet. */
#include "cluster_test.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <raft.h>
#include <raft/uv.h>
#include <sys/socket.h>

#include "daemon/cluster/commands.h"
#include "daemon/cluster/raftlog.h"
#include "daemon/cluster/voter.h"

#define VOTERS 3
#define LOG_ID 99U

static struct raft_uv_transport transports[32];
static size_t n_transports;

static int real_uv_init(struct raft_io *io, struct uv_loop_s *loop, const char *dir, struct raft_uv_transport *transport) {
        int (*init)(struct raft_io *, struct uv_loop_s *, const char *, struct raft_uv_transport *);

        *(void **) &init = dlsym(RTLD_NEXT, "raft_uv_init");
        assert_non_null(init);
        return init(io, loop, dir, transport);
}

int raft_uv_init(struct raft_io *io, struct uv_loop_s *loop, const char *dir, struct raft_uv_transport *transport) {
        assert_true(n_transports < ARRAY_SIZE(transports));
        assert_int_equal(raft_uv_tcp_init(transport, loop), 0);
        transports[n_transports++] = *transport;
        return real_uv_init(io, loop, dir, transport);
}

void raft_set_election_timeout(struct raft *r, unsigned msecs) {
        r->election_timeout = 400;
}

void raft_set_heartbeat_timeout(struct raft *r, unsigned msecs) {
        r->heartbeat_timeout = 50;
}

struct server {
        struct raftlog *log;
        char *dir;
        char address[32];
        Rm__State *state; /* as of the last command applied */
        unsigned applied;
        unsigned roles;
        unsigned applied_when_told; /* that it leads */
};

struct servers {
        struct event_base *base;
        char dir[64];
        struct server list[VOTERS];
};

static int on_apply(void *userdata, uint64_t index, const Rm__Command *command, struct raftlog_outcome *ret) {
        struct server *voter = userdata;

        voter->applied++;
        voter->state->index = index;
        return 0;
}

static int on_restore(void *userdata, Rm__State *state, struct rm_error *err) {
        struct server *voter = userdata;

        rm__state__free_unpacked(voter->state, NULL);
        voter->state = state;
        return 0;
}

static void on_failed(void *userdata, const struct rm_error *why) {
        fail_msg("%s", why->text);
}

static const Rm__State *get_state(void *userdata) {
        return ((struct server *) userdata)->state;
}

static void on_role(void *userdata) {
        struct server *voter = userdata;

        voter->roles++;
        if (raftlog_leading(voter->log))
                voter->applied_when_told = voter->applied;
}

static void open_log(struct servers *v, int i) {
        static const struct raftlog_ops ops = {
                .on_apply = on_apply, .on_restore = on_restore, .on_failed = on_failed, .get_state = get_state, .on_role = on_role
        };
        struct server *voter = &v->list[i];
        struct rm_error err = { 0 };

        voter->applied = voter->roles = 0;
        voter->state = state_create("testers");
        if (raftlog_open(v->base, voter->dir, voter->address, 1024, &ops, voter, &voter->log, &err) < 0)
                fail_msg("%s", err.text);
}

static void close_log(struct server *voter) {
        raftlog_close(take_ptr(voter->log));
        rm__state__free_unpacked(voter->state, NULL);
        voter->state = NULL;
}

static void find_address(struct server *voter) {
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(address);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_int_equal(bind(fd, (struct sockaddr *) &address, sizeof(address)), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *) &address, &size), 0);
        (void) snprintf(voter->address, sizeof(voter->address), "127.0.0.1:%u", ntohs(address.sin_port));
        (void) close(fd);
}

static void on_closed(struct raft *raft) {
        *(bool *) raft->data = true;
}

/* A log with all three voters, as a later version makes it by adding them one by one. */
static void make_log(struct servers *v, int i) {
        struct server *voter = &v->list[i];
        cleanup_free char *log = xasprintf("%s/log", voter->dir), *path = xasprintf("%s/voter", voter->dir);
        cleanup_free char *text = xasprintf("rmd-log 2\n%016x %016x\n", i + 1, LOG_ID);
        struct raft_uv_transport transport = { .version = 1 };
        struct raft_configuration configuration;
        struct raft_fsm fsm = { .version = 1 };
        struct raft_io io;
        struct raft raft;
        uv_loop_t loop;
        bool closed = false;

        assert_int_equal(mkdir_p(log, 0700), 0);
        assert_int_equal(write_file_atomic(path, text, strlen(text), 0600, false), 0);
        assert_int_equal(uv_loop_init(&loop), 0);
        assert_int_equal(raft_uv_init(&io, &loop, log, &transport), 0);
        assert_int_equal(raft_init(&raft, &io, &fsm, (raft_id) i + 1, voter->address), 0);
        raft.data = &closed;
        raft_configuration_init(&configuration);
        for (int k = 0; k < VOTERS; k++)
                assert_int_equal(raft_configuration_add(&configuration, (raft_id) k + 1, v->list[k].address, RAFT_VOTER), 0);
        assert_int_equal(raft_bootstrap(&raft, &configuration), 0);
        raft_configuration_close(&configuration);
        raft_close(&raft, on_closed);
        while (!closed)
                (void) uv_run(&loop, UV_RUN_ONCE);
        raft_uv_close(&io);
        (void) uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&loop), 0);
}

static int set_up(void **state) {
        struct servers *v = xcalloc(1, sizeof(*v));

        v->base = event_base_new();
        (void) snprintf(v->dir, sizeof(v->dir), "%s/test-raftlog-XXXXXX", getenv("TEST_DIR") ? getenv("TEST_DIR") : "/tmp");
        assert_non_null(mkdtemp(v->dir));
        for (int i = 0; i < VOTERS; i++) {
                v->list[i].dir = xasprintf("%s/%d", v->dir, i);
                find_address(&v->list[i]);
        }
        for (int i = 0; i < VOTERS; i++)
                make_log(v, i);
        for (int i = 0; i < VOTERS; i++)
                open_log(v, i);
        *state = v;
        return 0;
}

static int tear_down(void **state) {
        struct servers *v = *state;

        for (int i = 0; i < VOTERS; i++) {
                if (v->list[i].log)
                        close_log(&v->list[i]);
                free(v->list[i].dir);
        }
        while (n_transports > 0)
                raft_uv_tcp_close(&transports[--n_transports]);
        event_base_free(v->base);
        (void) remove_tree(v->dir);
        free(v);
        return 0;
}

/* The one that leads, and that all who are there take for the leader; NULL: there is none yet. */
static struct server *leader_of(struct servers *v) {
        struct server *leader = NULL;

        for (int i = 0; i < VOTERS; i++)
                if (v->list[i].log && raftlog_leading(v->list[i].log))
                        leader = &v->list[i];
        for (int i = 0; leader && i < VOTERS; i++) {
                const char *name = v->list[i].log ? raftlog_leader(v->list[i].log) : leader->address;

                if (!name || strcmp(name, leader->address) != 0)
                        return NULL;
        }
        return leader;
}

struct done {
        unsigned calls;
        int code;
};

static void on_done(void *userdata, const struct raftlog_outcome *outcome) {
        struct done *done = userdata;

        done->calls++;
        done->code = outcome->error.code;
}

static int propose(struct server *voter, struct done *done) {
        struct command c;

        return raftlog_propose(voter->log, command_note(&c, "x"), on_done, done);
}

static bool all_applied(const struct servers *v, unsigned n) {
        for (int i = 0; i < VOTERS; i++)
                if (v->list[i].log && v->list[i].applied != n)
                        return false;
        return true;
}

static void test_one_leads(void **state) {
        struct servers *v = *state;
        struct done done = { 0 };
        struct server *leader;

        for (int i = 0; i < VOTERS; i++) {
                assert_false(raftlog_leading(v->list[i].log));
                assert_null(raftlog_leader(v->list[i].log));
        }
        EXPECT(v, leader_of(v), 3000);
        leader = leader_of(v);
        EXPECT(v, leader->roles > 0, 100);
        for (int i = 0; i < VOTERS; i++) {
                EXPECT(v, v->list[i].roles > 0, 100);
                if (&v->list[i] != leader)
                        assert_int_equal(propose(&v->list[i], &done), -EHOSTUNREACH);
        }
        for (unsigned i = 1; i <= 5; i++) {
                assert_int_equal(propose(leader, &done), 0);
                EXPECT(v, done.calls == i && all_applied(v, i), 1000);
                assert_int_equal(done.code, 0);
        }
}

/* The next one leads when it has applied all that was committed before, and says so. */
static void test_leader_ends(void **state) {
        struct servers *v = *state;
        struct done done = { 0 };
        struct server *first, *second;
        uint64_t term;
        unsigned roles;

        EXPECT(v, leader_of(v), 3000);
        first = leader_of(v);
        term = raftlog_term(first->log);
        for (unsigned i = 1; i <= 20; i++)
                assert_int_equal(propose(first, &done), 0);
        EXPECT(v, done.calls == 20, 1000);
        close_log(first);
        EXPECT(v, leader_of(v), 4000);
        second = leader_of(v);
        assert_true(raftlog_term(second->log) > term);
        EXPECT(v, second->applied_when_told == 20, 100);
        assert_int_equal(propose(second, &done), 0);
        EXPECT(v, all_applied(v, 21), 1000);
        /* The one before comes back and follows. */
        roles = second->roles;
        open_log(v, (int) (first - v->list));
        EXPECT(v, leader_of(v) == second && all_applied(v, 21), 4000);
        EXPECT(v, first->roles > 0, 100);
        assert_int_equal(second->roles, roles);
}

/* A leader that hears none of the others leads no more: what it was asked is answered, and it says so. */
static void test_leader_alone(void **state) {
        struct servers *v = *state;
        struct done done = { 0 };
        struct server *leader;
        unsigned roles;

        EXPECT(v, leader_of(v), 3000);
        leader = leader_of(v);
        EXPECT(v, leader->roles > 0, 100);
        roles = leader->roles;
        for (int i = 0; i < VOTERS; i++)
                if (&v->list[i] != leader)
                        close_log(&v->list[i]);
        assert_int_equal(propose(leader, &done), 0);
        EXPECT(v, done.calls == 1, 3000);
        assert_int_equal(done.code, -EHOSTUNREACH);
        assert_false(raftlog_leading(leader->log));
        EXPECT(v, leader->roles > roles, 100);
        assert_null(raftlog_leader(leader->log));
        assert_int_equal(propose(leader, &done), -EHOSTUNREACH);
        /* And again, when there are two of three. */
        roles = leader->roles;
        open_log(v, (int) (leader - v->list + 1) % VOTERS);
        EXPECT(v, leader_of(v), 4000);
        EXPECT(v, leader->roles > roles, 100);
        assert_int_equal(propose(leader_of(v), &done), 0);
        EXPECT(v, done.calls == 2, 1000);
        assert_int_equal(done.code, 0);
}

/* As long as rmd has no transport for raft, a node that could only wait for the others refuses to start. */
static void test_refused_by_rmd(void **state) {
        static const struct raftlog_ops ops = {
                .on_apply = on_apply, .on_restore = on_restore, .on_failed = on_failed, .get_state = get_state, .on_role = on_role
        };
        struct servers *v = *state;
        struct voter_config config = { .name = v->list[0].address, .state_dir = v->list[0].dir };
        struct rm_error err = { 0 };
        struct voter *refused = NULL;

        assert_true(voter_exists(config.state_dir));
        close_log(&v->list[0]);
        assert_int_equal(voter_open(v->base, &config, &ops, &v->list[0], &refused, &err), -EIO);
        assert_non_null(strstr(err.text, "has other voters"));
        assert_null(refused);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_one_leads, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_leader_ends, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_leader_alone, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_refused_by_rmd, set_up, tear_down),
        };

        (void) signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
