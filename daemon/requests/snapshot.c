#include "daemon/sched/snapshot.h"
#include "daemon/leader/leader.h"
#include "daemon/requests/requests.h"

void request_snapshot(struct client *client, const Rm__LocalRequest *request) {
        struct rm_error err = { 0 };
        struct leader_snapshot snapshot;
        json_t *json;

        if (leader_snapshot(client->rmd, &snapshot, &err) < 0) {
                client_error(client, request->id, err.code, "snapshot: %s", error_text(&err));
                return;
        }
        json = snapshot_to_json(snapshot_view(snapshot.policy));
        request_reply_json(client, request->id, json, request->get_snapshot->paged);
        json_decref(json);
        leader_snapshot_finish(&snapshot);
}
