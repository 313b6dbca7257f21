#include "daemon/capsule/init/verify/written.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
#include "daemon/capsule/init/base/identity.h"
#include "daemon/capsule/init/base/loop.h"
#include "daemon/capsule/init/base/mounts.h"
#include "daemon/capsule/init/core.h"
#include "daemon/capsule/init/verify/inventory.h"
#include "daemon/capsule/init/verify/written_internal.h"

enum {
        PAUSE_USEC = 200000,  /* the kernel joins equal events between two looks */
        EVENTS_BYTES = 65536, /* some 500 events */
        READS_MAX = 4,        /* a program that writes for ever is not waited for */
        MOUNTS_MAX = 64,
        REPORT_BYTES = 256 * 1024, /* a report has so much of names and handles */
        WATCH_USEC = 300000,
};

struct written {
        struct core *core;
        struct source events; /* fd -1: nothing is noticed */
        struct source mountinfo;
        uint64_t deadline;
        int64_t begin_nsec; /* a file that was made since, the payload has made */
        struct written_file *files; /* in the order in which they were written */
        struct written_mount mounts[MOUNTS_MAX];
        size_t n_mounts;
        bool all_watched;
        int stuck_fd;
};

/* The time is as coarse as file systems have it. */
static int64_t coarse_now_nsec(void) {
        struct timespec now;

        (void) clock_gettime(CLOCK_REALTIME_COARSE, &now);
        return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- the table ---- */

static void file_free(struct written *written, struct written_file *file) {
        HASH_DEL(written->files, file);
        free(file->name);
        free(file);
}

/* Returns the file, which is the last of the table then. */
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
                file->first_nsec = coarse_now_nsec();
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

/* A record has a file system, a handle, and, where it is one of a directory, a name behind it. */
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

/* Events were lost: whether other programs have written to these files is not known any more. */
static void forget_reports(struct written *written) {
        for (struct written_file *file = written->files; file; file = file->hh.next)
                file->reported = false;
}

/* `event` is the head of what begins at `begin`, its records lie behind it. */
static void take_event(struct written *written, const struct fanotify_event_metadata *event, const uint8_t *begin) {
        const uint8_t *at = begin + event->metadata_len, *end = begin + event->event_len;
        struct written_handle key, directory;
        const char *name = NULL, *none;
        bool has_key = false;

        if (event->mask & FAN_Q_OVERFLOW)
                forget_reports(written);
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

static void take_events(struct written *written, bool forget, int reads_max) {
        cleanup_free uint8_t *events = xcalloc(1, EVENTS_BYTES);

        for (int reads = 0; reads < reads_max; reads++) {
                ssize_t n = read(written->events.fd, events, EVENTS_BYTES);
                struct fanotify_event_metadata event; /* events begin at multiples of four bytes only */

                if (n <= 0)
                        return;
                for (const uint8_t *at = events; !forget && n >= (ssize_t) sizeof(event); at += event.event_len) {
                        memcpy(&event, at, sizeof(event));
                        if (!FAN_EVENT_OK(&event, n))
                                break;
                        take_event(written, &event, at);
                        n -= event.event_len;
                }
        }
}

/* Before the payload runs here, only processes of rmd's and CRIU write. A program that writes many
 * files costs a look five times a second. */
static void on_events(struct source *source, uint32_t events) {
        struct written *written = source->data;
        Capsule__Phase phase = written->core->phase;

        take_events(written,
                    phase == CAPSULE__PHASE__PHASE_EMPTY || phase == CAPSULE__PHASE__PHASE_RESTORING ||
                            phase == CAPSULE__PHASE__PHASE_RESTORED,
                    READS_MAX);
        source_modify(written->core->epoll_fd, source, 0);
        written->deadline = now_usec() + PAUSE_USEC;
}

uint64_t written_deadline(const struct written *written) {
        return written->deadline;
}

void written_timeout(struct written *written) {
        written->deadline = UINT64_MAX;
        source_modify(written->core->epoll_fd, &written->events, EPOLLIN);
}

void written_forget_events(struct written *written) {
        if (written->events.fd >= 0)
                take_events(written, true, INT_MAX);
}

/* ---- mounts ---- */

/* A child tells of each mount that is watched now; one without a path is the last. */
struct watched {
        uint64_t file_system;
        char path[PATH_MAX];
};

/* A server that does not answer may keep the child here. */
static void watch(const struct written *written, const char *path, int report_fd) {
        struct watched watched = { 0 };
        struct statfs st;

        if (statfs(path, &st) < 0)
                return;
        if (fanotify_mark(written->events.fd, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_CLOSE_WRITE, AT_FDCWD, path) < 0) {
                log_info("what programs write to %s is not noticed: %s", path, strerror(errno));
                return;
        }
        watched.file_system = number_of(&st.f_fsid);
        (void) text_format(watched.path, sizeof(watched.path), "%s", path);
        (void) write_all(report_fd, &watched, sizeof(watched));
}

static void watch_all(int error, int report_fd, const void *arg) {
        const struct watched last = { 0 };
        const struct written *written = arg;
        char **paths = NULL;
        size_t n = error < 0 ? 0 : mounts_list_writable(written->core->spec, &paths);

        for (size_t i = 0; i < n && i < MOUNTS_MAX; i++)
                watch(written, paths[i], report_fd);
        (void) write_all(report_fd, &last, sizeof(last));
}

struct mounts {
        struct written_mount list[MOUNTS_MAX];
        size_t n;
};

static void mounts_free(struct written_mount *list, size_t n) {
        for (size_t i = 0; i < n; i++)
                free(list[i].path);
}

/* Returns whether the child has told of all mounts. */
static bool take_watched(struct mounts *ret, int fd) {
        uint64_t end_usec = now_usec() + WATCH_USEC;
        struct watched watched;

        while (now_usec() < end_usec && identity_await(fd, end_usec - now_usec()) == 0 &&
               read_all(fd, &watched, sizeof(watched)) == 0) {
                if (!*watched.path)
                        return true;
                if (ret->n == MOUNTS_MAX)
                        continue;
                watched.path[sizeof(watched.path) - 1] = '\0';
                ret->list[ret->n++] = (struct written_mount) { xstrdup(watched.path), watched.file_system };
        }
        return false;
}

/* A mark that there is already is not made twice, so all mounts are marked again. Where a server
 * does not answer, those that were known before stay so. */
static void watch_mounts(struct written *written) {
        struct mounts mounts = { 0 };
        pid_t pid;
        int fd;

        written->all_watched = false;
        if (identity_child(NULL, 0, watch_all, written, &pid, &fd) < 0)
                return;
        written->all_watched = take_watched(&mounts, fd);
        identity_child_end(pid, fd);
        if (!written->all_watched && written->n_mounts >= mounts.n) {
                mounts_free(mounts.list, mounts.n);
                return;
        }
        mounts_free(written->mounts, written->n_mounts);
        memcpy(written->mounts, mounts.list, mounts.n * sizeof(mounts.list[0]));
        written->n_mounts = mounts.n;
}

/* The kernel says that the mounts have changed, as by an automounter, and does not say it twice. */
static void on_mountinfo(struct source *source, uint32_t events) {
        watch_mounts(source->data);
}

void written_watch(struct written *written) {
        if (written->events.fd >= 0 && !written->all_watched)
                watch_mounts(written);
}

struct written *written_create(struct core *core) {
        struct written *written = xcalloc(1, sizeof(*written));

        written->core = core;
        written->deadline = UINT64_MAX;
        written->stuck_fd = -1;
        written->begin_nsec = coarse_now_nsec();
        written->events = (struct source) { .fn = on_events, .data = written };
        written->mountinfo = (struct source) { .fn = on_mountinfo, .data = written };
        written->events.fd = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_FID | FAN_REPORT_DFID_NAME, 0);
        if (written->events.fd < 0 || source_add(core->epoll_fd, &written->events, EPOLLIN) < 0) {
                log_info("what programs write is not noticed: %s", strerror(errno));
                written->events.fd = -1;
                return written;
        }
        written->mountinfo.fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
        if (written->mountinfo.fd >= 0)
                (void) source_add(core->epoll_fd, &written->mountinfo, EPOLLPRI);
        return written;
}

/* ---- reports ---- */

struct report {
        struct written *written;
        struct written_file **files;
        Capsule__Inventory *inventory;
        bool *open; /* for writing, by the index in the inventory */
        size_t bytes;
};

static bool is_open(const struct report *report, const char *name) {
        for (size_t i = 0; i < report->inventory->n_files; i++)
                if (report->open[i] && strcmp(report->inventory->files[i]->name, name) == 0)
                        return true;
        return false;
}

static void add(struct report *report, Capsule__ClosedFile *closed) {
        Capsule__Inventory *inventory = report->inventory;

        report->bytes += capsule__closed_file__get_packed_size(closed);
        if (report->bytes > REPORT_BYTES)
                capsule__closed_file__free_unpacked(closed, NULL);
        else
                inventory->closed_files[inventory->n_closed_files++] = closed;
}

/* A file that has changed although the payload has not written to it since the last report is
 * written by others too. One that is open has not been told by an event yet. */
static void note_others(struct written_file *file, const Capsule__InventoryFile *found) {
        if (file->reported && file->writes == file->reported_writes &&
            (file->reported_size_bytes != found->size_bytes || file->reported_mtime_nsec != found->mtime_nsec))
                file->others = true;
        file->reported = true;
        file->reported_writes = file->writes;
        file->reported_size_bytes = found->size_bytes;
        file->reported_mtime_nsec = found->mtime_nsec;
}

static void on_found(void *arg, size_t i, Capsule__ClosedFile *found) {
        struct report *report = arg;
        struct written_file *file = report->files[i];

        if (is_open(report, found->file->name)) {
                file->reported = false;
                capsule__closed_file__free_unpacked(found, NULL);
                return;
        }
        note_others(file, found->file);
        found->first_nsec = file->first_nsec;
        found->writes = file->writes;
        found->others = file->others;
        add(report, found);
}

static void copy_bytes(const struct written_handle *handle, ProtobufCBinaryData *ret) {
        ret->len = handle->bytes;
        ret->data = xcalloc(1, handle->bytes + 1);
        memcpy(ret->data, handle->handle, handle->bytes);
}

/* The other node finds the file by its handles, if it is there. */
static Capsule__ClosedFile *name_file(const struct written_file *file) {
        Capsule__ClosedFile *closed = xcalloc(1, sizeof(*closed));

        capsule__closed_file__init(closed);
        closed->file = xcalloc(1, sizeof(*closed->file));
        capsule__inventory_file__init(closed->file);
        closed->file->name = xstrdup(file->name);
        closed->file->handle_type = file->key.type;
        copy_bytes(&file->key, &closed->file->handle);
        closed->file_system = file->key.file_system;
        closed->directory_type = file->directory.type;
        copy_bytes(&file->directory, &closed->directory);
        closed->first_nsec = file->first_nsec;
        closed->writes = file->writes;
        closed->others = file->others;
        return closed;
}

static void scan_files(struct report *report, size_t n) {
        struct written *written = report->written;
        struct written_scan scan = { .spec = written->core->spec,
                                     .mounts = written->mounts,
                                     .n_mounts = written->n_mounts,
                                     .files = report->files,
                                     .n = n,
                                     .stuck_fd = written->stuck_fd };

        written_scan(&scan, on_found, report);
        written->stuck_fd = scan.stuck_fd;
}

void written_report(struct written *written, bool scan, Capsule__Inventory *inventory) {
        size_t n = 0, all;
        cleanup_free bool *open = inventory_find_written(inventory);
        cleanup_free struct written_file **files = NULL;
        struct report report = { .written = written, .inventory = inventory, .open = open };

        inventory->made_since_nsec = written->begin_nsec;
        if (written->events.fd >= 0)
                take_events(written, false, INT_MAX); /* the queue has an end, as nobody writes now */
        all = HASH_COUNT(written->files);
        if (all == 0)
                return;
        report.files = files = xcalloc(all, sizeof(struct written_file *));
        inventory->closed_files = xcalloc(all, sizeof(Capsule__ClosedFile *));
        for (struct written_file *file = written->files; file; file = file->hh.next)
                files[all - ++n] = file;
        if (scan)
                scan_files(&report, all);
        for (size_t i = 0; i < all && !scan; i++)
                add(&report, name_file(files[i]));
}

/* Returns the file system of the mount that the path lies in. */
static uint64_t file_system_of(const struct written *written, const char *path) {
        const struct written_mount *of = NULL;

        for (size_t i = 0; i < written->n_mounts; i++)
                if (path_is_below(path, written->mounts[i].path) && (!of || strlen(of->path) < strlen(written->mounts[i].path)))
                        of = &written->mounts[i];
        return of ? of->file_system : 0;
}

static bool set_handle(struct written_handle *handle, uint64_t file_system, int32_t type, const ProtobufCBinaryData *bytes) {
        *handle = (struct written_handle) { .file_system = file_system, .type = type };
        if (bytes->len > sizeof(handle->handle))
                return false;
        handle->bytes = (uint32_t) bytes->len;
        if (bytes->len > 0)
                memcpy(handle->handle, bytes->data, bytes->len);
        return true;
}

static void load_file(struct written *written, const Capsule__ClosedFile *closed) {
        bool by_handle = closed->directory.len > 0;
        uint64_t file_system = by_handle ? closed->file_system : file_system_of(written, closed->file->name);
        struct written_handle key, directory;
        struct written_file *file;

        if (closed->file->handle.len == 0 || !set_handle(&key, file_system, closed->file->handle_type, &closed->file->handle) ||
            !set_handle(&directory, file_system, closed->directory_type, &closed->directory))
                return;
        file = touch(written, &key);
        free(file->name);
        file->name = xstrdup(closed->file->name);
        file->directory = directory;
        file->first_nsec = closed->first_nsec;
        file->writes = closed->writes;
        file->others = closed->others;
}

/* The files come with the ones that were written last first. */
void written_load(struct written *written, const Capsule__Inventory *inventory) {
        if (inventory->made_since_nsec > 0 && inventory->made_since_nsec < written->begin_nsec)
                written->begin_nsec = inventory->made_since_nsec;
        for (size_t i = inventory->n_closed_files; i > 0; i--)
                load_file(written, inventory->closed_files[i - 1]);
}
