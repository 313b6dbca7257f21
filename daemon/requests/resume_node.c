#include "daemon/requests/named_nodes.h"
#include "daemon/requests/requests.h"

static Rm__Command *resume_one(struct command *c, const struct client *client, const Rm__LocalRequest *request, size_t i) {
        return command_node_resume(c, request->resume_node->names[i], client->user);
}

void request_resume_node(struct client *client, const Rm__LocalRequest *request) {
        const Rm__ResumeNode *in = request->resume_node;

        if (!named_nodes_refuse(client, request->id, "resume-node", in->names, in->n_names))
                request_propose_all(client, request, in->n_names, resume_one);
}
