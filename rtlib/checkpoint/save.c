#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "rtlib/checkpoint/changes.h"
#include "rtlib/checkpoint/collective.h"
#include "rtlib/checkpoint/folder.h"
#include "rtlib/checkpoint/options.h"
#include "rtlib/checkpoint/rank_file.h"

/* The message of rank 0 to the others at the beginning. */
struct plan {
        struct options options;
        uint64_t number;
        uint64_t newest; /* the checkpoint before; 0: none that could be built on */
        uint8_t newest_digest[PORTABLE_DIGEST_BYTES];
        uint8_t arrays[PORTABLE_DIGEST_BYTES];
        uint64_t big_endian;
};

/* The file that a rank has written. */
struct written {
        uint64_t size_bytes;
        uint8_t digest[PORTABLE_DIGEST_BYTES];
};

struct saving {
        const struct rmrt_ranks *ranks;
        const struct arrays *arrays;
        int dir;
        bool increment;
        bool created; /* the file of this rank */
        struct plan plan;
        struct saved now;
        struct rm_error *err;
};

/* ---- what is to be done ---- */

static int scan_folder(struct saving *s) {
        cleanup_free uint64_t *numbers = NULL;
        Portable__Manifest *m = NULL;
        struct rm_error none = { 0 };
        size_t n = 0;
        uint64_t last = 0;
        int r;

        s->dir = folder_open(s->plan.options.directory, true, s->err);
        r = s->dir < 0 ? s->dir : folder_list(s->dir, &numbers, &n, &last, s->err);
        if (r < 0)
                return r;
        s->plan.number = last + 1;
        if (n == 0 || folder_read_manifest(s->dir, numbers[0], &m, s->plan.newest_digest, &none) < 0)
                return 0;
        s->plan.newest = numbers[0];
        portable__manifest__free_unpacked(m, NULL);
        return 0;
}

static int plan_make(struct saving *s, const char *directory) {
        int r = options_read(directory, &s->plan.options, s->err);

        if (r == 0 && s->arrays->n == 0)
                r = error_set(s->err, -EINVAL, "no array is registered");
        if (r == 0)
                r = scan_folder(s);
        arrays_digest(s->arrays, false, s->plan.arrays);
        s->plan.big_endian = host_is_big_endian();
        return r;
}

/* Checks on this rank that the arrays are those of rank 0, and that it finds the folder. */
static int plan_check(struct saving *s) {
        uint8_t arrays[PORTABLE_DIGEST_BYTES];

        arrays_digest(s->arrays, false, arrays);
        if (memcmp(arrays, s->plan.arrays, sizeof(arrays)) != 0)
                return error_set(s->err, -EINVAL, "other arrays are registered than on rank 0, or in another order");
        if (s->plan.big_endian != host_is_big_endian())
                return error_set(s->err, -ENOTSUP, "its processor has another byte order than that of rank 0");
        if (s->dir < 0)
                s->dir = folder_open(s->plan.options.directory, false, s->err);
        return s->dir < 0 ? s->dir : 0;
}

/* Has this rank the hashes of the newest checkpoint, and of the same arrays? A rank that was set
 * back, or has restored, has not. */
static bool can_increment(const struct saving *s, const struct saved *before) {
        return before->number > 0 && before->number == s->plan.newest && before->rank == s->ranks->rank &&
               before->size == s->ranks->size && before->block_bytes == s->now.block_bytes && before->adaptive == s->now.adaptive &&
               memcmp(before->digest, s->plan.newest_digest, sizeof(before->digest)) == 0 &&
               memcmp(before->layout, s->now.layout, sizeof(before->layout)) == 0 &&
               before->n_increments + 1 < s->plan.options.full_every;
}

static int increment_agree(struct saving *s, const struct saved *before) {
        cleanup_free uint8_t *all = xcalloc((size_t) s->ranks->size, 1);
        uint8_t mine = can_increment(s, before);
        int r = agree_gather(s->ranks, &mine, all, sizeof(mine), s->err);

        s->increment = true;
        for (int i = 0; i < s->ranks->size; i++)
                s->increment = s->increment && all[i];
        s->now.n_increments = s->increment ? before->n_increments + 1 : 0;
        return r;
}

/* The costs of an increment on a rank, in seconds. */
struct costs {
        double fixed, adaptive;
        uint64_t known;
};

/* All ranks wait for the slowest. Once it is known which is better for it, that stays. */
static int blocks_choose(struct saving *s, const struct saved *before) {
        cleanup_free struct costs *all = xcalloc((size_t) s->ranks->size, sizeof(*all));
        struct costs mine = { 0 }, worst = { .known = 1 };
        int r;

        s->now.chosen = s->plan.options.blocks;
        if (s->plan.options.blocks != OPTIONS_BLOCKS_AUTO)
                return 0;
        s->now.chosen = before->chosen;
        mine.known = before->chosen == OPTIONS_BLOCKS_AUTO && changes_costs(&before->trial, &mine.fixed, &mine.adaptive);
        r = agree_gather(s->ranks, &mine, all, sizeof(mine), s->err);
        if (r < 0)
                return r;
        for (int i = 0; i < s->ranks->size; i++) {
                worst.known = worst.known && all[i].known;
                worst.fixed = all[i].fixed > worst.fixed ? all[i].fixed : worst.fixed;
                worst.adaptive = all[i].adaptive > worst.adaptive ? all[i].adaptive : worst.adaptive;
        }
        if (worst.known)
                s->now.chosen = worst.adaptive < worst.fixed ? OPTIONS_BLOCKS_ADAPTIVE : OPTIONS_BLOCKS_FIXED;
        return 0;
}

static int begin(struct saving *s, const char *directory, const struct saved *before) {
        int r = agree(s->ranks, s->ranks->rank == 0 ? plan_make(s, directory) : 0, s->err);

        if (r == 0)
                r = agree_broadcast(s->ranks, &s->plan, sizeof(s->plan), s->err);
        if (r == 0)
                r = agree(s->ranks, plan_check(s), s->err);
        if (r < 0)
                return r;
        s->now.number = s->plan.number;
        s->now.rank = s->ranks->rank;
        s->now.size = s->ranks->size;
        arrays_digest(s->arrays, true, s->now.layout);
        r = blocks_choose(s, before);
        if (r < 0)
                return r;
        s->now.adaptive = s->now.chosen == OPTIONS_BLOCKS_ADAPTIVE;
        s->now.block_bytes = s->now.adaptive ? CHANGES_LARGEST_BYTES : s->plan.options.block_bytes;
        return increment_agree(s, before);
}

/* ---- the file of this rank ---- */

/* Notes the time that the rank waited for the storage. */
static void note_speed(struct saving *s, uint64_t bytes, uint64_t nsec, uint64_t cpu_nsec) {
        s->now.trial.written_bytes += bytes;
        s->now.trial.write_nsec += nsec > cpu_nsec ? nsec - cpu_nsec : 0;
}

static int file_write(struct saving *s, const struct saved *before, struct written *ret) {
        int fd = folder_create_rank(s->dir, s->plan.number, (size_t) s->ranks->rank, s->err);
        const struct changes changes = { .arrays = s->arrays,
                                         .rank = s->ranks->rank,
                                         .before = before,
                                         .increment = s->increment,
                                         .trial = s->now.chosen == OPTIONS_BLOCKS_AUTO };
        uint64_t begin_usec = now_usec(), begin_nsec = thread_nsec();
        struct rank_writer *w;
        int r;

        if (fd < 0)
                return fd;
        s->created = true;
        w = rank_writer_create(fd, s->arrays->n, s->now.adaptive ? 0 : s->now.block_bytes, s->plan.options.zstd_level);
        r = changes_write(&changes, &s->now, w, s->err);
        if (r == 0)
                r = rank_writer_end(w, &ret->size_bytes, ret->digest, s->err);
        rank_writer_destroy(w);
        if (r == 0)
                note_speed(s, ret->size_bytes, (now_usec() - begin_usec) * 1000, thread_nsec() - begin_nsec);
        return r < 0 ? error_prefix(s->err, "folder '%s'", s->plan.options.directory) : 0;
}

/* ---- the manifest ---- */

/* A rank on a node with a folder of its own would save a file that no rank can restore. */
static int files_check(const struct saving *s, const struct written *files) {
        for (int i = 0; i < s->ranks->size; i++) {
                uint64_t size_bytes = 0;

                if (folder_rank_bytes(s->dir, s->plan.number, (size_t) i, &size_bytes, s->err) < 0 ||
                    size_bytes != files[i].size_bytes)
                        return error_set(s->err, -EXDEV,
                                         "the file of rank %d is not seen by rank 0: folder '%s' must be shared by all nodes", i,
                                         s->plan.options.directory);
        }
        return 0;
}

static void arrays_fill(const struct saving *s, Portable__Array *arrays, Portable__Array **list, uint64_t *counts) {
        for (size_t i = 0; i < s->arrays->n; i++) {
                const struct array *a = &s->arrays->list[i];

                arrays[i] = (Portable__Array) PORTABLE__ARRAY__INIT;
                arrays[i].name = a->name;
                arrays[i].kind = a->type.kind;
                arrays[i].unit_bytes = a->type.unit_bytes;
                arrays[i].units = a->type.units;
                arrays[i].distribution = a->distribution;
                arrays[i].counts = counts + i * (size_t) s->ranks->size;
                arrays[i].n_counts = (size_t) s->ranks->size;
                list[i] = &arrays[i];
        }
}

static void files_fill(const struct saving *s, Portable__File *files, Portable__File **list, struct written *written) {
        for (int i = 0; i < s->ranks->size; i++) {
                files[i] = (Portable__File) PORTABLE__FILE__INIT;
                files[i].size_bytes = written[i].size_bytes;
                files[i].digest = (ProtobufCBinaryData) { .data = written[i].digest, .len = PORTABLE_DIGEST_BYTES };
                list[i] = &files[i];
        }
}

/* `counts`: of each array, by rank. */
static int manifest_make(struct saving *s, struct written *written, uint64_t *counts) {
        size_t n_arrays = s->arrays->n, n_ranks = (size_t) s->ranks->size;
        cleanup_free Portable__Array *arrays = xcalloc(n_arrays, sizeof(*arrays));
        cleanup_free Portable__Array **array_list = xcalloc(n_arrays, sizeof(*array_list));
        cleanup_free Portable__File *files = xcalloc(n_ranks, sizeof(*files));
        cleanup_free Portable__File **file_list = xcalloc(n_ranks, sizeof(*file_list));
        Portable__Manifest m = PORTABLE__MANIFEST__INIT;

        arrays_fill(s, arrays, array_list, counts);
        files_fill(s, files, file_list, written);
        m.version = s->now.adaptive ? PORTABLE_VERSION_SIZES : PORTABLE_VERSION;
        m.number = s->plan.number;
        m.time_usec = now_real_usec();
        m.block_bytes = s->now.block_bytes;
        m.big_endian = s->plan.big_endian;
        if (s->increment) {
                m.previous = s->plan.newest;
                m.previous_digest = (ProtobufCBinaryData) { .data = s->plan.newest_digest, .len = PORTABLE_DIGEST_BYTES };
        }
        m.arrays = array_list;
        m.n_arrays = n_arrays;
        m.files = file_list;
        m.n_files = n_ranks;
        return folder_write_manifest(s->dir, &m, s->now.digest, s->err);
}

/* All are told all, which rank 0 makes the manifest of. */
static int end(struct saving *s, const struct written *mine) {
        size_t n_ranks = (size_t) s->ranks->size;
        cleanup_free struct written *written = xcalloc(n_ranks, sizeof(*written));
        cleanup_free uint64_t *counts = xcalloc(n_ranks * s->arrays->n, sizeof(*counts));
        int r = agree_gather(s->ranks, mine, written, sizeof(*mine), s->err);

        for (size_t i = 0; r == 0 && i < s->arrays->n; i++)
                r = agree_gather(s->ranks, &s->arrays->list[i].count, counts + i * n_ranks, sizeof(*counts), s->err);
        if (r < 0)
                return r;
        if (s->ranks->rank == 0)
                r = files_check(s, written);
        if (s->ranks->rank == 0 && r == 0)
                r = manifest_make(s, written, counts);
        r = agree(s->ranks, r, s->err);
        return r == 0 ? agree_broadcast(s->ranks, s->now.digest, sizeof(s->now.digest), s->err) : r;
}

int checkpoint_save(const struct rmrt_ranks *ranks, const struct arrays *arrays, const char *directory, struct saved *saved,
                    struct rm_error *err) {
        struct saving s = { .ranks = ranks, .arrays = arrays, .dir = -1, .err = err };
        struct written mine = { 0 };
        int r = begin(&s, directory, saved);

        if (r == 0) {
                r = agree(ranks, file_write(&s, saved, &mine), err);
                if (r == 0)
                        r = end(&s, &mine);
                /* Without an answer it is unknown if there is a manifest: then it stays. */
                if (r < 0 && r != AGREEMENT_LOST && s.created)
                        folder_remove_rank(s.dir, s.plan.number, (size_t) ranks->rank);
        }
        if (r == 0) {
                saved_finish(saved);
                *saved = s.now;
                if (ranks->rank == 0)
                        folder_keep(s.dir, s.plan.options.keep);
        } else
                saved_finish(&s.now);
        cleanup_close_fd(&s.dir);
        return r;
}
