#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/error.h"
#include "common/openat.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/capsule/cgroup.h"
#include "daemon/capsule/private.h"

enum { CREATE_TIMEOUT_USEC = 20000000, ADOPT_RETRY_USEC = 50000, ADOPT_TRIES = 100, REPORT_FD = 3 };

static void set_writable(struct capsule_ctx *ctx, const char *list) {
        cleanup_free char *copy = xstrdup(list ? list : "");
        char *rest = copy;
        char *word;

        while ((word = strsep(&rest, " \t")))
                if (*word) {
                        ctx->writable = xrealloc(ctx->writable, (ctx->n_writable + 1) * sizeof(*ctx->writable));
                        ctx->writable[ctx->n_writable++] = xstrdup(word);
                }
}

int capsule_ctx_create(const struct capsule_config *config, struct capsule_ctx **ret, struct rm_error *error) {
        struct capsule_ctx *ctx = xcalloc(1, sizeof(*ctx));
        int r = mkdir_p(config->runtime_dir, 0700);

        LIST_INIT(&ctx->capsules);
        LIST_INIT(&ctx->reapers);
        ctx->base = config->base;
        ctx->runtime_dir = xstrdup(config->runtime_dir);
        ctx->init_path = xstrdup(config->init_path);
        ctx->criu_path = xstrdup(config->criu_path);
        ctx->kdat_path = xstrdup(config->kdat_path);
        set_writable(ctx, config->writable);
        if (r < 0 || chmod(config->runtime_dir, 0700) < 0)
                r = error_sys(error, r < 0 ? r : -errno, "cannot make %s", config->runtime_dir);
        if (r == 0 && config->cgroup_parent)
                ctx->cgroup_parent = xstrdup(config->cgroup_parent);
        else if (r == 0)
                r = cgroup_find_parent(&ctx->cgroup_parent, error);
        if (r == 0) {
                r = mkdir_p(ctx->cgroup_parent, 0755);
                if (r == 0)
                        r = cgroup_is_v1(ctx->cgroup_parent);
                if (r < 0)
                        error_sys(error, r, "%s cannot hold the capsules' control groups", ctx->cgroup_parent);
        }
        if (r < 0) {
                capsule_ctx_destroy(ctx);
                return r;
        }
        ctx->cgroup_v1 = r == 1;
        controllers_find(&ctx->controllers, ctx->cgroup_parent);
        *ret = ctx;
        return 0;
}

/* ---- creation ---- */

static void finish_creation(struct capsule *capsule) {
        int r;

        if (capsule->report_size == 2 && memcmp(capsule->report_text, "OK", 2) == 0) {
                r = capsule_connect(capsule);
                if (r < 0)
                        capsule_report_ready(capsule, r, "cannot connect to the new capsule");
                return;
        }
        capsule->report_text[capsule->report_size] = '\0';
        capsule_report_ready(capsule, -EIO,
                             capsule->report_size > 0 ? capsule->report_text : "rm-capsule ended without telling why");
}

static void on_report(evutil_socket_t fd, short what, void *arg) {
        struct capsule *capsule = arg;
        size_t space = sizeof(capsule->report_text) - 1 - capsule->report_size;
        ssize_t n = what & EV_TIMEOUT ? 0 : read(fd, capsule->report_text + capsule->report_size, space);

        if (n > 0 && (size_t) n < space) {
                capsule->report_size += (size_t) n;
                return;
        }
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        event_free(capsule->report);
        capsule->report = NULL;
        cleanup_close_fd(&capsule->report_fd);
        if (what & EV_TIMEOUT)
                capsule_report_ready(capsule, -ETIMEDOUT, "rm-capsule takes too long");
        else
                finish_creation(capsule);
}

/* Runs in the grandchild: becomes rm-capsule, the capsule's PID 1. */
static _Noreturn void exec_init(const struct capsule *capsule, int report_fd) {
        sigset_t none;

        for (int signo = 1; signo < NSIG; signo++)
                (void) signal(signo, SIG_DFL);
        sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        if (report_fd == REPORT_FD)
                (void) set_cloexec(report_fd, false);
        else if (dup2(report_fd, REPORT_FD) < 0)
                _exit(127);
        (void) close_range(REPORT_FD + 1, ~0U, 0);
        execl(capsule->ctx->init_path, capsule->ctx->init_path, capsule->dir, (char *) NULL);
        dprintf(REPORT_FD, "cannot run %s: %s", capsule->ctx->init_path, strerror(errno));
        _exit(127);
}

/* Twice forked, so that it is nobody's child to wait for, now and after a restart of ours. */
static int spawn_init(struct capsule *capsule, struct rm_error *error) {
        int fds[2];
        pid_t pid;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return error_sys(error, -errno, "capsule %s: cannot make a pipe", capsule->id);
        pid = fork();
        if (pid == 0) {
                if (fork() == 0)
                        exec_init(capsule, fds[1]);
                _exit(0);
        }
        close(fds[1]);
        capsule->report_fd = fds[0];
        (void) set_nonblock(fds[0], true);
        if (pid < 0)
                return error_sys(error, -errno, "capsule %s: cannot fork", capsule->id);
        (void) waitpid(pid, NULL, 0);
        capsule->report = event_new(capsule->ctx->base, fds[0], EV_READ | EV_PERSIST, on_report, capsule);
        if (!capsule->report)
                return error_set(error, -ENOMEM, "capsule %s: no event", capsule->id);
        timer_arm(capsule->report, CREATE_TIMEOUT_USEC);
        return 0;
}

static int make_groups(struct capsule *capsule, bool limited, struct rm_error *error) {
        int r = cgroup_make(capsule->cgroup_dir, error);

        if (r < 0)
                return r;
        controllers_make(&capsule->ctx->controllers, capsule->id, capsule->cgroup_dir, capsule->limit_dirs);
        r = limited ? capsule_apply_limits(capsule) : 0;
        return r < 0 ? error_sys(error, r, "capsule %s: cannot limit what it uses", capsule->id) : 0;
}

int capsule_create(struct capsule_ctx *ctx, const struct capsule_spec *spec, const struct capsule_callbacks *callbacks,
                   void *userdata, struct capsule **ret, struct rm_error *error) {
        struct capsule *capsule;
        int r = capsule_spec_check(spec, error);

        if (r < 0)
                return r;
        capsule = capsule_new(ctx, spec->id, callbacks, userdata);
        capsule->cgroup_dir = xasprintf("%s/%s", ctx->cgroup_parent, spec->id);
        capsule->spool_dir = xstrdup(spec->spool_dir);
        if (spec->limits.memory_bytes)
                capsule->limits = spec->limits;
        if (mkdir(capsule->dir, 0700) < 0) {
                r = error_sys(error, -errno, "capsule %s: cannot make %s", spec->id, capsule->dir);
                capsule_unlink(capsule);
                return r;
        }
        r = make_groups(capsule, !spec->cut, error);
        if (r == 0)
                r = capsule_spec_write(capsule, spec, error);
        if (r == 0)
                r = spawn_init(capsule, error);
        if (r < 0) {
                capsule_destroy(capsule, false, NULL, NULL);
                return r;
        }
        *ret = capsule;
        return 0;
}

/* ---- adoption ---- */

static bool may_be_starting(const struct capsule *capsule) {
        cleanup_free char *path = xasprintf("%s/init", capsule->cgroup_dir);
        cleanup_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return fd >= 0 && cgroup_is_populated(fd, capsule->ctx->cgroup_v1) == 1;
}

static void on_adopt(evutil_socket_t fd, short what, void *arg) {
        struct capsule *capsule = arg;
        int r = capsule->spool_dir ? capsule_connect(capsule) : -ENOENT;

        /* rmd may have been killed right after it had started it. */
        if (r < 0 && capsule->spool_dir && ++capsule->tries < ADOPT_TRIES && may_be_starting(capsule)) {
                timer_arm(capsule->report, ADOPT_RETRY_USEC);
                return;
        }
        event_free(capsule->report);
        capsule->report = NULL;
        if (r < 0)
                capsule_report_dead(capsule);
}

static void adopt(struct capsule_ctx *ctx, const char *id, const struct capsule_callbacks *callbacks, capsule_adopt_fn choose,
                  void *arg) {
        struct capsule *capsule = capsule_new(ctx, id, callbacks, NULL);

        if (capsule_spec_read(capsule) < 0) {
                capsule->cgroup_dir = xasprintf("%s/%s", ctx->cgroup_parent, id);
                controllers_name(&ctx->controllers, id, capsule->cgroup_dir, capsule->limit_dirs);
        }
        capsule_slow_end(capsule); /* rmd and rm-mover may have been killed while it was slow */
        capsule->userdata = choose(capsule, id, arg);
        capsule->report = event_new(ctx->base, -1, 0, on_adopt, capsule);
        if (capsule->report)
                timer_arm(capsule->report, 0);
}

int capsule_adopt_all(struct capsule_ctx *ctx, const struct capsule_callbacks *callbacks, capsule_adopt_fn choose, void *arg,
                      struct rm_error *error) {
        cleanup_dir DIR *dir = opendir(ctx->runtime_dir);
        const char *name;
        int n = 0;

        if (!dir)
                return error_sys(error, -errno, "cannot read %s", ctx->runtime_dir);
        while ((name = next_name(dir))) {
                if (name[0] == '.' || capsule_find(ctx, name))
                        continue;
                adopt(ctx, name, callbacks, choose, arg);
                n++;
        }
        return n;
}
