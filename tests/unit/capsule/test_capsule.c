/* The parts of a capsule that can be tested without being root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/agent_request.h"
#include "daemon/capsule/init/base/pids.h"
#include "daemon/capsule/init/criu/image_fixup.h"
#include "daemon/capsule/init/criu/link_remap.h"
#include "daemon/capsule/init/memory/fill.h"
#include "daemon/capsule/init/net/flows.h"
#include "daemon/capsule/init/net/link.h"
#include "daemon/capsule/init/net/tcp_metrics.h"
#include "daemon/capsule/init/quota.h"
#include "daemon/capsule/log_tail.h"
#include "daemon/capsule/private.h"
#include "daemon/capsule/spool.h"

static char *make_folder(void) {
        char *path = xstrdup("/tmp/rmd-capsule-XXXXXX");

        assert_non_null(mkdtemp(path));
        return path;
}

static struct capsule_spec good_spec(void) {
        return (struct capsule_spec) { .id = "1.g0",
                                       .hostname = "rmj1g0",
                                       .uplink = "eth0",
                                       .address = 1,
                                       .prefix = 24,
                                       .mac = { 2, 0, 0, 0, 0, 1 },
                                       .spool_dir = "/var/lib/rmd/spool/1.g0" };
}

static void refused(const struct capsule_spec *spec, const char *what) {
        struct rm_error error = { 0 };

        if (capsule_spec_check(spec, &error) != -EINVAL || !*error.text)
                fail_msg("%s is taken", what);
}

static void test_spec(void **state) {
        struct capsule_spec spec = good_spec();
        char long_id[CAPSULE_ID_MAX + 2];

        (void) state;
        assert_int_equal(capsule_spec_check(&spec, NULL), 0);
        memset(long_id, 'a', sizeof(long_id) - 1);
        long_id[sizeof(long_id) - 1] = '\0';
        spec.id = long_id;
        refused(&spec, "a long id");
        long_id[CAPSULE_ID_MAX] = '\0';
        assert_int_equal(capsule_spec_check(&spec, NULL), 0);
        spec.id = "../x";
        refused(&spec, "an id with a slash");
        spec.id = ".hidden";
        refused(&spec, "an id with a dot first");
        spec.id = "";
        refused(&spec, "no id");
        spec = good_spec();
        spec.hostname = "a b";
        refused(&spec, "a blank in a host name");
        spec = good_spec();
        spec.spool_dir = "spool";
        refused(&spec, "a relative spool");
        spec = good_spec();
        spec.prefix = 33;
        refused(&spec, "a prefix of 33");
        spec = good_spec();
        spec.mac[0] = 1;
        refused(&spec, "a multicast MAC address");
        spec = good_spec();
        spec.uplink = "an-interface-name-that-is-long";
        refused(&spec, "a long interface name");
        spec = good_spec();
        spec.n_groups = CAPSULE_GROUPS_MAX + 1;
        refused(&spec, "too many groups");
}

static void test_agent_file(void **state) {
        static const char *const bad[] = {
                "5-1.tmp",    "5.req",   "-1.req",   "5-.req",           "5-1.req.x",
                "1-1.req",    "0-1.req", "a5-1.req", "1234567890-1.req", "5-1111111111111111111111111111111.req",
                "../5-1.req", ".req",    ""
        };
        char id[AGENT_ID_MAX];
        pid_t pid;

        (void) state;
        assert_true(agent_file_parse("57-123456789.req", id, &pid));
        assert_string_equal(id, "57-123456789");
        assert_int_equal(pid, 57);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                if (agent_file_parse(bad[i], id, &pid))
                        fail_msg("'%s' is taken", bad[i]);
}

static int parse(const char *text, size_t size, struct agent_request *ret) {
        /* A copy of just that size, so that a sanitizer sees any step beyond. */
        cleanup_free char *copy = xcalloc(1, size);
        int r;

        memcpy(copy, text, size);
        r = agent_request_parse(copy, size, ret);
        if (r == 0) {
                assert_string_equal(ret->host, "rmj1g0");
                assert_string_equal(ret->command, "a b");
        }
        return r;
}

static void test_agent_request(void **state) {
        static const char good[] = AGENT_REQUEST_MAGIC "\0rmj1g0\0a b";
        static const char other_magic[] = "rm-agent 2\0rmj1g0\0a b";
        static const char bad_host[] = AGENT_REQUEST_MAGIC "\0rmj1;g0\0a b";
        static const char no_host[] = AGENT_REQUEST_MAGIC "\0\0a b";
        static const char no_command[] = AGENT_REQUEST_MAGIC "\0rmj1g0\0";
        static const char two_strings[] = AGENT_REQUEST_MAGIC "\0rmj1g0";
        static const char four_strings[] = AGENT_REQUEST_MAGIC "\0rmj1g0\0a b\0c";
        cleanup_free char *huge = xcalloc(1, AGENT_REQUEST_MAX + 1);
        struct agent_request request;

        (void) state;
        assert_int_equal(parse(good, sizeof(good), &request), 0);
        assert_int_equal(parse(good, sizeof(good) - 1, &request), -EBADMSG);
        assert_int_equal(parse(good, 0, &request), -EBADMSG);
        assert_int_equal(parse(other_magic, sizeof(other_magic), &request), -EBADMSG);
        assert_int_equal(parse(bad_host, sizeof(bad_host), &request), -EBADMSG);
        assert_int_equal(parse(no_host, sizeof(no_host), &request), -EBADMSG);
        assert_int_equal(parse(no_command, sizeof(no_command), &request), -EBADMSG);
        assert_int_equal(parse(two_strings, sizeof(two_strings), &request), -EBADMSG);
        assert_int_equal(parse(four_strings, sizeof(four_strings), &request), -EBADMSG);
        memset(huge, 'x', AGENT_REQUEST_MAX);
        assert_int_equal(parse(huge, AGENT_REQUEST_MAX + 1, &request), -EBADMSG);
}

static void fill(struct spool *spool, const char *data, size_t size) {
        int fds[2];

        assert_int_equal(pipe(fds), 0);
        assert_int_equal(write(fds[1], data, size), size);
        close(fds[1]);
        while (size > 0) {
                ssize_t n = spool_splice(spool, fds[0], size);

                assert_true(n > 0);
                size -= (size_t) n;
        }
        assert_int_equal(spool_splice(spool, fds[0], 1), 0);
        close(fds[0]);
}

static void test_spool(void **state) {
        enum { PIECE = 60000, PIECES = 600 };
        cleanup_free char *path = make_folder();
        cleanup_free char *piece = xcalloc(1, PIECE);
        cleanup_close int dir = open(path, O_RDONLY | O_DIRECTORY);
        struct spool spool;
        uint64_t at = 1000;
        char buffer[PIECE];
        uint64_t begin = 0;
        ssize_t n;

        (void) state;
        assert_int_equal(spool_next(dir, "stdout", 0, &begin), -ENOENT);
        /* The spool begins where another node's ended. */
        spool_init(&spool, dir, "stdout", at);
        assert_int_equal(spool_read(dir, "stdout", at, buffer, sizeof(buffer)), 0);
        for (int i = 0; i < PIECES; i++) {
                memset(piece, 'a' + i % 26, PIECE);
                fill(&spool, piece, PIECE);
        }
        assert_int_equal(spool.end, 1000 + (uint64_t) PIECE * PIECES);
        while ((n = spool_read(dir, "stdout", at, buffer, sizeof(buffer))) > 0) {
                for (ssize_t i = 0; i < n; i++)
                        assert_int_equal(buffer[i], 'a' + (int) ((at - 1000 + (uint64_t) i) / PIECE) % 26);
                at += (uint64_t) n;
        }
        assert_int_equal(n, 0);
        assert_int_equal(at, spool.end);
        assert_int_equal(spool_read(dir, "stdout", 999, buffer, 1), -ERANGE);
        assert_int_equal(spool_next(dir, "stdout", 999, &begin), 0);
        assert_int_equal(begin, 1000);
        assert_int_equal(spool_next(dir, "stdout", spool.end, &begin), -ENOENT);
        assert_int_equal(spool_read(dir, "stderr", 0, buffer, 1), 0);
        /* A segment with later bytes stays, earlier ones go. */
        spool_trim(&spool, SPOOL_SEGMENT_BYTES + 100000);
        assert_true(spool.begin > 1000);
        assert_int_equal(spool_read(dir, "stdout", 1000, buffer, 1), -ERANGE);
        assert_int_equal(spool_next(dir, "stdout", 1000, &begin), 0);
        assert_int_equal(begin, spool.begin);
        assert_int_equal(spool_read(dir, "stdout", SPOOL_SEGMENT_BYTES + 100000, buffer, 1), 1);
        spool_trim(&spool, spool.end + 1); /* nonsense changes nothing */
        assert_int_equal(spool_read(dir, "stdout", spool.begin, buffer, 1), 1);
        spool_finish(&spool);
        assert_int_equal(remove_tree(path), 0);
}

/* The writer runs before the test does on the only processor of both, whenever the pipe has
 * room. */
static pid_t start_tireless_writer(int fd) {
        const struct sched_param first = { .sched_priority = 1 };
        cpu_set_t one;
        pid_t pid;

        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                static const char data[65536];

                if (sched_setscheduler(0, SCHED_FIFO, &first) < 0)
                        _exit(1);
                while (write(fd, data, sizeof(data)) > 0)
                        ;
                _exit(0);
        }
        return pid;
}

/* Processes of the owner's outside of the capsule write on: they are not frozen with it. */
static void test_spool_drains_no_more_than_the_pipe(void **state) {
        enum { TIMES = 20 };
        cleanup_free char *path = make_folder();
        cleanup_close int dir = open(path, O_RDONLY | O_DIRECTORY);
        struct spool spool;
        cpu_set_t all;
        int fds[2], space;
        pid_t writer;

        (void) state;
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        assert_int_equal(set_nonblock(fds[0], true), 0);
        space = fcntl(fds[0], F_SETPIPE_SZ, 1 << 20);
        assert_true(space >= 1 << 20);
        assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
        writer = start_tireless_writer(fds[1]);
        spool_init(&spool, dir, "stdout", 0);
        (void) alarm(20);
        assert_int_equal(poll(&(struct pollfd) { .fd = fds[0], .events = POLLIN }, 1, 10000), 1);
        for (int i = 0; i < TIMES; i++) {
                uint64_t before = spool.end;

                assert_int_equal(spool_drain(&spool, fds[0]), 0);
                assert_true(spool.end - before <= (uint64_t) space);
                spool_trim(&spool, spool.end);
        }
        (void) alarm(0);
        assert_true(spool.end > 0);
        assert_int_equal(kill(writer, SIGKILL), 0);
        assert_int_equal(waitpid(writer, NULL, 0), writer);
        assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
        /* The rest of the output comes whole, and then there is none. */
        assert_int_equal(spool_drain(&spool, fds[0]), 0);
        assert_int_equal(spool_splice(&spool, fds[0], 1), -EAGAIN);
        close(fds[0]);
        close(fds[1]);
        spool_finish(&spool);
        assert_int_equal(remove_tree(path), 0);
}

static void test_spool_empty_pipe(void **state) {
        cleanup_free char *path = make_folder();
        cleanup_close int dir = open(path, O_RDONLY | O_DIRECTORY);
        struct spool spool;
        int fds[2];

        (void) state;
        assert_int_equal(pipe(fds), 0);
        spool_init(&spool, dir, "stdout", 0);
        assert_int_equal(spool_splice(&spool, fds[0], 100), -EAGAIN);
        close(fds[0]);
        close(fds[1]);
        spool_finish(&spool);
        assert_int_equal(remove_tree(path), 0);
}

/* A job's second attempt may use the same names on a node where the first one was. */
static void test_spool_leftovers(void **state) {
        cleanup_free char *path = make_folder();
        cleanup_close int dir = open(path, O_RDONLY | O_DIRECTORY);
        struct spool spool;
        char buffer[16];

        (void) state;
        spool_init(&spool, dir, "stdout", 500);
        fill(&spool, "old", 3);
        spool_finish(&spool);
        /* Earlier than where a capsule that has come back begins: that may still be wanted. */
        spool_init(&spool, dir, "stdout", 700);
        fill(&spool, "back", 4);
        assert_int_equal(spool_read(dir, "stdout", 500, buffer, sizeof(buffer)), 3);
        assert_int_equal(spool_read(dir, "stdout", 700, buffer, sizeof(buffer)), 4);
        spool_trim(&spool, 702);
        assert_int_equal(spool_read(dir, "stdout", 500, buffer, sizeof(buffer)), -ERANGE);
        spool_finish(&spool);
        spool_init(&spool, dir, "stdout", 0);
        fill(&spool, "new", 3);
        assert_int_equal(spool_read(dir, "stdout", 0, buffer, sizeof(buffer)), 3);
        assert_int_equal(spool_read(dir, "stdout", 700, buffer, sizeof(buffer)), 0);
        spool_finish(&spool);
        assert_int_equal(remove_tree(path), 0);
}

static void test_segment_names(void **state) {
        uint64_t offset;

        (void) state;
        assert_true(spool_segment_parse("stdout.00000000000a0000", "stdout", &offset));
        assert_int_equal(offset, 0xa0000);
        assert_false(spool_segment_parse("stdout.00000000000a000", "stdout", &offset));
        assert_false(spool_segment_parse("stdout.00000000000A0000", "stdout", &offset));
        assert_false(spool_segment_parse("stderr.00000000000a0000", "stdout", &offset));
        assert_false(spool_segment_parse("stdout", "stdout", &offset));
}

static void test_pid_gap(void **state) {
        unsigned none[1] = { 5 };
        unsigned crowded[3] = { 21500, 20000, 20999 };
        unsigned last[1] = { 20999 }, behind[1] = { 21000 };
        unsigned *all = xcalloc(32768, sizeof(*all));

        (void) state;
        assert_int_equal(pids_find_gap_in(none, 1, 32768), 20000);
        /* 1000 numbers, the last of them too, and below the limit. */
        assert_int_equal(pids_find_gap_in(last, 1, 32768), 21000);
        assert_int_equal(pids_find_gap_in(behind, 1, 32768), 20000);
        assert_int_equal(pids_find_gap_in(none, 1, 21000), 20000);
        assert_int_equal(pids_find_gap_in(none, 1, 20999), 300);
        assert_int_equal(pids_find_gap_in(crowded, 3, 32768), 21501);
        /* Nothing free above: further below. */
        for (unsigned i = 0; i < 32768 - 20000; i++)
                all[i] = 20000 + i;
        assert_int_equal(pids_find_gap_in(all, 32768 - 20000, 32768), 300);
        for (unsigned i = 0; i < 32768; i++)
                all[i] = i;
        assert_int_equal(pids_find_gap_in(all, 32768, 32768), 0);
        free(all);
}

static void test_hosts(void **state) {
        static const char text[] = "127.0.0.1 localhost\n::1 localhost\n# 10.0.0.9 no\n10.77.0.100 rmj1h\r\n\n"
                                   "10.77.0.101\trmj1g0\n10.77.0.101 again\n10.77.0.102#x\n999.1.1.1 bad\n10.77.0.103";
        uint32_t addresses[8];

        (void) state;
        assert_int_equal(tcp_metrics_parse_hosts(text, inet_addr("10.77.0.100"), addresses, 8), 3);
        assert_int_equal(addresses[0], inet_addr("10.77.0.101"));
        assert_int_equal(addresses[1], inet_addr("10.77.0.102"));
        assert_int_equal(addresses[2], inet_addr("10.77.0.103"));
        assert_int_equal(tcp_metrics_parse_hosts(text, 0, addresses, 2), 2);
        assert_int_equal(tcp_metrics_parse_hosts("", 0, addresses, 2), 0);
}

/* ---- flows ---- */

static bool exchange(int from, int to, size_t n) {
        char buffer[4096] = { 0 };

        while (n > 0) {
                size_t part = n < sizeof(buffer) ? n : sizeof(buffer);

                if (send(from, buffer, part, 0) != (ssize_t) part || recv(to, buffer, part, MSG_WAITALL) != (ssize_t) part)
                        return false;
                n -= part;
        }
        return true;
}

static bool lo_up(void) {
        struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
        cleanup_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        return fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &lo) == 0;
}

/* A connection over the loopback interface between two ends of `address`; `family` is that of the
 * one that connects. */
static bool connection(uint32_t address, int family, int *ret_near, int *ret_far) {
        struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr.s_addr = address };
        struct sockaddr_in6 mapped = { .sin6_family = AF_INET6, .sin6_addr.s6_addr = { [10] = 0xff, [11] = 0xff } };
        socklen_t size = sizeof(any);
        cleanup_close int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (bind(listener, (struct sockaddr *) &any, sizeof(any)) < 0 || listen(listener, 1) < 0 ||
            getsockname(listener, (struct sockaddr *) &any, &size) < 0)
                return false;
        mapped.sin6_port = any.sin_port;
        mapped.sin6_addr.s6_addr32[3] = address;
        *ret_near = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(*ret_near, family == AF_INET ? (struct sockaddr *) &any : (struct sockaddr *) &mapped,
                    family == AF_INET ? sizeof(any) : sizeof(mapped)) < 0)
                return false;
        *ret_far = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        return *ret_far >= 0;
}

/* Acknowledgements may come a moment later. A connection's first packet counts as one byte. */
static bool have_sent(uint32_t address, uint64_t bytes) {
        bool right = false;

        for (int i = 0; i < 200 && !right; i++) {
                cleanup_free struct capsule_flow *flows = NULL;
                size_t n = 0;

                if (flows_read(&flows, &n, NULL) < 0)
                        return false;
                for (size_t k = 0; k < n; k++)
                        right |= flows[k].address == address && flows[k].sent_bytes >= bytes && flows[k].sent_bytes <= bytes + 4;
                for (size_t k = 1; k < n; k++)
                        if (flows[k - 1].address >= flows[k].address)
                                return false;
                if (!right)
                        (void) poll(NULL, 0, 10);
        }
        return right;
}

/* In network namespaces of its own. Returns the line that failed, 0 for none. */
static int try_flows(void) {
        uint32_t one = inet_addr("10.9.0.1"), two = inet_addr("10.9.0.2");
        struct mnl_socket *nl;
        int near[4], far[4];

        if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0 || !lo_up())
                return __LINE__;
        nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
        if (!nl || mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0 || link_lend_address(nl, one, true) < 0 ||
            link_lend_address(nl, two, true) < 0)
                return __LINE__;
        if (!connection(one, AF_INET, &near[0], &far[0]) || !connection(one, AF_INET, &near[1], &far[1]) ||
            !connection(two, AF_INET6, &near[2], &far[2]) || !connection(htonl(INADDR_LOOPBACK), AF_INET, &near[3], &far[3]))
                return __LINE__;
        if (!exchange(near[0], far[0], 100000) || !exchange(far[1], near[1], 5000) || !exchange(near[2], far[2], 70000) ||
            !exchange(near[3], far[3], 1000))
                return __LINE__;
        if (!have_sent(one, 105000))
                return __LINE__;
        if (!have_sent(two, 70000))
                return __LINE__;
        if (have_sent(htonl(INADDR_LOOPBACK), 1000))
                return __LINE__;
        close(near[0]); /* a connection that has ended counts no more */
        close(far[0]);
        return have_sent(one, 5000) ? 0 : __LINE__;
}

static void test_flows(void **state) {
        pid_t child = fork();
        int status;

        (void) state;
        if (child == 0)
                _exit(try_flows() % 256);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_mend_timerfds(void **state) {
        /* Magic numbers; then by their length: a file that is none, and timers: expired with an
         * interval, not yet expired with one, disarmed, and one cut short. */
        static const uint8_t image[] = {
                0x19, 0x43, 0x56, 0x54, 0x38, 0x31, 0x30, 0x56, /* */
                4,    0,    0,    0,    8,    1,    16,   9,                        /* */
                14,   0,    0,    0,    8,    17,   16,   1,    98, 8, 56, 0, 64, 0, 72, 0, 80, 5, /* */
                14,   0,    0,    0,    8,    17,   16,   2,    98, 8, 56, 0, 64, 3, 72, 0, 80, 5, /* */
                14,   0,    0,    0,    8,    17,   16,   3,    98, 8, 56, 0, 64, 0, 72, 0, 80, 0, /* */
                14,   0,    0,    0,    8,    17,   16,   4,    98, 8, 56, 0, 64, 0, 72, 1, 80,
        };
        uint8_t mended[sizeof(image)];

        (void) state;
        memcpy(mended, image, sizeof(image));
        assert_int_equal(image_fixup_timerfds(mended, sizeof(mended)), 1);
        assert_int_equal(mended[29], 1);
        mended[29] = 0;
        assert_memory_equal(mended, image, sizeof(image));
        for (size_t n = 0; n < sizeof(image); n++) {
                memcpy(mended, image, sizeof(image));
                assert_int_equal(image_fixup_timerfds(mended, n), n >= 34 ? 1 : 0);
        }
        mended[4] = 0; /* another kind of image */
        assert_int_equal(image_fixup_timerfds(mended, sizeof(mended)), 0);
}

/* The flags of a timer at a point in time, by its clock. */
static void test_mend_absolute_timerfds(void **state) {
        static const struct {
                uint8_t clock, flags, left, interval, flags_mended, nsec_mended;
        } cases[] = {
                { CLOCK_MONOTONIC, TFD_TIMER_ABSTIME, 5, 0, 0, 5 },
                { CLOCK_BOOTTIME, TFD_TIMER_ABSTIME, 5, 9, 0, 5 },
                { CLOCK_MONOTONIC, TFD_TIMER_ABSTIME, 0, 0, 0, 0 },
                { CLOCK_MONOTONIC, TFD_TIMER_ABSTIME, 0, 9, 0, 1 },
                { CLOCK_MONOTONIC, 0, 5, 0, 0, 5 },
                { CLOCK_REALTIME, TFD_TIMER_ABSTIME, 5, 0, 1, 5 },
                { CLOCK_REALTIME, 3, 5, 0, 3, 5 },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint8_t image[] = { 0x19, 0x43,
                                    0x56, 0x54,
                                    0x38, 0x31,
                                    0x30, 0x56,
                                    18,   0,
                                    0,    0,
                                    8,    17,
                                    16,   1,
                                    98,   12,
                                    32,   cases[i].clock,
                                    48,   cases[i].flags,
                                    56,   0,
                                    64,   cases[i].left,
                                    72,   0,
                                    80,   cases[i].interval };
                bool changed = cases[i].flags != cases[i].flags_mended || cases[i].left != cases[i].nsec_mended;

                assert_int_equal(image_fixup_timerfds(image, sizeof(image)), changed);
                assert_int_equal(image[21], cases[i].flags_mended);
                assert_int_equal(image[25], cases[i].nsec_mended);
        }
}

static void test_mend_sizes(void **state) {
        /* Magic numbers; then by their length: a file that is no regular one, one with a size, one
         * without, and one cut short. */
        static const uint8_t image[] = {
                0x19, 0x43, 0x56, 0x54, 0x38, 0x31, 0x30, 0x56, /* */
                12,   0,    0,    0,    8,    17,   16,   1,    98, 6, 8, 1, 16, 0,  64, 100, /* */
                12,   0,    0,    0,    8,    1,    16,   2,    26, 6, 8, 2, 16, 0,  64, 100, /* */
                10,   0,    0,    0,    8,    1,    16,   3,    26, 4, 8, 3, 16, 64, /* */
                12,   0,    0,    0,    8,    1,    16,   4,    26, 6, 8, 4, 16, 0,  64,
        };
        const size_t at = 8 + 16 + 14, whole = 8 + 16 + 16;
        uint8_t mended[sizeof(image)];

        (void) state;
        memcpy(mended, image, sizeof(image));
        assert_int_equal(image_fixup_sizes(mended, sizeof(mended), NULL, 0), 1);
        assert_int_equal(mended[at], 15 << 3);
        mended[at] = image[at];
        assert_memory_equal(mended, image, sizeof(image));
        for (size_t n = 0; n < sizeof(image); n++) {
                memcpy(mended, image, sizeof(image));
                assert_int_equal(image_fixup_sizes(mended, n, NULL, 0), n >= whole ? 1 : 0);
        }
        mended[4] = 0; /* another kind of image */
        assert_int_equal(image_fixup_sizes(mended, sizeof(mended), NULL, 0), 0);
}

static void test_kept_sizes(void **state) {
        /* A file of the name "/p", with a size and a mode. */
        static const uint8_t image[] = {
                0x19, 0x43, 0x56, 0x54, 0x38, 0x31, 0x30, 0x56, /* */
                16,   0,    0,    0,    8,    1,    16,   2,    26, 10, 8, 2, 50, 2, '/', 'p', 64, 100, 80, 7,
        };
        static const char *const names[] = { "/pp", "/", "/q", "/p" };
        uint8_t mended[sizeof(image)];

        (void) state;
        memcpy(mended, image, sizeof(image));
        assert_int_equal(image_fixup_sizes(mended, sizeof(mended), names, ARRAY_SIZE(names)), 0);
        assert_memory_equal(mended, image, sizeof(image));
        assert_int_equal(image_fixup_sizes(mended, sizeof(mended), names, ARRAY_SIZE(names) - 1), 1);
        assert_int_equal(mended[24], 15 << 3);
        assert_int_equal(mended[26], 15 << 3); /* its mode */
}

static void add_path(void *arg, const char *path) {
        char **paths = arg;
        char *longer = xasprintf("%s%s ", *paths ? *paths : "", path);

        free(*paths);
        *paths = longer;
}

static void test_find_sockets(void **state) {
        /* Magic numbers; then by their length: a timer, sockets with a path, without a name, with
         * an abstract and with a relative one, one that has lost its path, and one cut short. */
        static const uint8_t image[] = {
                0x19, 0x43, 0x56, 0x54, 0x38, 0x31, 0x30, 0x56, /* */
                12,   0,    0,    0,    8,    17,   16,   1,    98,  6, 8,  1, 16, 0,  64, 100, /* */
                14,   0,    0,    0,    8,    5,    16,   2,    130, 1, 7,  8, 2,  90, 3,  '/', 'a', 'b', /* */
                11,   0,    0,    0,    8,    5,    16,   3,    130, 1, 4,  8, 3,  90, 0, /* */
                13,   0,    0,    0,    8,    5,    16,   4,    130, 1, 6,  8, 4,  90, 2,  0,   'x', /* */
                18,   0,    0,    0,    8,    5,    16,   5,    130, 1, 11, 8, 5,  90, 1,  's', 114, 4,   '/', 'h', '/', 'u', /* */
                16,   0,    0,    0,    8,    5,    16,   7,    130, 1, 9,  8, 7,  90, 3,  '/', 'd', 'e', 120, 1, /* */
                14,   0,    0,    0,    8,    5,    16,   6,    130, 1, 7,  8, 6,  90, 3,  '/', 'z',
        };
        cleanup_free char *paths = NULL;
        uint8_t copy[sizeof(image)];

        (void) state;
        memcpy(copy, image, sizeof(image));
        assert_int_equal(image_fixup_sockets(copy, sizeof(copy), add_path, &paths), 2);
        assert_string_equal(paths, "/ab /h/u/s ");
        assert_memory_equal(copy, image, sizeof(image));
        for (size_t n = 0; n < sizeof(image); n++)
                assert_in_range(image_fixup_sockets(copy, n, add_path, &paths), 0, 2);
        copy[4] = 0; /* another kind of image */
        assert_int_equal(image_fixup_sockets(copy, sizeof(copy), add_path, &paths), 0);
}

static void test_log_tail(void **state) {
        static const char log[] = "(00.000001) Warn  (criu/a.c:1): fine\n"
                                  "(00.100000)    57: Error (criu/b.c:2): first\n"
                                  "(00.200000) Error (criu/c.c:3): again\n"
                                  "(00.200001) Error (criu/c.c:3): again\n"
                                  "(00.300000) Error (criu/d.c:4): last\n";
        static const char known[] = "(00.1) Error (criu/a.c:1): Can't stat path: Permission denied\n"
                                    "(00.2) Error (criu/b.c:2): last\n";
        cleanup_free char *folder = make_folder();
        cleanup_free char *path = xasprintf("%s/dump.log", folder);
        char text[200];
        char small[40];

        (void) state;
        assert_int_equal(write_file_atomic(path, log, strlen(log), 0600, false), 0);
        log_tail_errors(path, text, sizeof(text));
        assert_string_equal(text, "Error (criu/b.c:2): first; Error (criu/c.c:3): again; Error (criu/d.c:4): last");
        log_tail_errors(path, small, sizeof(small));
        assert_string_equal(small, "Error (criu/d.c:4): last");
        assert_int_equal(write_file_atomic(path, log, (size_t) (strchr(log, '\n') - log), 0600, false), 0);
        log_tail_errors(path, text, sizeof(text));
        assert_string_equal(text, "Warn  (criu/a.c:1): fine");
        assert_int_equal(write_file_atomic(path, known, strlen(known), 0600, false), 0);
        log_tail_errors(path, text, sizeof(text));
        assert_string_equal(text, "a file is mapped from a directory that its owner may not search; "
                                  "Error (criu/a.c:1): Can't stat path: Permission denied; Error (criu/b.c:2): last");
        log_tail_errors(path, text, 100); /* no room for both */
        assert_string_equal(text, "a file is mapped from a directory that its owner may not search");
        assert_int_equal(remove_tree(folder), 0);
        log_tail_errors(path, text, sizeof(text));
        assert_string_equal(text, "");
}

static bool there(const char *folder, const char *name) {
        cleanup_free char *path = xasprintf("%s/%s", folder, name);

        return access(path, F_OK) == 0;
}

static int make_file(const char *folder, const char *name) {
        cleanup_free char *path = xasprintf("%s/%s", folder, name);
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        return fd;
}

static void rename_in(const char *folder, const char *from, const char *to, bool keep) {
        cleanup_free char *old = xasprintf("%s/%s", folder, from);
        cleanup_free char *new = xasprintf("%s/%s", folder, to);

        assert_int_equal(link(old, new), 0);
        if (!keep)
                assert_int_equal(unlink(old), 0);
}

/* Only those links in a folder are touched that lead to a file that is open under a name that is
 * gone. */
static void test_remap(void **state) {
        cleanup_free char *folder = make_folder();
        cleanup_free char *proc = make_folder();
        cleanup_free char *self = xasprintf("%s/%d", proc, (int) getpid());
        cleanup_free char *target = xasprintf("/proc/%d", (int) getpid());
        cleanup_close int named = make_file(folder, "named");
        cleanup_close int gone = -1;

        (void) state;
        assert_int_equal(symlink(target, self), 0);
        gone = make_file(folder, "gone");
        rename_in(folder, "gone", "other", true);
        rename_in(folder, "gone", "link_remap.170", false);
        assert_true(link_remap_lost_name("/home/alice/gone (deleted)") && link_remap_lost_name("/nfs/.nfs0001"));
        assert_false(link_remap_lost_name("/home/alice/gone") || link_remap_lost_name("socket:[1] (deleted)") ||
                     link_remap_lost_name(""));
        /* These links are not of that file, or have no such name. */
        rename_in(folder, "named", "link_remap.3", true);
        rename_in(folder, "other", "link_remap.4x", true);
        link_remap_hide(proc);
        assert_true(there(folder, "link_remap.170.kept") && !there(folder, "link_remap.170"));
        link_remap_hide(proc);
        link_remap_show(proc);
        assert_true(!there(folder, "link_remap.170.kept") && there(folder, "link_remap.170"));
        link_remap_remove(proc);
        assert_false(there(folder, "link_remap.170"));
        rename_in(folder, "other", "link_remap.171.kept", true);
        link_remap_remove(proc);
        assert_false(there(folder, "link_remap.171.kept"));
        assert_true(there(folder, "link_remap.3") && there(folder, "link_remap.4x") && there(folder, "named") &&
                    there(folder, "other"));
        (void) unlink(self);
        (void) remove_tree(proc);
        (void) remove_tree(folder);
}

/* A file may be only mapped: shared or not, and its process may have mapped others before it. As
 * sem_open() does, it was made by a name that another one has replaced. */
static void expect_mapped_remap(const char *folder, int flags, int protection) {
        cleanup_free char *proc = make_folder();
        cleanup_free char *self = xasprintf("%s/%d", proc, (int) getpid());
        cleanup_free char *target = xasprintf("/proc/%d", (int) getpid());
        int fd = make_file(folder, "made");
        void *at;

        assert_int_equal(symlink(target, self), 0);
        assert_int_equal(ftruncate(fd, 4096), 0);
        at = mmap(NULL, 4096, protection, flags, fd, 0);
        assert_ptr_not_equal(at, MAP_FAILED);
        (void) close(fd);
        rename_in(folder, "made", "link_remap.9", true);
        rename_in(folder, "made", "name", false);
        link_remap_hide(proc);
        assert_true(there(folder, "link_remap.9.kept") && !there(folder, "link_remap.9"));
        link_remap_show(proc);
        assert_true(there(folder, "link_remap.9"));
        link_remap_remove(proc);
        assert_true(!there(folder, "link_remap.9") && there(folder, "name"));
        assert_int_equal(munmap(at, 4096), 0);
        (void) unlink(self);
        (void) remove_tree(proc);
        (void) remove_tree(folder);
}

static void test_mapped_remap(void **state) {
        static const char *const places[] = { "/dev/shm/rmd-test.XXXXXX", "/var/tmp/rmd-test.XXXXXX" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                char folder[64];

                (void) snprintf(folder, sizeof(folder), "%s", places[i]);
                assert_non_null(mkdtemp(folder));
                expect_mapped_remap(folder, MAP_SHARED, PROT_READ | PROT_WRITE);
                assert_int_equal(mkdir(folder, 0700), 0);
                expect_mapped_remap(folder, MAP_PRIVATE, PROT_READ);
                assert_int_equal(mkdir(folder, 0700), 0);
                expect_mapped_remap(folder, MAP_SHARED, PROT_NONE);
        }
}

/* ---- cores ---- */

static void *sleeper(void *arg) {
        (void) poll(NULL, 0, -1);
        return arg;
}

/* Two threads that wait. */
static pid_t start_sleepers(void) {
        int ready[2];
        char byte;
        pid_t pid;

        assert_int_equal(pipe(ready), 0);
        pid = fork();
        if (pid == 0) {
                pthread_t thread;

                (void) pthread_create(&thread, NULL, sleeper, NULL);
                (void) write(ready[1], "", 1);
                (void) sleeper(NULL);
        }
        assert_int_equal(read(ready[0], &byte, 1), 1);
        (void) close(ready[0]);
        (void) close(ready[1]);
        return pid;
}

static void threads_are_on(pid_t pid, const cpu_set_t *cpus) {
        cleanup_free char *path = xasprintf("/proc/%d/task", (int) pid);
        DIR *dir = opendir(path);
        unsigned n = 0;

        assert_non_null(dir);
        for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
                cpu_set_t now;

                if (atoi(entry->d_name) <= 0)
                        continue;
                assert_int_equal(sched_getaffinity(atoi(entry->d_name), sizeof(now), &now), 0);
                assert_true(CPU_EQUAL(&now, cpus));
                n++;
        }
        (void) closedir(dir);
        assert_int_equal(n, 2);
}

static void make_spool(const char *folder, const char *name, gid_t gid, off_t bytes) {
        cleanup_free char *dir = xasprintf("%s/%s", folder, name);
        cleanup_free char *file = xasprintf("%s/stdout.0000000000000000", dir);
        cleanup_close int fd = -1;

        assert_int_equal(mkdir(dir, 0700), 0);
        if (chown(dir, (uid_t) -1, gid) < 0)
                skip();
        fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(ftruncate(fd, bytes), 0);
}

/* The quota of output: less than a slice near the user's limit or the reserve; others' output does
 * not count; output that is read at once only stops at the reserve. */
static void test_quota(void **state) {
        const uint64_t mb = 1 << 20, behind = 100 * mb;
        cleanup_free char *folder = make_folder();
        cleanup_free char *own = xasprintf("%s/j1.h", folder);
        Capsule__Spec spec = CAPSULE__SPEC__INIT;
        cleanup_close int fd = -1;
        Capsule__Stall why;

        make_spool(folder, "j1.h", getegid(), (off_t) (5 * mb));
        make_spool(folder, "j2.h", getegid(), (off_t) (6 * mb));
        fd = open(own, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        spec.uid = getegid();
        assert_int_equal(quota_scan(&spec, fd, behind, &why), QUOTA_SLICE_BYTES);
        spec.spool_max = 12 * mb;
        assert_int_equal(quota_scan(&spec, fd, behind, &why), mb);
        assert_int_equal(why, CAPSULE__STALL__STALL_NONE);
        spec.spool_max = 11 * mb;
        assert_int_equal(quota_scan(&spec, fd, behind, &why), 0);
        assert_int_equal(why, CAPSULE__STALL__STALL_QUOTA);
        assert_int_equal(quota_scan(&spec, fd, 5 * mb, &why), mb);
        spec.uid++;
        assert_int_equal(quota_scan(&spec, fd, behind, &why), QUOTA_SLICE_BYTES);
        assert_int_equal(remove_tree(folder), 0);
}

/* Every thread of every process in the payload's control group, there and back; those that have
 * ended are passed over, and with `keep_narrower` those that are on some of these already, unless
 * that is just what they were given before. */
static void test_bind(void **state) {
        cleanup_free char *folder = make_folder();
        cleanup_free char *payload = xasprintf("%s/payload", folder);
        cleanup_free char *procs = xasprintf("%s/cgroup.procs", payload);
        struct capsule capsule = { .cgroup_dir = folder };
        pid_t pid = start_sleepers();
        cleanup_free char *text = xasprintf("%d\n0\n999999999\n", (int) pid);
        cpu_set_t all, one;
        unsigned cpu = 0;

        assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
        while (!CPU_ISSET(cpu, &all))
                cpu++;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        assert_int_equal(capsule_bind(&capsule, &one, false, NULL), -ENOENT);
        assert_int_equal(mkdir(payload, 0755), 0);
        assert_int_equal(write_file_atomic(procs, text, strlen(text), 0644, false), 0);
        threads_are_on(pid, &all);
        assert_int_equal(capsule_bind(&capsule, &one, true, NULL), 0);
        threads_are_on(pid, &one);
        assert_int_equal(capsule_bind(&capsule, &all, true, NULL), 0);
        threads_are_on(pid, &one);
        assert_int_equal(capsule_bind(&capsule, &all, true, &one), 0);
        threads_are_on(pid, &all);
        assert_int_equal(capsule_bind(&capsule, &one, true, &one), 0);
        threads_are_on(pid, &one);
        assert_int_equal(capsule_bind(&capsule, &all, false, NULL), 0);
        threads_are_on(pid, &all);
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        assert_int_equal(remove_tree(folder), 0);
}

/* A group, even one without a limit, may not take up all memory of the node by forking while its
 * own is missing. */
static void test_fill_limit(void **state) {
        const uint64_t gib = UINT64_C(1) << 30;

        (void) state;
        assert_true(fill_max_bytes(10 * gib, 20 * gib) == 30 * gib);
        assert_true(fill_max_bytes(10 * gib, UINT64_MAX) == 41 * gib);
        assert_true(fill_max_bytes(10 * gib, UINT64_MAX - gib) == 41 * gib);
        assert_true(fill_max_bytes(0, UINT64_MAX) > 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_spec),
                cmocka_unit_test(test_agent_file),
                cmocka_unit_test(test_agent_request),
                cmocka_unit_test(test_spool),
                cmocka_unit_test(test_spool_drains_no_more_than_the_pipe),
                cmocka_unit_test(test_spool_empty_pipe),
                cmocka_unit_test(test_spool_leftovers),
                cmocka_unit_test(test_segment_names),
                cmocka_unit_test(test_pid_gap),
                cmocka_unit_test(test_fill_limit),
                cmocka_unit_test(test_remap),
                cmocka_unit_test(test_mapped_remap),
                cmocka_unit_test(test_hosts),
                cmocka_unit_test(test_flows),
                cmocka_unit_test(test_mend_timerfds),
                cmocka_unit_test(test_mend_absolute_timerfds),
                cmocka_unit_test(test_mend_sizes),
                cmocka_unit_test(test_kept_sizes),
                cmocka_unit_test(test_find_sockets),
                cmocka_unit_test(test_log_tail),
                cmocka_unit_test(test_quota),
                cmocka_unit_test(test_bind),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
