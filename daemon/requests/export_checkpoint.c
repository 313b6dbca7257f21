#include "daemon/requests/export_checkpoint.h"

#include <errno.h>

#include "daemon/checkpoint/checkpoints.h"
#include "daemon/requests/checkpoint_checks.h"
#include "daemon/requests/exchange_request.h"
#include "daemon/requests/own_job.h"
#include "daemon/requests/requests.h"

int export_checkpoint_check_owner(const struct client *client, const Rm__Job *job, struct rm_error *err) {
        if (client->conn && (client->uid == 0 || client->uid == job->spec->uid))
                return 0;
        return error_set(err, -EPERM, "export-checkpoint: only the job's owner and root may do that");
}

static void on_export_end(void *userdata, int error, const char *text) {
        exchange_ended(userdata, "export-checkpoint", error, text);
}

/* Answers that not all parts are here yet. */
static void reply_gathering(struct client *client, const Rm__LocalRequest *request, size_t parts, size_t here) {
        Rm__Exchange body = RM__EXCHANGE__INIT;
        uint64_t since_usec = request->export_checkpoint->since_usec;

        body.parts = (uint32_t) parts;
        body.parts_here = (uint32_t) here;
        body.since_usec = since_usec ? since_usec : cluster_log_usec(client->rmd->cluster);
        client_answer(client, request->id, &body.base);
}

void request_export_checkpoint(struct client *client, const Rm__LocalRequest *request) {
        static const struct checkpoints_exchange_ops ops = { exchange_opened, on_export_end };
        const Rm__ExportCheckpoint *in = request->export_checkpoint;
        const Rm__Job *job = own_job_find(client, request->id, "export-checkpoint", in->job);
        struct checkpoints *checkpoints = client->rmd->checkpoints;
        struct checkpoints_user user = { .uid = client->uid, .name = client->user, .key_file = in->key_file };
        const Rm__Checkpoint *checkpoint = NULL;
        struct rm_error err = { 0 };
        struct request_answer *asked;
        size_t here = 0;

        if (!job)
                return;
        if (export_checkpoint_check_owner(client, job, &err) == 0 &&
            sealed_key_check(client, "export-checkpoint", in->key_file, &err) == 0 &&
            checkpoint_find(job, in->checkpoint, "export-checkpoint", &checkpoint, &err) == 0 &&
            checkpoints_gather(checkpoints, in->job, in->checkpoint, in->since_usec, &here, &err) < 0)
                (void) error_prefix(&err, "export-checkpoint");
        if (checkpoint_refused(client, request->id, &err))
                return;
        if (here < checkpoint->n_parts) {
                reply_gathering(client, request, checkpoint->n_parts, here);
                return;
        }
        asked = request_answer_begin(client, request->id);
        if (checkpoints_export(checkpoints, in->job, in->checkpoint, &user, &ops, asked, &err) < 0)
                exchange_ended(asked, "export-checkpoint", err.code, error_text(&err));
}
