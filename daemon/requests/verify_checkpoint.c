#include "daemon/checkpoint/checkpoints.h"
#include "daemon/requests/checkpoint_checks.h"
#include "daemon/requests/own_job.h"
#include "daemon/requests/requests.h"

static void on_verified(void *userdata, const Rm__VerifiedCheckpoint *found, int error, const char *text) {
        struct request_answer *asked = userdata;

        if (error < 0)
                client_error(asked->client, asked->request_id, error, "verify-checkpoint: %s", text);
        else
                client_answer(asked->client, asked->request_id, &found->base);
        request_answer_end(asked);
}

void request_verify_checkpoint(struct client *client, const Rm__LocalRequest *request) {
        const Rm__VerifyCheckpoint *in = request->verify_checkpoint;
        const Rm__Job *job = own_job_find(client, request->id, "verify-checkpoint", in->job);
        const Rm__Checkpoint *checkpoint = NULL;
        struct rm_error err = { 0 };

        if (!job)
                return;
        (void) checkpoint_find(job, in->checkpoint, "verify-checkpoint", &checkpoint, &err);
        if (checkpoint_refused(client, request->id, &err))
                return;
        checkpoints_verify(client->rmd->checkpoints, in->job, in->checkpoint, on_verified,
                           request_answer_begin(client, request->id));
}
