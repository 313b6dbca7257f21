/*
 * Runs a policy in this process on generated instances, one thread, and says how good and how fast
 * its plans are.
 *
 *      placement_bench --policy-dir DIR [OPTION]...
 *
 * One line for each instance with --verbose, one for each set at the end, and with --hardest those
 * that took longest or stayed open. --all-families runs the set for each family, and sums up.
 * --write FILE writes the (first) instance as a snapshot, --write-lp FILE the program that it is,
 * for another solver.
 */
#include <argp.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "bench/placement/instance.h"
#include "common/util.h"
#include "daemon/sched/plan.h"
#include "placement/cost.h"

struct options {
        const char *directory, *policy, *write, *write_lp;
        struct instance instance;
        uint32_t from_nodes, to_nodes, from_jobs, to_jobs, seeds, hardest;
        double seconds;
        bool verbose, wall, all_families;
        bool changed; /* see instance_change() */
};

struct measure {
        struct instance instance;
        double seconds, gap, cost;
        bool proven, large;
};

struct clock {
        uint64_t deadline_usec;
        bool wall;
};

/* The processor time of this thread, so that other work of the machine is not measured; or the time
 * on the wall. */
static uint64_t clock_usec(bool wall) {
        struct timespec time;

        if (wall)
                return now_usec();
        (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return (uint64_t) time.tv_sec * 1000000 + (uint64_t) time.tv_nsec / 1000;
}

static uint64_t left_usec(void *context) {
        const struct clock *clock = context;
        uint64_t now = clock_usec(clock->wall);

        return now < clock->deadline_usec ? clock->deadline_usec - now : 0;
}

/* ---- options ---- */

static error_t parse_option(int key, char *arg, struct argp_state *state) {
        struct options *options = state->input;

        switch (key) {
        case 'd':
                options->directory = arg;
                return 0;
        case 'p':
                options->policy = arg;
                return 0;
        case 'w':
                options->write = arg;
                return 0;
        case 'l':
                options->write_lp = arg;
                return 0;
        case 'f':
                options->instance.family = strcmp(arg, "hard") == 0    ? FAMILY_HARD
                                           : strcmp(arg, "light") == 0 ? FAMILY_LIGHT
                                           : strcmp(arg, "busy") == 0  ? FAMILY_BUSY
                                                                       : FAMILY_DRAWN;
                return 0;
        case 'r':
                options->instance.penalties = true;
                return 0;
        case 'm':
                options->instance.moving = true;
                return 0;
        case 'M':
                options->changed = true;
                return 0;
        case 'g':
                options->instance.group_size = (uint32_t) atoi(arg);
                return 0;
        case 'n':
                if (sscanf(arg, "%" SCNu32 "-%" SCNu32, &options->from_nodes, &options->to_nodes) == 1)
                        options->to_nodes = options->from_nodes;
                return 0;
        case 'j':
                if (sscanf(arg, "%" SCNu32 "-%" SCNu32, &options->from_jobs, &options->to_jobs) == 1)
                        options->to_jobs = options->from_jobs;
                return 0;
        case 's':
                options->instance.seed = strtoull(arg, NULL, 10);
                return 0;
        case 'c':
                options->seeds = (uint32_t) atoi(arg);
                return 0;
        case 't':
                options->seconds = atof(arg);
                return 0;
        case 'W':
                options->wall = true;
                return 0;
        case 'a':
                options->all_families = true;
                return 0;
        case 'H':
                options->hardest = (uint32_t) atoi(arg);
                return 0;
        case 'v':
                options->verbose = true;
                return 0;
        default:
                return ARGP_ERR_UNKNOWN;
        }
}

static const struct argp_option options_known[] = {
        { "policy-dir", 'd', "DIR", 0, "Where policies are", 0 },
        { "policy", 'p', "NAME", 0, "Policy (default distrib)", 0 },
        { "family", 'f', "drawn|hard|light|busy", 0,
          "Kind of instances (default drawn); busy: a cluster in use, of 8 to 64 cores a node, in groups of the default size", 0 },
        { "penalties", 'r', NULL, 0, "Penalties of nodes uniform 1..10 (default: all 1)", 0 },
        { "moving", 'm', NULL, 0, "All jobs run already, moves cost", 0 },
        { "changed", 'M', NULL, 0, "All jobs run where a plan has put them, moves cost, and a fifth of the nodes are others now",
          0 },
        { "group-size", 'g', "K", 0, "Ranks in a group (default 1)", 0 },
        { "nodes", 'n', "FROM[-TO]", 0, "Nodes (default 1-20)", 0 },
        { "jobs", 'j', "FROM[-TO]", 0, "Jobs (default 1-20)", 0 },
        { "seed", 's', "N", 0, "First seed (default 1)", 0 },
        { "count", 'c', "N", 0, "Seeds for each size (default 1)", 0 },
        { "time", 't', "S", 0, "Seconds for each (default 20)", 0 },
        { "write", 'w', "FILE", 0, "Write the instance, run nothing", 0 },
        { "write-lp", 'l', "FILE", 0, "Write the tight integer program of the jobs that are placed, after a run", 0 },
        { "wall", 'W', NULL, 0, "Measure time on the wall (default: of the processor, for this thread)", 0 },
        { "all-families", 'a', NULL, 0, "As drawn and hard, with equal and different penalties, each from the first seed on", 0 },
        { "hardest", 'H', "N", 0, "Name the instances that took longest, those that stayed open first", 0 },
        { "verbose", 'v', NULL, 0, "A line for each instance", 0 },
        { 0 },
};

/* ---- measuring ---- */

/* In CPLEX's format, as all solvers read it. */
static int write_program(const struct rm_snapshot *snapshot, const struct rm_plan *plan, const char *path) {
        FILE *file = fopen(path, "w");
        int64_t weight = snapshot->params.distribution_weight;

        if (!file)
                return -errno;
        (void) fprintf(file, "minimize\n obj:");
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                for (uint32_t s = 0; plan->jobs[j].decision == RM_PLACE && s < snapshot->n_nodes; s++)
                        (void) fprintf(file, "\n + %" PRId64 " x%u_%u + %" PRId64 " u%u_%u",
                                       snapshot->jobs[j].priority * snapshot->nodes[s].penalty, j, s,
                                       snapshot->jobs[j].priority * weight, j, s);
        (void) fprintf(file, "\nsubject to");
        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                for (uint32_t s = 0; plan->jobs[j].decision == RM_PLACE && s < snapshot->n_nodes; s++)
                        (void) fprintf(file, "%s + x%u_%u", s ? "" : "\n", j, s);
                if (plan->jobs[j].decision == RM_PLACE)
                        (void) fprintf(file, " = %u", snapshot->jobs[j].ranks);
        }
        for (uint32_t s = 0; s < snapshot->n_nodes; s++) {
                (void) fprintf(file, "\n");
                for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                        if (plan->jobs[j].decision == RM_PLACE)
                                (void) fprintf(file, " + x%u_%u", j, s);
                (void) fprintf(file, " <= %u", snapshot->nodes[s].cores);
        }
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                for (uint32_t s = 0; plan->jobs[j].decision == RM_PLACE && s < snapshot->n_nodes; s++) {
                        uint32_t most = snapshot->jobs[j].ranks < snapshot->nodes[s].cores ? snapshot->jobs[j].ranks
                                                                                           : snapshot->nodes[s].cores;

                        (void) fprintf(file, "\n x%u_%u - %u u%u_%u <= 0", j, s, most, j, s);
                }
        (void) fprintf(file, "\nbinary");
        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                for (uint32_t s = 0; plan->jobs[j].decision == RM_PLACE && s < snapshot->n_nodes; s++)
                        (void) fprintf(file, "\n u%u_%u", j, s);
        (void) fprintf(file, "\nend\n");
        return fclose(file) == 0 ? 0 : -errno;
}

/* The policy's plan, and how long it took; what the policy returns. */
static int place(const struct options *options, const struct rm_policy_plugin *plugin, const struct rm_snapshot *view,
                 double seconds, struct rm_plan *plan, double *ret_seconds) {
        uint64_t begin = clock_usec(options->wall);
        struct clock clock = { .deadline_usec = begin + (uint64_t) (seconds * 1e6), .wall = options->wall };
        struct rm_policy_run run = { .size = sizeof(run), .context = &clock, .left_usec = left_usec };
        int r = plugin->place(NULL, view, &run, plan);

        *ret_seconds = (double) (clock_usec(options->wall) - begin) / 1e6;
        return r;
}

/* False: there is no plan to begin with. */
static bool make_change(const struct options *options, const struct rm_policy_plugin *plugin, const struct instance *instance,
                        struct snapshot *snapshot) {
        const struct rm_snapshot *view = snapshot_view(snapshot);
        cleanup_plan struct rm_plan *plan = plan_create(view);
        double seconds;

        if (place(options, plugin, view, 0.2, plan, &seconds) < 0)
                return false;
        instance_change(instance, snapshot, plan);
        return true;
}

static int measure_one(const struct options *options, const struct rm_policy_plugin *plugin, const struct instance *instance,
                       struct measure *ret_measure) {
        cleanup_snapshot struct snapshot *snapshot = instance_create(instance);
        const struct rm_snapshot *view = snapshot_view(snapshot);
        cleanup_plan struct rm_plan *plan = plan_create(view);
        struct rm_error err = { 0 };
        double seconds;
        int64_t cost;
        int r;

        if (options->changed && !make_change(options, plugin, instance, snapshot))
                return -1;
        r = place(options, plugin, view, options->seconds, plan, &seconds);
        *ret_measure = (struct measure) { .instance = *instance, .seconds = seconds, .gap = INFINITY };
        if (r < 0 || plan_validate(view, plan, &err) < 0 || cost_plan(view, plan, &cost) < 0) {
                (void) fprintf(stderr, "seed %" PRIu64 ", %u x %u: %s\n", instance->seed, instance->nodes, instance->jobs,
                               r < 0 ? strerror(-r) : error_text(&err));
                return -1;
        }
        ret_measure->cost = (double) cost;
        ret_measure->proven = plan->proven;
        ret_measure->large = instance->nodes >= 10 && instance->jobs >= 10;
        if (plan->bound != RM_NO_BOUND)
                ret_measure->gap = cost > 0 ? (double) (cost - plan->bound) / (double) cost : 0;
        if (options->write_lp && (r = write_program(view, plan, options->write_lp)) < 0)
                return r;
        if (options->verbose)
                (void) printf("%u x %u seed %" PRIu64 " cost %" PRId64 " bound %" PRId64 " %s %.4f s gap %.4f %% (%s)\n",
                              instance->nodes, instance->jobs, instance->seed, cost, plan->bound, plan->proven ? "proven" : "OPEN",
                              ret_measure->seconds, 100 * ret_measure->gap, plan->method);
        return 0;
}

static int compare_seconds(const void *a, const void *b) {
        const struct measure *x = a, *y = b;

        if (x->proven != y->proven)
                return x->proven ? -1 : 1;
        return x->seconds < y->seconds ? -1 : x->seconds > y->seconds;
}

static const char *family_name(const struct instance *instance) {
        static const char *const names[] = {
                [FAMILY_DRAWN] = "as drawn", [FAMILY_HARD] = "hard", [FAMILY_LIGHT] = "light", [FAMILY_BUSY] = "busy"
        };

        return names[instance->family];
}

static void name_hardest(const struct measure *measures, uint32_t n, uint32_t hardest) {
        for (uint32_t i = 0; i < n && i < hardest; i++) {
                const struct measure *measure = &measures[n - 1 - i];

                (void) printf("    %s %u x %u, %s, %s penalties, seed %" PRIu64 ": %.3f s", measure->proven ? "proven" : "OPEN",
                              measure->instance.nodes, measure->instance.jobs, family_name(&measure->instance),
                              measure->instance.penalties ? "different" : "equal", measure->instance.seed, measure->seconds);
                (void) printf(measure->proven ? "\n" : ", gap %.4f %%\n", 100 * measure->gap);
        }
}

static void summarise(const struct options *options, const char *label, struct measure *measures, uint32_t n) {
        uint32_t proven = 0, quick = 0, n_large = 0;
        double logs = 0, worst_gap = 0, sum_gap = 0, sum_cost = 0;

        qsort(measures, n, sizeof(*measures), compare_seconds);
        for (uint32_t i = 0; i < n; i++) {
                proven += measures[i].proven;
                quick += measures[i].proven && measures[i].seconds <= 1;
                worst_gap = fmax(worst_gap, measures[i].gap);
                sum_gap += measures[i].gap;
                sum_cost += measures[i].cost;
                if (measures[i].large) {
                        logs += log(measures[i].seconds + 1e-6);
                        n_large++;
                }
        }
        (void) printf("%s: %u instances: proven %u (%.2f %%), within 1 s %.2f %%, median %.1f ms, p95 %.1f ms, longest %.2f s",
                      label, n, proven, 100.0 * proven / n, 100.0 * quick / n, measures[n / 2].seconds * 1e3,
                      measures[n * 95 / 100].seconds * 1e3, measures[n - 1].seconds);
        if (n_large > 0)
                (void) printf(", geometric mean of 10 x 10 and larger %.1f ms", 1e3 * exp(logs / n_large));
        (void) printf(", gap mean %.4f %%, worst %.4f %%, costs in sum %.0f\n", 100 * sum_gap / n, 100 * worst_gap, sum_cost);
        name_hardest(measures, n, options->hardest);
}

/* Runs the set into `measures`; returns how many. Counts in *failed those that gave no plan. */
static uint32_t run_set(const struct options *options, const struct rm_policy_plugin *plugin, struct measure *measures,
                        int *failed) {
        struct instance instance = options->instance;
        uint32_t done = 0;
        char label[128];

        for (instance.nodes = options->from_nodes; instance.nodes <= options->to_nodes; instance.nodes++)
                for (instance.jobs = options->from_jobs; instance.jobs <= options->to_jobs; instance.jobs++)
                        for (uint32_t i = 0; i < options->seeds; i++, instance.seed++)
                                if (measure_one(options, plugin, &instance, &measures[done]) == 0)
                                        done++;
                                else
                                        ++*failed;
        (void) snprintf(label, sizeof(label), "%s%s%s, seeds %" PRIu64 "..%" PRIu64, family_name(&instance),
                        instance.penalties ? ", penalties 1..10" : ", equal penalties",
                        options->changed  ? ", changed"
                        : instance.moving ? ", moving"
                                          : "",
                        options->instance.seed, instance.seed - 1);
        if (done > 0)
                summarise(options, label, measures, done);
        (void) fflush(stdout);
        return done;
}

static int run_sets(struct options *options, const struct rm_policy_plugin *plugin) {
        static const enum family families[] = { FAMILY_DRAWN, FAMILY_HARD };
        uint32_t n = (options->to_nodes - options->from_nodes + 1) * (options->to_jobs - options->from_jobs + 1) * options->seeds,
                 done = 0;
        cleanup_free struct measure *measures = xcalloc(4 * (size_t) n + 1, sizeof(*measures));
        int failed = 0;

        if (!options->all_families) {
                (void) run_set(options, plugin, measures, &failed);
                return failed;
        }
        for (uint32_t i = 0; i < 4; i++) {
                options->instance.family = families[i / 2];
                options->instance.penalties = i % 2;
                done += run_set(options, plugin, measures + done, &failed);
        }
        if (done > 0)
                summarise(options, "all four", measures, done);
        return failed;
}

static int write_instance(const struct options *options) {
        struct instance instance = options->instance;
        cleanup_snapshot struct snapshot *snapshot = NULL;
        json_t *root;
        int r;

        instance.nodes = options->from_nodes;
        instance.jobs = options->from_jobs;
        snapshot = instance_create(&instance);
        root = snapshot_to_json(snapshot_view(snapshot));
        r = json_dump_file(root, options->write, JSON_COMPACT);
        json_decref(root);
        return r;
}

int main(int argc, char **argv) {
        static const struct argp argp = { .options = options_known, .parser = parse_option, .doc = "Measure a placement policy." };
        struct options options = { .directory = RM_POLICY_DIR,
                                   .policy = "distrib",
                                   .instance = { .group_size = 1, .seed = 1 },
                                   .from_nodes = 1,
                                   .to_nodes = 20,
                                   .from_jobs = 1,
                                   .to_jobs = 20,
                                   .seeds = 1,
                                   .seconds = 20 };
        const struct rm_policy_plugin *plugin;
        cleanup_free char *path = NULL;
        void *library;

        (void) argp_parse(&argp, argc, argv, 0, NULL, &options);
        if (options.write)
                return write_instance(&options) != 0;
        path = xasprintf("%s/%s.so", options.directory, options.policy);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        plugin = library ? dlsym(library, RM_PLUGIN_SYMBOL) : NULL;
        if (!plugin) {
                (void) fprintf(stderr, "%s\n", dlerror());
                return 1;
        }
        return run_sets(&options, plugin) != 0;
}
