/* How long a large cluster's state takes: to be listed, to be changed by one command, and to be
 * made into what a policy sees. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/leader/checkpoint_schedule.h"
#include "daemon/leader/round_input.h"
#include "daemon/metrics/metrics.h"
#include "daemon/state/state_index.h"
#include "daemon/view/job.h"
#include "daemon/view/node.h"

#define NODES 1000U
#define JOBS 1000U
#define GROUPS 99U /* a job: with its head 100 capsules */
/* Each running job has its addresses, and there are STATE_CAPSULES_MAX; the others have ended, and
 * are still known. */
#define JOBS_RUNNING 640U
#define MOVES STATE_MOVES_KEPT
#define MOVES_OPEN 8U
#define NODE_CORES 256U
#define REPEATS 9U
#define LIMIT_MSEC 20.0
#define LIMIT_TABLE_MSEC 200.0
#define LIMIT_SCRAPE_MSEC 10.0 /* Prometheus comes every few seconds */

struct bench {
        Rm__State *state;
        struct state_index *index;
        uint64_t entry;
        uint64_t created;
        struct view_source source;
        struct metrics *metrics;
        bool over; /* something took longer than it may */
};

static const struct view_reader admin = { .admin = true };

struct what {
        const char *name;
        double limit_msec;
        void (*run)(struct bench *bench, unsigned turn);
};

static void apply(struct bench *bench, Rm__Command *command) {
        struct state_result result;

        command->time_usec = UINT64_C(1800000000000000) + bench->entry;
        state_apply(bench->state, bench->index, ++bench->entry, command, &result);
        if (result.error.code < 0) {
                (void) fprintf(stderr, "state_bench: %s\n", result.error.text);
                exit(1);
        }
        bench->created = result.created;
        state_result_finish(&result);
}

#define COMMAND(Type, field, BODY)                                                                                                 \
        Rm__Cmd##Type body = RM__CMD_##BODY##__INIT;                                                                               \
        Rm__Command command = RM__COMMAND__INIT;                                                                                   \
        command.body_case = RM__COMMAND__BODY_##BODY;                                                                              \
        command.field = &body

static char *node_name(char name[static 16], unsigned n) {
        (void) snprintf(name, 16, "node%04u", n % NODES);
        return name;
}

static void join(struct bench *bench, unsigned n) {
        Rm__Node node = RM__NODE__INIT;
        char name[16];
        COMMAND(NodeJoin, node_join, NODE_JOIN);

        node.name = node_name(name, n);
        node.address = (char *) "10.0.0.1";
        node.topology = (char *) "Package:2 Core:128 PU:1";
        node.cores = NODE_CORES;
        body.node = &node;
        apply(bench, &command);
}

static uint64_t submit(struct bench *bench) {
        char *argv[] = { (char *) "mpirun", (char *) "-n", (char *) "99", (char *) "./a.out" };
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;
        COMMAND(JobSubmit, job_submit, JOB_SUBMIT);

        spec.name = (char *) "a.out";
        spec.user = (char *) "alice";
        spec.uid = 1000;
        spec.ranks = GROUPS;
        spec.group_size = 1;
        spec.checkpoint_usec = STATE_CHECKPOINT_AUTO;
        spec.argv = argv;
        spec.n_argv = ARRAY_SIZE(argv);
        body.spec = &spec;
        apply(bench, &command);
        return bench->created;
}

static void place(struct bench *bench, uint64_t job) {
        static char names[GROUPS][16];
        char *nodes[GROUPS];
        uint32_t ranks[GROUPS];
        COMMAND(JobPlace, job_place, JOB_PLACE);

        for (unsigned i = 0; i < GROUPS; i++) {
                nodes[i] = node_name(names[i], (unsigned) job * 7 + i);
                ranks[i] = 1;
        }
        body.job = job;
        body.group_size = 1;
        body.head_node = nodes[0];
        body.group_nodes = nodes;
        body.group_ranks = ranks;
        body.n_group_nodes = body.n_group_ranks = GROUPS;
        apply(bench, &command);
}

static void ready(struct bench *bench, uint64_t job, int32_t capsule) {
        COMMAND(CapsuleReady, capsule_ready, CAPSULE_READY);

        body.job = job;
        body.capsule = capsule;
        body.node = job_capsule(state_job(bench->state, job), capsule)->node;
        apply(bench, &command);
}

static void run_job(struct bench *bench, uint64_t job) {
        COMMAND(JobRunning, job_running, JOB_RUNNING);

        place(bench, job);
        for (int32_t i = STATE_HEAD; i < (int32_t) GROUPS; i++)
                ready(bench, job, i);
        body.job = job;
        apply(bench, &command);
}

static void end_job(struct bench *bench, uint64_t job) {
        const Rm__Job *ends = state_job(bench->state, job);
        COMMAND(JobExit, job_exit, JOB_EXIT);

        body.job = job;
        apply(bench, &command);
        for (int32_t i = STATE_HEAD; i < (int32_t) GROUPS; i++) {
                Rm__CmdCapsuleGone gone = RM__CMD_CAPSULE_GONE__INIT;

                gone.job = job;
                gone.capsule = i;
                gone.node = job_capsule(ends, i)->node;
                gone.incarnation = job_capsule(ends, i)->incarnation;
                command.body_case = RM__COMMAND__BODY_CAPSULE_GONE;
                command.capsule_gone = &gone;
                apply(bench, &command);
        }
}

static uint64_t start_move(struct bench *bench, uint64_t job, int32_t capsule) {
        char name[16];
        COMMAND(MoveStart, move_start, MOVE_START);

        body.job = job;
        body.capsule = capsule;
        body.to = node_name(name, (unsigned) (job * 13 + (uint64_t) capsule + 500));
        if (strcmp(body.to, job_capsule(state_job(bench->state, job), capsule)->node) == 0)
                body.to = node_name(name, (unsigned) (job * 13 + (uint64_t) capsule + 501));
        body.cause = RM__MOVE_CAUSE__MOVE_CAUSE_CHOICE;
        body.reason = (char *) "a better place";
        apply(bench, &command);
        return bench->created;
}

static void finish_move(struct bench *bench, uint64_t move) {
        Rm__Move figures = RM__MOVE__INIT;
        Rm__CmdMoveDone done = RM__CMD_MOVE_DONE__INIT;
        COMMAND(MoveCommit, move_commit, MOVE_COMMIT);

        body.move = move;
        apply(bench, &command);
        figures.id = move;
        figures.freeze_usec = 100000;
        done.figures = &figures;
        command.body_case = RM__COMMAND__BODY_MOVE_DONE;
        command.move_done = &done;
        apply(bench, &command);
}

static uint64_t nth_running(unsigned n) {
        return JOBS - JOBS_RUNNING + 1 + n % JOBS_RUNNING;
}

static void build(struct bench *bench) {
        for (unsigned i = 0; i < NODES; i++)
                join(bench, i);
        for (unsigned i = 0; i < JOBS; i++) {
                uint64_t job = submit(bench);

                run_job(bench, job);
                if (i < JOBS - JOBS_RUNNING)
                        end_job(bench, job);
        }
        for (unsigned i = 0; i < MOVES; i++) {
                uint64_t move = start_move(bench, nth_running(i), (int32_t) (i % GROUPS));

                if (i < MOVES - MOVES_OPEN)
                        finish_move(bench, move);
        }
}

/* ---- what is measured ---- */

/* Makes a page of a list as an answer does, or all of it. */
static void list_jobs(struct bench *bench, size_t max_bytes) {
        const struct view_jobs which = { .ended = true, .max_bytes_each = VIEW_LISTED_BYTES };
        Rm__JobList list = RM__JOB_LIST__INIT;

        view_jobs(&bench->source, &admin, &which, max_bytes, &list);
        view_jobs_finish(&list);
}

static void list_jobs_all(struct bench *bench, unsigned turn) {
        list_jobs(bench, SIZE_MAX);
}

static void list_jobs_page(struct bench *bench, unsigned turn) {
        list_jobs(bench, VIEW_PAGE_BYTES);
}

static void show_job(struct bench *bench, unsigned turn) {
        rm__job_view__free_unpacked(view_job(&bench->source, &admin, state_job(bench->state, nth_running(turn)), VIEW_WHOLE_BYTES),
                                    NULL);
}

static void list_nodes(struct bench *bench, unsigned turn) {
        Rm__NodeList list = RM__NODE_LIST__INIT;

        view_nodes(&bench->source, &(struct view_reader) { .admin = true }, &(struct view_nodes) { .after = "" }, SIZE_MAX, &list);
        if (list.n_nodes != NODES)
                exit(1);
        view_nodes_finish(&list);
}

static void one_ready(struct bench *bench, unsigned turn) {
        ready(bench, nth_running(turn), 5);
}

static void one_move_start(struct bench *bench, unsigned turn) {
        (void) start_move(bench, nth_running(100 + turn), 3);
}

static void one_move_end(struct bench *bench, unsigned turn) {
        size_t n;
        Rm__Move *const *open = state_open_moves(bench->index, &n);

        finish_move(bench, open[n - 1]->id);
}

static void one_submit(struct bench *bench, unsigned turn) {
        (void) submit(bench);
}

static void one_place(struct bench *bench, unsigned turn) {
        place(bench, bench->state->jobs[bench->state->n_jobs - 1 - turn]->id);
}

static void one_node_down(struct bench *bench, unsigned turn) {
        char name[16];
        COMMAND(NodeHealth, node_health, NODE_HEALTH);

        body.node = node_name(name, turn);
        body.health = RM__NODE_HEALTH__NODE_HEALTH_DOWN;
        body.why = (char *) "";
        apply(bench, &command);
        body.health = RM__NODE_HEALTH__NODE_HEALTH_UP;
        apply(bench, &command);
}

static void round_input_made(struct bench *bench, unsigned turn) {
        const struct round_input_config config = {
                .now_usec = UINT64_C(1800000001000000), .horizon_usec = 600000000, .age_weight = 1, .bytes_per_cost = 1
        };
        struct round_input input;

        round_input_create(bench->index, &config, &input);
        if (input.n_left_out > 0 || input.n_jobs == 0)
                exit(1);
        round_input_finish(&input);
}

static uint64_t checkpoint_interval(const void *context, const Rm__Job *job) {
        const struct bench *bench = context;

        return checkpoint_interval_usec(bench->state, job, UINT64_C(3600000000));
}

static void cluster_scraped(struct bench *bench, unsigned turn) {
        const struct metrics_cluster cluster = { .log_usec = UINT64_C(1800000001000000),
                                                 .interval_usec = checkpoint_interval,
                                                 .context = bench };
        char *text = metrics_cluster_text(bench->metrics, bench->index, &cluster, METRICS_OPEN);

        if (!strstr(text, "rmd_policy_seconds_count 1000\n"))
                exit(1);
        free(text);
}

static void node_scraped(struct bench *bench, unsigned turn) {
        const struct metrics_own own = { .version = "0", .node = "node0007" };

        free(metrics_node_text(bench->metrics, bench->index, &own, METRICS_OPEN));
}

/* The counters of all nodes come to the leader. */
static void nodes_reported(struct bench *bench, unsigned turn) {
        for (unsigned i = 0; i < NODES; i++) {
                uint64_t values[COUNTERS] = { 0 };
                Rm__NodeCounters report = RM__NODE_COUNTERS__INIT;
                char name[16];

                values[COUNTER_POLICY_RUNS] = 1;
                report.run = 1;
                report.values = values;
                report.n_values = COUNTERS;
                metrics_reported(bench->metrics, node_name(name, i), &report, 1);
        }
}

static void index_made(struct bench *bench, unsigned turn) {
        state_index_destroy(state_index_create(bench->state));
}

static int compare(const void *a, const void *b) {
        double x = *(const double *) a, y = *(const double *) b;

        return (x > y) - (x < y);
}

static void measure(struct bench *bench, const struct what *what) {
        double msec[REPEATS];

        for (unsigned i = 0; i < REPEATS; i++) {
                uint64_t begin = now_usec();

                what->run(bench, i);
                msec[i] = (double) (now_usec() - begin) / 1000;
        }
        qsort(msec, REPEATS, sizeof(*msec), compare);
        (void) printf("%-42s %10.3f %10.3f %8.0f%s\n", what->name, msec[REPEATS / 2], msec[REPEATS - 1], what->limit_msec,
                      msec[REPEATS / 2] > what->limit_msec ? "  OVER" : "");
        (void) fflush(stdout);
        bench->over |= msec[REPEATS / 2] > what->limit_msec;
}

int main(void) {
        static const struct what list[] = {
                { "list-jobs, all", LIMIT_TABLE_MSEC, list_jobs_all },
                { "list-jobs, one page", LIMIT_MSEC, list_jobs_page },
                { "show-job", LIMIT_MSEC, show_job },
                { "list-nodes", LIMIT_MSEC, list_nodes },
                { "command: a capsule is ready", LIMIT_MSEC, one_ready },
                { "command: a move starts", LIMIT_MSEC, one_move_start },
                { "commands: a move is committed, and done", LIMIT_MSEC, one_move_end },
                { "command: a job is submitted", LIMIT_MSEC, one_submit },
                { "command: a job of 100 capsules is placed", LIMIT_MSEC, one_place },
                { "commands: a node is down, and up", LIMIT_MSEC, one_node_down },
                { "the input of one round", LIMIT_MSEC, round_input_made },
                { "counters of 1000 nodes are reported", LIMIT_MSEC, nodes_reported },
                { "metrics of the cluster", LIMIT_SCRAPE_MSEC, cluster_scraped },
                { "metrics of a node", LIMIT_SCRAPE_MSEC, node_scraped },
                { "the index, made anew", LIMIT_TABLE_MSEC, index_made },
        };
        struct bench bench = { .state = state_create("bench") };
        uint64_t begin = now_usec();
        size_t capsules = 0;

        bench.index = state_index_create(bench.state);
        bench.source =
                (struct view_source) { .index = bench.index, .network = 0x0a000000, .now_real_usec = UINT64_C(1800000001000000) };
        bench.metrics = metrics_create("node0007", 1, 0);
        build(&bench);
        for (size_t i = 0; i < bench.state->n_jobs; i++)
                capsules += bench.state->jobs[i]->n_capsules;
        (void) printf("%zu nodes, %zu jobs (%u run), %zu capsules, %zu moves (%u under way), by %lu commands in %.1f s\n",
                      bench.state->n_nodes, bench.state->n_jobs, JOBS_RUNNING, capsules, bench.state->n_moves, MOVES_OPEN,
                      (unsigned long) bench.entry, (double) (now_usec() - begin) / 1e6);
        (void) printf("%-42s %10s %10s %8s\n", "msec", "median", "max", "limit");
        for (size_t i = 0; i < ARRAY_SIZE(list); i++)
                measure(&bench, &list[i]);
        metrics_destroy(bench.metrics);
        state_index_destroy(bench.index);
        rm__state__free_unpacked(bench.state, NULL);
        return bench.over ? 1 : 0;
}
