/* Requests in the directory of rm-agent, where the job's owner writes what he likes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/agent_request.h"
#include "daemon/capsule/init/base/loop.h"
#include "daemon/capsule/init/core.h"
#include "daemon/capsule/init/ranks/agents.h"

struct bed {
        struct core core;
        Capsule__Spec spec;
        struct agents *agents;
        size_t requests, gone; /* what rmd was sent */
        size_t command_bytes;
        unsigned number;
};

static void count_event(struct core *core, const ProtobufCMessage *body) {
        struct bed *bed = (struct bed *) core;

        if (body->descriptor == &capsule__agent_request__descriptor) {
                bed->requests++;
                bed->command_bytes += strlen(((const Capsule__AgentRequest *) body)->command);
        } else if (body->descriptor == &capsule__agent_gone__descriptor)
                bed->gone++;
}

static const struct core_ops ops = { .send = count_event };

/* Each test has a /run of its own. */
static int begin(void **state) {
        struct bed *bed = xcalloc(1, sizeof(*bed));
        struct rm_error error = { 0 };

        assert_int_equal(unshare(CLONE_NEWNS), 0);
        assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
        assert_int_equal(mount("tmpfs", "/run", "tmpfs", 0, NULL), 0);
        assert_int_equal(mkdir_p(AGENT_DIR, 0700), 0);
        capsule__spec__init(&bed->spec);
        bed->core = (struct core) { .ops = &ops, .spec = &bed->spec, .phase = CAPSULE__PHASE__PHASE_RUNNING };
        bed->core.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        assert_int_equal(agents_create(&bed->core, &bed->agents, &error), 0);
        *state = bed;
        return 0;
}

static int end(void **state) {
        struct bed *bed = *state;

        (void) close(bed->core.epoll_fd);
        free(bed->agents);
        free(bed);
        return umount2("/run", MNT_DETACH);
}

static pid_t start_agent(void) {
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                        (void) pause();
        }
        return pid;
}

static void end_agent(struct bed *bed, pid_t pid) {
        size_t before = SIZE_MAX;

        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        /* PID 1 hears of each request's end. */
        while (before != bed->gone) {
                before = bed->gone;
                assert_int_equal(loop_once(bed->core.epoll_fd, 100), 0);
        }
}

static void request(struct bed *bed, pid_t pid, size_t command_bytes) {
        size_t size = sizeof(AGENT_REQUEST_MAGIC "\0rmj1g0") + command_bytes + 1;
        cleanup_free char *text = xcalloc(1, size);
        cleanup_free char *path = xasprintf(AGENT_DIR "/%d-%u.req", (int) pid, bed->number++);

        memcpy(text, AGENT_REQUEST_MAGIC "\0rmj1g0", sizeof(AGENT_REQUEST_MAGIC "\0rmj1g0"));
        memset(text + size - 1 - command_bytes, 'c', command_bytes);
        assert_int_equal(write_file_atomic(path, text, size, 0600, false), 0);
}

/* A file of the owner's goes at once when it is refused. */
static bool is_there(unsigned number, pid_t pid) {
        cleanup_free char *path = xasprintf(AGENT_DIR "/%d-%u.req", (int) pid, number);

        return access(path, F_OK) == 0;
}

/* 512 MiB by 4,096 requests of 128 KiB, which a user can write in turns, so that they are never all
 * in his memory. */
static void large_requests_have_a_bound_together(void **state) {
        enum { TURNS = 8, EACH = 16, BYTES = 120000 };
        struct bed *bed = *state;
        pid_t pid = start_agent();

        for (unsigned turn = 0; turn < TURNS; turn++) {
                for (unsigned i = 0; i < EACH; i++)
                        request(bed, pid, BYTES);
                agents_scan(bed->agents, false);
        }
        assert_true(bed->command_bytes <= AGENT_REQUESTS_BYTES);
        assert_true(bed->command_bytes > AGENT_REQUESTS_BYTES - 2 * BYTES);
        assert_false(is_there(TURNS * EACH - 1, pid));
        /* There is room for small ones, and for as many again once those have ended. */
        request(bed, pid, 100);
        agents_scan(bed->agents, false);
        assert_true(is_there(bed->number - 1, pid));
        end_agent(bed, pid);
        assert_int_equal(bed->gone, bed->requests);
        bed->requests = bed->gone = bed->command_bytes = 0;
        pid = start_agent();
        for (unsigned i = 0; i < 2 * EACH; i++)
                request(bed, pid, BYTES);
        agents_scan(bed->agents, false);
        assert_int_equal(bed->requests, 2 * EACH);
        end_agent(bed, pid);
}

/* mpirun makes a request for each group of a job with as many groups as there can be. */
static void a_request_for_each_group_is_heard(void **state) {
        struct bed *bed = *state;
        pid_t pid = start_agent();

        for (unsigned i = 0; i < AGENT_REQUESTS_MAX; i++)
                request(bed, pid, 900);
        agents_scan(bed->agents, false);
        assert_int_equal(bed->requests, AGENT_REQUESTS_MAX);
        request(bed, pid, 900);
        agents_scan(bed->agents, false);
        assert_int_equal(bed->requests, AGENT_REQUESTS_MAX);
        assert_false(is_there(bed->number - 1, pid));
        /* All requests are announced once more to an rmd that has connected again. */
        agents_scan(bed->agents, true);
        assert_int_equal(bed->requests, 2 * AGENT_REQUESTS_MAX);
        end_agent(bed, pid);
}

/* Each one costs rmd, and the node of a group, as well. */
static void those_who_ask_again_and_again_are_heard_seldom(void **state) {
        enum { TURNS = 24, EACH = 512 };
        struct bed *bed = *state;
        uint64_t began_usec = now_usec(), took_usec;

        for (unsigned turn = 0; turn < TURNS; turn++) {
                pid_t pid = start_agent();

                for (unsigned i = 0; i < EACH; i++)
                        request(bed, pid, 10);
                agents_scan(bed->agents, false);
                end_agent(bed, pid);
        }
        took_usec = now_usec() - began_usec;
        assert_true(bed->requests >= AGENT_REQUESTS_MAX);
        assert_true(bed->requests <= AGENT_REQUESTS_MAX + AGENT_REQUESTS_PER_SEC * (took_usec / 1000000 + 1));
        assert_true(bed->requests < TURNS * EACH);
}

static uint64_t turn(const struct bed *bed) {
        uint64_t began_usec = thread_cpu_usec();

        assert_int_equal(loop_once(bed->core.epoll_fd, 0), 0);
        return thread_cpu_usec() - began_usec;
}

/* Each time PID 1 reads the directory, and the owner has filled that. */
static void those_who_wake_it_all_the_time_have_a_tenth_of_it(void **state) {
        enum { NAMES = 20000 };
        struct bed *bed = *state;
        int wake = open(AGENT_WAKE, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        uint64_t deadline_usec, scan_usec;
        pid_t pid = start_agent();

        assert_true(wake >= 0);
        for (unsigned i = 0; i < NAMES; i++) {
                cleanup_free char *path = xasprintf(AGENT_DIR "/name-%u", i);

                assert_int_equal(mknod(path, S_IFREG | 0600, 0), 0);
        }
        assert_true(agents_deadline(bed->agents) == UINT64_MAX);
        deadline_usec = now_usec();
        assert_int_equal(write(wake, "", 1), 1);
        scan_usec = turn(bed);
        assert_true(agents_deadline(bed->agents) >= deadline_usec + 8 * scan_usec);
        assert_true(agents_deadline(bed->agents) < now_usec() + 20 * scan_usec);
        /* A request that comes meanwhile waits. */
        request(bed, pid, 100);
        for (int i = 0; i < 100; i++) {
                assert_int_equal(write(wake, "", 1), 1);
                assert_true(turn(bed) < scan_usec / 2 + 1000);
                assert_int_equal(bed->requests, 0);
        }
        agents_timeout(bed->agents);
        (void) turn(bed);
        assert_int_equal(bed->requests, 1);
        end_agent(bed, pid);
        (void) close(wake);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(large_requests_have_a_bound_together, begin, end),
                cmocka_unit_test_setup_teardown(a_request_for_each_group_is_heard, begin, end),
                cmocka_unit_test_setup_teardown(those_who_ask_again_and_again_are_heard_seldom, begin, end),
                cmocka_unit_test_setup_teardown(those_who_wake_it_all_the_time_have_a_tenth_of_it, begin, end),
        };

        return cmocka_run_group_tests_name("agents", tests, NULL, NULL);
}
