#include <signal.h>

#include "daemon/requests/own_job.h"
#include "daemon/requests/requests.h"
#include "daemon/state/commands.h"

void request_cancel_job(struct client *client, const Rm__LocalRequest *request) {
        const Rm__CancelJob *in = request->cancel_job;
        struct command c;

        if (own_job_find(client, request->id, "cancel-job", in->job) &&
            !own_job_refuse_signal(client, request->id, "cancel-job", in->signal))
                request_propose(client, request, command_job_cancel(&c, in->job, in->signal ? in->signal : SIGTERM, client->user));
}
