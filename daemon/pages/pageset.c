#include "daemon/pages/pageset.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/pages/maps.h"
#include "daemon/pages/page_store.h"

enum {
        WORD_BITS = 64,
        PART_WORDS = 128,
        PART_PAGES = PART_WORDS * WORD_BITS, /* 32 MiB of addresses */
        FILE_RUNS = 512,                     /* read or written at once */
};

struct part {
        uint64_t number; /* of its first page, divided by PART_PAGES */
        unsigned pages;
        uint64_t bits[PART_WORDS];
};

struct pageset {
        struct part **parts; /* by number */
        size_t n;
        uint64_t pages;
};

struct pageset *pageset_create(void) {
        return xcalloc(1, sizeof(struct pageset));
}

void pageset_destroy(struct pageset *set) {
        if (!set)
                return;
        for (size_t i = 0; i < set->n; i++)
                free(set->parts[i]);
        free(set->parts);
        free(set);
}

/* The first one with this number or a higher one. */
static size_t find_part(const struct pageset *set, uint64_t number) {
        size_t low = 0, high = set->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (set->parts[middle]->number < number)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static struct part *make_part(struct pageset *set, uint64_t number) {
        size_t i = find_part(set, number);

        if (i < set->n && set->parts[i]->number == number)
                return set->parts[i];
        set->parts = xrealloc(set->parts, (set->n + 1) * sizeof(struct part *));
        memmove(set->parts + i + 1, set->parts + i, (set->n - i) * sizeof(struct part *));
        set->parts[i] = xcalloc(1, sizeof(struct part));
        set->parts[i]->number = number;
        set->n++;
        return set->parts[i];
}

/* [from, to) of the pages of one part, a word at a time. */
static void put(struct pageset *set, struct part *part, unsigned from, unsigned to, bool value) {
        while (from < to) {
                unsigned first = from % WORD_BITS;
                unsigned n = WORD_BITS - first < to - from ? WORD_BITS - first : to - from;
                uint64_t mask = (n == WORD_BITS ? UINT64_MAX : (UINT64_C(1) << n) - 1) << first;
                uint64_t *word = &part->bits[from / WORD_BITS];
                unsigned before = (unsigned) __builtin_popcountll(*word), after;

                *word = value ? *word | mask : *word & ~mask;
                after = (unsigned) __builtin_popcountll(*word);
                part->pages = part->pages - before + after;
                set->pages = set->pages - before + after;
                from += n;
        }
}

/* Clips pages [first, last) to those in the part with that number. */
static void clip(uint64_t number, uint64_t first, uint64_t last, unsigned *ret_from, unsigned *ret_to) {
        uint64_t begin = number * PART_PAGES;

        *ret_from = first > begin ? (unsigned) (first - begin) : 0;
        *ret_to = last < begin + PART_PAGES ? (unsigned) (last - begin) : PART_PAGES;
}

int pageset_add(struct pageset *set, uint64_t start, uint64_t end) {
        uint64_t first = start / PAGES_PAGE_BYTES, last = end / PAGES_PAGE_BYTES;

        if (start >= end || end > STORE_END || start % PAGES_PAGE_BYTES || end % PAGES_PAGE_BYTES)
                return -EINVAL;
        for (uint64_t number = first / PART_PAGES; number <= (last - 1) / PART_PAGES; number++) {
                unsigned from, to;

                clip(number, first, last, &from, &to);
                put(set, make_part(set, number), from, to, true);
        }
        return 0;
}

static void drop_empty(struct pageset *set) {
        size_t n = 0;

        for (size_t i = 0; i < set->n; i++)
                if (set->parts[i]->pages > 0)
                        set->parts[n++] = set->parts[i];
                else
                        free(set->parts[i]);
        set->n = n;
}

void pageset_remove(struct pageset *set, uint64_t start, uint64_t end) {
        uint64_t first = start / PAGES_PAGE_BYTES, last = (end + PAGES_PAGE_BYTES - 1) / PAGES_PAGE_BYTES;
        bool empty = false;

        for (size_t i = find_part(set, first / PART_PAGES); start < end && i < set->n; i++) {
                unsigned from, to;

                if (set->parts[i]->number > (last - 1) / PART_PAGES)
                        break;
                clip(set->parts[i]->number, first, last, &from, &to);
                put(set, set->parts[i], from, to, false);
                empty = empty || set->parts[i]->pages == 0;
        }
        if (empty)
                drop_empty(set);
}

static bool bit(const struct part *part, unsigned i) {
        return (part->bits[i / WORD_BITS] >> (i % WORD_BITS) & 1) != 0;
}

void pageset_add_common(struct pageset *set, const struct pageset *from, uint64_t start, uint64_t end) {
        uint64_t first, last;

        while (start < end && pageset_next(from, start, end - start, &first, &last) && first < end) {
                (void) pageset_add(set, first, last < end ? last : end);
                start = last;
        }
}

bool pageset_has(const struct pageset *set, uint64_t address) {
        uint64_t page = address / PAGES_PAGE_BYTES;
        size_t i = find_part(set, page / PART_PAGES);

        return i < set->n && set->parts[i]->number == page / PART_PAGES && bit(set->parts[i], (unsigned) (page % PART_PAGES));
}

uint64_t pageset_bytes(const struct pageset *set) {
        return set->pages * PAGES_PAGE_BYTES;
}

/* The first bit at or behind `from` with that value, or PART_PAGES. */
static unsigned seek(const struct part *part, unsigned from, bool value) {
        while (from < PART_PAGES) {
                uint64_t word = value ? part->bits[from / WORD_BITS] : ~part->bits[from / WORD_BITS];

                word >>= from % WORD_BITS;
                if (word)
                        return from + (unsigned) __builtin_ctzll(word);
                from = (from / WORD_BITS + 1) * WORD_BITS;
        }
        return PART_PAGES;
}

bool pageset_next(const struct pageset *set, uint64_t from, uint64_t max_bytes, uint64_t *ret_start, uint64_t *ret_end) {
        uint64_t page = from / PAGES_PAGE_BYTES;

        for (size_t i = find_part(set, page / PART_PAGES); i < set->n; i++) {
                const struct part *part = set->parts[i];
                uint64_t begin = part->number * PART_PAGES, end;
                unsigned at = seek(part, page > begin ? (unsigned) (page - begin) : 0, true);

                if (at == PART_PAGES)
                        continue;
                end = begin + seek(part, at, false);
                if (end - begin - at > max_bytes / PAGES_PAGE_BYTES)
                        end = begin + at + max_bytes / PAGES_PAGE_BYTES;
                *ret_start = (begin + at) * PAGES_PAGE_BYTES;
                *ret_end = end * PAGES_PAGE_BYTES;
                return true;
        }
        return false;
}

/* ---- in a file ---- */

struct run {
        uint64_t start;
        uint64_t end;
};

int pageset_save(const struct pageset *set, int fd) {
        struct run runs[FILE_RUNS];
        uint64_t start, end = 0;
        size_t n = 0;
        int r = 0;

        while (r == 0 && pageset_next(set, end, UINT64_MAX, &start, &end)) {
                runs[n++] = (struct run) { htole64(start), htole64(end) };
                if (n < FILE_RUNS)
                        continue;
                r = write_all(fd, runs, sizeof(runs));
                n = 0;
        }
        return r == 0 ? write_all(fd, runs, n * sizeof(*runs)) : r;
}

/* Reads as many runs as there are. A part of one: -EBADMSG. */
static int runs_read(int fd, struct run *runs, size_t *ret_n) {
        size_t size = FILE_RUNS * sizeof(*runs), done = 0;

        while (done < size) {
                ssize_t n = read(fd, (char *) runs + done, size - done);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                done += (size_t) n;
        }
        *ret_n = done / sizeof(*runs);
        return done % sizeof(*runs) ? -EBADMSG : 0;
}

/* A wider run would take up memory out of proportion to the file. */
static int run_add(struct pageset *set, uint64_t start, uint64_t end) {
        const uint64_t part_bytes = (uint64_t) PART_PAGES * PAGES_PAGE_BYTES;

        if (start < end && start / part_bytes != (end - 1) / part_bytes)
                return -EBADMSG;
        return pageset_add(set, start, end) < 0 ? -EBADMSG : 0;
}

int pageset_load(int fd, struct pageset **ret) {
        struct pageset *set = pageset_create();
        struct run runs[FILE_RUNS];
        uint64_t last = 0;
        size_t n = 0;
        int r;

        do {
                r = runs_read(fd, runs, &n);
                for (size_t i = 0; i < n && r == 0; i++) {
                        uint64_t start = le64toh(runs[i].start);

                        r = start < last ? -EBADMSG : run_add(set, start, le64toh(runs[i].end));
                        last = le64toh(runs[i].end);
                }
        } while (r == 0 && n == FILE_RUNS);
        if (r == 0)
                *ret = set;
        else
                pageset_destroy(set);
        return r;
}
