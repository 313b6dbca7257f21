#include "daemon/pages/page_store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/util.h"
#include "daemon/pages/maps.h"

enum {
        WORD_BITS = 64,
        CHUNK_WORDS = 128,
        CHUNK_PAGES = CHUNK_WORDS * WORD_BITS, /* 32 MiB of addresses */
        COPY_BYTES = 256 << 10,
};

/* More than what any process has, and what is remembered of it takes 64 MiB at most. */
#define ZERO_MAX_BYTES (UINT64_C(1) << 40)

/* Which pages of a part of the addresses are there. Looking for the end of a run in the file would
 * walk over each page of it. */
struct chunk {
        uint64_t number; /* of its first page, divided by CHUNK_PAGES */
        size_t pages;
        uint64_t there[CHUNK_WORDS];
        uint64_t *keep; /* what page_store_keep() was told; NULL: nothing */
        uint64_t *zero; /* came as zeros; NULL: nothing has */
        UT_hash_handle hh;
};

struct page_store {
        int fd;
        struct chunk *chunks;
        uint64_t pages;
};

/* ---- the bitmap ---- */

static struct chunk *find_chunk(const struct page_store *store, uint64_t number) {
        struct chunk *chunk;

        HASH_FIND(hh, store->chunks, &number, sizeof(number), chunk);
        return chunk;
}

static struct chunk *make_chunk(struct page_store *store, uint64_t number) {
        struct chunk *chunk = find_chunk(store, number);

        if (!chunk) {
                chunk = xcalloc(1, sizeof(*chunk));
                chunk->number = number;
                HASH_ADD(hh, store->chunks, number, sizeof(chunk->number), chunk);
        }
        return chunk;
}

static void free_chunk(struct page_store *store, struct chunk *chunk) {
        HASH_DEL(store->chunks, chunk);
        free(chunk->keep);
        free(chunk->zero);
        free(chunk);
}

static bool bit_get(const uint64_t *bits, uint64_t i) {
        return (bits[i / WORD_BITS] >> (i % WORD_BITS) & 1) != 0;
}

/* [from, to) of one chunk's bits, a word at a time. */
static void bits_put(uint64_t *bits, uint64_t from, uint64_t to, bool value) {
        while (from < to) {
                uint64_t first = from % WORD_BITS;
                uint64_t n = WORD_BITS - first < to - from ? WORD_BITS - first : to - from;
                uint64_t mask = (n == WORD_BITS ? UINT64_MAX : (UINT64_C(1) << n) - 1) << first;

                if (value)
                        bits[from / WORD_BITS] |= mask;
                else
                        bits[from / WORD_BITS] &= ~mask;
                from += n;
        }
}

static void count(struct page_store *store, struct chunk *chunk) {
        size_t pages = 0;

        for (size_t i = 0; i < CHUNK_WORDS; i++)
                pages += (size_t) __builtin_popcountll(chunk->there[i]);
        store->pages += pages - chunk->pages;
        chunk->pages = pages;
        if (pages == 0 && !chunk->zero)
                free_chunk(store, chunk);
}

/* Clips pages [from, to) to those in this chunk, as bits of it. */
static bool clip(const struct chunk *chunk, uint64_t from, uint64_t to, uint64_t *ret_from, uint64_t *ret_to) {
        uint64_t begin = chunk->number * CHUNK_PAGES;

        if (to <= begin || from >= begin + CHUNK_PAGES)
                return false;
        *ret_from = from > begin ? from - begin : 0;
        *ret_to = to < begin + CHUNK_PAGES ? to - begin : CHUNK_PAGES;
        return true;
}

static void mark_there(struct page_store *store, uint64_t from, uint64_t to) {
        for (uint64_t number = from / CHUNK_PAGES; number <= (to - 1) / CHUNK_PAGES; number++) {
                struct chunk *chunk = make_chunk(store, number);
                uint64_t a, b;

                if (clip(chunk, from, to, &a, &b)) {
                        bits_put(chunk->there, a, b, true);
                        if (chunk->zero)
                                bits_put(chunk->zero, a, b, false);
                }
                count(store, chunk);
        }
}

/* Calls `visit` for each chunk that has some of the pages. A range may be far wider than all there
 * is. */
static void each_chunk(struct page_store *store, uint64_t from, uint64_t to,
                       void (*visit)(struct page_store *store, struct chunk *chunk, uint64_t a, uint64_t b)) {
        uint64_t first = from / CHUNK_PAGES, last = (to - 1) / CHUNK_PAGES, a, b;
        struct chunk *chunk, *next;

        if (last - first >= HASH_COUNT(store->chunks)) {
                HASH_ITER (hh, store->chunks, chunk, next) {
                        if (clip(chunk, from, to, &a, &b))
                                visit(store, chunk, a, b);
                }
                return;
        }
        for (uint64_t number = first; number <= last; number++) {
                chunk = find_chunk(store, number);
                if (chunk && clip(chunk, from, to, &a, &b))
                        visit(store, chunk, a, b);
        }
}

static void mark_gone(struct page_store *store, struct chunk *chunk, uint64_t a, uint64_t b) {
        bits_put(chunk->there, a, b, false);
        count(store, chunk);
}

static void mark_keep(struct page_store *store, struct chunk *chunk, uint64_t a, uint64_t b) {
        if (!chunk->keep)
                chunk->keep = xcalloc(CHUNK_WORDS, sizeof(*chunk->keep));
        bits_put(chunk->keep, a, b, true);
}

/* ---- create and destroy ---- */

static bool is_range(uint64_t start, uint64_t end) {
        return start < end && end <= STORE_END && start % PAGES_PAGE_BYTES == 0 && end % PAGES_PAGE_BYTES == 0;
}

static struct page_store *make(int fd) {
        struct page_store *store = xcalloc(1, sizeof(*store));

        store->fd = fd;
        return store;
}

int page_store_create(const char *name, struct page_store **ret) {
        int fd = memfd_create(name, MFD_CLOEXEC);

        if (fd < 0)
                return -errno;
        *ret = make(fd);
        return 0;
}

void page_store_destroy(struct page_store *store) {
        struct chunk *chunk, *next;

        if (!store)
                return;
        HASH_ITER (hh, store->chunks, chunk, next) {
                free_chunk(store, chunk);
        }
        cleanup_close_fd(&store->fd);
        free(store);
}

int page_store_adopt(int fd, struct page_store **ret) {
        struct page_store *store = make(fd);
        off_t start, end = 0;
        int r = 0;

        while (r == 0 && (start = lseek(fd, end, SEEK_DATA)) >= 0) {
                end = lseek(fd, start, SEEK_HOLE);
                /* A file that is written ends in a page; a hole begins with one. */
                if (end < 0 || !is_range((uint64_t) start, (uint64_t) end))
                        r = -EBADMSG;
                else
                        mark_there(store, (uint64_t) start / PAGES_PAGE_BYTES, (uint64_t) end / PAGES_PAGE_BYTES);
        }
        if (r == 0 && errno != ENXIO)
                r = -errno;
        if (r < 0) {
                store->fd = -1; /* remains the caller's */
                page_store_destroy(store);
                return r;
        }
        *ret = store;
        return 0;
}

int page_store_fd(const struct page_store *store) {
        return store->fd;
}

uint64_t page_store_bytes(const struct page_store *store) {
        return store->pages * PAGES_PAGE_BYTES;
}

/* ---- contents ---- */

int page_store_write(struct page_store *store, uint64_t address, const void *data, size_t size_bytes) {
        size_t done = 0;
        int r = 0;

        if (size_bytes > STORE_END || !is_range(address, address + size_bytes))
                return -EINVAL;
        while (done < size_bytes && r == 0) {
                ssize_t n = pwrite(store->fd, (const uint8_t *) data + done, size_bytes - done, (off_t) (address + done));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        r = n < 0 ? -errno : -EIO;
                else
                        done += (size_t) n;
        }
        /* A page of which only a part was written counts as there: to be written again, or
         * dropped. */
        if (done > 0)
                mark_there(store, address / PAGES_PAGE_BYTES, (address + done + PAGES_PAGE_BYTES - 1) / PAGES_PAGE_BYTES);
        return r;
}

int page_store_read(const struct page_store *store, uint64_t address, void *data, size_t size_bytes) {
        size_t done = 0;

        if (size_bytes > STORE_END || !is_range(address, address + size_bytes))
                return -EINVAL;
        while (done < size_bytes) {
                ssize_t n = pread(store->fd, (uint8_t *) data + done, size_bytes - done, (off_t) (address + done));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -ENODATA;
                done += (size_t) n;
        }
        return 0;
}

static int punch(const struct page_store *store, uint64_t start, uint64_t end) {
        int r;

        do
                r = fallocate(store->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t) start, (off_t) (end - start));
        while (r < 0 && errno == EINTR);
        return r < 0 ? -errno : 0;
}

int page_store_drop(struct page_store *store, uint64_t start, uint64_t end) {
        int r;

        if (!is_range(start, end))
                return -EINVAL;
        r = punch(store, start, end);
        if (r == 0)
                each_chunk(store, start / PAGES_PAGE_BYTES, end / PAGES_PAGE_BYTES, mark_gone);
        return r;
}

static void mark_zero(struct page_store *store, uint64_t from, uint64_t to) {
        for (uint64_t number = from / CHUNK_PAGES; number <= (to - 1) / CHUNK_PAGES; number++) {
                struct chunk *chunk = make_chunk(store, number);
                uint64_t a, b;

                if (!chunk->zero)
                        chunk->zero = xcalloc(CHUNK_WORDS, sizeof(*chunk->zero));
                if (clip(chunk, from, to, &a, &b))
                        bits_put(chunk->zero, a, b, true);
        }
}

int page_store_zero(struct page_store *store, uint64_t start, uint64_t end) {
        int r = is_range(start, end) && end - start > ZERO_MAX_BYTES ? -EINVAL : page_store_drop(store, start, end);

        if (r == 0)
                mark_zero(store, start / PAGES_PAGE_BYTES, end / PAGES_PAGE_BYTES);
        return r;
}

static uint64_t word_come(const struct chunk *chunk, uint64_t word) {
        return chunk->there[word] | (chunk->zero ? chunk->zero[word] : 0);
}

/* The first of [from, to) of one chunk's pages that has not come, or `to`; a word at a time. */
static uint64_t chunk_missing(const struct chunk *chunk, uint64_t from, uint64_t to) {
        while (from < to) {
                uint64_t missing = ~word_come(chunk, from / WORD_BITS) >> (from % WORD_BITS);

                if (missing) {
                        from += (uint64_t) __builtin_ctzll(missing);
                        return from < to ? from : to;
                }
                from = (from / WORD_BITS + 1) * WORD_BITS;
        }
        return to;
}

uint64_t page_store_missing(const struct page_store *store, uint64_t start, uint64_t end) {
        uint64_t from = start / PAGES_PAGE_BYTES, to = end / PAGES_PAGE_BYTES, a, b, at;

        for (uint64_t number = from / CHUNK_PAGES; from < to && number <= (to - 1) / CHUNK_PAGES; number++) {
                const struct chunk *chunk = find_chunk(store, number);
                uint64_t begin = number * CHUNK_PAGES;

                if (!chunk)
                        return (begin > from ? begin : from) * PAGES_PAGE_BYTES;
                if (clip(chunk, from, to, &a, &b) && (at = chunk_missing(chunk, a, b)) < b)
                        return (begin + at) * PAGES_PAGE_BYTES;
        }
        return end;
}

uint64_t page_store_come_bytes(const struct page_store *store) {
        uint64_t pages = 0;

        for (const struct chunk *chunk = store->chunks; chunk; chunk = chunk->hh.next)
                for (uint64_t word = 0; word < CHUNK_WORDS; word++)
                        pages += (uint64_t) __builtin_popcountll(word_come(chunk, word));
        return pages * PAGES_PAGE_BYTES;
}

int page_store_keep(struct page_store *store, uint64_t start, uint64_t end) {
        if (!is_range(start, end))
                return -EINVAL;
        each_chunk(store, start / PAGES_PAGE_BYTES, end / PAGES_PAGE_BYTES, mark_keep);
        return 0;
}

/* Punches each run of pages that are there and are not to be kept. */
static int drop_others(struct page_store *store, struct chunk *chunk) {
        uint64_t base = chunk->number * CHUNK_PAGES;
        int r = 0;

        for (uint64_t i = 0; i < CHUNK_PAGES && r == 0;) {
                uint64_t first = i;

                while (i < CHUNK_PAGES && bit_get(chunk->there, i) && !(chunk->keep && bit_get(chunk->keep, i)))
                        i++;
                if (i == first) {
                        i++;
                        continue;
                }
                r = punch(store, (base + first) * PAGES_PAGE_BYTES, (base + i) * PAGES_PAGE_BYTES);
                if (r == 0)
                        bits_put(chunk->there, first, i, false);
        }
        free(chunk->keep);
        chunk->keep = NULL;
        count(store, chunk);
        return r;
}

int page_store_drop_others(struct page_store *store) {
        struct chunk *chunk, *next;
        int r = 0;

        HASH_ITER (hh, store->chunks, chunk, next) {
                int one = drop_others(store, chunk);

                if (r == 0)
                        r = one;
        }
        return r;
}

/* ---- what is there ---- */

bool page_store_has(const struct page_store *store, uint64_t address) {
        uint64_t page = address / PAGES_PAGE_BYTES;
        const struct chunk *chunk = find_chunk(store, page / CHUNK_PAGES);

        return chunk && bit_get(chunk->there, page % CHUNK_PAGES);
}

bool page_store_next(const struct page_store *store, uint64_t from, uint64_t max_bytes, uint64_t *ret_start, uint64_t *ret_end) {
        uint64_t start = from / PAGES_PAGE_BYTES * PAGES_PAGE_BYTES, end;

        if (store->pages == 0 || from >= STORE_END)
                return false;
        /* The kernel has the pages in order. Where a file's page is larger than ours it may tell
         * too much. */
        while (!page_store_has(store, start)) {
                off_t data = lseek(store->fd, (off_t) start, SEEK_DATA);

                if (data < 0)
                        return false;
                start = (uint64_t) data > start ? (uint64_t) data : start + PAGES_PAGE_BYTES;
        }
        end = start + PAGES_PAGE_BYTES;
        while (end - start < max_bytes && page_store_has(store, end))
                end += PAGES_PAGE_BYTES;
        *ret_start = start;
        *ret_end = end;
        return true;
}

/* ---- for mremap(2) and fork(2) of the process ---- */

/* `to` is in `target`, which may be the same store. */
static int copy_range(const struct page_store *store, uint64_t from, uint64_t end, struct page_store *target, uint64_t to) {
        cleanup_free uint8_t *data = xcalloc(1, COPY_BYTES);
        uint64_t a, b;
        int r = 0;

        for (uint64_t at = from; r == 0 && at < end && page_store_next(store, at, COPY_BYTES, &a, &b) && a < end; at = b) {
                if (b > end)
                        b = end;
                r = page_store_read(store, a, data, b - a);
                if (r == 0)
                        r = page_store_write(target, to + (a - from), data, b - a);
        }
        return r;
}

int page_store_move(struct page_store *store, uint64_t from, uint64_t to, uint64_t size_bytes) {
        int r;

        if (size_bytes > STORE_END || from > STORE_END || to > STORE_END || !is_range(from, from + size_bytes) ||
            !is_range(to, to + size_bytes) || (from < to + size_bytes && to < from + size_bytes))
                return -EINVAL;
        r = page_store_drop(store, to, to + size_bytes);
        if (r == 0)
                r = copy_range(store, from, from + size_bytes, store, to);
        return r < 0 ? r : page_store_drop(store, from, from + size_bytes);
}

int page_store_copy(const struct page_store *from, struct page_store *store) {
        return copy_range(from, 0, STORE_END, store, 0);
}
