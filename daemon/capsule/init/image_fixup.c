#include "daemon/capsule/init/image_fixup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/pages/interrupted.h"

enum {
        MAGIC_BYTES = 8, /* of all images, and of this kind */
        FILES_MAGIC = 0x56303138,
        WIRE_VARINT = 0,
        WIRE_BYTES = 2,
        FILE_REG = 3,       /* file_entry.reg */
        REG_SIZE = 8,       /* reg_file_entry */
        REG_SIZE_TAG = REG_SIZE << 3 | WIRE_VARINT,
        REG_UNKNOWN_TAG = 15 << 3 | WIRE_VARINT, /* a field that CRIU does not know, and passes over */
        FILE_UNIX = 16,    /* file_entry.usk */
        UNIX_NAME = 11,    /* unix_sk_entry */
        UNIX_NAME_DIR = 14, /* where a relative one is */
        FILE_TIMERFD = 12, /* file_entry.tfd */
        TIMERFD_VALUE_SEC = 7,
        TIMERFD_VALUE_NSEC = 8,
        TIMERFD_INTERVAL_SEC = 9,
        TIMERFD_INTERVAL_NSEC = 10,
        CORE_MAGIC = 0x55053847,
        CORE_THREAD_INFO = 2, /* core_entry: of x86-64 */
        CORE_TASK = 3,
        CORE_THREAD = 5,
        THREAD_GPREGS = 2, /* thread_info_x86 */
        TASK_BLOCKED = 5,  /* task_core_entry */
        TASK_SIGNALS = 10,
        THREAD_BLOCKED = 6, /* thread_core_entry */
        THREAD_SIGNALS = 9,
        REG_R10 = 8, /* user_x86_regs_entry */
        REG_AX = 11,
        REG_DX = 13,
        REG_SI = 14,
        REG_DI = 15,
        REG_ORIG_AX = 16,
        REG_IP = 17,
        REG_MODE = 28,
        REGS = 29,
        MODE_NATIVE = 1,
        SYSCALL_BYTES = 2, /* of the instruction */
};

struct cursor {
        uint8_t *at;
        uint8_t *end;
};

/* One field of a protobuf message: its number, and either a varint or bytes. */
struct field {
        uint64_t number;
        uint8_t *varint; /* where it is; NULL: bytes */
        size_t varint_bytes;
        uint64_t value;
        struct cursor bytes;
};

static bool next_varint(struct cursor *c, uint64_t *ret) {
        uint64_t value = 0;

        for (unsigned shift = 0; shift < 64 && c->at < c->end; shift += 7) {
                uint8_t byte = *c->at++;

                value |= (uint64_t) (byte & 0x7f) << shift;
                if (!(byte & 0x80)) {
                        *ret = value;
                        return true;
                }
        }
        return false;
}

/* CRIU's messages here have no other kinds of fields; one that has ends the walk. */
static bool next_field(struct cursor *c, struct field *ret) {
        uint64_t key, length;

        if (c->at >= c->end || !next_varint(c, &key))
                return false;
        *ret = (struct field) { .number = key >> 3 };
        if ((key & 7) == WIRE_VARINT) {
                ret->varint = c->at;
                if (!next_varint(c, &ret->value))
                        return false;
                ret->varint_bytes = (size_t) (c->at - ret->varint);
                return true;
        }
        if ((key & 7) != WIRE_BYTES || !next_varint(c, &length) || length > (size_t) (c->end - c->at))
                return false;
        ret->bytes = (struct cursor) { c->at, c->at + length };
        c->at += length;
        return true;
}

static bool image_fixup_timerfd(struct cursor entry, void *arg) {
        uint64_t left = 0;
        uint64_t interval = 0;
        uint8_t *nsec = NULL;
        struct field f;

        while (next_field(&entry, &f)) {
                if (f.number == TIMERFD_VALUE_SEC || f.number == TIMERFD_VALUE_NSEC)
                        left |= f.value;
                if (f.number == TIMERFD_VALUE_NSEC)
                        nsec = f.varint;
                if (f.number == TIMERFD_INTERVAL_SEC || f.number == TIMERFD_INTERVAL_NSEC)
                        interval |= f.value;
        }
        if (left != 0 || interval == 0 || !nsec || *nsec != 0)
                return false;
        *nsec = 1; /* as long as the 0 was */
        return true;
}

static bool drop_size(struct cursor entry, void *arg) {
        struct field f;

        while (next_field(&entry, &f))
                if (f.number == REG_SIZE && f.varint && f.varint[-1] == REG_SIZE_TAG) {
                        f.varint[-1] = REG_UNKNOWN_TAG;
                        return true;
                }
        return false;
}

/* Calls `fix` for each entry of that kind. Returns for how many it has done something. */
static unsigned fix_files(uint8_t *image, size_t size_bytes, uint64_t kind, bool (*fix)(struct cursor entry, void *arg),
                          void *arg) {
        struct cursor c = { image, image + size_bytes };
        uint32_t magic, length;
        unsigned n = 0;

        if (size_bytes < MAGIC_BYTES)
                return 0;
        memcpy(&magic, image + sizeof(magic), sizeof(magic));
        if (magic != FILES_MAGIC)
                return 0;
        c.at += MAGIC_BYTES;
        while ((size_t) (c.end - c.at) >= sizeof(length)) {
                struct cursor entry;
                struct field f;

                memcpy(&length, c.at, sizeof(length));
                c.at += sizeof(length);
                if (length > (size_t) (c.end - c.at))
                        break;
                entry = (struct cursor) { c.at, c.at + length };
                c.at += length;
                while (next_field(&entry, &f))
                        if (f.number == kind && !f.varint)
                                n += fix(f.bytes, arg);
        }
        return n;
}

unsigned image_fixup_timerfds(uint8_t *image, size_t size_bytes) {
        return fix_files(image, size_bytes, FILE_TIMERFD, image_fixup_timerfd, NULL);
}

unsigned image_fixup_sizes(uint8_t *image, size_t size_bytes) {
        return fix_files(image, size_bytes, FILE_REG, drop_size, NULL);
}

static char *text_of(const struct field *f) {
        return strndup((const char *) f->bytes.at, (size_t) (f->bytes.end - f->bytes.at));
}

struct sockets {
        image_fixup_socket_fn fn;
        void *arg;
};

/* Unnamed ones have no bytes there, abstract ones begin with a NUL. */
static bool see_socket(struct cursor entry, void *arg) {
        const struct sockets *sockets = arg;
        cleanup_free char *name = NULL, *dir = NULL, *path = NULL;
        struct field f;

        while (next_field(&entry, &f)) {
                if (f.varint || (f.number != UNIX_NAME && f.number != UNIX_NAME_DIR))
                        continue;
                free(f.number == UNIX_NAME ? name : dir);
                *(f.number == UNIX_NAME ? &name : &dir) = text_of(&f);
        }
        if (!name || !*name)
                return false;
        path = *name == '/' ? xstrdup(name) : xasprintf("%s/%s", dir ? dir : "", name);
        sockets->fn(sockets->arg, path);
        return true;
}

unsigned image_fixup_sockets(uint8_t *image, size_t size_bytes, image_fixup_socket_fn fn, void *arg) {
        struct sockets sockets = { fn, arg };

        return fix_files(image, size_bytes, FILE_UNIX, see_socket, &sockets);
}

/* ---- interrupted system calls ---- */

bool image_fixup_can_restart(long number) {
        static const long numbers[] = {
                SYS_poll,        SYS_ppoll,           SYS_select,          SYS_pselect6,        SYS_epoll_wait,
                SYS_epoll_pwait, SYS_epoll_pwait2,    SYS_nanosleep,       SYS_clock_nanosleep, SYS_futex,
                SYS_futex_waitv, SYS_rt_sigtimedwait, SYS_semop,           SYS_semtimedop,      SYS_msgsnd,
                SYS_msgrcv,      SYS_mq_timedsend,    SYS_mq_timedreceive, SYS_io_getevents,    SYS_io_pgetevents,
                SYS_read,        SYS_readv,           SYS_write,           SYS_writev,          SYS_recvfrom,
                SYS_recvmsg,     SYS_recvmmsg,        SYS_sendto,          SYS_sendmsg,         SYS_sendmmsg,
                SYS_accept,      SYS_accept4,
        };

        for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
                if (numbers[i] == number)
                        return true;
        return false;
}

/* Registers in a thread's image, by their field numbers; those that occur. */
struct thread {
        struct field regs[REGS];
        uint64_t blocked[2]; /* signals: of the thread; of the process, which counts where the thread says nothing */
        bool has_blocked[2];
        uint64_t pending;
};

/* As many bytes as it had: a varint may be longer than it has to be. */
static bool put_varint(const struct field *f, uint64_t value) {
        if (f->varint_bytes < 10 && value >> (7 * f->varint_bytes) != 0)
                return false;
        for (size_t i = 0; i < f->varint_bytes; i++, value >>= 7)
                f->varint[i] = (uint8_t) ((value & 0x7f) | (i + 1 < f->varint_bytes ? 0x80 : 0));
        return true;
}

static void take_registers(struct thread *thread, struct cursor info) {
        struct field f;

        while (next_field(&info, &f)) {
                struct field reg;

                if (f.number != THREAD_GPREGS || f.varint)
                        continue;
                while (next_field(&f.bytes, &reg))
                        if (reg.number < REGS && reg.varint)
                                thread->regs[reg.number] = reg;
        }
}

/* A queue of signals: each is a siginfo, which begins with the signal's number. */
static void take_signals(struct thread *thread, struct cursor queue) {
        struct field entry;
        struct field info;

        while (next_field(&queue, &entry)) {
                int32_t signo;

                if (entry.varint)
                        continue;
                while (next_field(&entry.bytes, &info)) {
                        if (info.varint || info.bytes.end - info.bytes.at < (ptrdiff_t) sizeof(signo))
                                continue;
                        memcpy(&signo, info.bytes.at, sizeof(signo));
                        if (signo >= 1 && signo <= 64)
                                thread->pending |= UINT64_C(1) << (signo - 1);
                }
        }
}

static void take_part(struct thread *thread, struct cursor part, unsigned mask_field, unsigned queue_field, unsigned which) {
        struct field f;

        while (next_field(&part, &f)) {
                if (f.number == mask_field && f.varint) {
                        thread->blocked[which] = f.value;
                        thread->has_blocked[which] = true;
                } else if (f.number == queue_field && !f.varint) {
                        take_signals(thread, f.bytes);
                }
        }
}

static void take_thread(struct thread *thread, struct cursor core) {
        struct field f;

        while (next_field(&core, &f)) {
                if (f.varint)
                        continue;
                if (f.number == CORE_THREAD_INFO)
                        take_registers(thread, f.bytes);
                else if (f.number == CORE_THREAD)
                        take_part(thread, f.bytes, THREAD_BLOCKED, THREAD_SIGNALS, 0);
                else if (f.number == CORE_TASK)
                        take_part(thread, f.bytes, TASK_BLOCKED, TASK_SIGNALS, 1);
        }
}

static bool signal_waits(const struct thread *thread) {
        return (thread->pending & ~(thread->has_blocked[0] ? thread->blocked[0] : thread->blocked[1])) != 0;
}

static void image_fixup_sleep(struct thread *thread, long number) {
        struct field *regs = thread->regs;
        uint64_t rdi = regs[REG_DI].value;
        uint64_t rdx = regs[REG_DX].value;

        /* Where it does not fit, which takes a pointer below 64 GiB beside one above, it sleeps all of it once more. */
        interrupted_sleep_arguments(number, &rdi, regs[REG_SI].value, &rdx, regs[REG_R10].value);
        (void) put_varint(&regs[REG_DI], rdi);
        (void) put_varint(&regs[REG_DX], rdx);
}

static bool image_fixup_thread(struct thread *thread, long again) {
        static const unsigned needed[] = { REG_AX, REG_ORIG_AX, REG_IP, REG_DI, REG_SI, REG_DX, REG_R10 };
        struct field *regs = thread->regs;
        long number;

        for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
                if (!regs[needed[i]].varint)
                        return false;
        number = (long) regs[REG_ORIG_AX].value;
        if (number == SYS_restart_syscall)
                number = again;
        if ((int64_t) regs[REG_AX].value != -EINTR || !image_fixup_can_restart(number) || signal_waits(thread) ||
            (regs[REG_MODE].varint && regs[REG_MODE].value != MODE_NATIVE))
                return false;
        if (!put_varint(&regs[REG_AX], (uint64_t) number) || !put_varint(&regs[REG_IP], regs[REG_IP].value - SYSCALL_BYTES))
                return false;
        image_fixup_sleep(thread, number);
        return true;
}

bool image_fixup_call(uint8_t *image, size_t size_bytes, long again) {
        struct cursor core = { image + MAGIC_BYTES, image + size_bytes };
        struct thread thread = { 0 };
        uint32_t magic, length;

        if (size_bytes < MAGIC_BYTES + sizeof(length))
                return false;
        memcpy(&magic, image + sizeof(magic), sizeof(magic));
        memcpy(&length, core.at, sizeof(length));
        core.at += sizeof(length);
        if (magic != CORE_MAGIC || length > (size_t) (core.end - core.at))
                return false;
        core.end = core.at + length;
        take_thread(&thread, core);
        return image_fixup_thread(&thread, again);
}

/* ---- the files ---- */

struct mending {
        image_fixup_again_fn again;
        void *arg;
        bool sizes;
};

static void image_fixup_file(const struct mending *mending, int images_fd, const char *name, long tid) {
        cleanup_close int fd = openat(images_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        struct stat st;
        void *map;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
                return;
        map = mmap(NULL, (size_t) st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED) {
                log_warn("cannot look through CRIU's images: %s", strerror(errno));
                return;
        }
        if (tid == 0)
                (void) image_fixup_timerfds(map, (size_t) st.st_size);
        if (tid == 0 && mending->sizes)
                (void) image_fixup_sizes(map, (size_t) st.st_size);
        if (tid != 0)
                (void) image_fixup_call(map, (size_t) st.st_size, mending->again(mending->arg, (pid_t) tid));
        (void) munmap(map, (size_t) st.st_size);
}

void image_fixup(int images_fd, bool sizes, image_fixup_again_fn again, void *arg) {
        const struct mending mending = { again, arg, sizes };
        int fd = openat(images_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *entry;
        int tid, end;

        if (!dir && fd >= 0)
                close(fd);
        image_fixup_file(&mending, images_fd, "files.img", 0);
        while (dir && (entry = readdir(dir))) {
                end = 0;
                if (sscanf(entry->d_name, "core-%d.img%n", &tid, &end) == 1 && end > 0 && entry->d_name[end] == '\0' && tid > 0)
                        image_fixup_file(&mending, images_fd, entry->d_name, tid);
        }
        if (dir)
                (void) closedir(dir);
}
