#include "daemon/job/body_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/log.h"
#include "common/openat.h"
#include "common/util.h"
#include "daemon/job/body.h"
#include "daemon/job/file_writer.h"

#define NAME_CHARS ((size_t) 2 * STATE_DIGEST_BYTES)
/* The log lies on the same disk, and needs as much for itself (raftlog.c): without it nothing can
 * be changed any more. */
#define SPACE_BYTES (8U << 20)

struct stored {
        uint8_t digest[STATE_DIGEST_BYTES];
        uint8_t *data; /* NULL: on the disk */
        uint32_t size_bytes;
        bool safe; /* on the disk, and would outlive a power failure */
};

struct body_store {
        struct event_base *base;
        struct file_writer *writer; /* made when it is first needed */
        char *dir;
        struct stored *list; /* sorted by digest */
        size_t n;
        uint64_t bytes;
        bool failed; /* the disk did not take one, and it was said */
};

/* ---- the list ---- */

/* Finds the place of a digest in the sorted list, or the place where it belongs. */
static size_t place_of(const struct body_store *store, const uint8_t *digest, bool *ret_there) {
        size_t low = 0, high = store->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int order = memcmp(store->list[middle].digest, digest, STATE_DIGEST_BYTES);

                if (order == 0) {
                        *ret_there = true;
                        return middle;
                }
                if (order < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        *ret_there = false;
        return low;
}

/* Inserts an entry if there is none of this digest, and returns the one there is. Takes over
 * `data`. */
static struct stored *insert(struct body_store *store, const uint8_t *digest, uint8_t *data, uint32_t size_bytes) {
        bool there = false;
        size_t at = place_of(store, digest, &there);
        struct stored *stored;

        if (there) {
                free(data);
                return &store->list[at];
        }
        store->list = xrealloc(store->list, (store->n + 1) * sizeof(*store->list));
        stored = &store->list[at];
        memmove(stored + 1, stored, (store->n - at) * sizeof(*stored));
        store->n++;
        memcpy(stored->digest, digest, STATE_DIGEST_BYTES);
        stored->data = data;
        stored->size_bytes = size_bytes;
        stored->safe = false;
        store->bytes += size_bytes;
        return stored;
}

static bool is_safe(const struct body_store *store, const uint8_t *digest) {
        bool there = false;
        size_t at = place_of(store, digest, &there);

        return there && store->list[at].safe;
}

bool body_store_has(const struct body_store *store, const uint8_t *digest) {
        bool there = false;

        (void) place_of(store, digest, &there);
        return there;
}

uint64_t body_store_bytes(const struct body_store *store) {
        return store->bytes;
}

/* ---- files ---- */

static char *path_of(const struct body_store *store, const uint8_t *digest) {
        char name[NAME_CHARS + 1];

        for (size_t i = 0; i < STATE_DIGEST_BYTES; i++)
                (void) snprintf(name + 2 * i, 3, "%02x", digest[i]);
        return xasprintf("%s/%s", store->dir, name);
}

static bool parse_name(const char *name, uint8_t *ret_digest) {
        if (strlen(name) != NAME_CHARS || strspn(name, "0123456789abcdef") != NAME_CHARS)
                return false;
        for (size_t i = 0; i < STATE_DIGEST_BYTES; i++) {
                const char byte[3] = { name[2 * i], name[2 * i + 1], 0 };

                ret_digest[i] = (uint8_t) strtoul(byte, NULL, 16);
        }
        return true;
}

/* Puts a body that is found on the disk into the list; clears away files that an rmd which was
 * killed had not finished writing. */
static void take_over(struct body_store *store, int dir_fd, const char *name) {
        uint8_t digest[STATE_DIGEST_BYTES];
        struct stat st;

        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
                return;
        if (parse_name(name, digest) && st.st_size > 0 && st.st_size <= (off_t) STATE_BODY_MAX_BYTES)
                (void) insert(store, digest, NULL, (uint32_t) st.st_size);
        else
                (void) unlinkat(dir_fd, name, 0);
}

static int scan(struct body_store *store, struct rm_error *err) {
        cleanup_dir DIR *dir = opendir(store->dir);
        const char *name;

        if (!dir)
                return error_sys(err, -errno, "cannot read %s", store->dir);
        while ((name = next_name(dir)))
                take_over(store, dirfd(dir), name);
        return 0;
}

int body_store_open(struct event_base *base, const char *dir, struct body_store **ret, struct rm_error *err) {
        struct body_store *store = xcalloc(1, sizeof(*store));
        int r = mkdir_p(dir, 0700);

        store->base = base;
        store->dir = xstrdup(dir);
        if (r == 0 && chmod(dir, 0700) < 0)
                r = -errno;
        if (r < 0)
                r = error_sys(err, r, "cannot make %s", dir);
        else
                r = scan(store, err);
        if (r < 0) {
                body_store_close(store);
                return r;
        }
        *ret = store;
        return 0;
}

void body_store_close(struct body_store *store) {
        if (!store)
                return;
        file_writer_destroy(store->writer);
        for (size_t i = 0; i < store->n; i++)
                free(store->list[i].data);
        free(store->list);
        free(store->dir);
        free(store);
}

static void remove_at(struct body_store *store, size_t at) {
        struct stored *stored = &store->list[at];
        cleanup_free char *path = path_of(store, stored->digest);

        if (!stored->data)
                (void) unlink(path);
        free(stored->data);
        store->bytes -= stored->size_bytes;
        store->n--;
        memmove(stored, stored + 1, (store->n - at) * sizeof(*stored));
}

bool body_store_has_space(const struct body_store *store, size_t size_bytes) {
        struct statvfs disk;

        return statvfs(store->dir, &disk) < 0 || (uint64_t) disk.f_bavail * disk.f_frsize >= size_bytes + SPACE_BYTES;
}

/* Proposals are made again and again; it is said once. */
static void set_failed(struct body_store *store, int code) {
        if (code < 0 && !store->failed)
                log_warn("%s: cannot keep what a job is launched with: %s", store->dir,
                         code == -ENOSPC ? "the disk is full" : strerror(-code));
        store->failed = code < 0;
}

void body_store_put(struct body_store *store, const uint8_t *digest, const uint8_t *data, size_t size_bytes) {
        cleanup_free char *path = path_of(store, digest);
        uint8_t *copy = NULL;
        int r = -ENOSPC;

        if (body_store_has(store, digest))
                return;
        if (body_store_has_space(store, size_bytes))
                r = write_file_atomic(path, data, size_bytes, 0600, false);
        set_failed(store, r);
        if (r < 0) {
                copy = xcalloc(1, size_bytes);
                memcpy(copy, data, size_bytes);
        }
        (void) insert(store, digest, copy, (uint32_t) size_bytes);
}

/* A body that is being written. */
struct put {
        struct body_store *store;
        uint8_t digest[STATE_DIGEST_BYTES];
        uint32_t size_bytes;
        body_stored_fn done;
        void *userdata;
};

static void on_put(void *userdata, int code) {
        struct put *put = userdata;

        if (code != -ECANCELED)
                set_failed(put->store, code);
        if (code == 0) {
                struct stored *stored = insert(put->store, put->digest, NULL, put->size_bytes);

                free(take_ptr(stored->data));
                stored->safe = true;
        }
        put->done(put->userdata, code);
        free(put);
}

static int check_put(struct body_store *store, size_t size_bytes) {
        if (!body_store_has_space(store, size_bytes))
                return -ENOSPC;
        return store->writer ? 0 : file_writer_create(store->base, &store->writer);
}

void body_store_put_safely(struct body_store *store, const uint8_t *digest, uint8_t *data, size_t size_bytes, body_stored_fn done,
                           void *userdata) {
        bool safe = is_safe(store, digest);
        int r = safe ? 0 : check_put(store, size_bytes);
        struct put *put;

        if (r < 0)
                set_failed(store, r);
        if (safe || r < 0) {
                free(data);
                done(userdata, r);
                return;
        }
        put = xcalloc(1, sizeof(*put));
        *put = (struct put) { .store = store, .size_bytes = (uint32_t) size_bytes, .done = done, .userdata = userdata };
        memcpy(put->digest, digest, STATE_DIGEST_BYTES);
        file_writer_add(store->writer, path_of(store, digest), data, size_bytes, on_put, put);
}

int body_store_get(struct body_store *store, const uint8_t *digest, uint8_t **ret_data, size_t *ret_size_bytes) {
        cleanup_free char *path = path_of(store, digest);
        uint8_t found[STATE_DIGEST_BYTES] = { 0 };
        char *data = NULL;
        bool there = false;
        size_t size_bytes = 0, at = place_of(store, digest, &there);
        int r = 0;

        if (!there)
                return -ENOENT;
        if (store->list[at].data) {
                size_bytes = store->list[at].size_bytes;
                data = xcalloc(1, size_bytes);
                memcpy(data, store->list[at].data, size_bytes);
        } else {
                r = read_file(path, STATE_BODY_MAX_BYTES, &data, &size_bytes);
        }
        if (r == 0)
                body_digest((const uint8_t *) data, size_bytes, found);
        if (r < 0 || memcmp(found, digest, sizeof(found)) != 0) {
                log_warn("%s: %s; removed", path, r < 0 ? strerror(-r) : "it is not what was written there");
                free(data);
                remove_at(store, at);
                return -ENOENT;
        }
        *ret_data = (uint8_t *) data;
        *ret_size_bytes = size_bytes;
        return 0;
}

void body_store_sweep(struct body_store *store, bool (*keep)(void *userdata, const uint8_t *digest), void *userdata) {
        for (size_t i = store->n; i > 0; i--)
                if (!keep(userdata, store->list[i - 1].digest))
                        remove_at(store, i - 1);
}
