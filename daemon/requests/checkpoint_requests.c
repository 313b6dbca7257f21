#include "daemon/requests/checkpoint_requests.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/util.h"
#include "daemon/checkpoint/checkpoints.h"
#include "daemon/job/user_limits.h"
#include "daemon/leader/checkpoint_schedule.h"
#include "daemon/requests/owner_today.h"
#include "daemon/requests/requests.h"
#include "daemon/state/commands.h"
#include "daemon/state/owner.h"

/* ---- what is asked ---- */

/* "1 2 5". */
static char *known_numbers(const Rm__Job *job) {
        char *text = NULL;

        for (size_t i = 0; i < job->n_checkpoints; i++) {
                char *longer = xasprintf("%s%s%" PRIu64, text ? text : "", text ? " " : "", job->checkpoints[i]->id);

                free(text);
                text = longer;
        }
        return text ? text : xstrdup("none");
}

int checkpoints_find(const Rm__Job *job, uint64_t number, const char *verb, const Rm__Checkpoint **ret, struct rm_error *err) {
        cleanup_free char *known = NULL;

        for (size_t i = 0; i < job->n_checkpoints; i++)
                if (job->checkpoints[i]->id == number) {
                        *ret = job->checkpoints[i];
                        return 0;
                }
        known = known_numbers(job);
        return error_set(err, -ENOENT, "%s: job %" PRIu64 " has no checkpoint %" PRIu64 " (it has: %s)", verb, job->id, number,
                         known);
}

static bool is_done(const Rm__Checkpoint *checkpoint) {
        return checkpoint->state == RM__CHECKPOINT_STATE__CHECKPOINT_DONE;
}

int checkpoints_check_restart(const Rm__Job *job, uint64_t number, struct rm_error *err) {
        const Rm__Checkpoint *checkpoint = NULL;

        if (number > 0) {
                int r = checkpoints_find(job, number, "restart-job", &checkpoint, err);

                if (r == 0 && !is_done(checkpoint))
                        r = error_set(err, -EBUSY, "restart-job: checkpoint %" PRIu64 ".%" PRIu64 " is not done", job->id, number);
                return r;
        }
        for (size_t i = 0; i < job->n_checkpoints && !job->held; i++)
                if (is_done(job->checkpoints[i]))
                        return 0;
        return job->held ? 0 : error_set(err, -ENOENT, "restart-job: job %" PRIu64 " has no checkpoint", job->id);
}

/* ---- requests ---- */

static bool refused(struct client *client, uint32_t request_id, const struct rm_error *err) {
        if (err->code < 0)
                client_error(client, request_id, err->code, "%s", err->text);
        return err->code < 0;
}

void request_checkpoint_job(struct client *client, const Rm__LocalRequest *request) {
        const Rm__CheckpointJob *in = request->checkpoint_job;
        struct checkpoint_wish wish = {
                .cause = RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_ASKED, .by = client->user, .stop = in->stop, .force = in->force
        };
        struct request_answer *answer;
        struct rm_error err = { 0 };

        if (!request_own_job(client, request->id, "checkpoint-job", in->job))
                return;
        answer = request_answer_begin(client, request->id);
        if (leader_checkpoint(client->rmd, in->job, &wish, request_answer_proposed, answer, &err) < 0)
                request_answer_proposed(answer, error_prefix(&err, "checkpoint-job"), err.text, 0, 0);
}

void request_drill_job(struct client *client, const Rm__LocalRequest *request) {
        const Rm__DrillJob *in = request->drill_job;
        Rm__UserLimits limits;
        struct checkpoint_wish wish = { .cause = RM__CHECKPOINT_CAUSE__CHECKPOINT_CAUSE_DRILL,
                                        .by = client->user,
                                        .limits = user_limits(client->rmd, client->admin, &limits) };
        struct request_answer *answer;
        struct rm_error err = { 0 };

        if (!request_own_job(client, request->id, "drill", in->job))
                return;
        answer = request_answer_begin(client, request->id);
        if (leader_checkpoint(client->rmd, in->job, &wish, request_answer_proposed, answer, &err) < 0)
                request_answer_proposed(answer, error_prefix(&err, "drill"), err.text, 0, 0);
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
        const Rm__Job *job = request_own_job(client, request->id, "restart-job", in->job);
        struct rm_error err = { 0 };
        Rm__UserLimits limits;
        struct command c;

        if (!job)
                return;
        if (in->saved_rights && client->uid != 0)
                (void) error_set(&err, -EPERM, "restart-job: --saved-rights is for root");
        if (err.code == 0)
                (void) checkpoints_check_restart(job, in->checkpoint, &err);
        if (refused(client, request->id, &err) || !owner_may_go_on(client, request, job->spec))
                return;
        (void) command_job_release(&c, in->job, in->checkpoint, client->user, user_limits(client->rmd, client->admin, &limits));
        c.job_release.other_files = in->other_files;
        request_propose(client, request, &c.command);
}

struct asked {
        struct client *client;
        uint32_t request_id;
};

static void on_verified(void *userdata, const Rm__VerifiedCheckpoint *found, int error, const char *text) {
        struct asked *asked = userdata;
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;

        reply.body_case = RM__LOCAL_REPLY__BODY_VERIFIED_CHECKPOINT;
        reply.verified_checkpoint = (Rm__VerifiedCheckpoint *) found;
        if (error < 0)
                client_error(asked->client, asked->request_id, error, "verify-checkpoint: %s", text);
        else
                client_reply(asked->client, asked->request_id, &reply);
        client_release(asked->client);
        free(asked);
}

void request_verify_checkpoint(struct client *client, const Rm__LocalRequest *request) {
        const Rm__VerifyCheckpoint *in = request->verify_checkpoint;
        const Rm__Job *job = request_own_job(client, request->id, "verify-checkpoint", in->job);
        const Rm__Checkpoint *checkpoint = NULL;
        struct rm_error err = { 0 };
        struct asked *asked;

        if (!job)
                return;
        (void) checkpoints_find(job, in->checkpoint, "verify-checkpoint", &checkpoint, &err);
        if (refused(client, request->id, &err))
                return;
        asked = xcalloc(1, sizeof(*asked));
        *asked = (struct asked) { .client = client_hold(client), .request_id = request->id };
        checkpoints_verify(client->rmd->checkpoints, in->job, in->checkpoint, on_verified, asked);
}

void request_remove_checkpoint(struct client *client, const Rm__LocalRequest *request) {
        const Rm__RemoveCheckpoint *in = request->remove_checkpoint;
        const Rm__Job *job = request_own_job(client, request->id, "remove-checkpoint", in->job);
        const Rm__Checkpoint *checkpoint = NULL;
        struct rm_error err = { 0 };
        struct command c;

        if (!job)
                return;
        (void) checkpoints_find(job, in->checkpoint, "remove-checkpoint", &checkpoint, &err);
        if (!refused(client, request->id, &err))
                request_propose(client, request, command_checkpoint_remove(&c, in->job, in->checkpoint, client->user));
}

/* ---- export and import ---- */

static void on_exchange_open(void *userdata, const char *socket) {
        const struct asked *asked = userdata;
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__Exchange body = RM__EXCHANGE__INIT;

        body.socket = (char *) socket;
        reply.body_case = RM__LOCAL_REPLY__BODY_EXCHANGE;
        reply.exchange = &body;
        client_reply(asked->client, asked->request_id, &reply);
}

static void exchange_ended(struct asked *asked, const char *verb, int error, const char *text) {
        if (error < 0)
                client_error(asked->client, asked->request_id, error, "%s: %s", verb, text);
        else
                client_ok(asked->client, asked->request_id, 0, text);
        client_release(asked->client);
        free(asked);
}

static void on_export_end(void *userdata, int error, const char *text) {
        exchange_ended(userdata, "export-checkpoint", error, text);
}

static void on_import_end(void *userdata, int error, const char *text) {
        exchange_ended(userdata, "import-checkpoint", error, text);
}

/* Not all parts are here. */
static void reply_gathering(struct client *client, const Rm__LocalRequest *request, size_t parts, size_t here) {
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        Rm__Exchange body = RM__EXCHANGE__INIT;
        uint64_t since_usec = request->export_checkpoint->since_usec;

        body.parts = (uint32_t) parts;
        body.parts_here = (uint32_t) here;
        body.since_usec = since_usec ? since_usec : cluster_log_usec(client->rmd->cluster);
        reply.body_case = RM__LOCAL_REPLY__BODY_EXCHANGE;
        reply.exchange = &body;
        client_reply(client, request->id, &reply);
}

static struct asked *asked_create(struct client *client, uint32_t request_id) {
        struct asked *asked = xcalloc(1, sizeof(*asked));

        *asked = (struct asked) { .client = client_hold(client), .request_id = request_id };
        return asked;
}

int checkpoints_check_owner(const struct client *client, const Rm__Job *job, struct rm_error *err) {
        if (client->conn && (client->uid == 0 || client->uid == job->spec->uid))
                return 0;
        return error_set(err, -EPERM, "export-checkpoint: only the job's owner and root may do that");
}

int checkpoints_check_key(const struct client *client, const char *verb, const char *key_file, struct rm_error *err) {
        if (!*key_file)
                return 0;
        if (!client->conn || client->uid != 0)
                return error_set(
                        err, -EPERM,
                        "%s: only root may give a key: whoever has it can read all that is in the checkpoint, and make others",
                        verb);
        return *key_file == '/' ? 0 : error_set(err, -EINVAL, "%s: the path '%s' is not absolute", verb, key_file);
}

void request_export_checkpoint(struct client *client, const Rm__LocalRequest *request) {
        static const struct checkpoints_exchange_ops ops = { on_exchange_open, on_export_end };
        const Rm__ExportCheckpoint *in = request->export_checkpoint;
        const Rm__Job *job = request_own_job(client, request->id, "export-checkpoint", in->job);
        struct checkpoints *checkpoints = client->rmd->checkpoints;
        struct checkpoints_user user = { .uid = client->uid, .name = client->user, .key_file = in->key_file };
        const Rm__Checkpoint *checkpoint = NULL;
        struct rm_error err = { 0 };
        struct asked *asked;
        size_t here = 0;

        if (!job)
                return;
        if (checkpoints_check_owner(client, job, &err) == 0 &&
            checkpoints_check_key(client, "export-checkpoint", in->key_file, &err) == 0 &&
            checkpoints_find(job, in->checkpoint, "export-checkpoint", &checkpoint, &err) == 0 &&
            checkpoints_gather(checkpoints, in->job, in->checkpoint, in->since_usec, &here, &err) < 0)
                (void) error_prefix(&err, "export-checkpoint");
        if (refused(client, request->id, &err))
                return;
        if (here < checkpoint->n_parts) {
                reply_gathering(client, request, checkpoint->n_parts, here);
                return;
        }
        asked = asked_create(client, request->id);
        if (checkpoints_export(checkpoints, in->job, in->checkpoint, &user, &ops, asked, &err) < 0)
                exchange_ended(asked, "export-checkpoint", err.code, error_text(&err));
}

void request_import_checkpoint(struct client *client, const Rm__LocalRequest *request) {
        static const struct checkpoints_exchange_ops ops = { on_exchange_open, on_import_end };
        const char *key_file = request->import_checkpoint->key_file;
        const struct user *today = NULL;
        struct checkpoints_user user = { .uid = client->uid, .name = client->user, .admin = client->admin, .key_file = key_file };
        struct rm_error err = { 0 };
        struct asked *asked;

        if (!client->conn)
                (void) error_set(&err, -EPERM, "import-checkpoint: only a program of this node may do that");
        else
                (void) checkpoints_check_key(client, "import-checkpoint", key_file, &err);
        if (refused(client, request->id, &err))
                return;
        today = owner_today(client, request, "import-checkpoint", client->uid);
        if (!today)
                return;
        user.today = (struct owner_today) { today->name, today->groups, today->n_groups };
        asked = asked_create(client, request->id);
        if (checkpoints_import(client->rmd->checkpoints, &user, &ops, asked, &err) < 0)
                exchange_ended(asked, "import-checkpoint", err.code, error_text(&err));
}
