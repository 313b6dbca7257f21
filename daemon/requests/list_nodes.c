#include <stdlib.h>

#include "daemon/requests/named_nodes.h"
#include "daemon/requests/pages.h"
#include "daemon/requests/requests.h"
#include "daemon/requests/view_source.h"
#include "daemon/view/node.h"

void request_list_nodes(struct client *client, const Rm__LocalRequest *request) {
        const Rm__ListNodes *list = request->list_nodes;
        struct view_source source = request_view_source(client->rmd);
        struct view_reader reader = request_view_reader(client);
        struct view_nodes which = { list->names, list->n_names, list->after };
        Rm__NodeList nodes = RM__NODE_LIST__INIT;

        if (named_nodes_refuse_unknown(client, request->id, "list-nodes", list->names, list->n_names))
                return;
        view_nodes(&source, &reader, &which, page_bytes(list->paged), &nodes);
        if (nodes.more && !list->paged)
                page_refuse(client, request->id, "list-nodes");
        else
                client_answer(client, request->id, &nodes.base);
        view_nodes_finish(&nodes);
}
