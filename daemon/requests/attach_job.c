#include "daemon/job/outputs.h"
#include "daemon/requests/attachment.h"
#include "daemon/requests/own_job.h"
#include "daemon/requests/requests.h"

void request_attach_job(struct client *client, const Rm__LocalRequest *request) {
        const Rm__AttachJob *in = request->attach_job;

        if (!own_job_find(client, request->id, "attach-job", in->job))
                return;
        if (client->conn)
                attachment_begin(client, request->id, in);
        else
                outputs_attach(client->rmd->outputs, client, request->id, in);
}
