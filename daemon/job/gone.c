#include <errno.h>
#include <stdlib.h>

#include "common/util.h"
#include "daemon/job/runner_internal.h"
#include "daemon/state/commands.h"

/* A report under way; the cluster has it until it is answered, also after the runner. */
struct gone_report {
        struct runner *runner;
        uint64_t job;
        int32_t index;
        uint64_t incarnation;
        LIST_ENTRY(gone_report) entry;
};

static bool is_under_way(const struct runner *runner, uint64_t job, const Rm__Capsule *capsule) {
        const struct gone_report *report;

        LIST_FOREACH (report, &runner->gone_reports, entry)
                if (report->job == job && report->index == capsule->index && report->incarnation == capsule->incarnation)
                        return true;
        return false;
}

static void on_reported(void *userdata, int code, const char *text, uint64_t index, uint64_t created) {
        struct gone_report *report = userdata;

        if (code != -ECANCELED) { /* else rmd ends, and the runner is gone */
                LIST_REMOVE(report, entry);
                runner_retry(report->runner);
        }
        free(report);
}

void gone_report(struct runner *runner, uint64_t job, const Rm__Capsule *capsule) {
        struct gone_report *report;
        struct command c;

        if (is_under_way(runner, job, capsule))
                return;
        report = xcalloc(1, sizeof(*report));
        *report = (struct gone_report) { runner, job, capsule->index, capsule->incarnation, { 0 } };
        LIST_INSERT_HEAD(&runner->gone_reports, report, entry);
        cluster_propose(runner->rmd->cluster,
                        command_capsule_gone(&c, job, capsule->index, capsule->incarnation, cluster_self(runner->rmd->cluster)),
                        on_reported, report);
}
