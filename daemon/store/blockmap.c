#include "daemon/store/blockmap.h"

#include <string.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/util.h"

#define EXTENT_BLOCKS 512U
/* Most files are small. */
#define SPACE_MIN 4U

struct extent {
        uint64_t number; /* of its first place, divided by EXTENT_BLOCKS */
        uint32_t space;
        uint32_t *numbers;
        UT_hash_handle hh;
};

struct blockmap {
        struct extent *extents;
        struct extent *last; /* contents come one after another */
};

struct blockmap *blockmap_create(void) {
        return xcalloc(1, sizeof(struct blockmap));
}

static void extent_grow(struct extent *e, uint32_t space) {
        e->numbers = xrealloc(e->numbers, space * sizeof(*e->numbers));
        memset(e->numbers + e->space, 0xff, (space - e->space) * sizeof(*e->numbers));
        e->space = space;
}

static struct extent *extent_add(struct blockmap *m, uint64_t number, uint32_t space) {
        struct extent *e = xcalloc(1, sizeof(*e));

        e->number = number;
        extent_grow(e, space);
        HASH_ADD(hh, m->extents, number, sizeof(e->number), e);
        return e;
}

static void extent_drop(struct blockmap *m, struct extent *e) {
        if (m->last == e)
                m->last = NULL;
        HASH_DEL(m->extents, e);
        free(e->numbers);
        free(e);
}

struct blockmap *blockmap_copy(const struct blockmap *m) {
        struct blockmap *copy = blockmap_create();

        for (const struct extent *e = m->extents; e; e = e->hh.next)
                memcpy(extent_add(copy, e->number, e->space)->numbers, e->numbers, e->space * sizeof(*e->numbers));
        return copy;
}

void blockmap_destroy(struct blockmap *m) {
        struct extent *e, *next;

        if (!m)
                return;
        HASH_ITER (hh, m->extents, e, next) {
                extent_drop(m, e);
        }
        free(m);
}

static struct extent *extent_find(struct blockmap *m, uint64_t number) {
        struct extent *e = m->last;

        if (!e || e->number != number)
                HASH_FIND(hh, m->extents, &number, sizeof(number), e);
        if (e)
                m->last = e;
        return e;
}

void blockmap_put(struct blockmap *m, uint64_t place, uint32_t number) {
        struct extent *e = extent_find(m, place / EXTENT_BLOCKS);
        uint32_t at = (uint32_t) (place % EXTENT_BLOCKS), space = e ? e->space : SPACE_MIN;

        if (number == BLOCKMAP_NONE && (!e || at >= e->space))
                return;
        while (space <= at)
                space *= 2;
        if (!e)
                m->last = e = extent_add(m, place / EXTENT_BLOCKS, space);
        else if (space > e->space)
                extent_grow(e, space);
        e->numbers[at] = number;
}

uint32_t blockmap_get(struct blockmap *m, uint64_t place) {
        const struct extent *e = extent_find(m, place / EXTENT_BLOCKS);

        return e && place % EXTENT_BLOCKS < e->space ? e->numbers[place % EXTENT_BLOCKS] : BLOCKMAP_NONE;
}

static void extent_cut(struct blockmap *m, struct extent *e, uint64_t from, uint64_t to) {
        uint64_t begin = e->number * EXTENT_BLOCKS, end = begin + e->space;

        if (from <= begin && to >= end) {
                extent_drop(m, e);
                return;
        }
        from = from > begin ? from : begin;
        to = to < end ? to : end;
        if (from < to)
                memset(e->numbers + (from - begin), 0xff, (to - from) * sizeof(*e->numbers));
}

void blockmap_cut(struct blockmap *m, uint64_t from, uint64_t to) {
        uint64_t first = from / EXTENT_BLOCKS, last = to > 0 ? (to - 1) / EXTENT_BLOCKS : 0;
        struct extent *e, *next;

        if (from >= to)
                return;
        /* Ranges come from outside: also much wider ones than there are extents. */
        if (last - first >= HASH_COUNT(m->extents)) {
                HASH_ITER (hh, m->extents, e, next) {
                        if (e->number >= first && e->number <= last)
                                extent_cut(m, e, from, to);
                }
                return;
        }
        for (uint64_t number = first; number <= last; number++) {
                e = extent_find(m, number);
                if (e)
                        extent_cut(m, e, from, to);
        }
}

static int extents_compare(const struct extent *a, const struct extent *b) {
        return (a->number > b->number) - (a->number < b->number);
}

void blockmap_begin(struct blockmap *m, struct blockmap_walk *ret) {
        HASH_SORT(m->extents, extents_compare);
        *ret = (struct blockmap_walk) { .extent = m->extents };
}

bool blockmap_step(struct blockmap_walk *walk, uint64_t *ret_place, uint32_t *ret_number) {
        for (const struct extent *e = walk->extent; e; walk->extent = e = e->hh.next, walk->at = 0)
                while (walk->at < e->space) {
                        size_t at = walk->at++;

                        if (e->numbers[at] == BLOCKMAP_NONE)
                                continue;
                        *ret_place = e->number * EXTENT_BLOCKS + at;
                        *ret_number = e->numbers[at];
                        return true;
                }
        return false;
}
