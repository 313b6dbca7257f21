/* The results of a simulation: figures, tables, CSV and a picture. */
#ifndef RM_SIM_REPORT_H
#define RM_SIM_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "launcher/sim/world.h"

/* Below this many seconds a job's slowdown says nothing (Feitelson's bounded slowdown). */
#define REPORT_SHORT_SECONDS 10.0

struct spread {
        double mean, median, p95, max;
};

struct report {
        const char *policy;
        char label[64]; /* with "+malleable", where it is of a run with such jobs */
        size_t n_jobs, n_done, n_too_large; /* jobs that are neither never got the cores they need */
        uint32_t n_malleable; /* that could change their number of ranks */
        struct spread wait_seconds; /* from submission to the first start */
        struct spread turnaround_seconds; /* from submission to the end */
        /* from submission to the end, for what the job takes by itself; at least 1, and very short
         * jobs count as short ones */
        struct spread slowdown;
        double utilisation; /* run time x ranks of jobs that ended, of what was usable from the first submission to the last end */
        double makespan_seconds;
        uint64_t moves, moved_bytes, kills, resizes;
        double lost_core_hours; /* done, and lost by being killed */
        double slowed_core_hours; /* ranks x time that jobs were frozen or folded */
        double real_seconds; /* that the simulation took */
        uint64_t rounds;
        double settle_seconds; /* from a change to the round it caused */
};

struct report report_make(const char *policy, const struct world *world);

void report_print(FILE *out, const struct report *reports, size_t n);
json_t *report_to_json(const struct report *report); /* the caller's */
/* Print a head, and a line for each job of the world. */
void report_csv_head(FILE *out);
void report_csv(FILE *out, const char *label, const struct world *world);

#endif
