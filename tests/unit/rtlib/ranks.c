#include "tests/unit/rtlib/ranks.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"

/* ---- what stands in for an MPI ---- */

struct world {
        pthread_barrier_t barrier;
        const void *data[RANKS_MAX];
        int size;
};

struct seat {
        struct world *world;
        struct program *program;
        const char *directory;
        int rank;
        bool restore;
};

static int thread_broadcast(void *ctx, void *data, size_t bytes, int root) {
        struct seat *seat = ctx;

        seat->world->data[seat->rank] = data;
        (void) pthread_barrier_wait(&seat->world->barrier);
        if (seat->rank != root)
                memcpy(data, seat->world->data[root], bytes);
        (void) pthread_barrier_wait(&seat->world->barrier);
        return 0;
}

static int thread_gather(void *ctx, const void *mine, void *all, size_t bytes) {
        struct seat *seat = ctx;

        seat->world->data[seat->rank] = mine;
        (void) pthread_barrier_wait(&seat->world->barrier);
        for (int i = 0; i < seat->world->size; i++)
                memcpy((char *) all + (size_t) i * bytes, seat->world->data[i], bytes);
        (void) pthread_barrier_wait(&seat->world->barrier);
        return 0;
}

static void *run(void *arg) {
        struct seat *seat = arg;
        struct rank *r = &seat->program->ranks[seat->rank];
        const struct rmrt_ranks ranks = { seat->rank, seat->world->size, seat, thread_broadcast, thread_gather };

        if (seat->program->nodes[seat->rank] && (unshare(CLONE_FS) < 0 || chdir(seat->program->nodes[seat->rank]) < 0))
                abort();
        error_clear(&r->err);
        /* The directory of rank 0 counts. */
        r->result = seat->restore ? checkpoint_restore(&ranks, &r->arrays, seat->rank == 0 ? seat->directory : "/nowhere", &r->err)
                                  : checkpoint_save(&ranks, &r->arrays, seat->rank == 0 ? seat->directory : "/nowhere", &r->saved,
                                                    &r->err);
        return NULL;
}

static int together(struct program *p, const char *directory, bool restore) {
        struct world world = { .size = p->size };
        struct seat seats[RANKS_MAX];
        pthread_t threads[RANKS_MAX];

        if (pthread_barrier_init(&world.barrier, NULL, (unsigned) p->size) != 0)
                abort();
        for (int i = 0; i < p->size; i++) {
                seats[i] = (struct seat) { &world, p, directory, i, restore };
                if (pthread_create(&threads[i], NULL, run, &seats[i]) != 0)
                        abort();
        }
        for (int i = 0; i < p->size; i++)
                (void) pthread_join(threads[i], NULL);
        (void) pthread_barrier_destroy(&world.barrier);
        for (int i = 1; i < p->size; i++)
                if (p->ranks[i].result != p->ranks[0].result || strcmp(p->ranks[i].err.text, p->ranks[0].err.text) != 0)
                        abort();
        return p->ranks[0].result;
}

int program_save(struct program *p, const char *directory) {
        return together(p, directory, false);
}

int program_restore(struct program *p, const char *directory) {
        return together(p, directory, true);
}

const char *program_error(const struct program *p) {
        return p->ranks[0].err.text;
}

/* ---- the program ---- */

static size_t first_of(const struct program *p, int rank, size_t n) {
        return n * (size_t) rank / (size_t) p->size;
}

static size_t count_of(const struct program *p, int rank, size_t n) {
        return first_of(p, rank + 1, n) - first_of(p, rank, n);
}

static void add(struct rank *r, const char *name, void *ptr, size_t count, struct rmrt_type type,
                enum rmrt_distribution distribution) {
        const struct array array = { (char *) name, ptr, count, type, distribution };

        if (arrays_register(&r->arrays, &array, NULL) < 0)
                abort();
}

struct program *program_create(int size) {
        struct program *p = xcalloc(1, sizeof(*p));

        p->size = size;
        for (int i = 0; i < size; i++) {
                struct rank *r = &p->ranks[i];

                r->cells = xcalloc(count_of(p, i, CELLS) + 1, sizeof(*r->cells));
                r->points = xcalloc(count_of(p, i, POINTS) + 1, sizeof(*r->points));
                r->table = xcalloc(TABLE, sizeof(*r->table));
                add(r, "cells", r->cells, count_of(p, i, CELLS), (struct rmrt_type) { RMRT_FLOAT, 8, 1 }, RMRT_BLOCK);
                add(r, "points", r->points, count_of(p, i, POINTS), (struct rmrt_type) { RMRT_FLOAT, 4, 3 }, RMRT_BLOCK);
                add(r, "table", r->table, TABLE, (struct rmrt_type) { RMRT_INTEGER, 4, 1 }, RMRT_REPLICATED);
                add(r, "step", &r->step, 1, (struct rmrt_type) { RMRT_INTEGER, 8, 1 }, RMRT_REPLICATED);
                add(r, "own", &r->own, 1, (struct rmrt_type) { RMRT_UNSIGNED, 8, 1 }, RMRT_PRIVATE);
        }
        return p;
}

void program_destroy(struct program *p) {
        for (int i = 0; i < p->size; i++) {
                arrays_finish(&p->ranks[i].arrays);
                saved_finish(&p->ranks[i].saved);
                free(p->ranks[i].cells);
                free(p->ranks[i].points);
                free(p->ranks[i].table);
        }
        free(p);
}

/* Few cells change from step to step. */
static double cell_at(size_t i, int64_t step) {
        return i % 5000 < 3 ? (double) i + (double) step / 7 : (double) i * 3;
}

static struct point point_at(size_t i) {
        return (struct point) { (float) i, (float) i / 3, -(float) i };
}

static uint64_t own_at(int rank, int64_t step) {
        return (uint64_t) rank << 32 | (uint64_t) step;
}

void program_compute(struct program *p, int64_t step) {
        for (int rank = 0; rank < p->size; rank++) {
                struct rank *r = &p->ranks[rank];

                for (size_t i = 0; i < count_of(p, rank, CELLS); i++)
                        r->cells[i] = cell_at(first_of(p, rank, CELLS) + i, step);
                for (size_t i = 0; i < count_of(p, rank, POINTS); i++)
                        r->points[i] = point_at(first_of(p, rank, POINTS) + i);
                for (int32_t i = 0; i < TABLE; i++)
                        r->table[i] = i * 17;
                r->step = step;
                r->own = own_at(rank, step);
        }
}

void program_clear(struct program *p) {
        for (int rank = 0; rank < p->size; rank++) {
                struct rank *r = &p->ranks[rank];

                memset(r->cells, 0, count_of(p, rank, CELLS) * sizeof(*r->cells));
                memset(r->points, 0, count_of(p, rank, POINTS) * sizeof(*r->points));
                memset(r->table, 0, TABLE * sizeof(*r->table));
                r->step = 0;
                r->own = 0;
        }
}

static bool rank_is_at(const struct program *p, int rank, int64_t step) {
        const struct rank *r = &p->ranks[rank];

        for (size_t i = 0; i < count_of(p, rank, CELLS); i++)
                if (r->cells[i] != cell_at(first_of(p, rank, CELLS) + i, step))
                        return false;
        for (size_t i = 0; i < count_of(p, rank, POINTS); i++) {
                struct point is = point_at(first_of(p, rank, POINTS) + i);

                if (r->points[i].x != is.x || r->points[i].y != is.y || r->points[i].z != is.z)
                        return false;
        }
        for (int32_t i = 0; i < TABLE; i++)
                if (r->table[i] != i * 17)
                        return false;
        return r->step == step;
}

int64_t program_step(const struct program *p, bool with_own) {
        int64_t step = p->ranks[0].step;

        for (int rank = 0; rank < p->size; rank++)
                if (!rank_is_at(p, rank, step) || p->ranks[rank].own != (with_own ? own_at(rank, step) : 0))
                        return -1;
        return step;
}
