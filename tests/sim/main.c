/* simulate-cluster: histories of a cluster in virtual time, with faults, until one violates what
 * must hold. */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"
#include "tests/sim/history.h"

struct options {
        struct history_config history;
        bool seed_set;
        unsigned histories; /* 0: by time */
        unsigned real_seconds;
        unsigned again; /* each history of so many is run twice; 0: none */
};

struct totals {
        uint64_t histories, events, operations, virtual_usec;
        uint64_t recovery_max_usec, slowest_seed, answer_max_usec;
        uint64_t repeated, resubmitted, changes;
        struct capsules_counts capsules;
        struct kept_counts kept;
        uint64_t jobs_max_usec;
};

/* The command that replays the running history: for one that ends the program. */
static char replay[4096];

static void on_crash(int signal) {
        static const char aborted[] = "\nVIOLATION: an assertion failed\nreplay: ", crashed[] = "\nVIOLATION: a crash\nreplay: ";

        (void) !write(STDOUT_FILENO, signal == SIGABRT ? aborted : crashed, strlen(signal == SIGABRT ? aborted : crashed));
        (void) !write(STDOUT_FILENO, replay, strlen(replay));
        (void) !write(STDOUT_FILENO, "\n", 1);
        _exit(1);
}

static void usage(FILE *out) {
        (void) fputs(
                "usage: simulate-cluster [--seed S] [--histories K | --real-seconds R] [--nodes N] [--seconds T] [--faults F]\n"
                "                        [--again N] [--trace]\n"
                "  --seed S          of the first history, the next ones follow (default: a new one)\n"
                "  --histories K     so many (default 1)\n"
                "  --real-seconds R  or as many as can be run in this time\n"
                "  --nodes N         voters: 1, 3 or 5 (default: drawn)\n"
                "  --seconds T       virtual time with faults (default 60)\n"
                "  --faults F        in that time (default: drawn)\n"
                "  --again N         run one history of N a second time, which must go the same way\n"
                "  --trace           tell what happens\n",
                out);
}

static unsigned number(const char *option, const char *text, int64_t min, int64_t max) {
        int64_t value;

        if (parse_i64(text, min, max, &value) < 0) {
                (void) fprintf(stderr, "simulate-cluster: --%s: '%s' is not a number from %" PRId64 " to %" PRId64 "\n", option,
                               text, min, max);
                exit(2);
        }
        return (unsigned) value;
}

static const struct option names[] = { { "seed", required_argument, NULL, 's' },
                                       { "histories", required_argument, NULL, 'k' },
                                       { "real-seconds", required_argument, NULL, 'r' },
                                       { "nodes", required_argument, NULL, 'n' },
                                       { "seconds", required_argument, NULL, 't' },
                                       { "faults", required_argument, NULL, 'f' },
                                       { "again", required_argument, NULL, 'a' },
                                       { "trace", no_argument, NULL, 'T' },
                                       { "help", no_argument, NULL, 'h' },
                                       { 0 } };

static void parse_options(int argc, char **argv, struct options *ret) {
        int option, index = 0;

        *ret = (struct options) { .history = { .seconds = 60, .n_faults = -1 }, .histories = 1 };
        while ((option = getopt_long(argc, argv, "", names, &index)) >= 0)
                switch (option) {
                case 's':
                        ret->history.seed = number("seed", optarg, 0, UINT32_MAX);
                        ret->seed_set = true;
                        break;
                case 'k':
                        ret->histories = number("histories", optarg, 1, 1000000000);
                        break;
                case 'r':
                        ret->real_seconds = number("real-seconds", optarg, 1, 86400);
                        break;
                case 'n':
                        ret->history.n_voters = number("nodes", optarg, 1, 5);
                        break;
                case 't':
                        ret->history.seconds = number("seconds", optarg, 2, 86400);
                        break;
                case 'f':
                        ret->history.n_faults = (int) number("faults", optarg, 0, 10000);
                        break;
                case 'a':
                        ret->again = number("again", optarg, 1, 1000000000);
                        break;
                case 'T':
                        ret->history.trace = stdout;
                        (void) setvbuf(stdout, NULL, _IOLBF, 0); /* all of it also when the program crashes */
                        break;
                default:
                        usage(option == 'h' ? stdout : stderr);
                        exit(option == 'h' ? 0 : 2);
                }
}

static void set_replay(const char *program, const struct history_config *config) {
        const char *how = config->follow ? " --again 1" : " --trace"; /* a trace of one of two shows nothing */
        cleanup_free char *faults = config->n_faults >= 0 ? xasprintf(" --faults %d", config->n_faults) : xstrdup("");
        cleanup_free char *nodes = config->n_voters ? xasprintf(" --nodes %u", config->n_voters) : xstrdup("");

        (void) snprintf(replay, sizeof(replay), "%s --seed %" PRIu64 "%s --seconds %u%s%s", program, config->seed, nodes,
                        config->seconds, faults, how);
}

/* false: it violates something, which has been told. */
static bool run(const char *program, const struct history_config *config, struct totals *totals) {
        struct history_result result;

        set_replay(program, config);
        history_run(config, &result);
        totals->histories++;
        totals->events += result.events;
        totals->operations += result.operations;
        totals->virtual_usec += result.virtual_usec;
        totals->repeated += result.repeated;
        totals->resubmitted += result.resubmitted;
        totals->capsules.ran += result.capsules.ran;
        totals->capsules.opened += result.capsules.opened;
        totals->capsules.fenced += result.capsules.fenced;
        totals->capsules.ended += result.capsules.ended;
        totals->capsules.lost += result.capsules.lost;
        totals->capsules.held += result.capsules.held;
        totals->capsules.changed += result.capsules.changed;
        totals->changes += result.changes;
        totals->capsules.gone += result.capsules.gone;
        totals->capsules.went_on += result.capsules.went_on;
        totals->kept.done += result.kept.done;
        totals->kept.drilled += result.kept.drilled;
        totals->kept.restored += result.kept.restored;
        totals->kept.lost += result.kept.lost;
        totals->kept.back += result.kept.back;
        if (result.recovery_usec > totals->recovery_max_usec) {
                totals->recovery_max_usec = result.recovery_usec;
                totals->slowest_seed = config->seed;
        }
        if (result.jobs_usec > totals->jobs_max_usec)
                totals->jobs_max_usec = result.jobs_usec;
        if (result.answer_usec > totals->answer_max_usec)
                totals->answer_max_usec = result.answer_usec;
        if (!result.violation)
                return true;
        printf("VIOLATION: seed %" PRIu64 ", %u voters, after %.6f s: %s\nreplay: %s\n", config->seed, result.n_voters,
               (double) result.virtual_usec / 1e6, result.violation, replay);
        free(result.violation);
        return false;
}

/* The second time all is at other addresses of the memory, on which nothing may depend. */
static bool run_twice(const char *program, const struct history_config *config, struct totals *totals) {
        struct history_config first = *config, second = *config;
        struct trail trail = { 0 };
        bool good;

        first.record = &trail;
        second.follow = &trail;
        good = run(program, &first, totals) && run(program, &second, totals);
        trail_finish(&trail);
        return good;
}

static void report(const struct totals *totals, uint64_t real_usec) {
        double seconds = (double) (real_usec ? real_usec : 1) / 1e6;

        printf("%" PRIu64 " histories, %" PRIu64 " events (%.0f/s), %.0f virtual seconds in %.1f s, %" PRIu64
               " operations answered, of which %" PRIu64 " were in the log more than once; %" PRIu64
               " jobs submitted again; %" PRIu64 " copies of capsules ran, %" PRIu64 " of them opened after a move; %" PRIu64
               " programs ended, %" PRIu64 " lost their PID 1, %" PRIu64 " their machine; %" PRIu64
               " times without a lease; %" PRIu64 " changes of voters; %" PRIu64 " checkpoints were done, %" PRIu64
               " parts tried in drills, %" PRIu64 " copies lost; %" PRIu64 " times a job went on from one, with %" PRIu64
               " capsules, and %" PRIu64 " times not from its last; "
               "%" PRIu64 " times a parked group stood still, %" PRIu64 " times a job grew or shrank; "
               "progress at most %.1f s after the faults (seed %" PRIu64
               "); three of four proposals answered within %.1f ms then; all jobs "
               "over %.1f s later\n",
               totals->histories, totals->events, (double) totals->events / seconds, (double) totals->virtual_usec / 1e6, seconds,
               totals->operations, totals->repeated, totals->resubmitted, totals->capsules.ran, totals->capsules.opened,
               totals->capsules.ended, totals->capsules.lost, totals->capsules.gone, totals->capsules.fenced, totals->changes,
               totals->kept.done, totals->kept.drilled, totals->kept.lost, totals->kept.restored, totals->capsules.went_on,
               totals->kept.back, totals->capsules.held, totals->capsules.changed, (double) totals->recovery_max_usec / 1e6,
               totals->slowest_seed, (double) totals->answer_max_usec / 1e3, (double) totals->jobs_max_usec / 1e6);
}

/* Once a second, for who looks on. */
static void report_progress(const struct totals *totals, uint64_t *reported_usec) {
        uint64_t now = now_usec();

        if (now - *reported_usec < 1000000 || !isatty(STDERR_FILENO))
                return;
        *reported_usec = now;
        (void) fprintf(stderr, "\r%" PRIu64 " histories without a violation ", totals->histories);
}

int main(int argc, char **argv) {
        static const int crashes[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL };
        struct options options;
        struct totals totals = { 0 };
        uint64_t begin_usec = now_usec(), reported_usec = begin_usec;
        unsigned n_seeds = 0;
        uint32_t seed;
        bool good = true;

        parse_options(argc, argv, &options);
        log_setup("simulate-cluster", options.history.trace ? LOG_INFO : LOG_CRIT);
        log_write_all();
        if (!options.seed_set) {
                if (getrandom(&seed, sizeof(seed), 0) != (ssize_t) sizeof(seed))
                        return 1;
                options.history.seed = seed;
        }
        for (size_t i = 0; i < ARRAY_SIZE(crashes); i++)
                (void) signal(crashes[i], on_crash);
        printf("first seed %" PRIu64 "\n", options.history.seed);
        (void) fflush(stdout);
        while (good && (options.real_seconds ? now_usec() - begin_usec < options.real_seconds * UINT64_C(1000000)
                                             : n_seeds < options.histories)) {
                good = (options.again && options.history.seed % options.again == 0 ? run_twice : run)(argv[0], &options.history,
                                                                                                      &totals);
                options.history.seed++;
                n_seeds++;
                if (good)
                        report_progress(&totals, &reported_usec);
        }
        if (reported_usec > begin_usec)
                (void) fputc('\n', stderr);
        report(&totals, now_usec() - begin_usec);
        return good ? 0 : 1;
}
