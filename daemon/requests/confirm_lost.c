#include "daemon/requests/named_nodes.h"
#include "daemon/requests/requests.h"
#include "daemon/state/commands.h"

static Rm__Command *confirm_one(struct command *c, const struct client *client, const Rm__LocalRequest *request, size_t i) {
        return command_node_fence(c, request->confirm_lost->names[i], 0, true, "", client->user);
}

void request_confirm_lost(struct client *client, const Rm__LocalRequest *request) {
        const Rm__ConfirmLost *in = request->confirm_lost;

        if (!named_nodes_refuse(client, request->id, "confirm-lost", in->names, in->n_names))
                request_propose_all(client, request, in->n_names, confirm_one);
}
