#include "daemon/transfer/remover.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/child.h"
#include "common/log.h"
#include "common/util.h"

/* The kernel frees memory at the speed of one processor each, which the groups of this node miss
 * meanwhile. */
#define RUNNING_MAX 2U

struct removal {
        struct remover *remover;
        char *dir;
        int pidfd;
        struct event *exit_event; /* NULL: it waits */
        TAILQ_ENTRY(removal) entry;
};

struct remover {
        struct event_base *base;
        char *program;
        TAILQ_HEAD(, removal) list; /* in the order in which they came */
        uint64_t n_aside;
};

struct remover *remover_create(struct event_base *base, const char *program) {
        struct remover *remover = xcalloc(1, sizeof(*remover));

        *remover = (struct remover) { .base = base, .program = xstrdup(program) };
        TAILQ_INIT(&remover->list);
        return remover;
}

static void removal_free(struct removal *removal) {
        TAILQ_REMOVE(&removal->remover->list, removal, entry);
        if (removal->exit_event) {
                event_free(removal->exit_event);
                (void) close(removal->pidfd);
        }
        free(removal->dir);
        free(removal);
}

void remover_destroy(struct remover *remover) {
        if (!remover)
                return;
        while (!TAILQ_EMPTY(&remover->list))
                removal_free(TAILQ_FIRST(&remover->list));
        free(remover->program);
        free(remover);
}

/* ---- the processes ---- */

static int start(const char *program, const char *mode, const char *dir, int *ret_pidfd) {
        char *const argv[] = { (char *) "rm-mover", (char *) mode, (char *) dir, NULL };
        char *const environment[] = { (char *) "PATH=/usr/sbin:/usr/bin:/sbin:/bin", (char *) "LC_ALL=C.UTF-8", NULL };
        struct child_spec child = { .program = program, .argv = argv, .environment = environment, .streams = { -1, -1, -1 } };
        pid_t pid;

        return child_start(&child, &pid, ret_pidfd);
}

static void start_next(struct remover *remover);

static void on_exit_event(evutil_socket_t fd, short what, void *arg) {
        struct removal *removal = arg;
        struct remover *remover = removal->remover;
        siginfo_t info = { 0 };

        /* The program has written itself why it failed. */
        if (waitid(P_PIDFD, (id_t) removal->pidfd, &info, WEXITED) < 0 || info.si_code != CLD_EXITED || info.si_status != 0)
                log_warn("%s was not removed; what memory it holds is freed when rmd is restarted", removal->dir);
        removal_free(removal);
        start_next(remover);
}

static bool run(struct removal *removal) {
        struct remover *remover = removal->remover;
        int r = start(remover->program, "remove", removal->dir, &removal->pidfd);

        if (r < 0) {
                log_error("cannot start %s to remove %s: %s", remover->program, removal->dir, strerror(-r));
                return false;
        }
        removal->exit_event = event_new(remover->base, removal->pidfd, EV_READ, on_exit_event, removal);
        if (!removal->exit_event || event_add(removal->exit_event, NULL) < 0)
                abort(); /* no memory, as in xcalloc() */
        return true;
}

static void start_next(struct remover *remover) {
        size_t running = 0;

        for (struct removal *l = TAILQ_FIRST(&remover->list), *next; l && running < RUNNING_MAX; l = next) {
                next = TAILQ_NEXT(l, entry);
                if (l->exit_event || run(l))
                        running++;
                else
                        removal_free(l);
        }
}

char *remover_set_aside(struct remover *remover, const char *dir) {
        cleanup_free char *aside = NULL;
        struct stat st;

        /* Names of an earlier remover may still be there. */
        do {
                free(aside);
                aside = xasprintf("%s.removed-%" PRIu64, dir, remover->n_aside++);
        } while (lstat(aside, &st) == 0);
        if (rename(dir, aside) == 0)
                return take_ptr(aside);
        if (errno != ENOENT)
                log_error("cannot rename %s to remove it: %s", dir, strerror(errno));
        return NULL;
}

void remover_add(struct remover *remover, char *aside) {
        struct removal *removal;

        if (!aside)
                return;
        removal = xcalloc(1, sizeof(*removal));
        *removal = (struct removal) { .remover = remover, .dir = aside, .pidfd = -1 };
        TAILQ_INSERT_TAIL(&remover->list, removal, entry);
        start_next(remover);
}

/* ---- a whole file system ---- */

/* Starts a program that unmounts the directory and ends as soon as nothing is mounted there any
 * more; a child of it holds the old mount, and frees its memory. */
void remover_unmount(const char *program, const char *dir) {
        cleanup_close int pidfd = -1;
        siginfo_t info = { 0 };
        int r = start(program, "unmount", dir, &pidfd);

        if (r < 0)
                log_error("cannot start %s to unmount %s: %s", program, dir, strerror(-r));
        while (r == 0 && waitid(P_PIDFD, (id_t) pidfd, &info, WEXITED) < 0 && errno == EINTR)
                ;
        while (umount2(dir, MNT_DETACH) == 0)
                ;
}
