#include "daemon/metrics/totals.h"

#include <stdlib.h>
#include <string.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/util.h"

struct reported {
        char *node;
        uint64_t run; /* of its rmd */
        struct counters last;
        UT_hash_handle hh;
};

struct totals {
        struct counters sum;
        struct reported *nodes;
};

struct totals *totals_create(void) {
        return xcalloc(1, sizeof(struct totals));
}

static void forget(struct totals *totals, struct reported *node) {
        HASH_DEL(totals->nodes, node);
        free(node->node);
        free(node);
}

void totals_begin(struct totals *totals) {
        struct reported *node, *next;

        HASH_ITER (hh, totals->nodes, node, next)
                forget(totals, node);
}

void totals_destroy(struct totals *totals) {
        if (!totals)
                return;
        totals_begin(totals);
        free(totals);
}

static struct reported *add_node(struct totals *totals, const char *name, uint64_t run) {
        struct reported *node = xcalloc(1, sizeof(*node));

        node->node = xstrdup(name);
        node->run = run;
        HASH_ADD_KEYPTR(hh, totals->nodes, node->node, strlen(node->node), node);
        return node;
}

void totals_add(struct totals *totals, const char *node, const Rm__NodeCounters *report, bool whole) {
        size_t n = report->n_values < COUNTERS ? report->n_values : COUNTERS;
        struct reported *known;
        bool counts = true;

        HASH_FIND_STR(totals->nodes, node, known);
        if (!known) {
                known = add_node(totals, node, report->run);
                counts = whole;
        }
        if (known->run != report->run) {
                memset(&known->last, 0, sizeof(known->last));
                known->run = report->run;
        }
        for (size_t i = 0; i < n; i++) {
                /* Reports may overtake each other when a connection is made again: an older one
                 * adds nothing. */
                if (report->values[i] <= known->last.values[i])
                        continue;
                totals->sum.values[i] += counts ? report->values[i] - known->last.values[i] : 0;
                known->last.values[i] = report->values[i];
        }
}

void totals_forget(struct totals *totals, const Rm__State *state) {
        struct reported *node, *next;

        HASH_ITER (hh, totals->nodes, node, next)
                if (!state_node(state, node->node))
                        forget(totals, node);
}

const struct counters *totals_counters(const struct totals *totals) {
        return &totals->sum;
}

size_t totals_nodes(const struct totals *totals) {
        return HASH_COUNT(totals->nodes);
}
