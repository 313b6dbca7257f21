#include "daemon/leader/processors.h"

#include <stdlib.h>
#include <string.h>

#include "common/instruction_sets.h"
#include "common/util.h"

static void add(struct processors *processors, const Rm__Node *node) {
        if (!node || !node->instruction_sets[0])
                return;
        for (size_t i = 0; i < processors->n; i++)
                if (strcmp(processors->nodes[i]->instruction_sets, node->instruction_sets) == 0)
                        return;
        processors->nodes = xgrow(processors->nodes, processors->n, sizeof(*processors->nodes));
        processors->nodes[processors->n++] = node;
}

void processors_needed(const Rm__State *state, const Rm__Job *job, const Rm__Checkpoint *checkpoint, struct processors *ret) {
        *ret = (struct processors) { 0 };
        for (size_t i = 0; i < job->n_capsules; i++)
                add(ret, state_node(state, job->capsules[i]->node));
        for (size_t i = 0; checkpoint && i < checkpoint->n_parts; i++)
                add(ret, state_node(state, checkpoint->parts[i]->node));
}

void processors_finish(struct processors *processors) {
        free(processors->nodes);
        *processors = (struct processors) { 0 };
}

char *processors_against(const struct processors *processors, const Rm__Node *node) {
        for (size_t i = 0; i < processors->n; i++) {
                cleanup_free char *lacks = node_lacks(node, processors->nodes[i]);

                if (lacks)
                        return xasprintf("node %s lacks %s, which node %s has", node->name, lacks, processors->nodes[i]->name);
        }
        return NULL;
}

const struct round_kinds *processors_kinds(const Rm__State *state, struct snapshot *snapshot) {
        struct round_kinds *kinds = snapshot_alloc(snapshot, sizeof(*kinds));
        uint32_t *of_node = snapshot_alloc(snapshot, sizeof(*of_node) * (state->n_nodes + 1));
        cleanup_free const Rm__Node **first = xcalloc(state->n_nodes + 1, sizeof(*first)); /* of each kind */
        bool *lacks, any = false;

        for (size_t i = 0; i < state->n_nodes; i++) {
                while (of_node[i] < kinds->n && strcmp(first[of_node[i]]->instruction_sets, state->nodes[i]->instruction_sets) != 0)
                        of_node[i]++;
                if (of_node[i] == kinds->n)
                        first[kinds->n++] = state->nodes[i];
        }
        lacks = snapshot_alloc(snapshot, sizeof(*lacks) * kinds->n * kinds->n + 1);
        for (uint32_t k = 0; k < kinds->n * kinds->n; k++) {
                cleanup_free char *text = node_lacks(first[k % kinds->n], first[k / kinds->n]);

                any |= lacks[k] = text != NULL;
        }
        kinds->of_node = of_node;
        kinds->lacks = lacks;
        return any ? kinds : NULL;
}

char *processors_reason(const Rm__State *state, const Rm__Job *job) {
        cleanup_free char *first = NULL;
        struct processors processors;
        size_t n = 0;

        processors_needed(state, job, job->n_capsules == 0 ? job_newest_checkpoint(state, job) : NULL, &processors);
        for (size_t i = 0; processors.n > 0 && i < state->n_nodes; i++) {
                char *text = node_usable_cores(state->nodes[i]) > 0 ? processors_against(&processors, state->nodes[i]) : NULL;

                n += text != NULL;
                if (!first)
                        first = text;
                else
                        free(text);
        }
        processors_finish(&processors);
        return n > 1 ? xasprintf("%s; others that lack some: %zu", first, n - 1) : take_ptr(first);
}
