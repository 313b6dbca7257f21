#include "daemon/node/availability_watch.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "common/timer.h"
#include "common/util.h"
#include "daemon/node/file_reader.h"
#include "daemon/node/file_stamp.h"

#define POLL_DEFAULT_USEC 1000000U
#define POLL_MIN_USEC 50000U
/* Changes that follow each other without a pause are read all the same after this time. */
#define BURST_MAX_USEC 300000U
/* Two writes this close to each other may leave the same time stamp (on some file systems whole
 * seconds). */
#define STAMP_USEC 2000000U

#define DIRECTORY_MASK                                                                                                             \
        (IN_ONLYDIR | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF)
#define FILE_MASK (IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE)

enum reported { REPORTED_NOTHING, REPORTED_CONTENT, REPORTED_ERROR };

struct availability_watch {
        char *path;
        char *directory;
        const char *name; /* in path */
        uint64_t poll_usec;
        uid_t uid;
        gid_t gid;
        struct availability_watch_ops ops;
        void *userdata;

        struct file_reader *reader;
        struct file_asking *asking; /* NULL: the file is not being looked at */
        bool asked_whole;           /* `whole` when it was asked for, and nothing seen since that makes the answer doubtful */
        bool unread;                /* something happened meanwhile to what the answer is the first to tell of */
        bool read_requested;           /* a reading came due meanwhile */
        bool late;                  /* there was no answer in time */

        int inotify_fd; /* -1: polling alone */
        int directory_wd;
        int file_wd;
        struct event *inotify_event;
        struct event *poll_event;
        struct event *read_event;

        uint64_t changes_usec; /* of the first change not read yet, 0 = none */
        bool whole;            /* the last change left a file that its writer has done with */
        bool moved_in;         /* the file came to its place by a rename, and has not been judged yet */
        struct file_stamp seen;      /* at the last reading */
        bool stamp_fresh;      /* another write might hide behind the time stamp seen */
        uint64_t doubt_usec;   /* since when what is doubtful has been unchanged, 0 = not known */

        bool judged;
        enum reported reported;
        bool taken; /* content of the file is in force */
        struct file_stamp taken_scan;
        struct availability content; /* last told; empty at first */
        char *error;                 /* last told */
};

/* The result of one reading. Owns `content`. */
struct finding {
        struct file_stamp scan;
        bool missing;
        bool doubtful;
        struct rm_error error;
        struct availability content;
};

/* ---- looking at the file ---- */

static bool stamp_is_fresh(const struct file_stamp *scan) {
        int64_t age_usec = (int64_t) now_real_usec() - ((int64_t) scan->written.tv_sec * 1000000 + scan->written.tv_nsec / 1000);

        return scan->error == 0 && age_usec < (int64_t) STAMP_USEC && age_usec > -(int64_t) STAMP_USEC;
}

/* A watch descriptor of an inode that is watched already comes back as it is. */
static bool take_wd(struct availability_watch *watch, int fresh, int *wd) {
        bool changed = fresh >= 0 && fresh != *wd;

        if (*wd >= 0 && fresh != *wd)
                (void) inotify_rm_watch(watch->inotify_fd, *wd);
        *wd = fresh;
        return changed;
}

/* True: something new is watched, so what happened to it before was not seen. */
static bool take_watches(struct availability_watch *watch, const struct file_answer *answer) {
        bool changed;

        if (watch->inotify_fd < 0)
                return false;
        changed = take_wd(watch, answer->directory_wd, &watch->directory_wd);
        /* The directory tells of a file's coming. Anything but a regular file is not worth being
         * woken for. */
        if (answer->error == 0)
                changed |= take_wd(watch, answer->file_wd, &watch->file_wd);
        return changed;
}

/* Opening, rather than stat(), makes network file systems ask the server. */
static void ask(struct availability_watch *watch, size_t max_bytes, const struct file_asking_ops *asking_ops) {
        const struct file_question question = {
                .path = watch->path,
                .uid = watch->uid,
                .gid = watch->gid,
                .max_bytes = max_bytes,
                .inotify_fd = watch->inotify_fd,
                .directory = watch->directory,
                .directory_mask = DIRECTORY_MASK,
                .file_mask = FILE_MASK,
        };

        watch->unread = watch->read_requested = watch->late = false;
        watch->asked_whole = watch->whole;
        watch->asking = file_reader_ask(watch->reader, &question, asking_ops, watch);
}

/* ---- reading and judging ---- */

/* The file is empty, and not on purpose. */
static bool cut_to_nothing(const struct availability_watch *watch, const struct finding *finding) {
        if (!finding->content.blank || !watch->taken)
                return false;
        if (watch->reported == REPORTED_CONTENT && watch->content.n_entries == 0)
                return false; /* nothing is lost */
        if (watch->directory_wd >= 0)
                return !watch->moved_in;
        /* Polling does not see how it came to its place, only that it is another file. */
        return !watch->taken_scan.ino || file_stamp_same_file(&watch->taken_scan, &finding->scan);
}

static void judge_bytes(struct availability_watch *watch, const struct file_answer *answer, struct finding *finding) {
        struct file_stamp after;

        if (answer->read_error < 0) {
                (void) error_sys(&finding->error, answer->read_error, "%s: cannot be read", watch->path);
                return;
        }
        if (availability_parse(watch->path, answer->data, answer->size_bytes, watch->ops.find, watch->userdata, &finding->content,
                               &finding->error) < 0)
                return;
        after = file_stamp_of(answer->after_error, &answer->after);
        finding->doubtful = finding->content.open_end || finding->content.blank || !file_stamp_equal(&after, &finding->scan);
        if (cut_to_nothing(watch, finding))
                (void) error_set(&finding->error, -EINVAL,
                                 "%s:1: the file is empty, as if being written; a comment line alone lifts all restrictions",
                                 watch->path);
}

static void judge_unopened(struct availability_watch *watch, struct finding *finding) {
        int error = finding->scan.error;

        if (error == -ENOENT || error == -ENOTDIR) {
                finding->missing = true;
                if (watch->taken)
                        (void) error_set(&finding->error, -ENOENT,
                                         "%s: the file is missing; put it back (a comment line alone lifts all restrictions)",
                                         watch->path);
        } else if (error == -EISDIR || error == -ENOTSUP)
                (void) error_set(&finding->error, error, "%s: not a regular file", watch->path);
        else
                (void) error_sys(&finding->error, error, "%s: cannot be opened", watch->path);
}

static void judge(struct availability_watch *watch, const struct file_answer *answer, struct finding *ret_finding) {
        memset(ret_finding, 0, sizeof(*ret_finding));
        ret_finding->scan = file_stamp_of(answer->error, &answer->st);
        if (answer->error == 0)
                judge_bytes(watch, answer, ret_finding);
        else
                judge_unopened(watch, ret_finding);
        if (ret_finding->missing || ret_finding->error.code)
                ret_finding->doubtful = true;
}

/* ---- telling; each may end with the watch destroyed, so it is the last thing done ---- */

static void report_judged(struct availability_watch *watch) {
        if (watch->judged)
                return;
        watch->judged = true;
        if (watch->ops.on_judged)
                watch->ops.on_judged(watch->userdata);
}

static void report_content(struct availability_watch *watch, struct finding *finding) {
        bool news = watch->reported != REPORTED_CONTENT || !availability_equal(&watch->content, &finding->content);

        watch->taken = !finding->missing;
        watch->taken_scan = finding->scan;
        availability_finish(&watch->content);
        watch->content = finding->content;
        watch->reported = REPORTED_CONTENT;
        if (news)
                watch->ops.on_content(watch->userdata, &watch->content);
}

static void report_error(struct availability_watch *watch, struct finding *finding) {
        bool news = watch->reported != REPORTED_ERROR || strcmp(watch->error, finding->error.text) != 0;

        availability_finish(&finding->content);
        watch->reported = REPORTED_ERROR;
        if (finding->missing)
                watch->taken_scan = (struct file_stamp) { 0 }; /* its inode number may come back as another file's */
        if (!news)
                return;
        free(watch->error);
        watch->error = xstrdup(finding->error.text);
        watch->ops.on_error(watch->userdata, watch->error);
}

static void report(struct availability_watch *watch, struct finding *finding) {
        if (!evtimer_pending(watch->read_event, NULL)) /* else it is of what has come since */
                watch->moved_in = false;
        report_judged(watch);
        if (finding->error.code)
                report_error(watch, finding);
        else if (!finding->missing || watch->reported == REPORTED_ERROR)
                /* A bad file that never came into force and went away leaves no restriction and no
                 * error. */
                report_content(watch, finding);
}

/* ---- events ---- */

static void read_in(struct availability_watch *watch, uint64_t usec) {
        timer_arm(watch->read_event, usec);
}

static void change_seen(struct availability_watch *watch) {
        uint64_t now = now_usec();

        watch->doubt_usec = 0;
        if (watch->changes_usec == 0)
                watch->changes_usec = now;
        else if (watch->whole && now - watch->changes_usec > BURST_MAX_USEC)
                return; /* the timer stands */
        read_in(watch, AVAILABILITY_QUICK_USEC);
}

/* Doubtful content needs two readings that saw the same, with nothing between them. */
static bool stable(struct availability_watch *watch, const struct finding *finding) {
        uint64_t now = now_usec();

        if (watch->doubt_usec == 0 || !file_stamp_equal(&finding->scan, &watch->seen))
                watch->doubt_usec = now;
        return now - watch->doubt_usec >= AVAILABILITY_SETTLE_USEC;
}

/* `name` is valid when the event has one. */
static bool event_matters(struct availability_watch *watch, const struct inotify_event *event, const char *name) {
        if (event->mask & IN_Q_OVERFLOW) {
                watch->whole = false;
                return true;
        }
        if (event->mask & IN_IGNORED)
                return false; /* the end of a watch */
        if (event->wd == watch->file_wd && (event->mask & FILE_MASK)) {
                if (event->mask & IN_CLOSE_WRITE)
                        watch->whole = true;
                else if (event->mask & IN_MODIFY)
                        watch->whole = false;
                return true;
        }
        if (event->wd != watch->directory_wd) {
                watch->unread |= watch->asking != NULL; /* of a watch that the answer will tell of */
                return false;
        }
        if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF)) {
                watch->whole = false;
                return true;
        }
        if (event->len == 0 || strcmp(name, watch->name) != 0)
                return false;
        /* IN_ATTRIB: a file that may not be read cannot be watched itself. */
        if (!(event->mask & IN_ATTRIB))
                watch->whole = watch->moved_in = (event->mask & IN_MOVED_TO) != 0;
        return true;
}

static void read_events(struct availability_watch *watch) {
        char buf[4096];
        bool matters = false;

        for (;;) {
                ssize_t n = watch->inotify_fd >= 0 ? read(watch->inotify_fd, buf, sizeof(buf)) : -1;

                if (n <= 0)
                        break;
                for (ssize_t at = 0; at < n;) {
                        struct inotify_event event;

                        memcpy(&event, buf + at, sizeof(event));
                        matters |= event_matters(watch, &event, buf + at + sizeof(event));
                        watch->asked_whole = watch->asked_whole && watch->whole && !watch->unread;
                        at += (ssize_t) (sizeof(event) + event.len);
                }
        }
        if (matters)
                change_seen(watch);
}

static void on_inotify(evutil_socket_t fd, short what, void *userdata) {
        read_events(userdata);
}

/* Changes that were seen while the file was being looked at are handled now. */
static void catch_up(struct availability_watch *watch) {
        if (watch->unread) {
                watch->whole = false;
                change_seen(watch);
        } else if (watch->read_requested) {
                read_in(watch, AVAILABILITY_QUICK_USEC);
        }
}

static void on_content_read(void *userdata, struct file_answer *answer) {
        struct availability_watch *watch = userdata;
        struct finding finding;
        bool ready;

        read_events(watch); /* that came before the answer, and may be behind it in the loop */
        watch->asking = NULL;
        (void) take_watches(watch, answer);
        judge(watch, answer, &finding);
        ready = (watch->asked_whole && !finding.doubtful) || stable(watch, &finding);
        watch->seen = finding.scan;
        watch->stamp_fresh = stamp_is_fresh(&finding.scan);
        if (!ready) {
                uint64_t since_usec = now_usec() - watch->doubt_usec;

                availability_finish(&finding.content);
                if (!evtimer_pending(watch->read_event, NULL)) /* for a change that came meanwhile */
                        read_in(watch, AVAILABILITY_SETTLE_USEC - (since_usec < AVAILABILITY_SETTLE_USEC ? since_usec : 0));
                catch_up(watch);
                return;
        }
        if (!evtimer_pending(watch->read_event, NULL))
                watch->whole = true;
        catch_up(watch);
        report(watch, &finding);
}

static void on_scanned(void *userdata, struct file_answer *answer) {
        struct availability_watch *watch = userdata;
        struct file_stamp scan = file_stamp_of(answer->error, &answer->st);
        bool changed = !file_stamp_equal(&scan, &watch->seen);

        watch->asking = NULL;
        watch->read_requested |= watch->late; /* an error was told that is over */
        changed |= take_watches(watch, answer);
        if (changed)
                watch->whole = false;
        if (watch->unread || watch->read_requested)
                catch_up(watch);
        else if (!evtimer_pending(watch->read_event, NULL) && (changed || watch->stamp_fresh))
                change_seen(watch);
}

/* The file system does not answer. It may still; until then it is not asked again. */
static void on_late(void *userdata) {
        struct availability_watch *watch = userdata;
        struct finding finding = { 0 };

        watch->late = true;
        (void) error_set(&finding.error, -ETIMEDOUT, "%s: its file system does not respond", watch->path);
        report_judged(watch);
        report_error(watch, &finding);
}

static void on_read(evutil_socket_t fd, short what, void *userdata) {
        static const struct file_asking_ops asking_ops = { on_content_read, on_late };
        struct availability_watch *watch = userdata;

        if (watch->asking) {
                watch->read_requested = true;
                return;
        }
        watch->changes_usec = 0;
        ask(watch, AVAILABILITY_MAX_BYTES, &asking_ops);
}

static void on_poll(evutil_socket_t fd, short what, void *userdata) {
        static const struct file_asking_ops asking_ops = { on_scanned, on_late };
        struct availability_watch *watch = userdata;

        if (!watch->asking)
                ask(watch, 0, &asking_ops);
}

/* ---- create and destroy ---- */

static int check_config(const struct availability_watch_config *config, struct rm_error *err) {
        size_t bytes = strlen(config->path);

        if (config->path[0] != '/' || config->path[bytes - 1] == '/' || bytes >= PATH_MAX)
                return error_set(err, -EINVAL, "availability: '%.200s' is not the absolute path of a file", config->path);
        return 0;
}

static void set_paths(struct availability_watch *watch, const char *path) {
        size_t directory_bytes;

        watch->path = xstrdup(path);
        watch->name = strrchr(watch->path, '/') + 1;
        directory_bytes = (size_t) (watch->name - watch->path);
        watch->directory = xstrdup(path);
        /* The directory of "/name" is "/". */
        watch->directory[directory_bytes > 1 ? directory_bytes - 1 : 1] = 0;
}

static int make_events(struct availability_watch *watch, struct event_base *base) {
        watch->read_event = evtimer_new(base, on_read, watch);
        watch->poll_event = event_new(base, -1, EV_PERSIST, on_poll, watch);
        if (!watch->read_event || !watch->poll_event)
                return -ENOMEM;
        timer_arm(watch->poll_event, watch->poll_usec);
        /* A user may have many files, and the kernel gives root few of these, which capsules need
         * as well: his are only polled. */
        if (watch->uid != USER_NONE)
                return 0;
        watch->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        if (watch->inotify_fd < 0)
                return 0;
        watch->inotify_event = event_new(base, watch->inotify_fd, EV_READ | EV_PERSIST, on_inotify, watch);
        return watch->inotify_event && event_add(watch->inotify_event, NULL) == 0 ? 0 : -ENOMEM;
}

int availability_watch_create(struct event_base *base, const struct availability_watch_config *config,
                              const struct availability_watch_ops *ops, void *userdata, struct availability_watch **ret_watch,
                              struct rm_error *err) {
        struct availability_watch *watch;
        int r = check_config(config, err);

        if (r < 0)
                return r;
        watch = xcalloc(1, sizeof(*watch));
        set_paths(watch, config->path);
        watch->poll_usec = config->poll_usec ? config->poll_usec : POLL_DEFAULT_USEC;
        if (watch->poll_usec < POLL_MIN_USEC)
                watch->poll_usec = POLL_MIN_USEC;
        watch->uid = config->uid;
        watch->gid = config->gid;
        watch->ops = *ops;
        watch->userdata = userdata;
        watch->reader = config->reader;
        watch->inotify_fd = watch->directory_wd = watch->file_wd = -1;
        watch->whole = true;
        watch->taken = config->was_taken;
        r = make_events(watch, base);
        if (r < 0) {
                availability_watch_destroy(watch);
                return error_sys(err, r, "availability: cannot watch %s", config->path);
        }
        read_in(watch, 0);
        *ret_watch = watch;
        return 0;
}

void availability_watch_recheck(struct availability_watch *watch) {
        /* A reading that is to come anyway knows the new answers. */
        if (!evtimer_pending(watch->read_event, NULL))
                read_in(watch, AVAILABILITY_QUICK_USEC);
}

void availability_watch_destroy(struct availability_watch *watch) {
        if (!watch)
                return;
        file_asking_cancel(watch->asking);
        if (watch->inotify_event)
                event_free(watch->inotify_event);
        if (watch->poll_event)
                event_free(watch->poll_event);
        if (watch->read_event)
                event_free(watch->read_event);
        cleanup_close_fd(&watch->inotify_fd);
        availability_finish(&watch->content);
        free(watch->error);
        free(watch->directory);
        free(watch->path);
        free(watch);
}
