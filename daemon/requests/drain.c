#include "daemon/requests/drain.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/text.h"
#include "daemon/state/state.h"

#define REASON_MAX_BYTES 256
/* Longer ones are mistakes, and this one may be added to any time. */
#define DEADLINE_MAX_DAYS UINT64_C(366)
#define DAY_USEC (UINT64_C(86400) * 1000000)

int drain_check(const Rm__DrainNode *in, struct rm_error *err) {
        if (in->n_names == 0 || strlen(in->reason) > REASON_MAX_BYTES || !text_is_plain(in->reason))
                return error_set(err, -EINVAL, "drain-node: name at least one node, and a reason of one line and at most %d bytes",
                                 REASON_MAX_BYTES);
        if (in->deadline_usec > DEADLINE_MAX_DAYS * DAY_USEC)
                return error_set(err, -EINVAL, "drain-node: --deadline: at most %" PRIu64 " days", DEADLINE_MAX_DAYS);
        return 0;
}
