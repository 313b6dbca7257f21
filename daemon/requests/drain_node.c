#include "daemon/requests/drain_node.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/text.h"
#include "daemon/requests/named_nodes.h"
#include "daemon/requests/requests.h"

#define REASON_MAX_BYTES 256
/* Longer ones are mistakes, and this one may be added to any time. */
#define DEADLINE_MAX_DAYS UINT64_C(366)
#define DAY_USEC (UINT64_C(86400) * 1000000)

int drain_node_check(const Rm__DrainNode *in, struct rm_error *err) {
        if (in->n_names == 0 || strlen(in->reason) > REASON_MAX_BYTES || !text_is_plain(in->reason))
                return error_set(err, -EINVAL, "drain-node: name at least one node, and a reason of one line and at most %d bytes",
                                 REASON_MAX_BYTES);
        if (in->deadline_usec > DEADLINE_MAX_DAYS * DAY_USEC)
                return error_set(err, -EINVAL, "drain-node: --deadline: at most %" PRIu64 " days", DEADLINE_MAX_DAYS);
        return 0;
}

static Rm__Command *drain_one(struct command *c, const struct client *client, const Rm__LocalRequest *request, size_t i) {
        const Rm__DrainNode *in = request->drain_node;
        uint64_t deadline_usec = in->deadline_usec > 0 ? cluster_log_usec(client->rmd->cluster) + in->deadline_usec : 0;

        return command_node_drain(c, in->names[i], in->reason, client->user, deadline_usec, in->update);
}

void request_drain_node(struct client *client, const Rm__LocalRequest *request) {
        const Rm__DrainNode *in = request->drain_node;
        struct rm_error err = { 0 };

        if (drain_node_check(in, &err) < 0)
                client_error(client, request->id, err.code, "%s", error_text(&err));
        else if (!named_nodes_refuse(client, request->id, "drain-node", in->names, in->n_names))
                request_propose_all(client, request, in->n_names, drain_one);
}
