#include "daemon/job/user_limits.h"
#include "daemon/leader/checkpoint_schedule.h"
#include "daemon/requests/own_job.h"
#include "daemon/requests/requests.h"

void request_drill_job(struct client *client, const Rm__LocalRequest *request) {
        const Rm__DrillJob *in = request->drill_job;
        Rm__UserLimits limits;
        struct checkpoint_wish wish = { .cause = RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_DRILL,
                                        .by = client->user,
                                        .limits = user_limits(client->rmd, client->admin, &limits) };
        struct request_answer *answer;
        struct rm_error err = { 0 };

        if (!own_job_find(client, request->id, "drill", in->job))
                return;
        answer = request_answer_begin(client, request->id);
        if (leader_checkpoint(client->rmd, in->job, &wish, request_answer_proposed, answer, &err) < 0)
                request_answer_proposed(answer, error_prefix(&err, "drill"), err.text, 0, 0);
}
