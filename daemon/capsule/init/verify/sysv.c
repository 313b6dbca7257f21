#include "daemon/capsule/init/verify/sysv.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/error.h"
#include "common/openat.h"
#include "common/text.h"
#include "common/util.h"

#define SEM_NEXT_ID "/proc/sys/kernel/sem_next_id"
#define MSG_NEXT_ID "/proc/sys/kernel/msg_next_id"

/* The caller of semctl() has to define it. */
union semun {
        int val;
        struct semid_ds *buf;
        unsigned short *array;
        struct seminfo *info;
};

/* As the kernel wants it; the C library's has room for one byte. */
struct message {
        long type;
        char text[SYSV_TEXT_MAX_BYTES];
};

/* ---- what there is ---- */

struct totals {
        unsigned objects;
        size_t semaphores;
        size_t messages;
        size_t bytes;
};

/* The calls with SEM_INFO and so on return the highest index in use, and the call with SEM_STAT
 * takes an index and returns the id. */
static int highest_semaphores(void) {
        struct seminfo info;
        int top = semctl(0, 0, SEM_INFO, (union semun) { .info = &info });

        return top >= 0 && info.semusz > 0 ? top : -1; /* sets in use */
}

static int highest_queue(void) {
        union {
                struct msqid_ds ds; /* as the call is declared */
                struct msginfo info;
        } of;
        int top = msgctl(0, MSG_INFO, &of.ds);

        return top >= 0 && of.info.msgpool > 0 ? top : -1; /* queues in use */
}

static int semaphores_at(int index, struct semid_ds *ret) {
        return semctl(index, 0, SEM_STAT, (union semun) { .buf = ret });
}

static int queue_at(int index, struct msqid_ds *ret) {
        return msgctl(index, MSG_STAT, ret);
}

bool sysv_semaphores_exist(void) {
        return highest_semaphores() >= 0;
}

static struct totals count(void) {
        struct totals totals = { 0 };
        struct semid_ds set;
        struct msqid_ds queue;

        for (int i = 0, top = highest_semaphores(); i <= top; i++)
                if (semaphores_at(i, &set) >= 0) {
                        totals.objects++;
                        totals.semaphores += set.sem_nsems;
                }
        for (int i = 0, top = highest_queue(); i <= top; i++)
                if (queue_at(i, &queue) >= 0) {
                        totals.objects++;
                        totals.messages += queue.msg_qnum;
                        totals.bytes += queue.__msg_cbytes;
                }
        return totals;
}

static bool too_much(const struct totals *totals) {
        return totals->objects > SYSV_OBJECTS_MAX || totals->semaphores > SYSV_SEMAPHORES_MAX ||
               totals->messages > SYSV_MESSAGES_MAX || totals->bytes > SYSV_TEXT_MAX_BYTES;
}

/* ---- blockers ---- */

static void find_shared_memory(struct blocker *ret) {
        struct shm_info info;
        struct shmid_ds ds;
        int top = shmctl(0, SHM_INFO, (struct shmid_ds *) &info);

        if (top < 0 || info.used_ids == 0)
                return;
        ret->kind = BLOCKER_SHM;
        for (int i = 0; i <= top; i++) {
                int id = shmctl(i, SHM_STAT, &ds);

                if (id >= 0) {
                        snprintf(ret->detail, sizeof(ret->detail), "%d, %zu bytes", id, ds.shm_segsz);
                        return;
                }
        }
}

/* A file system of the namespace, which need not be mounted anywhere. */
static DIR *open_mqueues(void) {
        cleanup_close int fs = (int) syscall(SYS_fsopen, "mqueue", 1U /* FSOPEN_CLOEXEC */);
        cleanup_close int mount = -1;

        if (fs < 0 || syscall(SYS_fsconfig, fs, 6U /* FSCONFIG_CMD_CREATE */, NULL, NULL, 0) < 0)
                return NULL;
        mount = (int) syscall(SYS_fsmount, fs, 1U /* FSMOUNT_CLOEXEC */, 0);
        return mount < 0 ? NULL : opendir_at(mount, ".");
}

static void find_mqueue(struct blocker *ret) {
        cleanup_dir DIR *dir = open_mqueues();
        const char *name = next_name(dir);

        if (!name)
                return;
        ret->kind = BLOCKER_MQUEUE;
        (void) text_format(ret->detail, sizeof(ret->detail), "%s", name);
}

void sysv_find_blocker(struct blocker *ret) {
        struct totals totals = count();

        *ret = (struct blocker) { .kind = BLOCKER_NONE };
        find_shared_memory(ret);
        if (ret->kind == BLOCKER_NONE && too_much(&totals)) {
                ret->kind = BLOCKER_SYSV_SIZE;
                snprintf(ret->detail, sizeof(ret->detail), "%u objects, %zu semaphores, %zu messages with %zu bytes",
                         totals.objects, totals.semaphores, totals.messages, totals.bytes);
        }
        if (ret->kind == BLOCKER_NONE)
                find_mqueue(ret);
}

/* ---- at the source ---- */

static Capsule__SysvPermissions *read_permissions(int id, const struct ipc_perm *perm) {
        Capsule__SysvPermissions *p = xcalloc(1, sizeof(*p));

        capsule__sysv_permissions__init(p);
        p->id = id;
        p->key = perm->__key;
        p->uid = perm->uid;
        p->gid = perm->gid;
        p->creator_uid = perm->cuid;
        p->creator_gid = perm->cgid;
        p->mode = perm->mode & 0777;
        return p;
}

static void read_semaphores(Capsule__Sysv *sysv, int index) {
        struct semid_ds ds;
        int id = semaphores_at(index, &ds);
        cleanup_free unsigned short *values = NULL;
        Capsule__SysvSemaphores *set;

        if (id < 0)
                return;
        values = xcalloc(ds.sem_nsems, sizeof(*values));
        if (semctl(id, 0, GETALL, (union semun) { .array = values }) < 0)
                return;
        set = xcalloc(1, sizeof(*set));
        capsule__sysv_semaphores__init(set);
        set->permissions = read_permissions(id, &ds.sem_perm);
        set->operated = ds.sem_otime != 0;
        set->n_values = ds.sem_nsems;
        set->values = xcalloc(set->n_values, sizeof(*set->values));
        for (size_t i = 0; i < set->n_values; i++)
                set->values[i] = values[i];
        sysv->semaphores[sysv->n_semaphores++] = set;
}

static Capsule__SysvMessage *copy_message(const struct message *message, size_t size) {
        Capsule__SysvMessage *copy = xcalloc(1, sizeof(*copy));

        capsule__sysv_message__init(copy);
        copy->type = message->type;
        copy->text.len = size;
        copy->text.data = xcalloc(1, size + 1);
        memcpy(copy->text.data, message->text, size);
        return copy;
}

static void read_queue(Capsule__Sysv *sysv, int index, struct message *scratch) {
        struct msqid_ds ds;
        int id = queue_at(index, &ds);
        Capsule__SysvQueue *queue;

        if (id < 0)
                return;
        queue = xcalloc(1, sizeof(*queue));
        capsule__sysv_queue__init(queue);
        queue->permissions = read_permissions(id, &ds.msg_perm);
        queue->max_bytes = ds.msg_qbytes;
        queue->messages = xcalloc(ds.msg_qnum + 1, sizeof(*queue->messages)); /* NOLINT(bugprone-sizeof-expression) */
        for (size_t i = 0; i < ds.msg_qnum; i++) {
                ssize_t n = msgrcv(id, scratch, sizeof(scratch->text), (long) i, IPC_NOWAIT | MSG_COPY);

                if (n >= 0)
                        queue->messages[queue->n_messages++] = copy_message(scratch, (size_t) n);
        }
        sysv->queues[sysv->n_queues++] = queue;
}

Capsule__Sysv *sysv_read(void) {
        struct totals totals = count();
        cleanup_free struct message *scratch = NULL;
        Capsule__Sysv *sysv;

        if (totals.objects == 0 || too_much(&totals))
                return NULL;
        scratch = xcalloc(1, sizeof(*scratch));
        sysv = xcalloc(1, sizeof(*sysv));
        capsule__sysv__init(sysv);
        sysv->semaphores = xcalloc(totals.objects, sizeof(*sysv->semaphores)); /* NOLINT(bugprone-sizeof-expression) */
        sysv->queues = xcalloc(totals.objects, sizeof(*sysv->queues)); /* NOLINT(bugprone-sizeof-expression) */
        for (int i = 0, top = highest_semaphores(); i <= top && sysv->n_semaphores < totals.objects; i++)
                read_semaphores(sysv, i);
        for (int i = 0, top = highest_queue(); i <= top && sysv->n_queues < totals.objects; i++)
                read_queue(sysv, i, scratch);
        return sysv;
}

/* ---- at the destination ---- */

static bool semaphores_in_bounds(const Capsule__Sysv *sysv, struct totals *totals) {
        for (size_t i = 0; i < sysv->n_semaphores; i++) {
                const Capsule__SysvSemaphores *set = sysv->semaphores[i];

                totals->semaphores += set->n_values;
                if (!set->permissions || set->permissions->id < 0 || set->n_values == 0)
                        return false;
                for (size_t k = 0; k < set->n_values; k++)
                        if (set->values[k] > 32767) /* SEMVMX */
                                return false;
        }
        return true;
}

static bool queues_in_bounds(const Capsule__Sysv *sysv, struct totals *totals) {
        for (size_t i = 0; i < sysv->n_queues; i++) {
                const Capsule__SysvQueue *queue = sysv->queues[i];

                totals->messages += queue->n_messages;
                if (!queue->permissions || queue->permissions->id < 0)
                        return false;
                for (size_t k = 0; k < queue->n_messages; k++) {
                        totals->bytes += queue->messages[k]->text.len;
                        if (queue->messages[k]->type <= 0 || totals->bytes > SYSV_TEXT_MAX_BYTES)
                                return false;
                }
        }
        return true;
}

static bool in_bounds(const Capsule__Sysv *sysv) {
        struct totals totals = { .objects = (unsigned) (sysv->n_semaphores + sysv->n_queues) };

        return sysv->n_semaphores + sysv->n_queues <= SYSV_OBJECTS_MAX && semaphores_in_bounds(sysv, &totals) &&
               queues_in_bounds(sysv, &totals) && !too_much(&totals);
}

/* The next object gets this id, which writing as root arranges, and has this creator, who is its
 * effective user. */
static int prepare_next(const char *next_id, const Capsule__SysvPermissions *p) {
        char text[16];
        int r;

        snprintf(text, sizeof(text), "%d", p->id);
        r = write_text(next_id, text);
        if (r < 0)
                return r;
        return setegid(p->creator_gid) < 0 || seteuid(p->creator_uid) < 0 ? -errno : 0;
}

static int be_root_again(void) {
        return seteuid(0) < 0 || setegid(0) < 0 ? -errno : 0;
}

static int make_semaphores(const Capsule__SysvSemaphores *set) {
        const Capsule__SysvPermissions *p = set->permissions;
        cleanup_free unsigned short *values = xcalloc(set->n_values, sizeof(*values));
        struct semid_ds ds = { .sem_perm = { .uid = p->uid, .gid = p->gid, .mode = (unsigned short) (p->mode & 0777) } };
        int r = prepare_next(SEM_NEXT_ID, p);
        int id = r < 0 ? r : semget(p->key, (int) set->n_values, IPC_CREAT | IPC_EXCL | 0600);

        if (be_root_again() < 0 || id != p->id)
                return id < 0 ? -errno : -EEXIST;
        for (size_t i = 0; i < set->n_values; i++)
                values[i] = (unsigned short) set->values[i];
        if (set->operated) {
                /* Programs take the time of the last operation for the sign that somebody has set
                 * the values. */
                struct sembuf nothing[2] = { { 0, 1, IPC_NOWAIT }, { 0, -1, IPC_NOWAIT } };

                (void) semop(id, nothing, 2);
        }
        if (semctl(id, 0, SETALL, (union semun) { .array = values }) < 0 ||
            semctl(id, 0, IPC_SET, (union semun) { .buf = &ds }) < 0)
                return -errno;
        return 0;
}

static int send_messages(int id, const Capsule__SysvQueue *queue) {
        cleanup_free struct message *scratch = xcalloc(1, sizeof(*scratch));

        for (size_t i = 0; i < queue->n_messages; i++) {
                const Capsule__SysvMessage *message = queue->messages[i];

                scratch->type = message->type;
                if (message->text.len > 0)
                        memcpy(scratch->text, message->text.data, message->text.len);
                if (msgsnd(id, scratch, message->text.len, IPC_NOWAIT) < 0)
                        return -errno;
        }
        return 0;
}

static int make_queue(const Capsule__SysvQueue *queue) {
        const Capsule__SysvPermissions *p = queue->permissions;
        struct msqid_ds ds = { .msg_perm = { .uid = p->uid, .gid = p->gid, .mode = (unsigned short) (p->mode & 0777) },
                               .msg_qbytes = queue->max_bytes };
        int r = prepare_next(MSG_NEXT_ID, p);
        int id = r < 0 ? r : msgget(p->key, IPC_CREAT | IPC_EXCL | 0600);

        if (be_root_again() < 0 || id != p->id)
                return id < 0 ? -errno : -EEXIST;
        /* The messages first: the program may have lowered the limit below what was in. */
        r = send_messages(id, queue);
        return r < 0 ? r : msgctl(id, IPC_SET, &ds) < 0 ? -errno : 0;
}

static int make_all(const Capsule__Sysv *sysv) {
        int r = 0;

        for (size_t i = 0; i < sysv->n_semaphores && r == 0; i++)
                r = make_semaphores(sysv->semaphores[i]);
        for (size_t i = 0; i < sysv->n_queues && r == 0; i++)
                r = make_queue(sysv->queues[i]);
        return r;
}

int sysv_make(const Capsule__Sysv *sysv, struct rm_error *error) {
        int status;
        pid_t pid;

        if (!sysv || sysv->n_semaphores + sysv->n_queues == 0)
                return 0;
        if (!in_bounds(sysv))
                return error_set(error, -EBADMSG, "the System V objects exceed the limits of a move");
        /* The objects are made in a child: PID 1 would have another identity in between. */
        pid = fork();
        if (pid == 0)
                _exit(-make_all(sysv) & 0xff);
        while (pid > 0 && waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return error_sys(error, -errno, "cannot create System V objects");
        if (pid < 0 || !WIFEXITED(status))
                return error_set(error, -EAGAIN, "cannot create System V objects: cannot fork");
        return WEXITSTATUS(status) == 0 ? 0 : error_sys(error, -WEXITSTATUS(status), "cannot create System V objects");
}
