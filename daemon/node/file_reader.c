#include "daemon/node/file_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include "common/timer.h"
#include "common/util.h"
#include "daemon/node/user_file.h"

#define LATE_USEC 5000000U
#define IDLE_SEC 30 /* a thread without work ends after this: files are looked at every second or so */
#define STACK_BYTES (256U * 1024)

/* The data that the loop and the threads share, under one lock that is never held for long. Freed
 * by the last one that leaves. */
struct shared {
        pthread_mutex_t lock;
        unsigned refs;
        int done_fd; /* eventfd: there is something in `done` */
        bool closed;
        int (*open)(const char *path, uid_t uid, gid_t gid, int *ret_fd, struct stat *ret_stat);
        STAILQ_HEAD(done, job) done;
        LIST_HEAD(workers, worker) workers;
};

/* A question on its way through a thread. The asking may be cancelled meanwhile; the job goes
 * on. */
struct job {
        struct file_asking *asking; /* under the lock; NULL: it is not waited for */
        char *path, *directory;
        uid_t uid;
        gid_t gid;
        size_t max_bytes;
        int inotify_fd; /* its own */
        uint32_t directory_mask, file_mask;
        struct file_answer answer;
        STAILQ_ENTRY(job) entry;
};

/* The thread for one user's files. */
struct worker {
        struct shared *shared;
        uid_t uid;
        pthread_cond_t work;
        STAILQ_HEAD(jobs, job) jobs;
        LIST_ENTRY(worker) entry;
};

struct file_reader {
        struct shared *shared;
        struct event_base *base;
        struct event *done_event;
        uint64_t late_usec;
};

struct file_asking {
        struct file_reader *reader;
        struct job *job; /* under the lock */
        const struct file_asking_ops *ops;
        void *userdata;
        struct event *late;
};

static void job_free(struct job *job) {
        cleanup_close_fd(&job->inotify_fd);
        free(job->answer.data);
        free(job->path);
        free(job->directory);
        free(job);
}

/* With the lock, which is given back. */
static void shared_release(struct shared *shared) {
        bool last = --shared->refs == 0;

        (void) pthread_mutex_unlock(&shared->lock);
        if (!last)
                return;
        while (!STAILQ_EMPTY(&shared->done)) {
                struct job *job = STAILQ_FIRST(&shared->done);

                STAILQ_REMOVE_HEAD(&shared->done, entry);
                job_free(job);
        }
        (void) close(shared->done_fd);
        (void) pthread_mutex_destroy(&shared->lock);
        free(shared);
}

/* ---- in a thread ---- */

static int read_bytes(int fd, size_t max_bytes, char **ret_data, size_t *ret_size_bytes) {
        size_t space = 4096;
        size_t used = 0;
        cleanup_free char *data = xcalloc(1, space);

        for (;;) {
                ssize_t n = read(fd, data + used, space - used);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                used += (size_t) n;
                /* A byte too many is enough for the caller to refuse it. */
                if (n == 0 || used > max_bytes)
                        break;
                if (used == space) {
                        space *= 2;
                        data = xrealloc(data, space);
                }
        }
        *ret_data = take_ptr(data);
        *ret_size_bytes = used;
        return 0;
}

static int watch_path(const struct job *job, const char *path, uint32_t mask) {
        int wd = user_inotify_add(job->inotify_fd, path, mask, job->uid, job->gid);

        return wd >= 0 ? wd : -1;
}

/* Everything that may hang. */
static void scan(struct shared *shared, struct job *job) {
        struct file_answer *answer = &job->answer;
        cleanup_close int fd = -1;

        answer->directory_wd = answer->file_wd = -1;
        answer->error = shared->open(job->path, job->uid, job->gid, &fd, &answer->st);
        if (job->inotify_fd >= 0)
                answer->directory_wd = watch_path(job, job->directory, job->directory_mask);
        if (job->inotify_fd >= 0 && fd >= 0)
                answer->file_wd = watch_path(job, job->path, job->file_mask);
        if (fd < 0 || job->max_bytes == 0)
                return;
        answer->read_error = read_bytes(fd, job->max_bytes, &answer->data, &answer->size_bytes);
        answer->after_error = fstat(fd, &answer->after) < 0 ? -errno : 0;
}

/* The caller holds the lock. */
static void put_done(struct shared *shared, struct job *job) {
        static const uint64_t one = 1;

        STAILQ_INSERT_TAIL(&shared->done, job, entry);
        (void) !write(shared->done_fd, &one, sizeof(one));
}

/* The caller holds the lock. NULL: nothing came for so long that the thread may end. */
static struct job *next_job(struct worker *worker) {
        struct shared *shared = worker->shared;
        struct timespec until;
        struct job *job;
        int r = 0;

        (void) clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += IDLE_SEC;
        while (STAILQ_EMPTY(&worker->jobs) && !shared->closed && r == 0)
                r = pthread_cond_clockwait(&worker->work, &shared->lock, CLOCK_MONOTONIC, &until);
        job = STAILQ_FIRST(&worker->jobs);
        if (job)
                STAILQ_REMOVE_HEAD(&worker->jobs, entry);
        return job;
}

static void worker_free(struct worker *worker) {
        LIST_REMOVE(worker, entry);
        (void) pthread_cond_destroy(&worker->work);
        free(worker);
}

static void *work(void *arg) {
        struct worker *worker = arg;
        struct shared *shared = worker->shared;
        struct job *job;

        (void) pthread_mutex_lock(&shared->lock);
        while ((job = next_job(worker))) {
                bool requested = job->asking && !shared->closed;

                (void) pthread_mutex_unlock(&shared->lock);
                if (requested)
                        scan(shared, job);
                (void) pthread_mutex_lock(&shared->lock);
                put_done(shared, job);
        }
        worker_free(worker);
        shared_release(shared);
        return NULL;
}

/* ---- in the loop ---- */

static int start_thread(struct worker *worker) {
        pthread_attr_t attributes;
        sigset_t all, before;
        pthread_t thread;
        int r;

        /* Signals are the loop's. */
        (void) sigfillset(&all);
        (void) pthread_sigmask(SIG_SETMASK, &all, &before);
        (void) pthread_attr_init(&attributes);
        (void) pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        (void) pthread_attr_setstacksize(&attributes, STACK_BYTES);
        r = pthread_create(&thread, &attributes, work, worker);
        (void) pthread_attr_destroy(&attributes);
        (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
        return -r;
}

/* The caller holds the lock. Returns the user's thread, or a new one; NULL when there can be
 * none. */
static struct worker *find_worker(struct shared *shared, uid_t uid) {
        struct worker *worker;

        LIST_FOREACH (worker, &shared->workers, entry)
                if (worker->uid == uid)
                        return worker;
        worker = xcalloc(1, sizeof(*worker));
        worker->shared = shared;
        worker->uid = uid;
        (void) pthread_cond_init(&worker->work, NULL);
        STAILQ_INIT(&worker->jobs);
        LIST_INSERT_HEAD(&shared->workers, worker, entry);
        shared->refs++;
        if (start_thread(worker) == 0)
                return worker;
        shared->refs--;
        worker_free(worker);
        return NULL;
}

static void on_late(evutil_socket_t fd, short what, void *userdata) {
        struct file_asking *asking = userdata;

        asking->ops->on_late(asking->userdata);
}

static struct job *make_job(const struct file_question *question) {
        struct job *job = xcalloc(1, sizeof(*job));

        job->path = xstrdup(question->path);
        job->directory = xstrdup(question->directory);
        job->uid = question->uid;
        job->gid = question->gid;
        job->max_bytes = question->max_bytes;
        job->inotify_fd = question->inotify_fd >= 0 ? fcntl(question->inotify_fd, F_DUPFD_CLOEXEC, 0) : -1;
        job->directory_mask = question->directory_mask;
        job->file_mask = question->file_mask;
        return job;
}

struct file_asking *file_reader_ask(struct file_reader *reader, const struct file_question *question,
                                    const struct file_asking_ops *ops, void *userdata) {
        struct shared *shared = reader->shared;
        struct file_asking *asking = xcalloc(1, sizeof(*asking));
        struct job *job = make_job(question);
        struct worker *worker;

        asking->reader = reader;
        asking->ops = ops;
        asking->userdata = userdata;
        asking->job = job;
        asking->late = evtimer_new(reader->base, on_late, asking);
        timer_arm(asking->late, reader->late_usec);
        job->asking = asking;
        (void) pthread_mutex_lock(&shared->lock);
        worker = find_worker(shared, question->uid);
        if (worker) {
                STAILQ_INSERT_TAIL(&worker->jobs, job, entry);
                (void) pthread_cond_signal(&worker->work);
        } else {
                job->answer = (struct file_answer) { .error = -EAGAIN, .directory_wd = -1, .file_wd = -1 };
                put_done(shared, job);
        }
        (void) pthread_mutex_unlock(&shared->lock);
        return asking;
}

static void asking_free(struct file_asking *asking) {
        event_free(asking->late);
        free(asking);
}

void file_asking_cancel(struct file_asking *asking) {
        struct shared *shared;

        if (!asking)
                return;
        shared = asking->reader->shared;
        (void) pthread_mutex_lock(&shared->lock);
        asking->job->asking = NULL;
        (void) pthread_mutex_unlock(&shared->lock);
        asking_free(asking);
}

static struct job *take_done(struct shared *shared) {
        struct job *job;

        (void) pthread_mutex_lock(&shared->lock);
        job = STAILQ_FIRST(&shared->done);
        if (job)
                STAILQ_REMOVE_HEAD(&shared->done, entry);
        (void) pthread_mutex_unlock(&shared->lock);
        return job;
}

/* The reader takes one answer at a time, since a callback may cancel other questions, or destroy
 * the reader. */
static void on_done(evutil_socket_t fd, short what, void *userdata) {
        struct file_reader *reader = userdata;
        struct job *job = take_done(reader->shared);
        uint64_t count;

        if (!job) {
                (void) !read(fd, &count, sizeof(count));
                job = take_done(reader->shared); /* that came in between would be told of no more */
        }
        if (!job)
                return;
        event_active(reader->done_event, EV_READ, 0);
        if (job->asking) {
                struct file_asking *asking = job->asking;
                const struct file_asking_ops *ops = asking->ops;
                void *context = asking->userdata;

                asking_free(asking);
                ops->on_answer(context, &job->answer);
        }
        job_free(job);
}

struct file_reader *file_reader_create(const struct file_reader_config *config) {
        struct file_reader *reader = xcalloc(1, sizeof(*reader));
        struct shared *shared = xcalloc(1, sizeof(*shared));

        (void) pthread_mutex_init(&shared->lock, NULL);
        shared->refs = 1;
        shared->done_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        shared->open = config->open ? config->open : user_file_open;
        STAILQ_INIT(&shared->done);
        LIST_INIT(&shared->workers);
        reader->shared = shared;
        reader->base = config->base;
        reader->late_usec = config->late_usec ? config->late_usec : LATE_USEC;
        reader->done_event = event_new(config->base, shared->done_fd, EV_READ | EV_PERSIST, on_done, reader);
        (void) event_add(reader->done_event, NULL);
        return reader;
}

void file_reader_destroy(struct file_reader *reader) {
        struct shared *shared;
        struct worker *worker;

        if (!reader)
                return;
        shared = reader->shared;
        event_free(reader->done_event);
        (void) pthread_mutex_lock(&shared->lock);
        shared->closed = true;
        LIST_FOREACH (worker, &shared->workers, entry)
                (void) pthread_cond_signal(&worker->work);
        shared_release(shared);
        free(reader);
}
