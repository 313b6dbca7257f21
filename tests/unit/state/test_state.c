/* Every command of the cluster's state, done and refused, and the races that two sides of a move
 * can run. */
#include <signal.h>

#include "state_test.h"

#define REFUSED(call, expected_code, text)                                                                                         \
        do {                                                                                                                       \
                assert_int_equal(call, expected_code);                                                                             \
                if (!strstr(w->error, text))                                                                                       \
                        fail_msg("expected '%s' in '%s'", text, w->error);                                                         \
        } while (0)
#define EVENTS(expected) assert_string_equal(w->events, expected)

static int set_up(void **state) {
        struct world *w = xcalloc(1, sizeof(*w));

        world_init(w);
        assert_int_equal(join(w, "n2", 4), 0);
        assert_int_equal(join(w, "n1", 4), 0);
        assert_int_equal(join(w, "n3", 4), 0);
        *state = w;
        return 0;
}

static int tear_down(void **state) {
        world_finish(*state);
        free(*state);
        return 0;
}

static const Rm__Node *node_of(const struct world *w, const char *name) {
        return state_node(w->state, name);
}

static const char *node_state_name(const struct world *w, const char *name) {
        return state_node_name(w->indexed, node_of(w, name));
}

static const char *job_state_name(const struct world *w, uint64_t id) {
        return state_job_name(w->indexed, job_of(w, id));
}

/* Four ranks in two groups: head and group 0 on n1, group 1 on n2. */
static uint64_t placed_job(struct world *w) {
        static const char *const nodes[] = { "n1", "n2" };
        static const uint32_t ranks[] = { 2, 2 };
        int id = submit(w, 4);

        assert_true(id > 0);
        assert_int_equal(place(w, (uint64_t) id, "n1", nodes, ranks, 2), 0);
        return (uint64_t) id;
}

static uint64_t running_job(struct world *w) {
        uint64_t job = placed_job(w);

        assert_int_equal(ready(w, job, -1, "n1"), 0);
        assert_int_equal(ready(w, job, 0, "n1"), 0);
        assert_int_equal(ready(w, job, 1, "n2"), 0);
        assert_int_equal(running(w, job), 0);
        return job;
}

/* ---- nodes ---- */

static void test_join(void **state) {
        struct world *w = *state;
        char long_name[65];

        EVENTS("node-joined ");
        assert_int_equal(w->state->n_nodes, 3);
        assert_string_equal(w->state->nodes[0]->name, "n1");
        assert_string_equal(w->state->nodes[2]->name, "n3");
        assert_string_equal(node_state_name(w, "n1"), "IDLE");
        /* Nothing that is decided here can be brought along. */
        assert_false(node_of(w, "n1")->drain);
        assert_false(node_of(w, "n1")->available_set);
        /* Once more, after a restart with other cores: what was decided stays. */
        assert_int_equal(drain(w, "n1", "disk", false), 0);
        assert_int_equal(health(w, "n1", 2), 0);
        assert_int_equal(join(w, "n1", 8), 0);
        assert_int_equal(w->state->n_nodes, 3);
        assert_int_equal(node_of(w, "n1")->cores, 8);
        assert_true(node_of(w, "n1")->drain);
        assert_string_equal(node_state_name(w, "n1"), "DRAINED");
        memset(long_name, 'n', sizeof(long_name));
        long_name[64] = 0;
        REFUSED(join(w, "", 4), -EINVAL, "valid name");
        REFUSED(join(w, "a b", 4), -EINVAL, "valid name");
        REFUSED(join(w, long_name, 4), -EINVAL, "valid name");
}

static void test_health(void **state) {
        struct world *w = *state;

        assert_int_equal(health(w, "n1", 2), 0);
        EVENTS("node-down ");
        assert_string_equal(node_state_name(w, "n1"), "DOWN");
        assert_int_equal(node_usable_cores(node_of(w, "n1")), 0);
        assert_int_equal(health(w, "n1", 2), 0);
        EVENTS("");
        assert_int_equal(health(w, "n1", 1), 0);
        EVENTS("node-up ");
        assert_int_equal(node_usable_cores(node_of(w, "n1")), 4);
        assert_int_equal(health(w, "n1", 0), 0);
        assert_string_equal(node_state_name(w, "n1"), "UNKNOWN");
        assert_int_equal(node_usable_cores(node_of(w, "n1")), 0);
        REFUSED(health(w, "n1", 3), -ENOTSUP, "does not know all");
        REFUSED(health(w, "n1", -1), -ENOTSUP, "does not know all");
        REFUSED(health(w, "n9", 1), -ENOENT, "no node 'n9' (known: n1 n2 n3)");
}

static void test_drain(void **state) {
        struct world *w = *state;

        assert_int_equal(drain(w, "n1", "disk", false), 0);
        EVENTS("node-drain node-drained ");
        assert_string_equal(node_state_name(w, "n1"), "DRAINED");
        assert_string_equal(node_of(w, "n1")->drain_reason, "disk");
        assert_string_equal(node_of(w, "n1")->drain_by, "root");
        assert_int_equal(node_of(w, "n1")->drain_since_usec, w->time_usec);
        assert_int_equal(node_usable_cores(node_of(w, "n1")), 0);
        REFUSED(drain(w, "n1", "fan", false), -EALREADY, "already drained by root (reason: disk); use --update");
        assert_string_equal(node_of(w, "n1")->drain_reason, "disk");
        assert_int_equal(drain(w, "n1", "fan", true), 0);
        assert_string_equal(node_of(w, "n1")->drain_reason, "fan");
        assert_int_equal(resume(w, "n1"), 0);
        EVENTS("node-resumed ");
        assert_string_equal(node_state_name(w, "n1"), "IDLE");
        REFUSED(resume(w, "n1"), -EALREADY, "'n1' is not drained");
        assert_int_equal(drain(w, "n2", "", true), 0);
        REFUSED(drain(w, "n2", "", false), -EALREADY, "(reason: none)");
        REFUSED(drain(w, "n9", "", false), -ENOENT, "no node 'n9' (known: n1 n2 n3)");
        REFUSED(resume(w, "n9"), -ENOENT, "no node 'n9'");
}

enum { OK, WARN, FAILING, CRITICAL };

static void test_conditions(void **state) {
        struct world *w = *state;
        uint64_t since_usec;

        assert_int_equal(node_condition(node_of(w, "n2")), OK);
        assert_int_equal(condition(w, "n2", "hwmon", WARN, "70 C"), 0);
        EVENTS("node-condition ");
        since_usec = w->time_usec;
        assert_string_equal(node_state_name(w, "n2"), "IDLE");
        assert_int_equal(node_usable_cores(node_of(w, "n2")), 4);
        assert_int_equal(condition(w, "n2", "hwmon", WARN, "70 C"), 0);
        EVENTS("");
        assert_int_equal(condition(w, "n2", "hwmon", WARN, "71 C"), 0);
        EVENTS("node-condition ");
        assert_string_equal(node_worst(node_of(w, "n2"))->reason, "71 C");
        assert_int_equal(node_worst(node_of(w, "n2"))->since_usec, since_usec);

        /* The worst of all sources counts. */
        assert_int_equal(condition(w, "n2", "edac", FAILING, "12 errors"), 0);
        EVENTS("node-condition node-empty ");
        assert_string_equal(node_state_name(w, "n2"), "FAILING");
        assert_int_equal(node_usable_cores(node_of(w, "n2")), 0);
        assert_string_equal(node_worst(node_of(w, "n2"))->source, "edac");
        assert_int_equal(node_critical_usec(node_of(w, "n2")), 0);
        assert_int_equal(condition(w, "n2", "report", CRITICAL, "smoke"), 0);
        EVENTS("node-condition ");
        assert_int_equal(node_critical_usec(node_of(w, "n2")), w->time_usec);
        assert_int_equal(node_of(w, "n2")->n_conditions, 3);

        /* The node is in use again by itself when all sources have taken their conditions back. */
        assert_int_equal(condition(w, "n2", "report", OK, ""), 0);
        assert_int_equal(condition(w, "n2", "edac", OK, ""), 0);
        EVENTS("node-condition ");
        assert_int_equal(node_usable_cores(node_of(w, "n2")), 4);
        assert_int_equal(condition(w, "n2", "hwmon", OK, "cold"), 0);
        assert_int_equal(node_of(w, "n2")->n_conditions, 0);
        assert_int_equal(condition(w, "n2", "hwmon", OK, ""), 0);
        EVENTS("");

        /* A node that joins anew is no better for it. */
        assert_int_equal(condition(w, "n1", "report", FAILING, "fan"), 0);
        w->boot = 7;
        assert_int_equal(join(w, "n1", 4), 0);
        assert_string_equal(node_state_name(w, "n1"), "FAILING");
        /* The drain of a drained node is shown to people. */
        assert_int_equal(drain(w, "n1", "", false), 0);
        assert_string_equal(node_state_name(w, "n1"), "DRAINED");
        assert_int_equal(resume(w, "n1"), 0);
        assert_string_equal(node_state_name(w, "n1"), "FAILING");
}

static void test_conditions_that_are_refused(void **state) {
        struct world *w = *state;
        char reason[STATE_CONDITION_REASON_MAX_BYTES + 2];
        char source[16];

        REFUSED(condition(w, "n9", "report", WARN, "x"), -ENOENT, "no node 'n9' (known: n1 n2 n3)");
        REFUSED(condition(w, "n1", "", WARN, "x"), -EINVAL, "name of the source");
        REFUSED(condition(w, "n1", "a b", WARN, "x"), -EINVAL, "name of the source");
        REFUSED(condition(w, "n1", "report", WARN, ""), -EINVAL, "a reason is needed: why is node 'n1' warn?");
        REFUSED(condition(w, "n1", "report", WARN, "two\nlines"), -EINVAL, "one line");
        REFUSED(condition(w, "n1", "report", CRITICAL + 1, "x"), -ENOTSUP, "does not know all");
        memset(reason, 'x', sizeof(reason));
        reason[sizeof(reason) - 1] = 0;
        REFUSED(condition(w, "n1", "report", WARN, reason), -EINVAL, "at most 256 bytes");
        assert_int_equal(condition(w, "n1", "report", WARN, reason + 1), 0);
        for (unsigned i = 1; i < STATE_CONDITION_SOURCES_MAX; i++) {
                (void) snprintf(source, sizeof(source), "s%u", i);
                assert_int_equal(condition(w, "n1", source, WARN, "x"), 0);
        }
        REFUSED(condition(w, "n1", "another", WARN, "x"), -ENOSPC, "16 sources say something of node 'n1' already");
        assert_int_equal(condition(w, "n1", "s1", FAILING, "y"), 0);
}

/* The decision came before the condition was known. */
static void test_conditions_and_jobs(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);
        uint64_t waiting = (uint64_t) submit(w, 1);
        const char *const where[] = { "n3" };
        const uint32_t ranks[] = { 1 };

        assert_int_equal(condition(w, "n3", "report", WARN, "hot"), 0);
        REFUSED(place(w, waiting, "n3", where, ranks, 1), -EBUSY, "the condition of node 'n3' is warn");
        assert_int_equal(move_start(w, job, 0, "n3"), 0);
        assert_int_equal(move_abort(w, 1, "why"), 0);
        assert_int_equal(condition(w, "n3", "report", FAILING, "hot"), 0);
        REFUSED(place(w, waiting, "n3", where, ranks, 1), -EBUSY, "the condition of node 'n3' is failing");
        REFUSED(move_start(w, job, 0, "n3"), -EBUSY, "node 'n3' is failing, says report (reason: hot)");
        assert_int_equal(condition(w, "n2", "report", CRITICAL, "smoke"), 0);
        EVENTS("node-condition ");
        assert_int_equal(condition(w, "n3", "report", OK, ""), 0);
        assert_int_equal(move_start(w, job, 1, "n3"), 0);
        assert_int_equal(move_commit(w, 2), 0);
        assert_int_equal(move_done(w, 2, 1, 1), 0);
        EVENTS("move-done node-empty ");
}

static void test_deadline_of_drain(void **state) {
        struct world *w = *state;
        const uint64_t deadline = w->time_usec + 60000000;

        (void) running_job(w);
        REFUSED(overdue(w, "n2", 0), -EALREADY, "'n2' is empty, has another deadline");
        assert_int_equal(drain_until(w, "n2", deadline, false), 0);
        EVENTS("node-drain ");
        assert_int_equal(node_of(w, "n2")->drain_deadline_usec, deadline);
        REFUSED(drain_until(w, "n2", 0, false), -EALREADY, "already drained");
        REFUSED(overdue(w, "n2", deadline - 1), -EALREADY, "has another deadline");
        assert_int_equal(overdue(w, "n2", deadline), 0);
        EVENTS("node-overdue ");
        assert_true(node_of(w, "n2")->drain_overdue);
        REFUSED(overdue(w, "n2", deadline), -EALREADY, "was told of");

        /* Another deadline can be missed again. */
        assert_int_equal(drain_until(w, "n2", deadline + 5, true), 0);
        assert_int_equal(node_of(w, "n2")->drain_deadline_usec, deadline + 5);
        assert_int_equal(overdue(w, "n2", deadline + 5), 0);
        EVENTS("node-overdue ");
        assert_int_equal(drain(w, "n2", "disk", true), 0);
        assert_int_equal(node_of(w, "n2")->drain_deadline_usec, 0);
        assert_int_equal(drain_until(w, "n2", deadline, true), 0);
        assert_int_equal(overdue(w, "n2", deadline), 0);
        assert_int_equal(resume(w, "n2"), 0);
        assert_int_equal(node_of(w, "n2")->drain_deadline_usec, 0);
        assert_false(node_of(w, "n2")->drain_overdue);

        assert_int_equal(drain_until(w, "n3", deadline, false), 0);
        EVENTS("node-drain node-drained ");
        REFUSED(overdue(w, "n3", deadline), -EALREADY, "'n3' is empty");
        REFUSED(overdue(w, "n9", deadline), -ENOENT, "no node 'n9'");
}

static void test_remove(void **state) {
        static const char *const voters[] = { "n1", "n2", "n1", "" };
        struct world *w = *state;

        assert_int_equal(keep_log(w, voters, 4), 0);
        EVENTS("voter-added voter-added ");
        assert_int_equal(w->state->n_voters, 2);
        assert_true(state_is_voter(w->state, "n2"));
        REFUSED(remove_node(w, "n9"), -ENOENT, "no node 'n9' (known: n1 n2 n3)");
        assert_int_equal(remove_node(w, "n3"), 0);
        EVENTS("node-removed ");
        assert_null(node_of(w, "n3"));
        /* A voter only when it keeps the log no more. */
        assert_int_equal(remove_node(w, "n2"), 0);
        EVENTS("node-leaves ");
        assert_string_equal(node_of(w, "n2")->leaving, "root");
        assert_int_equal(keep_log(w, voters, 1), 0);
        EVENTS("voter-removed ");
        assert_int_equal(remove_node(w, "n2"), 0);
        EVENTS("node-removed ");
        REFUSED(remove_node(w, "n1"), -EBUSY, "is the only one");
        assert_int_equal(join(w, "n2", 2), 0);
        EVENTS("node-joined ");
        assert_string_equal(node_of(w, "n2")->leaving, "");
}

static void test_remove_with_work(void **state) {
        struct world *w = *state;

        (void) running_job(w);
        REFUSED(remove_node(w, "n2"), -EBUSY, "drain it first (rmctl drain-node n2)");
        assert_int_equal(drain(w, "n2", "", false), 0);
        assert_int_equal(remove_node(w, "n2"), 0);
        EVENTS("node-leaves ");
        assert_non_null(node_of(w, "n2"));
}

static void test_drain_with_work(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);

        assert_int_equal(drain(w, "n2", "", false), 0);
        EVENTS("node-drain ");
        assert_string_equal(node_state_name(w, "n2"), "DRAINING");
        assert_int_equal(move_start(w, job, 1, "n3"), 0);
        assert_int_equal(move_commit(w, w->created), 0);
        /* Committed, but the source's copy is still there. */
        assert_string_equal(node_state_name(w, "n2"), "DRAINING");
        assert_int_equal(move_done(w, 1, 1, 1), 0);
        EVENTS("move-done node-drained ");
        assert_string_equal(node_state_name(w, "n2"), "DRAINED");
        assert_string_equal(node_state_name(w, "n3"), "MIXED");
}

/* A placement that was planned before the drain must not arrive after it. */
static void test_nothing_comes_to_a_drained_node(void **state) {
        struct world *w = *state;
        static const char *const nodes[] = { "n1", "n3" };
        static const uint32_t ranks[] = { 2, 2 };
        uint64_t job = running_job(w);
        uint64_t other = (uint64_t) submit(w, 4);

        assert_int_equal(drain(w, "n3", "disk", false), 0);
        REFUSED(place(w, other, "n1", nodes, ranks, 2), -EBUSY, "node 'n3' is drained");
        REFUSED(place(w, other, "n3", nodes, ranks, 1), -EBUSY, "node 'n3' is drained");
        REFUSED(move_start(w, job, 1, "n3"), -EBUSY, "node 'n3' is drained by root (reason: disk)");
        assert_string_equal(node_state_name(w, "n3"), "DRAINED");
        assert_int_equal(resume(w, "n3"), 0);
        assert_int_equal(health(w, "n3", 0), 0);
        REFUSED(place(w, other, "n1", nodes, ranks, 2), -EHOSTDOWN, "node 'n3' is not up");
        REFUSED(move_start(w, job, 1, "n3"), -EHOSTDOWN, "node 'n3' is not up");
        assert_int_equal(health(w, "n3", 1), 0);
        assert_int_equal(place(w, other, "n1", nodes, ranks, 2), 0);
        assert_int_equal(move_start(w, job, 1, "n3"), 0);
}

/* A move on its way to a node that is then drained is taken as work there, and its end is told. */
static void test_drain_ends_with_an_arriving_move(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);

        assert_int_equal(move_start(w, job, 1, "n3"), 0);
        assert_int_equal(drain(w, "n3", "", false), 0);
        EVENTS("node-drain ");
        assert_string_equal(node_state_name(w, "n3"), "DRAINING");
        assert_int_equal(move_abort(w, 1, "no room"), 0);
        EVENTS("move-failed node-drained ");
        assert_int_equal(resume(w, "n3"), 0);
        assert_int_equal(move_start(w, job, 1, "n3"), 0);
        assert_int_equal(drain(w, "n3", "", false), 0);
        assert_int_equal(ends(w, job, 0, 0, ""), 0);
        EVENTS("move-failed node-drained ");
}

static void test_availability(void **state) {
        struct world *w = *state;
        static const char *const names[] = { "n1", "n2", "n9" };
        static const uint32_t cores[] = { 2, 0, 5 };
        static const uint32_t more[] = { 2, 99 };

        assert_int_equal(available(w, names, cores, 3), 0);
        EVENTS("availability availability ");
        assert_int_equal(node_usable_cores(node_of(w, "n1")), 2);
        assert_int_equal(node_usable_cores(node_of(w, "n2")), 0);
        assert_int_equal(node_usable_cores(node_of(w, "n3")), 4);
        assert_int_equal(w->state->availability->changed_usec, w->time_usec);
        assert_int_equal(available(w, names, cores, 3), 0);
        EVENTS("");
        /* An error changes nothing but what is shown, and is told once. */
        assert_int_equal(available_error(w, "/f:1: what"), 0);
        EVENTS("availability-error ");
        assert_int_equal(available_error(w, "/f:1: what"), 0);
        EVENTS("");
        assert_string_equal(w->state->availability->error, "/f:1: what");
        assert_int_equal(node_usable_cores(node_of(w, "n2")), 0);
        assert_int_equal(available(w, names, more, 2), 0);
        EVENTS("availability ");
        assert_string_equal(w->state->availability->error, "");
        assert_int_equal(node_usable_cores(node_of(w, "n2")), 4);
        assert_int_equal(available(w, names, cores, 0), 0);
        EVENTS("availability availability ");
        assert_int_equal(node_usable_cores(node_of(w, "n1")), 4);
        assert_false(node_of(w, "n1")->available_set);
}

/* ---- jobs ---- */

static void test_submit(void **state) {
        struct world *w = *state;
        Rm__CmdJobSubmit body = RM__CMD_JOB_SUBMIT__INIT;
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;
        Rm__Command command = RM__COMMAND__INIT;

        assert_int_equal(submit(w, 4), 1);
        EVENTS("job-submitted ");
        assert_int_equal(submit(w, 1), 2);
        assert_string_equal(job_state_name(w, 1), "PENDING");
        assert_string_equal(job_of(w, 1)->reason, "waits to be placed");
        assert_string_equal(job_of(w, 1)->spec->argv[1], "./a.out");
        assert_int_equal(submit(w, 0), -EINVAL);
        command.body_case = RM__COMMAND__BODY_JOB_SUBMIT;
        command.job_submit = &body;
        assert_int_equal(apply_command(w, &command), -EINVAL);
        body.spec = &spec;
        spec.ranks = 1;
        REFUSED(apply_command(w, &command), -EINVAL, "a command line and at least one rank");
        assert_int_equal(w->state->next_job, 3);
}

/* A job of this user with a body of so many bytes, `body` telling one from another. */
static int submit_body(struct world *w, uint32_t uid, uint8_t body_number, uint32_t size_bytes) {
        char *argv[] = { (char *) "mpirun" };
        uint8_t digest[STATE_DIGEST_BYTES] = { body_number };
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;
        Rm__CmdJobSubmit body = RM__CMD_JOB_SUBMIT__INIT;
        Rm__Command command = RM__COMMAND__INIT;

        spec.uid = uid;
        spec.ranks = 1;
        spec.argv = argv;
        spec.n_argv = ARRAY_SIZE(argv);
        spec.body_digest = (ProtobufCBinaryData) { .len = sizeof(digest), .data = digest };
        spec.body_bytes = size_bytes;
        body.spec = &spec;
        command.body_case = RM__COMMAND__BODY_JOB_SUBMIT;
        command.job_submit = &body;
        return apply_command(w, &command);
}

/* The bodies of one user's waiting and running jobs are bounded; the same body counts once. */
static void test_bodies_of_a_user(void **state) {
        const uint32_t mib = 1U << 20;
        struct world *w = *state;

        REFUSED(submit_body(w, 7, 0, 0), -EINVAL, "has no command line and environment");
        REFUSED(submit_body(w, 7, 0, mib + 1), -EINVAL, "has no command line and environment");
        for (uint8_t i = 0; i < 16; i++)
                assert_int_equal(submit_body(w, 7, i, mib), 0);
        REFUSED(submit_body(w, 7, 16, 1), -EDQUOT, "at most 16 MiB");
        assert_int_equal(submit_body(w, 7, 3, mib), 0); /* one that he has */
        assert_int_equal(submit_body(w, 8, 3, mib), 0); /* somebody else, who has the same */
        assert_int_equal(submit_body(w, 8, 77, mib), 0);
        assert_int_equal(cancel(w, 4, SIGTERM, false), 0);
        REFUSED(submit_body(w, 7, 16, mib), -EDQUOT, "17.0 MiB"); /* another of his jobs still has the fourth */
        assert_int_equal(cancel(w, 1, SIGTERM, false), 0);
        assert_int_equal(submit_body(w, 7, 16, mib), 0);
}

/* The same answer to a front end that did not get the first one, and nobody else's. */
static void test_submit_again(void **state) {
        struct world *w = *state;
        char *argv[] = { (char *) "mpirun", (char *) "./a.out" };
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;
        Rm__CmdJobSubmit body = RM__CMD_JOB_SUBMIT__INIT;
        Rm__Command command = RM__COMMAND__INIT;

        command.body_case = RM__COMMAND__BODY_JOB_SUBMIT;
        command.job_submit = &body;
        spec.argv = argv;
        spec.n_argv = ARRAY_SIZE(argv);
        spec.ranks = 2;
        spec.uid = 1000;
        spec.token = (char *) "5eed";
        body.spec = &spec;
        assert_int_equal(apply_command(w, &command), 0);
        assert_int_equal(w->created, 1);
        EVENTS("job-submitted ");
        assert_int_equal(submit(w, 1), 2);
        EVENTS("job-submitted ");
        assert_int_equal(apply_command(w, &command), 0);
        assert_int_equal(w->created, 1);
        EVENTS("");
        assert_int_equal(w->state->n_jobs, 2);
        spec.uid = 1001;
        assert_int_equal(apply_command(w, &command), 0);
        assert_int_equal(w->created, 3);
        spec.token = (char *) "5eee";
        assert_int_equal(apply_command(w, &command), 0);
        assert_int_equal(w->created, 4);
        spec.token = (char *) "";
        assert_int_equal(apply_command(w, &command), 0);
        assert_int_equal(apply_command(w, &command), 0);
        assert_int_equal(w->created, 6);
}

static void test_too_many_jobs(void **state) {
        struct world *w = *state;

        w->thorough = false;
        for (unsigned i = 0; i < STATE_JOBS_MAX; i++)
                assert_true(submit(w, 1) > 0);
        REFUSED(submit(w, 1), -EAGAIN, "10000 jobs are known already");
        assert_int_equal(cancel(w, 7, 0, false), 0);
        assert_int_equal(forget(w, 7), 0);
        assert_int_equal(submit(w, 1), STATE_JOBS_MAX + 1);
}

/* A job of `uid` under the limits given; its number or the (negative) code. */
static int submit_limited(struct world *w, uint32_t uid, uint32_t ranks, uint32_t max_jobs, uint64_t max_ranks,
                          uint32_t ended_kept) {
        char *argv[] = { (char *) "mpirun" };
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;
        Rm__CmdJobSubmit body = RM__CMD_JOB_SUBMIT__INIT;
        Rm__Command command = RM__COMMAND__INIT;
        int code;

        spec.user = (char *) "alice";
        spec.name = (char *) "a.out";
        spec.uid = uid;
        spec.argv = argv;
        spec.n_argv = 1;
        spec.ranks = ranks;
        body.spec = &spec;
        body.max_jobs = max_jobs;
        body.max_ranks = max_ranks;
        body.ended_kept = ended_kept;
        command.body_case = RM__COMMAND__BODY_JOB_SUBMIT;
        command.job_submit = &body;
        code = apply_command(w, &command);
        return code < 0 ? code : (int) w->created;
}

static void test_user_takes_all_jobs(void **state) {
        struct world *w = *state;

        assert_int_equal(submit_limited(w, 1000, 4, 2, 10, 3), 1);
        assert_int_equal(submit_limited(w, 1000, 4, 2, 10, 3), 2);
        REFUSED(submit_limited(w, 1000, 1, 2, 10, 3), -EDQUOT, "max_jobs_per_user");
        REFUSED(submit_limited(w, 1000, 3, 9, 10, 3), -EDQUOT, "max_ranks_per_user");
        REFUSED(submit_limited(w, 1000, UINT32_MAX, 9, 10, 3), -EDQUOT, "max_ranks_per_user");
        assert_int_equal(submit_limited(w, 1000, 2, 9, 10, 3), 3);
        assert_int_equal(submit_limited(w, 1001, 9, 2, 10, 3), 4); /* another one's are not counted */
        assert_int_equal(submit_limited(w, 1000, 9, 0, 0, 3), 5);  /* an administrator's neither */
        assert_int_equal(cancel(w, 1, 0, false), 0);
        assert_int_equal(submit_limited(w, 1000, 1, 4, 0, 3), 6); /* nor what has ended */
}

/* By the time of their end, and of this user alone. */
static void test_first_ended_are_forgotten(void **state) {
        struct world *w = *state;

        for (int i = 1; i <= 6; i++)
                assert_int_equal(submit_limited(w, i == 6 ? 1001 : 1000, 1, 0, 0, 2), i);
        assert_int_equal(cancel(w, 6, 0, false), 0);
        assert_int_equal(cancel(w, 3, 0, false), 0);
        assert_int_equal(cancel(w, 2, 0, false), 0);
        assert_int_equal(cancel(w, 4, 0, false), 0);
        assert_int_equal(cancel(w, 1, 0, false), 0);
        assert_int_equal(w->state->n_jobs, 6);
        REFUSED(submit_limited(w, 1000, 1, 1, 0, 2), -EDQUOT, "max_jobs_per_user"); /* and nothing is forgotten for it */
        assert_int_equal(submit_limited(w, 1000, 1, 0, 0, 2), 7);
        assert_null(state_job(w->state, 3));
        assert_null(state_job(w->state, 2));
        assert_non_null(state_job(w->state, 4));
        assert_non_null(state_job(w->state, 1));
        assert_non_null(state_job(w->state, 6));
        assert_int_equal(submit_limited(w, 1000, 1, 0, 0, 0), 8);
        assert_int_equal(w->state->n_jobs, 6);
}

/* With the share of ended ones, the table has room for others however many one user submits and
 * cancels. */
static void test_ended_jobs_of_one_user_fill_table(void **state) {
        struct world *w = *state;

        w->thorough = false;
        for (unsigned i = 1; i <= STATE_JOBS_MAX + 10; i++) {
                int job = submit_limited(w, 1000, 1, 1, 0, 100);

                assert_true(job > 0);
                assert_int_equal(cancel(w, (uint64_t) job, 0, false), 0);
        }
        assert_true(w->state->n_jobs <= 102);
        assert_true(submit_limited(w, 1001, 1, 0, 0, 100) > 0);
}

static void test_place(void **state) {
        struct world *w = *state;
        static const char *const nodes[] = { "n1", "n2", "n9" };
        static const uint32_t ranks[] = { 2, 2, 1 };
        static const uint32_t wrong[] = { 2, 3 };
        static const uint32_t none[] = { 4, 0 };
        static const uint32_t wraps[] = { UINT32_MAX, 5 };
        uint64_t job = (uint64_t) submit(w, 4);
        const Rm__Job *j = job_of(w, job);

        REFUSED(place(w, 99, "n1", nodes, ranks, 2), -ENOENT, "no job 99");
        REFUSED(place(w, job, "n9", nodes, ranks, 2), -ENOENT, "no node 'n9'");
        REFUSED(place(w, job, "n1", nodes, ranks, 3), -ENOENT, "no node 'n9'");
        REFUSED(place(w, job, "n1", nodes, ranks, 0), -EINVAL, "do not match");
        REFUSED(place(w, job, "n1", nodes, ranks, 1), -EINVAL, "2 ranks for the 4");
        REFUSED(place(w, job, "n1", nodes, wrong, 2), -EINVAL, "5 ranks for the 4");
        REFUSED(place(w, job, "n1", nodes, none, 2), -EINVAL, "group 1 of job 1 has no ranks");
        REFUSED(place(w, job, "n1", nodes, wraps, 2), -EINVAL, "ranks for the 4");
        assert_int_equal(job_wait(w, job, "waits for 4 cores", true), 0);
        EVENTS("job-waits ");
        assert_int_equal(j->age, 1);
        assert_int_equal(job_wait(w, job, "waits for 4 cores", true), 0);
        EVENTS("");
        assert_int_equal(j->age, 2);
        assert_int_equal(place(w, job, "n1", nodes, ranks, 2), 0);
        EVENTS("job-placed ");
        assert_int_equal(j->n_capsules, 3);
        assert_int_equal(j->age, 0);
        assert_int_equal(j->attempt, 1);
        assert_string_equal(j->reason, "");
        assert_string_equal(j->policy, "greedy");
        assert_string_equal(job_state_name(w, job), "STARTING");
        assert_ptr_equal(job_capsule(j, STATE_HEAD), j->capsules[0]);
        assert_string_equal(job_capsule(j, 1)->node, "n2");
        assert_null(job_capsule(j, 2));
        assert_string_equal(node_state_name(w, "n1"), "MIXED");
        REFUSED(place(w, job, "n1", nodes, ranks, 2), -EBUSY, "is not pending");
}

static void test_addresses(void **state) {
        struct world *w = *state;
        uint32_t n = STATE_CAPSULES_MAX / 2;
        cleanup_free const char **nodes = xcalloc(n, sizeof(*nodes));
        cleanup_free uint32_t *ranks = xcalloc(n, sizeof(*ranks));
        uint64_t large;
        uint64_t other;

        w->thorough = false;
        for (uint32_t i = 0; i < n; i++) {
                nodes[i] = "n1";
                ranks[i] = 1;
        }
        /* Given out again only when all others have been used, and never while in use. */
        large = (uint64_t) submit(w, 100);
        assert_int_equal(place(w, large, "n1", nodes, ranks, 100), 0);
        assert_int_equal(job_of(w, large)->capsules[0]->address, 1);
        assert_int_equal(w->state->next_address, 102);
        w->state->next_address = w->twin->next_address = STATE_CAPSULES_MAX - 10;
        other = (uint64_t) submit(w, 50);
        assert_int_equal(place(w, other, "n1", nodes, ranks, 50), 0);
        assert_int_equal(w->state->next_address, 102 + 51 - 11);
        state_check(w->indexed);
        index_check_addresses(w->indexed);
        /* None left is refused; it is not looked for for ever. */
        other = (uint64_t) submit(w, n);
        assert_int_equal(submit(w, STATE_CAPSULES_MAX), other + 1);
        {
                uint32_t rest = STATE_CAPSULES_MAX - 101 - 51;
                cleanup_free const char **many_nodes = xcalloc(rest, sizeof(*many_nodes));
                cleanup_free uint32_t *many_ranks = xcalloc(rest, sizeof(*many_ranks));

                for (uint32_t i = 0; i < rest; i++) {
                        many_nodes[i] = "n2";
                        many_ranks[i] = 1;
                }
                REFUSED(place(w, other + 1, "n1", many_nodes, many_ranks, rest), -EAGAIN, "no addresses left");
        }
        assert_int_equal(cancel(w, other, 0, false), 0);
}

static void test_start(void **state) {
        struct world *w = *state;
        uint64_t job = placed_job(w);

        assert_int_equal(ready(w, job, 1, "n2"), 0);
        assert_int_equal(ready(w, job, 1, "n2"), 0);
        assert_int_equal(job_capsule(job_of(w, job), 1)->state, RM__CAPSULE_STATE__CAPSULE_READY);
        REFUSED(ready(w, job, 1, "n1"), -ESRCH, "is not on that node");
        REFUSED(ready(w, job, 2, "n2"), -ESRCH, "is not on that node");
        assert_int_equal(ready(w, 99, 0, "n2"), -ESRCH);
        REFUSED(gone(w, job, 1, "n2"), -EBUSY, "is not completing");
        REFUSED(running(w, 99), -ENOENT, "no job 99");
        assert_int_equal(running(w, job), 0);
        EVENTS("job-started ");
        assert_int_equal(job_of(w, job)->start_usec, w->time_usec);
        assert_string_equal(job_state_name(w, job), "RUNNING");
        REFUSED(running(w, job), -EBUSY, "is not starting");
}

static void test_final_states(void **state) {
        struct world *w = *state;
        static const struct {
                int32_t exit_code;
                int final_state;
                bool cancel;
                bool timeout;
                const char *reason;
                const char *word;
                const char *shown;
        } cases[] = {
                { 0, 0, false, false, "", "COMPLETED", "" },
                { 3, 0, false, false, "", "FAILED", "" },
                { 139, 0, false, false, "rank 2 was killed", "FAILED", "rank 2 was killed" },
                { 143, 0, true, false, "", "CANCELLED", "cancelled by alice" },
                { 0, 0, true, false, "", "CANCELLED", "cancelled by alice" },
                { 143, 0, true, true, "", "TIMEOUT", "time limit reached" },
                { 255, RM__JOB_STATE__JOB_NODE_FAIL, false, false, "node n2 is down", "NODE_FAIL", "node n2 is down" },
                { 255, RM__JOB_STATE__JOB_NODE_FAIL, true, false, "node n2 is down", "NODE_FAIL", "node n2 is down" },
                { 1, RM__JOB_STATE__JOB_FAILED, false, false, "no such program", "FAILED", "no such program" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t job = i % 2 ? running_job(w) : placed_job(w); /* it can end while it starts */

                if (cases[i].cancel)
                        assert_int_equal(cancel(w, job, 0, cases[i].timeout), 0);
                assert_int_equal(ends(w, job, cases[i].exit_code, cases[i].final_state, cases[i].reason), 0);
                assert_string_equal(job_state_name(w, job), "COMPLETING");
                REFUSED(job_wait(w, job, "late", false), -ESRCH, "has ended");
                REFUSED(ends(w, job, 0, 0, ""), -EALREADY, "does not run");
                REFUSED(cancel(w, job, 0, false), -EALREADY, "has already ended");
                REFUSED(forget(w, job), -EBUSY, "has not ended");
                assert_int_equal(gone(w, job, -1, "n1"), 0);
                assert_int_equal(gone(w, job, -1, "n1"), 0);
                assert_int_equal(gone(w, job, 0, "n1"), 0);
                assert_string_equal(job_state_name(w, job), "COMPLETING");
                REFUSED(gone(w, job, 1, "n1"), -ESRCH, "is not on that node");
                assert_int_equal(gone(w, job, 1, "n2"), 0);
                EVENTS("job-ended ");
                assert_string_equal(job_state_name(w, job), cases[i].word);
                assert_string_equal(job_of(w, job)->reason, cases[i].shown);
                assert_int_equal(job_of(w, job)->exit_code, cases[i].exit_code);
                assert_int_equal(job_of(w, job)->end_usec, w->time_usec);
                assert_string_equal(node_state_name(w, "n1"), "IDLE");
                REFUSED(gone(w, job, 1, "n2"), -EBUSY, "is not completing");
                REFUSED(job_wait(w, job, "late", false), -ESRCH, "has ended");
                REFUSED(cancel(w, job, 0, false), -EALREADY, "has already ended");
                assert_int_equal(output_done(w, job), 0);
                assert_true(job_of(w, job)->output_done);
                assert_int_equal(forget(w, job), 0);
                REFUSED(forget(w, job), -ENOENT, "no job");
        }
        assert_int_equal(w->state->n_jobs, 0);
}

static void test_strange_final_states(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);

        for (int final_state = -1000; final_state < 1000; final_state++) {
                if (final_state == 0 ||
                    (final_state >= RM__JOB_STATE__JOB_COMPLETED && final_state <= RM__JOB_STATE__JOB_NODE_FAIL))
                        continue;
                assert_int_equal(ends(w, job, 1, final_state, ""), final_state > 0 && final_state < 13 ? -EINVAL : -ENOTSUP);
        }
        REFUSED(ends(w, job, 1, 2, ""), -EINVAL, "2 is not a final state");
        assert_string_equal(job_state_name(w, job), "RUNNING");
        assert_int_equal(ends(w, 99, 1, 0, ""), -ENOENT);
}

static void test_cancel(void **state) {
        struct world *w = *state;
        uint64_t job = (uint64_t) submit(w, 2);

        REFUSED(cancel(w, 99, 0, false), -ENOENT, "no job 99");
        assert_int_equal(cancel(w, job, SIGINT, false), 0);
        EVENTS("job-cancel job-ended ");
        assert_string_equal(job_state_name(w, job), "CANCELLED");
        assert_int_equal(job_of(w, job)->exit_code, 130);
        REFUSED(ends(w, job, 0, 0, ""), -EALREADY, "does not run");
        REFUSED(place(w, job, "n1", NULL, NULL, 0), -EBUSY, "is not pending");
        job = running_job(w);
        assert_int_equal(cancel(w, job, 0, false), 0);
        EVENTS("job-cancel ");
        assert_true(job_of(w, job)->cancel);
        assert_int_equal(job_of(w, job)->cancel_signal, SIGTERM);
        assert_string_equal(job_state_name(w, job), "RUNNING");
        assert_int_equal(cancel(w, job, SIGKILL, false), 0);
        assert_int_equal(job_of(w, job)->cancel_signal, SIGKILL);
}

static void all_gone(struct world *w, uint64_t job) {
        assert_int_equal(gone(w, job, -1, "n1"), 0);
        assert_int_equal(gone(w, job, 0, "n1"), 0);
        assert_int_equal(gone(w, job, 1, "n2"), 0);
}

/* mpirun's 0 counts for nothing when a group has not ended well; any other word of it does. */
static void test_group_end(void **state) {
        struct world *w = *state;
        static const struct {
                int32_t exit_code;
                int final_state;
                bool cancel;
                bool lost;
                const char *word;
                int32_t shown_code;
                const char *shown;
        } cases[] = {
                { 0, 0, false, false, "FAILED", 137, "killed" },
                { 0, 0, false, true, "NODE_FAIL", 137, "killed" },
                { 14, 0, false, false, "FAILED", 14, "killed" },
                { 14, 0, false, true, "FAILED", 14, "killed" },
                { 0, 0, true, false, "CANCELLED", 0, "cancelled by alice" },
                { 143, 0, true, false, "CANCELLED", 143, "cancelled by alice" },
                { 255, RM__JOB_STATE__JOB_NODE_FAIL, false, false, "NODE_FAIL", 255, "n3 is down" },
                { 255, RM__JOB_STATE__JOB_FAILED, false, false, "FAILED", 255, "n3 is down" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t job = running_job(w);

                REFUSED(group_end(w, job, 1, "n2", 137, KILLED, 5, "killed"), -EBUSY, "is not completing");
                if (cases[i].cancel)
                        assert_int_equal(cancel(w, job, 0, false), 0);
                assert_int_equal(ends(w, job, cases[i].exit_code, cases[i].final_state, cases[i].final_state ? "n3 is down" : ""),
                                 0);
                REFUSED(group_end(w, 99, 1, "n2", 137, KILLED, 5, "killed"), -ESRCH, "is not on that node");
                REFUSED(group_end(w, job, 1, "n1", 137, KILLED, 5, "killed"), -ESRCH, "is not on that node");
                REFUSED(group_end(w, job, -1, "n1", 137, KILLED, 5, "killed"), -ESRCH, "is not on that node");
                REFUSED(group_end(w, job, 1, "n2", 0, KILLED, 5, "killed"), -EINVAL, "is not the exit code of a failure");
                REFUSED(group_end(w, job, 1, "n2", 256, KILLED, 5, "killed"), -EINVAL, "is not the exit code of a failure");
                assert_int_equal(group_end(w, job, 1, "n2", 137, cases[i].lost ? LOST : KILLED, 5, "killed"), 0);
                assert_int_equal(group_end(w, job, 1, "n2", 137, cases[i].lost ? LOST : KILLED, 5, "killed"), 0);
                assert_int_equal(group_end(w, job, 0, "n1", 1, BY_ITSELF, 6, "later"), 0);
                all_gone(w, job);
                assert_string_equal(job_state_name(w, job), cases[i].word);
                assert_int_equal(job_of(w, job)->exit_code, cases[i].shown_code);
                assert_string_equal(job_of(w, job)->reason, cases[i].shown);
        }
}

/* The end that came first is the reason, whichever is told first. */
static void test_group_end_order(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);

        assert_int_equal(ends(w, job, 0, 0, ""), 0);
        assert_int_equal(group_end(w, job, 0, "n1", 1, BY_ITSELF, 7, "it followed"), 0);
        assert_int_equal(group_end(w, job, 1, "n2", 137, KILLED, 5, "it was killed"), 0);
        all_gone(w, job);
        assert_string_equal(job_of(w, job)->reason, "it was killed");
        assert_string_equal(job_state_name(w, job), "FAILED");
}

/* mpirun says 0, and nobody can say how the group of a node that went down has ended. */
static void test_success_with_a_node_down(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);

        assert_int_equal(ends(w, job, 0, 0, ""), 0);
        assert_int_equal(gone(w, job, -1, "n1"), 0);
        assert_int_equal(gone(w, job, 0, "n1"), 0);
        assert_int_equal(health(w, "n2", 2), 0);
        EVENTS("node-down job-ended ");
        assert_string_equal(job_state_name(w, job), "NODE_FAIL");
        assert_int_equal(job_of(w, job)->exit_code, 255);
        assert_string_equal(job_of(w, job)->reason, "node 'n2' went down before it could say how group 1 ended");
        assert_int_equal(health(w, "n2", 1), 0);
        job = running_job(w);
        assert_int_equal(ends(w, job, 0, 0, ""), 0);
        assert_int_equal(gone(w, job, 0, "n1"), 0);
        assert_int_equal(gone(w, job, 1, "n2"), 0);
        assert_int_equal(health(w, "n1", 2), 0); /* only mpirun's capsule was still there */
        assert_string_equal(job_state_name(w, job), "COMPLETED");
}

/* A node that is down has no capsules to wait for. */
static void test_end_with_a_node_down(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);

        assert_int_equal(ends(w, job, 255, RM__JOB_STATE__JOB_NODE_FAIL, "node n2 is down"), 0);
        assert_int_equal(gone(w, job, -1, "n1"), 0);
        assert_int_equal(gone(w, job, 0, "n1"), 0);
        assert_int_equal(health(w, "n2", 2), 0);
        EVENTS("node-down job-ended ");
        assert_int_equal(health(w, "n2", 1), 0);
        job = running_job(w);
        assert_int_equal(health(w, "n1", 2), 0);
        assert_int_equal(health(w, "n2", 2), 0);
        assert_int_equal(ends(w, job, 255, RM__JOB_STATE__JOB_NODE_FAIL, ""), 0);
        EVENTS("job-ended ");
}

static void test_job_availability(void **state) {
        struct world *w = *state;
        uint64_t job = (uint64_t) submit(w, 2);

        assert_int_equal(job_available(w, job, "n1", 2, ""), 0);
        EVENTS("availability ");
        assert_int_equal(job_of(w, job)->n_available, 1);
        assert_true(job_of(w, job)->available_set);
        assert_int_equal(job_available(w, job, NULL, 0, "/j:1: what"), 0);
        EVENTS("availability-error ");
        assert_int_equal(job_of(w, job)->n_available, 1);
        assert_int_equal(job_available(w, job, NULL, 0, ""), 0);
        assert_int_equal(job_of(w, job)->n_available, 0);
        assert_false(job_of(w, job)->available_set);
        /* The text of an event is one line whoever wrote what is in it; apply_command() looks. */
        assert_int_equal(job_available(w, job, NULL, 0, "/j\nrmd[1] error: FORGED\033[31m: what"), 0);
        EVENTS("availability-error ");
        REFUSED(job_available(w, 99, "n1", 2, ""), -ENOENT, "no job 99");
        REFUSED(output_done(w, 99), -ENOENT, "no job 99");
        REFUSED(job_wait(w, 99, "x", false), -ENOENT, "no job 99");
}

static void test_job_spares(void **state) {
        static const char *const nodes[] = { "n3", "n9" };
        struct world *w = *state;
        uint64_t waiting = (uint64_t) submit(w, 2);
        uint64_t job = running_job(w);

        REFUSED(spares(w, 99, nodes, 1), -ENOENT, "no job 99");
        REFUSED(spares(w, job, nodes, 2), -ENOENT, "no node 'n9'");
        REFUSED(spares(w, waiting, nodes, 1), -ESRCH, "does not run");
        assert_int_equal(spares(w, job, nodes, 1), 0);
        EVENTS("job-spares ");
        assert_int_equal(job_of(w, job)->n_spare_nodes, 1);
        assert_string_equal(job_of(w, job)->spare_nodes[0], "n3");
        assert_int_equal(spares(w, job, NULL, 0), 0);
        assert_int_equal(job_of(w, job)->n_spare_nodes, 0);
}

/* The cores are of a node, and no use on another. */
static void test_job_cores(void **state) {
        static const uint32_t cores[] = { 3, 0, 1 };
        struct world *w = *state;
        uint64_t waiting = (uint64_t) submit(w, 2);
        uint64_t job = running_job(w);
        const Rm__Capsule *group = job_capsule(job_of(w, job), 1);

        REFUSED(job_cores(w, 99, 1, "n2", cores, 2), -ENOENT, "no job 99");
        REFUSED(job_cores(w, waiting, 1, "n2", cores, 2), -ESRCH, "does not run");
        assert_int_equal(job_cores(w, job, 1, "n1", cores, 2), 0);         /* it is not there any more */
        assert_int_equal(job_cores(w, job, 1, "n2", cores, 3), 0);         /* it has two ranks */
        assert_int_equal(job_cores(w, job, 77, "n2", cores, 2), 0);        /* there is none */
        assert_int_equal(job_cores(w, job, STATE_HEAD, "n1", cores, 2), 0); /* nor has the head any */
        assert_int_equal(group->n_cores, 0);
        assert_int_equal(job_cores(w, job, 1, "n2", cores, 2), 0);
        assert_int_equal(group->n_cores, 2);
        assert_int_equal(group->cores[0], 3);
        assert_int_equal(job_cores(w, job, 1, "n2", cores, 0), 0);
        assert_int_equal(group->n_cores, 0);
        assert_int_equal(job_cores(w, job, 1, "n2", cores + 1, 2), 0);
        assert_int_equal(move_start(w, job, 1, "n3"), 0);
        assert_int_equal(group->n_cores, 2);
        assert_int_equal(move_commit(w, w->created), 0);
        assert_int_equal(group->n_cores, 0);
}

/* A blocker that keeps a group from being moved is reported by its node, and is of no more
 * interest where the group has been moved all the same. */
static void test_obstacle(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);
        const Rm__Capsule *group = job_capsule(job_of(w, job), 1);
        char text[STATE_BLOCKER_MAX + 2];

        memset(text, 'x', sizeof(text));
        text[sizeof(text) - 1] = '\0';
        assert_int_equal(blocker(w, job, 1, "n2", "uses io_uring"), 0);
        assert_string_equal(group->blocker, "uses io_uring");
        REFUSED(blocker(w, job, 1, "n1", ""), -ESRCH, "is not on that node");
        REFUSED(blocker(w, job, 77, "n2", ""), -ESRCH, "is not on that node");
        REFUSED(blocker(w, 99, 1, "n2", ""), -ESRCH, "");
        REFUSED(blocker(w, job, 1, "n2", text), -EMSGSIZE, "more than 255 bytes");
        assert_string_equal(group->blocker, "uses io_uring");
        assert_int_equal(move_start(w, job, 1, "n3"), 0);
        assert_string_equal(group->blocker, "uses io_uring");
        assert_int_equal(move_commit(w, w->created), 0);
        assert_string_equal(group->blocker, "");
}

/* ---- moves ---- */

static void test_move(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);
        const Rm__Capsule *group = job_capsule(job_of(w, job), 1);
        uint32_t address = group->address;
        uint64_t before = group->incarnation;
        uint32_t capsules;

        assert_int_equal(move_start(w, job, 1, "n3"), 0);
        EVENTS("move-started ");
        assert_int_equal(w->created, 1);
        assert_string_equal(job_state_name(w, job), "MIGRATING");
        /* Room is held at both ends. */
        assert_int_equal(state_node_ranks(w->indexed, "n2", &capsules), 2);
        assert_int_equal(state_node_ranks(w->indexed, "n3", &capsules), 2);
        assert_int_equal(capsules, 1);
        assert_int_equal(move_commit(w, 1), 0);
        assert_string_equal(group->node, "n3");
        assert_true(group->incarnation > before); /* another copy, also where it has been before */
        assert_int_equal(group->address, address);
        assert_null(job_capsule(job_of(w, job), INT32_MAX)); /* users may name any number */
        assert_null(job_capsule(job_of(w, job), INT32_MIN));
        assert_null(state_capsule_move(w->indexed, job, INT32_MAX));
        assert_null(state_capsule_move(w->indexed, job, INT32_MIN));
        assert_int_equal(state_node_ranks(w->indexed, "n2", &capsules), 0);
        assert_int_equal(capsules, 1);
        assert_string_equal(job_state_name(w, job), "MIGRATING");
        REFUSED(move_start(w, job, 1, "n1"), -EBUSY, "is moving already");
        assert_int_equal(move_done(w, 1, 4096, 250000), 0);
        EVENTS("move-done ");
        assert_int_equal(group->freeze_usec, 250000);
        assert_int_equal(group->image_bytes, 4096);
        assert_int_equal(group->moves, 1);
        assert_int_equal(job_of(w, job)->moves, 1);
        assert_string_equal(job_state_name(w, job), "RUNNING");
        REFUSED(move_done(w, 1, 1, 1), -EALREADY, "is not committed");
        /* The head, too, and back again. */
        assert_int_equal(move_start(w, job, STATE_HEAD, "n2"), 0);
        assert_int_equal(move_start(w, job, 1, "n2"), 0);
        assert_int_equal(move_commit(w, 3), 0);
        assert_int_equal(move_commit(w, 2), 0);
}

static int ask_for_move(struct world *w, uint32_t uid, bool one_at_a_time, uint64_t job, int32_t capsule, const char *to) {
        Rm__CmdMoveStart body = RM__CMD_MOVE_START__INIT;
        Rm__Command command = RM__COMMAND__INIT;

        body.job = job;
        body.capsule = capsule;
        body.to = (char *) to;
        body.cause = RM__MOVE_CAUSE__MOVE_CAUSE_ASKED;
        body.asked_uid = uid;
        body.one_at_a_time = one_at_a_time;
        command.body_case = RM__COMMAND__BODY_MOVE_START;
        command.move_start = &body;
        return apply_command(w, &command);
}

static void test_user_keeps_all_move_slots_busy(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w), move;

        assert_int_equal(move_start(w, job, STATE_HEAD, "n3"), 0); /* the scheduler's do not count */
        assert_int_equal(ask_for_move(w, 1000, true, job, 1, "n3"), 0);
        move = w->created;
        assert_int_equal(state_move(w->state, move)->cause, RM__MOVE_CAUSE__MOVE_CAUSE_ASKED);
        REFUSED(ask_for_move(w, 1000, true, job, 0, "n3"), -EBUSY, "one at a time");
        assert_int_equal(ask_for_move(w, 0, false, job, 0, "n3"), 0); /* an administrator's */
        assert_int_equal(move_abort(w, w->created, "x"), 0);
        assert_int_equal(move_commit(w, move), 0);
        REFUSED(ask_for_move(w, 1000, true, job, 0, "n3"), -EBUSY, "one at a time"); /* its source is not done yet */
        assert_int_equal(move_done(w, move, 1, 1), 0);
        assert_int_equal(ask_for_move(w, 1000, true, job, 0, "n3"), 0);
        move = w->created;
        REFUSED(ask_for_move(w, 1000, true, job, 1, "n1"), -EBUSY, "one at a time");
        assert_int_equal(move_abort(w, move, "x"), 0);
        assert_int_equal(ask_for_move(w, 1000, true, job, 1, "n1"), 0);
}

static void test_refused_moves(void **state) {
        struct world *w = *state;
        uint64_t job = (uint64_t) submit(w, 4);

        REFUSED(move_start(w, 99, 0, "n2"), -ENOENT, "no job 99");
        REFUSED(move_start(w, job, 0, "n2"), -EBUSY, "does not run");
        job = placed_job(w);
        REFUSED(move_start(w, job, 0, "n2"), -EBUSY, "does not run");
        job = running_job(w);
        REFUSED(move_start(w, job, 2, "n2"), -ENOENT, "groups 0 to 1 (and its head, -1), not 2");
        REFUSED(move_start(w, job, -2, "n2"), -ENOENT, "not -2");
        REFUSED(move_start(w, job, 0, "n9"), -ENOENT, "no node 'n9' (known: n1 n2 n3)");
        REFUSED(move_start(w, job, 0, "n1"), -EALREADY, "group 0 of job 3 is on n1 already");
        REFUSED(move_start(w, job, -1, "n1"), -EALREADY, "head of job 3 is on n1 already");
        REFUSED(move_commit(w, 7), -ENOENT, "no move 7");
        REFUSED(move_abort(w, 7, "x"), -ENOENT, "no move 7");
        REFUSED(move_done(w, 7, 1, 1), -ENOENT, "no move 7");
        assert_int_equal(w->state->next_move, 1);
}

/* The command that comes first in the log wins, and the other one is refused. */
static void test_commit_and_abort_race(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);

        assert_int_equal(move_start(w, job, 1, "n3"), 0);
        assert_int_equal(move_abort(w, 1, "destination is full"), 0);
        EVENTS("move-failed ");
        REFUSED(move_commit(w, 1), -EALREADY, "move 1 is over: destination is full");
        REFUSED(move_abort(w, 1, "again"), -EALREADY, "is not running");
        REFUSED(move_done(w, 1, 1, 1), -EALREADY, "is not committed");
        assert_string_equal(job_capsule(job_of(w, job), 1)->node, "n2");
        assert_string_equal(state_move(w->state, 1)->error, "destination is full");
        assert_int_equal(move_start(w, job, 1, "n3"), 0);
        REFUSED(move_done(w, 2, 1, 1), -EALREADY, "is not committed");
        assert_int_equal(move_commit(w, 2), 0);
        REFUSED(move_abort(w, 2, "late"), -EALREADY, "is not running");
        REFUSED(move_commit(w, 2), -EALREADY, "move 2 is over: committed already");
        assert_string_equal(job_capsule(job_of(w, job), 1)->node, "n3");
        assert_int_equal(job_capsule(job_of(w, job), 1)->moves, 1);
        assert_int_equal(state_move(w->state, 2)->end_usec, 0);
}

/* A group that runs without all of its memory: its next move waits, and says so. */
static void test_memory_comes_after_the_group(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);
        const Rm__Move *move;

        assert_int_equal(move_start(w, job, 1, "n3"), 0);
        REFUSED(move_filled(w, 1, 5), -EALREADY, "is not committed");
        assert_int_equal(move_commit(w, 1), 0);
        /* The destination may be faster than the source. */
        assert_int_equal(move_filled(w, 1, 700000), 0);
        EVENTS("move-filled ");
        assert_int_equal(move_done(w, 1, 4096, 250000), 0);
        EVENTS("move-done ");
        assert_int_equal(state_move(w->state, 1)->fill_usec, 700000);
        REFUSED(move_filled(w, 1, 5), -EALREADY, "known to be filled");
        REFUSED(move_filled(w, 9, 5), -ENOENT, "no move 9");

        assert_int_equal(move_start(w, job, 1, "n2"), 0);
        move = state_move(w->state, 2);
        assert_int_equal(move_waiting(w, 2, "12 MB are missing"), 0);
        EVENTS("move-waiting ");
        assert_string_equal(move->waiting, "12 MB are missing");
        assert_int_equal(move_waiting(w, 2, ""), 0);
        EVENTS("");
        assert_string_equal(move->waiting, "");
        assert_int_equal(move_waiting(w, 2, "3 MB are missing"), 0);
        assert_int_equal(move_commit(w, 2), 0);
        assert_string_equal(move->waiting, "");
        REFUSED(move_waiting(w, 2, "late"), -EALREADY, "is not running");
        assert_int_equal(move_done(w, 2, 1, 1), 0);
        assert_int_equal(move_filled(w, 2, 1), 0);

        assert_int_equal(move_start(w, job, 1, "n3"), 0);
        assert_int_equal(move_waiting(w, 3, "1 MB is missing"), 0);
        assert_int_equal(move_abort(w, 3, "why"), 0);
        assert_string_equal(state_move(w->state, 3)->waiting, "");
        REFUSED(move_filled(w, 3, 5), -EALREADY, "is not committed");
}

/* The source is needed until the destination has all, or the copy there is not the job's any
 * more. */
static void test_postcopy(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);
        const Rm__Move *move;

        assert_int_equal(move_start(w, job, 0, "n3"), 0);
        move = state_move(w->state, 1);
        assert_false(move_needs_source(w->state, move));
        assert_int_equal(move_commit_early(w, 1, 4096), 0);
        EVENTS("move-postcopy ");
        assert_int_equal(move->later_bytes, 4096);
        assert_true(move_needs_source(w->state, move));
        assert_int_equal(move_filled(w, 1, 700000), 0);
        assert_false(move_needs_source(w->state, move));
        assert_int_equal(move_done(w, 1, 1, 1), 0);
        assert_int_equal(move->later_bytes, 4096);

        assert_int_equal(move_start(w, job, 1, "n3"), 0);
        assert_int_equal(move_commit(w, 2), 0);
        EVENTS("");
        assert_false(move_needs_source(w->state, state_move(w->state, 2)));
        assert_int_equal(move_done(w, 2, 1, 1), 0);

        assert_int_equal(move_start(w, job, 1, "n2"), 0);
        assert_int_equal(move_commit_early(w, 3, 4096), 0);
        move = state_move(w->state, 3);
        assert_true(move_needs_source(w->state, move));
        assert_int_equal(ends(w, job, 0, 0, ""), 0);
        assert_false(move_needs_source(w->state, move));
}

static void test_move_in_a_hurry(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);

        assert_int_equal(move_start(w, job, 0, "n3"), 0);
        assert_int_equal(move_commit(w, 1), 0);
        assert_int_equal(move_done_hurried(w, 1, 2300000), 0);
        EVENTS("move-hurried move-done ");
        assert_int_equal(state_move(w->state, 1)->expedite_usec, 2300000);
        assert_int_equal(move_start(w, job, 0, "n1"), 0);
        assert_int_equal(move_commit(w, 2), 0);
        assert_int_equal(move_done_hurried(w, 2, 0), 0);
        EVENTS("move-done ");
}

static void test_job_ends_during_moves(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);

        assert_int_equal(move_start(w, job, 0, "n3"), 0);
        assert_int_equal(move_start(w, job, 1, "n3"), 0);
        assert_int_equal(move_commit(w, 2), 0);
        assert_int_equal(ends(w, job, 0, 0, ""), 0);
        EVENTS("move-failed ");
        REFUSED(move_commit(w, 1), -EALREADY, "the job has ended");
        REFUSED(move_start(w, job, -1, "n3"), -EBUSY, "does not run");
        /* The committed one is where it went. */
        REFUSED(gone(w, job, 1, "n2"), -ESRCH, "is not on that node");
        assert_int_equal(gone(w, job, -1, "n1"), 0);
        assert_int_equal(gone(w, job, 0, "n1"), 0);
        assert_int_equal(gone(w, job, 1, "n3"), 0);
        assert_string_equal(job_state_name(w, job), "COMPLETED");
        assert_int_equal(forget(w, job), 0);
        assert_int_equal(move_done(w, 2, 1, 1), 0);
        EVENTS("move-done ");
}

static void test_old_moves_are_forgotten(void **state) {
        struct world *w = *state;
        uint64_t job = running_job(w);

        w->thorough = false;
        /* The very first never ends: its source has been lost. */
        assert_int_equal(move_start(w, job, 0, "n3"), 0);
        assert_int_equal(move_commit(w, 1), 0);
        for (unsigned i = 0; i < STATE_MOVES_KEPT + 500; i++) {
                assert_int_equal(move_start(w, job, 1, "n3"), 0);
                assert_int_equal(move_abort(w, w->created, "x"), 0);
        }
        assert_int_equal(w->state->n_moves, STATE_MOVES_KEPT);
        assert_non_null(state_move(w->state, 1));
        assert_null(state_move(w->state, 2));
        assert_non_null(state_move(w->state, STATE_MOVES_KEPT + 500));
        state_check(w->indexed);
        index_check_addresses(w->indexed);
}

static void test_words(void **state) {
        struct world *w = *state;
        static const char *const on_n1[] = { "n1" };
        static const char *const names[] = { "n1" };
        static const uint32_t four[] = { 4 };
        static const uint32_t two[] = { 2 };
        uint64_t job = (uint64_t) submit(w, 4);
        char buf[24];

        assert_int_equal(place(w, job, "n1", on_n1, four, 1), 0);
        assert_int_equal(running(w, job), 0);
        assert_string_equal(node_state_name(w, "n1"), "ALLOCATED");
        assert_int_equal(available(w, names, two, 1), 0);
        assert_string_equal(job_state_name(w, job), "FOLDED");
        assert_int_equal(available(w, names, four, 1), 0);
        assert_string_equal(job_state_name(w, job), "RUNNING");
        assert_int_equal(drain(w, "n1", "", false), 0);
        assert_string_equal(job_state_name(w, job), "FOLDED");
        assert_string_equal(capsule_state_name(STATE_HEAD, buf), "head");
        assert_string_equal(capsule_state_name(INT32_MAX, buf), "group 2147483647");
        assert_string_equal(capsule_state_name(INT32_MIN, buf), "group -2147483648");
}

/* The node with the fewest cores for a rank counts, of all nodes of the job. */
static void test_fold(void **state) {
        struct world *w = *state;
        static const char *const nodes[] = { "n1", "n2" };
        static const uint32_t groups[] = { 4, 3 };
        static const struct {
                uint32_t cores[2];
                const char *folded_node;
                uint32_t ranks;
        } cases[] = {
                { { 4, 3 }, NULL, 0 }, { { 3, 3 }, "n1", 4 }, { { 4, 1 }, "n2", 3 },
                { { 2, 1 }, "n2", 3 }, { { 1, 2 }, "n1", 4 }, { { 0, 1 }, "n1", 4 },
        };
        uint64_t job = (uint64_t) submit(w, 7);

        assert_int_equal(place(w, job, "n1", nodes, groups, 2), 0);
        assert_int_equal(running(w, job), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const Rm__Node *node;
                uint32_t ranks;

                assert_int_equal(available(w, nodes, cases[i].cores, 2), 0);
                node = state_job_fold(w->indexed, job_of(w, job), &ranks);
                assert_int_equal(ranks, cases[i].ranks);
                if (cases[i].folded_node)
                        assert_string_equal(node->name, cases[i].folded_node);
                else
                        assert_null(node);
        }
}

/* Told when it is new, and when it is another one. */
static void test_scheduling_warning(void **state) {
        struct world *w = *state;

        assert_int_equal(scheduling(w, ""), 0);
        EVENTS("");
        assert_int_equal(scheduling(w, "policy 'x': crashed"), 0);
        EVENTS("policy-error ");
        assert_string_equal(w->state->scheduling_warning, "policy 'x': crashed");
        assert_int_equal(scheduling(w, "policy 'x': crashed"), 0);
        EVENTS("");
        assert_int_equal(scheduling(w, "policy 'x': hangs"), 0);
        EVENTS("policy-error ");
        assert_int_equal(scheduling(w, ""), 0);
        EVENTS("");
        assert_string_equal(w->state->scheduling_warning, "");
}

/* The topology: which list replaces which, which node is below which switch, and the mismatches. */
static void test_topology(void **state) {
        struct world *w = *state;
        char *unknown, *loose;
        int32_t *switches;

        state_topology_mismatches(w->state, &unknown, &loose);
        assert_null(unknown);
        assert_null(loose);
        assert_int_equal(topology(w, "s1:n1,n2,n8,n9:2 core::0"), 0);
        EVENTS("topology ");
        assert_int_equal(w->state->n_switches, 2);
        assert_string_equal(w->state->topology_path, "/t.conf");
        switches = state_node_switches(w->state);
        for (size_t i = 0; i < w->state->n_nodes; i++)
                assert_int_equal(switches[i], i < 2 ? 0 : -1);
        free(switches);
        state_topology_mismatches(w->state, &unknown, &loose);
        assert_string_equal(unknown, "/t.conf:1: no node 'n8' in this cluster, and 1 more that are not");
        assert_string_equal(loose, "/t.conf: it has no switch for node 'n3'");
        free(unknown);
        free(loose);
        assert_int_equal(join(w, "n8", 4), 0); /* later than the switches */
        switches = state_node_switches(w->state);
        assert_int_equal(switches[w->state->n_nodes - 1], 0);
        free(switches);

        REFUSED(topology(w, "a:n1:2 b:n2:1"), -EINVAL, "cycle");
        REFUSED(topology(w, "a:n1:3 b:n2:0"), -EINVAL, "unknown parent switch");
        REFUSED(topology(w, "a/b:n1:0"), -EINVAL, "without a valid name");
        assert_int_equal(w->state->n_switches, 2);

        assert_int_equal(topology_error(w, "/t.conf:3: what is this"), 0);
        EVENTS("topology ");
        assert_int_equal(w->state->n_switches, 2);
        assert_string_equal(w->state->topology_path, "/t.conf");
        assert_string_equal(w->state->topology_error, "/t.conf:3: what is this");
        assert_int_equal(topology(w, ""), 0);
        assert_int_equal(w->state->n_switches, 0);
        assert_string_equal(w->state->topology_error, "");
}

static void test_note(void **state) {
        struct world *w = *state;

        assert_int_equal(note(w, "what happened"), 0);
        EVENTS("note ");
}

/* As a later version may have written it: nothing of it is applied, not even its index. */
static void not_understood(struct world *w, const Rm__Command *command, const char *text) {
        struct packed before = pack_state(w->state), after;
        struct state_result result;
        struct rm_error err = { 0 };

        assert_int_equal(state_understands(command, &err), -ENOTSUP);
        assert_non_null(strstr(err.text, text));
        state_apply(w->state, w->indexed, w->index + 1, command, &result);
        assert_true(result.unknown);
        assert_int_equal(result.error.code, -ENOTSUP);
        assert_non_null(strstr(result.error.text, text));
        assert_int_equal(result.n_events, 0);
        after = pack_state(w->state);
        assert_true(packed_equal(&before, &after));
        packed_finish(&before);
        packed_finish(&after);
        state_result_finish(&result);
}

static void test_what_is_not_understood(void **state) {
        struct world *w = *state;
        Rm__Command command = RM__COMMAND__INIT;
        Rm__CmdMoveStart move = RM__CMD_MOVE_START__INIT;
        Rm__CmdLevel level = RM__CMD_LEVEL__INIT;
        Rm__CmdTopology topology = RM__CMD_TOPOLOGY__INIT;
        Rm__Switch leaf = RM__SWITCH__INIT, *switches[] = { &leaf };
        ProtobufCMessageUnknownField field = { .tag = 900, .wire_type = PROTOBUF_C_WIRE_TYPE_VARINT, .len = 1 };

        not_understood(w, &command, "does not know the command");
        command.body_case = (Rm__Command__BodyCase) 999;
        not_understood(w, &command, "does not know the command");
        command.body_case = RM__COMMAND__BODY_MOVE_START;
        command.move_start = &move;
        move.cause = (Rm__MoveCause) 77;
        not_understood(w, &command, "does not know all");
        command.body_case = RM__COMMAND__BODY_TOPOLOGY;
        command.topology = &topology;
        topology.n_switches = 1;
        topology.switches = switches;
        leaf.base.n_unknown_fields = 1;
        leaf.base.unknown_fields = &field;
        not_understood(w, &command, "does not know all");
        command.body_case = RM__COMMAND__BODY_LEVEL;
        command.level = &level;
        level.level = STATE_LEVEL + 1;
        not_understood(w, &command, "feature level");
}

static int raise_level(struct world *w, uint32_t to) {
        Rm__Command command = RM__COMMAND__INIT;
        Rm__CmdLevel body = RM__CMD_LEVEL__INIT;

        body.level = to;
        command.body_case = RM__COMMAND__BODY_LEVEL;
        command.level = &body;
        return apply_command(w, &command);
}

static int join_at_level(struct world *w, const char *name, uint32_t level) {
        Rm__Command command = RM__COMMAND__INIT;
        Rm__CmdNodeJoin body = RM__CMD_NODE_JOIN__INIT;
        Rm__Node node = RM__NODE__INIT;

        node.name = (char *) name;
        node.cores = 4;
        node.level = level;
        body.node = &node;
        command.body_case = RM__COMMAND__BODY_NODE_JOIN;
        command.node_join = &body;
        return apply_command(w, &command);
}

/* The state decides it: neither more nor fewer ranks on a core, nor a new leader, change it. */
static void test_fold_since(void **state) {
        struct world *w = *state;
        static const char *const nodes[] = { "n1", "n2" };
        static const uint32_t groups[] = { 4, 3 };
        static const uint32_t enough[] = { 4, 3 }, less[] = { 2, 3 }, least[] = { 2, 1 };
        uint64_t job = (uint64_t) submit(w, 7), since;

        assert_int_equal(available(w, nodes, less, 2), 0);
        assert_int_equal(place(w, job, "n1", nodes, groups, 2), 0);
        assert_int_equal(job_of(w, job)->fold_since_usec, 0); /* it does not run yet */
        assert_int_equal(running(w, job), 0);
        since = job_of(w, job)->fold_since_usec;
        assert_int_equal(since, w->time_usec);
        assert_int_equal(available(w, nodes, least, 2), 0);
        assert_true(w->time_usec > since);
        assert_int_equal(job_of(w, job)->fold_since_usec, since);
        assert_int_equal(available(w, nodes, enough, 2), 0);
        assert_int_equal(job_of(w, job)->fold_since_usec, 0);
        assert_int_equal(drain(w, "n2", "", false), 0);
        assert_int_equal(job_of(w, job)->fold_since_usec, w->time_usec);
        assert_int_equal(resume(w, "n2"), 0);
        assert_int_equal(job_of(w, job)->fold_since_usec, 0);
}

enum { OLDER = STATE_LEVEL - 1 };

/* A dead node with an older rmd holds nobody up, unless it is a voter; nor does it come back. */
static void test_feature_level_with_dead_node(void **state) {
        static const char *const voters[] = { "n2" };
        cleanup_free char *refusal = xasprintf("node 'n2' knows feature level %d", OLDER);
        struct world *w = *state;
        uint64_t since;

        w->state->level = w->twin->level = OLDER;
        assert_int_equal(join_at_level(w, "n1", STATE_LEVEL), 0);
        assert_int_equal(join_at_level(w, "n2", OLDER), 0);
        assert_int_equal(join_at_level(w, "n3", STATE_LEVEL), 0);
        REFUSED(raise_level(w, STATE_LEVEL), -EBUSY, refusal);
        assert_int_equal(health(w, "n2", RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
        since = state_node(w->state, "n2")->health_since_usec;
        assert_int_equal(state_known_level(w->state, since), OLDER);
        assert_int_equal(state_known_level(w->state, since + 1), STATE_LEVEL);
        assert_int_equal(keep_log(w, voters, 1), 0);
        assert_int_equal(state_known_level(w->state, since + 1), OLDER);
        REFUSED(raise_level(w, STATE_LEVEL), -EBUSY, refusal);
        assert_int_equal(keep_log(w, voters, 0), 0);
        assert_int_equal(raise_level(w, STATE_LEVEL), 0);
        REFUSED(join_at_level(w, "n2", OLDER), -EPROTO, "update it");
        assert_int_equal(state_node(w->state, "n2")->health, RM__NODE_HEALTH__NODE_HEALTH_DOWN);
        assert_int_equal(remove_node(w, "n2"), 0);
        assert_null(state_node(w->state, "n2"));
}

static void test_feature_level(void **state) {
        struct world *w = *state;
        struct rm_error err = { 0 };

        assert_int_equal(state_known_level(w->state, 0), 0);
        for (int i = 1; i <= 3; i++) {
                char name[] = { 'n', (char) ('0' + i), 0 };

                assert_int_equal(join_at_level(w, name, 1), 0);
        }
        assert_int_equal(state_known_level(w->state, 0), 1);
        assert_int_equal(join_at_level(w, "old", 0), 0);
        assert_int_equal(state_known_level(w->state, 0), 0);
        REFUSED(raise_level(w, 1), -EBUSY, "node 'old' knows feature level 0");
        assert_int_equal(join_at_level(w, "old", 1), 0); /* it was updated */
        assert_int_equal(state_known_level(w->state, 0), 1);
        assert_int_equal(raise_level(w, 1), 0);
        assert_int_equal(w->state->level, 1);
        REFUSED(raise_level(w, 1), -EALREADY, "already");
        REFUSED(join_at_level(w, "older", 0), -EPROTO, "update it");
        assert_int_equal(state_understands_state(w->state, &err), 0);
        w->state->level = STATE_LEVEL + 1;
        assert_int_equal(state_understands_state(w->state, &err), -ENOTSUP);
        w->state->level = 1;
}

/* A command as a later version, or a broken one, may send it: nothing in it. */
static void test_hollow_commands(void **state) {
        struct world *w = *state;

        (void) running_job(w);
        for (unsigned tag = 10; tag <= RM__COMMAND__BODY_JOB_RESTART; tag++) {
                uint8_t wire[] = { (uint8_t) ((tag << 3 | 2) & 0x7f), 0, 0 };
                size_t bytes = 2;
                Rm__Command *command;

                if (tag == RM__COMMAND__BODY_NOTE)
                        continue; /* an event of its text */
                if (tag >= 16) {
                        wire[0] |= 0x80;
                        wire[1] = (uint8_t) ((tag << 3) >> 7);
                        bytes = 3;
                }
                command = rm__command__unpack(NULL, bytes, wire);
                assert_non_null(command);
                if (command->body_case == tag)
                        (void) apply_command(w, command);
                else
                        assert_true(tag > RM__COMMAND__BODY_LEVEL); /* the numbers there are not all given out */
                rm__command__free_unpacked(command, NULL);
        }
}

/* ---- a job that starts again ---- */

/* Head and group 0 on n1, group 1 on n2; RUNNING. */
static uint64_t run_restartable(struct world *w, uint32_t restarts) {
        static const char *const nodes[] = { "n1", "n2" };
        static const uint32_t ranks[] = { 2, 2 };
        uint64_t job = (uint64_t) submit(w, 4);

        let_restart(w, job, restarts);
        start_job(w, job, nodes, ranks, 2);
        return job;
}

static void test_restart(void **state) {
        static const char *const again[] = { "n1", "n1" };
        static const uint32_t ranks[] = { 2, 2 };
        struct world *w = *state;
        uint64_t job = run_restartable(w, 1);
        const Rm__Job *j = job_of(w, job);
        uint64_t before = job_capsule(j, 0)->incarnation;

        REFUSED(restart(w, 99, 2, "n2", true), -ENOENT, "no job 99");
        REFUSED(restart(w, job, 2, "n2", true), -EAGAIN, "not down any more");
        assert_int_equal(health(w, "n2", RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
        REFUSED(restart(w, job, 3, "n2", true), -EALREADY, "attempt 3 does not follow attempt 1");
        assert_int_equal(restart(w, job, 2, "n2", true), 0);
        EVENTS("job-restarted ");
        assert_string_equal(job_state_name(w, job), "RECOVERING");
        assert_string_equal(j->reason, "attempt 2 of 2 (node n2 is down): what is left of the one before is being removed");
        assert_false(job_running(j));
        assert_int_equal(j->start_usec, 0);
        /* Nothing of the lost attempt counts any more, and nothing of the next begins. */
        REFUSED(ends(w, job, 1, 0, ""), -EALREADY, "does not run");
        REFUSED(running(w, job), -EBUSY, "not starting");
        REFUSED(job_wait(w, job, "waits", true), -EBUSY, "being removed");
        REFUSED(place(w, job, "n1", again, ranks, 2), -EBUSY, "not pending");
        assert_int_equal(restart(w, job, 2, "n2", true), 0); /* said again */
        EVENTS("");
        assert_int_equal(gone(w, job, STATE_HEAD, "n1"), 0);
        REFUSED(gone_of(w, job, 0, before + 100, "n1"), -ESTALE, "another by now");
        assert_string_equal(job_state_name(w, job), "RECOVERING");
        assert_int_equal(gone_of(w, job, 0, before, "n1"), 0);
        assert_string_equal(job_state_name(w, job), "PENDING");
        assert_string_equal(j->reason, "attempt 2 of 2 (node n2 is down): waits to be placed");
        assert_int_equal(j->n_capsules, 0);
        assert_int_equal(j->group_size, 0);
        assert_string_equal(node_state_name(w, "n1"), "IDLE");

        assert_int_equal(place(w, job, "n1", again, ranks, 2), 0);
        assert_int_equal(j->attempt, 2);
        assert_true(job_capsule(j, 0)->incarnation > before);
        assert_string_equal(j->reason, "");
        assert_int_equal(health(w, "n1", RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
        REFUSED(restart(w, job, 3, "n1", true), -EPERM, "may not start again");
}

/* n2 with group 1 says nothing, and mpirun ends, as it does when a daemon's connection does; all
 * else of the job is removed. */
static uint64_t end_without_n2(struct world *w, int32_t exit_code, uint32_t restarts) {
        uint64_t job = run_restartable(w, restarts);

        assert_int_equal(ends(w, job, exit_code, 0, ""), 0);
        assert_int_equal(gone(w, job, STATE_HEAD, "n1"), 0);
        assert_int_equal(gone(w, job, 0, "n1"), 0);
        assert_string_equal(job_state_name(w, job), "COMPLETING");
        return job;
}

static void test_mpirun_ends_before_loss_is_known(void **state) {
        struct world *w = *state;

        for (int32_t exit_code = 0; exit_code < 2; exit_code++) {
                uint64_t job = end_without_n2(w, exit_code, 1);
                const Rm__Job *j = job_of(w, job);

                REFUSED(restart(w, job, 2, "n1", false), -EALREADY, "does not run");
                REFUSED(cancel(w, job, 15, false), -EALREADY, "ended");
                assert_int_equal(health(w, "n2", RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
                assert_string_equal(job_state_name(w, job), "COMPLETING"); /* until n2 has fenced for certain */
                assert_int_equal(node_fence(w, "n2", 0, false, "plugin 'x' runs"), 0);
                assert_string_equal(job_state_name(w, job), "RECOVERING");
                assert_int_equal(restart(w, job, 2, "n2", true), 0);
                EVENTS("job-restarted ");
                assert_string_equal(job_state_name(w, job), "PENDING");
                assert_string_equal(j->reason, "attempt 2 of 2 (node n2 is down): waits to be placed");
                assert_int_equal(j->exit_code, 0);
                assert_int_equal(j->final_state, RM__JOB_STATE__JOB_PENDING);
                assert_int_equal(health(w, "n2", RM__NODE_HEALTH__NODE_HEALTH_UP), 0);
        }
}

/* The node was only silent: the job has ended as mpirun says. */
static void test_mpirun_ends_and_node_is_back(void **state) {
        struct world *w = *state;
        uint64_t job = end_without_n2(w, 7, 1);

        assert_int_equal(health(w, "n2", RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
        assert_int_equal(health(w, "n2", RM__NODE_HEALTH__NODE_HEALTH_UP), 0);
        assert_int_equal(gone(w, job, 1, "n2"), 0);
        EVENTS("job-ended ");
        assert_string_equal(job_state_name(w, job), "FAILED");
        assert_int_equal(job_of(w, job)->exit_code, 7);
        /* Only mpirun's own capsule was on it: how all groups ended is known. */
        job = run_restartable(w, 1);
        assert_int_equal(ends(w, job, 0, 0, ""), 0);
        assert_int_equal(gone(w, job, 0, "n1"), 0);
        assert_int_equal(gone(w, job, 1, "n2"), 0);
        assert_int_equal(health(w, "n1", RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
        assert_string_equal(job_state_name(w, job), "COMPLETED");
}

static void test_mpirun_ends_and_node_starts_anew(void **state) {
        struct world *w = *state;
        uint64_t restarts = end_without_n2(w, 0, 1), aborts = end_without_n2(w, 0, 0);

        assert_int_equal(join(w, "n2", 3), 0); /* its rmd did, but not the node */
        assert_string_equal(job_state_name(w, restarts), "COMPLETING");
        w->boot++;
        assert_int_equal(join(w, "n2", 4), 0);
        EVENTS("node-joined job-restarted ");
        assert_string_equal(job_state_name(w, restarts), "PENDING");
        assert_string_equal(job_of(w, restarts)->restart_reason, "node n2 was started anew");
        assert_int_equal(gone(w, aborts, 1, "n2"), 0);
        assert_string_equal(job_state_name(w, aborts), "NODE_FAIL");
        assert_int_equal(job_of(w, aborts)->exit_code, 255);
}

/* The wait may take long, where the node must be fenced. */
static void test_cancel_while_end_is_open(void **state) {
        struct world *w = *state;
        uint64_t job;

        job = end_without_n2(w, 0, 1);
        assert_int_equal(health(w, "n2", RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
        assert_int_equal(cancel(w, job, 15, false), 0);
        EVENTS("job-cancel job-ended ");
        assert_string_equal(job_state_name(w, job), "CANCELLED");
        assert_int_equal(job_of(w, job)->exit_code, 128 + 15);
}

/* The job had its last restart already. */
static void test_mpirun_ends_and_may_not_restart(void **state) {
        struct world *w = *state;
        uint64_t job = end_without_n2(w, 0, 0);

        assert_int_equal(health(w, "n2", RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
        assert_string_equal(job_state_name(w, job), "NODE_FAIL");
        assert_int_equal(health(w, "n2", RM__NODE_HEALTH__NODE_HEALTH_UP), 0);
        job = run_restartable(w, 1);
        assert_int_equal(ends(w, job, 255, RM__JOB_STATE__JOB_NODE_FAIL, "a capsule of n1 is lost"), 0);
        assert_int_equal(gone(w, job, STATE_HEAD, "n1"), 0);
        assert_int_equal(gone(w, job, 0, "n1"), 0);
        assert_int_equal(health(w, "n2", RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
        assert_string_equal(job_state_name(w, job), "NODE_FAIL");
}

/* Each placement has another epoch, of whatever job. */
static void test_epoch(void **state) {
        static const char *const nodes[] = { "n1", "n1" };
        static const uint32_t ranks[] = { 2, 2 };
        struct world *w = *state;
        uint64_t early = run_restartable(w, 3);
        uint64_t job = run_restartable(w, 3);

        assert_int_equal(job_of(w, early)->epoch, 1);
        assert_int_equal(job_of(w, job)->epoch, 2);
        assert_int_equal(health(w, "n2", RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
        assert_int_equal(restart(w, early, 2, "n2", true), 0);
        assert_int_equal(gone(w, early, STATE_HEAD, "n1"), 0);
        assert_int_equal(gone(w, early, 0, "n1"), 0);
        assert_int_equal(place(w, early, "n1", nodes, ranks, 2), 0);
        assert_int_equal(job_of(w, early)->epoch, 3);
        assert_int_equal(job_of(w, job)->epoch, 2);
}

/* While a fence is needed, the job says so, and nothing of it has changed if the node comes
 * back. */
static void test_fence(void **state) {
        struct world *w = *state;
        uint64_t job = run_restartable(w, 1), down;
        const Rm__Job *j = job_of(w, job);
        const Rm__Node *node = state_node(w->state, "n2");

        REFUSED(node_fence(w, "n9", 0, true, ""), -ENOENT, "no node 'n9'");
        REFUSED(node_fence(w, "n2", 0, true, ""), -EBUSY, "'n2' is not DOWN");
        assert_int_equal(health(w, "n2", RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
        down = node->health_since_usec;
        REFUSED(node_fence(w, "n2", down + 1, true, ""), -EAGAIN, "up again meanwhile");
        assert_null(job_fence_node(w->state, j));
        assert_int_equal(node_fence(w, "n2", down, false, "plugin 'x' runs"), 0);
        EVENTS("node-fence ");
        assert_ptr_equal(job_fence_node(w->state, j), node);
        assert_string_equal(job_state_name(w, job), "RECOVERING");
        assert_true(job_running(j));
        assert_int_equal(health(w, "n2", RM__NODE_HEALTH__NODE_HEALTH_UP), 0);
        assert_string_equal(job_state_name(w, job), "RUNNING");
        assert_string_equal(node->fence, "");

        assert_int_equal(health(w, "n2", RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
        REFUSED(node_fence(w, "n2", down, true, "done"), -EAGAIN, "up again meanwhile");
        assert_int_equal(node_fence(w, "n2", node->health_since_usec, false, "plugin 'x' failed"), 0);
        assert_int_equal(node_fence(w, "n2", node->health_since_usec, true, "done"), 0);
        EVENTS("node-fenced ");
        assert_true(node->fenced);
        assert_null(job_fence_node(w->state, j));
        REFUSED(node_fence(w, "n2", 0, true, ""), -EALREADY, "fenced already");
        assert_int_equal(restart(w, job, 2, "n2", true), 0);
        assert_int_equal(join(w, "n2", 4), 0);
        assert_false(node->fenced);
}

/* Another node is lost while the rest is removed; the one that was is back. */
static void test_restart_loses_more_nodes(void **state) {
        struct world *w = *state;
        uint64_t job = run_restartable(w, 3);

        assert_int_equal(health(w, "n2", RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
        assert_int_equal(restart(w, job, 2, "n2", true), 0);
        assert_int_equal(health(w, "n2", RM__NODE_HEALTH__NODE_HEALTH_UP), 0);
        assert_int_equal(health(w, "n1", RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0); /* it may be back in a moment */
        assert_string_equal(job_state_name(w, job), "RECOVERING");
        assert_int_equal(restart(w, job, 2, "n1", true), 0);
        EVENTS("");
        assert_string_equal(job_state_name(w, job), "PENDING");
        assert_int_equal(job_of(w, job)->attempt, 2);
}

/* A node that has started again has none of its capsules, and says so of each. */
static void test_restart_of_node_that_is_up(void **state) {
        struct world *w = *state;
        uint64_t job = run_restartable(w, 3);

        assert_int_equal(restart(w, job, 2, "n2", false), 0);
        assert_int_equal(gone(w, job, 1, "n2"), 0);
        assert_int_equal(gone(w, job, STATE_HEAD, "n1"), 0);
        assert_string_equal(job_state_name(w, job), "RECOVERING");
        assert_int_equal(gone(w, job, 0, "n1"), 0);
        assert_string_equal(job_state_name(w, job), "PENDING");
}

static void test_restart_is_refused(void **state) {
        struct world *w = *state;
        uint64_t aborts = run_restartable(w, 3), cancelled = run_restartable(w, 3), waits = (uint64_t) submit(w, 1);

        state_job(w->state, aborts)->spec->on_node_loss = state_job(w->twin, aborts)->spec->on_node_loss = 0;
        assert_int_equal(cancel(w, cancelled, 15, false), 0);
        let_restart(w, waits, 3);
        REFUSED(restart(w, aborts, 2, "n2", false), -EPERM, "may not");
        REFUSED(restart(w, cancelled, 2, "n2", false), -EPERM, "may not");
        REFUSED(restart(w, waits, 1, "n2", false), -EALREADY, "does not run");
        state_job(w->state, aborts)->spec->restarts = state_job(w->twin, aborts)->spec->restarts = 0;
}

static void test_cancel_while_it_recovers(void **state) {
        struct world *w = *state;
        uint64_t job = run_restartable(w, 3);

        assert_int_equal(restart(w, job, 2, "n2", false), 0);
        assert_int_equal(cancel(w, job, 15, false), 0);
        assert_string_equal(job_state_name(w, job), "RECOVERING");
        assert_int_equal(gone(w, job, 1, "n2"), 0);
        assert_int_equal(gone(w, job, STATE_HEAD, "n1"), 0);
        assert_int_equal(gone(w, job, 0, "n1"), 0);
        EVENTS("job-ended ");
        assert_string_equal(job_state_name(w, job), "CANCELLED");
        assert_int_equal(job_of(w, job)->exit_code, 128 + 15);
}

/* A move of the lost attempt is none of the next one's capsules, also if its source can no longer
 * say that it is over. */
static void test_restart_ends_moves(void **state) {
        static const char *const again[] = { "n1", "n1" };
        static const uint32_t ranks[] = { 2, 2 };
        struct world *w = *state;
        uint64_t job = run_restartable(w, 3), committed, under_way;

        assert_int_equal(move_start(w, job, 0, "n3"), 0);
        committed = w->created;
        assert_int_equal(move_commit(w, committed), 0);
        assert_int_equal(move_start(w, job, 1, "n3"), 0);
        under_way = w->created;
        assert_int_equal(health(w, "n3", RM__NODE_HEALTH__NODE_HEALTH_DOWN), 0);
        assert_int_equal(restart(w, job, 2, "n3", true), 0);
        EVENTS("move-failed job-restarted ");
        assert_int_equal(state_move(w->state, committed)->state, RM__MOVE_STATE__MOVE_DONE);
        assert_int_equal(state_move(w->state, under_way)->state, RM__MOVE_STATE__MOVE_ABORTED);
        assert_int_equal(gone(w, job, STATE_HEAD, "n1"), 0);
        assert_int_equal(gone(w, job, 1, "n2"), 0);
        assert_int_equal(place(w, job, "n1", again, ranks, 2), 0);
        assert_null(state_capsule_move(w->indexed, job, 0));
        REFUSED(move_done(w, committed, 1, 1), -EALREADY, "is not committed");
}

#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(test_join),
                T(test_health),
                T(test_group_end),
                T(test_group_end_order),
                T(test_success_with_a_node_down),
                T(test_drain),
                T(test_conditions),
                T(test_conditions_that_are_refused),
                T(test_conditions_and_jobs),
                T(test_deadline_of_drain),
                T(test_remove),
                T(test_remove_with_work),
                T(test_drain_with_work),
                T(test_nothing_comes_to_a_drained_node),
                T(test_drain_ends_with_an_arriving_move),
                T(test_availability),
                T(test_submit),
                T(test_bodies_of_a_user),
                T(test_submit_again),
                T(test_too_many_jobs),
                T(test_user_takes_all_jobs),
                T(test_first_ended_are_forgotten),
                T(test_ended_jobs_of_one_user_fill_table),
                T(test_place),
                T(test_addresses),
                T(test_start),
                T(test_final_states),
                T(test_strange_final_states),
                T(test_cancel),
                T(test_restart),
                T(test_restart_loses_more_nodes),
                T(test_restart_of_node_that_is_up),
                T(test_restart_is_refused),
                T(test_cancel_while_it_recovers),
                T(test_mpirun_ends_before_loss_is_known),
                T(test_mpirun_ends_and_node_is_back),
                T(test_mpirun_ends_and_node_starts_anew),
                T(test_cancel_while_end_is_open),
                T(test_mpirun_ends_and_may_not_restart),
                T(test_restart_ends_moves),
                T(test_end_with_a_node_down),
                T(test_job_availability),
                T(test_job_spares),
                T(test_job_cores),
                T(test_obstacle),
                T(test_move),
                T(test_refused_moves),
                T(test_commit_and_abort_race),
                T(test_memory_comes_after_the_group),
                T(test_postcopy),
                T(test_move_in_a_hurry),
                T(test_job_ends_during_moves),
                T(test_user_keeps_all_move_slots_busy),
                T(test_old_moves_are_forgotten),
                T(test_words),
                T(test_fold),
                T(test_fold_since),
                T(test_scheduling_warning),
                T(test_topology),
                T(test_note),
                T(test_what_is_not_understood),
                T(test_feature_level),
                T(test_feature_level_with_dead_node),
                T(test_epoch),
                T(test_fence),
                T(test_hollow_commands),
        };

        return cmocka_run_group_tests_name("state", tests, NULL, NULL);
}
