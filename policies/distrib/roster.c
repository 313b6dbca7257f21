#include "policies/distrib/roster.h"

bool roster_init(struct roster *roster, struct arena *arena, const struct staircase *stairs, const struct rm_snapshot *snapshot) {
        uint32_t *end;

        roster->stair_of = arena_alloc(arena, snapshot->n_nodes + 1ul, sizeof(*roster->stair_of));
        roster->nodes = arena_alloc(arena, snapshot->n_nodes + 1ul, sizeof(*roster->nodes));
        end = arena_alloc(arena, stairs->n_stairs + 3ul, sizeof(*end));
        if (arena->failed)
                return false;
        /* where each begins; as nodes are listed, where the one before it ends: that moves all by one */
        roster->first = end + 1;
        for (uint32_t s = 0; s < snapshot->n_nodes; s++) {
                roster->stair_of[s] = staircase_find(stairs, snapshot->nodes[s].penalty, snapshot->nodes[s].cores);
                end[roster->stair_of[s] + 2]++;
        }
        for (uint32_t i = 0; i <= stairs->n_stairs; i++)
                end[i + 2] += end[i + 1];
        for (uint32_t s = 0; s < snapshot->n_nodes; s++)
                roster->nodes[roster->first[roster->stair_of[s]]++] = s;
        roster->first = end;
        return true;
}
