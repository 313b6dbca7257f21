/* Kernels of our own that write to memory in the pattern of the benchmark that each is named after,
 * and are far from solving its problem: they are not NPB, sPPM and Sweep3D, which no distribution
 * has. Each computes in earnest, so that what stays the same to the last bit is found to be
 * unchanged, as in a program. */
#include "bench/rtlib/traces.h"

#include <complex.h>
#include <math.h>
#include <string.h>

/* ---- LU: SSOR, wavefronts from one corner to the other and back ---- */

enum { N = 64, CELLS = N * N * N, FIELDS = 5 };
struct lu {
        double u[CELLS][FIELDS], rsd[CELLS][FIELDS], frct[CELLS][FIELDS];
};

static size_t cell(int x, int y, int z) {
        return ((size_t) z * N + (size_t) y) * N + (size_t) x;
}

static void fill(double *values, size_t n) {
        for (size_t i = 0; i < n; i++)
                values[i] = sin((double) i / 1000);
}

static void lu_begin(void *memory) {
        struct lu *p = memory;

        fill(&p->u[0][0], (size_t) CELLS * FIELDS);
        fill(&p->frct[0][0], (size_t) CELLS * FIELDS);
}

static double neighbours(double (*u)[FIELDS], size_t c, int f) {
        return u[c - 1][f] + u[c + 1][f] + u[c - N][f] + u[c + N][f] + u[c - (size_t) N * N][f] + u[c + (size_t) N * N][f];
}

/* The cells that have all their neighbours, in their order. */
enum { INNER = (N - 2) * (N - 2) * (N - 2) };
static size_t inner(int k) {
        return cell(1 + k % (N - 2), 1 + k / (N - 2) % (N - 2), 1 + k / ((N - 2) * (N - 2)));
}

static void lu_step(void *memory, int number) {
        struct lu *p = memory;

        for (int k = 0; k < INNER; k++) {
                size_t c = inner(k);

                for (int f = 0; f < FIELDS; f++)
                        p->rsd[c][f] = 0.1 * (p->frct[c][f] - p->u[c][f] + neighbours(p->u, c, f) / 6);
        }
        for (int k = 0; k < INNER; k++) {
                size_t c = inner(k);

                for (int f = 0; f < FIELDS; f++)
                        p->rsd[c][f] += 0.1 * (p->rsd[c - 1][f] + p->rsd[c - N][f] + p->rsd[c - (size_t) N * N][f]);
        }
        for (int k = 0; k < INNER; k++) {
                size_t c = CELLS - 1 - inner(k);

                for (int f = 0; f < FIELDS; f++)
                        p->rsd[c][f] += 0.1 * (p->rsd[c + 1][f] + p->rsd[c + N][f] + p->rsd[c + (size_t) N * N][f]);
        }
        for (int k = 0; k < INNER; k++) {
                size_t c = inner(k);

                for (int f = 0; f < FIELDS; f++)
                        p->u[c][f] += p->rsd[c][f];
        }
}

/* ---- BT and SP: solves along all lines of each direction ---- */

struct lines {
        double u[CELLS][FIELDS], rhs[CELLS][FIELDS], forcing[CELLS][FIELDS];
        double scalars[6][CELLS];
        double upper[N]; /* of one line */
};

static void lines_begin(void *memory) {
        struct lines *p = memory;

        fill(&p->u[0][0], (size_t) CELLS * FIELDS);
        fill(&p->forcing[0][0], (size_t) CELLS * FIELDS);
}

/* Tridiagonal. */
static void solve_line(struct lines *p, size_t first, size_t stride, int f) {
        p->upper[0] = 0;
        for (size_t i = 1; i < N; i++) {
                double pivot = 4 + p->upper[i - 1];

                p->upper[i] = -1 / pivot;
                p->rhs[first + i * stride][f] = (p->rhs[first + i * stride][f] + p->rhs[first + (i - 1) * stride][f]) / pivot;
        }
        for (size_t i = N - 1; i-- > 0;)
                p->rhs[first + i * stride][f] -= p->upper[i] * p->rhs[first + (i + 1) * stride][f];
}

static void lines_step(void *memory, int number) {
        struct lines *p = memory;
        static const size_t strides[] = { 1, N, (size_t) N * N };

        for (size_t c = 0; c < CELLS; c++)
                for (int s = 0; s < 6; s++)
                        p->scalars[s][c] = p->u[c][s % FIELDS] * p->u[c][(s + 1) % FIELDS];
        for (int k = 0; k < INNER; k++) {
                size_t c = inner(k);

                for (int f = 0; f < FIELDS; f++)
                        p->rhs[c][f] = 0.1 * (p->forcing[c][f] + neighbours(p->u, c, f) - 6 * p->u[c][f] - p->scalars[f][c]);
        }
        for (int d = 0; d < 3; d++)
                for (int k = 0; k < N * N; k++)
                        for (int f = 0; f < FIELDS; f++)
                                solve_line(p, (size_t) (k % N) * strides[(d + 1) % 3] + (size_t) (k / N) * strides[(d + 2) % 3],
                                           strides[d], f);
        for (int k = 0; k < INNER; k++) {
                size_t c = inner(k);

                for (int f = 0; f < FIELDS; f++)
                        p->u[c][f] += p->rhs[c][f];
        }
}

/* ---- EP: random numbers in batches, and ten counts ---- */

struct ep {
        double batch[1U << 17];
        double rest[1U << 18]; /* of the process: never written again */
        double counts[10];
};

static uint64_t random_next(uint64_t *state) {
        *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return *state >> 33;
}

static void ep_begin(void *memory) {
        struct ep *p = memory;

        fill(p->rest, sizeof(p->rest) / sizeof(double));
}

static void ep_step(void *memory, int number) {
        struct ep *p = memory;
        uint64_t state = (uint64_t) number;

        for (size_t i = 0; i < sizeof(p->batch) / sizeof(double); i++) {
                p->batch[i] = (double) random_next(&state) / (double) (UINT64_C(1) << 31);
                p->counts[(int) (p->batch[i] * 10) % 10]++;
        }
}

/* ---- FT: a spectrum goes on in time, and is transformed back ---- */

enum { NX = 128, NY = 128, NZ = 64, POINTS = NX * NY * NZ };
struct ft {
        double complex u0[POINTS], u1[POINTS];
        double twiddle[POINTS];
};

static void ft_begin(void *memory) {
        struct ft *p = memory;

        fill((double *) p->u0, (size_t) 2 * POINTS);
        for (int i = 0; i < POINTS; i++)
                p->twiddle[i] = 1 - (double) i / POINTS / 100;
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

static void transform_lines(double complex *data, int n, size_t stride) {
        double complex line[NX], other[NX];

        for (size_t k = 0; k < POINTS / (size_t) n; k++) {
                double complex *first = data + k / stride * stride * (size_t) n + k % stride;

                for (int i = 0; i < n; i++)
                        line[i] = first[(size_t) i * stride];
                transform(line, other, n);
                for (int i = 0; i < n; i++)
                        first[(size_t) i * stride] = line[i];
        }
}

static void ft_step(void *memory, int number) {
        struct ft *p = memory;

        for (int i = 0; i < POINTS; i++)
                p->u1[i] = p->u0[i] *= p->twiddle[i];
        transform_lines(p->u1, NX, 1);
        transform_lines(p->u1, NY, NX);
        transform_lines(p->u1, NZ, (size_t) NX * NY);
}

/* ---- sPPM: a shock goes through gas at rest, here from a corner on (Lax-Friedrichs) ---- */

struct gas {
        double now[FIELDS][CELLS], next[FIELDS][CELLS]; /* density, momenta, energy */
};

static void gas_begin(void *memory) {
        struct gas *p = memory;

        for (size_t c = 0; c < CELLS; c++) {
                p->now[0][c] = p->next[0][c] = 1;
                p->now[4][c] = p->next[4][c] = 2.5;
        }
        for (int k = 0; k < INNER; k++) {
                size_t c = inner(k);

                if (c % N + c / N % N + c / ((size_t) N * N) < 9)
                        p->now[4][c] = 250;
        }
}

static void flux(double (*u)[CELLS], size_t c, int direction, double ret[static FIELDS]) {
        double speed = u[1 + direction][c] / u[0][c];
        double pressure = 0.4 * (u[4][c] - (u[1][c] * u[1][c] + u[2][c] * u[2][c] + u[3][c] * u[3][c]) / 2 / u[0][c]);

        for (int f = 0; f < FIELDS; f++)
                ret[f] = speed * (u[f][c] + (f == 4 ? pressure : 0)) + (f == 1 + direction ? pressure : 0);
}

static void gas_step(void *memory, int number) {
        struct gas *p = memory;
        double(*from)[CELLS] = number % 2 ? p->next : p->now, (*to)[CELLS] = number % 2 ? p->now : p->next;
        static const size_t strides[] = { 1, N, (size_t) N * N };

        for (int k = 0; k < INNER; k++) {
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
        double flux[CELLS], before[CELLS], source[CELLS], absorption[CELLS];
        double face_x[N][N], face_y[N][N], face_z[N][N];
};

static void sweep_begin(void *memory) {
        struct sweep *p = memory;

        fill(p->source, CELLS);
        for (size_t c = 0; c < CELLS; c++)
                p->absorption[c] = 3 + sin((double) c);
}

static void sweep_step(void *memory, int number) {
        struct sweep *p = memory;

        memcpy(p->before, p->flux, sizeof(p->flux));
        memset(p->flux, 0, sizeof(p->flux));
        for (int octant = 0; octant < 8; octant++)
                for (int k = 0; k < CELLS; k++) {
                        int x = octant & 1 ? N - 1 - k % N : k % N, y = octant & 2 ? N - 1 - k / N % N : k / N % N;
                        int z = octant & 4 ? N - 1 - k / (N * N) : k / (N * N);
                        size_t c = cell(x, y, z);
                        double in = p->face_x[y][z] + p->face_y[x][z] + p->face_z[x][y];

                        p->face_x[y][z] = p->face_y[x][z] = p->face_z[x][y] =
                                (p->source[c] + p->before[c] / 20 + in) / (3 + p->absorption[c]);
                        p->flux[c] += p->face_x[y][z];
                }
}

/* ---- a stencil: the heat of an edge comes into a cold plate ---- */

enum { WIDTH = 2048, ROWS = 1024 };
struct plate {
        double now[ROWS][WIDTH], next[ROWS][WIDTH];
};

static void plate_begin(void *memory) {
        struct plate *p = memory;

        for (int x = 0; x < WIDTH; x++)
                p->now[0][x] = p->next[0][x] = 100;
}

static void plate_step(void *memory, int number) {
        struct plate *p = memory;
        double(*from)[WIDTH] = number % 2 ? p->next : p->now, (*to)[WIDTH] = number % 2 ? p->now : p->next;

        for (int y = 1; y < ROWS - 1; y++)
                for (int x = 1; x < WIDTH - 1; x++)
                        to[y][x] = (from[y - 1][x] + from[y + 1][x] + from[y][x - 1] + from[y][x + 1]) / 4;
}

/* ---- a table: entries here and there, others each time ---- */

enum { ENTRIES = 1 << 21, HOT = 1 << 12 };
struct table {
        uint64_t entries[ENTRIES][2];
};

static void table_begin(void *memory) {
        struct table *p = memory;

        for (uint64_t i = 0; i < ENTRIES; i++)
                p->entries[i][0] = i;
}

static void table_step(void *memory, int number) {
        struct table *p = memory;
        uint64_t state = (uint64_t) number;

        for (int i = 0; i < 4000; i++)
                p->entries[random_next(&state) % ENTRIES][1]++;
}

/* The same places each time: what adaptive blocks can learn. */
static void counters_step(void *memory, int number) {
        struct table *p = memory;
        uint64_t state = 1;

        for (int i = 0; i < HOT; i++)
                p->entries[random_next(&state) % ENTRIES][1]++;
}

const struct trace traces[] = {
        { "LU", "SSOR", sizeof(struct lu), 2, lu_begin, lu_step },
        { "BT, SP", "solves along lines", sizeof(struct lines), 2, lines_begin, lines_step },
        { "EP", "random numbers in batches", sizeof(struct ep), 2, ep_begin, ep_step },
        { "FT", "transforms in three dimensions", sizeof(struct ft), 1, ft_begin, ft_step },
        { "sPPM", "a shock in gas at rest", sizeof(struct gas), 2, gas_begin, gas_step },
        { "Sweep3D", "transport, eight octants", sizeof(struct sweep), 1, sweep_begin, sweep_step },
        { "stencil", "heat comes into a cold plate", sizeof(struct plate), 8, plate_begin, plate_step },
        { "table", "other entries each time", sizeof(struct table), 1, table_begin, table_step },
        { "counters", "the same entries each time", sizeof(struct table), 1, table_begin, counters_step },
};
const size_t n_traces = sizeof(traces) / sizeof(traces[0]);
