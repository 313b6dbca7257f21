#include "daemon/requests/restart_job.h"

#include <errno.h>
#include <inttypes.h>

#include "daemon/job/user_limits.h"
#include "daemon/requests/checkpoint_checks.h"
#include "daemon/requests/own_job.h"
#include "daemon/requests/owner_today.h"
#include "daemon/requests/requests.h"
#include "daemon/state/commands.h"
#include "daemon/state/owner.h"

int restart_job_check(const Rm__Job *job, uint64_t number, struct rm_error *err) {
        const Rm__Checkpoint *checkpoint = NULL;

        if (number > 0) {
                int r = checkpoint_find(job, number, "restart-job", &checkpoint, err);

                if (r == 0 && !checkpoint_is_done(checkpoint))
                        r = error_set(err, -EBUSY, "restart-job: checkpoint %" PRIu64 ".%" PRIu64 " is not done", job->id, number);
                return r;
        }
        for (size_t i = 0; i < job->n_checkpoints && !job->held; i++)
                if (checkpoint_is_done(job->checkpoints[i]))
                        return 0;
        return job->held ? 0 : error_set(err, -ENOENT, "restart-job: job %" PRIu64 " has no checkpoint", job->id);
}

/* False: the client was told why not, or the request comes again. Root may say that a job is to go
 * on as it was saved. */
static bool owner_may_go_on(struct client *client, const Rm__LocalRequest *request, const Rm__JobSpec *spec) {
        const struct user *user;
        struct rm_error err = { 0 };

        if (client->uid == 0 && request->restart_job->saved_rights)
                return true;
        user = owner_today(client, request, "restart-job", spec->uid);
        if (!user)
                return false;
        if (owner_check(spec, &(struct owner_today) { user->name, user->groups, user->n_groups }, &err) == 0)
                return true;
        client_error(client, request->id, err.code,
                     "restart-job: job %" PRIu64 " goes on with the rights that it was saved with, but %s; root may let it: "
                     "'rmctl restart-job --saved-rights'",
                     request->restart_job->job, err.text);
        return false;
}

void request_restart_job(struct client *client, const Rm__LocalRequest *request) {
        const Rm__RestartJob *in = request->restart_job;
        const Rm__Job *job = own_job_find(client, request->id, "restart-job", in->job);
        struct rm_error err = { 0 };
        Rm__UserLimits limits;
        struct command c;

        if (!job)
                return;
        if (in->saved_rights && client->uid != 0)
                (void) error_set(&err, -EPERM, "restart-job: --saved-rights is for root");
        if (err.code == 0)
                (void) restart_job_check(job, in->checkpoint, &err);
        if (checkpoint_refused(client, request->id, &err) || !owner_may_go_on(client, request, job->spec))
                return;
        (void) command_job_release(&c, in->job, in->checkpoint, client->user, user_limits(client->rmd, client->admin, &limits));
        c.job_release.other_files = in->other_files;
        request_propose(client, request, &c.command);
}
