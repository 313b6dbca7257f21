#include "daemon/capsule/init/memory/fill.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/error.h"
#include "common/log.h"
#include "common/openat.h"
#include "common/text.h"
#include "common/util.h"
#include "daemon/capsule/init/base/loop.h"
#include "daemon/capsule/init/core.h"
#include "daemon/capsule/init/criu/criu.h"
#include "daemon/capsule/init/memory/uffd_handler.h"
#include "daemon/pages/later.h"
#include "daemon/pages/pageset.h"
#include "daemon/pages/passing.h"

enum {
        PARTS_MAX = 4096, /* as many as the uffd handler serves */
        RESTARTS_MAX = 3,
        SPARE_FDS = 256,         /* for all that PID 1 has open beside the parts */
        RECEIVE_MSEC = 5000,        /* for a message that was sent before CRIU was done */
        REPORT_USEC = 1000000,     /* between two reports to rmd */
        STALLED_USEC = 60000000, /* a busy node gives some pages in this time; the group could never leave it */
        BLOCK_BYTES = 512,       /* of st_blocks */
};

#define PAGES_DIR "pages"
#define LATER_DIR "later"
#define SOCKET_PATH CRIU_WORK_DIR UFFD_HANDLER_SOCKET

/* The memory that PID 1 shares with the uffd handler. */
struct shared {
        atomic_uint in_hand;
        struct serve_left left; /* to come from the source of the move */
};

struct held {
        int key; /* what the uffd handler calls it */
        int uffd;
        int store;  /* -1: not heard of yet */
        int parent; /* key of the one whose pages are being copied into its store; -1: none are */
};

struct fill {
        struct core *core;
        struct criu *criu;
        bool on;           /* from fill_start() to fill_end(), or until nothing is missing */
        bool restored;     /* the uffd handler has heard the last of CRIU */
        bool criu_ended;    /* CRIU has ended before it was done; `failure` says no more than that */
        pid_t pid;         /* of the uffd handler; 0: none */
        struct source ear; /* fd -1: none */
        struct shared *shared;
        bool broken; /* the payload was killed as the source of its move is lost */
        uint64_t max_bytes;
        struct held *held; /* duplicates */
        size_t n_held;
        unsigned restarts;
        uint64_t report_usec; /* UINT64_MAX: not filling */
        uint64_t last_bytes;
        uint64_t last_progress_usec;
        char failure[256]; /* what the last uffd handler said */
        char killed[320];
};

struct fill *fill_create(struct core *core, struct criu *criu) {
        struct fill *fill = xcalloc(1, sizeof(*fill));

        fill->core = core;
        fill->criu = criu;
        fill->ear.fd = -1;
        fill->report_usec = UINT64_MAX;
        return fill;
}

/* ---- what is held ---- */

static void drop(struct held *held) {
        cleanup_close_fd(&held->uffd);
        cleanup_close_fd(&held->store);
}

static struct held *find_held(const struct fill *fill, int key) {
        for (size_t i = 0; i < fill->n_held; i++)
                if (fill->held[i].key == key)
                        return &fill->held[i];
        return NULL;
}

static void hold(struct fill *fill, int key, int uffd, int parent) {
        fill->held = xrealloc(fill->held, (fill->n_held + 1) * sizeof(*fill->held));
        fill->held[fill->n_held++] = (struct held) { .key = key, .uffd = uffd, .store = -1, .parent = parent };
}

static void let_go(struct fill *fill, int key) {
        struct held *held = find_held(fill, key);

        if (!held)
                return;
        drop(held);
        *held = fill->held[--fill->n_held];
}

static uint64_t file_bytes(int fd) {
        struct stat st;

        return fd >= 0 && fstat(fd, &st) == 0 ? (uint64_t) st.st_blocks * BLOCK_BYTES : 0;
}

uint64_t fill_bytes(const struct fill *fill) {
        uint64_t bytes = fill->on && fill->shared ? atomic_load(&fill->shared->left.bytes) : 0;

        for (size_t i = 0; i < fill->n_held; i++)
                bytes += file_bytes(fill->held[i].store);
        return bytes;
}

/* ---- what the uffd handler says ---- */

static void stop_hearing(struct fill *fill) {
        if (fill->ear.fd < 0)
                return;
        source_remove(fill->core->epoll_fd, &fill->ear);
        (void) close(take_fd(&fill->ear.fd));
}

static void take_word(struct fill *fill, const struct uffd_handler_word *word, int *fd) {
        struct held *held = find_held(fill, word->key);

        switch (word->say) {
        case UFFD_HANDLER_UFFD:
                hold(fill, word->key, take_fd(fd), word->parent);
                break;
        case UFFD_HANDLER_STORE:
                if (held)
                        held->store = take_fd(fd);
                break;
        case UFFD_HANDLER_COPIED:
                if (held)
                        held->parent = -1;
                break;
        case UFFD_HANDLER_ENDED:
                let_go(fill, word->key);
                break;
        case UFFD_HANDLER_RESTORED:
                fill->restored = true;
                (void) unlink(SOCKET_PATH);
                break;
        case UFFD_HANDLER_FAILED:
        case UFFD_HANDLER_CRIU_ENDED:
                fill->criu_ended = word->say == UFFD_HANDLER_CRIU_ENDED;
                (void) text_format(fill->failure, sizeof(fill->failure), "%.*s", (int) sizeof(word->text) - 1, word->text);
                break;
        default:
                break;
        }
}

/* Takes all that the uffd handler has said. -EAGAIN: it may say more; -EPIPE: it is gone. */
static int receive(struct fill *fill) {
        struct uffd_handler_word word;
        int fd = -1;
        int r = fill->ear.fd < 0 ? -EPIPE : 0;

        while (r == 0) {
                r = passing_receive(fill->ear.fd, &word, sizeof(word), &fd);
                if (r == 0)
                        take_word(fill, &word, &fd);
                cleanup_close_fd(&fd);
        }
        return r;
}

static void on_word(struct source *source, uint32_t events) {
        struct fill *fill = source->data;

        if (receive(fill) != -EAGAIN)
                stop_hearing(fill); /* its end is noticed by fill_reaped() */
}

/* ---- starting it ---- */

static int start_uffd_handler(struct fill *fill, const struct uffd_handler_part *parts, size_t n, int listen_fd, int later_fd,
                              pid_t criu_pid) {
        struct uffd_handler_job job = { .listen_fd = listen_fd,
                                        .criu_pid = criu_pid,
                                        .in_hand = &fill->shared->in_hand,
                                        .left = &fill->shared->left,
                                        .later_fd = later_fd,
                                        .max_bytes = fill->max_bytes,
                                        .parts = parts,
                                        .n_parts = n };
        int ends[2];
        int r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                return -errno;
        job.say_fd = ends[1];
        fill->pid = fork();
        if (fill->pid == 0)
                uffd_handler_run(&job);
        r = fill->pid < 0 ? -errno : set_nonblock(ends[0], true);
        (void) close(ends[1]);
        fill->ear = (struct source) { .fd = ends[0], .fn = on_word, .data = fill };
        if (r == 0)
                r = source_add(fill->core->epoll_fd, &fill->ear, EPOLLIN);
        if (r == 0)
                return 0;
        (void) close(take_fd(&fill->ear.fd));
        if (fill->pid > 0)
                (void) kill(fill->pid, SIGKILL);
        fill->pid = 0;
        return r;
}

/* The name is root's, in a directory where only root has names; the owner's CRIU may connect. */
static int listen_for_criu(const struct core *core) {
        struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = SOCKET_PATH };
        cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        (void) unlink(SOCKET_PATH);
        if (fd < 0 || bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 ||
            lchown(SOCKET_PATH, core->spec->uid, core->spec->gid) < 0 || listen(fd, 1) < 0)
                return -errno;
        return take_fd(&fd);
}

/* Two of each process here and in the uffd handler, as many as they may become by forking. */
static void raise_descriptors(void) {
        const rlim_t requested = 2 * PARTS_MAX + SPARE_FDS;
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= requested)
                return;
        limit.rlim_cur = limit.rlim_max < requested ? limit.rlim_max : requested;
        (void) setrlimit(RLIMIT_NOFILE, &limit);
}

/* ---- the stores that came with the image ---- */

struct stores {
        struct uffd_handler_part *parts;
        size_t n;
        uint64_t bytes;
};

static void close_stores(struct stores *stores) {
        for (size_t i = 0; i < stores->n; i++) {
                cleanup_close_fd(&stores->parts[i].store);
                pageset_destroy(stores->parts[i].later);
        }
        free(stores->parts);
}

static int take_store(int dir_fd, const char *name, struct stores *stores) {
        cleanup_close int fd = -1;
        struct stat st;
        int64_t pid;

        if (parse_i64(name, 1, INT32_MAX, &pid) < 0 || stores->n == PARTS_MAX)
                return -EBADMSG;
        fd = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0 || unlinkat(dir_fd, name, 0) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EBADMSG;
        stores->bytes += (uint64_t) st.st_blocks * BLOCK_BYTES;
        stores->parts[stores->n++] =
                (struct uffd_handler_part) { .pid = (pid_t) pid, .uffd = -1, .store = take_fd(&fd), .parent_uffd = -1 };
        return 0;
}

static size_t count_names(DIR *dir) {
        size_t n = 0;

        while (next_name(dir))
                n++;
        rewinddir(dir);
        return n;
}

static int take_stores(int images_fd, struct stores *stores) {
        cleanup_dir DIR *dir = opendir_at(images_fd, PAGES_DIR);
        const char *name;
        size_t n;
        int r = 0;

        if (!dir)
                return -errno;
        n = count_names(dir);
        raise_descriptors();
        stores->parts = xcalloc(n + 1, sizeof(*stores->parts));
        while (r == 0 && (name = next_name(dir)))
                r = stores->n < n ? take_store(dirfd(dir), name, stores) : -EBADMSG;
        if (r == 0 && unlinkat(images_fd, PAGES_DIR, AT_REMOVEDIR) < 0)
                r = -errno;
        return r;
}

/* Loads which pages of a process are not in its store yet, and come later. */
static int take_later(int dir_fd, struct uffd_handler_part *part, uint64_t *sum_bytes) {
        cleanup_close int fd = -1;
        char name[16];
        int r;

        (void) snprintf(name, sizeof(name), "%d", (int) part->pid);
        fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        r = pageset_load(fd, &part->later);
        *sum_bytes += r == 0 ? pageset_bytes(part->later) : 0;
        return r;
}

/* rm-mover, on the node, passes it on. Returns a connection. */
static int connect_mover(int images_fd) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        cleanup_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

        (void) snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" LATER_SOCKET, images_fd);
        if (fd < 0 || connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                return -errno;
        return take_fd(&fd);
}

/* `*ret_fd` -1: nothing comes later. */
static int take_all_later(int images_fd, struct stores *stores, int *ret_fd) {
        cleanup_close int dir_fd = openat(images_fd, LATER_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        uint64_t sum_bytes = 0;
        int r = 0;

        *ret_fd = -1;
        if (dir_fd < 0)
                return errno == ENOENT ? 0 : -errno;
        for (size_t i = 0; i < stores->n && r == 0; i++)
                r = take_later(dir_fd, &stores->parts[i], &sum_bytes);
        stores->bytes += sum_bytes;
        if (r == 0 && sum_bytes > 0)
                r = *ret_fd = connect_mover(images_fd);
        return r < 0 ? r : 0;
}

int fill_start(struct fill *fill, int images_fd, pid_t criu_pid, struct rm_error *error) {
        cleanup_close int listen_fd = -1;
        cleanup_close int later_fd = -1;
        struct stores stores = { 0 };
        int r = take_stores(images_fd, &stores);

        if (r == 0)
                r = take_all_later(images_fd, &stores, &later_fd);
        if (r < 0)
                error_sys(error, r, "cannot read the memory that came with the image");
        if (r == 0 && !fill->shared) {
                fill->shared = mmap(NULL, sizeof(*fill->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
                if (fill->shared == MAP_FAILED)
                        abort(); /* as where other memory is out */
        }
        if (r == 0) {
                r = listen_fd = listen_for_criu(fill->core);
                atomic_store(&fill->shared->in_hand, 0);
                atomic_store(&fill->shared->left.bytes, 0);
                atomic_store(&fill->shared->left.faults, 0);
                atomic_store(&fill->shared->left.p99_usec, 0);
                fill->broken = false;
                fill->max_bytes = fill_max_bytes(stores.bytes, fill->core->spec->memory_max);
                fill->restarts = 0;
                fill->restored = fill->criu_ended = false;
                fill->failure[0] = fill->killed[0] = '\0';
                if (r >= 0)
                        r = start_uffd_handler(fill, stores.parts, stores.n, listen_fd, later_fd, criu_pid);
                if (r < 0)
                        error_sys(error, r, "cannot start the uffd handler");
        }
        fill->on = r == 0;
        close_stores(&stores);
        return r;
}

/* ---- its end ---- */

static void stop(struct fill *fill) {
        fill->on = false;
        fill->report_usec = UINT64_MAX;
}

/* Drops first what is held here: the last to close a store frees its memory, and the uffd handler
 * may take its time for that. */
void fill_end(struct fill *fill) {
        stop_hearing(fill);
        while (fill->n_held > 0)
                drop(&fill->held[--fill->n_held]);
        if (fill->pid > 0)
                (void) kill(fill->pid, SIGKILL);
        fill->pid = 0;
        if (fill->on)
                (void) unlink(SOCKET_PATH);
        stop(fill);
}

/* The duplicates stay until the payload has ended: without them it would run on zeros in its last
 * moments. */
static void give_up(struct fill *fill, const char *why) {
        struct core *core = fill->core;

        /* The others of its job must not see it die before the job starts again, as rmd has it do
         * then: they would end it. */
        fill->broken = atomic_load(&fill->shared->left.bytes) > 0;
        (void) text_format(fill->killed, sizeof(fill->killed), "its memory could not be completed after its move: %s", why);
        log_error("the payload is killed: %s", fill->killed);
        fill->report_usec = UINT64_MAX;
        core->ops->kill(core, fill->broken);
        core->ops->send_status(core);
}

/* The next uffd handler calls them by the numbers that they have here. */
static void rename_held(struct fill *fill) {
        for (size_t i = 0; i < fill->n_held; i++) {
                const struct held *parent = fill->held[i].parent >= 0 ? find_held(fill, fill->held[i].parent) : NULL;

                fill->held[i].parent = parent ? parent->uffd : -1;
        }
        for (size_t i = 0; i < fill->n_held; i++)
                fill->held[i].key = fill->held[i].uffd;
}

/* Starts another uffd handler, which goes on. Returns why that is not possible, or NULL. */
static const char *resume(struct fill *fill) {
        cleanup_free struct uffd_handler_part *parts = xcalloc(fill->n_held + 1, sizeof(*parts));

        if (atomic_load(&fill->shared->left.bytes) > 0)
                return *fill->failure ? fill->failure : "the uffd handler died before all had come from the source of the move";
        if (atomic_load(&fill->shared->in_hand) != 0)
                return *fill->failure ? fill->failure : "the uffd handler died while it changed what is missing";
        if (fill->restarts++ == RESTARTS_MAX)
                return *fill->failure ? fill->failure : "the uffd handler died again and again";
        for (size_t i = 0; i < fill->n_held; i++) {
                const struct held *held = &fill->held[i], *parent;

                if (held->uffd < 0 || held->store < 0)
                        return "the uffd handler died while it passed descriptors on"; /* or there were too many */
                parent = held->parent >= 0 ? find_held(fill, held->parent) : NULL;
                if (held->parent >= 0 && !parent)
                        return "the uffd handler died while it copied what is missing";
                parts[i] = (struct uffd_handler_part) { .uffd = held->uffd,
                                                        .store = held->store,
                                                        .parent_uffd = parent ? parent->uffd : -1 };
        }
        rename_held(fill);
        log_warn("the uffd handler has ended%s%s; another one goes on", *fill->failure ? ": " : "", fill->failure);
        return start_uffd_handler(fill, parts, fill->n_held, -1, -1, 0) < 0 ? "no other uffd handler can be started" : NULL;
}

bool fill_reaped(struct fill *fill, pid_t pid) {
        const char *why = NULL;

        if (pid == 0 || pid != fill->pid)
                return false;
        fill->pid = 0;
        (void) receive(fill);
        stop_hearing(fill);
        if (!fill->restored) { /* fill_restored() follows */
                if (!fill->criu_ended)
                        criu_cancel(fill->criu);
                return true;
        }
        if (*fill->killed)
                return true;
        if (fill->n_held > 0)
                why = resume(fill);
        if (why)
                give_up(fill, why);
        if (fill->n_held > 0 || fill->report_usec == UINT64_MAX)
                return true;
        stop(fill);
        fill->core->ops->send_status(fill->core);
        return true;
}

/* ---- while it goes on ---- */

/* The uffd handler tells its reason before it ends, so that it is there when CRIU has failed from
 * that end. */
static void await_uffd_handler(struct fill *fill, int code) {
        uint64_t deadline = now_usec() + (code == 0 ? UINT64_C(1000) * RECEIVE_MSEC : 0);

        while (receive(fill) == -EAGAIN && !fill->restored && now_usec() < deadline)
                (void) poll(&(struct pollfd) { .fd = fill->ear.fd, .events = POLLIN }, 1, 100);
        if (receive(fill) != -EAGAIN)
                stop_hearing(fill);
}

static int fail_restore(struct fill *fill, int code, struct rm_error *error) {
        const char *why = *fill->killed ? fill->killed : fill->failure;
        int r = code;

        if (fill->criu_ended && code < 0)
                return code;
        if (*why)
                r = error_set(error, -EIO, "%s", why);
        else if (fill->pid == 0 || fill->ear.fd < 0)
                r = error_set(error, -EIO, "the uffd handler died");
        else if (code == 0)
                r = error_set(error, -ETIMEDOUT, "the uffd handler does not respond");
        fill->killed[0] = '\0'; /* it is the restore that has failed, not the payload */
        return r;
}

int fill_restored(struct fill *fill, int code, struct rm_error *error) {
        if (!fill->on)
                return code;
        await_uffd_handler(fill, code);
        if (!fill->restored || *fill->killed)
                return fail_restore(fill, code, error);
        if (code < 0)
                return code;
        fill->report_usec = fill->last_progress_usec = now_usec();
        fill->last_bytes = UINT64_MAX;
        if (fill->n_held == 0 && fill->pid == 0)
                stop(fill);
        return 0;
}

bool fill_is_on(const struct fill *fill) {
        return fill->on && fill->restored;
}

int fill_refuse(const struct fill *fill, struct rm_error *error) {
        if (!fill_is_on(fill))
                return 0;
        return error_set(error, -EBUSY, "it still receives %" PRIu64 " MiB of its memory", fill_bytes(fill) >> 20);
}

const char *fill_why_killed(const struct fill *fill) {
        return fill->killed;
}

void fill_waits(const struct fill *fill, uint64_t *ret_faults, uint64_t *ret_p99_usec) {
        *ret_faults = fill->shared ? atomic_load(&fill->shared->left.faults) : 0;
        *ret_p99_usec = fill->shared ? atomic_load(&fill->shared->left.p99_usec) : 0;
}

bool fill_is_broken(const struct fill *fill) {
        return fill->broken;
}

uint64_t fill_deadline(const struct fill *fill) {
        return fill->report_usec;
}

void fill_timeout(struct fill *fill) {
        uint64_t now = now_usec();
        uint64_t bytes = fill_bytes(fill);

        if (bytes != fill->last_bytes)
                fill->last_progress_usec = now;
        fill->last_bytes = bytes;
        fill->report_usec = now + REPORT_USEC;
        if (now - fill->last_progress_usec > STALLED_USEC)
                give_up(fill, "no page of it was taken for a minute");
        else
                fill->core->ops->send_status(fill->core);
}
