#include "daemon/leader/checkpoint_schedule.h"
#include "daemon/requests/checkpoint_checks.h"
#include "daemon/requests/own_job.h"
#include "daemon/requests/requests.h"

void request_checkpoint_job(struct client *client, const Rm__LocalRequest *request) {
        const Rm__CheckpointJob *in = request->checkpoint_job;
        struct checkpoint_wish wish = {
                .cause = RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_ASKED, .by = client->user, .stop = in->stop, .force = in->force
        };
        struct request_answer *answer;
        struct rm_error err = { 0 };

        if (!own_job_find(client, request->id, "checkpoint-job", in->job))
                return;
        answer = request_answer_begin(client, request->id);
        if (leader_checkpoint(client->rmd, in->job, &wish, request_answer_proposed, answer, &err) < 0)
                request_answer_proposed(answer, error_prefix(&err, "checkpoint-job"), err.text, 0, 0);
}
