#include "daemon/capsule/init/ranks/rank_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/capsule/init/base/loop.h"
#include "daemon/capsule/init/core.h"
#include "daemon/capsule/init/ranks/launched.h"
#include "daemon/capsule/init/ranks/lost_ranks.h"
#include "daemon/capsule/init/ranks/notice.h"

enum {
        AGAIN_USEC = 100000, /* a rank has not said that it knows */
        AGAIN_TIMES = 10,    /* and then not so often */
        LATER_USEC = 1000000,
        SEEK_USEC = 1000000,
};

/* A rank of the order. */
struct watched {
        struct source source; /* fd of its process; -1: it is not watched */
        struct rank_watch *watch;
        size_t at;
};

struct rank_watch {
        struct core *core;
        struct lost_ranks *ranks;
        struct watched *watched; /* n, from rank `first` on */
        size_t n;
        uint32_t first;
        unsigned times; /* that all was told, since it is so much */
        uint64_t deadline;
        uint64_t sought_usec; /* when processes were looked for last */
};

struct rank_watch *rank_watch_create(struct core *core) {
        struct rank_watch *watch = xcalloc(1, sizeof(*watch));

        watch->core = core;
        watch->ranks = lost_ranks_create();
        watch->deadline = UINT64_MAX;
        return watch;
}

uint64_t rank_watch_deadline(const struct rank_watch *watch) {
        return watch->deadline;
}

void rank_watch_resync(const struct rank_watch *watch) {
        Capsule__RanksSaid said;

        if (watch->n == 0)
                return;
        lost_ranks_said(watch->ranks, &said);
        watch->core->ops->send(watch->core, &said.base);
        free(said.lost);
}

/* ---- processes ---- */

static void unwatch(struct watched *watched) {
        if (watched->source.fd < 0)
                return;
        source_remove(watched->watch->core->epoll_fd, &watched->source);
        cleanup_close_fd(&watched->source.fd);
}

static void on_end(struct source *source, uint32_t events) {
        struct watched *watched = source->data;
        struct rank_watch *watch = watched->watch;

        lost_ranks_gone(watch->ranks, watched->at);
        unwatch(watched);
        rank_watch_scan(watch);
}

static void watch_process(struct watched *watched, pid_t pid) {
        struct rank_watch *watch = watched->watch;
        int fd = pidfd_open(pid, 0);

        if (fd < 0 && errno == ESRCH) {
                lost_ranks_gone(watch->ranks, watched->at);
                return;
        }
        if (fd < 0) {
                log_error("process %d of a rank cannot be watched: %s", (int) pid, strerror(errno));
                return;
        }
        watched->source = (struct source) { .fd = fd, .fn = on_end, .data = watched };
        if (source_add(watch->core->epoll_fd, &watched->source, EPOLLIN) < 0) {
                close(fd);
                watched->source.fd = -1;
        }
}

static void watch_one(struct watched *watched) {
        pid_t pid = lost_ranks_pid(watched->watch->ranks, watched->at);

        if (pid == 0)
                unwatch(watched);
        else if (watched->source.fd < 0)
                watch_process(watched, pid);
}

/* The order may be of other ranks than before. */
static void match_order(struct rank_watch *watch) {
        if (watch->n == lost_ranks_count(watch->ranks) && watch->first == lost_ranks_first(watch->ranks))
                return;
        for (size_t i = 0; i < watch->n; i++)
                unwatch(&watch->watched[i]);
        free(watch->watched);
        watch->n = lost_ranks_count(watch->ranks);
        watch->first = lost_ranks_first(watch->ranks);
        watch->watched = xcalloc(watch->n + 1, sizeof(*watch->watched));
        for (size_t i = 0; i < watch->n; i++)
                watch->watched[i] = (struct watched) { .source = { .fd = -1 }, .watch = watch, .at = i };
}

/* ---- what follows ---- */

/* Does the payload run freely: does nothing stop it, and has nothing killed it? */
static bool runs(const struct core *core) {
        return core->ops->runs_freely(core) && !core->ops->is_killed(core);
}

static bool has_to_report(const struct rank_watch *watch) {
        Program__Loss word;
        size_t at = 0;

        return lost_ranks_next(watch->ranks, &at, &word);
}

static void report_ranks(struct rank_watch *watch) {
        Program__Loss word;
        size_t at = 0;

        while (lost_ranks_next(watch->ranks, &at, &word))
                notice_send_loss(&word);
        watch->times += watch->times < AGAIN_TIMES;
}

/* A rank that has ended before it came to MPI_Init has said nothing, and the others wait for it
 * there. */
static void seek(struct rank_watch *watch) {
        cleanup_free pid_t *known = NULL;

        if (!lost_ranks_seek(watch->ranks) || now_usec() - watch->sought_usec < SEEK_USEC)
                return;
        watch->sought_usec = now_usec();
        known = xcalloc(watch->n + 1, sizeof(*known));
        lost_ranks_sought(watch->ranks, launched_scan(known, lost_ranks_pids(watch->ranks, known)) != 0);
}

static void set_deadline(struct rank_watch *watch) {
        bool reports = has_to_report(watch) || lost_ranks_unjudged(watch->ranks);

        watch->deadline = UINT64_MAX;
        if (watch->core->phase == CAPSULE__PHASE__PHASE_EXITED)
                return;
        if (lost_ranks_seek(watch->ranks))
                watch->deadline = now_usec() + SEEK_USEC;
        if (reports)
                watch->deadline = now_usec() + (watch->times < AGAIN_TIMES ? AGAIN_USEC : LATER_USEC);
}

void rank_watch_scan(struct rank_watch *watch) {
        if (runs(watch->core)) {
                for (size_t i = 0; i < watch->n; i++)
                        watch_one(&watch->watched[i]);
                seek(watch);
                if (lost_ranks_unjudged(watch->ranks))
                        watch->core->ops->take_messages(watch->core); /* it may have finished */
                if (lost_ranks_judge(watch->ranks))
                        rank_watch_resync(watch);
                report_ranks(watch);
        }
        set_deadline(watch);
}

void rank_watch_timeout(struct rank_watch *watch) {
        rank_watch_scan(watch);
}

void rank_watch_order(struct rank_watch *watch, const Capsule__RankOrder *order) {
        bool first = watch->n == 0;

        if (!lost_ranks_order(watch->ranks, order))
                return;
        match_order(watch);
        watch->times = 0;
        if (first)
                rank_watch_resync(watch);
        rank_watch_scan(watch);
}

void rank_watch_receive(struct rank_watch *watch, pid_t pid, const Program__Loss *word) {
        bool spoke = lost_ranks_speak(watch->ranks), finished = lost_ranks_finished(watch->ranks);
        Program__Loss answer;

        if (!lost_ranks_receive(watch->ranks, pid, word, &answer))
                return;
        notice_send_loss(&answer);
        watch_one(&watch->watched[word->rank - watch->first]);
        if (lost_ranks_speak(watch->ranks) != spoke || lost_ranks_finished(watch->ranks) != finished)
                rank_watch_resync(watch);
        if (answer.count > 0 && watch->deadline == UINT64_MAX)
                watch->deadline = now_usec(); /* it may not know them */
}

Capsule__RankWatch *rank_watch_saved_state(const struct rank_watch *watch) {
        return lost_ranks_saved_state(watch->ranks);
}

void rank_watch_set_saved_state(struct rank_watch *watch, const Capsule__RankWatch *saved_state) {
        lost_ranks_set_saved_state(watch->ranks, saved_state);
        match_order(watch);
        rank_watch_resync(watch); /* rmd was told of nothing when it came */
}
