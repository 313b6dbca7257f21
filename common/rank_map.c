#include "common/rank_map.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

struct rank_map {
        uint32_t ranks, processes;
        bool *critical;    /* by rank */
        uint32_t *process; /* likewise */
        uint32_t *rank;    /* by process */
        bool *lost;        /* likewise */
};

/* ---- the list ---- */

static int bad_list(const char *text, struct rm_error *err) {
        return error_set(err, -EINVAL, "'%s' is not a list of ranks (as 0,5-7)", text);
}

static bool take_number(const char **at, uint64_t *ret) {
        char *end;

        if (**at < '0' || **at > '9')
                return false;
        errno = 0;
        *ret = strtoull(*at, &end, 10);
        *at = end;
        return errno == 0;
}

/* Takes one number, or two with '-' between them. */
static int take_range(struct rank_map *map, const char *text, const char **at, struct rm_error *err) {
        uint64_t first, last;

        if (!take_number(at, &first))
                return bad_list(text, err);
        last = first;
        if (**at == '-') {
                (*at)++;
                if (!take_number(at, &last) || last < first)
                        return bad_list(text, err);
        }
        if (last >= map->ranks)
                return error_set(err, -EINVAL, "there is no rank %" PRIu64 ": the program has %" PRIu32, last, map->ranks);
        for (uint64_t rank = first; rank <= last; rank++)
                map->critical[rank] = true;
        return 0;
}

static int take_list(struct rank_map *map, const char *text, struct rm_error *err) {
        const char *at = text;

        if (strlen(text) > RANK_MAP_LIST_MAX_BYTES)
                return error_set(err, -EINVAL, "the list is over %d bytes", RANK_MAP_LIST_MAX_BYTES);
        for (;;) {
                int r = take_range(map, text, &at, err);

                if (r < 0)
                        return r;
                if (!*at)
                        return 0;
                if (*at++ != ',')
                        return bad_list(text, err);
        }
}

/* ---- the map ---- */

static void reset(struct rank_map *map) {
        for (uint32_t i = 0; i < map->processes; i++) {
                map->lost[i] = false;
                map->rank[i] = i < map->ranks ? i : RANK_MAP_NONE;
                if (i < map->ranks)
                        map->process[i] = i;
        }
}

int rank_map_create(uint32_t ranks, uint32_t spares, const char *critical, struct rank_map **ret, struct rm_error *err) {
        struct rank_map *map;
        int r;

        if (ranks == 0 || spares >= RANK_MAP_NONE - ranks)
                return error_set(err, -EINVAL, "%" PRIu32 " ranks and %" PRIu32 " spare ones", ranks, spares);
        map = xcalloc(1, sizeof(*map));
        map->ranks = ranks;
        map->processes = ranks + spares;
        map->critical = xcalloc(ranks, sizeof(*map->critical));
        map->process = xcalloc(ranks, sizeof(*map->process));
        map->rank = xcalloc(map->processes, sizeof(*map->rank));
        map->lost = xcalloc(map->processes, sizeof(*map->lost));
        reset(map);
        r = critical && *critical ? take_list(map, critical, err) : 0;
        if (r < 0)
                rank_map_destroy(map);
        else
                *ret = map;
        return r;
}

void rank_map_destroy(struct rank_map *map) {
        if (!map)
                return;
        free(map->critical);
        free(map->process);
        free(map->rank);
        free(map->lost);
        free(map);
}

static uint32_t take_spare(const struct rank_map *map) {
        for (uint32_t i = map->ranks; i < map->processes; i++)
                if (!map->lost[i] && map->rank[i] == RANK_MAP_NONE)
                        return i;
        return RANK_MAP_NONE;
}

static void lose(struct rank_map *map, uint32_t process) {
        uint32_t rank = map->rank[process], spare;

        map->lost[process] = true;
        if (rank == RANK_MAP_NONE)
                return;
        spare = map->critical[rank] ? take_spare(map) : RANK_MAP_NONE;
        map->process[rank] = spare;
        if (spare != RANK_MAP_NONE)
                map->rank[spare] = rank;
}

void rank_map_lose(struct rank_map *map, const uint32_t *processes, size_t n) {
        reset(map);
        for (size_t i = 0; i < n; i++)
                if (processes[i] < map->processes && !map->lost[processes[i]])
                        lose(map, processes[i]);
}

uint32_t rank_map_process(const struct rank_map *map, uint32_t rank) {
        return rank < map->ranks ? map->process[rank] : RANK_MAP_NONE;
}

uint32_t rank_map_rank(const struct rank_map *map, uint32_t process) {
        return process < map->processes ? map->rank[process] : RANK_MAP_NONE;
}

uint32_t rank_map_used(const struct rank_map *map) {
        uint32_t n = map->processes;

        while (map->rank[n - 1] == RANK_MAP_NONE) /* process 0 is, or was, a rank */
                n--;
        return n;
}

uint32_t rank_map_living(const struct rank_map *map) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < map->ranks; i++)
                n += map->process[i] != RANK_MAP_NONE;
        return n;
}

uint32_t rank_map_missing(const struct rank_map *map) {
        for (uint32_t i = 0; i < map->ranks; i++)
                if (map->critical[i] && map->process[i] == RANK_MAP_NONE)
                        return i;
        return RANK_MAP_NONE;
}
