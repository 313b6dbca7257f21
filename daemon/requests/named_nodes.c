#include "daemon/requests/named_nodes.h"

#include <errno.h>

#include "common/util.h"
#include "daemon/cluster/cluster.h"

#define NAMES_MAX 100U /* that may be given even where there are fewer nodes: so many get the usual answer */

bool named_nodes_refuse_unknown(struct client *client, uint32_t request_id, const char *verb, char **names, size_t n) {
        const Rm__State *state = cluster_state(client->rmd->cluster);

        /* Some are named twice. */
        if (n > state->n_nodes + NAMES_MAX) {
                client_error(client, request_id, -E2BIG, "%s: %zu nodes named, and the cluster has %zu", verb, n, state->n_nodes);
                return true;
        }
        for (size_t i = 0; i < n; i++)
                if (!state_node(state, names[i])) {
                        cleanup_free char *known = state_known_nodes(state);

                        client_error(client, request_id, -ENOENT, "%s: no node '%s' (known: %s)", verb,
                                     name_valid(names[i]) ? names[i] : "?", known);
                        return true;
                }
        return false;
}

bool named_nodes_refuse(struct client *client, uint32_t request_id, const char *verb, char **names, size_t n) {
        if (n > 0)
                return named_nodes_refuse_unknown(client, request_id, verb, names, n);
        client_error(client, request_id, -EINVAL, "%s: name at least one node", verb);
        return true;
}
