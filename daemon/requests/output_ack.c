#include <errno.h>
#include <inttypes.h>

#include "daemon/job/outputs.h"
#include "daemon/requests/own_job.h"
#include "daemon/requests/requests.h"
#include "daemon/state/commands.h"

/* The front end has all of it: the spool may go. */
static void output_done(struct client *client, const Rm__LocalRequest *request, const Rm__Job *job) {
        struct command c;

        if (!job_ended(job))
                client_error(client, request->id, -EBUSY, "output-ack: job %" PRIu64 " has not ended", job->id);
        else if (job->output_done)
                client_ok(client, request->id, job->id, "");
        else
                request_propose(client, request, command_job_output_done(&c, job->id));
}

void request_output_ack(struct client *client, const Rm__LocalRequest *request) {
        const Rm__OutputAck *ack = request->output_ack;
        const Rm__Job *job;

        /* While the job runs, a local client's acknowledgement is implied by its reading: see
         * acknowledge() in attachment.c. */
        if (client->conn && !ack->done)
                return;
        job = own_job_find(client, request->id, "output-ack", ack->job);
        if (job && ack->done)
                output_done(client, request, job);
        else if (job)
                outputs_ack(client->rmd->outputs, client, ack);
}
