#include "policies/distrib/component.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policies/distrib/branch.h"
#include "policies/distrib/vectorised.h"

#define NEVER MARGIN_NEVER

enum {
        CHECK_EVERY = 4096, /* tries between looks at the clock */
        SLACK_PART = 4, /* of the gap: what branches with slack may be above, others the rest of it; at least 3 (branches_close) */
};

/* What is known of what the jobs from one on cost on a node. */
enum ahead_kind {
        AHEAD_SETTLED, /* all of them are settled; */
        AHEAD_HANGING, /* or a branch is to hang by one, whose margin counts; */
        AHEAD_BARE, /* or does not */
        AHEAD_KINDS,
};

/* Ways for a job to be on the node that is being filled, with so many groups, the others in a branch. */
struct option {
        uint64_t mask;
        int64_t above, cost;
        uint32_t units, n_nodes, branch;
        bool slack; /* one of the nodes has something free */
};

/* Options alike in units, nodes and slack, cheapest first. */
struct option_group {
        uint32_t first, n, units, n_nodes;
        bool slack;
};

struct options {
        struct option *options;
        struct option_group *groups;
        uint32_t n, max, n_groups, max_groups;
        uint32_t n_grouped; /* options when they were grouped last */
};

struct components {
        const struct problem *problem;
        const struct deadline *deadline;
        uint32_t jobs, nodes, stride; /* as in margins */
        struct margins margins;
        int64_t *ahead[AHEAD_KINDS][2]; /* least costs, by units and nodes still wanted; [1]: another node has something free */
        int64_t *with[AHEAD_KINDS][2]; /* the same, with something of the first of the jobs on the node */
        struct branches branches;
        struct options *options; /* of each node, and job there */
        size_t n_listed; /* branches that options are made of */
        struct item filling[COMPONENT_MAX_SIDE];
        uint32_t node, most_missing; /* being filled; `ahead` knows 0 .. most_missing */
        uint32_t free_units; /* that a plan leaves */
        int64_t budget, branch_budget; /* what the node may cost in a plan, and in a branch */
        uint64_t steps, max_steps;
        bool over; /* out of steps or time */
        struct arena arena;
};

/* ---- what it is made for ---- */

static bool prices_apply(const struct problem *problem, uint32_t j, uint32_t s) {
        const struct cell *cell = problem_cell(problem, j, s);
        const int64_t *price = problem->prices + cell->first;
        uint32_t most = problem->jobs[j].full < problem->nodes[s].capacity ? problem->jobs[j].full : problem->nodes[s].capacity;

        if (cell->n == 0 || price[0] != 0 || (cell->n > 1 && cell->n != most + 1))
                return false;
        for (uint32_t v = 1; v < cell->n; v++)
                if (price[v] >= PRICE_NEVER || (v > 1 && price[v] - price[v - 1] > price[v - 1] - price[v - 2]))
                        return false;
        return true;
}

bool components_apply(const struct problem *problem) {
        bool apply = problem->n_jobs > 0 && problem->n_jobs <= COMPONENT_MAX_SIDE && problem->n_nodes <= COMPONENT_MAX_SIDE;

        for (uint32_t s = 0; s < problem->n_nodes && apply; s++)
                apply = problem->nodes[s].capacity <= COMPONENT_MAX_UNITS;
        for (uint32_t j = 0; j < problem->n_jobs && apply; j++)
                apply = problem->jobs[j].rest == 0 && problem->jobs[j].size == 1 && problem->jobs[j].full <= COMPONENT_MAX_UNITS;
        for (uint32_t j = 0; j < problem->n_jobs && apply; j++)
                for (uint32_t s = 0; s < problem->n_nodes && apply; s++)
                        apply = prices_apply(problem, j, s);
        return apply;
}

static size_t at(const struct components *c, uint32_t j, uint32_t s, uint32_t units) {
        return margins_at(&c->margins, j, s, units);
}

/* ---- filling a node ---- */

struct fill {
        uint64_t mask;
        int64_t above, cost;
        uint32_t room, missing; /* missing: nodes that branches are yet to bring */
        bool wanted; /* a job that it all will hang by */
        bool slack; /* a node of a branch has something free */
        uint16_t job, units; /* that job, BRANCH_NO_JOB: none yet */
        int64_t margin; /* its */
        int64_t most; /* that it all may cost, when nothing is wanted any more */
        uint32_t n_items;
};

static size_t ahead_at(const struct components *c, uint32_t j, uint32_t room, uint32_t missing) {
        return ((size_t) j * (c->most_missing + 1) + missing) * c->stride + room;
}

/* What a fill may cost, when that much is yet to come at least: costs[kind][slack][i]. */
static int64_t most_above(const struct components *c, const struct fill *fill, int64_t *const costs[AHEAD_KINDS][2], size_t i) {
        int64_t most, bare;

        if (!fill->wanted)
                return fill->most - costs[AHEAD_SETTLED][fill->slack][i];
        most = c->budget - costs[AHEAD_HANGING][fill->slack][i];
        bare = c->branch_budget - costs[AHEAD_BARE][fill->slack][i];
        return most < bare ? most : bare;
}

/* What a fill may cost, that is yet to be filled by the jobs from j on. */
static int64_t most_before(const struct components *c, const struct fill *fill, uint32_t j, uint32_t room, uint32_t missing) {
        return most_above(c, fill, c->ahead, ahead_at(c, j, room, missing));
}

/* Can anything of the job be on the node? */
static bool may_hold(const struct components *c, const struct fill *fill, uint32_t j) {
        return !(fill->mask & component_job(j)) &&
               fill->above <= most_above(c, fill, c->with, ahead_at(c, j, fill->room, fill->missing));
}

static void finish_fill(struct components *c, const struct fill *fill) {
        struct record record = {
                .mask = fill->mask,
                .cost = fill->cost,
                .above = fill->above - c->margins.node_least[c->node] + c->margins.dual->node_price[c->node] * fill->room,
                .job = fill->job,
                .units = fill->units,
                .margin = fill->margin,
                .slack = fill->slack || fill->room > 0,
                .node = (uint8_t) c->node,
                .n_items = fill->n_items,
                .latest = BRANCH_NONE,
        };

        if (fill->missing > 0 || fill->wanted || (fill->slack && fill->room > 0) || fill->room > c->free_units)
                return;
        if (fill->job != BRANCH_NO_JOB)
                record.pieces = c->margins.job_cost[at(c, fill->job, c->node, fill->units)];
        branches_keep(&c->branches, &record, c->filling);
}

static struct options *options_of(const struct components *c, uint32_t s, uint32_t j) {
        return &c->options[(size_t) s * c->jobs + j];
}

static void fill_from(struct components *c, const struct fill *fill, uint32_t j);

static void fill_with(struct components *c, const struct fill *fill, uint32_t j, const struct option *option) {
        struct fill next = *fill;

        next.mask |= option->mask | component_job(j);
        next.above += option->above;
        next.cost += option->cost;
        next.room -= option->units;
        next.missing -= option->n_nodes;
        next.slack |= option->slack;
        c->filling[next.n_items++] =
                (struct item) { .job = (uint16_t) j, .units = (uint16_t) option->units, .branch = option->branch };
        fill_from(c, &next, j + 1);
}

/* The job that it will hang by: some of its groups are here. */
static void fill_hanging(struct components *c, const struct fill *fill, uint32_t j) {
        const int64_t *price = c->problem->prices + problem_cell(c->problem, j, c->node)->first;
        struct fill from = *fill;

        from.wanted = false;
        from.job = (uint16_t) j;
        for (uint32_t v = 1; v <= fill->room && v < c->problem->jobs[j].units; v++) {
                size_t i = at(c, j, c->node, v);
                struct option option = { .above = c->margins.node_cost[i], .units = v, .branch = BRANCH_NONE };

                if (c->margins.node_cost[i] >= NEVER || c->margins.job_margin[i] >= NEVER)
                        continue;
                option.cost = price[v];
                from.units = (uint16_t) v;
                from.margin = c->margins.job_margin[i];
                from.most = c->budget - from.margin < c->branch_budget ? c->budget - from.margin : c->branch_budget;
                if (from.above + option.above <= most_before(c, &from, j + 1, from.room - v, from.missing))
                        fill_with(c, &from, j, &option);
        }
}

static void fill_from_group(struct components *c, const struct fill *fill, uint32_t j, const struct option_group *group) {
        const struct options *options = options_of(c, c->node, j);
        const struct option *option = options->options + group->first;
        struct fill after = *fill;
        int64_t most;

        if (group->n_nodes > fill->missing || (group->slack && fill->slack))
                return;
        after.slack |= group->slack;
        most = most_before(c, &after, j + 1, fill->room - group->units, fill->missing - group->n_nodes) - fill->above;
        for (uint32_t i = 0; i < group->n && option[i].above <= most; i++)
                if (!(option[i].mask & fill->mask))
                        fill_with(c, fill, j, &option[i]);
}

/* Too many of something, or out of time. */
static bool is_over(const struct components *c) {
        return c->over || c->branches.full || c->branches.failed;
}

static bool out_of_steps(struct components *c) {
        if (++c->steps % CHECK_EVERY == 0 && deadline_left_usec(c->deadline) <= 0)
                c->over = true;
        if (c->steps + c->branches.steps > c->max_steps)
                c->over = true;
        return is_over(c);
}

/* By the jobs from j on. */
static void fill_from(struct components *c, const struct fill *fill, uint32_t j) {
        struct fill now = *fill;

        for (; j < c->jobs; j++) {
                const struct options *options = options_of(c, c->node, j);
                int64_t none = c->margins.node_cost[at(c, j, c->node, 0)];

                if (out_of_steps(c))
                        return;
                if (may_hold(c, &now, j)) {
                        for (uint32_t k = 0; k < options->n_groups && options->groups[k].units <= now.room; k++)
                                fill_from_group(c, &now, j, &options->groups[k]);
                        if (now.wanted)
                                fill_hanging(c, &now, j);
                }
                if (none >= NEVER)
                        return;
                now.above += none;
                if (now.above > most_before(c, &now, j + 1, now.room, now.missing))
                        return;
        }
        finish_fill(c, &now);
}

/* ---- what the node can be filled with ---- */

static int compare_options(const void *a, const void *b) {
        const struct option *x = a, *y = b;

        if (x->units != y->units)
                return x->units < y->units ? -1 : 1;
        if (x->n_nodes != y->n_nodes)
                return x->n_nodes < y->n_nodes ? -1 : 1;
        if (x->slack != y->slack)
                return x->slack ? 1 : -1;
        return x->above < y->above ? -1 : x->above > y->above;
}

static void add_option(struct components *c, uint32_t s, uint32_t j, const struct option *option) {
        struct options *options = options_of(c, s, j);
        size_t max = options->max;

        if (!branches_reserve((void **) &options->options, &max, options->n, sizeof(*options->options))) {
                c->branches.failed = true;
                return;
        }
        options->max = (uint32_t) max;
        options->options[options->n++] = *option;
}

static void group_options(struct components *c, struct options *options) {
        if (options->n_grouped == options->n)
                return;
        qsort(options->options, options->n, sizeof(*options->options), compare_options);
        options->n_grouped = options->n;
        options->n_groups = 0;
        for (uint32_t i = 0; i < options->n; i++) {
                const struct option *option = &options->options[i];
                struct option_group *last = options->n_groups > 0 ? &options->groups[options->n_groups - 1] : NULL;
                size_t max = options->max_groups;

                if (last && last->units == option->units && last->n_nodes == option->n_nodes && last->slack == option->slack) {
                        last->n++;
                        continue;
                }
                if (!branches_reserve((void **) &options->groups, &max, options->n_groups, sizeof(*options->groups))) {
                        c->branches.failed = true;
                        return;
                }
                options->max_groups = (uint32_t) max;
                options->groups[options->n_groups++] = (struct option_group) {
                        .first = i, .n = 1, .units = option->units, .n_nodes = option->n_nodes, .slack = option->slack
                };
        }
}

/* A branch, closed by the job's other groups on the node. */
static void add_closed(struct components *c, uint32_t s, const struct record *record) {
        const struct margins *margins = &c->margins;
        uint32_t j = record->job, units = c->problem->jobs[j].units - record->units;
        size_t i = at(c, j, s, units);
        int64_t job;

        if (units > c->problem->nodes[s].capacity || margins->node_cost[i] >= NEVER ||
            record->above + margins->ending[i] > margins->gap)
                return;
        job = margins->job_zero[j] + record->pieces + margins->job_cost[i] - margins->job_least[j];
        if (job + record->above > (record->slack ? c->branches.most_slack : c->branches.most_full) ||
            job + record->above + margins->ending[i] > margins->gap)
                return;
        add_option(c, s, j,
                   &(struct option) { .mask = record->mask & ~component_job(j),
                                      .above = record->above + job + margins->node_cost[i],
                                      .units = units,
                                      .n_nodes = record_nodes(record),
                                      .branch = record->index,
                                      .slack = record->slack,
                                      .cost = record->cost + c->problem->prices[problem_cell(c->problem, j, s)->first + units] });
}

/* All of the job on the node. */
static void add_whole(struct components *c, uint32_t s, uint32_t j) {
        uint32_t units = c->problem->jobs[j].units;
        size_t i = at(c, j, s, units);

        if (units > c->problem->nodes[s].capacity || c->margins.job_margin[i] >= NEVER || c->margins.node_cost[i] >= NEVER)
                return;
        add_option(c, s, j,
                   &(struct option) { .above = c->margins.node_cost[i] + c->margins.job_margin[i],
                                      .units = units,
                                      .branch = BRANCH_NONE,
                                      .cost = c->problem->prices[problem_cell(c->problem, j, s)->first + units] });
}

static void begin_options(struct components *c) {
        c->n_listed = 0;
        for (uint32_t s = 0; s < c->nodes; s++)
                for (uint32_t j = 0; j < c->jobs; j++) {
                        struct options *options = options_of(c, s, j);

                        options->n = options->n_grouped = options->n_groups = 0;
                        add_whole(c, s, j);
                }
}

/* The branches that are new, or cheaper now. */
static void add_options(struct components *c) {
        for (; c->n_listed < c->branches.n_news; c->n_listed++) {
                const struct record *record = branches_at(&c->branches, c->branches.news[c->n_listed]);

                for (uint32_t s = 0; s < c->nodes; s++)
                        if (!(record->mask & component_node(s)))
                                add_closed(c, s, record);
        }
}

/* Made to be vectorised. */
VECTORISED static void lower(int64_t *restrict to, const int64_t *restrict from, uint32_t n, int64_t above) {
        for (uint32_t i = 0; i < n; i++) {
                int64_t cost = from[i] + above;

                to[i] = cost < to[i] ? cost : to[i];
        }
}

/* to = the least of it and from moved on by the option. */
static void look_with(const struct components *c, int64_t *to, const int64_t *from, uint32_t units, uint32_t n_nodes,
                      int64_t above) {
        uint32_t capacity = c->problem->nodes[c->node].capacity;

        for (uint32_t missing = n_nodes; missing <= c->most_missing && units <= capacity; missing++)
                lower(to + (size_t) missing * c->stride + units, from + (size_t) (missing - n_nodes) * c->stride,
                      capacity + 1 - units, above);
}

/* Of one kind and slack. */
static void look_ahead_as(struct components *c, uint32_t j, enum ahead_kind kind, bool slack) {
        const struct options *options = options_of(c, c->node, j);
        size_t here = ahead_at(c, j, 0, 0), next = ahead_at(c, j + 1, 0, 0), n = (size_t) c->stride * (c->most_missing + 1);
        int64_t *with = c->with[kind][slack] + here, none = c->margins.node_cost[at(c, j, c->node, 0)];

        for (size_t i = 0; i < n; i++)
                with[i] = NEVER;
        for (uint32_t k = 0; k < options->n_groups; k++) {
                const struct option_group *group = &options->groups[k];

                if (!group->slack || !slack)
                        look_with(c, with, c->ahead[kind][slack || group->slack] + next, group->units, group->n_nodes,
                                  options->options[group->first].above);
        }
        for (uint32_t v = 1; kind != AHEAD_SETTLED && v < c->problem->jobs[j].units && v < c->stride; v++) {
                size_t i = at(c, j, c->node, v);

                if (c->margins.node_cost[i] < NEVER && c->margins.job_margin[i] < NEVER)
                        look_with(c, with, c->ahead[AHEAD_SETTLED][slack] + next, v, 0,
                                  c->margins.node_cost[i] + (kind == AHEAD_HANGING ? c->margins.job_margin[i] : 0));
        }
        memcpy(c->ahead[kind][slack] + here, with, n * sizeof(*with));
        if (none < NEVER)
                look_with(c, c->ahead[kind][slack] + here, c->ahead[kind][slack] + next, 0, 0, none);
}

static void look_ahead(struct components *c, bool hanging) {
        uint32_t width = c->most_missing + 1;
        int kinds = hanging ? AHEAD_KINDS : 1;

        for (uint32_t room = 0; room < c->stride; room++)
                for (uint32_t missing = 0; missing < width; missing++)
                        for (int kind = 0; kind < kinds; kind++)
                                for (int slack = 0; slack < 2; slack++) {
                                        bool ends = kind == AHEAD_SETTLED && missing == 0 && room <= (slack ? 0 : c->free_units);

                                        c->ahead[kind][slack][ahead_at(c, c->jobs, room, missing)] =
                                                ends ? c->margins.dual->node_price[c->node] * room : NEVER;
                                }
        for (uint32_t j = c->jobs; j-- > 0;)
                for (int kind = 0; kind < kinds; kind++)
                        for (int slack = 0; slack < 2; slack++)
                                look_ahead_as(c, j, (enum ahead_kind) kind, slack);
}

static void begin_node(struct components *c, uint32_t most_missing, bool hanging) {
        for (uint32_t j = 0; j < c->jobs; j++)
                group_options(c, options_of(c, c->node, j));
        c->most_missing = most_missing;
        c->budget = c->margins.gap + c->margins.node_least[c->node];
        c->branch_budget = c->branches.most_full + c->margins.node_least[c->node];
        look_ahead(c, hanging);
}

/* Branches of `from` to `to` nodes that this one is the top of. Returns the least number of nodes that seemed possible; 0: none. */
static uint32_t fill_branches(struct components *c, uint32_t from, uint32_t to) {
        begin_node(c, to - 1, true);
        for (uint32_t n = from; n <= to && !c->branches.failed; n++) {
                struct fill fill = { .mask = component_node(c->node),
                                     .room = c->problem->nodes[c->node].capacity,
                                     .missing = n - 1,
                                     .wanted = true,
                                     .job = BRANCH_NO_JOB };

                if (most_before(c, &fill, 0, fill.room, fill.missing) < 0)
                        continue;
                if (from == to)
                        fill_from(c, &fill, 0);
                return n;
        }
        return 0;
}

/* Components that this node is the middle of. */
static void fill_components(struct components *c) {
        struct fill fill = { .mask = component_node(c->node), .room = c->problem->nodes[c->node].capacity, .job = BRANCH_NO_JOB };

        begin_node(c, 0, false);
        fill.most = c->budget;
        if (!c->branches.failed && most_before(c, &fill, 0, fill.room, 0) >= 0)
                fill_from(c, &fill, 0);
}

/* ---- all of it ---- */

/* All branches of `size` nodes. Returns whether there were new ones. */
static bool grow(struct components *c, uint32_t size) {
        c->branches.n_seeds = 0;
        add_options(c);
        for (c->node = 0; c->node < c->nodes && !out_of_steps(c); c->node++)
                (void) fill_branches(c, size, size);
        for (size_t i = 0; i < c->branches.n_seeds && !out_of_steps(c); i++)
                branches_join(&c->branches, c->branches.seeds[i]);
        return c->branches.n_seeds > 0;
}

/* The least size, from `size` on, that there may be something of; 0: none. */
static uint32_t next_size(struct components *c, uint32_t size) {
        uint32_t next = 0;

        add_options(c);
        for (c->node = 0; c->node < c->nodes && size < c->nodes && !c->branches.failed; c->node++) {
                uint32_t first = fill_branches(c, size, c->nodes);

                if (first > 0 && (next == 0 || first < next))
                        next = first;
        }
        return size == c->nodes ? size : next;
}

/* Components, from the branches: around nodes, and around jobs. */
static void join_all(struct components *c) {
        add_options(c);
        for (size_t i = 0; i < (size_t) c->nodes * c->jobs; i++) {
                for (uint32_t k = 0; k < c->options[i].n; k++)
                        c->options[i].options[k].n_nodes = 0;
                c->options[i].n_grouped = 0;
        }
        for (c->node = 0; c->node < c->nodes && !out_of_steps(c); c->node++)
                fill_components(c);
        for (uint32_t j = 0; j < c->jobs && !out_of_steps(c); j++)
                branches_close(&c->branches, j);
}

static void free_options(struct components *c) {
        for (size_t i = 0; c->options && i < (size_t) c->nodes * c->jobs; i++) {
                free(c->options[i].options);
                free(c->options[i].groups);
                c->options[i] = (struct options) { 0 };
        }
}

/* Out of memory: others may need it more. False: there is not even enough to go on. */
static bool give_back(struct components *c) {
        free_options(c);
        return branches_shrink(&c->branches);
}

int components_list(struct components *c, const struct dual *dual, const struct deadline *deadline, uint64_t max_steps,
                    uint64_t *steps) {
        uint32_t size = 1;

        c->over = false;
        c->steps = 0;
        c->deadline = deadline;
        c->max_steps = max_steps;
        c->branches.n_found = 0;
        if (!margins_read(&c->margins, dual))
                return 1;
        branches_clear(&c->branches);
        c->branches.most_slack = c->margins.gap / SLACK_PART;
        c->branches.most_full = c->margins.gap - c->branches.most_slack;
        begin_options(c);
        while (size > 0 && size < c->nodes && !is_over(c))
                size = grow(c, size) || size + 1 >= c->nodes ? size + 1 : next_size(c, size + 1);
        join_all(c);
        *steps += c->steps + c->branches.steps;
        if (c->branches.failed)
                return give_back(c) ? 0 : -ENOMEM;
        for (size_t i = 0; i < c->branches.n_found; i++) {
                struct component *component = &c->branches.found[i];
                const struct record *record = branches_at(&c->branches, component->record);

                component->cost = record->cost;
                component->above = record->above;
        }
        return is_over(c) ? 0 : 1;
}

bool components_full(const struct components *components) {
        return components->branches.full;
}

int64_t components_gap(const struct components *components) {
        return components->margins.gap;
}

struct component *components_all(struct components *components, size_t *ret_n) {
        *ret_n = components->branches.n_found;
        return components->branches.found;
}

void components_fill(const struct components *components, const struct component *component, uint32_t *ret_values) {
        for (uint32_t j = 0; j < components->jobs; j++)
                for (uint32_t s = 0; s < components->nodes; s++)
                        if (component->mask & component_job(j))
                                ret_values[(size_t) j * components->nodes + s] = 0;
        branches_fill(&components->branches, component->record, ret_values);
}

/* ---- making ---- */

struct components *components_create(const struct problem *problem) {
        struct components *c = calloc(1, sizeof(*c));

        if (!c)
                return NULL;
        if (!margins_init(&c->margins, problem) || !branches_init(&c->branches, problem, &c->margins)) {
                components_destroy(c);
                return NULL;
        }
        c->problem = problem;
        c->jobs = problem->n_jobs;
        c->nodes = problem->n_nodes;
        for (uint32_t s = 0; s < c->nodes; s++)
                c->free_units += problem->nodes[s].capacity;
        for (uint32_t j = 0; j < c->jobs; j++)
                c->free_units -= problem->jobs[j].units;
        c->stride = c->margins.stride;
        c->options = arena_alloc(&c->arena, (size_t) c->nodes * c->jobs, sizeof(*c->options));
        for (int i = 0; i < 2 * AHEAD_KINDS; i++) {
                size_t n = (size_t) (c->jobs + 1) * c->stride * (c->nodes + 1);

                c->ahead[i / 2][i % 2] = arena_alloc(&c->arena, n, sizeof(int64_t));
                c->with[i / 2][i % 2] = arena_alloc(&c->arena, n, sizeof(int64_t));
        }
        if (c->arena.failed) {
                components_destroy(c);
                return NULL;
        }
        return c;
}

void components_destroy(struct components *components) {
        if (!components)
                return;
        free_options(components);
        branches_finish(&components->branches);
        margins_finish(&components->margins);
        arena_finish(&components->arena);
        free(components);
}
