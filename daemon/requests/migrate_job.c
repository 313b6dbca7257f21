#include <errno.h>
#include <string.h>

#include "common/util.h"
#include "daemon/config/config.h"
#include "daemon/requests/own_job.h"
#include "daemon/requests/requests.h"
#include "daemon/state/commands.h"

void request_migrate_job(struct client *client, const Rm__LocalRequest *request) {
        const Rm__MigrateJob *in = request->migrate_job;
        Rm__CmdMoveStart *body;
        struct command c;
        cleanup_free char *reason = NULL;

        if (!own_job_find(client, request->id, "migrate-job", in->job))
                return;
        if (in->mode[0] && strcmp(in->mode, "stop") != 0 && strcmp(in->mode, "live") != 0) {
                client_error(client, request->id, -EINVAL, "migrate-job: the mode is neither live nor stop");
                return;
        }
        if (!name_valid(in->to)) {
                client_error(client, request->id, -EINVAL, "migrate-job: the destination is not a valid node name");
                return;
        }
        reason = xasprintf("asked for by %s", client->user);
        body = command_move_start(&c, in->job, in->group, in->to);
        body->reason = reason;
        body->stop = strcmp(in->mode, "stop") == 0;
        body->cause = RM__MOVE_CAUSE__MOVE_CAUSE_ASKED;
        body->asked_uid = client->uid;
        body->one_at_a_time = !client->admin;
        if (!client->admin)
                body->capsules_per_core = client->rmd->config->max_capsules_per_core;
        request_propose(client, request, &c.command);
}
