/* The figures of one node: at most 30 series, since there are a thousand nodes. */
#include "daemon/metrics/metrics_internal.h"

#define USEC_PER_SEC 1e6

static void write_cores(struct openmetrics *om, const struct state_index *index, const Rm__Node *node, const char *name) {
        uint32_t capsules = 0;
        uint32_t ranks = node ? state_node_ranks(index, name, &capsules) : 0;
        uint32_t usable = node ? node_usable_cores(node) : 0;
        uint32_t all = node ? node->cores : 0;
        uint32_t used = ranks < usable ? ranks : usable;

        openmetrics_family(om, METRIC_GAUGE, "rmd_node_cores", NULL, "Cores of this node by what they are used for.");
        openmetrics_value2(om, "node", name, "state", "used", used);
        openmetrics_value2(om, "node", name, "state", "free", usable - used);
        openmetrics_value2(om, "node", name, "state", "offline", all > usable ? all - usable : 0);
        openmetrics_family(om, METRIC_GAUGE, "rmd_node_ranks", NULL, "Ranks on this node, and on their way to it.");
        openmetrics_value(om, NULL, NULL, ranks);
        openmetrics_family(om, METRIC_GAUGE, "rmd_node_capsules", NULL, "Capsules on this node, and on their way to it.");
        openmetrics_value(om, NULL, NULL, capsules);
}

static uint64_t sum(const struct counters *counters, size_t first) {
        uint64_t n = 0;

        for (size_t i = 0; i < COUNTERS_CAUSES; i++)
                n += counters->values[first + i];
        return n;
}

static void write_counters(struct openmetrics *om, const struct counters *counters) {
        openmetrics_family(om, METRIC_COUNTER, "rmd_node_moves", NULL,
                           "Moves to this node that were done, and moves from it that failed.");
        openmetrics_value(om, "result", "done", (double) sum(counters, COUNTER_MOVES_DONE));
        openmetrics_value(om, "result", "failed", (double) sum(counters, COUNTER_MOVES_FAILED));
        openmetrics_family(om, METRIC_COUNTER, "rmd_node_move_bytes", "bytes", "Bytes that moves to this node have sent.");
        openmetrics_value(om, NULL, NULL, (double) counters->values[COUNTER_MOVE_BYTES]);
        openmetrics_family(om, METRIC_HISTOGRAM, "rmd_node_move_freeze_seconds", "seconds",
                           "For how long groups that came to this node stood still.");
        openmetrics_histogram(om, counters, HISTOGRAM_FREEZE);
        openmetrics_family(om, METRIC_COUNTER, "rmd_node_checkpoints", NULL, "Checkpoints of jobs whose mpirun is on this node.");
        openmetrics_value(om, "result", "done", (double) counters->values[COUNTER_CHECKPOINTS_DONE]);
        openmetrics_value(om, "result", "failed", (double) counters->values[COUNTER_CHECKPOINTS_FAILED]);
        openmetrics_family(om, METRIC_SUMMARY, "rmd_node_checkpoint_pause_seconds", "seconds",
                           "For how long jobs whose mpirun is on this node stood still for checkpoints.");
        openmetrics_summary(om, counters_observed(counters, HISTOGRAM_PAUSE), counters->values[histogram_sum(HISTOGRAM_PAUSE)]);
}

static void write_daemon(struct openmetrics *om, const Rm__State *state, const struct metrics_own *own) {
        openmetrics_family(om, METRIC_INFO, "rmd_build", NULL, "The version of this rmd.");
        openmetrics_value(om, "version", own->version, 1);
        openmetrics_family(om, METRIC_GAUGE, "rmd_start_time_seconds", "seconds", "When this rmd was started, since the epoch.");
        openmetrics_value(om, NULL, NULL, (double) own->start_real_usec / USEC_PER_SEC);
        openmetrics_family(om, METRIC_GAUGE, "rmd_leader", NULL, "1 if this node leads the cluster, else 0.");
        openmetrics_value(om, NULL, NULL, own->leads);
        openmetrics_family(om, METRIC_GAUGE, "rmd_synced", NULL, "1 if this node has the newest state of the cluster, else 0.");
        openmetrics_value(om, NULL, NULL, own->synced);
        openmetrics_family(om, METRIC_GAUGE, "rmd_tracking", NULL,
                           "1 if moves from this node can track memory while programs run, else 0.");
        openmetrics_value(om, NULL, NULL, own->tracking);
        openmetrics_family(om, METRIC_COUNTER, "rmd_log_entries", NULL, "Entries of the cluster's log that this node has applied.");
        openmetrics_value(om, NULL, NULL, (double) state->index);
        openmetrics_family(om, METRIC_COUNTER, "process_cpu_seconds", "seconds", "Time of processors that this rmd has used.");
        openmetrics_value(om, NULL, NULL, (double) own->cpu_usec / USEC_PER_SEC);
        openmetrics_family(om, METRIC_GAUGE, "process_resident_memory_bytes", "bytes", "Memory that this rmd has.");
        openmetrics_value(om, NULL, NULL, (double) own->resident_bytes);
}

char *metrics_node_text(const struct metrics *metrics, const struct state_index *index, const struct metrics_own *own,
                        enum metrics_format format) {
        struct openmetrics *om = openmetrics_create(format);
        const Rm__State *state = state_index_state(index);

        write_daemon(om, state, own);
        write_cores(om, index, state_node(state, own->node), own->node);
        write_counters(om, tally_counters(metrics->tally));
        return openmetrics_finish(om);
}
