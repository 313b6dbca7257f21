/* Kernels of our own that write to memory in the pattern of the benchmark that each is named after,
 * and are far from solving its problem: they are not NPB, sPPM and Sweep3D, which no distribution
 * has. Each computes in earnest, so that what stays the same to the last bit is found to be
 * unchanged, as in a program. */
#include "bench/rtlib/traces.h"

#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 64, PLANE = N * N, FIELDS = 5 };
typedef double cell_fields[FIELDS];

static size_t cell(int x, int y, int z) {
        return ((size_t) z * N + (size_t) y) * N + (size_t) x;
}

static size_t cell_count(int planes) {
        return (size_t) planes * PLANE;
}

static void fill(double *values, size_t n) {
        for (size_t i = 0; i < n; i++)
                values[i] = sin((double) i / 1000);
}

static double neighbours(cell_fields *u, size_t c, int f) {
        return u[c - 1][f] + u[c + 1][f] + u[c - N][f] + u[c + N][f] + u[c - PLANE][f] + u[c + PLANE][f];
}

/* The cells that have all their neighbours, in their order. */
static int inner_count(int planes) {
        return (N - 2) * (N - 2) * (planes - 2);
}
static size_t inner(int k) {
        return cell(1 + k % (N - 2), 1 + k / (N - 2) % (N - 2), 1 + k / ((N - 2) * (N - 2)));
}

/* ---- LU: SSOR, wavefronts from one corner to the other and back ---- */

struct lu {
        cell_fields *u, *rsd, *frct;
};
enum { LU_DOUBLES = 3 * FIELDS };

static struct lu lu_of(void *memory, int planes) {
        cell_fields *first = memory;

        return (struct lu) { first, first + cell_count(planes), first + 2 * cell_count(planes) };
}

static void lu_begin(void *memory, int planes) {
        struct lu p = lu_of(memory, planes);

        fill(&p.u[0][0], cell_count(planes) * FIELDS);
        fill(&p.frct[0][0], cell_count(planes) * FIELDS);
}

static void lu_step(void *memory, int planes, int number) {
        const struct lu p = lu_of(memory, planes);
        const int n_inner = inner_count(planes);

        for (int k = 0; k < n_inner; k++) {
                size_t c = inner(k);

                for (int f = 0; f < FIELDS; f++)
                        p.rsd[c][f] = 0.1 * (p.frct[c][f] - p.u[c][f] + neighbours(p.u, c, f) / 6);
        }
        for (int k = 0; k < n_inner; k++) {
                size_t c = inner(k);

                for (int f = 0; f < FIELDS; f++)
                        p.rsd[c][f] += 0.1 * (p.rsd[c - 1][f] + p.rsd[c - N][f] + p.rsd[c - PLANE][f]);
        }
        for (int k = 0; k < n_inner; k++) {
                size_t c = cell_count(planes) - 1 - inner(k);

                for (int f = 0; f < FIELDS; f++)
                        p.rsd[c][f] += 0.1 * (p.rsd[c + 1][f] + p.rsd[c + N][f] + p.rsd[c + PLANE][f]);
        }
        for (int k = 0; k < n_inner; k++) {
                size_t c = inner(k);

                for (int f = 0; f < FIELDS; f++)
                        p.u[c][f] += p.rsd[c][f];
        }
}

/* ---- BT and SP: solves along all lines of each direction ---- */

struct lines {
        cell_fields *u, *rhs, *forcing;
        double *scalars[6];
};
enum { LINES_DOUBLES = 3 * FIELDS + 6, LINE_MAX = 1024 };

static struct lines lines_of(void *memory, int planes) {
        cell_fields *first = memory;
        const size_t n = cell_count(planes);
        struct lines p = { first, first + n, first + 2 * n, { NULL } };

        for (int s = 0; s < 6; s++)
                p.scalars[s] = &first[3 * n][0] + (size_t) s * n;
        return p;
}

static void lines_begin(void *memory, int planes) {
        struct lines p = lines_of(memory, planes);

        fill(&p.u[0][0], cell_count(planes) * FIELDS);
        fill(&p.forcing[0][0], cell_count(planes) * FIELDS);
}

/* Tridiagonal. */
static void solve_line(cell_fields *rhs, size_t stride, size_t n, int f) {
        double upper[LINE_MAX] = { 0 };

        for (size_t i = 1; i < n; i++) {
                double pivot = 4 + upper[i - 1];

                upper[i] = -1 / pivot;
                rhs[i * stride][f] = (rhs[i * stride][f] + rhs[(i - 1) * stride][f]) / pivot;
        }
        for (size_t i = n - 1; i-- > 0;)
                rhs[i * stride][f] -= upper[i] * rhs[(i + 1) * stride][f];
}

static void solve_lines(const struct lines *p, int planes) {
        const size_t extents[] = { N, N, (size_t) planes }, strides[] = { 1, N, PLANE };

        for (int d = 0; d < 3; d++) {
                const int a = (d + 1) % 3, b = (d + 2) % 3;

                for (size_t k = 0; k < extents[a] * extents[b]; k++)
                        for (int f = 0; f < FIELDS; f++)
                                solve_line(p->rhs + k % extents[a] * strides[a] + k / extents[a] * strides[b], strides[d],
                                           extents[d], f);
        }
}

static void lines_step(void *memory, int planes, int number) {
        const struct lines p = lines_of(memory, planes);
        const int n_inner = inner_count(planes);

        for (size_t c = 0; c < cell_count(planes); c++)
                for (int s = 0; s < 6; s++)
                        p.scalars[s][c] = p.u[c][s % FIELDS] * p.u[c][(s + 1) % FIELDS];
        for (int k = 0; k < n_inner; k++) {
                size_t c = inner(k);

                for (int f = 0; f < FIELDS; f++)
                        p.rhs[c][f] = 0.1 * (p.forcing[c][f] + neighbours(p.u, c, f) - 6 * p.u[c][f] - p.scalars[f][c]);
        }
        solve_lines(&p, planes);
        for (int k = 0; k < n_inner; k++) {
                size_t c = inner(k);

                for (int f = 0; f < FIELDS; f++)
                        p.u[c][f] += p.rhs[c][f];
        }
}

/* ---- EP: random numbers in batches, and ten counts ---- */

/* The rest of the process is never written again. */
enum { BATCH = 1 << 17, COUNTS = 10 };

static uint64_t random_next(uint64_t *state) {
        *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return *state >> 33;
}

static void ep_begin(void *memory, int planes) {
        double *rest = (double *) memory + BATCH + COUNTS;

        fill(rest, cell_count(planes) - BATCH - COUNTS);
}

static void ep_step(void *memory, int planes, int number) {
        double *batch = memory, *counts = batch + BATCH;
        uint64_t state = (uint64_t) number;

        for (size_t i = 0; i < BATCH; i++) {
                batch[i] = (double) random_next(&state) / (double) (UINT64_C(1) << 31);
                counts[(int) (batch[i] * COUNTS) % COUNTS]++;
        }
}

/* ---- CG: conjugate gradients, on a sparse matrix that stays as it is ---- */

enum { NONZEROS = 128, CG_STEPS = 4 };
struct cg {
        double *x, *z, *p, *q, *r;
        double (*values)[NONZEROS];
        int32_t (*columns)[NONZEROS];
};
#define CG_ROW_BYTES (5 * sizeof(double) + NONZEROS * (sizeof(double) + sizeof(int32_t)))

static struct cg cg_of(void *memory, int planes) {
        const size_t n = cell_count(planes);
        double *first = memory;

        return (struct cg) { first,
                             first + n,
                             first + 2 * n,
                             first + 3 * n,
                             first + 4 * n,
                             (double(*)[NONZEROS])(first + 5 * n),
                             (int32_t(*)[NONZEROS])(first + (5 + NONZEROS) * n) };
}

/* The first of each row is on the diagonal, and larger than all others of the row together. */
static void cg_begin(void *memory, int planes) {
        const struct cg m = cg_of(memory, planes);
        uint64_t state = 1;

        for (size_t i = 0; i < cell_count(planes); i++) {
                m.x[i] = 1;
                m.values[i][0] = 2 + sin((double) i);
                m.columns[i][0] = (int32_t) i;
                for (int k = 1; k < NONZEROS; k++) {
                        m.values[i][k] = ((double) random_next(&state) / (double) (UINT64_C(1) << 31) - 0.5) / NONZEROS;
                        m.columns[i][k] = (int32_t) (random_next(&state) % cell_count(planes));
                }
        }
}

static double product(const double *a, const double *b, size_t n) {
        double sum = 0;

        for (size_t i = 0; i < n; i++)
                sum += a[i] * b[i];
        return sum;
}

static void cg_improve(const struct cg *m, size_t n) {
        double before = product(m->r, m->r, n), alpha, beta;

        for (size_t i = 0; i < n; i++) {
                m->q[i] = 0;
                for (int k = 0; k < NONZEROS; k++)
                        m->q[i] += m->values[i][k] * m->p[m->columns[i][k]];
        }
        alpha = before / product(m->p, m->q, n);
        for (size_t i = 0; i < n; i++) {
                m->z[i] += alpha * m->p[i];
                m->r[i] -= alpha * m->q[i];
        }
        beta = product(m->r, m->r, n) / before;
        for (size_t i = 0; i < n; i++)
                m->p[i] = m->r[i] + beta * m->p[i];
}

static void cg_step(void *memory, int planes, int number) {
        const struct cg m = cg_of(memory, planes);
        const size_t n = cell_count(planes);
        double length;

        memset(m.z, 0, n * sizeof(*m.z));
        memcpy(m.r, m.x, n * sizeof(*m.r));
        memcpy(m.p, m.x, n * sizeof(*m.p));
        for (int i = 0; i < CG_STEPS; i++)
                cg_improve(&m, n);
        length = sqrt(product(m.z, m.z, n));
        for (size_t i = 0; i < n; i++)
                m.x[i] = m.z[i] / length;
}

/* ---- IS: integers are counted and put in order; two of them are others each time ---- */

enum { IS_BUCKETS = 1 << 10, IS_ARRAYS = 3 };

static void is_begin(void *memory, int planes) {
        int32_t *keys = memory;
        uint64_t state = 1;

        for (size_t i = 0; i < cell_count(planes); i++)
                keys[i] = (int32_t) (random_next(&state) % cell_count(planes));
}

static size_t is_bucket(int32_t key, size_t n) {
        return (size_t) key * IS_BUCKETS / n;
}

static void is_step(void *memory, int planes, int number) {
        const size_t n = cell_count(planes);
        int32_t *keys = memory, *ranks = keys + n, *in_buckets = ranks + n;
        size_t first[IS_BUCKETS + 1] = { 0 };

        keys[number] = number;
        keys[n / 2 + (size_t) number] = (int32_t) n - 1 - number;
        for (size_t i = 0; i < n; i++)
                first[is_bucket(keys[i], n) + 1]++;
        for (size_t b = 0; b < IS_BUCKETS; b++)
                first[b + 1] += first[b];
        for (size_t i = 0; i < n; i++)
                in_buckets[first[is_bucket(keys[i], n)]++] = keys[i];
        memset(ranks, 0, n * sizeof(*ranks));
        for (size_t i = 0; i < n; i++)
                ranks[in_buckets[i]]++;
        for (size_t i = 1; i < n; i++)
                ranks[i] += ranks[i - 1];
}

/* ---- MG: V-cycles on grids, each of which has half the extents of the one above it ---- */

enum { MG_LEVELS = 4 };
/* A plane of the finest grid has the right side, and each level its solution and residual. */
#define MG_PLANE_DOUBLES (PLANE + 2 * (PLANE + PLANE / 8 + PLANE / 64 + PLANE / 512))
struct grid {
        double *u, *r;
        size_t n;
        int planes;
};
struct mg {
        double *v;
        struct grid levels[MG_LEVELS];
};

static struct mg mg_of(void *memory, int planes) {
        struct mg m = { .v = memory };
        double *next = m.v + cell_count(planes);

        for (int l = 0; l < MG_LEVELS; l++) {
                size_t n = (size_t) N >> l, points = n * n * (size_t) (planes >> l);

                m.levels[l] = (struct grid) { next, next + points, n, planes >> l };
                next += 2 * points;
        }
        return m;
}

static void mg_begin(void *memory, int planes) {
        const struct mg m = mg_of(memory, planes);
        uint64_t state = 1;

        for (int i = 0; i < 20; i++)
                m.v[random_next(&state) % cell_count(planes)] = i % 2 ? 1 : -1;
}

/* The sum of the six neighbours. */
static double around(const struct grid *g, const double *values, size_t c) {
        return values[c - 1] + values[c + 1] + values[c - g->n] + values[c + g->n] + values[c - g->n * g->n] +
               values[c + g->n * g->n];
}

static void mg_residual(const struct grid *g, const double *v) {
        for (size_t z = 1; z + 1 < (size_t) g->planes; z++)
                for (size_t y = 1; y + 1 < g->n; y++)
                        for (size_t x = 1; x + 1 < g->n; x++) {
                                size_t c = (z * g->n + y) * g->n + x;

                                g->r[c] = v[c] - 6 * g->u[c] + around(g, g->u, c);
                        }
}

static void mg_smooth(const struct grid *g) {
        for (size_t z = 1; z + 1 < (size_t) g->planes; z++)
                for (size_t y = 1; y + 1 < g->n; y++)
                        for (size_t x = 1; x + 1 < g->n; x++) {
                                size_t c = (z * g->n + y) * g->n + x;

                                g->u[c] += g->r[c] / 8 + around(g, g->r, c) / 64;
                        }
}

/* Each cell of the coarser grid is eight of the finer one: their mean goes down, and what was found
 * comes up to each of them. */
static void mg_between(const struct grid *fine, const struct grid *coarse, bool down) {
        const size_t points = fine->n * fine->n * (size_t) fine->planes;

        if (down) {
                memset(coarse->r, 0, points / 8 * sizeof(*coarse->r));
                memset(coarse->u, 0, points / 8 * sizeof(*coarse->u));
        }
        for (size_t c = 0; c < points; c++) {
                size_t x = c % fine->n, y = c / fine->n % fine->n, z = c / fine->n / fine->n;
                size_t to = (z / 2 * coarse->n + y / 2) * coarse->n + x / 2;

                if (down)
                        coarse->r[to] += fine->r[c] / 8;
                else
                        fine->u[c] += coarse->u[to];
        }
}

static void mg_step(void *memory, int planes, int number) {
        const struct mg m = mg_of(memory, planes);

        mg_residual(&m.levels[0], m.v);
        for (int l = 0; l + 1 < MG_LEVELS; l++)
                mg_between(&m.levels[l], &m.levels[l + 1], true);
        for (int l = MG_LEVELS - 1; l >= 0; l--) {
                if (l + 1 < MG_LEVELS) {
                        mg_between(&m.levels[l], &m.levels[l + 1], false);
                        mg_residual(&m.levels[l], l > 0 ? m.levels[l].r : m.v);
                }
                mg_smooth(&m.levels[l]);
        }
}

/* ---- FT: a spectrum is taken to a point of time, and is transformed back ---- */

enum { NX = 128, NY = 128, FT_PLANE = NX * NY, FT_DOUBLES = 7, FT_LINE_MAX = 512 };
struct ft {
        double complex *spectrum, *then, *result;
        double *decay;
};

static size_t ft_points(int planes) {
        return (size_t) planes * FT_PLANE;
}

static struct ft ft_of(void *memory, int planes) {
        double complex *first = memory;
        const size_t n = ft_points(planes);

        return (struct ft) { first, first + n, first + 2 * n, (double *) (first + 3 * n) };
}

static void ft_begin(void *memory, int planes) {
        const struct ft p = ft_of(memory, planes);
        const size_t n = ft_points(planes);

        fill((double *) p.spectrum, 2 * n);
        for (size_t i = 0; i < n; i++)
                p.decay[i] = (double) i / (double) n / 100;
}

/* Stockham's: between two buffers, so that nothing is put in another order at the end. */
static void transform(double complex *line, double complex *other, int n) {
        double complex *from = line, *to = other, *swap;

        for (int half = n / 2, stride = 1; half >= 1; half /= 2, stride *= 2) {
                for (int i = 0; i < half; i++) {
                        double complex w = cexp(-I * acos(-1) * i / half);

                        for (int k = 0; k < stride; k++) {
                                double complex a = from[k + stride * i], b = from[k + stride * (i + half)];

                                to[k + stride * 2 * i] = a + b;
                                to[k + stride * (2 * i + 1)] = (a - b) * w;
                        }
                }
                swap = from;
                from = to;
                to = swap;
        }
        if (from != line)
                memcpy(line, from, (size_t) n * sizeof(*line));
}

static void transform_lines(const double complex *from, double complex *to, size_t points, int n, size_t stride) {
        double complex line[FT_LINE_MAX], other[FT_LINE_MAX];

        for (size_t k = 0; k < points / (size_t) n; k++) {
                size_t first = k / stride * stride * (size_t) n + k % stride;

                for (int i = 0; i < n; i++)
                        line[i] = from[first + (size_t) i * stride];
                transform(line, other, n);
                for (int i = 0; i < n; i++)
                        to[first + (size_t) i * stride] = line[i];
        }
}

static void ft_step(void *memory, int planes, int number) {
        const struct ft p = ft_of(memory, planes);
        const size_t n = ft_points(planes);

        for (size_t i = 0; i < n; i++)
                p.then[i] = p.spectrum[i] * exp(-p.decay[i] * number);
        transform_lines(p.then, p.then, n, planes, FT_PLANE);
        transform_lines(p.then, p.then, n, NY, NX);
        transform_lines(p.then, p.result, n, NX, 1);
}

/* ---- sPPM: a shock goes through gas at rest, here from a corner on (Lax-Friedrichs) ---- */

struct gas {
        double *now[FIELDS], *next[FIELDS]; /* density, momenta, energy */
};
enum { GAS_DOUBLES = 2 * FIELDS };

static struct gas gas_of(void *memory, int planes) {
        struct gas p;

        for (int f = 0; f < FIELDS; f++) {
                p.now[f] = (double *) memory + (size_t) f * cell_count(planes);
                p.next[f] = (double *) memory + (size_t) (FIELDS + f) * cell_count(planes);
        }
        return p;
}

static void gas_begin(void *memory, int planes) {
        const struct gas p = gas_of(memory, planes);

        for (size_t c = 0; c < cell_count(planes); c++) {
                p.now[0][c] = p.next[0][c] = 1;
                p.now[4][c] = p.next[4][c] = 2.5;
        }
        for (int k = 0; k < inner_count(planes); k++) {
                size_t c = inner(k);

                if (c % N + c / N % N + c / PLANE < 9)
                        p.now[4][c] = 250;
        }
}

static void flux(double *const *u, size_t c, int direction, double ret[static FIELDS]) {
        double speed = u[1 + direction][c] / u[0][c];
        double pressure = 0.4 * (u[4][c] - (u[1][c] * u[1][c] + u[2][c] * u[2][c] + u[3][c] * u[3][c]) / 2 / u[0][c]);

        for (int f = 0; f < FIELDS; f++)
                ret[f] = speed * (u[f][c] + (f == 4 ? pressure : 0)) + (f == 1 + direction ? pressure : 0);
}

static void gas_step(void *memory, int planes, int number) {
        const struct gas p = gas_of(memory, planes);
        double *const *from = number % 2 ? p.next : p.now, *const *to = number % 2 ? p.now : p.next;
        static const size_t strides[] = { 1, N, PLANE };

        for (int k = 0; k < inner_count(planes); k++) {
                size_t c = inner(k);
                double sum[FIELDS] = { 0 };

                for (int d = 0; d < 3; d++) {
                        double before[FIELDS], after[FIELDS];

                        flux(from, c - strides[d], d, before);
                        flux(from, c + strides[d], d, after);
                        for (int f = 0; f < FIELDS; f++)
                                sum[f] += (from[f][c - strides[d]] + from[f][c + strides[d]]) / 6 - 0.01 * (after[f] - before[f]);
                }
                for (int f = 0; f < FIELDS; f++)
                        to[f][c] = sum[f];
        }
}

/* ---- Sweep3D: for each octant of directions once through the grid ---- */

struct sweep {
        double *flux, *before, *source, *absorption;
        double *face_x, *face_y, *face_z; /* N of each plane; the third has no more than a plane */
};
enum { SWEEP_PLANE_DOUBLES = 4 * PLANE + 3 * N };

static struct sweep sweep_of(void *memory, int planes) {
        double *first = memory, *faces = first + 4 * cell_count(planes);
        const size_t n = cell_count(planes), n_face = (size_t) planes * N;

        return (struct sweep) { first, first + n, first + 2 * n, first + 3 * n, faces, faces + n_face, faces + 2 * n_face };
}

static void sweep_begin(void *memory, int planes) {
        const struct sweep p = sweep_of(memory, planes);

        fill(p.source, cell_count(planes));
        for (size_t c = 0; c < cell_count(planes); c++)
                p.absorption[c] = 3 + sin((double) c);
}

static void sweep_cell(const struct sweep *p, int x, int y, int z) {
        size_t c = cell(x, y, z);
        double *face_x = &p->face_x[z * N + y], *face_y = &p->face_y[z * N + x], *face_z = &p->face_z[y * N + x];
        double in = *face_x + *face_y + *face_z;

        *face_x = *face_y = *face_z = (p->source[c] + p->before[c] / 20 + in) / (3 + p->absorption[c]);
        p->flux[c] += *face_x;
}

static void sweep_step(void *memory, int planes, int number) {
        const struct sweep p = sweep_of(memory, planes);
        const int n = (int) cell_count(planes);

        memcpy(p.before, p.flux, cell_count(planes) * sizeof(*p.flux));
        memset(p.flux, 0, cell_count(planes) * sizeof(*p.flux));
        for (int octant = 0; octant < 8; octant++)
                for (int k = 0; k < n; k++) {
                        int x = k % N, y = k / N % N, z = k / PLANE;

                        sweep_cell(&p, octant & 1 ? N - 1 - x : x, octant & 2 ? N - 1 - y : y, octant & 4 ? planes - 1 - z : z);
                }
}

/* ---- a stencil: the heat of an edge comes into a cold plate ---- */

enum { WIDTH = 2048 };
typedef double row[WIDTH];

static void plate_begin(void *memory, int rows) {
        row *now = memory, *next = now + rows;

        for (int x = 0; x < WIDTH; x++)
                now[0][x] = next[0][x] = 100;
}

static void plate_step(void *memory, int rows, int number) {
        row *now = memory, *next = now + rows, *from = number % 2 ? next : now, *to = number % 2 ? now : next;

        for (int y = 1; y < rows - 1; y++)
                for (int x = 1; x < WIDTH - 1; x++)
                        to[y][x] = (from[y - 1][x] + from[y + 1][x] + from[y][x - 1] + from[y][x + 1]) / 4;
}

/* ---- a table: entries here and there, others each time ---- */

enum { HOT = 1 << 12 };
typedef uint64_t entry[2];

static void table_begin(void *memory, int planes) {
        entry *entries = memory;

        for (size_t i = 0; i < cell_count(planes); i++)
                entries[i][0] = i;
}

static void count_entries(entry *entries, size_t n, uint64_t state, int many) {
        for (int i = 0; i < many; i++)
                entries[random_next(&state) % n][1]++;
}

static void table_step(void *memory, int planes, int number) {
        count_entries(memory, cell_count(planes), (uint64_t) number, 4000);
}

/* The same places each time: what adaptive blocks can learn. */
static void counters_step(void *memory, int planes, int number) {
        count_entries(memory, cell_count(planes), 1, HOT);
}

/* ---- all of them ---- */

#define DOUBLES(n) ((size_t) (n) * sizeof(double))

static const struct kernel lu = { "SSOR", DOUBLES(LU_DOUBLES *PLANE), 2, lu_begin, lu_step };
static const struct kernel lines = { "solves along lines", DOUBLES(LINES_DOUBLES *PLANE), 2, lines_begin, lines_step };
static const struct kernel ep = { "random numbers in batches", DOUBLES(PLANE), 2, ep_begin, ep_step };
static const struct kernel cg = { "conjugate gradients", CG_ROW_BYTES *PLANE, 1, cg_begin, cg_step };
static const struct kernel is = { "integers put in order", IS_ARRAYS * sizeof(int32_t) * PLANE, 1, is_begin, is_step };
static const struct kernel mg = { "V-cycles", DOUBLES(MG_PLANE_DOUBLES), 1, mg_begin, mg_step };
static const struct kernel ft = { "transforms in three dimensions", DOUBLES(FT_DOUBLES *FT_PLANE), 1, ft_begin, ft_step };
static const struct kernel gas = { "a shock in gas at rest", DOUBLES(GAS_DOUBLES *PLANE), 2, gas_begin, gas_step };
static const struct kernel sweep = { "transport, eight octants", DOUBLES(SWEEP_PLANE_DOUBLES), 1, sweep_begin, sweep_step };
static const struct kernel plate = { "heat comes into a cold plate", 2 * sizeof(row), 8, plate_begin, plate_step };
static const struct kernel table = { "other entries each time", sizeof(entry) * PLANE, 1, table_begin, table_step };
static const struct kernel counters = { "the same entries each time", sizeof(entry) * PLANE, 1, table_begin, counters_step };

/* Agarwal et al. 2004, table 1: the file of a whole checkpoint, of each node of eight. Cores 2015,
 * table 2.1: the checkpoint of the system, of each of 16 processes; that of FT has 66 MiB that are
 * not of its arrays. The last three are in no text. */
const struct trace traces[] = {
        { "LU B", AGARWAL_2004, 61, &lu },        { "BT A", AGARWAL_2004, 124, &lines },
        { "SP A", AGARWAL_2004, 41, &lines },     { "EP C", AGARWAL_2004, 92, &ep },
        { "FT A", AGARWAL_2004, 64, &ft },        { "sPPM", AGARWAL_2004, 21, &gas },
        { "Sweep3D", AGARWAL_2004, 670, &sweep }, { "BT C", CORES_2015, 148, &lines },
        { "CG C", CORES_2015, 25, &cg },          { "EP C", CORES_2015, 2157, &ep },
        { "FT C", CORES_2015, 512, &ft },         { "IS C", CORES_2015, 4490, &is },
        { "LU C", CORES_2015, 173, &lu },         { "MG C", CORES_2015, 2816, &mg },
        { "SP C", CORES_2015, 151, &lines },      { "stencil", AGARWAL_2004, 1024, &plate },
        { "table", AGARWAL_2004, 512, &table },   { "counters", AGARWAL_2004, 512, &counters },
};
const size_t n_traces = sizeof(traces) / sizeof(traces[0]);

size_t trace_bytes(const struct trace *trace) {
        return (size_t) trace->planes * trace->kernel->plane_bytes;
}

void trace_begin(const struct trace *trace, void *memory) {
        trace->kernel->begin(memory, trace->planes);
}

void trace_run(const struct trace *trace, void *memory, int *number) {
        for (int i = 0; i < trace->kernel->steps; i++)
                trace->kernel->step(memory, trace->planes, (*number)++);
}

struct selection selection_read(int argc, char **argv) {
        struct selection ret = { AGARWAL_2004, NULL };
        int at = 1;

        if (argc > at + 1 && strcmp(argv[at], "--sizes") == 0) {
                ret.text = strcmp(argv[at + 1], "cores") == 0 ? CORES_2015 : AGARWAL_2004;
                if (ret.text == AGARWAL_2004 && strcmp(argv[at + 1], "agarwal") != 0) {
                        (void) fprintf(stderr, "sizes of '%s': the texts are agarwal and cores\n", argv[at + 1]);
                        exit(2);
                }
                at += 2;
        }
        if (argc > at)
                ret.name = argv[at++];
        if (argc > at) {
                (void) fprintf(stderr, "argument '%s' is one too many\n", argv[at]);
                exit(2);
        }
        return ret;
}

int selection_run(const struct selection *selection, void (*run)(void *ctx, const struct trace *trace), void *ctx) {
        size_t n_run = 0;

        for (size_t i = 0; i < n_traces; i++)
                if (traces[i].text == selection->text &&
                    (!selection->name || strncmp(traces[i].name, selection->name, strlen(selection->name)) == 0)) {
                        run(ctx, &traces[i]);
                        n_run++;
                }
        if (n_run == 0)
                (void) fprintf(stderr, "there is no kernel '%s' with sizes of this text\n", selection->name);
        return n_run > 0 ? 0 : 2;
}
