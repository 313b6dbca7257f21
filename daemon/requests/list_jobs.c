#include <errno.h>
#include <inttypes.h>

#include "daemon/requests/pages.h"
#include "daemon/requests/requests.h"
#include "daemon/requests/view_source.h"
#include "daemon/view/job.h"

#define JOBS_NAMED_MAX 100U /* that may be named even where fewer are known: so many get the usual answer */

/* True: the request names jobs that this client cannot see, or far more than there are, and the
 * client was told. */
static bool refuse_named(struct client *client, uint32_t request_id, const Rm__ListJobs *list) {
        const Rm__State *state = cluster_state(client->rmd->cluster);

        /* Some are named twice. */
        if (list->n_jobs > state->n_jobs + JOBS_NAMED_MAX) {
                client_error(client, request_id, -E2BIG, "list-jobs: %zu jobs named, and %zu are known", list->n_jobs,
                             state->n_jobs);
                return true;
        }
        for (size_t i = 0; i < list->n_jobs; i++) {
                const Rm__Job *job = state_job(state, list->jobs[i]);

                /* Another user's job is as unknown as one that is not there. */
                if (!job || !client_may(client, job->spec->uid)) {
                        client_error(client, request_id, -ENOENT, "no job %" PRIu64 " of yours", list->jobs[i]);
                        return true;
                }
        }
        return false;
}

void request_list_jobs(struct client *client, const Rm__LocalRequest *request) {
        const Rm__ListJobs *list = request->list_jobs;
        struct view_source source = request_view_source(client->rmd);
        struct view_reader reader = request_view_reader(client);
        struct view_jobs which = {
                .ids = list->jobs,
                .n_ids = list->n_jobs,
                .ended = list->all,
                .after = list->after,
                .max_bytes_each = list->n_jobs > 0 ? VIEW_WHOLE_BYTES : VIEW_LISTED_BYTES,
        };
        Rm__JobList jobs = RM__JOB_LIST__INIT;

        if (refuse_named(client, request->id, list))
                return;
        view_jobs(&source, &reader, &which, page_bytes(list->paged), &jobs);
        if (jobs.more && !list->paged)
                page_refuse(client, request->id, "list-jobs");
        else
                client_answer(client, request->id, &jobs.base);
        view_jobs_finish(&jobs);
}
