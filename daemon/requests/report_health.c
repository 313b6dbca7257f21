#include "daemon/requests/report_health.h"

#include <errno.h>
#include <string.h>

#include "common/text.h"
#include "common/util.h"
#include "daemon/requests/named_nodes.h"
#include "daemon/requests/requests.h"
#include "daemon/state/state.h"

#define SOURCE_DEFAULT "report" /* unless another is named */

/* A value that this version does not know would end the rmd of every node that reads it in the
 * log. */
static bool condition_known(Rm__Condition condition) {
        return protobuf_c_enum_descriptor_get_value(&rm__condition__descriptor, (int) condition) != NULL;
}

int report_health_check(const Rm__ReportHealth *in, struct rm_error *err) {
        if (in->n_names == 0)
                return error_set(err, -EINVAL, "report-health: name at least one node");
        if (!condition_known(in->condition))
                return error_set(err, -EINVAL, "report-health: the condition must be ok, warn, failing or critical");
        if (in->source[0] && !name_valid(in->source))
                return error_set(err, -EINVAL, "report-health: --source: a name of at most 63 letters, digits, '.', '_' and '-'");
        if (strlen(in->reason) > STATE_CONDITION_REASON_MAX_BYTES || !text_is_plain(in->reason))
                return error_set(err, -EINVAL, "report-health: --reason: one line of at most %u bytes",
                                 STATE_CONDITION_REASON_MAX_BYTES);
        if (!in->reason[0] && in->condition != RM__CONDITION__CONDITION_OK)
                return error_set(err, -EINVAL, "report-health: say with --reason why it is %s", condition_name(in->condition));
        return 0;
}

static Rm__Command *report_one(struct command *c, const struct client *client, const Rm__LocalRequest *request, size_t i) {
        const Rm__ReportHealth *in = request->report_health;
        const char *source = in->source[0] ? in->source : SOURCE_DEFAULT;

        return command_node_condition(c, in->names[i], source, in->condition, in->reason, client->user);
}

void request_report_health(struct client *client, const Rm__LocalRequest *request) {
        const Rm__ReportHealth *in = request->report_health;
        struct rm_error err = { 0 };

        if (report_health_check(in, &err) < 0)
                client_error(client, request->id, err.code, "%s", error_text(&err));
        else if (!named_nodes_refuse(client, request->id, "report-health", in->names, in->n_names))
                request_propose_all(client, request, in->n_names, report_one);
}
