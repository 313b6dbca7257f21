#include <stdlib.h>

#include "common/util.h"
#include "daemon/checkpoint/checkpoints.h"
#include "daemon/requests/checkpoint_checks.h"
#include "daemon/requests/own_job.h"
#include "daemon/requests/requests.h"

struct asked {
        struct client *client;
        uint32_t request_id;
};

static void on_verified(void *userdata, const Rm__VerifiedCheckpoint *found, int error, const char *text) {
        struct asked *asked = userdata;

        if (error < 0)
                client_error(asked->client, asked->request_id, error, "verify-checkpoint: %s", text);
        else
                client_answer(asked->client, asked->request_id, &found->base);
        client_release(asked->client);
        free(asked);
}

void request_verify_checkpoint(struct client *client, const Rm__LocalRequest *request) {
        const Rm__VerifyCheckpoint *in = request->verify_checkpoint;
        const Rm__Job *job = own_job_find(client, request->id, "verify-checkpoint", in->job);
        const Rm__Checkpoint *checkpoint = NULL;
        struct rm_error err = { 0 };
        struct asked *asked;

        if (!job)
                return;
        (void) checkpoint_find(job, in->checkpoint, "verify-checkpoint", &checkpoint, &err);
        if (checkpoint_refused(client, request->id, &err))
                return;
        asked = xcalloc(1, sizeof(*asked));
        *asked = (struct asked) { .client = client_hold(client), .request_id = request->id };
        checkpoints_verify(client->rmd->checkpoints, in->job, in->checkpoint, on_verified, asked);
}
