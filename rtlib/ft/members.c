#include "rtlib/ft/members.h"

#include <stdlib.h>

#include "common/rank_map.h"
#include "common/util.h"
#include "rtlib/ft/ft.h"

static struct {
        struct rank_map *map;
        uint32_t losses; /* that it is of */
        _Atomic int *rank; /* by process */
} members;

/* How many of the processes are spare. */
static uint32_t count_spares(void) {
        const char *text = getenv("RM_SPARE_RANKS");
        int64_t spares = 0;

        if (text && parse_i64(text, 0, ft.size - 1, &spares) < 0)
                ft_give_up("RM_SPARE_RANKS is '%s', of %d ranks", text, ft.size);
        return (uint32_t) spares;
}

void members_init(void) {
        uint32_t spares = count_spares();
        struct rm_error err = { 0 };

        ft.ranks = ft.size - (int) spares;
        if (rank_map_create((uint32_t) ft.ranks, spares, getenv("RM_CRITICAL_RANKS"), &members.map, &err) < 0)
                ft_give_up("RM_CRITICAL_RANKS: %s", error_text(&err));
        members.rank = xcalloc((size_t) ft.size, sizeof(*members.rank));
        for (int i = 0; i < ft.size; i++)
                members.rank[i] = i < ft.ranks ? i : -1;
}

void members_update(uint32_t losses) {
        if (losses == members.losses)
                return;
        members.losses = losses;
        rank_map_lose(members.map, ft.losses.order, losses);
        for (int i = ft.ranks; i < ft.size; i++) {
                uint32_t rank = rank_map_rank(members.map, (uint32_t) i);

                if (rank != RANK_MAP_NONE)
                        members.rank[i] = (int) rank;
        }
}

int members_process(int rank) {
        uint32_t process = rank_map_process(members.map, (uint32_t) rank);

        return process == RANK_MAP_NONE ? -1 : (int) process;
}

int members_rank(int process) {
        return process >= 0 && process < ft.size ? members.rank[process] : -1;
}

bool members_has(uint32_t process) {
        uint32_t rank = rank_map_rank(members.map, process);

        return rank != RANK_MAP_NONE && rank_map_process(members.map, rank) == process;
}

uint32_t members_first(void) {
        uint32_t process = 0;

        while (process < (uint32_t) ft.size && !members_has(process))
                process++;
        return process;
}

unsigned members_before(int process) {
        unsigned before = 0;

        for (int i = 0; members.map && i < process; i++)
                before += members_has((uint32_t) i);
        return before;
}

int members_missing(void) {
        uint32_t rank = rank_map_missing(members.map);

        return rank == RANK_MAP_NONE ? -1 : (int) rank;
}
