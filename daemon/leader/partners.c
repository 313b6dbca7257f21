#include "daemon/leader/partners.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "common/util.h"

static bool may_have_copies(const Rm__Node *node) {
        return node->health == RM__NODE_HEALTH__NODE_HEALTH_UP && !node_to_be_left(node);
}

/* Had the job's last checkpoint its copies of that node there? Then only what is new need be
 * sent. */
static bool was_partner(const Rm__Job *job, const char *node, const char *partner) {
        const Rm__Checkpoint *last = job->n_checkpoints > 0 ? job->checkpoints[job->n_checkpoints - 1] : NULL;

        for (size_t i = 0; last && i < last->n_parts; i++)
                if (strcmp(last->parts[i]->node, node) == 0 &&
                    names_have(last->parts[i]->partners, last->parts[i]->n_partners, partner))
                        return true;
        return false;
}

/* The better the lower: one that has copies already, behind another switch, the next one in the
 * list, so that copies are spread. */
static size_t rank_of(const Rm__State *state, const int32_t *switches, const Rm__Job *job, size_t from, size_t to) {
        size_t distance = (to + state->n_nodes - from) % state->n_nodes;

        if (switches[from] >= 0 && switches[from] == switches[to])
                distance += state->n_nodes;
        if (!was_partner(job, state->nodes[from]->name, state->nodes[to]->name))
                distance += 2 * state->n_nodes;
        return distance;
}

static size_t best_partner(const Rm__State *state, const int32_t *switches, const Rm__Job *job, size_t from, const bool *taken) {
        size_t best = SIZE_MAX, best_rank = SIZE_MAX;

        for (size_t i = 0; i < state->n_nodes; i++) {
                size_t rank = rank_of(state, switches, job, from, i);

                if (i == from || taken[i] || !may_have_copies(state->nodes[i]) || rank >= best_rank)
                        continue;
                best = i;
                best_rank = rank;
        }
        return best;
}

/* n_nodes: there is none of that name. */
static size_t number_of(const Rm__State *state, const char *name) {
        size_t i = 0;

        while (i < state->n_nodes && strcmp(state->nodes[i]->name, name) != 0)
                i++;
        return i;
}

char *partners_choose(const Rm__State *state, const Rm__Job *job, const char *node, uint32_t copies) {
        cleanup_free int32_t *switches = state_node_switches(state);
        cleanup_free bool *taken = xcalloc(state->n_nodes + 1, sizeof(*taken));
        size_t from = number_of(state, node);
        char *text = xstrdup("");

        for (uint32_t i = 0; i < copies && from < state->n_nodes; i++) {
                size_t best = best_partner(state, switches, job, from, taken);

                if (best == SIZE_MAX)
                        break;
                taken[best] = true;
                text = text_add_word(text, " ", state->nodes[best]->name);
        }
        return text;
}

/* ---- those that were lost ---- */

/* A node that is DOWN only for a short time may be back in a moment, with its copies. */
static bool is_away_for_long(const Rm__Node *node, uint64_t now) {
        return node->health == RM__NODE_HEALTH__NODE_HEALTH_DOWN && now > node->health_since_usec + PARTNERS_AWAY_USEC;
}

/* How many have that part, or get it; those are `taken`. */
static uint32_t count(const Rm__State *state, char *const *names, size_t n, uint64_t now, bool *taken) {
        uint32_t have = 0;

        for (size_t i = 0; i < n; i++) {
                size_t k = number_of(state, names[i]);

                if (k == state->n_nodes || taken[k])
                        continue;
                taken[k] = true;
                have += !is_away_for_long(state->nodes[k], now);
        }
        return have;
}

/* So it is nearly always, and looking is all it costs. */
static bool enough_are_up(const Rm__State *state, const Rm__CheckpointPart *part, uint32_t copies) {
        uint32_t up = 0;

        for (size_t i = 0; i < part->n_stored; i++) {
                const Rm__Node *node = state_node(state, part->stored[i]);

                up += node && node->health == RM__NODE_HEALTH__NODE_HEALTH_UP;
        }
        return up > copies;
}

const char *partners_another(const Rm__State *state, const Rm__Job *job, const Rm__CheckpointPart *part, uint32_t copies,
                             uint64_t now) {
        const Rm__Node *holder = enough_are_up(state, part, copies) ? NULL : checkpoint_part_holder(state, part, NULL);
        cleanup_free int32_t *switches = NULL;
        cleanup_free bool *taken = NULL;
        uint32_t have;
        size_t best;

        if (!holder || (part->n_stored > 0 && strcmp(part->stored[0], STATE_STORED_SHARED) == 0))
                return NULL;
        taken = xcalloc(state->n_nodes + 1, sizeof(*taken));
        have = count(state, part->stored, part->n_stored, now, taken);
        have += count(state, part->partners, part->n_partners, now, taken);
        if (have > copies)
                return NULL;
        switches = state_node_switches(state);
        best = best_partner(state, switches, job, number_of(state, holder->name), taken);
        return best == SIZE_MAX ? NULL : state->nodes[best]->name;
}
