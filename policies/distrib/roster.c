#include "policies/distrib/roster.h"

bool roster_init(struct roster *roster, struct arena *arena, const struct relaxation *classes, const struct rm_snapshot *snapshot) {
        uint32_t *end;

        roster->class_of = arena_alloc(arena, snapshot->n_nodes + 1ul, sizeof(*roster->class_of));
        roster->nodes = arena_alloc(arena, snapshot->n_nodes + 1ul, sizeof(*roster->nodes));
        end = arena_alloc(arena, classes->n_classes + 3ul, sizeof(*end));
        if (arena->failed)
                return false;
        /* where each begins; as nodes are listed, where the one before it ends: that moves all by one */
        roster->first = end + 1;
        for (uint32_t s = 0; s < snapshot->n_nodes; s++) {
                roster->class_of[s] = relaxation_find(classes, snapshot->nodes[s].penalty, snapshot->nodes[s].cores);
                end[roster->class_of[s] + 2]++;
        }
        for (uint32_t i = 0; i <= classes->n_classes; i++)
                end[i + 2] += end[i + 1];
        for (uint32_t s = 0; s < snapshot->n_nodes; s++)
                roster->nodes[roster->first[roster->class_of[s]]++] = s;
        roster->first = end;
        return true;
}
