#include "daemon/requests/named_nodes.h"
#include "daemon/requests/requests.h"
#include "daemon/state/commands.h"

static Rm__Command *remove_one(struct command *c, const struct client *client, const Rm__LocalRequest *request, size_t i) {
        return command_node_remove(c, request->remove_node->names[i], client->user, false);
}

void request_remove_node(struct client *client, const Rm__LocalRequest *request) {
        const Rm__RemoveNode *in = request->remove_node;

        if (!named_nodes_refuse(client, request->id, "remove-node", in->names, in->n_names))
                request_propose_all(client, request, in->n_names, remove_one);
}
