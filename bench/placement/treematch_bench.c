/*
 * treematch against Scotch, by slot, and a plain two-step reconfiguration, on the same instances,
 * one thread. Prints a line for each instance and a summary; usage in bench/placement/treematch.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/placement/treematch_anneal.h"
#include "bench/placement/treematch_graphs.h"
#include "bench/placement/treematch_scotch.h"
#include "bench/placement/treematch_twostep.h"
#include "common/util.h"
#include "rm/policy.h"

extern const struct rm_policy_plugin rm_plugin;

enum {
        MOST_SIZES = 16,
        MOST_RESULTS = 4096,
        RECONFIGURED_RANKS = 1024,
        FEW_NODES = 48,
        ALL_NODES = 64,
        MOST_ANNEAL_SECONDS = 3600
};

struct options {
        uint64_t seed;
        double anneal_seconds; /* of each reconfiguration; 0: it is not done */
        uint32_t sizes[MOST_SIZES], n_sizes;
        uint32_t repeats;
        bool timing, reconfigure, quality, memory;
};

struct result {
        uint32_t ranks;
        double ratio, slot_ratio, seconds;
};

static uint64_t plenty(void *context) {
        (void) context;
        return 1000ull * 1000 * 1000;
}

/* CPU seconds of this thread: others may use the machine. */
static double cpu_seconds(void) {
        struct timespec now;

        (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

static int compare_doubles(const void *a, const void *b) {
        double x = *(const double *) a, y = *(const double *) b;

        return x < y ? -1 : x > y;
}

static double median(double *values, uint32_t n) {
        qsort(values, n, sizeof(*values), compare_doubles);
        return n == 0 ? NAN : n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* ---- one instance ---- */

/* A job on a cluster, and room for the answer. */
struct instance {
        struct rm_snapshot snapshot;
        struct rm_job job;
        struct rm_group *groups;
        struct rm_plan plan;
        struct rm_plan_job planned;
        uint32_t *core; /* each rank: node * NODE_CORES + core */
};

static void instance_init(struct instance *i, const struct bench_cluster *cluster, const struct rm_traffic *traffic,
                          uint32_t ranks) {
        *i = (struct instance) { .groups = xcalloc(ranks, sizeof(*i->groups)), .core = xcalloc(ranks, sizeof(*i->core)) };
        for (uint32_t r = 0; r < ranks; r++)
                i->groups[r] = (struct rm_group) { .first_rank = r, .ranks = 1, .node = RM_NO_NODE };
        i->job = (struct rm_job) {
                .name = "j", .ranks = ranks, .group_size = 1, .n_groups = ranks, .priority = 1, .groups = i->groups
        };
        i->job.traffic = *traffic;
        i->snapshot = (struct rm_snapshot) { .size = sizeof(i->snapshot),
                                             .n_nodes = cluster->n_nodes,
                                             .n_switches = cluster->n_switches,
                                             .n_jobs = 1,
                                             .nodes = cluster->nodes,
                                             .switches = cluster->switches,
                                             .jobs = &i->job };
        i->planned.group_node = xcalloc(ranks, sizeof(*i->planned.group_node));
        i->planned.rank_core = xcalloc(ranks, sizeof(*i->planned.rank_core));
        i->plan = (struct rm_plan) { .size = sizeof(i->plan), .n_jobs = 1, .jobs = &i->planned };
}

static void instance_finish(struct instance *i) {
        free(i->groups);
        free(i->core);
        free(i->planned.group_node);
        free(i->planned.rank_core);
}

/* The CPU seconds it took. */
static double instance_solve(struct instance *i) {
        struct rm_policy_run run = { .size = sizeof(run), .left_usec = plenty };
        double begin = cpu_seconds(), end;
        int r = rm_plugin.place(NULL, &i->snapshot, &run, &i->plan);

        end = cpu_seconds();
        if (r < 0 || i->planned.decision != RM_PLACE) {
                (void) fprintf(stderr, "treematch gives no plan: %s\n", strerror(-r));
                exit(1);
        }
        for (uint32_t rank = 0; rank < i->job.ranks; rank++)
                i->core[rank] = (uint32_t) i->planned.group_node[rank] * NODE_CORES + (uint32_t) i->planned.rank_core[rank];
        return end - begin;
}

struct bytes {
        double hop, inter_node;
};

static struct bytes count_bytes(const struct rm_job *job, const uint32_t *core) {
        const struct rm_traffic *traffic = &job->traffic;
        struct bytes sum = { 0, 0 };

        for (uint32_t r = 0; r < job->ranks; r++)
                for (uint64_t e = traffic->offset[r]; e < traffic->offset[r + 1]; e++) {
                        uint32_t a = core[r], b = core[traffic->peer[e]];

                        if (traffic->peer[e] < r)
                                continue;
                        sum.hop += (double) traffic->bytes[e] *
                                   cluster_hops(a / NODE_CORES, a % NODE_CORES, b / NODE_CORES, b % NODE_CORES);
                        sum.inter_node += a / NODE_CORES != b / NODE_CORES ? (double) traffic->bytes[e] : 0;
                }
        return sum;
}

static void put_by_slot(const struct bench_cluster *cluster, uint32_t ranks, uint32_t *core) {
        uint32_t rank = 0;

        for (uint32_t n = 0; n < cluster->n_nodes; n++)
                for (uint32_t c = 0; c < cluster->nodes[n].cores && rank < ranks; c++)
                        core[rank++] = n * NODE_CORES + c;
}

/* ---- against Scotch ---- */

/* The least bytes times hops of the three strategies; `ret_seconds`: of that one. */
static double solve_by_scotch(const struct bench_cluster *cluster, struct instance *i, double *ret_seconds) {
        double least = INFINITY;

        for (uint32_t s = 0; s < N_SCOTCH_STRATEGIES; s++) {
                double begin = cpu_seconds(), seconds, hop;

                if (scotch_map(cluster, &i->job.traffic, i->job.ranks, s, i->core) != 0) {
                        (void) fprintf(stderr, "Scotch fails (%s)\n", scotch_strategy_name(s));
                        exit(1);
                }
                seconds = cpu_seconds() - begin;
                hop = count_bytes(&i->job, i->core).hop;
                if (hop < least) {
                        least = hop;
                        *ret_seconds = seconds;
                }
        }
        return least;
}

static struct result compare(const struct options *options, enum traffic_kind kind, enum cluster_kind on, uint32_t ranks) {
        struct rm_traffic traffic = traffic_make(kind, ranks, options->seed + 1000 * ranks + kind);
        struct bench_cluster cluster = cluster_make(on, ranks, options->seed + 77 * ranks + on);
        struct instance i;
        struct bytes ours, slot;
        double scotch, scotch_seconds = 0, seconds;
        struct result result;

        instance_init(&i, &cluster, &traffic, ranks);
        seconds = instance_solve(&i);
        ours = count_bytes(&i.job, i.core);
        put_by_slot(&cluster, ranks, i.core);
        slot = count_bytes(&i.job, i.core);
        scotch = solve_by_scotch(&cluster, &i, &scotch_seconds);
        result = (struct result) { ranks, ours.hop / scotch, ours.hop / slot.hop, seconds };
        (void) printf("%-18s %6u %-10s %14.0f %7.4f %7.4f %9.1f %9.1f\n", traffic_kind_name(kind), ranks, cluster_kind_name(on),
                      ours.hop, result.ratio, result.slot_ratio, seconds * 1e3, scotch_seconds * 1e3);
        (void) fflush(stdout);
        instance_finish(&i);
        cluster_free(&cluster);
        traffic_free(&traffic);
        return result;
}

static void verdict(const char *what, double value, double limit) {
        (void) printf("%s: %s: %.4g, wanted at most %.4g\n", value <= limit ? "reached" : "NOT reached", what, value, limit);
}

static void compare_all(const struct options *options) {
        static struct result results[MOST_RESULTS];
        double logs = 0, worst = 0, worst_slot = 0;
        uint32_t n = 0;

        (void) printf("%-18s %6s %-10s %14s %7s %7s %9s %9s\n", "traffic", "ranks", "cluster", "bytes x hops", "/scotch", "/slot",
                      "ms", "scotch ms");
        for (uint32_t s = 0; s < options->n_sizes; s++)
                for (int kind = 0; kind < N_TRAFFIC_KINDS; kind++)
                        for (int on = 0; on < N_CLUSTER_KINDS && n < MOST_RESULTS; on++)
                                results[n++] =
                                        compare(options, (enum traffic_kind) kind, (enum cluster_kind) on, options->sizes[s]);
        for (uint32_t i = 0; i < n; i++) {
                logs += log(results[i].ratio);
                worst = fmax(worst, results[i].ratio);
                worst_slot = fmax(worst_slot, results[i].slot_ratio);
        }
        (void) printf("\n%u instances\n", n);
        verdict("geometric mean of bytes x hops against the best of Scotch", exp(logs / n), 0.98);
        verdict("the worst of them", worst, 1.005);
        verdict("the worst against by slot", worst_slot, 1);
}

/* ---- time ---- */

/* Bytes times hops of the answer, as part of those by slot. */
static double compare_by_slot(const struct bench_cluster *cluster, struct instance *i) {
        double ours = count_bytes(&i->job, i->core).hop;

        put_by_slot(cluster, i->job.ranks, i->core);
        return ours / count_bytes(&i->job, i->core).hop;
}

/* Median over the kinds of traffic from..to on all clusters, of the median of some repeats. */
static double time_kinds(const struct options *options, int from, int to, uint32_t ranks) {
        double medians[ALL_TRAFFIC_KINDS * N_CLUSTER_KINDS], least = INFINITY, most = 0, logs = 0, all;
        uint32_t n = 0;

        for (int kind = from; kind <= to; kind++)
                for (int on = 0; on < N_CLUSTER_KINDS; on++) {
                        struct rm_traffic traffic =
                                traffic_make((enum traffic_kind) kind, ranks, options->seed + 1000 * ranks + (uint64_t) kind);
                        struct bench_cluster cluster =
                                cluster_make((enum cluster_kind) on, ranks, options->seed + 77 * ranks + (uint64_t) on);
                        cleanup_free double *seconds = xcalloc(options->repeats, sizeof(*seconds));
                        struct instance i;

                        instance_init(&i, &cluster, &traffic, ranks);
                        for (uint32_t k = 0; k < options->repeats; k++)
                                seconds[k] = instance_solve(&i);
                        medians[n] = median(seconds, options->repeats) * 1e3;
                        least = fmin(least, medians[n]);
                        most = fmax(most, medians[n++]);
                        logs += log(compare_by_slot(&cluster, &i));
                        instance_finish(&i);
                        cluster_free(&cluster);
                        traffic_free(&traffic);
                }
        all = median(medians, n);
        (void) printf("%s..%s, %u ranks: median %.1f ms, %.1f..%.1f (%u instances, %u repeats), bytes x hops %.4f of by slot\n",
                      traffic_kind_name((enum traffic_kind) from), traffic_kind_name((enum traffic_kind) to), ranks, all, least,
                      most, n, options->repeats, exp(logs / n));
        return all;
}

static void time_all(const struct options *options) {
        (void) printf("\nCPU time of one answer\n");
        verdict("ms, 1024 ranks", time_kinds(options, 0, N_TRAFFIC_KINDS - 1, 1024), 25);
        verdict("ms, 4096 ranks", time_kinds(options, 0, N_TRAFFIC_KINDS - 1, 4096), 120);
        verdict("ms, 16384 ranks of stencils", time_kinds(options, 0, TRAFFIC_STENCIL_3D27_PERMUTED, 16384), 1000);
        for (int kind = TRAFFIC_DENSE; kind < ALL_TRAFFIC_KINDS; kind++)
                verdict("ms, 4096 ranks, everybody with everybody", time_kinds(options, kind, kind, 4096), 300);
}

/* ---- memory ---- */

/* Reads a figure of this process from /proc, in KiB. */
static double status_kib(const char *name) {
        cleanup_file FILE *status = fopen("/proc/self/status", "re");
        char line[256];

        while (status && fgets(line, sizeof(line), status))
                if (strncmp(line, name, strlen(name)) == 0)
                        return strtod(line + strlen(name), NULL);
        (void) fprintf(stderr, "%s is not known\n", name);
        exit(1);
}

static void forget_peak(void) {
        cleanup_file FILE *refs = fopen("/proc/self/clear_refs", "we");

        if (!refs || fputs("5", refs) < 0 || fflush(refs) != 0) {
                (void) fprintf(stderr, "the peak of memory can't be reset: %s\n", strerror(errno));
                exit(1);
        }
}

/* Weighs in a process of its own, so that no memory is left from before. Bytes for each edge,
 * beyond the snapshot. */
static double weigh(const struct options *options, enum traffic_kind kind, uint32_t ranks) {
        struct rm_traffic traffic = traffic_make(kind, ranks, options->seed + 1000 * ranks + kind);
        struct bench_cluster cluster = cluster_make(CLUSTER_IRREGULAR, ranks, options->seed + 77 * ranks);
        double edges = (double) traffic.offset[ranks] / 2, bytes;
        int ends[2];
        pid_t child;

        if (pipe2(ends, O_CLOEXEC) < 0 || (child = fork()) < 0) {
                (void) fprintf(stderr, "no process: %s\n", strerror(errno));
                exit(1);
        }
        if (child == 0) {
                struct instance i;
                double before;

                instance_init(&i, &cluster, &traffic, ranks);
                (void) malloc_trim(0);
                forget_peak();
                before = status_kib("VmRSS:");
                (void) instance_solve(&i);
                bytes = (status_kib("VmHWM:") - before) * 1024;
                _exit(write(ends[1], &bytes, sizeof(bytes)) != sizeof(bytes));
        }
        (void) close(ends[1]);
        if (read(ends[0], &bytes, sizeof(bytes)) != sizeof(bytes) || waitpid(child, NULL, 0) < 0) {
                (void) fprintf(stderr, "a process failed\n");
                exit(1);
        }
        (void) close(ends[0]);
        cluster_free(&cluster);
        traffic_free(&traffic);
        return bytes / edges;
}

static void weigh_all(const struct options *options) {
        static const enum traffic_kind kinds[] = { TRAFFIC_STENCIL_2D5, TRAFFIC_STENCIL_3D27_PERMUTED, TRAFFIC_RANDOM,
                                                   TRAFFIC_RMAT };
        static const uint32_t ranks[] = { 4096, 16384, 65536 };
        double worst = 0;

        (void) printf("\nPeak of memory beyond the snapshot, bytes for each edge\n%-18s", "traffic");
        for (size_t k = 0; k < ARRAY_SIZE(ranks); k++)
                (void) printf(" %8" PRIu32, ranks[k]);
        (void) printf("\n");
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                double first = 0, last = 0;

                (void) printf("%-18s", traffic_kind_name(kinds[i]));
                for (size_t k = 0; k < ARRAY_SIZE(ranks); k++) {
                        last = weigh(options, kinds[i], ranks[k]);
                        first = k == 0 ? last : first;
                        (void) printf(" %8.0f", last);
                        (void) fflush(stdout);
                }
                (void) printf("\n");
                worst = fmax(worst, last / first);
        }
        verdict("bytes for each edge, of 16 times as many ranks against the first", worst, 1.25);
}

/* ---- reconfiguration ---- */

/* Bytes between nodes, of those of the plain two-step. */
struct reconfigured {
        double ours, annealed; /* annealed: the fewest known for as many moves */
        double seconds;
};

/* A job on 48 nodes, which 64 are to take: by slot, or as treematch placed it. */
static struct reconfigured reconfigure(const struct options *options, enum traffic_kind kind, bool placed) {
        uint32_t ranks = RECONFIGURED_RANKS, moves = 0, plain_moves = 0;
        struct rm_traffic traffic = traffic_make(kind, ranks, options->seed + 1000 * ranks + kind);
        struct bench_cluster cluster = cluster_make(CLUSTER_BALANCED, ranks, options->seed);
        cleanup_free uint32_t *home = xcalloc(ranks, sizeof(*home));
        struct reconfigured result = { 0 };
        double ours, plain;
        struct instance i;

        for (uint32_t n = 0; n < ALL_NODES; n++) {
                cluster.nodes[n].cores = n < FEW_NODES ? ranks / FEW_NODES + (n < ranks % FEW_NODES) : 0;
                cluster.nodes[n].switch_index = RM_NO_NODE;
        }
        instance_init(&i, &cluster, &traffic, ranks);
        if (placed)
                (void) instance_solve(&i);
        for (uint32_t r = 0, n = 0, used = 0; r < ranks; r++, used++) {
                if (used == cluster.nodes[n].cores) {
                        n++;
                        used = 0;
                }
                home[r] = placed ? (uint32_t) i.planned.group_node[r] : n;
                i.groups[r].node = (int32_t) home[r];
                i.groups[r].move_cost = 1;
        }
        for (uint32_t n = 0; n < ALL_NODES; n++)
                cluster.nodes[n].cores = NODE_CORES;
        result.seconds = instance_solve(&i);
        ours = count_bytes(&i.job, i.core).inter_node;
        if (options->anneal_seconds > 0)
                result.annealed = anneal_moves(&i.job, home, i.core, ALL_NODES, options->seed, options->anneal_seconds);
        for (uint32_t r = 0; r < ranks; r++)
                moves += i.core[r] / NODE_CORES != home[r];
        twostep_plain(&i.job, home, ALL_NODES, options->seed, i.core);
        plain = count_bytes(&i.job, i.core).inter_node;
        for (uint32_t r = 0; r < ranks; r++)
                plain_moves += i.core[r] / NODE_CORES != home[r];
        result.ours = ours / plain;
        result.annealed /= plain;
        (void) printf("%-18s %-9s %14.0f %14.0f %7.4f", traffic_kind_name(kind), placed ? "treematch" : "by slot", ours, plain,
                      result.ours);
        if (options->anneal_seconds > 0)
                (void) printf(" %8.4f", result.annealed);
        (void) printf(" %6u %6u %9.1f\n", moves, plain_moves, result.seconds * 1e3);
        instance_finish(&i);
        cluster_free(&cluster);
        traffic_free(&traffic);
        return result;
}

static void reconfigure_all(const struct options *options) {
        static const char *const began[] = { "jobs that began by slot", "jobs that treematch placed" };
        double seconds[N_TRAFFIC_KINDS * 2], ours[2] = { 0, 0 }, annealed[2] = { 0, 0 };
        uint32_t n = 0;

        (void) printf("\nreconfiguration: %d ranks, %d nodes to %d\n", RECONFIGURED_RANKS, FEW_NODES, ALL_NODES);
        (void) printf("%-18s %-9s %14s %14s %7s", "traffic", "began", "between nodes", "plain two-step", "ratio");
        if (options->anneal_seconds > 0)
                (void) printf(" %8s", "annealed");
        (void) printf(" %6s %6s %9s\n", "moves", "plain", "ms");
        for (int placed = 0; placed < 2; placed++)
                for (int kind = 0; kind < N_TRAFFIC_KINDS; kind++) {
                        struct reconfigured result = reconfigure(options, (enum traffic_kind) kind, placed);

                        seconds[n++] = result.seconds;
                        ours[placed] += log(result.ours);
                        annealed[placed] += log(result.annealed);
                }
        for (int placed = 0; placed < 2; placed++) {
                (void) printf("geometric mean against the plain two-step, %s: %.4f", began[placed],
                              exp(ours[placed] / N_TRAFFIC_KINDS));
                if (options->anneal_seconds > 0)
                        (void) printf("; as many moves, annealed for %g s each: %.4f", options->anneal_seconds,
                                      exp(annealed[placed] / N_TRAFFIC_KINDS));
                (void) printf("\n");
        }
        verdict("geometric mean of both", exp((ours[0] + ours[1]) / n), 0.85);
        verdict("median ms", median(seconds, n) * 1e3, 20);
}

/* ---- options ---- */

static void parse_sizes(struct options *options, struct argp_state *state, const char *arg) {
        options->n_sizes = 0;
        for (char *end; options->n_sizes < MOST_SIZES; arg = end + 1) {
                unsigned long size = strtoul(arg, &end, 10);

                if (end == arg || size < 2 || size > 1 << 20 || (*end && *end != ','))
                        argp_error(state, "--sizes: numbers of ranks with commas between them, not '%s'", arg);
                options->sizes[options->n_sizes++] = (uint32_t) size;
                if (!*end)
                        return;
        }
        argp_error(state, "--sizes: at most %d of them", MOST_SIZES);
}

static error_t parse_option(int key, char *arg, struct argp_state *state) {
        struct options *options = state->input;
        char *end;

        switch (key) {
        case 's':
                options->seed = strtoull(arg, &end, 10);
                if (*end)
                        argp_error(state, "--seed: '%s' is no number", arg);
                return 0;
        case 'n':
                parse_sizes(options, state, arg);
                return 0;
        case 'q':
                options->n_sizes = 3;
                options->repeats = 1;
                return 0;
        case 'o':
                options->quality = strcmp(arg, "quality") == 0;
                options->timing = strcmp(arg, "time") == 0;
                options->reconfigure = strcmp(arg, "reconfigure") == 0;
                options->memory = strcmp(arg, "memory") == 0;
                if (!options->quality && !options->timing && !options->reconfigure && !options->memory)
                        argp_error(state, "--only: quality, time, reconfigure or memory, not '%s'", arg);
                return 0;
        case 'a':
                options->anneal_seconds = strtod(arg, &end);
                if (*end || end == arg || !(options->anneal_seconds > 0) || options->anneal_seconds > MOST_ANNEAL_SECONDS)
                        argp_error(state, "--anneal: seconds, up to %d, not '%s'", MOST_ANNEAL_SECONDS, arg);
                return 0;
        default:
                return ARGP_ERR_UNKNOWN;
        }
}

int main(int argc, char **argv) {
        static const struct argp_option known[] = {
                { "seed", 's', "N", 0, "Of all instances (default 1)", 0 },
                { "sizes", 'n', "N,N...", 0, "Ranks of the instances compared (default 64 to 4096)", 0 },
                { "quick", 'q', NULL, 0, "Small ones only", 0 },
                { "only", 'o', "PART", 0, "quality, time, reconfigure or memory", 0 },
                { "anneal", 'a', "SECONDS", 0, "For each reconfiguration: the fewest bytes that as many moves allow, too", 0 },
                { 0 },
        };
        static const struct argp argp = { .options = known, .parser = parse_option, .doc = "treematch against Scotch and others." };
        struct options options = { .seed = 1,
                                   .sizes = { 64, 144, 256, 576, 1024, 2304, 4096 },
                                   .n_sizes = 7,
                                   .repeats = 3,
                                   .timing = true,
                                   .reconfigure = true,
                                   .quality = true,
                                   .memory = true };

        argp_err_exit_status = 2;
        (void) argp_parse(&argp, argc, argv, 0, NULL, &options);
        (void) printf("seed %" PRIu64 "\n", options.seed);
        if (options.quality)
                compare_all(&options);
        if (options.timing)
                time_all(&options);
        if (options.reconfigure)
                reconfigure_all(&options);
        if (options.memory)
                weigh_all(&options);
        return 0;
}
