#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/frame.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/capsule/cgroup.h"
#include "daemon/capsule/private.h"
#include "daemon/capsule/slow.h"

enum {
        SCAN_USEC = 5000,
        KILL_AFTER_USEC = 200000, /* PID 1 gets this long to remove the link and end by itself */
        GIVE_UP_USEC = 30000000,
};

/* The work that is left to do for a destroyed capsule. */
struct reaper {
        LIST_ENTRY(reaper) entry;
        struct capsule_ctx *ctx;
        struct event *timer;
        char *id;
        char *dir;
        char *cgroup_dir;
        char *limit_dirs[CONTROLLER_COUNT];
        char *spool_dir; /* NULL: keep it */
        uint64_t started_usec;
        bool asked;    /* PID 1 was told to end */
        int report_fd; /* of rm-capsule that starts, or -1 */
        capsule_done_fn done;
        void *arg;
};

static void reaper_free(struct reaper *reaper) {
        LIST_REMOVE(reaper, entry);
        if (reaper->timer)
                event_free(reaper->timer);
        cleanup_close_fd(&reaper->report_fd);
        free(reaper->id);
        free(reaper->dir);
        free(reaper->cgroup_dir);
        free(reaper->spool_dir);
        for (enum controller i = 0; i < CONTROLLER_COUNT; i++)
                free(reaper->limit_dirs[i]);
        free(reaper);
}

static void reaper_finish(struct reaper *reaper, int error, const char *text) {
        capsule_done_fn done = reaper->done;
        void *arg = reaper->arg;

        reaper_free(reaper);
        if (done)
                done(NULL, error, text, arg);
}

static int open_leaf(const struct reaper *reaper, const char *leaf) {
        cleanup_free char *path = xasprintf("%s/%s", reaper->cgroup_dir, leaf);

        return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool populated(const struct reaper *reaper, const char *leaf) {
        cleanup_close int fd = open_leaf(reaper, leaf);

        return fd >= 0 && cgroup_is_populated(fd, reaper->ctx->cgroup_v1) == 1;
}

/* PID 1 first: the kernel then kills the rest of the pid namespace; but v1 does not let the frozen
 * die. */
static void kill_all(const struct reaper *reaper) {
        static const char *const leaves[] = { "init", "payload" };

        for (size_t i = 0; i < ARRAY_SIZE(leaves); i++) {
                cleanup_close int fd = open_leaf(reaper, leaves[i]);

                if (fd >= 0)
                        (void) cgroup_kill(fd, reaper->ctx->cgroup_v1);
        }
}

/* rm-capsule has neither told that it is ready nor ended: it may not have come into its group yet,
 * and make files. */
static bool is_starting(struct reaper *reaper) {
        char text[256];
        ssize_t n = 0;

        if (reaper->report_fd < 0)
                return false;
        do
                n = read(reaper->report_fd, text, sizeof(text));
        while (n > 0 || (n < 0 && errno == EINTR));
        if (n < 0)
                return true;
        cleanup_close_fd(&reaper->report_fd);
        return false;
}

static int remove_all(const struct reaper *reaper) {
        int r = controllers_remove(reaper->limit_dirs, reaper->cgroup_dir);

        slow_group_remove(reaper->ctx, reaper->id, reaper->cgroup_dir);
        if (r == 0)
                r = cgroup_remove(reaper->cgroup_dir);
        if (r == 0)
                r = remove_tree(reaper->dir);
        if (r == 0 && reaper->spool_dir)
                r = remove_tree(reaper->spool_dir);
        return r;
}

static void on_scan(evutil_socket_t fd, short what, void *arg) {
        struct reaper *reaper = arg;
        uint64_t waited = now_usec() - reaper->started_usec;
        int r = -EBUSY;

        /* The processes are killed each time: rm-capsule, started just before, may come into its
         * group only now. */
        if (!reaper->asked || waited > KILL_AFTER_USEC)
                kill_all(reaper);
        if (!is_starting(reaper) && !populated(reaper, "init") && !populated(reaper, "payload"))
                r = remove_all(reaper);
        if (r == -EBUSY && waited < GIVE_UP_USEC) {
                timer_arm(reaper->timer, SCAN_USEC);
                return;
        }
        if (r < 0)
                log_error("capsule %s: not completely removed: %s", reaper->id, strerror(-r));
        reaper_finish(reaper, r, r < 0 ? strerror(-r) : "");
}

/* Past the connection's buffers: it is closed right after. */
static bool ask_to_quit(struct capsule *capsule) {
        Capsule__Request request = CAPSULE__REQUEST__INIT;
        Capsule__Empty empty = CAPSULE__EMPTY__INIT;
        cleanup_free uint8_t *frame = NULL;
        size_t size;

        if (!capsule->connection)
                return false;
        request.op_case = CAPSULE__REQUEST__OP_QUIT;
        request.quit = &empty;
        frame = frame_pack(FRAME_MAGIC_CAPSULE, &request.base, &size);
        return send(bufferevent_getfd(capsule->connection), frame, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t) size;
}

void capsule_destroy(struct capsule *capsule, bool spool, capsule_done_fn done, void *arg) {
        struct reaper *reaper = xcalloc(1, sizeof(*reaper));

        reaper->ctx = capsule->ctx;
        reaper->id = xstrdup(capsule->id);
        reaper->dir = xstrdup(capsule->dir);
        reaper->cgroup_dir = xstrdup(capsule->cgroup_dir);
        for (enum controller i = 0; i < CONTROLLER_COUNT; i++)
                reaper->limit_dirs[i] = xstrdup(capsule->limit_dirs[i]);
        reaper->spool_dir = spool ? xstrdup(capsule->spool_dir) : NULL;
        reaper->started_usec = now_usec();
        reaper->asked = ask_to_quit(capsule);
        reaper->report_fd = capsule->report_fd;
        capsule->report_fd = -1;
        reaper->done = done;
        reaper->arg = arg;
        LIST_INSERT_HEAD(&capsule->ctx->reapers, reaper, entry);
        reaper->timer = event_new(capsule->ctx->base, -1, 0, on_scan, reaper);
        if (reaper->timer)
                timer_arm(reaper->timer, 0);
        capsule_hold(capsule);
        capsule_unlink(capsule);
        capsule_fail_pendings(capsule, -ECANCELED, "the capsule is being destroyed");
        (void) capsule_release(capsule);
}

bool capsule_is_going(const struct capsule_ctx *ctx, const char *id) {
        const struct reaper *reaper;

        LIST_FOREACH (reaper, &ctx->reapers, entry)
                if (strcmp(reaper->id, id) == 0)
                        return true;
        return false;
}

bool capsule_any_is_going(const struct capsule_ctx *ctx, const char *prefix) {
        const struct reaper *reaper;

        LIST_FOREACH (reaper, &ctx->reapers, entry)
                if (strncmp(reaper->id, prefix, strlen(prefix)) == 0)
                        return true;
        return false;
}

void capsule_ctx_destroy(struct capsule_ctx *ctx) {
        struct capsule *capsule;
        struct reaper *reaper;

        if (!ctx)
                return;
        while ((capsule = LIST_FIRST(&ctx->capsules))) {
                capsule_hold(capsule);
                capsule_unlink(capsule);
                capsule_fail_pendings(capsule, -ECANCELED, "rmd ends");
                (void) capsule_release(capsule);
        }
        while ((reaper = LIST_FIRST(&ctx->reapers)))
                reaper_free(reaper);
        free(ctx->runtime_dir);
        free(ctx->cgroup_parent);
        free(ctx->init_path);
        controllers_finish(&ctx->controllers);
        free(ctx->criu_path);
        free(ctx->kdat_path);
        for (size_t i = 0; i < ctx->n_writable; i++)
                free(ctx->writable[i]);
        free(ctx->writable);
        free(ctx);
}
