#include "daemon/requests/checkpoint_checks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/util.h"

/* "1 2 5". */
static char *known_numbers(const Rm__Job *job) {
        char *text = NULL;

        for (size_t i = 0; i < job->n_checkpoints; i++) {
                char *longer = xasprintf("%s%s%" PRIu64, text ? text : "", text ? " " : "", job->checkpoints[i]->id);

                free(text);
                text = longer;
        }
        return text ? text : xstrdup("none");
}

int checkpoint_find(const Rm__Job *job, uint64_t number, const char *verb, const Rm__Checkpoint **ret, struct rm_error *err) {
        cleanup_free char *known = NULL;

        for (size_t i = 0; i < job->n_checkpoints; i++)
                if (job->checkpoints[i]->id == number) {
                        *ret = job->checkpoints[i];
                        return 0;
                }
        known = known_numbers(job);
        return error_set(err, -ENOENT, "%s: job %" PRIu64 " has no checkpoint %" PRIu64 " (it has: %s)", verb, job->id, number,
                         known);
}

bool checkpoint_is_done(const Rm__Checkpoint *checkpoint) {
        return checkpoint->state == RM__CHECKPOINT_STATE__CHECKPOINT_DONE;
}

bool checkpoint_refused(struct client *client, uint32_t request_id, const struct rm_error *err) {
        if (err->code < 0)
                client_error(client, request_id, err->code, "%s", err->text);
        return err->code < 0;
}
