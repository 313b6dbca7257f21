#include "policies/distrib/pattern.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/distrib/program.h"

enum {
        IMPROVE_EVERY = 16, /* nodes of the tree */
        TRIALS_EACH = 3,    /* choices of a kind of which both sides are tried */
        MAX_CHOICES = 16,
        MAX_DEPTH = 1000,
};

static const double whole = 1e-4; /* this close to it */

enum kind {
        KIND_TOP,    /* how many nodes all jobs of this one's priority and above are on, each job counted */
        KIND_JOB,    /* how many nodes the job is on */
        KIND_ALIKE,  /* how many of the nodes that are like this one */
        KIND_NODE,   /* how many jobs the node has */
        KIND_CELL,   /* what is in the cell: below `split`, or from there on */
        N_KINDS,
};

struct choice {
        enum kind kind;
        uint32_t job, node, split, cut;
        double used, score;
};

/* low .. split - 1, and split .. high. */
struct branch {
        struct choice choice;
        int64_t split, low, high;
        uint16_t *cell_low, *cell_high; /* of all cells, before it was taken */
        bool second;
};

struct pattern {
        const struct problem *problem;
        const struct pattern_host *host;
        struct program_clock clock;
        struct program *program;
        struct branch *branches; /* taken now */
        uint32_t n_branches;
        uint64_t *alike;   /* each node: those like it */
        int32_t *weights;  /* each cell */
        double *shares;    /* each node, program_stride() of them */
        bool *support;
        bool root;
        uint32_t *root_low, *root_high;
        int64_t bound;     /* of the root, PRICING_SHIFT */
        uint64_t solved;
        struct arena arena;
};

bool pattern_applies(const struct problem *problem, int64_t cost) {
        return program_applies(problem, cost);
}

static int64_t target_of(const struct pattern *pattern) {
        return pattern->host->target(pattern->host->context);
}

static size_t cell_of(const struct pattern *pattern, uint32_t j, uint32_t s) {
        return (size_t) j * pattern->problem->n_nodes + s;
}

static bool same_node(const struct problem *problem, uint32_t s, uint32_t t) {
        bool same = problem->nodes[s].capacity == problem->nodes[t].capacity;

        for (uint32_t j = 0; j < problem->n_jobs && same; j++) {
                const struct cell *a = problem_cell(problem, j, s), *b = problem_cell(problem, j, t);

                same = a->n == b->n && memcmp(problem->prices + a->first, problem->prices + b->first, a->n * sizeof(int64_t)) == 0;
        }
        return same;
}

/* The cut that adds up pattern->weights. */
static uint32_t find_sum(struct pattern *pattern) {
        struct program_cut cut = { .use = pattern->weights };

        for (size_t i = 0; i < (size_t) pattern->problem->n_jobs * pattern->problem->n_nodes; i++)
                cut.high += cut.use[i];
        return program_find_cut(pattern->program, &cut);
}

/* ---- where to branch ---- */

static bool is_weighed(const struct pattern *pattern, const struct choice *choice, uint32_t j, uint32_t s) {
        switch (choice->kind) {
        case KIND_TOP:
                return pattern->problem->jobs[j].priority >= pattern->problem->jobs[choice->job].priority;
        case KIND_JOB:
                return j == choice->job;
        case KIND_ALIKE:
                return j == choice->job && (pattern->alike[choice->node] >> s & 1);
        case KIND_NODE:
                return s == choice->node;
        case KIND_CELL:
        case N_KINDS:
                break;
        }
        return j == choice->job && s == choice->node;
}

static void weigh(struct pattern *pattern, const struct choice *choice) {
        for (uint32_t j = 0; j < pattern->problem->n_jobs; j++)
                for (uint32_t s = 0; s < pattern->problem->n_nodes; s++)
                        pattern->weights[cell_of(pattern, j, s)] = is_weighed(pattern, choice, j, s);
}

/* Among the best of its kind, `first` .. *n - 1, those farthest from a whole number. */
static void consider(struct pattern *pattern, struct choice choice, struct choice *choices, uint32_t first, uint32_t *n) {
        const double *used = program_used(pattern->program);
        double off, cost = 0;
        uint32_t at = *n;

        choice.used = 0;
        for (uint32_t j = 0; j < pattern->problem->n_jobs; j++)
                for (uint32_t s = 0; s < pattern->problem->n_nodes; s++)
                        if (is_weighed(pattern, &choice, j, s)) {
                                choice.used += used[cell_of(pattern, j, s)];
                                cost = fmax(cost, (double) pattern->problem->jobs[j].priority);
                        }
        off = fabs(choice.used - round(choice.used));
        choice.score = off * (cost + 1);
        choice.split = (uint32_t) floor(choice.used) + 1;
        if (off < whole)
                return;
        for (; at > first && choices[at - 1].score < choice.score; at--)
                if (at < first + TRIALS_EACH)
                        choices[at] = choices[at - 1];
        if (at < first + TRIALS_EACH) {
                choices[at] = choice;
                *n = *n < first + TRIALS_EACH ? *n + 1 : *n;
        }
}

static void list_kind(struct pattern *pattern, enum kind kind, struct choice *choices, uint32_t *n) {
        uint32_t first = *n, jobs = pattern->problem->n_jobs, nodes = pattern->problem->n_nodes;

        for (uint32_t j = 0; j < (kind == KIND_NODE ? 1 : jobs); j++)
                for (uint32_t s = 0; s < (kind == KIND_TOP || kind == KIND_JOB ? 1 : nodes); s++)
                        consider(pattern, (struct choice) { .kind = kind, .job = j, .node = s }, choices, first, n);
}

static uint32_t list_choices(struct pattern *pattern, struct choice *choices) {
        static const enum kind kinds[] = { KIND_TOP, KIND_JOB, KIND_NODE, KIND_CELL };
        uint32_t n = 0;

        for (uint32_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
                list_kind(pattern, kinds[i], choices, &n);
        return n;
}

/* Where the job is on the node for certain, but not with how many groups. */
static uint32_t list_amounts(struct pattern *pattern, struct choice *choices) {
        const double *amount = program_amount(pattern->program), *used = program_used(pattern->program);
        uint32_t stride = program_stride(pattern->program), n = 0;

        for (uint32_t j = 0; j < pattern->problem->n_jobs; j++) {
                program_shares(pattern->program, j, pattern->shares);
                for (uint32_t s = 0; s < pattern->problem->n_nodes && n < TRIALS_EACH; s++) {
                        size_t cell = cell_of(pattern, j, s);
                        struct choice choice = { .kind = KIND_CELL, .job = j, .node = s };

                        if (used[cell] < 0.5)
                                continue;
                        choice.split = (uint32_t) ceil(amount[cell] - whole);
                        for (uint32_t v = choice.split; v < stride; v++)
                                choice.used += pattern->shares[s * stride + v];
                        if (choice.split > 1 && choice.used > whole && choice.used < 1 - whole)
                                choices[n++] = choice;
                }
        }
        return n;
}

/* Nothing tells cells apart: one that is not settled. */
static uint32_t list_unsettled(const struct pattern *pattern, struct choice *choices) {
        const uint16_t *lows = program_low(pattern->program), *highs = program_high(pattern->program);
        const double *used = program_used(pattern->program);
        uint32_t n = 0;

        for (uint32_t j = 0; j < pattern->problem->n_jobs; j++)
                for (uint32_t s = 0; s < pattern->problem->n_nodes; s++) {
                        size_t cell = cell_of(pattern, j, s);
                        struct choice choice = {
                                .kind = KIND_CELL, .job = j, .node = s, .split = lows[cell] + 1u, .score = used[cell]
                        };

                        choice.score += lows[cell] == 0 ? 1 : 0;
                        if (lows[cell] < highs[cell] && (n == 0 || choice.score > choices[0].score)) {
                                choices[0] = choice;
                                n = 1;
                        }
                }
        return n;
}

/* How much dearer both sides get, at most `most` each. False: it cannot be branched on. */
static bool try_choice(struct pattern *pattern, struct choice *choice, double most, double *ret_low, double *ret_high) {
        struct program *program = pattern->program;

        if (choice->kind == KIND_CELL) {
                size_t cell = cell_of(pattern, choice->job, choice->node);
                uint32_t low = program_low(program)[cell], high = program_high(program)[cell];

                if (choice->split <= low || choice->split > high)
                        return false;
                *ret_low = program_try_cell(program, choice->job, choice->node, low, choice->split - 1);
                *ret_high = program_try_cell(program, choice->job, choice->node, choice->split, high);
        } else {
                int64_t low, high;

                weigh(pattern, choice);
                choice->cut = find_sum(pattern);
                if (choice->cut == PROGRAM_NO_CUT)
                        return false;
                program_get_cut(program, choice->cut, &low, &high);
                if (choice->split <= low || choice->split > high)
                        return false;
                *ret_low = program_try_cut(program, choice->cut, low, choice->split - 1);
                *ret_high = program_try_cut(program, choice->cut, choice->split, high);
        }
        *ret_low = fmin(*ret_low, most);
        *ret_high = fmin(*ret_high, most);
        return true;
}

/* The index of the one to branch on, by trying; n: none can be. */
static uint32_t choose_by_trial(struct pattern *pattern, struct choice *choices, uint32_t n) {
        double most = fmax((double) target_of(pattern) + 1 - program_value(pattern->program), 1), best = -1;
        uint32_t chosen = n;

        for (uint32_t i = 0; i < n; i++) {
                double low, high, score;

                if (!try_choice(pattern, &choices[i], most, &low, &high))
                        continue;
                score = (low + 0.01) * (high + 0.01);
                if (score > best) {
                        best = score;
                        chosen = i;
                }
                if (low >= most && high >= most)
                        break;
        }
        return chosen;
}

/* ---- the tree ---- */

static void take_side(struct pattern *pattern, const struct branch *branch) {
        int64_t low = branch->second ? branch->split : branch->low, high = branch->second ? branch->high : branch->split - 1;

        if (branch->choice.kind == KIND_CELL) {
                size_t cell = cell_of(pattern, branch->choice.job, branch->choice.node);

                program_low(pattern->program)[cell] = (uint16_t) low;
                program_high(pattern->program)[cell] = (uint16_t) high;
        } else
                program_set_cut(pattern->program, branch->choice.cut, low, high);
        program_apply_ranges(pattern->program);
}

/* False: cannot. */
static bool push_branch(struct pattern *pattern) {
        struct branch *branch = &pattern->branches[pattern->n_branches];
        size_t cells = (size_t) pattern->problem->n_jobs * pattern->problem->n_nodes;
        struct choice choices[MAX_CHOICES];
        uint32_t n = list_choices(pattern, choices), i;
        int64_t target = target_of(pattern);

        if (n == 0) {
                for (size_t k = 0; k < cells; k++)
                        pattern->support[k] = program_used(pattern->program)[k] > 0.5;
                pattern->host->try_support(pattern->host->context, pattern->support);
                if (target_of(pattern) < target)
                        return true; /* a better plan: the same node again */
                n = list_amounts(pattern, choices);
                n = n > 0 ? n : list_unsettled(pattern, choices);
        }
        i = n == 1 && choices[0].kind == KIND_CELL ? 0 : choose_by_trial(pattern, choices, n);
        if (i == n || pattern->n_branches == MAX_DEPTH)
                return false;
        branch->choice = choices[i];
        branch->split = choices[i].split;
        branch->second = false;
        if (!branch->cell_low)
                branch->cell_low = arena_alloc(&pattern->arena, cells, sizeof(*branch->cell_low));
        if (!branch->cell_high)
                branch->cell_high = arena_alloc(&pattern->arena, cells, sizeof(*branch->cell_high));
        if (pattern->arena.failed)
                return false;
        memcpy(branch->cell_low, program_low(pattern->program), cells * sizeof(*branch->cell_low));
        memcpy(branch->cell_high, program_high(pattern->program), cells * sizeof(*branch->cell_high));
        if (branch->choice.kind == KIND_CELL) {
                branch->low = branch->cell_low[cell_of(pattern, branch->choice.job, branch->choice.node)];
                branch->high = branch->cell_high[cell_of(pattern, branch->choice.job, branch->choice.node)];
        } else {
                program_get_cut(pattern->program, branch->choice.cut, &branch->low, &branch->high);
                program_hold_cut(pattern->program, branch->choice.cut, true);
        }
        pattern->n_branches++;
        take_side(pattern, branch);
        return true;
}

/* Goes to the next side that is to be seen. False: there is none. */
static bool next_side(struct pattern *pattern) {
        size_t cells = (size_t) pattern->problem->n_jobs * pattern->problem->n_nodes;

        while (pattern->n_branches > 0) {
                struct branch *branch = &pattern->branches[pattern->n_branches - 1];

                if (!branch->second) {
                        branch->second = true;
                        memcpy(program_low(pattern->program), branch->cell_low, cells * sizeof(*branch->cell_low));
                        memcpy(program_high(pattern->program), branch->cell_high, cells * sizeof(*branch->cell_high));
                        take_side(pattern, branch);
                        return true;
                }
                if (branch->choice.kind != KIND_CELL) {
                        program_set_cut(pattern->program, branch->choice.cut, branch->low, branch->high);
                        program_hold_cut(pattern->program, branch->choice.cut, false);
                }
                pattern->n_branches--;
        }
        return false;
}

static void keep_root(struct pattern *pattern) {
        pattern->root = false;
        for (size_t i = 0; i < (size_t) pattern->problem->n_jobs * pattern->problem->n_nodes; i++) {
                pattern->root_low[i] = program_low(pattern->program)[i];
                pattern->root_high[i] = program_high(pattern->program)[i];
        }
}

struct pattern_root pattern_root(const struct pattern *pattern) {
        return (struct pattern_root) { .low = pattern->root ? NULL : pattern->root_low,
                                       .high = pattern->root ? NULL : pattern->root_high };
}

/* Enters a node of the tree. 1: that was the last one; 0: there is more; -EAGAIN: no way on;
 * -ENOMEM. */
static int enter(struct pattern *pattern) {
        int64_t target = target_of(pattern), bound;
        enum program_end end = program_solve(pattern->program, target, pattern->root, &pattern->clock, &bound);

        if (pattern->root && end != PROGRAM_FAILED && bound > pattern->bound)
                pattern->bound = bound;
        if (end == PROGRAM_FAILED)
                return -EAGAIN;
        if (end == PROGRAM_OPEN) {
                (void) program_fix(pattern->program, target);
                if (pattern->root) {
                        keep_root(pattern); /* that may be all that is asked for */
                        return 0;
                }
                return push_branch(pattern) ? 0 : -EAGAIN;
        }
        return next_side(pattern) ? 0 : 1;
}

int pattern_run(struct pattern *pattern, uint64_t max_branches, uint64_t *branches) {
        int r = 0;

        for (uint64_t n = 0;
             (n < max_branches || pattern->root) && r == 0 && pattern->clock.left_usec(pattern->clock.context) > 0;) {
                bool root = pattern->root;

                if (++pattern->solved % IMPROVE_EVERY == 0)
                        pattern->host->improve(pattern->host->context);
                r = enter(pattern);
                n += !root;
                *branches += !root || !pattern->root || r == 1;
        }
        return r;
}

int64_t pattern_bound(const struct pattern *pattern) {
        int64_t bound = pattern->bound == INT64_MIN ? INT64_MIN : -(-pattern->bound >> PRICING_SHIFT); /* rounded up */
        int64_t target = target_of(pattern);

        return bound > target ? target + 1 : bound; /* what ranges leave out costs no less */
}

/* ---- making ---- */

struct pattern *pattern_create(const struct problem *problem, const struct pattern_host *host, const struct pattern_start *start) {
        struct pattern *pattern = calloc(1, sizeof(*pattern));
        size_t cells = (size_t) problem->n_jobs * problem->n_nodes;

        if (!pattern)
                return NULL;
        pattern->problem = problem;
        pattern->host = host;
        pattern->clock = (struct program_clock) { .context = host->context, .left_usec = host->left_usec };
        pattern->root = true;
        pattern->bound = INT64_MIN;
        pattern->branches = arena_alloc(&pattern->arena, MAX_DEPTH + 1, sizeof(*pattern->branches));
        pattern->alike = arena_alloc(&pattern->arena, problem->n_nodes, sizeof(*pattern->alike));
        pattern->weights = arena_alloc(&pattern->arena, cells, sizeof(*pattern->weights));
        pattern->root_low = arena_alloc(&pattern->arena, cells, sizeof(*pattern->root_low));
        pattern->root_high = arena_alloc(&pattern->arena, cells, sizeof(*pattern->root_high));
        pattern->support = arena_alloc(&pattern->arena, cells, sizeof(*pattern->support));
        pattern->program = program_create(problem, start->values, start->low, start->high);
        if (pattern->program)
                pattern->shares = arena_alloc(&pattern->arena, (size_t) problem->n_nodes * program_stride(pattern->program),
                                              sizeof(*pattern->shares));
        if (!pattern->program || pattern->arena.failed) {
                pattern_destroy(pattern);
                return NULL;
        }
        for (uint32_t s = 0; s < problem->n_nodes; s++)
                for (uint32_t t = 0; t < problem->n_nodes; t++)
                        pattern->alike[s] |= (uint64_t) same_node(problem, s, t) << t;
        return pattern;
}

void pattern_destroy(struct pattern *pattern) {
        if (!pattern)
                return;
        program_destroy(pattern->program);
        arena_finish(&pattern->arena);
        free(pattern);
}
