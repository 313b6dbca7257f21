#include "policies/distrib/partition.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
        ELEMENTS = 2 * COMPONENT_MAX_SIDE,
        CHECK_EVERY = 4096, /* steps between looks at the clock */
        LOOKS = 16,         /* at components, are a step */
};

struct partition {
        const struct partition_task *task;
        uint64_t elements;
        uint32_t *of_element[ELEMENTS]; /* indices of components, in order */
        uint32_t n_of_element[ELEMENTS];
        int64_t target;
        uint32_t chosen[COMPONENT_MAX_SIDE], n_chosen;
        struct partition_result *best;
        uint64_t looks, checked; /* looks since they were steps; steps when the clock was looked at */
        bool over;
};

static int compare(const void *a, const void *b) {
        const struct component *x = a, *y = b;

        return x->above != y->above ? (x->above < y->above ? -1 : 1) : (x->mask > y->mask) - (x->mask < y->mask);
}

static bool list_by_element(struct partition *p, struct arena *arena) {
        for (size_t i = 0; i < p->task->n; i++)
                for (uint64_t left = p->task->components[i].mask; left; left &= left - 1)
                        p->n_of_element[__builtin_ctzll(left)]++;
        for (uint32_t e = 0; e < ELEMENTS; e++) {
                p->of_element[e] = arena_alloc(arena, p->n_of_element[e], sizeof(uint32_t));
                p->n_of_element[e] = 0;
        }
        for (size_t i = 0; !arena->failed && i < p->task->n; i++)
                for (uint64_t left = p->task->components[i].mask; left; left &= left - 1) {
                        uint32_t e = (uint32_t) __builtin_ctzll(left);

                        p->of_element[e][p->n_of_element[e]++] = (uint32_t) i;
                }
        return !arena->failed;
}

/* The uncovered job or node with the fewest components left; UINT32_MAX: one has none. */
static uint32_t pick_element(struct partition *p, uint64_t covered, int64_t slack) {
        uint32_t best = UINT32_MAX, fewest = UINT32_MAX;

        for (uint64_t left = p->elements & ~covered; left; left &= left - 1) {
                uint32_t e = (uint32_t) __builtin_ctzll(left), n = 0, i;

                for (i = 0; i < p->n_of_element[e] && n < fewest; i++) {
                        const struct component *component = &p->task->components[p->of_element[e][i]];

                        if (component->above > slack)
                                break;
                        n += !(component->mask & covered);
                }
                p->looks += i;
                if (n == 0)
                        return UINT32_MAX;
                if (n < fewest) {
                        fewest = n;
                        best = e;
                }
        }
        return best;
}

static bool out_of_steps(struct partition *p) {
        p->best->steps += 1 + p->looks / LOOKS;
        p->looks %= LOOKS;
        if (p->best->steps > p->checked + CHECK_EVERY) {
                p->over |= deadline_left_usec(p->task->deadline) <= 0;
                p->checked = p->best->steps;
        }
        p->over |= p->best->steps > p->task->max_steps;
        return p->over;
}

static void search(struct partition *p, uint64_t covered, int64_t gap, int64_t cost) {
        uint32_t e;

        if (out_of_steps(p))
                return;
        if (covered == p->elements) {
                memcpy(p->best->chosen, p->chosen, sizeof(p->chosen));
                p->best->n = p->n_chosen;
                p->target = cost - 1;
                return;
        }
        e = p->n_chosen < p->task->problem->n_nodes ? pick_element(p, covered, gap) : UINT32_MAX;
        for (uint32_t i = 0; e < UINT32_MAX && i < p->n_of_element[e] && !p->over; i++) {
                const struct component *component = &p->task->components[p->of_element[e][i]];

                if (component->above > gap)
                        break;
                if ((component->mask & covered) || cost + component->cost > p->target)
                        continue;
                p->chosen[p->n_chosen++] = p->of_element[e][i];
                search(p, covered | component->mask, gap - component->above, cost + component->cost);
                p->n_chosen--;
        }
}

int partition_find(const struct partition_task *task, struct partition_result *ret_result) {
        struct partition p = { .task = task, .target = task->target, .best = ret_result };
        struct arena arena = { 0 };
        int r = -ENOMEM;

        *ret_result = (struct partition_result) { 0 };
        if (task->n == 0)
                return 1;
        qsort(task->components, task->n, sizeof(*task->components), compare);
        for (uint32_t s = 0; s < task->problem->n_nodes; s++)
                p.elements |= component_node(s);
        for (uint32_t j = 0; j < task->problem->n_jobs; j++)
                p.elements |= component_job(j);
        if (list_by_element(&p, &arena)) {
                search(&p, 0, task->gap, 0);
                ret_result->steps += p.looks / LOOKS;
                r = p.over ? 0 : 1;
        }
        arena_finish(&arena);
        return r;
}
