#include "daemon/capsule/init/written.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/fanotify.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/text.h"
#include "common/util.h"
#include "daemon/capsule/init/identity.h"
#include "daemon/capsule/init/init.h"
#include "daemon/capsule/init/inventory.h"
#include "daemon/capsule/init/mounts.h"
#include "daemon/capsule/init/written_internal.h"

enum {
        PAUSE_USEC = 200000, /* between two looks: the kernel puts equal events together meanwhile */
        EVENTS_BYTES = 65536,
        MOUNTS_MAX = 64,
        REPORT_BYTES = 256 * 1024, /* of names */
        MOUNTINFO_BYTES = 4 * 1024 * 1024,
        WATCH_USEC = 300000,
};

struct written {
        struct init *init;
        struct source source; /* of fanotify(7); fd -1: none */
        uint64_t deadline;
        int64_t begin_nsec; /* what was made since, the payload has probably made */
        struct written_file *files; /* those that were written last come last */
        struct written_mount mounts[MOUNTS_MAX];
        size_t n_mounts;
        char *mountinfo; /* as it was then */
};

/* ---- the table ---- */

static void file_free(struct written *written, struct written_file *file) {
        HASH_DEL(written->files, file);
        free(file->name);
        free(file);
}

/* The file is the last in the table then. */
static struct written_file *touch(struct written *written, const struct written_handle *key) {
        struct written_file *file;

        HASH_FIND(hh, written->files, key, sizeof(*key), file);
        if (file) {
                HASH_DEL(written->files, file);
        } else {
                if (HASH_COUNT(written->files) >= WRITTEN_FILES_MAX)
                        file_free(written, written->files);
                file = xcalloc(1, sizeof(*file));
                file->key = *key;
        }
        HASH_ADD(hh, written->files, key, sizeof(file->key), file);
        return file;
}

/* ---- events ---- */

static uint64_t number_of(const void *fsid) {
        uint64_t number;

        memcpy(&number, fsid, sizeof(number));
        return number;
}

/* The record of an event: a file system, a handle, and a name behind it where there is one. */
static bool take_handle(const struct fanotify_event_info_fid *info, struct written_handle *ret, const char **ret_name) {
        const struct file_handle *handle = (const void *) info->handle;

        *ret = (struct written_handle) { .file_system = number_of(&info->fsid) };
        if (handle->handle_bytes > sizeof(ret->handle))
                return false;
        ret->type = handle->handle_type;
        ret->bytes = handle->handle_bytes;
        memcpy(ret->handle, handle->f_handle, ret->bytes);
        *ret_name = (const char *) handle->f_handle + handle->handle_bytes;
        return true;
}

static void take_event(struct written *written, const struct fanotify_event_metadata *event) {
        const uint8_t *at = (const uint8_t *) event + event->metadata_len, *end = (const uint8_t *) event + event->event_len;
        struct written_handle key, directory;
        const char *name = NULL, *none;
        bool has_key = false;

        while (at < end) {
                const struct fanotify_event_info_fid *info = (const void *) at;

                if (info->hdr.info_type == FAN_EVENT_INFO_TYPE_FID)
                        has_key = take_handle(info, &key, &none);
                if (info->hdr.info_type == FAN_EVENT_INFO_TYPE_DFID_NAME && !take_handle(info, &directory, &name))
                        name = NULL;
                at += info->hdr.len;
        }
        if (has_key && name) {
                struct written_file *file = touch(written, &key);

                free(file->name);
                file->name = xstrdup(name);
                file->directory = directory;
                file->writes++;
        }
}

static void take_events(struct written *written) {
        cleanup_free char *events = xcalloc(1, EVENTS_BYTES);
        ssize_t n;

        while ((n = read(written->source.fd, events, EVENTS_BYTES)) > 0) {
                const struct fanotify_event_metadata *event = (const void *) events;

                while (FAN_EVENT_OK(event, n)) {
                        take_event(written, event);
                        n -= event->event_len;
                        event = (const void *) ((const char *) event + event->event_len);
                }
        }
}

/* A program that writes many files costs a look five times a second. */
static void on_events(struct source *source, uint32_t events) {
        struct written *written = source->data;

        (void) events;
        take_events(written);
        source_modify(written->init->epoll_fd, source, 0);
        written->deadline = now_usec() + PAUSE_USEC;
}

uint64_t written_deadline(const struct written *written) {
        return written->deadline;
}

void written_timeout(struct written *written) {
        written->deadline = UINT64_MAX;
        source_modify(written->init->epoll_fd, &written->source, EPOLLIN);
}

struct written *written_create(struct init *init) {
        struct written *written = xcalloc(1, sizeof(*written));
        struct timespec now;

        (void) clock_gettime(CLOCK_REALTIME_COARSE, &now); /* as of file systems */
        written->init = init;
        written->deadline = UINT64_MAX;
        written->begin_nsec = (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
        written->source = (struct source) { .fn = on_events, .data = written };
        written->source.fd = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_FID | FAN_REPORT_DFID_NAME, 0);
        if (written->source.fd < 0 || source_add(init->epoll_fd, &written->source, EPOLLIN) < 0) {
                log_info("what programs write is not noticed: %s", strerror(errno));
                written->source.fd = -1;
        }
        return written;
}

/* ---- mounts ---- */

/* What a child tells of a mount that is watched now. */
struct watched {
        uint64_t file_system;
        char path[PATH_MAX];
};

static bool is_watched(const struct written *written, const char *path) {
        for (size_t i = 0; i < written->n_mounts; i++)
                if (strcmp(written->mounts[i].path, path) == 0)
                        return true;
        return false;
}

/* A server that does not answer may keep the child here. */
static void watch(const struct written *written, const char *path, int report_fd) {
        struct watched watched = { 0 };
        struct statfs st;

        if (is_watched(written, path) || statfs(path, &st) < 0)
                return;
        if (fanotify_mark(written->source.fd, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_CLOSE_WRITE, AT_FDCWD, path) < 0) {
                log_info("what programs write to %s is not noticed: %s", path, strerror(errno));
                return;
        }
        watched.file_system = number_of(&st.f_fsid);
        (void) text_format(watched.path, sizeof(watched.path), "%s", path);
        (void) write_all(report_fd, &watched, sizeof(watched));
}

static void watch_all(int error, int report_fd, const void *arg) {
        const struct written *written = arg;
        char **paths = NULL;
        size_t n = error < 0 ? 0 : mounts_list_writable(written->init->spec, &paths);

        for (size_t i = 0; i < n; i++)
                watch(written, paths[i], report_fd);
}

static void take_watched(struct written *written, int fd) {
        uint64_t end_usec = now_usec() + WATCH_USEC;
        struct watched watched;

        while (written->n_mounts < MOUNTS_MAX && now_usec() < end_usec && identity_await(fd, end_usec - now_usec()) == 0 &&
               read_all(fd, &watched, sizeof(watched)) == 0) {
                watched.path[sizeof(watched.path) - 1] = '\0';
                written->mounts[written->n_mounts++] = (struct written_mount) { xstrdup(watched.path), watched.file_system };
        }
}

void written_watch(struct written *written) {
        cleanup_free char *seen = NULL;
        size_t size;
        pid_t pid;
        int fd;

        if (written->source.fd < 0 || read_file("/proc/self/mountinfo", MOUNTINFO_BYTES, &seen, &size) < 0 ||
            (written->mountinfo && strcmp(written->mountinfo, seen) == 0))
                return;
        free(written->mountinfo);
        written->mountinfo = take_ptr(seen);
        if (identity_child(NULL, 0, watch_all, written, &pid, &fd) < 0)
                return;
        take_watched(written, fd);
        identity_child_end(pid, fd);
}

/* ---- reports ---- */

static bool is_open(const Capsule__Inventory *inventory, const char *name) {
        for (size_t i = 0; i < inventory->n_files; i++)
                if (strcmp(inventory->files[i]->name, name) == 0)
                        return true;
        return false;
}

/* One that has changed although nobody here has written to it since the last report belongs to others, too. */
static void note_others(struct written_file *file, const Capsule__ClosedFile *found) {
        if (file->told && file->writes == file->told_writes &&
            (file->told_size_bytes != found->file->size_bytes || file->told_mtime_nsec != found->file->mtime_nsec))
                file->others = true;
        file->told = true;
        file->told_writes = file->writes;
        file->told_size_bytes = found->file->size_bytes;
        file->told_mtime_nsec = found->file->mtime_nsec;
}

static bool is_wanted(const struct written *written, const struct written_file *file, const Capsule__ClosedFile *found,
                      const Capsule__Inventory *inventory) {
        return !file->others && (file->writes > 1 || found->file->birth_nsec >= written->begin_nsec) &&
               !is_open(inventory, found->file->name);
}

void written_report(struct written *written, Capsule__Inventory *inventory) {
        struct written_look look = { .spec = written->init->spec, .mounts = written->mounts, .n_mounts = written->n_mounts };
        Capsule__Inventory *found;
        struct written_file *file, *next;
        size_t i = 0, bytes = 0;

        if (written->source.fd >= 0)
                take_events(written);
        look.files = written->files;
        found = written->files ? written_look(&look) : NULL;
        if (!found)
                return;
        inventory->closed_files =
                xcalloc(found->n_closed_files + 1, sizeof(*inventory->closed_files)); /* NOLINT(bugprone-sizeof-expression) */
        HASH_ITER (hh, written->files, file, next) {
                Capsule__ClosedFile *closed = found->closed_files[i++];

                if (!*closed->file->name) {
                        file_free(written, file);
                        continue;
                }
                note_others(file, closed);
                bytes += strlen(closed->file->name);
                if (bytes > REPORT_BYTES || !is_wanted(written, file, closed, inventory))
                        continue;
                closed->writes = file->writes;
                inventory->closed_files[inventory->n_closed_files++] = closed;
                found->closed_files[i - 1] = NULL;
        }
        capsule__inventory__free_unpacked(found, NULL);
}

/* Of the mount that the path lies in. */
static uint64_t file_system_of(const struct written *written, const char *path) {
        const struct written_mount *of = NULL;

        for (size_t i = 0; i < written->n_mounts; i++)
                if (path_is_below(path, written->mounts[i].path) && (!of || strlen(of->path) < strlen(written->mounts[i].path)))
                        of = &written->mounts[i];
        return of ? of->file_system : 0;
}

void written_load(struct written *written, const Capsule__Inventory *inventory) {
        for (size_t i = 0; i < inventory->n_closed_files; i++) {
                const Capsule__ClosedFile *closed = inventory->closed_files[i];
                struct written_handle key = { .type = closed->file->handle_type, .bytes = (uint32_t) closed->file->handle.len };
                struct written_file *file;

                if (key.bytes == 0 || key.bytes > sizeof(key.handle))
                        continue;
                memcpy(key.handle, closed->file->handle.data, key.bytes);
                key.file_system = file_system_of(written, closed->file->name);
                file = touch(written, &key);
                free(file->name);
                file->name = xstrdup(closed->file->name);
                file->writes = closed->writes > 1 ? closed->writes : 2; /* it was reported, so it counts from now on */
        }
}
