/* The figures of the cluster: at most 100 series, however many nodes, jobs and users there are. */
#include <string.h>

#include "common/util.h"
#include "daemon/metrics/metrics_internal.h"

#define USEC_PER_SEC 1e6

static double seconds(uint64_t usec) {
        return (double) usec / USEC_PER_SEC;
}

/* ---- nodes ---- */

static const char *const node_words[] = { "IDLE", "MIXED", "ALLOCATED", "DRAINING", "DRAINED", "FAILING", "DOWN", "UNKNOWN" };

struct node_figures {
        uint64_t states[ARRAY_SIZE(node_words)];
        uint64_t used, free, offline; /* cores */
        uint64_t conditions[3]; /* warn, failing, critical */
        uint64_t overdue;
};

static size_t word_index(const char *const *words, size_t n, const char *word) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(words[i], word) == 0)
                        return i;
        return n;
}

static void count_node(const struct state_index *index, const Rm__Node *node, struct node_figures *f) {
        size_t word = word_index(node_words, ARRAY_SIZE(node_words), state_node_name(index, node));
        uint32_t usable = node_usable_cores(node), capsules = 0;
        uint32_t ranks = state_node_ranks(index, node->name, &capsules);
        uint32_t used = ranks < usable ? ranks : usable;
        Rm__Condition condition = node_condition(node);

        if (word < ARRAY_SIZE(node_words))
                f->states[word]++;
        f->used += used;
        f->free += usable - used;
        f->offline += node->cores > usable ? node->cores - usable : 0;
        if (condition > RM__CONDITION__CONDITION_OK && condition <= RM__CONDITION__CONDITION_CRITICAL)
                f->conditions[condition - 1]++;
        f->overdue += node->drain_overdue && capsules > 0;
}

static void write_nodes(struct openmetrics *om, const struct state_index *index) {
        static const char *const conditions[] = { "warn", "failing", "critical" };
        const Rm__State *state = state_index_state(index);
        struct node_figures f = { 0 };

        for (size_t i = 0; i < state->n_nodes; i++)
                count_node(index, state->nodes[i], &f);
        openmetrics_family(om, METRIC_GAUGE, "rmd_nodes", NULL, "Nodes of the cluster by state.");
        for (size_t i = 0; i < ARRAY_SIZE(node_words); i++)
                openmetrics_value(om, "state", node_words[i], (double) f.states[i]);
        openmetrics_family(om, METRIC_GAUGE, "rmd_nodes_unwell", NULL,
                           "Nodes by the worst condition that a sensor or a person reports.");
        for (size_t i = 0; i < ARRAY_SIZE(conditions); i++)
                openmetrics_value(om, "condition", conditions[i], (double) f.conditions[i]);
        openmetrics_family(om, METRIC_GAUGE, "rmd_nodes_overdue", NULL, "Drained nodes that should be empty by now, and are not.");
        openmetrics_value(om, NULL, NULL, (double) f.overdue);
        openmetrics_family(om, METRIC_GAUGE, "rmd_cores", NULL, "Cores of all nodes by what they are used for.");
        openmetrics_value(om, "state", "used", (double) f.used);
        openmetrics_value(om, "state", "free", (double) f.free);
        openmetrics_value(om, "state", "offline", (double) f.offline);
}

static void write_voters(struct openmetrics *om, const Rm__State *state) {
        uint32_t up = 0, n = (uint32_t) state->n_voters, quorum = n / 2 + 1;

        for (size_t i = 0; i < state->n_voters; i++) {
                const Rm__Node *node = state_node(state, state->voters[i]);

                up += node && node->health == RM__NODE_HEALTH__NODE_HEALTH_UP;
        }
        openmetrics_family(om, METRIC_GAUGE, "rmd_voters", NULL, "Nodes that keep the cluster's log.");
        openmetrics_value(om, "state", "up", up);
        openmetrics_value(om, "state", "down", n - up);
        openmetrics_family(om, METRIC_GAUGE, "rmd_voters_may_lose", NULL,
                           "How many more of them may be lost before nothing can be changed.");
        openmetrics_value(om, NULL, NULL, up > quorum ? up - quorum : 0);
}

/* ---- jobs ---- */

static const char *const job_words[] = { "PENDING",       "STARTING",   "RUNNING",    "MIGRATING", "FOLDED",
                                         "CHECKPOINTING", "RECOVERING", "COMPLETING", "COMPLETED", "FAILED",
                                         "CANCELLED",     "TIMEOUT",    "NODE_FAIL" };

struct job_figures {
        uint64_t states[ARRAY_SIZE(job_words)];
        uint64_t oldest_usec;    /* of the newest checkpoint that a job has */
        double oldest_intervals; /* the same as a multiple of the job's interval */
};

/* How old what the job would go back to is. */
static void age_checkpoint(const struct metrics_cluster *cluster, const Rm__Job *job, struct job_figures *f) {
        uint64_t interval_usec = cluster->interval_usec(cluster->context, job), from_usec = job->start_usec, age_usec;

        if (interval_usec == 0)
                return;
        for (size_t i = 0; i < job->n_checkpoints; i++)
                if (job->checkpoints[i]->state == RM__CHECKPOINT_STATE__CHECKPOINT_DONE &&
                    job->checkpoints[i]->captured_usec > from_usec)
                        from_usec = job->checkpoints[i]->captured_usec;
        age_usec = cluster->log_usec > from_usec ? cluster->log_usec - from_usec : 0;
        if (age_usec > f->oldest_usec)
                f->oldest_usec = age_usec;
        if ((double) age_usec / (double) interval_usec > f->oldest_intervals)
                f->oldest_intervals = (double) age_usec / (double) interval_usec;
}

static void write_jobs(struct openmetrics *om, const struct state_index *index, const struct metrics_cluster *cluster) {
        const Rm__State *state = state_index_state(index);
        struct job_figures f = { 0 };

        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Job *job = state->jobs[i];
                size_t word = word_index(job_words, ARRAY_SIZE(job_words), state_job_name(index, job));

                if (word < ARRAY_SIZE(job_words))
                        f.states[word]++;
                if (job->state == RM__JOB_STATE__JOB_RUNNING)
                        age_checkpoint(cluster, job, &f);
        }
        openmetrics_family(om, METRIC_GAUGE, "rmd_jobs", NULL,
                           "Jobs that the cluster knows by state; ended ones are forgotten after a while.");
        for (size_t i = 0; i < ARRAY_SIZE(job_words); i++)
                openmetrics_value(om, "state", job_words[i], (double) f.states[i]);
        openmetrics_family(om, METRIC_GAUGE, "rmd_checkpoint_age_seconds", "seconds",
                           "Of the running jobs that make checkpoints, how old the oldest is that one would go back to.");
        openmetrics_value(om, NULL, NULL, seconds(f.oldest_usec));
        openmetrics_family(
                om, METRIC_GAUGE, "rmd_checkpoint_age_intervals", NULL,
                "The same as a multiple of the time from one checkpoint to the next, of the job for which that is most.");
        openmetrics_value(om, NULL, NULL, f.oldest_intervals);
}

/* ---- what was counted ---- */

static void write_moves(struct openmetrics *om, const struct counters *counters, size_t open) {
        static const char *const reasons[COUNTERS_CAUSES] = { "needed", "return", "choice", "asked", "recover" };

        openmetrics_family(om, METRIC_COUNTER, "rmd_moves", NULL, "Moves of groups by why and how they ended.");
        for (size_t i = 0; i < COUNTERS_CAUSES; i++) {
                openmetrics_value2(om, "reason", reasons[i], "result", "done", (double) counters->values[COUNTER_MOVES_DONE + i]);
                openmetrics_value2(om, "reason", reasons[i], "result", "failed",
                                   (double) counters->values[COUNTER_MOVES_FAILED + i]);
        }
        openmetrics_family(om, METRIC_GAUGE, "rmd_moves_open", NULL, "Moves that are under way.");
        openmetrics_value(om, NULL, NULL, (double) open);
        openmetrics_family(om, METRIC_HISTOGRAM, "rmd_move_freeze_seconds", "seconds", "For how long moving groups stood still.");
        openmetrics_histogram(om, counters, HISTOGRAM_FREEZE);
        openmetrics_family(om, METRIC_COUNTER, "rmd_move_bytes", "bytes", "Bytes that moves have sent.");
        openmetrics_value(om, NULL, NULL, (double) counters->values[COUNTER_MOVE_BYTES]);
}

static void write_checkpoints(struct openmetrics *om, const struct counters *counters) {
        openmetrics_family(om, METRIC_COUNTER, "rmd_checkpoints", NULL, "Checkpoints of jobs by how they ended.");
        openmetrics_value(om, "result", "done", (double) counters->values[COUNTER_CHECKPOINTS_DONE]);
        openmetrics_value(om, "result", "failed", (double) counters->values[COUNTER_CHECKPOINTS_FAILED]);
        openmetrics_family(om, METRIC_HISTOGRAM, "rmd_checkpoint_pause_seconds", "seconds",
                           "For how long jobs stood still for checkpoints.");
        openmetrics_histogram(om, counters, HISTOGRAM_PAUSE);
}

static void write_recoveries(struct openmetrics *om, const struct counters *counters) {
        openmetrics_family(om, METRIC_COUNTER, "rmd_recoveries", NULL,
                           "Jobs that lost a node and ran again (done), or ended for that (failed).");
        openmetrics_value(om, "result", "done", (double) counters->values[COUNTER_RECOVERIES_DONE]);
        openmetrics_value(om, "result", "failed", (double) counters->values[COUNTER_RECOVERIES_FAILED]);
        openmetrics_family(om, METRIC_HISTOGRAM, "rmd_recovery_seconds", "seconds",
                           "How long it took from when the loss of a node was decided until its jobs ran again.");
        openmetrics_histogram(om, counters, HISTOGRAM_RECOVERY);
        openmetrics_family(om, METRIC_COUNTER, "rmd_work_lost_seconds", "seconds",
                           "Time of jobs between what they went back to and the loss of a node.");
        openmetrics_value(om, NULL, NULL, seconds(counters->values[COUNTER_WORK_LOST_USEC]));
}

static void write_scheduling(struct openmetrics *om, const struct counters *counters) {
        openmetrics_family(om, METRIC_HISTOGRAM, "rmd_job_waiting_seconds", "seconds",
                           "How long jobs waited until they were placed.");
        openmetrics_histogram(om, counters, HISTOGRAM_WAITING);
        openmetrics_family(om, METRIC_SUMMARY, "rmd_policy_seconds", "seconds", "How long policies took for the plans of a round.");
        openmetrics_summary(om, counters->values[COUNTER_POLICY_RUNS], counters->values[COUNTER_POLICY_USEC]);
        openmetrics_family(om, METRIC_COUNTER, "rmd_policy_failures", NULL, "Rounds in which a policy gave no valid plan.");
        openmetrics_value(om, NULL, NULL, (double) counters->values[COUNTER_POLICY_FAILURES]);
}

char *metrics_cluster_text(const struct metrics *metrics, const struct state_index *index, const struct metrics_cluster *cluster,
                           enum metrics_format format) {
        struct openmetrics *om = openmetrics_create(format);
        const struct counters *counters = totals_counters(metrics->totals);
        size_t open = 0;

        (void) state_open_moves(index, &open);
        write_nodes(om, index);
        write_voters(om, state_index_state(index));
        write_jobs(om, index, cluster);
        write_scheduling(om, counters);
        write_moves(om, counters, open);
        write_checkpoints(om, counters);
        write_recoveries(om, counters);
        return openmetrics_finish(om);
}
