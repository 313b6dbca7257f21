#include <errno.h>

#include "daemon/checkpoint/checkpoints.h"
#include "daemon/requests/checkpoint_checks.h"
#include "daemon/requests/exchange_request.h"
#include "daemon/requests/owner_today.h"
#include "daemon/requests/requests.h"

static void on_import_end(void *userdata, int error, const char *text) {
        exchange_ended(userdata, "import-checkpoint", error, text);
}

void request_import_checkpoint(struct client *client, const Rm__LocalRequest *request) {
        static const struct checkpoints_exchange_ops ops = { exchange_opened, on_import_end };
        const char *key_file = request->import_checkpoint->key_file;
        const struct user *today = NULL;
        struct checkpoints_user user = { .uid = client->uid, .name = client->user, .admin = client->admin, .key_file = key_file };
        struct rm_error err = { 0 };
        struct request_answer *asked;

        if (!client->conn)
                (void) error_set(&err, -EPERM, "import-checkpoint: only a program of this node may do that");
        if (err.code == 0)
                (void) sealed_key_check(client, "import-checkpoint", key_file, &err);
        if (checkpoint_refused(client, request->id, &err))
                return;
        today = owner_today(client, request, "import-checkpoint", client->uid);
        if (!today)
                return;
        user.today = (struct owner_today) { today->name, today->groups, today->n_groups };
        asked = request_answer_begin(client, request->id);
        if (checkpoints_import(client->rmd->checkpoints, &user, &ops, asked, &err) < 0)
                exchange_ended(asked, "import-checkpoint", err.code, error_text(&err));
}
