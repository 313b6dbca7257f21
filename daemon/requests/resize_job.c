#include "daemon/requests/own_job.h"
#include "daemon/requests/requests.h"
#include "daemon/state/commands.h"

/* The log says which numbers are allowed, since it knows what was asked for before. */
void request_resize_job(struct client *client, const Rm__LocalRequest *request) {
        const Rm__ResizeJob *in = request->resize_job;
        struct command c;

        if (own_job_find(client, request->id, "resize-job", in->job))
                request_propose(client, request, command_job_resize(&c, in->job, in->ranks, client->user));
}
