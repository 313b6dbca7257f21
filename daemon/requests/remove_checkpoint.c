#include "daemon/requests/checkpoint_checks.h"
#include "daemon/requests/own_job.h"
#include "daemon/requests/requests.h"
#include "daemon/state/commands.h"

void request_remove_checkpoint(struct client *client, const Rm__LocalRequest *request) {
        const Rm__RemoveCheckpoint *in = request->remove_checkpoint;
        const Rm__Job *job = own_job_find(client, request->id, "remove-checkpoint", in->job);
        const Rm__Checkpoint *checkpoint = NULL;
        struct rm_error err = { 0 };
        struct command c;

        if (!job)
                return;
        (void) checkpoint_find(job, in->checkpoint, "remove-checkpoint", &checkpoint, &err);
        if (!checkpoint_refused(client, request->id, &err))
                request_propose(client, request, command_checkpoint_remove(&c, in->job, in->checkpoint, client->user));
}
