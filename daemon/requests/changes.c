/* Requests that change the state: the state itself refuses them or finds them done where it can,
 * else they are proposed. Each entry of the log is written by all voters and applied by all nodes,
 * so there is to be none that changes nothing. Only the leader knows for certain that one would
 * not: the state of another node may be a moment behind. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/requests/requests.h"

/* ---- one command ---- */

void request_answer_proposed(void *userdata, int code, const char *text, uint64_t index, uint64_t created) {
        struct request_answer *answer = userdata;

        if (code < 0)
                client_error(answer->client, answer->request_id, code, "%s", text && *text ? text : strerror(-code));
        else
                client_ok(answer->client, answer->request_id, created, NULL);
        request_answer_end(answer);
}

static bool would_change(const struct client *client, const Rm__Command *command) {
        struct state_result result;

        return cluster_effect(client->rmd->cluster, command, &result) == STATE_EFFECT_CHANGE;
}

void request_change(struct client *client, const Rm__Command *command, cluster_propose_fn callback, void *userdata) {
        struct cluster *cluster = client->rmd->cluster;
        struct state_result result;

        if (cluster_is_leader(cluster) && cluster_effect(cluster, command, &result) != STATE_EFFECT_CHANGE)
                callback(userdata, result.error.code, result.error.text, cluster_state(cluster)->index, result.created);
        else
                cluster_propose(cluster, command, callback, userdata);
}

void request_propose(struct client *client, const Rm__LocalRequest *request, const Rm__Command *command) {
        if (would_change(client, command) || !request_forward_to_leader(client, request))
                request_change(client, command, request_answer_proposed, request_answer_begin(client, request->id));
}

/* ---- several: proposed one after another, answered once, with the first refusal ---- */

struct batch {
        struct client *client;
        uint32_t request_id;
        size_t open;
        int code;
        char *text;
};

static void on_one(void *userdata, int code, const char *text, uint64_t index, uint64_t created) {
        struct batch *batch = userdata;

        if (code < 0 && batch->code == 0) {
                batch->code = code;
                batch->text = xstrdup(text && *text ? text : strerror(-code));
        }
        if (--batch->open > 0)
                return;
        if (batch->code < 0)
                client_error(batch->client, batch->request_id, batch->code, "%s", batch->text);
        else
                client_ok(batch->client, batch->request_id, 0, NULL);
        client_release(batch->client);
        free(batch->text);
        free(batch);
}

void request_propose_all(struct client *client, const Rm__LocalRequest *request, size_t n, request_command_fn make) {
        struct batch *batch;
        struct command c;
        bool all_change = true;

        for (size_t i = 0; i < n && all_change; i++)
                all_change = would_change(client, make(&c, client, request, i));
        if (!all_change && request_forward_to_leader(client, request))
                return;
        batch = xcalloc(1, sizeof(*batch));
        *batch = (struct batch) { .client = client_hold(client), .request_id = request->id, .open = n };
        for (size_t i = 0; i < n; i++)
                request_change(client, make(&c, client, request, i), on_one, batch);
}
