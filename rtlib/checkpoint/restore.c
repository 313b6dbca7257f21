#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "rtlib/checkpoint/chain.h"
#include "rtlib/checkpoint/collective.h"
#include "rtlib/checkpoint/folder.h"
#include "rtlib/checkpoint/options.h"

/* The message of rank 0 to the others before each attempt. */
struct attempt {
        char directory[OPTIONS_PATH_BYTES];
        uint64_t number; /* 0: no more */
};

/* A registered array in the checkpoint. */
struct match {
        size_t number;   /* there */
        uint64_t first;  /* of this rank's elements among all */
        uint64_t passed; /* elements of the ranks of the checkpoint before the one that is read */
};

struct restoring {
        const struct rmrt_ranks *ranks;
        const struct arrays *arrays;
        struct attempt attempt;
        struct chain *chain;
        const Portable__Manifest *m; /* of the chain */
        struct match *matches;       /* by registered array */
        struct rm_error *err;
};

/* ---- does it fit? ---- */

static int type_differs(const struct array *array, const Portable__Array *there, struct rm_error *err) {
        char here_text[64], there_text[64];
        struct rmrt_type type = manifest_type(there);

        type_text(&array->type, here_text, sizeof(here_text));
        type_text(&type, there_text, sizeof(there_text));
        return error_set(err, -EINVAL, "array '%s' is registered as %s, and the checkpoint has %s", array->name, here_text,
                         there_text);
}

static int array_fits(const struct restoring *s, const struct array *array, const Portable__Array *there) {
        struct rmrt_type type = manifest_type(there);

        if (!type_equal(&array->type, &type))
                return type_differs(array, there, s->err);
        if (array->distribution != there->distribution)
                return error_set(s->err, -EINVAL, "array '%s' is registered with another distribution than the checkpoint has",
                                 array->name);
        if (s->m->big_endian != host_is_big_endian() && !type_converts(&type))
                return error_set(s->err, -EINVAL, "array '%s': long doubles cannot be converted to another byte order",
                                 array->name);
        if (array->distribution == RMRT_REPLICATED && array->count != there->counts[0])
                return error_set(s->err, -EINVAL, "array '%s' has %" PRIu64 " elements, and in the checkpoint %" PRIu64,
                                 array->name, array->count, there->counts[0]);
        if (array->distribution == RMRT_PRIVATE && s->m->n_files == (size_t) s->ranks->size &&
            array->count != there->counts[s->ranks->rank])
                return error_set(s->err, -EINVAL, "array '%s' has %" PRIu64 " elements, and in the checkpoint %" PRIu64,
                                 array->name, array->count, there->counts[s->ranks->rank]);
        return 0;
}

static int match_one(struct restoring *s, size_t i) {
        const struct array *array = &s->arrays->list[i];

        for (size_t k = 0; k < s->m->n_arrays; k++)
                if (strcmp(s->m->arrays[k]->name, array->name) == 0) {
                        s->matches[i].number = k;
                        return array_fits(s, array, s->m->arrays[k]);
                }
        return error_set(s->err, -EINVAL, "array '%s' is not in the checkpoint", array->name);
}

static int match_all(struct restoring *s) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < s->arrays->n; i++)
                r = match_one(s, i);
        for (size_t k = 0; r == 0 && k < s->m->n_arrays; k++)
                if (!arrays_find(s->arrays, s->m->arrays[k]->name))
                        r = error_set(s->err, -EINVAL, "the checkpoint has an array '%s', which is not registered",
                                      s->m->arrays[k]->name);
        return r;
}

/* Where this rank's part of a distributed array begins; on all ranks together it must be as long as
 * before. */
static int place_one(struct restoring *s, size_t i, const uint64_t *counts) {
        const struct array *array = &s->arrays->list[i];
        uint64_t sum = 0, there = manifest_total_count(s->m->arrays[s->matches[i].number]);

        for (int k = 0; k < s->ranks->size; k++) {
                if (k == s->ranks->rank)
                        s->matches[i].first = sum;
                sum += counts[k];
        }
        if (sum != there)
                return error_set(s->err, -EINVAL,
                                 "array '%s' has %" PRIu64 " elements on all ranks, and in the checkpoint %" PRIu64, array->name,
                                 sum, there);
        return 0;
}

static int place_all(struct restoring *s) {
        cleanup_free uint64_t *counts = xcalloc((size_t) s->ranks->size, sizeof(*counts));
        int r = 0, lost;

        for (size_t i = 0; i < s->arrays->n; i++) {
                if (s->arrays->list[i].distribution != RMRT_BLOCK)
                        continue;
                lost = agree_gather(s->ranks, &s->arrays->list[i].count, counts, sizeof(*counts), s->err);
                if (lost < 0)
                        return lost;
                if (r == 0)
                        r = place_one(s, i, counts);
        }
        return r;
}

/* ---- is it whole? ---- */

static void keep_first(void *ctx, const struct rm_error *err) {
        struct rm_error *first = ctx;

        if (first->code == 0)
                *first = *err;
}

/* Each rank looks at its share of the files. */
static int check_share(const struct restoring *s) {
        for (size_t rank = (size_t) s->ranks->rank; rank < s->m->n_files; rank += (size_t) s->ranks->size) {
                struct source *source = NULL;
                struct rm_error first = { 0 };
                int r = source_open(s->chain, rank, &source, s->err);

                if (r < 0)
                        return r;
                (void) source_check(source, false, keep_first, &first);
                source_close(source);
                if (first.code < 0) {
                        *s->err = first;
                        return first.code;
                }
        }
        return 0;
}

/* ---- reading ---- */

/* Finds the elements that lie both in this rank's part of the array and in that of `rank` in the
 * checkpoint. False: there are none. */
static bool overlap(const struct restoring *s, size_t i, size_t rank, uint64_t *ret_from, uint64_t *ret_count, uint64_t *ret_to) {
        const struct array *array = &s->arrays->list[i];
        const Portable__Array *there = s->m->arrays[s->matches[i].number];
        uint64_t mine = s->matches[i].first, first = s->matches[i].passed, from, end;

        *ret_from = *ret_to = 0;
        *ret_count = array->count;
        if (array->distribution == RMRT_REPLICATED)
                return rank == 0;
        if (array->distribution == RMRT_PRIVATE)
                return s->m->n_files == (size_t) s->ranks->size && rank == (size_t) s->ranks->rank;
        from = first > mine ? first : mine;
        end = first + there->counts[rank];
        end = end < mine + array->count ? end : mine + array->count;
        *ret_from = from - first;
        *ret_to = from - mine;
        *ret_count = from < end ? end - from : 0;
        return from < end;
}

static int read_array(struct restoring *s, struct source *source, size_t i, size_t rank) {
        const struct array *array = &s->arrays->list[i];
        uint64_t element = type_element_bytes(&array->type), from, count, to;
        uint8_t *memory;
        int r;

        if (!overlap(s, i, rank, &from, &count, &to) || count == 0)
                return 0;
        memory = (uint8_t *) array->ptr + to * element;
        r = source_read(source, s->matches[i].number, from * element, count * element, memory, s->err);
        if (r == 0 && s->m->big_endian != host_is_big_endian())
                type_swap(&array->type, memory, count * element);
        return r;
}

static bool needs(const struct restoring *s, size_t rank) {
        uint64_t from, count, to;

        for (size_t i = 0; i < s->arrays->n; i++)
                if (overlap(s, i, rank, &from, &count, &to) && count > 0)
                        return true;
        return false;
}

static int read_rank(struct restoring *s, size_t rank) {
        struct source *source = NULL;
        int r = source_open(s->chain, rank, &source, s->err);

        for (size_t i = 0; r == 0 && i < s->arrays->n; i++)
                r = read_array(s, source, i, rank);
        source_close(source);
        return r;
}

static int read_all_ranks(struct restoring *s) {
        int r = 0;

        for (size_t rank = 0; r == 0 && rank < s->m->n_files; rank++) {
                if (needs(s, rank))
                        r = read_rank(s, rank);
                for (size_t i = 0; i < s->arrays->n; i++)
                        s->matches[i].passed += s->m->arrays[s->matches[i].number]->counts[rank];
        }
        return r;
}

static bool leaves_private(const struct restoring *s) {
        for (size_t i = 0; i < s->arrays->n; i++)
                if (s->arrays->list[i].distribution == RMRT_PRIVATE && s->m->n_files != (size_t) s->ranks->size)
                        return true;
        return false;
}

/* ---- attempts ---- */

/* Any error that keeps this rank from reading the checkpoint counts as damage, since an older one
 * may be readable. */
static int whole(int r) {
        return r < 0 ? -EBADMSG : 0;
}

/* Nothing is written to memory before all of it was seen to be whole, on all ranks. */
static int attempt_steps(struct restoring *s, int dir) {
        int r = agree(s->ranks, whole(chain_open(dir, s->attempt.number, &s->chain, s->err)), s->err);

        if (r < 0)
                return r;
        s->m = s->chain->manifests[0];
        r = agree(s->ranks, match_all(s), s->err);
        if (r == 0)
                r = place_all(s);
        if (r == 0)
                r = agree(s->ranks, whole(check_share(s)), s->err);
        if (r < 0)
                return r;
        r = agree(s->ranks, read_all_ranks(s), s->err);
        /* Some rank's memory is between two states now. */
        return r < 0 && r != AGREEMENT_LOST ? -EIO : r;
}

/* enum rmrt_restored, or an error. */
static int attempt_restore(struct restoring *s) {
        cleanup_close int dir = folder_open(s->attempt.directory, false, s->err);
        int r = agree(s->ranks, whole(dir < 0 ? dir : 0), s->err);

        s->chain = NULL;
        memset(s->matches, 0, (s->arrays->n + 1) * sizeof(*s->matches));
        if (r == 0)
                r = attempt_steps(s, dir);
        if (r == 0)
                r = leaves_private(s) ? RMRT_RESTORED_SHARED : RMRT_RESTORED_ALL;
        chain_close(s->chain);
        return r;
}

/* Looks for a checkpoint, on rank 0. */
static int search_for(const char *directory, struct attempt *attempt, uint64_t **ret_numbers, size_t *ret_n, struct rm_error *err) {
        struct options options;
        cleanup_close int dir = -1;
        int r = options_read(directory, &options, err);

        if (r < 0)
                return r;
        memcpy(attempt->directory, options.directory, sizeof(attempt->directory));
        dir = folder_open(options.directory, false, err);
        if (dir == -ENOENT) {
                error_clear(err);
                return 0;
        }
        return dir < 0 ? dir : folder_list(dir, ret_numbers, ret_n, NULL, err);
}

static int attempts(struct restoring *s, const uint64_t *numbers, size_t n) {
        struct rm_error damage = { 0 };
        int r = RMRT_RESTORED_NOTHING;

        for (size_t i = 0;; i++) {
                int lost;

                s->attempt.number = s->ranks->rank == 0 && i < n ? numbers[i] : 0;
                lost = agree_broadcast(s->ranks, &s->attempt, sizeof(s->attempt), s->err);
                if (lost < 0)
                        return lost;
                if (s->attempt.number == 0) {
                        *s->err = damage;
                        return r;
                }
                r = attempt_restore(s);
                if (r >= 0)
                        *s->err = damage;
                /* Only damage is an error for which another checkpoint may be better. */
                if (r != -EBADMSG)
                        return r;
                if (damage.code == 0)
                        damage = *s->err;
                error_clear(s->err);
        }
}

/* All ranks must have the same arrays, or they would not ask each other the same questions. */
static int compare_arrays(const struct restoring *s) {
        uint8_t mine[PORTABLE_DIGEST_BYTES], first[PORTABLE_DIGEST_BYTES];
        int r;

        arrays_digest(s->arrays, false, mine);
        memcpy(first, mine, sizeof(first));
        r = agree_broadcast(s->ranks, first, sizeof(first), s->err);
        if (r < 0)
                return r;
        if (memcmp(mine, first, sizeof(mine)) != 0)
                r = error_set(s->err, -EINVAL, "other arrays are registered than on rank 0, or in another order");
        return agree(s->ranks, r, s->err);
}

int checkpoint_restore(const struct rmrt_ranks *ranks, const struct arrays *arrays, const char *directory, struct rm_error *err) {
        struct restoring s = { .ranks = ranks, .arrays = arrays, .err = err };
        cleanup_free uint64_t *numbers = NULL;
        size_t n = 0;
        int r = compare_arrays(&s);

        if (r < 0)
                return r;
        s.matches = xcalloc(arrays->n + 1, sizeof(*s.matches));
        r = agree(ranks, ranks->rank == 0 ? search_for(directory, &s.attempt, &numbers, &n, err) : 0, err);
        if (r == 0)
                r = attempts(&s, numbers, n);
        free(s.matches);
        return r;
}
