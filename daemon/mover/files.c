#include "daemon/mover/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION(key, size_bytes, hash) ((hash) = (unsigned) XXH3_64bits(key, size_bytes))
#include <uthash.h>

#include "common/openat.h"
#include "common/util.h"
#include "daemon/image/zero.h"
#include "daemon/mover/rounds.h"

enum {
        TREES_MAX = 2,
        ROUNDS_MAX = 4,
        ENOUGH = 16,
        DEPTH_MAX = 64,
};

/* Smaller ones are sent in the freeze as fast as they are compared. */
#define FILE_LEAST_BYTES (UINT64_C(64) << 10)
/* Names that a round looks at: a program that has more of them in its /tmp gains nothing, and holds
 * up no move. */
#define NAMES_MAX (64U << 10)
#define STEP_BYTES IMAGE_PAYLOAD_MAX_BYTES

/* A receiver's knowledge of a block: of zeros all bits are 0, else a hash of its contents. Two
 * contents with the same 128 bits are not to be expected; a user who makes them on purpose damages
 * his own file only. */
struct block_hash {
        uint64_t low;
        uint64_t high;
};

struct file {
        ino_t ino;
        struct tree *tree;
        uint32_t number;
        unsigned seen; /* the latest round that found it */
        size_t n_blocks;
        struct block_hash *blocks;
        UT_hash_handle hh; /* by ino, in its tree */
};

struct tree {
        char *role;
        char *path;
        dev_t dev; /* 0: not known yet */
        struct file *files;
};

struct files {
        struct image_writer *writer;
        const struct mover_hooks *hooks;
        struct tree trees[TREES_MAX];
        size_t n_trees;
        bool taken[IMAGE_AHEAD_MAX + 1]; /* numbers; 0 is none */
        struct rounds rounds;
        unsigned round;
        bool frozen;
        size_t n_names; /* of this round */
        uint64_t sent_bytes;

        /* The file that is being compared. */
        struct file *at;
        uint32_t slot;
        uint8_t step[STEP_BYTES];
};

struct files *files_create(struct image_writer *w) {
        struct files *f = xcalloc(1, sizeof(*f));

        f->writer = w;
        f->rounds = (struct rounds) { .part = ENOUGH };
        f->taken[0] = true;
        return f;
}

static void file_remove(struct files *f, struct file *file) {
        f->taken[file->number] = false;
        HASH_DEL(file->tree->files, file);
        free(file->blocks);
        free(file);
}

void files_destroy(struct files *f) {
        struct file *file, *next;

        if (!f)
                return;
        for (size_t i = 0; i < f->n_trees; i++) {
                HASH_ITER (hh, f->trees[i].files, file, next)
                        file_remove(f, file);
                free(f->trees[i].role);
                free(f->trees[i].path);
        }
        free(f);
}

void files_add_tree(struct files *f, const char *role, const char *path) {
        struct stat st;

        if (f->n_trees >= TREES_MAX || stat(path, &st) < 0)
                return;
        f->trees[f->n_trees++] = (struct tree) { .role = xstrdup(role), .path = xstrdup(path), .dev = st.st_dev };
}

bool files_saved_state(const struct files *f, dev_t dev) {
        for (size_t i = 0; i < f->n_trees; i++)
                if (f->trees[i].dev == dev)
                        return true;
        return false;
}

/* The record of a file takes memory in proportion to its size. A user can make a file of any size
 * without contents: such a file does not go ahead, nor one that becomes so. */
static bool is_worth_it(const struct stat *st) {
        return st->st_size > 0 && (uint64_t) st->st_size / 2 <= (uint64_t) st->st_blocks * 512;
}

/* ---- one file ---- */

static struct file *file_find(const struct tree *tree, ino_t ino) {
        struct file *file;

        HASH_FIND(hh, tree->files, &ino, sizeof(ino), file);
        return file;
}

/* NULL: there are as many as there may be. */
static struct file *file_add(struct files *f, struct tree *tree, ino_t ino) {
        const bool *free_number = memchr(f->taken, false, sizeof(f->taken));
        struct file *file;

        if (!free_number)
                return NULL;
        file = xcalloc(1, sizeof(*file));
        file->ino = ino;
        file->tree = tree;
        file->number = (uint32_t) (free_number - f->taken);
        f->taken[file->number] = true;
        HASH_ADD(hh, tree->files, ino, sizeof(file->ino), file);
        return file;
}

/* The receiver sets the size, so that it has zeros behind it, as the file will when it grows
 * again. */
static void file_resize(struct file *file, uint64_t size_bytes) {
        size_t n = (size_t) ((size_bytes + IMAGE_BLOCK_BYTES - 1) / IMAGE_BLOCK_BYTES);

        if (n == file->n_blocks)
                return;
        file->blocks = xrealloc(file->blocks, (n + 1) * sizeof(*file->blocks));
        if (n > file->n_blocks)
                memset(file->blocks + file->n_blocks, 0, (n - file->n_blocks) * sizeof(*file->blocks));
        file->n_blocks = n;
}

static bool is_zero(const struct block_hash *hash) {
        return hash->low == 0 && hash->high == 0;
}

/* Keeps what is there now. Has it changed? */
static bool block_changed(struct block_hash *known, const uint8_t *block, size_t size_bytes) {
        struct block_hash now = { 0 };
        bool changed;

        if (!image_block_is_zero(block, size_bytes)) {
                XXH128_hash_t hash = XXH3_128bits(block, size_bytes);

                now = (struct block_hash) { hash.low64 | 1, hash.high64 }; /* never that of zeros */
        }
        changed = now.low != known->low || now.high != known->high;
        *known = now;
        return changed;
}

static int run_send(struct files *f, uint64_t offset, const uint8_t *data, size_t size_bytes, struct rm_error *err) {
        uint8_t *buffer;

        if (size_bytes == 0)
                return 0;
        buffer = image_writer_buffer(f->writer, size_bytes, err);
        if (!buffer)
                return err ? err->code : -EIO;
        memcpy(buffer, data, size_bytes);
        f->sent_bytes += size_bytes;
        return image_writer_data(f->writer, f->slot, offset, size_bytes, err);
}

/* `size_bytes` of the file from `offset` on, a multiple of the block's size. */
static int step_compare(struct files *f, uint64_t offset, size_t size_bytes, struct rm_error *err) {
        struct block_hash *known = f->at->blocks + offset / IMAGE_BLOCK_BYTES;
        size_t begin = 0, at = 0;
        int r = 0;

        for (size_t n; at < size_bytes && r == 0; at += n) {
                n = size_bytes - at < IMAGE_BLOCK_BYTES ? size_bytes - at : IMAGE_BLOCK_BYTES;
                if (block_changed(known++, f->step + at, n))
                        continue;
                r = run_send(f, offset + begin, f->step + begin, at - begin, err);
                begin = at + n;
        }
        return r < 0 ? r : run_send(f, offset + begin, f->step + begin, at - begin, err);
}

/* Where the file has a hole now, and the receiver may have something. */
static int hole_compare(struct files *f, uint64_t start, uint64_t end, struct rm_error *err) {
        size_t last = (size_t) ((end + IMAGE_BLOCK_BYTES - 1) / IMAGE_BLOCK_BYTES);
        int r = 0;

        for (size_t i = (size_t) (start / IMAGE_BLOCK_BYTES); i < last && r == 0; i++) {
                if (is_zero(&f->at->blocks[i]))
                        continue;
                f->at->blocks[i] = (struct block_hash) { 0 };
                r = image_writer_zero(f->writer, f->slot, i * IMAGE_BLOCK_BYTES, IMAGE_BLOCK_BYTES, err);
        }
        return r;
}

/* Where data begins at or behind `offset`, rounded down to a block. */
static uint64_t next_data(int fd, uint64_t offset, uint64_t size_bytes) {
        off_t data = lseek(fd, (off_t) offset, SEEK_DATA);
        uint64_t start;

        if (data < 0)
                return errno == ENXIO ? size_bytes : offset;
        start = (uint64_t) data / IMAGE_BLOCK_BYTES * IMAGE_BLOCK_BYTES;
        if (start < offset)
                start = offset;
        return start < size_bytes ? start : size_bytes;
}

/* Compares a file of `size_bytes`; while it changes it may have become shorter. */
static int contents_compare(struct files *f, int fd, uint64_t size_bytes, struct rm_error *err) {
        uint64_t offset = 0, data_end = 0;

        while (offset < size_bytes) {
                size_t want = size_bytes - offset < STEP_BYTES ? (size_t) (size_bytes - offset) : STEP_BYTES;
                ssize_t n;
                int r;

                if (offset >= data_end) {
                        uint64_t start = next_data(fd, offset, size_bytes);
                        off_t hole;

                        r = hole_compare(f, offset, start, err);
                        if (r < 0)
                                return r;
                        offset = start;
                        hole = lseek(fd, (off_t) offset, SEEK_HOLE);
                        data_end = hole < 0 || (uint64_t) hole > size_bytes ? size_bytes : (uint64_t) hole;
                        continue;
                }
                if (want > data_end - offset)
                        want = (size_t) (data_end - offset);
                n = pread(fd, f->step, want, (off_t) offset);
                if (n < 0 && f->frozen)
                        return error_sys(err, -errno, "read a file of '%s' that went ahead", f->at->tree->role);
                if (n <= 0)
                        return f->frozen ? error_set(err, -EIO, "a file of '%s' changes in the freeze", f->at->tree->role) : 0;
                r = step_compare(f, offset, (size_t) n, err);
                if (r == 0)
                        r = f->hooks->poll(f->hooks->ctx, "files", err);
                if (r < 0)
                        return r;
                /* A file that gives less than was asked for was cut off meanwhile, and the next
                 * round, or the freeze, sees its size. */
                offset += (size_t) n == want ? (uint64_t) n : size_bytes;
        }
        return 0;
}

static int object_open(struct files *f, const struct file *file, struct rm_error *err) {
        char path[16];
        const struct image_object object = {
                .kind = RM__IMAGE_KIND__IMAGE_KIND_AHEAD, .role = file->tree->role, .path = path, .target = ""
        };

        (void) snprintf(path, sizeof(path), "%u", file->number);
        return image_writer_open(f->writer, &object, &f->slot, err);
}

/* The receiver forgets it. */
static int file_drop(struct files *f, struct file *file, struct rm_error *err) {
        int r = object_open(f, file, err);

        if (r == 0)
                r = image_writer_close(f->writer, f->slot, 0, err);
        file_remove(f, file);
        return r;
}

/* Sends a file that is in use: its size is not 0. */
static int file_send(struct files *f, struct file *file, int fd, uint64_t size_bytes, struct rm_error *err) {
        int r = object_open(f, file, err);

        f->at = file;
        file_resize(file, size_bytes);
        if (r == 0)
                r = contents_compare(f, fd, size_bytes, err);
        return r < 0 ? r : image_writer_close(f->writer, f->slot, size_bytes, err);
}

/* ---- a round ---- */

/* Visits one file. A file that cannot be opened, or has become something else, is passed over. */
static int file_visit(struct files *f, struct tree *tree, int dir_fd, const char *name, const struct stat *found,
                      struct rm_error *err) {
        struct file *file = file_find(tree, found->st_ino);
        cleanup_close int fd = -1;
        struct stat st;

        if (!is_worth_it(found) || (!file && (uint64_t) found->st_size < FILE_LEAST_BYTES))
                return 0;
        if (file && file->seen == f->round)
                return 0;
        if (file && f->frozen) {
                file->seen = f->round;
                return 0;
        }
        fd = f->frozen ? -1 : openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_ino != found->st_ino || st.st_dev != tree->dev ||
            !is_worth_it(&st))
                return 0;
        if (!file)
                file = file_add(f, tree, st.st_ino);
        if (!file)
                return 0;
        file->seen = f->round;
        return file_send(f, file, fd, (uint64_t) st.st_size, err);
}

static int directory_visit(struct files *f, struct tree *tree, int dir_fd, const char *name, unsigned depth, struct rm_error *err);

static int entry_visit(struct files *f, struct tree *tree, int dir_fd, const char *name, unsigned depth, struct rm_error *err) {
        struct stat st;
        int r;

        if (f->n_names++ >= NAMES_MAX || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_dev != tree->dev)
                return 0;
        r = f->n_names % 64 == 0 ? f->hooks->poll(f->hooks->ctx, "files", err) : 0;
        if (r < 0 || S_ISREG(st.st_mode))
                return r < 0 ? r : file_visit(f, tree, dir_fd, name, &st, err);
        if (!S_ISDIR(st.st_mode) || depth >= DEPTH_MAX)
                return 0;
        return directory_visit(f, tree, dir_fd, name, depth + 1, err);
}

static int directory_visit(struct files *f, struct tree *tree, int dir_fd, const char *name, unsigned depth, struct rm_error *err) {
        cleanup_dir DIR *dir = opendir_at(dir_fd, name);
        const char *below;
        int r = 0;

        while (r == 0 && (below = next_name(dir)))
                r = entry_visit(f, tree, dirfd(dir), below, depth, err);
        return r;
}

static int unseen_drop(struct files *f, struct tree *tree, struct rm_error *err) {
        struct file *file, *next;
        int r = 0;

        HASH_ITER (hh, tree->files, file, next)
                if (r == 0 && file->seen != f->round)
                        r = file_drop(f, file, err);
        return r;
}

static int round_run(struct files *f, struct rm_error *err) {
        int r = 0;

        f->round++;
        f->n_names = 0;
        f->sent_bytes = 0;
        for (size_t i = 0; i < f->n_trees && r == 0; i++) {
                r = directory_visit(f, &f->trees[i], AT_FDCWD, f->trees[i].path, 0, err);
                if (r == 0)
                        r = unseen_drop(f, &f->trees[i], err);
        }
        return r < 0 ? r : f->hooks->idle(f->hooks->ctx, err);
}

int files_rounds(struct files *f, const struct mover_hooks *hooks, struct rm_error *err) {
        uint64_t begin_usec;
        int r;

        f->hooks = hooks;
        f->rounds.max = hooks->rounds_max ? hooks->rounds_max : ROUNDS_MAX;
        do {
                begin_usec = now_usec();
                r = round_run(f, err);
        } while (r == 0 && rounds_another(&f->rounds, f->sent_bytes) &&
                 rounds_in_time(hooks->deadline, now_usec(), now_usec() - begin_usec));
        return r;
}

/* ---- in the freeze ---- */

int files_freeze(struct files *f, const struct mover_hooks *hooks, struct rm_error *err) {
        f->hooks = hooks;
        f->frozen = true;
        return round_run(f, err);
}

static uint32_t ahead_number(void *ctx, const char *role, const struct stat *st) {
        const struct files *f = ctx;

        for (size_t i = 0; i < f->n_trees; i++) {
                const struct file *file = file_find(&f->trees[i], st->st_ino);

                if (file && strcmp(f->trees[i].role, role) == 0 && f->trees[i].dev == st->st_dev)
                        return file->number;
        }
        return 0;
}

/* The contents of the file of that number are to be as they are now. */
static int ahead_contents(void *ctx, uint32_t slot, int fd, const struct stat *st, struct rm_error *err) {
        struct files *f = ctx;

        for (size_t i = 0; i < f->n_trees; i++) {
                struct file *file = f->trees[i].dev == st->st_dev ? file_find(&f->trees[i], st->st_ino) : NULL;

                if (!file)
                        continue;
                if (!is_worth_it(st))
                        return error_set(err, -EIO, "a file of '%s' changes in the freeze", f->trees[i].role);
                f->at = file;
                f->slot = slot;
                file_resize(file, (uint64_t) st->st_size);
                return contents_compare(f, fd, (uint64_t) st->st_size, err);
        }
        return error_set(err, -EIO, "a file of that number did not go ahead");
}

void files_options(struct files *f, struct image_tree_options *options) {
        options->ahead_ctx = f;
        options->ahead_number = ahead_number;
        options->ahead_contents = ahead_contents;
}
