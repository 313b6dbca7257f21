/* System V semaphores and message queues, each time in a namespace of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/capsule/init/verify/blocker_scan.h"
#include "daemon/capsule/init/verify/sysv.h"

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

/* Makes objects as a program would; with ids that a new namespace would not give. Returns them. */
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
static void saved_state_objects(void) {
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

static void find_blockers(void) {
        struct blocker blocker;

        enter_ipc();
        sysv_find_blocker(&blocker);
        if (blocker.kind != BLOCKER_NONE)
                _exit(1);
        for (int i = 0; i <= SYSV_OBJECTS_MAX; i++)
                (void) msgget(IPC_PRIVATE, 0600);
        sysv_find_blocker(&blocker);
        if (blocker.kind != BLOCKER_SYSV_SIZE || sysv_read())
                _exit(2);
        if (shmget(IPC_PRIVATE, 100, 0600) < 0)
                _exit(4);
        sysv_find_blocker(&blocker);
        _exit(blocker.kind == BLOCKER_SHM ? 0 : 3);
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
        in_child(saved_state_objects);
        in_child(find_blockers);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sysv),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
