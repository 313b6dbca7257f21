#include "policies/distrib/search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/distrib/anneal.h"
#include "policies/distrib/ascent.h"
#include "policies/distrib/choice.h"
#include "policies/distrib/dual.h"
#include "policies/distrib/flow.h"
#include "policies/distrib/pattern.h"
#include "policies/distrib/relax.h"

enum {
        ROOT_SWEEPS = 12,
        ROOT_ROUNDS = 8,
        ROOT_STEPS = 60,   /* of ascent, in a round */
        NODE_SWEEPS = 12,
        TRIALS = 1,        /* cells on which both branches are tried: more look better at once than they are later */
        AMOUNT_TRIALS = 3,  /* and amounts in cells */
        DEGREE_TRIALS = 1,  /* and degrees of jobs, where stages are not */
        TRIAL_SWEEPS = 2,
        WEAKER_SIDE = 100, /* what the bound gains in it counts so much more: trees get deep where it gains nothing there */
        NODE_STEPS = 12,
        ANNEAL_MOVES = 200, /* in a run, for each cell */
        MOVES_A_USEC = 5, /* at least so many are made, */
        ANNEAL_PART = 8,  /* and one part in so many of the time left is for one run */
        THOROUGH_MOVES = 1000,
        THOROUGH_RUNS = 6,
        MANY_CELLS = 1000,   /* from here on a proof is unlikely, so that a good plan comes first */
        FEW_JOBS = 5,
        PATTERNS_LEAST = 24, /* branches on patterns, at once, where they promise much */
        PATTERNS_SHARE = 4,  /* branches for one of the other way */
        PATTERNS_FACTOR = 40, /* nodes of the other way for one more branch, where they do not promise much */
        PATTERNS_EVERY = 8,  /* nodes between tries, and a part of those there have been */
        ANNEAL_EVERY = 24,  /* nodes of the tree */
        STAGE_ROUNDS = 2,   /* at the root, when stages follow; */
        STAGE_PART = 16,    /* of the gap, that the first of them looks at; */
        STAGE_QUICK = 8,    /* nodes of one after which twice as much is looked at, else less */
        STAGE_MOVES = 100,  /* of annealing at a time in them, and THOROUGH_MOVES before one that is not quick */
        STAGE_PATTERNS = 4000, /* nodes until patterns are tried; */
        STAGE_FACTOR = 160,    /* PATTERNS_FACTOR there: nodes are quick */
        MAX_COPIED_VALUES = 8 * 1000 * 1000,
};

static const double stage_more = 1.3;

/* Where the search has yet to go from a level. */
struct level {
        struct dual dual;
        struct choice choice; /* branched on */
        uint32_t branches;    /* done: 0, 1, 2 */
        bool low_first;
        bool chosen;          /* `choice` is, or that there is none */
        int64_t bound;        /* of what is open here */
};

struct search {
        const struct problem *problem;
        const struct deadline *deadline;
        struct dual_work *work;
        struct anneal *anneal;
        struct ascent *ascent;
        struct flow *flow; /* NULL: of no use here */
        uint32_t *values, *trial_values;
        struct search_result *result;
        struct level *levels;
        uint32_t n_levels, max_levels;
        struct dual trial;
        size_t copied_values; /* in all levels */
        struct pattern_host pattern_host;
        struct pattern *pattern; /* NULL: none yet */
        bool patterns_promise;     /* more than the other way */
        uint64_t patterns_at;      /* nodes of the tree, when patterns are tried next */
        bool staged;
        struct dual start;    /* what stages begin with; cells NULL: not yet */
        int64_t limit;        /* of the stage: only plans that cost this or less are looked for */
        uint64_t stage_at;    /* nodes of the tree when it began */
        bool timed_out;       /* or out of room: what is open stays open */
};

/* The highest cost of a plan that is better than the best one known. */
static int64_t better_cost(const struct search *search) {
        return search->result->cost - (search->problem->step > 0 ? search->problem->step : 1);
}

static int64_t target_of(const struct search *search) {
        int64_t better = better_cost(search);

        return better < search->limit ? better : search->limit;
}

static bool out_of_time(struct search *search) {
        if (deadline_left_usec(search->deadline) <= 0)
                search->timed_out = true;
        return search->timed_out;
}

static void adopt(struct search *search, const uint32_t *values, int64_t cost) {
        if (cost >= search->result->cost)
                return;
        search->result->cost = cost;
        if (values != search->values)
                memcpy(search->values, values, sizeof(*values) * search->problem->n_jobs * search->problem->n_nodes);
}

static void anneal_with(struct search *search, uint32_t moves_a_cell) {
        uint64_t moves = (uint64_t) moves_a_cell * search->problem->n_jobs * search->problem->n_nodes;
        int64_t left = deadline_left_usec(search->deadline);
        uint64_t most = left > 0 ? (uint64_t) left * MOVES_A_USEC / ANNEAL_PART : 0;
        int64_t cost = anneal_run(search->anneal, moves < most ? moves : most);

        adopt(search, anneal_best(search->anneal), cost);
}

static void anneal(struct search *search) {
        anneal_with(search, ANNEAL_MOVES);
}

/* Until it has been for nothing some times. */
static void anneal_thoroughly(struct search *search) {
        for (int idle = 0; idle < THOROUGH_RUNS && !out_of_time(search); idle++) {
                int64_t before = search->result->cost;

                anneal_with(search, THOROUGH_MOVES);
                if (search->result->cost < before)
                        idle = -1;
        }
}

/* ---- the bound of one node of the tree ---- */

/* Sweep until it is over or nothing moves any more. */
static void tighten(struct search *search, struct dual *dual, int sweeps) {
        int64_t slack = dual_gap(dual);

        for (int i = 0; i < sweeps && !dual_is_over(dual); i++) {
                int64_t left;

                if (out_of_time(search) || !dual_sweep(dual, search->work))
                        return;
                left = dual_gap(dual);
                if (i > 2 && left > slack - slack / 30)
                        return;
                slack = left;
        }
}

static int raise_bound(struct search *search, struct dual *dual, uint32_t steps) {
        return ascent_run(search->ascent, dual, search->work, search->deadline, steps);
}

/* Tightens the root: the bound by ascent and the plan by annealing in turn, until neither gets
 * better. */
static int tighten_root(struct search *search, struct dual *dual) {
        int idle = 0, r = 0, rounds = search->staged ? STAGE_ROUNDS : ROOT_ROUNDS;

        tighten(search, dual, ROOT_SWEEPS);
        for (int i = 0; i < rounds && (idle < 2 || i < rounds / 2) && r == 0 && !dual_is_over(dual) && !out_of_time(search); i++) {
                int64_t slack = dual_gap(dual);

                r = raise_bound(search, dual, ROOT_STEPS);
                if (dual_is_over(dual) || r < 0)
                        break;
                anneal(search);
                dual_set_target(dual, target_of(search));
                tighten(search, dual, ROOT_SWEEPS);
                idle = dual_gap(dual) > slack - slack / 20 ? idle + 1 : 0;
        }
        return r;
}

static int tighten_node(struct search *search, struct dual *dual) {
        int r = 0;

        if (search->result->nodes % ANNEAL_EVERY == 0) {
                anneal_with(search, search->staged ? STAGE_MOVES : THOROUGH_MOVES);
                dual_set_target(dual, target_of(search));
        }
        tighten(search, dual, NODE_SWEEPS);
        if (!dual_is_over(dual) && !search->timed_out)
                r = raise_bound(search, dual, NODE_STEPS);
        if (r == 0 && !dual_is_over(dual))
                tighten(search, dual, 2);
        return r;
}

/* ---- leaves ---- */

/* Nothing is left to branch on: every cell has one value, or the best ones are found without
 * branching. */
static void try_leaf(struct search *search, const struct dual *dual) {
        size_t cells = (size_t) search->problem->n_jobs * search->problem->n_nodes;
        int64_t cost;

        if (search->flow && flow_applies(search->flow, dual)) {
                if (!flow_solve(search->flow, dual, search->trial_values))
                        return;
        } else
                for (size_t i = 0; i < cells; i++)
                        search->trial_values[i] = dual->values[dual->cells[i].first].v;
        cost = problem_judge(search->problem, search->trial_values);
        if (cost < PRICE_NEVER)
                adopt(search, search->trial_values, cost);
}

/* ---- the tree ---- */

static int push_level(struct search *search) {
        if (search->n_levels == search->max_levels) {
                uint32_t max = 2 * search->max_levels + 16;
                struct level *levels = realloc(search->levels, sizeof(*levels) * max);

                if (!levels)
                        return -ENOMEM;
                memset(levels + search->max_levels, 0, sizeof(*levels) * (max - search->max_levels));
                search->levels = levels;
                search->max_levels = max;
        }
        search->n_levels++;
        return 0;
}

/* Try both branches of some cells; where one leads nowhere, take the other at once. 1: chosen; 0:
 * nothing is left to choose. */
static int choose(struct search *search, struct level *level) {
        struct choice choices[TRIALS + DEGREE_TRIALS + AMOUNT_TRIALS];
        uint32_t n;
        bool again = true;

        while (again && !dual_is_over(&level->dual)) {
                int64_t best = -1;

                again = false;
                n = choices_of_cells(search->ascent, &level->dual, choices, TRIALS);
                if (n == 0 || (choice_is_of_amount(&choices[0]) && search->flow && flow_applies(search->flow, &level->dual)))
                        return 0;
                if (!search->staged)
                        n += choices_of_degrees(search->ascent, &level->dual, choices + n, DEGREE_TRIALS);
                n += choices_of_amounts(search->ascent, &level->dual, choices + n, AMOUNT_TRIALS);
                for (uint32_t i = 0; i < n && !again; i++) {
                        int64_t gain[2], score, at = level->dual.base + level->dual.sum;

                        for (int side = 0; side < 2; side++) {
                                if (dual_copy(&search->trial, &level->dual) < 0)
                                        return -ENOMEM;
                                choice_take(&search->trial, &choices[i], side == 0);
                                for (int k = 0; k < TRIAL_SWEEPS; k++)
                                        (void) dual_sweep(&search->trial, search->work);
                                gain[side] = search->trial.base + search->trial.sum - at;
                                if (dual_is_over(&search->trial)) {
                                        choice_take(&level->dual, &choices[i], side != 0);
                                        tighten(search, &level->dual, NODE_SWEEPS);
                                        again = true;
                                        break;
                                }
                        }
                        if (again || out_of_time(search))
                                break;
                        score = gain[0] < gain[1] ? gain[0] * WEAKER_SIDE + gain[1] : gain[1] * WEAKER_SIDE + gain[0];
                        if (score > best) {
                                best = score;
                                level->choice = choices[i];
                                level->low_first = gain[0] < gain[1];
                        }
                }
                if (search->timed_out)
                        return 1;
        }
        return 1;
}

/* The bound of all branches that are still open. */
static int64_t open_bound(const struct search *search) {
        int64_t bound = search->limit < search->result->cost ? search->limit + 1 : search->result->cost;

        for (uint32_t i = 0; i < search->n_levels; i++)
                if (search->levels[i].bound < bound)
                        bound = search->levels[i].bound;
        return bound;
}

/* Perhaps it is settled in another way before it is to be branched on. */
static void leave_open(struct level *level) {
        level->branches = dual_is_over(&level->dual) ? 2 : 0;
        level->chosen = false;
        level->bound = dual_bound(&level->dual);
}

/* How to go on from the level, whose bound has been raised. */
static int choose_at(struct search *search, struct level *level) {
        int r = dual_is_over(&level->dual) ? 1 : choose(search, level);

        if (r < 0)
                return r;
        if (r == 0 && !dual_is_over(&level->dual))
                try_leaf(search, &level->dual);
        level->branches = r == 0 || dual_is_over(&level->dual) ? 2 : 0;
        level->chosen = true;
        level->bound = dual_bound(&level->dual);
        return 0;
}

/* Where little tells nodes apart, or jobs are few, patterns prove more than the other way. */
static bool is_for_patterns(const struct problem *problem) {
        bool equal = true;

        for (uint32_t s = 1; s < problem->n_nodes && equal; s++)
                equal = problem->nodes[s].penalty == problem->nodes[0].penalty;
        return !problem_is_running(problem) && (equal || problem->n_jobs <= FEW_JOBS);
}

static int enter_level(struct search *search, struct level *level) {
        bool root = search->n_levels == 1;
        int r;

        search->result->nodes++;
        dual_set_target(&level->dual, target_of(search));
        r = root ? tighten_root(search, &level->dual) : tighten_node(search, &level->dual);
        if (r == 0 && root && !search->staged && !dual_is_over(&level->dual)) {
                anneal_thoroughly(search);
                dual_set_target(&level->dual, target_of(search));
                tighten(search, &level->dual, ROOT_SWEEPS);
        }
        if (r == 0 && root)
                leave_open(level);
        return r < 0 || root ? r : choose_at(search, level);
}

/* ---- patterns of nodes, another way to prove it ---- */

static int64_t pattern_target(void *context) {
        return better_cost(context);
}

static int64_t pattern_left_usec(void *context) {
        const struct search *search = context;

        return deadline_left_usec(search->deadline);
}

static void pattern_improve(void *context) {
        anneal(context);
}

/* The root with all plans that are better than the best one known, not that of a stage. */
static const struct dual *whole_root(const struct search *search) {
        return search->start.cells ? &search->start : &search->levels[0].dual;
}

static void pattern_try_support(void *context, const bool *support) {
        struct search *search = context;
        const struct problem *problem = search->problem;

        if (!search->flow || dual_copy(&search->trial, whole_root(search)) < 0)
                return;
        for (uint32_t j = 0; j < problem->n_jobs; j++)
                for (uint32_t s = 0; s < problem->n_nodes; s++) {
                        bool used = support[(size_t) j * problem->n_nodes + s];

                        dual_restrict(&search->trial, j, s, used ? 1 : 0, used ? UINT32_MAX : 0);
                        if (search->trial.cells[(size_t) j * problem->n_nodes + s].n == 0)
                                return;
                }
        try_leaf(search, &search->trial);
}

/* So many branches on patterns when there have been `nodes` of the other way. */
static uint64_t pattern_share(const struct search *search, uint64_t nodes) {
        if (search->patterns_promise)
                return PATTERNS_LEAST + PATTERNS_SHARE * nodes;
        return nodes / (problem_is_running(search->problem) ? STAGE_FACTOR : PATTERNS_FACTOR);
}

static const struct pattern_host pattern_calls = {
        .target = pattern_target,
        .left_usec = pattern_left_usec,
        .improve = pattern_improve,
        .try_support = pattern_try_support,
};

/* Makes the pattern with the root's bounds of each cell. */
static int make_pattern(struct search *search) {
        const struct dual *root = whole_root(search);
        size_t cells = (size_t) search->problem->n_jobs * search->problem->n_nodes;
        struct arena arena = { 0 };
        uint32_t *low = arena_alloc(&arena, cells, sizeof(*low)), *high = arena_alloc(&arena, cells, sizeof(*high));
        struct pattern_start start = { .values = search->values, .low = low, .high = high };

        search->pattern_host = pattern_calls;
        search->pattern_host.context = search;
        for (size_t i = 0; !arena.failed && i < cells; i++) {
                const struct dual_cell *cell = &root->cells[i];

                low[i] = root->values[cell->first].v;
                high[i] = root->values[cell->first + cell->n - 1].v;
        }
        if (!arena.failed)
                search->pattern = pattern_create(search->problem, &search->pattern_host, &start);
        arena_finish(&arena);
        return search->pattern ? 0 : -ENOMEM;
}

/* Narrows the root by the bounds of patterns on cells. */
static void narrow_root(struct search *search) {
        struct pattern_root from = pattern_root(search->pattern);
        struct level *level = &search->levels[0];

        for (uint32_t j = 0; j < search->problem->n_jobs; j++)
                for (uint32_t s = 0; s < search->problem->n_nodes; s++) {
                        size_t cell = (size_t) j * search->problem->n_nodes + s;

                        dual_restrict(&level->dual, j, s, from.low[cell], from.high[cell]);
                }
        dual_set_target(&level->dual, target_of(search));
        tighten(search, &level->dual, ROOT_SWEEPS);
        leave_open(level);
}

/* So many branches, or a share of those there have been of the other way: the worse of the two
 * costs no more than a few times what the better one does. */
static int try_patterns(struct search *search) {
        uint64_t nodes = search->result->nodes - search->result->pattern_nodes;
        uint64_t most = pattern_share(search, nodes);
        bool first;
        int r;

        search->patterns_at = nodes + nodes / PATTERNS_EVERY + PATTERNS_EVERY;
        if (most <= search->result->pattern_nodes && search->pattern)
                return 0;
        if (!search->flow || !pattern_applies(search->problem, search->result->cost)) {
                search->patterns_at = UINT64_MAX;
                return 0;
        }
        first = !search->pattern && !search->start.cells && search->n_levels == 1 && search->levels[0].branches == 0;
        if (!search->pattern && make_pattern(search) < 0)
                return -ENOMEM;
        r = pattern_run(search->pattern, most > search->result->pattern_nodes ? most - search->result->pattern_nodes : 0,
                        &search->result->pattern_nodes);
        search->result->nodes = nodes + search->result->pattern_nodes;
        if (pattern_bound(search->pattern) > search->result->bound)
                search->result->bound = pattern_bound(search->pattern);
        if (r == 1) {
                search->n_levels = 0;
                search->limit = INT64_MAX;
                search->result->by_patterns = true;
        }
        if (r == -EAGAIN)
                search->patterns_at = UINT64_MAX;
        if (r == 0 && first && pattern_root(search->pattern).low)
                narrow_root(search);
        return r == -ENOMEM ? r : 0;
}

/* ---- stages ---- */

/*
 * Where good plans are hard to come by, the tree is walked for plans that cost little more than the
 * bound, then for some that cost a little more, and so on: how large it is depends on what is left
 * open, which a poor plan would make much of. What such a tree does not find is not there, so the
 * limit of each is a bound.
 */
static int begin_stage(struct search *search, int64_t limit) {
        struct level *level = &search->levels[0];
        int r = 0;

        search->limit = limit;
        search->stage_at = search->result->nodes;
        search->n_levels = 1;
        if (dual_copy(&level->dual, &search->start) < 0)
                return -ENOMEM;
        dual_set_target(&level->dual, target_of(search));
        tighten(search, &level->dual, ROOT_SWEEPS);
        if (!dual_is_over(&level->dual))
                r = raise_bound(search, &level->dual, ROOT_STEPS);
        return r < 0 ? r : choose_at(search, level);
}

/* From the root, as it is now. */
static int first_stage(struct search *search) {
        struct level *level = &search->levels[0];
        int64_t bound = dual_bound(&level->dual);

        if (dual_copy(&search->start, &level->dual) < 0)
                return -ENOMEM;
        return begin_stage(search, bound + (better_cost(search) - bound) / STAGE_PART);
}

static int next_stage(struct search *search) {
        int64_t bound = dual_bound(&search->start), limit;
        bool quick = search->result->nodes - search->stage_at <= STAGE_QUICK;

        if (search->limit + 1 > search->result->bound)
                search->result->bound = search->limit + 1;
        if (!quick)
                anneal_with(search, THOROUGH_MOVES);
        limit = (int64_t) ((double) (search->limit - bound) * (quick ? 2 : stage_more)) + bound + 1;
        return begin_stage(search, limit < better_cost(search) ? limit : INT64_MAX);
}

static int walk(struct search *search) {
        int r = enter_level(search, &search->levels[0]);

        while (r == 0 && (search->n_levels > 0 || search->limit < better_cost(search)) && !search->timed_out) {
                struct level *level, *next;
                bool low;

                if (search->n_levels == 0) {
                        r = next_stage(search);
                        continue;
                }
                level = &search->levels[search->n_levels - 1];
                if (level->branches == 2 || level->bound > target_of(search)) {
                        search->n_levels--;
                        continue;
                }
                if (search->result->nodes - search->result->pattern_nodes >= search->patterns_at) {
                        r = try_patterns(search);
                        continue;
                }
                if (search->staged && !search->start.cells) {
                        r = first_stage(search);
                        continue;
                }
                if (!level->chosen) {
                        r = choose_at(search, level);
                        continue;
                }
                low = (level->branches++ == 0) == level->low_first;
                if (push_level(search) < 0)
                        return -ENOMEM;
                level = &search->levels[search->n_levels - 2];
                next = level + 1;
                search->copied_values += next->dual.space < level->dual.n_values ? level->dual.n_values - next->dual.space : 0;
                if (search->copied_values > MAX_COPIED_VALUES) {
                        search->timed_out = true;
                        level->branches--;
                        search->n_levels--;
                        break;
                }
                if ((r = dual_copy(&next->dual, &level->dual)) < 0)
                        return r;
                next->bound = level->bound;
                choice_take(&next->dual, &level->choice, low);
                r = enter_level(search, next);
        }
        return r;
}

/* ---- the root ---- */

static int make_root(struct search *search) {
        int r = push_level(search);

        return r < 0 ? r
                     : relax_dual(search->problem, deadline_left_usec(search->deadline), search->result->cost, target_of(search),
                                  &search->levels[0].dual);
}

static void search_finish(struct search *search) {
        for (uint32_t i = 0; i < search->max_levels; i++)
                dual_finish(&search->levels[i].dual);
        free(search->levels);
        dual_finish(&search->trial);
        dual_finish(&search->start);
        dual_work_destroy(search->work);
        anneal_destroy(search->anneal);
        ascent_destroy(search->ascent);
        flow_destroy(search->flow);
        pattern_destroy(search->pattern);
        free(search->trial_values);
}

int search_run(const struct problem *problem, const struct deadline *deadline, uint32_t *values, struct search_result *result) {
        struct search search = { .problem = problem, .deadline = deadline, .values = values, .result = result };
        bool no_flow;
        int r = 0;

        search.work = dual_work_create(problem);
        search.anneal = anneal_create(problem, values);
        search.ascent = ascent_create(problem);
        search.flow = flow_create(problem, &no_flow);
        search.staged = !is_for_patterns(problem);
        search.limit = INT64_MAX;
        search.patterns_promise = is_for_patterns(problem);
        search.patterns_at = problem_is_running(problem) ? STAGE_PATTERNS : 0;
        search.trial_values = calloc((size_t) problem->n_jobs * problem->n_nodes + 1, sizeof(*search.trial_values));
        if (!search.work || !search.anneal || !search.ascent || (!search.flow && !no_flow) || !search.trial_values)
                r = -ENOMEM;
        if (r == 0) {
                if (problem->n_jobs * problem->n_nodes >= MANY_CELLS)
                        anneal_thoroughly(&search);
                else
                        anneal(&search);
                r = make_root(&search);
        }
        if (r == 0)
                r = walk(&search);
        if (r == 0) {
                int64_t bound = search.timed_out ? open_bound(&search) : result->cost;

                if (bound > result->bound)
                        result->bound = bound;
        }
        search_finish(&search);
        return r;
}
