/* rmctl report-health */
#include <string.h>

#include "common/util.h"
#include "launcher/rmctl/node.h"

static const struct {
        const char *word;
        Rm__Condition condition;
} conditions[] = {
        { "ok", RM__CONDITION__CONDITION_OK },
        { "warn", RM__CONDITION__CONDITION_WARN },
        { "failing", RM__CONDITION__CONDITION_FAILING },
        { "critical", RM__CONDITION__CONDITION_CRITICAL },
};

const char *node_condition_name(Rm__Condition condition) {
        for (size_t i = 0; i < ARRAY_SIZE(conditions); i++)
                if (conditions[i].condition == condition)
                        return conditions[i].word;
        return "?";
}

static int parse_condition(struct call *call, const char *word, Rm__Condition *ret) {
        for (size_t i = 0; i < ARRAY_SIZE(conditions); i++)
                if (strcmp(conditions[i].word, word) == 0) {
                        *ret = conditions[i].condition;
                        return 0;
                }
        return call_usage(call, "the condition is the last argument: ok, warn, failing or critical, not '%s'", word);
}

static int run_report(struct call *call) {
        Rm__ReportHealth report = RM__REPORT_HEALTH__INIT;
        const char *word = call->args[--call->n_args]; /* the others are nodes */
        const char *reason = call_flag(call, "reason"), *source = call_flag(call, "source");
        int r = parse_condition(call, word, &report.condition);

        if (r == 0 && !reason && report.condition != RM__CONDITION__CONDITION_OK)
                r = call_usage(call, "say with --reason why it is %s", word);
        if (r < 0)
                return r;
        report.reason = (char *) (reason ? reason : "");
        report.source = (char *) (source ? source : "");
        return node_change(call, &report.base, &report.names, &report.n_names, word, "reported");
}

const struct verb verb_report_health = {
        .name = "report-health",
        .args = "NODES ok|warn|failing|critical",
        .min_args = 2,
        .max_args = SIZE_MAX,
        .role = ROLE_ADMIN,
        .help = "say how well nodes do their work\n"
                "warn: no job begins there. failing: everything moves to other nodes. critical: the same at once, so that groups "
                "stand "
                "still for longer. ok: what was said before is taken back. The worst that a source says of a node counts.",
        .flags = { { "reason", "TEXT", "why, shown by list-nodes; needed unless ok" },
                   { "source", "NAME", "who says so (report); a sensor's name: in its place, until it says something else" } },
        .run = run_report,
};
