#include "tests/unit/policy/drawn.h"

#include <stdio.h>

#include "common/util.h"
#include "placement/pack.h"

uint64_t drawn_milliseconds_left(void *context) {
        uint32_t *looks = context;

        return *looks > 0 ? (*looks)-- * UINT64_C(1000) : 0;
}

struct snapshot *drawn_snapshot(struct dice *dice, const struct drawn_kind *kind) {
        struct snapshot *snapshot = snapshot_create();
        cleanup_free uint32_t *space = xcalloc(kind->nodes, sizeof(*space));
        uint32_t left = 0;
        char name[16];

        for (uint32_t s = 0; s < kind->nodes; s++) {
                (void) snprintf(name, sizeof(name), "n%u", s);
                left += space[s] = 1 + dice_roll(dice, 32);
                snapshot_add_node(snapshot, name, space[s])->penalty = 1 + dice_roll(dice, 5);
        }
        for (uint32_t j = 0; j < kind->jobs; j++) {
                uint32_t ranks = kind->group_size * (1 + dice_roll(dice, kind->most_ranks / kind->group_size)) +
                                 dice_roll(dice, 2) * dice_roll(dice, kind->group_size);
                uint32_t s = dice_roll(dice, kind->nodes);

                if (ranks * 5 / 4 > left)
                        break;
                left -= ranks;
                (void) snprintf(name, sizeof(name), "j%u", j);
                snapshot_add_job(snapshot, name, ranks, kind->group_size)->priority = 1 + dice_roll(dice, 10);
                if (kind->limits && dice_roll(dice, 2))
                        for (uint32_t i = 0; i < kind->nodes; i += 2)
                                snapshot_set_limit(snapshot, j, i, dice_roll(dice, 8));
                for (uint32_t g = 0; kind->running && j % 4 > 0 && g < snapshot_view(snapshot)->jobs[j].n_groups; g++) {
                        struct rm_group *group = snapshot_group(snapshot, j, g);
                        const struct rm_job *job = &snapshot_view(snapshot)->jobs[j];

                        s = dice_roll(dice, 3) ? s : dice_roll(dice, kind->nodes);
                        for (uint32_t i = 0; i < kind->nodes && (space[s] < group->ranks || job_node_limit(job, s) < 32); i++)
                                s = (s + 1) % kind->nodes;
                        if (space[s] < group->ranks || job_node_limit(job, s) < 32)
                                break;
                        space[s] -= group->ranks;
                        group->node = (int32_t) s;
                        group->move_cost = dice_roll(dice, 30);
                        if (kind->pins && dice_roll(dice, 8) == 0)
                                group->flags = RM_GROUP_PINNED;
                }
        }
        return snapshot;
}
