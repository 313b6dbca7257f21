#include "placement/shelf.h"

#include <errno.h>
#include <stdlib.h>

enum { MAX_CLASSES = 65536 };

static int compare(const void *a, const void *b) {
        int64_t x = *(const int64_t *) a, y = *(const int64_t *) b;

        return x < y ? -1 : x > y;
}

static void put(struct shelf *shelf, uint32_t node) {
        uint32_t class = shelf->penalty_of[node] * shelf->stride + shelf->free_of[node];
        int32_t after = shelf->first[class];

        shelf->previous[node] = RM_NO_NODE;
        shelf->next[node] = after;
        if (after >= 0)
                shelf->previous[after] = (int32_t) node;
        shelf->first[class] = (int32_t) node;
        shelf->count[class]++;
        if (shelf->free_of[node] > shelf->top[shelf->penalty_of[node]])
                shelf->top[shelf->penalty_of[node]] = shelf->free_of[node];
}

static void take(struct shelf *shelf, uint32_t node) {
        uint32_t class = shelf->penalty_of[node] * shelf->stride + shelf->free_of[node];
        int32_t before = shelf->previous[node], after = shelf->next[node];

        if (before >= 0)
                shelf->next[before] = after;
        else
                shelf->first[class] = after;
        if (after >= 0)
                shelf->previous[after] = before;
        shelf->count[class]--;
        for (uint32_t *top = &shelf->top[shelf->penalty_of[node]]; *top > 0; --*top)
                if (shelf->count[shelf->penalty_of[node] * shelf->stride + *top] > 0)
                        break;
}

static void list_penalties(struct shelf *shelf, const struct rm_snapshot *snapshot) {
        uint32_t n = 0;

        /* Most clusters have few, and neighbours the same: there is little to sort. */
        for (uint32_t s = 0; s < snapshot->n_nodes; s++)
                if (s == 0 || snapshot->nodes[s].penalty != shelf->penalties[n - 1])
                        shelf->penalties[n++] = snapshot->nodes[s].penalty;
        qsort(shelf->penalties, n, sizeof(*shelf->penalties), compare);
        for (uint32_t i = 0; i < n; i++)
                if (i == 0 || shelf->penalties[i] != shelf->penalties[shelf->n_penalties - 1])
                        shelf->penalties[shelf->n_penalties++] = shelf->penalties[i];
}

static uint32_t find_penalty(const struct shelf *shelf, int64_t penalty) {
        uint32_t low = 0, high = shelf->n_penalties;

        while (low + 1 < high) {
                uint32_t middle = (low + high) / 2;

                if (shelf->penalties[middle] <= penalty)
                        low = middle;
                else
                        high = middle;
        }
        return low;
}

int shelf_init(struct shelf *shelf, const struct rm_snapshot *snapshot, const int64_t *free_cores) {
        size_t n = snapshot->n_nodes + 1u;
        int64_t most = 0;

        *shelf = (struct shelf) {
                .penalties = calloc(n, sizeof(*shelf->penalties)),
                .next = calloc(n, sizeof(*shelf->next)),
                .previous = calloc(n, sizeof(*shelf->previous)),
                .penalty_of = calloc(n, sizeof(*shelf->penalty_of)),
                .free_of = calloc(n, sizeof(*shelf->free_of)),
        };
        if (!shelf->penalties || !shelf->next || !shelf->previous || !shelf->penalty_of || !shelf->free_of)
                return -ENOMEM;
        list_penalties(shelf, snapshot);
        /* No node ever has more free cores than its cores, whatever jobs leave it later. */
        for (uint32_t s = 0; s < snapshot->n_nodes; s++)
                most = snapshot->nodes[s].cores > most ? snapshot->nodes[s].cores : most;
        shelf->stride = (uint32_t) most + 1;
        if ((uint64_t) shelf->n_penalties * shelf->stride > MAX_CLASSES)
                return -EFBIG;
        shelf->first = malloc(sizeof(*shelf->first) * (shelf_classes(shelf) + 1u));
        shelf->count = calloc(shelf_classes(shelf) + 1u, sizeof(*shelf->count));
        shelf->top = calloc(shelf->n_penalties + 1u, sizeof(*shelf->top));
        if (!shelf->first || !shelf->count || !shelf->top)
                return -ENOMEM;
        for (uint32_t i = 0; i < shelf_classes(shelf); i++)
                shelf->first[i] = RM_NO_NODE;
        for (uint32_t s = snapshot->n_nodes; s-- > 0;) {
                shelf->penalty_of[s] = find_penalty(shelf, snapshot->nodes[s].penalty);
                shelf->free_of[s] = free_cores[s] > 0 ? (uint32_t) free_cores[s] : 0;
                put(shelf, s);
        }
        return 0;
}

void shelf_finish(struct shelf *shelf) {
        free(shelf->penalties);
        free(shelf->first);
        free(shelf->count);
        free(shelf->top);
        free(shelf->next);
        free(shelf->previous);
        free(shelf->penalty_of);
        free(shelf->free_of);
        *shelf = (struct shelf) { 0 };
}

void shelf_set(struct shelf *shelf, uint32_t node, int64_t free_cores) {
        take(shelf, node);
        shelf->free_of[node] = free_cores > 0 ? (uint32_t) free_cores : 0;
        put(shelf, node);
}

uint32_t shelf_at_least(const struct shelf *shelf, uint32_t penalty, uint32_t free_cores) {
        const uint32_t *count = shelf->count + (size_t) penalty * shelf->stride;

        for (uint32_t f = free_cores > 0 ? free_cores : 1; f <= shelf->top[penalty]; f++)
                if (count[f] > 0)
                        return f;
        return 0;
}
