#include "launcher/sim/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

#define USEC 1e6
#define HOUR 3600.0

/* ---- figures ---- */

static int compare_doubles(const void *a, const void *b) {
        double x = *(const double *) a, y = *(const double *) b;

        return x < y ? -1 : x > y;
}

/* Sorts the values. */
static struct spread spread_of(double *values, size_t n) {
        struct spread spread = { 0 };

        if (n == 0)
                return spread;
        qsort(values, n, sizeof(*values), compare_doubles);
        for (size_t i = 0; i < n; i++)
                spread.mean += values[i] / (double) n;
        spread.median = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
        spread.p95 = values[(n * 95 + 99) / 100 - 1];
        spread.max = values[n - 1];
        return spread;
}

static double wait_of(const struct sim_job *job) {
        return (double) (job->first_start_usec - job->trace->submit_usec) / USEC;
}

static double turnaround_of(const struct sim_job *job) {
        return (double) (job->end_usec - job->trace->submit_usec) / USEC;
}

static double slowdown_of(const struct sim_job *job) {
        double run = (double) job->trace->run_usec / USEC;
        double slowdown = turnaround_of(job) / (run > REPORT_SHORT_SECONDS ? run : REPORT_SHORT_SECONDS);

        return slowdown > 1 ? slowdown : 1;
}

/* Usable core-seconds until `end_usec`. */
static double usable_until(const struct world *world, int64_t end_usec) {
        double sum = 0;

        for (size_t i = 0; i < world->n_samples && world->samples[i].time_usec < end_usec; i++) {
                int64_t next = i + 1 < world->n_samples ? world->samples[i + 1].time_usec : end_usec;

                next = next < end_usec ? next : end_usec;
                sum += (double) world->samples[i].usable * (double) (next - world->samples[i].time_usec) / USEC;
        }
        return sum;
}

struct report report_make(const char *policy, const struct world *world) {
        struct report report = { .policy = policy,
                                 .n_jobs = world->trace->n_jobs,
                                 .moves = world->n_moves,
                                 .moved_bytes = world->moved_bytes,
                                 .kills = world->n_kills,
                                 .n_malleable = world->n_malleable,
                                 .resizes = world->n_resizes };
        cleanup_free double *wait = xcalloc(report.n_jobs, sizeof(*wait)), *slowdown = xcalloc(report.n_jobs, sizeof(*slowdown));
        cleanup_free double *turnaround = xcalloc(report.n_jobs, sizeof(*turnaround));
        int64_t end = world->trace->jobs[0].submit_usec;
        double useful = 0, usable;

        (void) snprintf(report.label, sizeof(report.label), "%s%s", policy, world->config.malleable_share > 0 ? "+malleable" : "");
        for (size_t j = 0; j < report.n_jobs; j++) {
                const struct sim_job *job = &world->jobs[j];

                report.n_too_large += job->state == SIM_TOO_LARGE;
                report.lost_core_hours += job->lost_usec / USEC / HOUR * job->trace->ranks;
                report.slowed_core_hours += job->folded_usec / USEC / HOUR * job->trace->ranks;
                if (job->state != SIM_DONE)
                        continue;
                wait[report.n_done] = wait_of(job);
                turnaround[report.n_done] = turnaround_of(job);
                slowdown[report.n_done++] = slowdown_of(job);
                useful += (double) job->trace->run_usec / USEC * job->trace->ranks;
                end = job->end_usec > end ? job->end_usec : end;
        }
        report.wait_seconds = spread_of(wait, report.n_done);
        report.turnaround_seconds = spread_of(turnaround, report.n_done);
        report.slowdown = spread_of(slowdown, report.n_done);
        report.makespan_seconds = (double) (end - world->trace->jobs[0].submit_usec) / USEC;
        usable = usable_until(world, end);
        report.utilisation = usable > 0 ? useful / usable : 0;
        return report;
}

/* ---- for people ---- */

struct line {
        const char *what, *unit;
        double (*value)(const struct report *report);
        bool count;
};

static int width_of(const struct report *report) {
        int width = (int) strlen(report->label);

        return width > 16 ? width : 16;
}

static void print_line(FILE *out, const struct line *line, const struct report *reports, size_t n) {
        (void) fprintf(out, "%-28s", line->what);
        for (size_t i = 0; i < n; i++) {
                double value = line->value(&reports[i]);

                (void) fprintf(out, " %*.*f", width_of(&reports[i]), line->count || value >= 1000 ? 0 : 3, value);
        }
        (void) fprintf(out, "%s%s\n", *line->unit ? "  " : "", line->unit);
}

#define VALUE(name, expression)                                                                                                    \
        static double name(const struct report *report) {                                                                          \
                return (double) (expression);                                                                                      \
        }
VALUE(done, report->n_done)
VALUE(never, report->n_jobs - report->n_done)
VALUE(wait_mean, report->wait_seconds.mean)
VALUE(wait_median, report->wait_seconds.median)
VALUE(wait_p95, report->wait_seconds.p95)
VALUE(turnaround_mean, report->turnaround_seconds.mean)
VALUE(turnaround_median, report->turnaround_seconds.median)
VALUE(turnaround_p95, report->turnaround_seconds.p95)
VALUE(slowdown_mean, report->slowdown.mean)
VALUE(slowdown_median, report->slowdown.median)
VALUE(slowdown_p95, report->slowdown.p95)
VALUE(utilisation, 100 * report->utilisation)
VALUE(makespan, report->makespan_seconds / HOUR)
VALUE(malleable, report->n_malleable)
VALUE(resizes, report->resizes)
VALUE(moves, report->moves)
VALUE(moved, (double) report->moved_bytes / 1e9)
VALUE(kills, report->kills)
VALUE(lost, report->lost_core_hours)
VALUE(slowed, report->slowed_core_hours)
VALUE(real, report->real_seconds)
VALUE(rounds, report->rounds)
VALUE(settle, report->settle_seconds)

static const struct line lines[] = {
        { "jobs ended", "", done, true },
        { "jobs that never could", "", never, true },
        { "wait, mean", "s", wait_mean, false },
        { "wait, median", "s", wait_median, false },
        { "wait, 95 % below", "s", wait_p95, false },
        { "turnaround, mean", "s", turnaround_mean, false },
        { "turnaround, median", "s", turnaround_median, false },
        { "turnaround, 95 % below", "s", turnaround_p95, false },
        { "bounded slowdown, mean", "", slowdown_mean, false },
        { "bounded slowdown, median", "", slowdown_median, false },
        { "bounded slowdown, 95 % below", "", slowdown_p95, false },
        { "utilisation", "%", utilisation, false },
        { "from first to last", "h", makespan, false },
        { "malleable jobs", "", malleable, true },
        { "changes of their ranks", "", resizes, true },
        { "moves", "", moves, true },
        { "moved", "GB", moved, false },
        { "jobs killed", "", kills, true },
        { "work lost by that", "core h", lost, false },
        { "stood still or folded", "core h", slowed, false },
        { "rounds", "", rounds, true },
        { "from a change to its round", "s", settle, false },
        { "simulated in", "s", real, false },
};

void report_print(FILE *out, const struct report *reports, size_t n) {
        (void) fprintf(out, "%-28s", "");
        for (size_t i = 0; i < n; i++)
                (void) fprintf(out, " %*s", width_of(&reports[i]), reports[i].label);
        (void) fputc('\n', out);
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
                print_line(out, &lines[i], reports, n);
}

/* ---- for programs ---- */

static json_t *spread_to_json(const struct spread *spread) {
        return json_pack("{s:f, s:f, s:f, s:f}", "mean", spread->mean, "median", spread->median, "p95", spread->p95, "max",
                         spread->max);
}

json_t *report_to_json(const struct report *report) {
        return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:f, s:f, s:I, s:I, s:I, s:f, s:f, s:I, s:f, s:f}",
                         "policy", report->policy, "jobs", (json_int_t) report->n_jobs, "ended", (json_int_t) report->n_done,
                         "too_large", (json_int_t) report->n_too_large, "malleable", (json_int_t) report->n_malleable, "resizes",
                         (json_int_t) report->resizes, "turnaround_seconds", spread_to_json(&report->turnaround_seconds),
                         "wait_seconds", spread_to_json(&report->wait_seconds), "bounded_slowdown",
                         spread_to_json(&report->slowdown), "utilisation", report->utilisation, "makespan_seconds",
                         report->makespan_seconds, "moves", (json_int_t) report->moves, "moved_bytes",
                         (json_int_t) report->moved_bytes, "kills", (json_int_t) report->kills, "lost_core_hours",
                         report->lost_core_hours, "slowed_core_hours", report->slowed_core_hours, "rounds",
                         (json_int_t) report->rounds, "settle_seconds", report->settle_seconds, "real_seconds",
                         report->real_seconds);
}

static const char *const state_words[] = {
        [SIM_FUTURE] = "not-submitted", [SIM_WAITING] = "waits",       [SIM_RUNNING] = "runs",
        [SIM_DONE] = "ended",           [SIM_TOO_LARGE] = "too-large",
};

void report_csv_head(FILE *out) {
        (void) fputs("policy,job,state,ranks,submit_s,run_s,limit_s,wait_s,end_s,bounded_slowdown,moves,moved_bytes,kills,slowed_s,"
                     "resizes\n",
                     out);
}

void report_csv(FILE *out, const char *label, const struct world *world) {
        for (size_t j = 0; j < world->trace->n_jobs; j++) {
                const struct sim_job *job = &world->jobs[j];
                const struct swf_job *trace = job->trace;

                (void) fprintf(out, "%s,%" PRIu64 ",%s,%" PRIu32 ",%.6f,%.6f,%.6f,", label, trace->number, state_words[job->state],
                               trace->ranks, (double) trace->submit_usec / USEC, (double) trace->run_usec / USEC,
                               (double) trace->limit_usec / USEC);
                if (job->first_start_usec >= 0)
                        (void) fprintf(out, "%.6f", wait_of(job));
                if (job->state == SIM_DONE)
                        (void) fprintf(out, ",%.6f,%.6f", (double) job->end_usec / USEC, slowdown_of(job));
                else
                        (void) fputs(",,", out);
                (void) fprintf(out, ",%" PRIu32 ",%" PRIu64 ",%" PRIu32 ",%.6f,%" PRIu32 "\n", job->moves, job->moved_bytes,
                               job->kills, job->folded_usec / USEC, job->resizes);
        }
}
