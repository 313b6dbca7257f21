#include "daemon/capsule/init/criu/image_fixup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "common/error.h"
#include "common/openat.h"
#include "common/util.h"
#include "daemon/capsule/init/criu/image_identity.h"
#include "daemon/capsule/init/criu/image_memory.h"
#include "daemon/criu_images/fields.h"
#include "daemon/pages/interrupted.h"

enum {
        WIRE_VARINT = 0,
        FILE_REG = 3,       /* file_entry.reg */
        REG_NAME = 6,       /* reg_file_entry */
        REG_SIZE = 8,
        REG_SIZE_TAG = REG_SIZE << 3 | WIRE_VARINT,
        REG_PERMISSIONS = 10,
        REG_PERMISSIONS_TAG = REG_PERMISSIONS << 3 | WIRE_VARINT,
        REG_UNKNOWN_TAG = 15 << 3 | WIRE_VARINT, /* a field that CRIU does not know, and passes over */
        FILE_UNIX = 16,    /* file_entry.usk */
        UNIX_NAME = 11,    /* unix_sk_entry */
        UNIX_NAME_DIR = 14, /* where a relative one is */
        UNIX_DELETED = 15,
        FILE_TIMERFD = 12, /* file_entry.tfd */
        TIMERFD_CLOCK = 4,
        TIMERFD_FLAGS = 6, /* of timerfd_settime(2) */
        TIMERFD_VALUE_SEC = 7,
        TIMERFD_VALUE_NSEC = 8,
        TIMERFD_INTERVAL_SEC = 9,
        TIMERFD_INTERVAL_NSEC = 10,
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

static bool image_fixup_timerfd(struct criu_cursor entry, void *arg) {
        uint64_t left = 0;
        uint64_t interval = 0;
        uint64_t clock = 0;
        uint8_t *nsec = NULL, *flags = NULL;
        struct criu_field f;
        bool changed;

        while (criu_next_field(&entry, &f)) {
                if (f.number == TIMERFD_CLOCK)
                        clock = f.value;
                if (f.number == TIMERFD_FLAGS)
                        flags = f.varint;
                if (f.number == TIMERFD_VALUE_SEC || f.number == TIMERFD_VALUE_NSEC)
                        left |= f.value;
                if (f.number == TIMERFD_VALUE_NSEC)
                        nsec = f.varint;
                if (f.number == TIMERFD_INTERVAL_SEC || f.number == TIMERFD_INTERVAL_NSEC)
                        interval |= f.value;
        }
        changed = flags && (*flags & TFD_TIMER_ABSTIME) && (clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME);
        if (changed)
                *flags &= (uint8_t) ~TFD_TIMER_ABSTIME;
        if (left != 0 || interval == 0 || !nsec || *nsec != 0)
                return changed;
        *nsec = 1; /* as long as the 0 was */
        return true;
}

struct names {
        const char *const *list;
        size_t n;
};

static bool is_among(const struct names *names, const struct criu_field *name) {
        size_t bytes = (size_t) (name->bytes.end - name->bytes.at);

        for (size_t i = 0; i < names->n; i++)
                if (strlen(names->list[i]) == bytes && memcmp(names->list[i], name->bytes.at, bytes) == 0)
                        return true;
        return false;
}

static bool drop_size(struct criu_cursor entry, void *arg) {
        uint8_t *tag = NULL, *permissions = NULL;
        bool kept = false;
        struct criu_field f;

        while (criu_next_field(&entry, &f)) {
                if (f.number == REG_NAME && !f.varint)
                        kept = is_among(arg, &f);
                if (f.number == REG_SIZE && f.varint && f.varint[-1] == REG_SIZE_TAG)
                        tag = f.varint - 1;
                if (f.number == REG_PERMISSIONS && f.varint && f.varint[-1] == REG_PERMISSIONS_TAG)
                        permissions = f.varint - 1;
        }
        if (kept || (!tag && !permissions))
                return false;
        if (tag)
                *tag = REG_UNKNOWN_TAG;
        if (permissions)
                *permissions = REG_UNKNOWN_TAG;
        return true;
}

/* Calls `fix` for each entry of that kind. Returns for how many it has done something. */
static unsigned fix_files(uint8_t *image, size_t size_bytes, uint64_t kind, bool (*fix)(struct criu_cursor entry, void *arg),
                          void *arg) {
        struct criu_cursor c, entry;
        struct criu_field f;
        unsigned n = 0;

        if (!criu_image_open(image, size_bytes, CRIU_IMAGE_MAGIC_FILES, &c))
                return 0;
        while (criu_next_entry(&c, &entry))
                while (criu_next_field(&entry, &f))
                        if (f.number == kind && !f.varint)
                                n += fix(f.bytes, arg);
        return n;
}

unsigned image_fixup_timerfds(uint8_t *image, size_t size_bytes) {
        return fix_files(image, size_bytes, FILE_TIMERFD, image_fixup_timerfd, NULL);
}

unsigned image_fixup_sizes(uint8_t *image, size_t size_bytes, const char *const *kept, size_t n_kept) {
        struct names names = { kept, n_kept };

        return fix_files(image, size_bytes, FILE_REG, drop_size, &names);
}

static char *text_of(const struct criu_field *f) {
        return strndup((const char *) f->bytes.at, (size_t) (f->bytes.end - f->bytes.at));
}

struct sockets {
        image_fixup_socket_fn fn;
        void *arg;
};

/* Unnamed ones have no bytes there, abstract ones begin with a NUL. One that has lost its name gets
 * none: what has it now is put aside meanwhile. */
static bool see_socket(struct criu_cursor entry, void *arg) {
        const struct sockets *sockets = arg;
        cleanup_free char *name = NULL, *dir = NULL, *path = NULL;
        bool deleted = false;
        struct criu_field f;

        while (criu_next_field(&entry, &f)) {
                if (f.varint && f.number == UNIX_DELETED)
                        deleted = f.value != 0;
                if (f.varint || (f.number != UNIX_NAME && f.number != UNIX_NAME_DIR))
                        continue;
                free(f.number == UNIX_NAME ? name : dir);
                *(f.number == UNIX_NAME ? &name : &dir) = text_of(&f);
        }
        if (!name || !*name || deleted)
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
        struct criu_field regs[REGS];
        uint64_t blocked[2]; /* signals: of the thread; of the process, which counts where the thread says nothing */
        bool has_blocked[2];
        uint64_t pending;
};

/* Writes the value in as many bytes as the field had: a varint may be longer than it has to be. */
static bool put_varint(const struct criu_field *f, uint64_t value) {
        if (f->varint_bytes < 10 && value >> (7 * f->varint_bytes) != 0)
                return false;
        for (size_t i = 0; i < f->varint_bytes; i++, value >>= 7)
                f->varint[i] = (uint8_t) ((value & 0x7f) | (i + 1 < f->varint_bytes ? 0x80 : 0));
        return true;
}

static void take_registers(struct thread *thread, struct criu_cursor info) {
        struct criu_field f;

        while (criu_next_field(&info, &f)) {
                struct criu_field reg;

                if (f.number != THREAD_GPREGS || f.varint)
                        continue;
                while (criu_next_field(&f.bytes, &reg))
                        if (reg.number < REGS && reg.varint)
                                thread->regs[reg.number] = reg;
        }
}

/* A queue of signals: each is a siginfo, which begins with the signal's number. */
static void take_signals(struct thread *thread, struct criu_cursor queue) {
        struct criu_field entry;
        struct criu_field info;

        while (criu_next_field(&queue, &entry)) {
                int32_t signo;

                if (entry.varint)
                        continue;
                while (criu_next_field(&entry.bytes, &info)) {
                        if (info.varint || info.bytes.end - info.bytes.at < (ptrdiff_t) sizeof(signo))
                                continue;
                        memcpy(&signo, info.bytes.at, sizeof(signo));
                        if (signo >= 1 && signo <= 64)
                                thread->pending |= UINT64_C(1) << (signo - 1);
                }
        }
}

static void take_part(struct thread *thread, struct criu_cursor part, unsigned mask_field, unsigned queue_field, unsigned which) {
        struct criu_field f;

        while (criu_next_field(&part, &f)) {
                if (f.number == mask_field && f.varint) {
                        thread->blocked[which] = f.value;
                        thread->has_blocked[which] = true;
                } else if (f.number == queue_field && !f.varint) {
                        take_signals(thread, f.bytes);
                }
        }
}

static void take_thread(struct thread *thread, struct criu_cursor core) {
        struct criu_field f;

        while (criu_next_field(&core, &f)) {
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
        struct criu_field *regs = thread->regs;
        uint64_t rdi = regs[REG_DI].value;
        uint64_t rdx = regs[REG_DX].value;

        /* A sleep whose rest does not fit, which takes a pointer below 64 GiB beside one above, is
         * slept whole once more. */
        interrupted_sleep_arguments(number, &rdi, regs[REG_SI].value, &rdx, regs[REG_R10].value);
        (void) put_varint(&regs[REG_DI], rdi);
        (void) put_varint(&regs[REG_DX], rdx);
}

static bool image_fixup_thread(struct thread *thread, long again) {
        static const unsigned needed[] = { REG_AX, REG_ORIG_AX, REG_IP, REG_DI, REG_SI, REG_DX, REG_R10 };
        struct criu_field *regs = thread->regs;
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
        struct criu_cursor entries, core;
        struct thread thread = { 0 };

        if (!criu_image_open(image, size_bytes, CRIU_IMAGE_MAGIC_CORE, &entries) || !criu_next_entry(&entries, &core))
                return false;
        take_thread(&thread, core);
        return image_fixup_thread(&thread, again);
}

/* ---- the files ---- */

struct mending {
        const struct image_identity_scope *scope;
        image_fixup_again_fn again;
        void *arg;
        bool all_sizes;
};

static int rewrite(int fd, const uint8_t *bytes, size_t n) {
        return pwrite(fd, bytes, n, 0) != (ssize_t) n || ftruncate(fd, (off_t) n) < 0 ? -EIO : 0;
}

static int mend_core(const struct mending *mending, int fd, uint8_t *image, size_t size_bytes, pid_t tid, struct rm_error *error) {
        cleanup_free uint8_t *lifted = xcalloc(1, image_identity_lifted_bytes(size_bytes));
        int r = image_identity_check(mending->scope, image, size_bytes, tid, error);
        size_t n;

        if (r < 0)
                return r;
        (void) image_fixup_call(image, size_bytes, mending->again(mending->arg, tid));
        if (mending->scope->spec->uid == 0) /* CRIU has all that it wants */
                return 0;
        n = image_identity_lift_bounding(image, size_bytes, lifted);
        return rewrite(fd, lifted, n);
}

/* Names the mapped files that are executed or not the owner's: a node may have other versions of
 * them. */
static const char **programs_of(const struct image_identity_scope *scope, size_t *ret_n) {
        const Capsule__Inventory *inventory = scope->inventory;
        const char **names = xcalloc(inventory->n_files + 1, sizeof(*names));
        cleanup_free bool *known = xcalloc(inventory->n_files + 1, sizeof(*known));

        for (size_t t = 0; t < inventory->n_tasks; t++)
                for (size_t i = 0; i < inventory->tasks[t]->n_mappings; i++) {
                        const Capsule__InventoryMapping *m = inventory->tasks[t]->mappings[i];

                        if (m->file >= inventory->n_files || known[m->file])
                                continue;
                        if (!(m->protection & PROT_EXEC) && inventory->files[m->file]->uid == scope->spec->uid)
                                continue;
                        known[m->file] = true;
                        names[(*ret_n)++] = inventory->files[m->file]->name;
                }
        return names;
}

static int mend_files(const struct mending *mending, uint8_t *image, size_t size_bytes) {
        cleanup_free const char **programs = NULL;
        size_t n = 0;

        if (!mending->all_sizes)
                programs = programs_of(mending->scope, &n);
        (void) image_fixup_timerfds(image, size_bytes);
        (void) image_fixup_sizes(image, size_bytes, programs, n);
        return 0;
}

/* Is the name KIND-NUMBER.img? */
static bool has_number(const char *name, const char *kind, int *ret) {
        size_t n = strlen(kind);
        int end = 0;

        return strncmp(name, kind, n) == 0 && sscanf(name + n, "-%d.img%n", ret, &end) == 1 && end > 0 &&
               name[n + (size_t) end] == '\0' && *ret > 0;
}

static bool is_mended(const char *name) {
        int number;

        return strcmp(name, "files.img") == 0 || has_number(name, "core", &number) || has_number(name, "mm", &number);
}

/* The kernel refuses a mapping of more than all memory and swap (heuristic overcommit,
 * proc_sys_vm(5)), unless it is not to be accounted for. */
static int mend_memory(int fd, uint8_t *image, size_t size_bytes, struct rm_error *error) {
        cleanup_free uint8_t *changed = xcalloc(1, image_memory_bytes(size_bytes));
        int r = image_identity_check_memory(image, size_bytes, error);
        struct sysinfo info;
        size_t n;

        if (r < 0)
                return r;
        if (sysinfo(&info) < 0)
                return -errno;
        n = image_memory_unreserve(image, size_bytes, (info.totalram + info.totalswap) * info.mem_unit, changed);
        return n == size_bytes && memcmp(changed, image, n) == 0 ? 0 : rewrite(fd, changed, n);
}

static int mend_image(const struct mending *mending, const char *name, int fd, uint8_t *image, size_t size_bytes,
                      struct rm_error *error) {
        int number;

        if (has_number(name, "core", &number))
                return mend_core(mending, fd, image, size_bytes, (pid_t) number, error);
        return has_number(name, "mm", &number) ? mend_memory(fd, image, size_bytes, error) : mend_files(mending, image, size_bytes);
}

static int mend_file(const struct mending *mending, int images_fd, const char *name, struct rm_error *error) {
        cleanup_close int fd = openat(images_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        struct stat st;
        void *map;
        int r;

        if (fd < 0 || fstat(fd, &st) < 0)
                return error_sys(error, -errno, "image %s", name);
        if (!S_ISREG(st.st_mode) || st.st_size <= 0)
                return error_set(error, -EBADMSG, "image %s is empty", name);
        map = mmap(NULL, (size_t) st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
                return error_sys(error, -errno, "image %s", name);
        r = mend_image(mending, name, fd, map, (size_t) st.st_size, error);
        (void) munmap(map, (size_t) st.st_size);
        return r < 0 && !*error->text ? error_sys(error, r, "image %s", name) : r;
}

int image_fixup(int images_fd, bool all_sizes, const struct image_identity_scope *scope, image_fixup_again_fn again, void *arg,
                struct rm_error *error) {
        const struct mending mending = { scope, again, arg, all_sizes };
        cleanup_dir DIR *dir = opendir_at(images_fd, ".");
        const char *name;
        int r = 0;

        if (!dir)
                return error_sys(error, -errno, "cannot look through CRIU's images");
        while (r == 0 && (name = next_name(dir)))
                if (is_mended(name))
                        r = mend_file(&mending, images_fd, name, error);
        return r;
}
