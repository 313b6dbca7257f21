/* What keeps a group from being moved, and what CRIU leaves to us: interrupted system calls, System V objects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/init/image_fixup.h"
#include "daemon/capsule/init/obstacles.h"
#include "daemon/capsule/init/sysv.h"

/* ---- words ---- */

static void test_texts(void **state) {
        char text[OBSTACLE_TEXT_BYTES];
        struct obstacle obstacle = { .kind = OBSTACLE_IO_URING, .pid = 12, .name = "feat", .detail = "unused" };

        (void) state;
        obstacle_text(&obstacle, text);
        assert_string_equal(text, "process 12 (feat) uses io_uring");
        obstacle = (struct obstacle) { .kind = OBSTACLE_MQUEUE, .detail = "q" };
        obstacle_text(&obstacle, text);
        assert_string_equal(text, "there is a POSIX message queue (/q)");
        /* Whatever a program calls itself and its files. */
        for (int kind = 0; kind < OBSTACLE_KINDS; kind++) {
                obstacle = (struct obstacle) { .kind = (enum obstacle_kind) kind, .pid = kind % 2 ? INT32_MAX : 0 };
                memset(obstacle.name, kind % 3 ? '\n' : '\x9b', sizeof(obstacle.name));
                memset(obstacle.detail, '%', sizeof(obstacle.detail));
                obstacle_text(&obstacle, text);
                assert_true(strlen(text) > 5 && strlen(text) < sizeof(text));
                for (const char *p = text; *p; p++)
                        assert_true(*p >= ' ' && *p <= '~');
        }
        assert_true(obstacle_is_transient(OBSTACLE_POSIX_LOCK));
        assert_false(obstacle_is_transient(OBSTACLE_IO_URING));
}

static void test_links(void **state) {
        (void) state;
        assert_int_equal(obstacle_of_link("anon_inode:[io_uring]"), OBSTACLE_IO_URING);
        assert_int_equal(obstacle_of_link("anon_inode:bpf-map"), OBSTACLE_BPF);
        assert_int_equal(obstacle_of_link("/secretmem (deleted)"), OBSTACLE_MEMFD_SECRET);
        assert_int_equal(obstacle_of_link("anon_inode:[eventpoll]"), OBSTACLE_NONE);
        assert_int_equal(obstacle_of_link("anon_inode:inotify"), OBSTACLE_NONE);
        assert_int_equal(obstacle_of_link("anon_inode:kvm-vm"), OBSTACLE_ANON_FILE);
        assert_int_equal(obstacle_of_link("/home/alice/anon_inode:[io_uring]"), OBSTACLE_NONE);
        assert_int_equal(obstacle_of_link("socket:[1]"), OBSTACLE_NONE);
        assert_int_equal(obstacle_of_link(""), OBSTACLE_NONE);
}

static void test_installed_files(void **state) {
        char path[OBSTACLE_DETAIL_BYTES] = "";
        char text[OBSTACLE_TEXT_BYTES];
        struct obstacle obstacle = { .kind = OBSTACLE_REPLACED, .pid = 7, .name = "ring" };

        (void) state;
        assert_false(obstacle_of_installed("/usr/lib/libmpi.so.40", path));
        assert_false(obstacle_of_installed("/home/alice/ring (deleted)", path));
        assert_false(obstacle_of_installed("/memfd:/usr/x (deleted)", path));
        assert_false(obstacle_of_installed(" (deleted)", path));
        assert_false(obstacle_of_installed("", path));
        assert_true(obstacle_of_installed("/usr/lib/libmpi.so.40 (deleted)", path));
        assert_string_equal(path, "/usr/lib/libmpi.so.40");
        (void) snprintf(obstacle.detail, sizeof(obstacle.detail), "%s", path);
        obstacle_text(&obstacle, text);
        assert_string_equal(text, "process 7 (ring) uses /usr/lib/libmpi.so.40, which was replaced or removed on this node since");
}

static void test_locks(void **state) {
        dev_t dev = 0;

        (void) state;
        assert_int_equal(obstacle_of_lock("lock:\t1: POSIX  ADVISORY  WRITE 5266 fe:1a:10977438 3 7\n", &dev), OBSTACLE_POSIX_LOCK);
        assert_int_equal(dev, makedev(0xfe, 0x1a));
        assert_int_equal(obstacle_of_lock("lock:\t22: OFDLCK ADVISORY  WRITE -1 00:30:1 10 14\n", &dev), OBSTACLE_OFD_LOCK);
        assert_int_equal(obstacle_of_lock("lock:\t4: LEASE  ACTIVE    WRITE 5266 fe:00:10977438 0 EOF\n", &dev), OBSTACLE_LEASE);
        assert_int_equal(obstacle_of_lock("lock:\t1: FLOCK  ADVISORY  READ  0 fe:00:10977438 0 EOF\n", &dev), OBSTACLE_FLOCK);
        assert_int_equal(obstacle_of_lock("lock:\t1: FLOCK", &dev), OBSTACLE_NONE);
        assert_int_equal(obstacle_of_lock("pos:\t0\n", &dev), OBSTACLE_NONE);
}

/* ---- processes ---- */

/* A child that holds what `hold` makes, until it is killed. */
static pid_t start_holder(void (*hold)(void)) {
        int ready[2];
        char byte;
        pid_t pid;

        assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
        pid = fork();
        if (pid == 0) {
                /* Who runs the tests may have left us descriptors, with locks even. */
                (void) dup2(ready[1], STDERR_FILENO);
                (void) close_range(3, ~0U, 0);
                hold();
                (void) write_all(STDERR_FILENO, "", 1);
                for (;;)
                        (void) pause();
        }
        assert_int_equal(read(ready[0], &byte, 1), 1);
        (void) close(ready[0]);
        (void) close(ready[1]);
        return pid;
}

static void hold_nothing(void) {
}

static void hold_lock(void) {
        int fd = open("/dev/shm/rmd-test-obstacles", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

        if (fd < 0 || flock(fd, LOCK_EX) < 0)
                _exit(1);
}

static void hold_eventfds(void) {
        if (eventfd(1, 0) < 0 || eventfd(3, EFD_SEMAPHORE) < 0)
                _exit(1);
}

static void hold_both(void) {
        hold_lock();
        hold_eventfds();
}

static void hold_secret(void) {
        if (syscall(SYS_memfd_secret, 0) < 0)
                _exit(1);
}

static enum obstacle_kind found_in(void (*hold)(void), const struct obstacles_scope *scope) {
        pid_t pid = start_holder(hold);
        const pid_t pids[] = { 999999999, pid };
        struct obstacle obstacle;

        obstacles_of_processes(scope, pids, ARRAY_SIZE(pids), &obstacle);
        if (obstacle.kind != OBSTACLE_NONE) {
                assert_int_equal(obstacle.pid, pid);
                assert_memory_equal(obstacle.name, program_invocation_short_name, strlen(obstacle.name)); /* its first 15 bytes */
                assert_true(strlen(obstacle.name) >= 14);
        }
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        return obstacle.kind;
}

static void test_processes(void **state) {
        gid_t group_list[256];
        int n_groups = getgroups(ARRAY_SIZE(group_list), group_list);
        uint32_t groups[ARRAY_SIZE(group_list)];
        Capsule__Spec spec = CAPSULE__SPEC__INIT;
        struct obstacles_scope scope = {
                .proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), .spec = &spec, .mappings = true, .budget = SIZE_MAX
        };
        struct stat st;

        (void) state;
        assert_true(scope.proc >= 0 && n_groups >= 0);
        for (int i = 0; i < n_groups; i++)
                groups[i] = group_list[i];
        spec.uid = getuid();
        spec.gid = getgid();
        spec.groups = groups;
        spec.n_groups = (size_t) n_groups;
        assert_int_equal(found_in(hold_nothing, &scope), OBSTACLE_NONE);
        assert_int_equal(found_in(hold_eventfds, &scope), OBSTACLE_EVENTFD_SEMAPHORE);
        assert_int_equal(found_in(hold_secret, &scope), OBSTACLE_MEMFD_SECRET);
        assert_int_equal(found_in(hold_lock, &scope), OBSTACLE_FLOCK);
        assert_int_equal(found_in(hold_both, &scope), OBSTACLE_EVENTFD_SEMAPHORE);
        /* On a file system of the capsule's own. */
        assert_int_equal(stat("/dev/shm/rmd-test-obstacles", &st), 0);
        scope.own = &st.st_dev;
        scope.n_own = 1;
        assert_int_equal(found_in(hold_lock, &scope), OBSTACLE_NONE);
        (void) unlink("/dev/shm/rmd-test-obstacles");
        scope.budget = 2; /* one thread, and the first descriptor */
        assert_int_equal(found_in(hold_eventfds, &scope), OBSTACLE_NONE);
        scope.budget = SIZE_MAX;
        spec.uid++;
        assert_int_equal(found_in(hold_nothing, &scope), OBSTACLE_OTHER_USER);
        spec.uid--;
        spec.gid++;
        assert_int_equal(found_in(hold_nothing, &scope), OBSTACLE_OTHER_USER);
        (void) close(scope.proc);
}

/* ---- interrupted calls ---- */

/* The image of a thread: what matters of it, in the order and with the numbers that CRIU uses. */
struct image {
        uint8_t bytes[512];
        size_t size;
};

static void put(struct image *image, uint64_t value) {
        do
                image->bytes[image->size++] = (uint8_t) ((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        while (value >>= 7);
}

static void put_field(struct image *image, unsigned number, uint64_t value) {
        put(image, (uint64_t) number << 3);
        put(image, value);
}

static void put_message(struct image *image, unsigned number, const struct image *message) {
        put(image, (uint64_t) number << 3 | 2);
        put(image, message->size);
        memcpy(image->bytes + image->size, message->bytes, message->size);
        image->size += message->size;
}

struct registers {
        uint64_t r10, ax, dx, si, di, orig_ax, ip;
};

static struct image make_image(const struct registers *r, uint64_t blocked, int pending) {
        static const uint32_t magics[] = { 0x54564319, 0x55053847 };
        struct image regs = { 0 }, info = { 0 }, thread = { 0 }, core = { 0 }, image = { 0 };
        struct image siginfo = { 0 }, entry = { 0 }, queue = { 0 };
        uint32_t size;

        put_field(&regs, 8, r->r10);
        put_field(&regs, 11, r->ax);
        put_field(&regs, 13, r->dx);
        put_field(&regs, 14, r->si);
        put_field(&regs, 15, r->di);
        put_field(&regs, 16, r->orig_ax);
        put_field(&regs, 17, r->ip);
        put_field(&info, 1, 0x7fff00001234);
        put_message(&info, 2, &regs);
        put_field(&thread, 6, blocked);
        if (pending) {
                siginfo.size = 128;
                memcpy(siginfo.bytes, &pending, sizeof(pending));
                put_message(&entry, 1, &siginfo);
                put_message(&queue, 1, &entry);
                put_message(&thread, 9, &queue);
        }
        put_field(&core, 1, 1);
        put_message(&core, 2, &info);
        put_message(&core, 5, &thread);
        size = (uint32_t) core.size;
        memcpy(image.bytes, magics, sizeof(magics));
        memcpy(image.bytes + 8, &size, sizeof(size));
        memcpy(image.bytes + 12, core.bytes, core.size);
        image.size = 12 + core.size;
        return image;
}

static uint64_t read_varint(const uint8_t **p) {
        uint64_t value = 0;
        unsigned shift = 0;

        do
                value |= (uint64_t) (**p & 0x7f) << shift;
        while (shift += 7, *(*p)++ & 0x80);
        return value;
}

/* In the order of `struct registers`, found by the only message in a message that there is. */
static struct registers read_image(const struct image *image) {
        const uint8_t *p = image->bytes + 12 + 2;
        uint64_t values[7];

        for (int depth = 0; depth < 2; depth++) {
                (void) read_varint(&p); /* key and length */
                (void) read_varint(&p);
                if (depth == 0) {
                        (void) read_varint(&p);
                        (void) read_varint(&p);
                }
        }
        for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
                (void) read_varint(&p);
                values[i] = read_varint(&p);
        }
        return (struct registers) { values[0], values[1], values[2], values[3], values[4], values[5], values[6] };
}

static const struct registers interrupted = { .ax = (uint64_t) -EINTR,
                                              .di = 0x7ffe00001000,
                                              .si = 1,
                                              .dx = 1000,
                                              .ip = 0x7f0000001002 };

static bool mended(struct registers r, uint64_t blocked, int pending, long again, struct registers *ret) {
        struct image image = make_image(&r, blocked, pending);
        bool was = image_fixup_call(image.bytes, image.size, again);

        *ret = read_image(&image);
        return was;
}

static void test_calls(void **state) {
        struct registers r = interrupted;
        struct registers after;

        (void) state;
        r.orig_ax = SYS_poll;
        assert_true(mended(r, 0, 0, -1, &after));
        assert_int_equal(after.ax, SYS_poll);
        assert_int_equal(after.ip, r.ip - 2);
        assert_int_equal(after.di, r.di);
        /* A signal that nobody blocks is to interrupt it. */
        assert_false(mended(r, 0, SIGUSR1, -1, &after));
        assert_int_equal(after.ax, (uint64_t) -EINTR);
        assert_true(mended(r, UINT64_C(1) << (SIGUSR1 - 1), SIGUSR1, -1, &after));
        /* One that the kernel had begun again. */
        r.orig_ax = SYS_restart_syscall;
        assert_false(mended(r, 0, 0, -1, &after));
        assert_true(mended(r, 0, 0, SYS_futex, &after));
        assert_int_equal(after.ax, SYS_futex);
        /* What did not end by being interrupted, and what is no such call. */
        r.orig_ax = SYS_close;
        assert_false(mended(r, 0, 0, -1, &after));
        r.orig_ax = (uint64_t) -1;
        assert_false(mended(r, 0, 0, -1, &after));
        r.orig_ax = SYS_poll;
        r.ax = 0;
        assert_false(mended(r, 0, 0, -1, &after));
}

static void test_sleeps(void **state) {
        struct registers r = interrupted;
        struct registers after;

        (void) state;
        r.orig_ax = SYS_nanosleep;
        r.si = 0x7ffe00002000; /* where what is left was written */
        assert_true(mended(r, 0, 0, -1, &after));
        assert_int_equal(after.di, r.si);
        r.si = 0;
        assert_true(mended(r, 0, 0, -1, &after));
        assert_int_equal(after.di, r.di);
        r.orig_ax = SYS_clock_nanosleep;
        r.dx = 0x7ffe00001000;
        r.r10 = 0x7ffe00003000;
        assert_true(mended(r, 0, 0, -1, &after));
        assert_int_equal(after.dx, r.r10);
        r.dx = 0x1000; /* no room for the other in the image: all of it again */
        assert_true(mended(r, 0, 0, -1, &after));
        assert_int_equal(after.dx, 0x1000);
}

/* Cut short anywhere, or with any byte changed, it is mended or left alone, but nothing outside is touched. */
static void test_damaged_calls(void **state) {
        struct registers r = interrupted;
        struct image image;

        (void) state;
        r.orig_ax = SYS_poll;
        image = make_image(&r, 0, SIGUSR1);
        for (size_t n = 0; n < image.size; n++) {
                uint8_t *copy = malloc(n + 1); /* its end is watched by the sanitizer */

                assert_non_null(copy);
                memcpy(copy, image.bytes, n);
                assert_false(image_fixup_call(copy, n, -1));
                free(copy);
        }
        for (size_t n = 0; n < image.size; n++) {
                struct image copy = image;

                for (unsigned value = 0; value < 256; value++) {
                        copy.bytes[n] = (uint8_t) value;
                        (void) image_fixup_call(copy.bytes, copy.size, -1);
                }
        }
}

/* ---- System V ---- */

enum { KEY = 0x7e57 };

static void enter_ipc(void) {
        if (unshare(CLONE_NEWIPC) == 0)
                return;
        cleanup_free char *uids = xasprintf("0 %u 1", (unsigned) getuid());
        cleanup_free char *gids = xasprintf("0 %u 1", (unsigned) getgid());

        if (unshare(CLONE_NEWUSER | CLONE_NEWIPC) < 0 || write_text("/proc/self/setgroups", "deny") < 0 ||
            write_text("/proc/self/uid_map", uids) < 0 || write_text("/proc/self/gid_map", gids) < 0)
                _exit(10);
}

struct letter {
        long type;
        char text[16];
};

/* What a program would make; ids that a new namespace would not give. Returns them. */
static void make_objects(int *ret_set, int *ret_queue) {
        unsigned short values[] = { 5, 0, 7 };
        struct letter first = { 3, "first" };
        struct letter second = { 1, "" };

        (void) semctl(semget(IPC_PRIVATE, 1, 0600), 0, IPC_RMID);
        *ret_set = semget(KEY, 3, IPC_CREAT | 0640);
        if (semctl(*ret_set, 0, SETALL, values) < 0)
                _exit(11);
        (void) msgctl(msgget(IPC_PRIVATE, 0600), IPC_RMID, NULL);
        (void) msgget(IPC_PRIVATE, 0600);
        *ret_queue = msgget(KEY, IPC_CREAT | 0600);
        if (msgsnd(*ret_queue, &first, 6, 0) < 0 || msgsnd(*ret_queue, &second, 0, 0) < 0)
                _exit(12);
}

static bool objects_are_there(int set, int queue) {
        unsigned short values[3] = { 0 };
        struct letter letter = { 0 };
        struct semid_ds ds;

        return semget(KEY, 3, 0) == set && semctl(set, 0, GETALL, values) == 0 && values[0] == 5 && values[1] == 0 &&
               values[2] == 7 && semctl(set, 0, IPC_STAT, &ds) == 0 && (ds.sem_perm.mode & 0777) == 0640 && ds.sem_otime == 0 &&
               msgget(KEY, 0) == queue && msgrcv(queue, &letter, sizeof(letter.text), 0, IPC_NOWAIT) == 6 && letter.type == 3 &&
               strcmp(letter.text, "first") == 0 && msgrcv(queue, &letter, sizeof(letter.text), 0, IPC_NOWAIT) == 0 &&
               letter.type == 1;
}

/* The exit code says where it failed. */
static void carry_objects(void) {
        Capsule__Sysv *sysv, *come;
        uint8_t packed[8192];
        int set, queue;
        size_t size;

        enter_ipc();
        if (sysv_semaphores_exist() || sysv_read())
                _exit(1);
        make_objects(&set, &queue);
        sysv = sysv_read();
        if (!sysv || sysv->n_semaphores != 1 || sysv->n_queues != 2)
                _exit(2);
        size = capsule__sysv__pack(sysv, packed);
        capsule__sysv__free_unpacked(sysv, NULL);
        if (!objects_are_there(set, queue)) /* it has taken nothing away */
                _exit(3);
        if (unshare(CLONE_NEWIPC) < 0)
                _exit(4);
        come = capsule__sysv__unpack(NULL, size, packed);
        if (sysv_make(come, NULL) < 0)
                _exit(5);
        if (!objects_are_there(set, queue))
                _exit(6);
        come->semaphores[0]->values[1] = 32768;
        _exit(sysv_make(come, NULL) == -EBADMSG ? 0 : 7);
}

static void find_obstacles(void) {
        struct obstacle obstacle;

        enter_ipc();
        sysv_find_obstacle(&obstacle);
        if (obstacle.kind != OBSTACLE_NONE)
                _exit(1);
        for (int i = 0; i <= SYSV_OBJECTS_MAX; i++)
                (void) msgget(IPC_PRIVATE, 0600);
        sysv_find_obstacle(&obstacle);
        if (obstacle.kind != OBSTACLE_SYSV_SIZE || sysv_read())
                _exit(2);
        if (shmget(IPC_PRIVATE, 100, 0600) < 0)
                _exit(4);
        sysv_find_obstacle(&obstacle);
        _exit(obstacle.kind == OBSTACLE_SHM ? 0 : 3);
}

static void in_child(void (*fn)(void)) {
        int status = 0;
        pid_t pid = fork();

        if (pid == 0)
                fn();
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_sysv(void **state) {
        (void) state;
        in_child(carry_objects);
        in_child(find_obstacles);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_texts),  cmocka_unit_test(test_links),         cmocka_unit_test(test_installed_files),
                cmocka_unit_test(test_locks),  cmocka_unit_test(test_processes),     cmocka_unit_test(test_calls),
                cmocka_unit_test(test_sleeps), cmocka_unit_test(test_damaged_calls), cmocka_unit_test(test_sysv),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
