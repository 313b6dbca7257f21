/* Nodes as they are shown. Pure. */
#ifndef RM_VIEW_NODE_H
#define RM_VIEW_NODE_H

#include "daemon/view/view.h"
#include "proto/local.pb-c.h"

/* Selects the nodes that are shown. */
struct view_nodes {
        char *const *names; /* borrowed, in any order, some perhaps twice; none: all nodes */
        size_t n_names;
        const char *after; /* only those that come after this name */
};

/* Fill `ret`, an initialized list, with nodes in the order of their names, until they have
 * `max_bytes`; then `more` says that there are further ones. The messages of the nodes are the
 * state's and are borrowed. Free with view_nodes_finish(). */
void view_nodes(const struct view_source *source, const struct view_reader *reader, const struct view_nodes *which,
                size_t max_bytes, Rm__NodeList *ret);
void view_nodes_finish(Rm__NodeList *list);

#endif
