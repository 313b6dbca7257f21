/* Conditions of nodes: what an administrator or a sensor says of how well one works. */
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "common/util.h"
#include "daemon/state/state_internal.h"

static size_t find_source(const Rm__Node *node, const char *source) {
        size_t at = 0;

        while (at < node->n_conditions && strcmp(node->conditions[at]->source, source) < 0)
                at++;
        return at;
}

static Rm__NodeCondition *source_at(const Rm__Node *node, size_t at, const char *source) {
        return at < node->n_conditions && strcmp(node->conditions[at]->source, source) == 0 ? node->conditions[at] : NULL;
}

static void remove_source(Rm__Node *node, size_t at) {
        rm__node_condition__free_unpacked(node->conditions[at], NULL);
        REPEATED_REMOVE(node->conditions, node->n_conditions, at);
}

static Rm__NodeCondition *add_source(Rm__Node *node, size_t at, const char *source) {
        Rm__NodeCondition *said = xcalloc(1, sizeof(*said));

        rm__node_condition__init(said);
        message_set_string(&said->source, source);
        REPEATED_INSERT(node->conditions, node->n_conditions, at, said);
        return said;
}

static int check_condition(struct apply *a, const Rm__CmdNodeCondition *in, const Rm__Node *node) {
        if (!node) {
                cleanup_free char *known = state_known_nodes(a->state);

                return apply_refuse(a, -ENOENT, "report-health: no node '%s' (known: %s)", in->node, known);
        }
        if (!name_valid(in->source))
                return apply_refuse(a, -EINVAL, "report-health: the name of the source is not valid");
        if (strlen(in->reason) > STATE_CONDITION_REASON_MAX_BYTES || !text_is_plain(in->reason))
                return apply_refuse(a, -EINVAL, "report-health: a reason has one line, and at most %u bytes",
                                    STATE_CONDITION_REASON_MAX_BYTES);
        if (in->condition != RM__CONDITION__CONDITION_OK && !in->reason[0])
                return apply_refuse(a, -EINVAL, "report-health: a reason is needed: why is node '%s' %s?", in->node,
                                    condition_name(in->condition));
        return 0;
}

static void report(struct apply *a, const Rm__Node *node, const Rm__CmdNodeCondition *in) {
        Rm__Condition now = node_condition(node);
        const char *colon = in->reason[0] ? ": " : "";

        if (now == in->condition)
                apply_event(a, "node-condition", node->name, 0, 0, 0, "node %s is %s, says %s (%s)%s%s", node->name,
                            condition_name(now), in->source, in->by, colon, in->reason);
        else
                apply_event(a, "node-condition", node->name, 0, 0, 0, "node %s stays %s; %s (%s) says %s%s%s", node->name,
                            condition_name(now), in->source, in->by, condition_name(in->condition), colon, in->reason);
}

int apply_node_condition(struct apply *a) {
        const Rm__CmdNodeCondition *in = a->command->node_condition;
        Rm__Node *node = state_node(a->state, in->node);
        bool was_left = node && node_to_be_left(node);
        bool was_well = node && node_condition(node) == RM__CONDITION__CONDITION_OK;
        int r = check_condition(a, in, node);
        size_t at = r == 0 ? find_source(node, in->source) : 0;
        Rm__NodeCondition *said = r == 0 ? source_at(node, at, in->source) : NULL;

        if (r < 0)
                return r;
        if (said ? said->condition == in->condition && strcmp(said->reason, in->reason) == 0
                 : in->condition == RM__CONDITION__CONDITION_OK)
                return 0; /* nothing new: a tool may say the same all the time */
        if (!said && node->n_conditions >= STATE_CONDITION_SOURCES_MAX)
                return apply_refuse(a, -ENOSPC, "report-health: %u sources say something of node '%s' already",
                                    STATE_CONDITION_SOURCES_MAX, in->node);
        if (!apply_goes_on(a, true))
                return 0;
        state_index_cores(a->index, node->name);
        if (in->condition == RM__CONDITION__CONDITION_OK) {
                remove_source(node, at);
        } else {
                said = said ? said : add_source(node, at, in->source);
                if (said->condition != in->condition)
                        said->since_usec = a->time_usec;
                said->condition = in->condition;
                message_set_string(&said->reason, in->reason);
                message_set_string(&said->by, in->by);
        }
        if (!was_well && node_condition(node) == RM__CONDITION__CONDITION_OK)
                node->unwell_usec = a->time_usec;
        report(a, node, in);
        if (!was_left)
                node_emptied(a, node->name);
        return 0;
}
