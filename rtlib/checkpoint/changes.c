#include "rtlib/checkpoint/changes.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"

static void tables_finish(struct saved *saved) {
        for (size_t i = 0; i < saved->n_tables; i++)
                adaptive_finish(&saved->tables[i]);
        free(saved->tables);
        saved->tables = NULL;
        saved->n_tables = 0;
}

void saved_finish(struct saved *saved) {
        free(saved->hashes);
        tables_finish(saved);
        *saved = (struct saved) { 0 };
}

/* ---- blocks of one size ---- */

static uint64_t block_count(const struct changes *c, const struct array *array, uint32_t block_bytes) {
        return (array_piece_bytes(array, c->rank) + block_bytes - 1) / block_bytes;
}

/* `hash` and `old`: of its first block. `seen` is added to. */
static int array_write(const struct changes *c, const struct saved *now, struct rank_writer *w, size_t number, uint8_t *hash,
                       const uint8_t *old, struct changes_trial *seen, struct rm_error *err) {
        const struct array *array = &c->arrays->list[number];
        uint64_t bytes = array_piece_bytes(array, c->rank);
        int r = 0;

        for (uint64_t from = 0; r == 0 && from < bytes; from += now->block_bytes, hash += PORTABLE_DIGEST_BYTES) {
                const uint8_t *data = (const uint8_t *) array->ptr + from;
                uint32_t n = bytes - from < now->block_bytes ? (uint32_t) (bytes - from) : now->block_bytes;
                uint64_t begin = c->trial ? thread_nsec() : 0;

                portable_digest(data, n, hash);
                seen->fixed_nsec += c->trial ? thread_nsec() - begin : 0;
                if (old && memcmp(hash, old + from / now->block_bytes * PORTABLE_DIGEST_BYTES, PORTABLE_DIGEST_BYTES) == 0)
                        continue;
                seen->fixed_bytes += n + CHANGES_ENTRY_BYTES;
                r = rank_writer_put(w, number, from, data, n, hash, err);
        }
        return r;
}

static int fixed_write(const struct changes *c, struct saved *now, struct rank_writer *w, struct changes_trial *seen,
                       struct rm_error *err) {
        uint64_t n_blocks = 0, at = 0;
        int r = 0;

        for (size_t i = 0; i < c->arrays->n; i++)
                n_blocks += block_count(c, &c->arrays->list[i], now->block_bytes);
        now->hashes = malloc(n_blocks * PORTABLE_DIGEST_BYTES + 1);
        if (!now->hashes)
                return error_sys(err, -ENOMEM, "hashes of blocks");
        for (size_t i = 0; r == 0 && i < c->arrays->n; i++) {
                r = array_write(c, now, w, i, now->hashes + at, c->increment ? c->before->hashes + at : NULL, seen, err);
                at += block_count(c, &c->arrays->list[i], now->block_bytes) * PORTABLE_DIGEST_BYTES;
        }
        return r;
}

/* ---- adaptive blocks ---- */

void changes_table_init(struct adaptive *table, uint64_t bytes) {
        size_t n = (size_t) (bytes / CHANGES_TABLE_BLOCK_BYTES * ADAPTIVE_HASH_BYTES / sizeof(struct adaptive_block));

        adaptive_init(table, bytes, n, CHANGES_LEAST_BYTES, CHANGES_LARGEST_BYTES);
}

/* The sizes that were found before go on, also where the next checkpoint is a full one. */
static void tables_make(const struct changes *c, struct saved *now) {
        bool known = c->before->n_tables == c->arrays->n && memcmp(c->before->layout, now->layout, sizeof(now->layout)) == 0 &&
                     c->before->rank == now->rank;

        now->n_tables = c->arrays->n;
        now->tables = xcalloc(now->n_tables + 1, sizeof(*now->tables));
        for (size_t i = 0; i < now->n_tables; i++) {
                uint64_t bytes = array_piece_bytes(&c->arrays->list[i], c->rank);

                if (known)
                        adaptive_copy(&c->before->tables[i], &now->tables[i]);
                else
                        changes_table_init(&now->tables[i], bytes);
        }
}

static int table_write(const struct changes *c, const struct adaptive *table, size_t number, struct rank_writer *w,
                       struct rm_error *err) {
        const uint8_t *memory = c->arrays->list[number].ptr;
        uint64_t from = 0;
        int r = 0;

        for (size_t i = 0; r == 0 && i < table->n; from += table->blocks[i++].bytes)
                if (!c->increment || table->blocks[i].dirty)
                        r = rank_writer_put(w, number, from, memory + from, (uint32_t) table->blocks[i].bytes,
                                            table->blocks[i].hash, err);
        return r;
}

static int adaptive_write(const struct changes *c, struct saved *now, struct rank_writer *w, struct rm_error *err) {
        int r = 0;

        tables_make(c, now);
        for (size_t i = 0; r == 0 && i < c->arrays->n; i++) {
                adaptive_scan(&now->tables[i], c->arrays->list[i].ptr, portable_digest);
                r = table_write(c, &now->tables[i], i, w, err);
                adaptive_adapt(&now->tables[i], c->arrays->list[i].ptr, portable_digest);
        }
        return r;
}

/* ---- which is better ---- */

/* Nothing of it is written. */
static void try_adaptive(const struct changes *c, struct saved *now, struct changes_trial *seen) {
        uint64_t begin = thread_nsec();

        tables_make(c, now);
        for (size_t i = 0; i < c->arrays->n; i++) {
                size_t sections, blocks;

                adaptive_scan(&now->tables[i], c->arrays->list[i].ptr, portable_digest);
                seen->adaptive_bytes += adaptive_dirty(&now->tables[i], &sections, &blocks) + blocks * CHANGES_ENTRY_BYTES;
                adaptive_adapt(&now->tables[i], c->arrays->list[i].ptr, portable_digest);
        }
        seen->adaptive_nsec += thread_nsec() - begin;
}

int changes_write(const struct changes *c, struct saved *now, struct rank_writer *w, struct rm_error *err) {
        struct changes_trial seen = c->before->trial;
        int r;

        now->trial = seen;
        now->trial.saves++;
        r = now->adaptive ? adaptive_write(c, now, w, err) : fixed_write(c, now, w, &seen, err);
        if (!c->trial || r < 0)
                return r;
        try_adaptive(c, now, &seen);
        seen.saves++;
        /* A full one says nothing, and neither do those before adaptive blocks have found their
         * sizes. */
        if (c->increment && seen.saves > CHANGES_LEARNING_SAVES)
                now->trial = seen;
        return 0;
}

bool changes_costs(const struct changes_trial *trial, double *ret_fixed_sec, double *ret_adaptive_sec) {
        double speed = trial->write_nsec > 0 ? (double) trial->written_bytes * 1e9 / (double) trial->write_nsec : 0;

        if (trial->saves < CHANGES_TRIAL_SAVES || trial->fixed_nsec == 0 || speed <= 0)
                return false;
        *ret_fixed_sec = (double) trial->fixed_nsec / 1e9 + (double) trial->fixed_bytes / speed;
        *ret_adaptive_sec = (double) trial->adaptive_nsec / 1e9 + (double) trial->adaptive_bytes / speed;
        return true;
}
