/* The node of a group starts its daemon; its PID 1 and the cluster are played by the test. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <event2/event.h>

#include "common/util.h"
#include "daemon/job/bodies.h"
#include "daemon/job/runner_internal.h"

/* The capsule of the group: only its address counts. */
static uint64_t zeros[1 << 13];
#define CAPSULE ((struct capsule *) (void *) zeros)

static struct {
        Rm__State state;
        unsigned commands; /* that PID 1 was given */
        capsule_done_fn done; /* of the last one */
        void *arg;
        int reported; /* to the node of the head: an exit status; -1: that the daemon runs, -2: nothing */
} world;

int __wrap_capsule_run(struct capsule *capsule, const struct capsule_command *command, capsule_done_fn done, void *arg);
enum capsule_phase __wrap_capsule_phase(const struct capsule *capsule);
int __wrap_bodies_get(struct bodies *bodies, const Rm__Job *job, Rm__JobSpec **ret, struct rm_error *err);
const Rm__State *__wrap_cluster_state(const struct cluster *cluster);
const char *__wrap_cluster_self(const struct cluster *cluster);
int __wrap_cluster_send(struct cluster *cluster, const char *node, const Rm__PeerMessage *message);

int __wrap_capsule_run(struct capsule *capsule, const struct capsule_command *command, capsule_done_fn done, void *arg) {
        world.commands++;
        world.done = done;
        world.arg = arg;
        return 0;
}

enum capsule_phase __wrap_capsule_phase(const struct capsule *capsule) {
        return CAPSULE_EMPTY;
}

int __wrap_bodies_get(struct bodies *bodies, const Rm__Job *job, Rm__JobSpec **ret, struct rm_error *err) {
        *ret = xcalloc(1, sizeof(**ret));
        rm__job_spec__init(*ret);
        return 0;
}

const Rm__State *__wrap_cluster_state(const struct cluster *cluster) {
        return &world.state;
}

const char *__wrap_cluster_self(const struct cluster *cluster) {
        return "n1";
}

int __wrap_cluster_send(struct cluster *cluster, const char *node, const Rm__PeerMessage *message) {
        if (message->body_case == RM__PEER_MESSAGE__BODY_AGENT_DONE)
                world.reported = message->agent_done->running ? -1 : message->agent_done->status;
        return 0;
}

static void on_wake(evutil_socket_t fd, short what, void *arg) {
}

/* A job with a head and one group, both on this node. */
static Rm__Job job = RM__JOB__INIT;
static Rm__JobSpec spec = RM__JOB_SPEC__INIT;
static Rm__Capsule head = RM__CAPSULE__INIT, group = RM__CAPSULE__INIT;

struct node {
        struct config config;
        struct rmd rmd;
        struct runner runner;
        struct resident *resident; /* of the group */
};

static void node_init(struct node *node) {
        static Rm__Capsule *capsules[] = { &head, &group };
        static Rm__Job *jobs[] = { &job };

        world.state = (Rm__State) RM__STATE__INIT;
        world.state.jobs = jobs;
        world.state.n_jobs = 1;
        world.commands = 0;
        world.reported = -2;
        head.index = STATE_HEAD;
        head.node = group.node = (char *) "n1";
        group.incarnation = 9;
        job.id = 7;
        job.attempt = 1;
        job.spec = &spec;
        job.capsules = capsules;
        job.n_capsules = ARRAY_SIZE(capsules);
        *node = (struct node) { .runner = { .retry_requested = true /* nothing is armed */ } };
        node->rmd = (struct rmd) { .base = event_base_new(), .config = &node->config };
        node->runner.rmd = &node->rmd;
        node->runner.wake = event_new(node->rmd.base, -1, 0, on_wake, NULL);
        node->resident = resident_create(&node->runner, &node->runner.calls, 7, 0, 9);
        (void) resident_made(node->resident, CAPSULE, RESIDENT_CREATED);
        (void) resident_event(node->resident, RESIDENT_EV_ANSWERED);
        resident_list_add(&node->runner.residents, node->resident);
}

static void node_finish(struct node *node) {
        agents_forget(node->resident);
        resident_destroy(node->resident);
        event_free(node->runner.wake);
        event_base_free(node->rmd.base);
}

/* The head's node asks for the daemon, as it does over and over until it hears that it runs. */
static void ask(struct node *node) {
        Rm__AgentRun run = RM__AGENT_RUN__INIT;

        run.job = 7;
        run.attempt = 1;
        run.agent = (char *) "a1";
        run.command = (char *) "prted";
        runner_agent_run(&node->runner, &run);
}

static void answer(int error) {
        world.done(CAPSULE, error, "no", world.arg);
}

static void test_command_is_sent_once(void **state) {
        struct node node;

        node_init(&node);
        ask(&node);
        ask(&node);
        assert_int_equal(world.commands, 1);
        answer(0);
        ask(&node);
        assert_int_equal(world.commands, 1);
        assert_int_equal(world.reported, -1);
        node_finish(&node);
}

static void test_command_waits_for_the_lease(void **state) {
        struct node node;

        node_init(&node);
        ask(&node);
        answer(-ETIME);
        agents_unfenced(&node.runner, node.resident);
        assert_int_equal(world.commands, 2);
        answer(0);
        agents_unfenced(&node.runner, node.resident); /* at the next lease it runs */
        assert_int_equal(world.commands, 2);
        assert_int_equal(world.reported, -1);
        node_finish(&node);
}

/* The lease comes while the next request has sent the command again: a second one would fail, and
 * pass for the end of the first. */
static void test_lease_does_not_send_a_second_command(void **state) {
        struct node node;

        node_init(&node);
        ask(&node);
        answer(-ETIME);
        ask(&node);
        assert_int_equal(world.commands, 2);
        agents_unfenced(&node.runner, node.resident);
        assert_int_equal(world.commands, 2);
        answer(0);
        agents_unfenced(&node.runner, node.resident); /* nor does the lease after an outage, hours later */
        assert_int_equal(world.commands, 2);
        assert_int_equal(world.reported, -1);
        node_finish(&node);
}

static void test_failed_command_is_told_and_may_be_sent_again(void **state) {
        struct node node;

        node_init(&node);
        ask(&node);
        answer(-ENOENT);
        assert_int_equal(world.reported, 127);
        ask(&node);
        assert_int_equal(world.commands, 2);
        answer(-ENOTCONN); /* its PID 1 dies */
        (void) resident_lost(node.resident, RESIDENT_EV_LOST, "its PID 1 is dead", 5);
        ask(&node);
        agents_unfenced(&node.runner, node.resident);
        assert_int_equal(world.commands, 2);
        node_finish(&node);
}

/* The answer comes when the group has moved away. */
static void test_answer_to_nobody_is_dropped(void **state) {
        struct node node;

        node_init(&node);
        ask(&node);
        resident_list_remove(node.resident);
        node_finish(&node);
        world.reported = -2;
        answer(-EIO);
        assert_int_equal(world.reported, -2);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_command_is_sent_once),
                cmocka_unit_test(test_command_waits_for_the_lease),
                cmocka_unit_test(test_lease_does_not_send_a_second_command),
                cmocka_unit_test(test_failed_command_is_told_and_may_be_sent_again),
                cmocka_unit_test(test_answer_to_nobody_is_dropped),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
