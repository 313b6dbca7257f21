#include <errno.h>
#include <inttypes.h>

#include "daemon/job/outputs.h"
#include "daemon/requests/attachment.h"
#include "daemon/requests/own_job.h"
#include "daemon/requests/requests.h"

void request_job_input(struct client *client, const Rm__LocalRequest *request) {
        const Rm__JobInput *in = request->job_input;

        if (client->conn) {
                if (attachment_is_of(client->attachment, in->job))
                        attachment_put_input(client->attachment, request);
                else
                        client_error(client, request->id, -EINVAL, "job-input: not attached to job %" PRIu64, in->job);
        } else if (own_job_find(client, request->id, "job-input", in->job)) {
                outputs_input(client->rmd->outputs, client, request->id, in);
        }
}
