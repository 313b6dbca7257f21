#include "daemon/job/file_writer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#include "common/util.h"

struct item {
        char *path;
        uint8_t *data; /* NULL: only the name is forced to the disk */
        size_t size_bytes;
        file_written_fn done;
        void *userdata;
        int code;
        STAILQ_ENTRY(item) entry;
};

STAILQ_HEAD(items, item);

struct file_writer {
        struct event *event;
        int event_fd;
        pthread_t thread;
        pthread_mutex_t mutex; /* for what follows */
        pthread_cond_t more;
        struct items waiting;
        struct items written;
        bool ending;
};

static int write_file(const struct item *item) {
        int r = item->data ? write_file_atomic(item->path, item->data, item->size_bytes, 0600, true) : 0;

        return r < 0 ? r : sync_name(item->path);
}

static void report(const struct file_writer *writer) {
        const uint64_t one = 1;

        (void) write_all(writer->event_fd, &one, sizeof(one));
}

static void *run(void *arg) {
        struct file_writer *writer = arg;

        (void) pthread_mutex_lock(&writer->mutex);
        while (!writer->ending) {
                struct item *item = STAILQ_FIRST(&writer->waiting);

                if (!item) {
                        (void) pthread_cond_wait(&writer->more, &writer->mutex);
                        continue;
                }
                STAILQ_REMOVE_HEAD(&writer->waiting, entry);
                (void) pthread_mutex_unlock(&writer->mutex);
                item->code = write_file(item);
                (void) pthread_mutex_lock(&writer->mutex);
                STAILQ_INSERT_TAIL(&writer->written, item, entry);
                report(writer);
        }
        (void) pthread_mutex_unlock(&writer->mutex);
        return NULL;
}

static void finish_all(struct items *items, int code) {
        struct item *item;

        while ((item = STAILQ_FIRST(items))) {
                STAILQ_REMOVE_HEAD(items, entry);
                item->done(item->userdata, code < 0 ? code : item->code);
                free(item->path);
                free(item->data);
                free(item);
        }
}

static void on_written(evutil_socket_t fd, short what, void *arg) {
        struct file_writer *writer = arg;
        struct items written = STAILQ_HEAD_INITIALIZER(written);
        uint64_t count;

        (void) read_all(fd, &count, sizeof(count));
        (void) pthread_mutex_lock(&writer->mutex);
        STAILQ_CONCAT(&written, &writer->written);
        (void) pthread_mutex_unlock(&writer->mutex);
        finish_all(&written, 0);
}

/* The signals are the loop's. */
static int start_thread(struct file_writer *writer) {
        sigset_t all, before;
        int r;

        (void) sigfillset(&all);
        (void) pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&writer->thread, NULL, run, writer);
        (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
        return -r;
}

static void writer_free(struct file_writer *writer) {
        if (writer->event)
                event_free(writer->event);
        cleanup_close_fd(&writer->event_fd);
        (void) pthread_cond_destroy(&writer->more);
        (void) pthread_mutex_destroy(&writer->mutex);
        free(writer);
}

int file_writer_create(struct event_base *base, struct file_writer **ret) {
        struct file_writer *writer = xcalloc(1, sizeof(*writer));
        int r = 0;

        STAILQ_INIT(&writer->waiting);
        STAILQ_INIT(&writer->written);
        (void) pthread_mutex_init(&writer->mutex, NULL);
        (void) pthread_cond_init(&writer->more, NULL);
        writer->event_fd = eventfd(0, EFD_CLOEXEC);
        if (writer->event_fd < 0)
                r = -errno;
        if (r == 0) {
                writer->event = event_new(base, writer->event_fd, EV_READ | EV_PERSIST, on_written, writer);
                if (!writer->event || event_add(writer->event, NULL) < 0)
                        abort();
                r = start_thread(writer);
        }
        if (r < 0) {
                writer_free(writer);
                return r;
        }
        *ret = writer;
        return 0;
}

void file_writer_destroy(struct file_writer *writer) {
        if (!writer)
                return;
        (void) pthread_mutex_lock(&writer->mutex);
        writer->ending = true;
        (void) pthread_cond_signal(&writer->more);
        (void) pthread_mutex_unlock(&writer->mutex);
        (void) pthread_join(writer->thread, NULL);
        finish_all(&writer->written, -ECANCELED);
        finish_all(&writer->waiting, -ECANCELED);
        writer_free(writer);
}

void file_writer_add(struct file_writer *writer, char *path, uint8_t *data, size_t size_bytes, file_written_fn done,
                     void *userdata) {
        struct item *item = xcalloc(1, sizeof(*item));

        *item = (struct item) { .path = path, .data = data, .size_bytes = size_bytes, .done = done, .userdata = userdata };
        (void) pthread_mutex_lock(&writer->mutex);
        STAILQ_INSERT_TAIL(&writer->waiting, item, entry);
        (void) pthread_cond_signal(&writer->more);
        (void) pthread_mutex_unlock(&writer->mutex);
}

void file_writer_sync_name(struct file_writer *writer, char *path, file_written_fn done, void *userdata) {
        file_writer_add(writer, path, NULL, 0, done, userdata);
}
