#include "daemon/view/node.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/view/staying.h"

/* The names are the state's. */
static void fill_switches(const Rm__State *state, int32_t index, Rm__NodeView *view) {
        view->switch_ = xcalloc(STATE_SWITCH_DEPTH_MAX + 1u, sizeof(*view->switch_));
        while (index >= 0 && view->n_switch_ <= STATE_SWITCH_DEPTH_MAX) {
                const Rm__Switch *at = state->switches[index];

                view->switch_[view->n_switch_++] = at->name;
                index = (int32_t) at->above - 1;
        }
}

static Rm__NodeView *node_view(const struct view_source *source, Rm__Node *node, int32_t switch_index) {
        Rm__NodeView *view = xcalloc(1, sizeof(*view));

        rm__node_view__init(view);
        view->node = node;
        fill_switches(state_index_state(source->index), switch_index, view);
        view->state = (char *) state_node_name(source->index, node);
        view->usable_cores = node_usable_cores(node);
        view->condition = node_condition(node);
        view->ranks = state_node_ranks(source->index, node->name, &view->capsules);
        view->leader = source->leader && strcmp(source->leader, node->name) == 0;
        return view;
}

static int compare_names(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

/* `names` are sorted. */
static bool is_named(char *const *names, size_t n, const char *name) {
        return n == 0 || bsearch(&name, names, n, sizeof(*names), compare_names) != NULL;
}

static void collect(const struct view_source *source, const struct view_nodes *which, size_t max_bytes, Rm__NodeList *ret) {
        const Rm__State *state = state_index_state(source->index);
        cleanup_free int32_t *switches = state_node_switches(state);
        cleanup_free char **names = xcalloc(which->n_names + 1, sizeof(*names));
        size_t bytes = 0;

        if (which->n_names > 0)
                memcpy(names, which->names, sizeof(*names) * which->n_names);
        qsort(names, which->n_names, sizeof(*names), compare_names);
        ret->nodes = xcalloc(state->n_nodes, sizeof(*ret->nodes));
        for (size_t i = 0; i < state->n_nodes; i++) {
                const char *name = state->nodes[i]->name;

                if (strcmp(name, which->after) <= 0 || !is_named(names, which->n_names, name))
                        continue;
                ret->more = bytes >= max_bytes;
                if (ret->more)
                        return;
                ret->nodes[ret->n_nodes] = node_view(source, state->nodes[i], switches[i]);
                bytes += protobuf_c_message_get_packed_size(&ret->nodes[ret->n_nodes++]->base);
        }
}

void view_nodes(const struct view_source *source, const struct view_reader *reader, const struct view_nodes *which,
                size_t max_bytes, Rm__NodeList *ret) {
        collect(source, which, max_bytes, ret);
        view_staying_fill(source, reader, ret);
}

void view_nodes_finish(Rm__NodeList *list) {
        for (size_t i = 0; i < list->n_nodes; i++) {
                view_staying_finish(list->nodes[i]);
                free(list->nodes[i]->switch_);
                free(list->nodes[i]);
        }
        free(list->nodes);
}
