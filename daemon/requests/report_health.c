#include "daemon/requests/report_health.h"

#include <errno.h>
#include <string.h>

#include "common/text.h"
#include "common/util.h"
#include "daemon/state/state.h"

/* A value that this version does not know would end the rmd of every node that reads it in the log. */
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
                return error_set(err, -EINVAL, "report-health: say with --reason why it is %s", condition_word(in->condition));
        return 0;
}
