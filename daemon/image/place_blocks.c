#include "daemon/image/place_blocks.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/util.h"

/* A descriptor each. Blocks of further files stay where they are, too. */
#define FILES_MAX 1024U
#define GROUP_BLOCKS 64U

/* The place of a block: 0: where it came; else its file, counted from 1, and the block's place in
 * that. */
#define SPOT_FILE_SHIFT 40U
_Static_assert(IMAGE_OBJECT_MAX_BYTES / IMAGE_BLOCK_BYTES <= UINT64_C(1) << SPOT_FILE_SHIFT, "a block's place fits");

/* Blocks that follow each other; only groups of which one has moved. */
struct group {
        uint64_t number; /* of its first block, divided by GROUP_BLOCKS */
        uint64_t spots[GROUP_BLOCKS];
        UT_hash_handle hh;
};

struct place_blocks {
        int fd; /* -1: none came */
        struct group *groups;
        uint32_t n_files;
        int files[FILES_MAX];
};

struct place_blocks *place_blocks_create(void) {
        struct place_blocks *b = xcalloc(1, sizeof(*b));

        b->fd = -1;
        return b;
}

void place_blocks_release(struct place_blocks *b) {
        struct group *group, *next;

        HASH_ITER (hh, b->groups, group, next) {
                HASH_DEL(b->groups, group);
                free(group);
        }
        while (b->n_files > 0)
                (void) close(b->files[--b->n_files]);
}

void place_blocks_destroy(struct place_blocks *b) {
        if (!b)
                return;
        place_blocks_release(b);
        cleanup_close_fd(&b->fd);
        free(b);
}

/* Without a name, so that CRIU never sees it and nothing has to be removed. */
int place_blocks_open(struct place_blocks *b, const char *directory, int *ret_fd, struct rm_error *err) {
        if (b->fd >= 0)
                return error_set(err, -EBADMSG, "pre-copied blocks were sent twice");
        b->fd = open(directory, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
        if (b->fd >= 0)
                *ret_fd = fcntl(b->fd, F_DUPFD_CLOEXEC, 3);
        if (b->fd < 0 || *ret_fd < 0)
                return error_sys(err, -errno, "make a file in %s", directory);
        return 0;
}

static uint64_t *spot_find(const struct place_blocks *b, uint64_t block) {
        uint64_t number = block / GROUP_BLOCKS;
        struct group *group;

        HASH_FIND(hh, b->groups, &number, sizeof(number), group);
        return group ? &group->spots[block % GROUP_BLOCKS] : NULL;
}

static uint64_t spot_get(const struct place_blocks *b, uint64_t block) {
        const uint64_t *spot = spot_find(b, block);

        return spot ? *spot : 0;
}

static void spot_set(struct place_blocks *b, uint64_t block, uint64_t value) {
        uint64_t *spot = spot_find(b, block);
        struct group *group;

        if (!spot) {
                group = xcalloc(1, sizeof(*group));
                group->number = block / GROUP_BLOCKS;
                HASH_ADD(hh, b->groups, number, sizeof(group->number), group);
                spot = &group->spots[block % GROUP_BLOCKS];
        }
        *spot = value;
}

/* How many of the `n` blocks lie one after another in one file. */
static size_t together(const struct place_blocks *b, uint64_t number, size_t n) {
        uint64_t first = spot_get(b, number);
        size_t k = 1;

        while (k < n && spot_get(b, number + k) == (first ? first + k : 0))
                k++;
        return k;
}

static int read_from(int fd, uint64_t offset, uint8_t *out, size_t size_bytes) {
        while (size_bytes > 0) {
                ssize_t n = pread(fd, out, size_bytes, (off_t) offset);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -ENODATA;
                out += n;
                offset += (uint64_t) n;
                size_bytes -= (size_t) n;
        }
        return 0;
}

int place_blocks_fetch(const struct place_blocks *b, uint64_t number, size_t n, void *ret_blocks) {
        uint8_t *out = ret_blocks;
        int r = b->fd < 0 ? -ENOENT : 0;

        while (r == 0 && n > 0) {
                uint64_t spot = spot_get(b, number);
                size_t k = together(b, number, n);
                uint64_t block = spot ? spot & ((UINT64_C(1) << SPOT_FILE_SHIFT) - 1) : number;

                r = read_from(spot ? b->files[(spot >> SPOT_FILE_SHIFT) - 1] : b->fd, block * IMAGE_BLOCK_BYTES, out,
                              k * IMAGE_BLOCK_BYTES);
                number += k;
                n -= k;
                out += k * IMAGE_BLOCK_BYTES;
        }
        return r;
}

static bool file_known(struct place_blocks *b, int fd, uint32_t *file) {
        int copy;

        if (*file > 0)
                return true;
        copy = b->n_files < FILES_MAX ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
        if (copy < 0)
                return false;
        b->files[b->n_files++] = copy;
        *file = b->n_files;
        return true;
}

size_t place_blocks_used(struct place_blocks *b, uint64_t number, size_t n, int fd, uint32_t *file, uint64_t offset) {
        size_t moved = 0;

        if (!file_known(b, fd, file))
                return 0;
        for (size_t k; n > 0; number += k, n -= k, offset += k * IMAGE_BLOCK_BYTES) {
                k = together(b, number, n);
                /* Blocks that have moved stay; and when no hole can be made, they are here
                 * twice. */
                if (spot_get(b, number) > 0 || fallocate(b->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                                         (off_t) (number * IMAGE_BLOCK_BYTES), (off_t) (k * IMAGE_BLOCK_BYTES)) < 0)
                        continue;
                for (size_t i = 0; i < k; i++)
                        spot_set(b, number + i, (uint64_t) *file << SPOT_FILE_SHIFT | (offset / IMAGE_BLOCK_BYTES + i));
                moved += k;
        }
        return moved;
}
