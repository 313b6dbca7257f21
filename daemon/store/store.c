#include "daemon/store/store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/store/internal.h"
#include "daemon/store/manifest.h"

/* The head of a manifest, which is cached so that it is read once only. */
struct store_head {
        struct store_head *next;
        struct stat st; /* when it was read */
        struct checkpoint *head;
};

static void cleanup_names(struct directory_names *names) {
        directory_names_finish(names);
}

/* ---- manifests ---- */

int store_manifest_open(struct store *s, uint64_t number, FILE **ret_f, uint64_t *ret_size_bytes, struct rm_error *err) {
        char name[DIRECTORY_NAME_BYTES];
        cleanup_close int fd = -1;
        cleanup_file FILE *f = NULL;
        struct stat st;
        int r;

        directory_manifest_name(number, name);
        r = directory_file_open(s->dir_fd, name, &fd, err);
        if (r == -ENOENT)
                return error_set(err, r, "no checkpoint %" PRIu64 " in %s", number, s->path);
        if (r < 0)
                return r;
        if (fstat(fd, &st) < 0)
                return error_sys(err, -errno, "read %s", name);
        f = fdopen(fd, "r");
        if (!f)
                return error_sys(err, -errno, "read %s", name);
        (void) take_fd(&fd);
        r = manifest_authenticate(f, (uint64_t) st.st_size, &s->keys, err);
        if (r < 0)
                return error_prefix(err, "%s", name), r;
        *ret_f = take_ptr(f);
        *ret_size_bytes = (uint64_t) st.st_size;
        return 0;
}

int store_head_check(const struct store *s, const struct checkpoint *head, uint64_t number, struct rm_error *err) {
        const struct store_origin *o = &head->origin;

        if (head->number != number)
                return error_set(err, -EBADMSG, "manifest-%" PRIu64 " is of checkpoint %" PRIu64, number, head->number);
        if (o->job != s->origin.job || o->capsule != s->origin.capsule || o->uid != s->origin.uid)
                return error_set(err, -EBADMSG,
                                 "manifest-%" PRIu64 " is of job %" PRIu64 ", capsule %" PRId32 ", user %" PRIu32
                                 ", and not of job %" PRIu64 ", capsule %" PRId32 ", user %" PRIu32,
                                 number, o->job, o->capsule, o->uid, s->origin.job, s->origin.capsule, s->origin.uid);
        return 0;
}

static bool same_file(const struct stat *a, const struct stat *b) {
        return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
               a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void head_forget(struct store *s, uint64_t number) {
        for (struct store_head **p = &s->heads; *p; p = &(*p)->next) {
                struct store_head *h = *p;

                if (h->head->number != number)
                        continue;
                *p = h->next;
                checkpoint_destroy(h->head);
                free(h);
                return;
        }
}

static int head_read(struct store *s, uint64_t number, const struct stat *st, struct checkpoint **ret, struct rm_error *err) {
        cleanup_file FILE *f = NULL;
        uint64_t size_bytes = 0;
        struct checkpoint *head = NULL;
        struct store_head *h;
        int r = store_manifest_open(s, number, &f, &size_bytes, err);

        if (r == 0)
                r = manifest_read_head(f, size_bytes, &head, err);
        if (r < 0)
                return r;
        r = store_head_check(s, head, number, err);
        if (r < 0) {
                checkpoint_destroy(head);
                return r;
        }
        h = xcalloc(1, sizeof(*h));
        h->st = *st;
        h->head = *ret = head;
        h->next = s->heads;
        s->heads = h;
        return 0;
}

/* The store's own. */
static int head_get(struct store *s, uint64_t number, struct checkpoint **ret, struct rm_error *err) {
        char name[DIRECTORY_NAME_BYTES];
        struct stat st;

        directory_manifest_name(number, name);
        if (fstatat(s->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return error_set(err, -ENOENT, "no checkpoint %" PRIu64 " in %s", number, s->path);
        for (struct store_head *h = s->heads; h; h = h->next)
                if (h->head->number == number && same_file(&h->st, &st)) {
                        *ret = h->head;
                        return 0;
                }
        head_forget(s, number);
        return head_read(s, number, &st, ret, err);
}

/* ---- what is in the directory ---- */

static bool has_number(const uint64_t *list, size_t n, uint64_t number) {
        for (size_t i = 0; i < n; i++)
                if (list[i] == number)
                        return true;
        return false;
}

/* Packs with a higher number than any manifest are unfinished. */
static uint64_t last_manifest(const struct directory_names *names) {
        return names->n_manifests > 0 ? names->manifests[names->n_manifests - 1] : 0;
}

static int pack_learn(struct store *s, uint64_t number, struct rm_error *err) {
        struct pack *known = packs_find(&s->packs, number);
        char name[DIRECTORY_NAME_BYTES];
        cleanup_close int fd = -1;
        struct stat st;
        int r;

        directory_pack_name(number, name);
        r = directory_file_open(s->dir_fd, name, &fd, err);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (fstat(fd, &st) < 0)
                return error_sys(err, -errno, "read %s", name);
        if (known && known->file_bytes == (uint64_t) st.st_size)
                return 0;
        if (known)
                packs_drop(&s->packs, known);
        return packs_add(&s->packs, number, take_fd(&fd), err);
}

static int packs_refresh(struct store *s, struct rm_error *err) {
        __attribute__((cleanup(cleanup_names))) struct directory_names names = { 0 };
        int r = directory_names_read(s->dir_fd, &names, err);

        if (r < 0)
                return r;
        for (size_t i = s->packs.n; i-- > 0;)
                if (!has_number(names.packs, names.n_packs, s->packs.list[i]->number))
                        packs_drop(&s->packs, s->packs.list[i]);
        for (size_t i = 0; r == 0 && i < names.n_packs; i++)
                if (names.packs[i] <= last_manifest(&names))
                        r = pack_learn(s, names.packs[i], err);
        if (s->last && !has_number(names.manifests, names.n_manifests, s->last->number)) {
                checkpoint_destroy(s->last);
                s->last = NULL;
        }
        return r;
}

int store_use(struct store *s, struct rm_error *err) {
        int r = 0;

        if (s->users++ > 0)
                return 0;
        while (flock(s->dir_fd, LOCK_SH) < 0)
                if (errno != EINTR) {
                        r = error_sys(err, -errno, "lock %s", s->path);
                        break;
                }
        if (r == 0)
                r = packs_refresh(s, err);
        if (r < 0)
                store_unuse(s);
        return r;
}

void store_unuse(struct store *s) {
        if (--s->users == 0)
                (void) flock(s->dir_fd, LOCK_UN);
}

/* Is it in the list of a manifest? One that cannot be read may need it. */
static bool pack_needed(struct store *s, const struct directory_names *names, uint64_t number) {
        for (size_t i = 0; i < names->n_manifests; i++) {
                struct checkpoint *head = NULL;

                if (head_get(s, names->manifests[i], &head, NULL) < 0)
                        return true;
                for (size_t k = 0; k < head->n_packs; k++)
                        if (head->packs[k].number == number)
                                return true;
        }
        return false;
}

/* Removes files that no manifest needs; the caller holds the lock. A file that cannot be removed
 * now can be later. */
static void sweep(struct store *s) {
        __attribute__((cleanup(cleanup_names))) struct directory_names names = { 0 };

        if (directory_names_read(s->dir_fd, &names, NULL) < 0)
                return;
        for (size_t i = 0; i < names.n_packs; i++) {
                char name[DIRECTORY_NAME_BYTES];

                directory_pack_name(names.packs[i], name);
                if (names.packs[i] > last_manifest(&names) || !pack_needed(s, &names, names.packs[i]))
                        (void) directory_file_remove(s->dir_fd, name, NULL);
        }
        (void) directory_remove_new(s->dir_fd, NULL);
        (void) fsync(s->dir_fd);
        (void) packs_refresh(s, NULL);
}

void store_sweep(struct store *s) {
        if (s->users > 0 || flock(s->dir_fd, LOCK_EX | LOCK_NB) < 0)
                return;
        sweep(s);
        (void) flock(s->dir_fd, LOCK_UN);
}

/* ---- create and destroy ---- */

int store_open(const char *dir, const struct store_keys *keys, const struct store_origin *origin, struct store **ret,
               struct rm_error *err) {
        struct store *s = xcalloc(1, sizeof(*s));
        int r;

        s->path = xstrdup(dir);
        s->keys = *keys;
        s->origin = *origin;
        s->dir_fd = -1;
        r = packs_init(&s->packs, err);
        if (r == 0)
                r = directory_open(dir, &s->dir_fd, err);
        if (r == 0)
                store_sweep(s);
        if (r == 0)
                r = store_use(s, err);
        if (r < 0) {
                store_close(s);
                return r;
        }
        store_unuse(s);
        *ret = s;
        return 0;
}

void store_close(struct store *s) {
        if (!s)
                return;
        while (s->heads)
                head_forget(s, s->heads->head->number);
        checkpoint_destroy(s->last);
        packs_finish(&s->packs);
        cleanup_close_fd(&s->dir_fd);
        explicit_bzero(&s->keys, sizeof(s->keys));
        free(s->path);
        free(s);
}

/* ---- keeping ---- */

int store_list(const struct store *s, uint64_t **ret_numbers, size_t *ret_n, struct rm_error *err) {
        __attribute__((cleanup(cleanup_names))) struct directory_names names = { 0 };
        int r = directory_names_read(s->dir_fd, &names, err);

        if (r < 0)
                return r;
        *ret_n = names.n_manifests;
        *ret_numbers = take_ptr(names.manifests);
        return 0;
}

int store_remove(struct store *s, uint64_t checkpoint, struct rm_error *err) {
        char name[DIRECTORY_NAME_BYTES];
        int r;

        directory_manifest_name(checkpoint, name);
        r = directory_file_remove(s->dir_fd, name, err);
        if (r == 0 && fsync(s->dir_fd) < 0)
                r = error_sys(err, -errno, "remove %s", name);
        head_forget(s, checkpoint);
        if (r == 0)
                store_sweep(s);
        return r;
}

static int file_visit(struct store *s, const char *name, bool manifest, store_file_fn fn, void *ctx, struct rm_error *err) {
        cleanup_close int fd = -1;
        int r = directory_file_open(s->dir_fd, name, &fd, err);

        if (r == -ENOENT)
                return error_set(err, r, "%s is missing in %s", name, s->path);
        return r < 0 ? r : fn(ctx, name, fd, manifest, err);
}

int store_each_file(struct store *s, uint64_t checkpoint, store_file_fn fn, void *ctx, struct rm_error *err) {
        char name[DIRECTORY_NAME_BYTES];
        struct checkpoint *head = NULL;
        int r = head_get(s, checkpoint, &head, err);

        for (size_t i = 0; r == 0 && i < head->n_packs; i++) {
                directory_pack_name(head->packs[i].number, name);
                r = file_visit(s, name, false, fn, ctx, err);
        }
        directory_manifest_name(checkpoint, name);
        return r != 0 ? r : file_visit(s, name, true, fn, ctx, err);
}

int store_sign(struct store *s, uint64_t checkpoint, struct rm_error *err) {
        char name[DIRECTORY_NAME_BYTES];
        cleanup_close int fd = -1;
        cleanup_file FILE *f = NULL;
        struct stat st;
        int r;

        directory_manifest_name(checkpoint, name);
        fd = openat(s->dir_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0 || !(f = fdopen(fd, "r+")))
                return error_sys(err, -errno, "open %s", name);
        (void) take_fd(&fd);
        r = manifest_sign(f, (uint64_t) st.st_size, &s->keys.key, err);
        if (r < 0)
                return error_prefix(err, "%s", name), r;
        return fsync(fileno(f)) < 0 ? error_sys(err, -errno, "sync %s", name) : 0;
}

uint64_t store_used_bytes(const struct store *s) {
        return directory_bytes(s->dir_fd);
}
