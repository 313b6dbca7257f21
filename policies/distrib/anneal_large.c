#include "policies/distrib/anneal_large.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "placement/cost.h"
#include "placement/pack.h"
#include "policies/distrib/arena.h"
#include "policies/distrib/rng.h"

enum {
        MAX_CELLS = 16 * 1024 * 1024,
        DRAWS = 1024,  /* entries of the table of logarithms */
        LOOKS = 1024,  /* moves between two looks at the clock */
        LEAST_CANDIDATES = 24, /* of a job */
        NONE = -1,
        SAMPLES = 2048, /* moves looked at to see what losses are like */
};

/* The time it takes to look at a number of ranks of a job on a node. */
static const double scan_usec = 0.001;

/* Groups of one size of one job: the full ones, or the smaller last one. */
struct anneal_job {
        uint32_t index;              /* in the snapshot */
        uint32_t group_size;         /* ranks in a group */
        uint32_t first_group, n_groups;
        int32_t sibling;             /* the job's groups of the other size; NONE: there are none */
        int64_t priority;
        const uint32_t *limit;       /* ranks, each node of the snapshot; NULL: none */
};

struct anneal_node {
        uint32_t index; /* in the snapshot */
        uint32_t free_cores;
        int64_t penalty;
};

/* Groups of a job on a node. */
struct place {
        uint32_t job, node, groups;
};

/* Groups that run on a node: away[k] is what it costs to move k of them. */
struct origin {
        uint32_t groups;
        int64_t *away;
};

/* A node that a job may well have a place on. */
struct candidate {
        uint32_t node;
        float loss; /* at least, by prices */
};

struct anneal_large {
        const struct rm_snapshot *snapshot;
        int64_t weight;
        struct anneal_job *jobs;
        struct anneal_node *nodes;
        uint32_t n_jobs, n_nodes;
        struct place *places, *best;
        uint32_t n_places, n_best;
        uint32_t *at;      /* jobs x nodes: 1 + index into places */
        int32_t *on;             /* each node: a place there, NONE: there is none */
        int32_t *next, *previous; /* each place: others on its node */
        struct candidate *candidates; /* jobs x most_candidates, those of least loss first; NULL: not known */
        uint32_t most_candidates;
        uint32_t *n_candidates;
        uint32_t *origin_at; /* jobs x nodes: 1 + index into origins; NULL when nothing runs */
        struct origin *origins;
        int64_t gain, best_gain;
        bool unsaved; /* best_gain is that of `places` */
        double loss;  /* a typical one */
        double draw[DRAWS]; /* -log of numbers evenly between 0 and 1 */
        uint64_t random;
        struct arena arena;
};

/* Groups of x go from its node to `node`, `back` of those of `other` from there to where x was, or
 * elsewhere. */
struct swap {
        struct place x;
        uint32_t node, groups;
        uint32_t other, back;
        uint32_t to; /* where those of `other` go: the node of x, or a third one */
        uint32_t x_there, other_there, other_to; /* groups before */
        int64_t delta;
};

static uint32_t random_below(struct anneal_large *anneal, uint32_t n) {
        return rng_below(&anneal->random, n);
}

static size_t cell(const struct anneal_large *anneal, uint32_t job, uint32_t node) {
        return (size_t) job * anneal->n_nodes + node;
}

static uint32_t groups_at(const struct anneal_large *anneal, uint32_t job, uint32_t node) {
        uint32_t at = anneal->at[cell(anneal, job, node)];

        return at > 0 ? anneal->places[at - 1].groups : 0;
}

static void link_place(struct anneal_large *anneal, uint32_t place) {
        int32_t *first = &anneal->on[anneal->places[place].node];

        anneal->previous[place] = NONE;
        anneal->next[place] = *first;
        if (*first >= 0)
                anneal->previous[*first] = (int32_t) place;
        *first = (int32_t) place;
}

static void unlink_place(struct anneal_large *anneal, uint32_t place) {
        int32_t before = anneal->previous[place], after = anneal->next[place];

        if (before >= 0)
                anneal->next[before] = after;
        else
                anneal->on[anneal->places[place].node] = after;
        if (after >= 0)
                anneal->previous[after] = before;
}

static void set_groups(struct anneal_large *anneal, uint32_t job, uint32_t node, uint32_t groups) {
        uint32_t *at = &anneal->at[cell(anneal, job, node)];

        if (groups > 0 && *at > 0)
                anneal->places[*at - 1].groups = groups;
        else if (groups > 0) {
                anneal->places[anneal->n_places] = (struct place) { job, node, groups };
                link_place(anneal, anneal->n_places);
                *at = ++anneal->n_places;
        } else if (*at > 0) {
                uint32_t place = *at - 1, last = anneal->n_places - 1;

                unlink_place(anneal, place);
                *at = 0;
                if (place != last) {
                        unlink_place(anneal, last);
                        anneal->places[place] = anneal->places[last];
                        anneal->at[cell(anneal, anneal->places[place].job, anneal->places[place].node)] = place + 1;
                        link_place(anneal, place);
                }
                anneal->n_places--;
        }
}

/* ---- making ---- */

static bool takes_part(const struct rm_job *job) {
        for (uint32_t g = 0; g < job->n_groups; g++)
                if (job->groups[g].node >= 0 && (job->groups[g].flags & RM_GROUP_PINNED))
                        return false;
        return true;
}

/* The cheapest first, of those the largest. */
static int compare_nodes(const void *a, const void *b) {
        const struct anneal_node *x = a, *y = b;

        if (x->penalty != y->penalty)
                return x->penalty < y->penalty ? -1 : 1;
        if (x->free_cores != y->free_cores)
                return x->free_cores > y->free_cores ? -1 : 1;
        return x->index < y->index ? -1 : x->index > y->index;
}

/* `wanted`: nodes that must be there. Of the others the cheapest, as many as `ranks` could fill. */
static void list_nodes(struct anneal_large *anneal, const int64_t *free_cores, const bool *requested, uint64_t ranks) {
        const struct rm_snapshot *snapshot = anneal->snapshot;
        uint32_t n = snapshot->n_nodes, n_requested = 0;
        uint64_t space = 0;

        for (uint32_t s = 0, from_end = 0; s < n; s++) {
                struct anneal_node node = { s, free_cores[s] > 0 ? (uint32_t) free_cores[s] : 0, snapshot->nodes[s].penalty };

                anneal->nodes[requested[s] ? n_requested++ : n - ++from_end] = node;
        }
        qsort(anneal->nodes + n_requested, n - n_requested, sizeof(*anneal->nodes), compare_nodes);
        for (anneal->n_nodes = n_requested; anneal->n_nodes < n && space < ranks; anneal->n_nodes++)
                space += anneal->nodes[anneal->n_nodes].free_cores;
}

static int compare_costs(const void *a, const void *b) {
        int64_t x = *(const int64_t *) a, y = *(const int64_t *) b;

        return x < y ? -1 : x > y;
}

static const struct rm_group *groups_of(const struct anneal_large *anneal, uint32_t job) {
        return anneal->snapshot->jobs[anneal->jobs[job].index].groups + anneal->jobs[job].first_group;
}

/* Where the job's groups run, and how many of them; `n` origins are known before. Returns how many
 * there are. */
static uint32_t count_origins(struct anneal_large *anneal, uint32_t job, const uint32_t *node_of, uint32_t n) {
        for (uint32_t g = 0; g < anneal->jobs[job].n_groups; g++) {
                int32_t node = groups_of(anneal, job)[g].node;
                uint32_t *at = node >= 0 ? &anneal->origin_at[cell(anneal, job, node_of[node])] : NULL;

                if (!at)
                        continue;
                if (*at == 0)
                        *at = ++n;
                anneal->origins[*at - 1].groups++;
        }
        return n;
}

static void fill_origins(struct anneal_large *anneal, uint32_t job, const uint32_t *node_of) {
        for (uint32_t g = 0; g < anneal->jobs[job].n_groups; g++) {
                const struct rm_group *group = &groups_of(anneal, job)[g];

                if (group->node >= 0) {
                        struct origin *origin = &anneal->origins[anneal->origin_at[cell(anneal, job, node_of[group->node])] - 1];

                        origin->away[++origin->groups] = group->move_cost;
                }
        }
}

/* The cheapest to move first. */
static void add_up(struct origin *origin) {
        qsort(origin->away + 1, origin->groups, sizeof(*origin->away), compare_costs);
        for (uint32_t k = 1; k <= origin->groups; k++)
                origin->away[k] += origin->away[k - 1];
}

static bool list_origins(struct anneal_large *anneal, const uint32_t *node_of) {
        size_t n_cells = (size_t) anneal->n_jobs * anneal->n_nodes;
        uint32_t groups = 0;

        for (uint32_t j = 0; j < anneal->n_jobs; j++)
                for (uint32_t g = 0; g < anneal->jobs[j].n_groups; g++)
                        groups += groups_of(anneal, j)[g].node >= 0;
        if (groups == 0)
                return true;
        anneal->origin_at = arena_alloc(&anneal->arena, n_cells, sizeof(*anneal->origin_at));
        anneal->origins = arena_alloc(&anneal->arena, groups, sizeof(*anneal->origins));
        if (anneal->arena.failed)
                return false;
        for (uint32_t j = 0, n = 0; j < anneal->n_jobs; j++) {
                uint32_t first = n;

                n = count_origins(anneal, j, node_of, n);
                for (uint32_t i = first; i < n; i++) {
                        anneal->origins[i].away = arena_alloc(&anneal->arena, anneal->origins[i].groups + 1u, sizeof(int64_t));
                        anneal->origins[i].groups = 0;
                }
                if (anneal->arena.failed)
                        return false;
                fill_origins(anneal, j, node_of);
                for (uint32_t i = first; i < n; i++)
                        add_up(&anneal->origins[i]);
        }
        return true;
}

static void add_job(struct anneal_large *anneal, uint32_t index) {
        const struct rm_job *job = &anneal->snapshot->jobs[index];
        uint32_t full = job_full_groups(job), n = anneal->n_jobs;
        struct anneal_job one = { .index = index,
                                  .group_size = job->group_size,
                                  .n_groups = full,
                                  .sibling = NONE,
                                  .priority = job->priority,
                                  .limit = job->node_limit };

        anneal->jobs[anneal->n_jobs++] = one;
        if (job_rest_ranks(job) == 0)
                return;
        one.group_size = job_rest_ranks(job);
        one.first_group = full;
        one.n_groups = 1;
        one.sibling = (int32_t) n;
        anneal->jobs[n].sibling = (int32_t) anneal->n_jobs;
        anneal->jobs[anneal->n_jobs++] = one;
}

/* Which jobs take part, how much room others leave, and which nodes must be there. */
static uint64_t read_jobs(struct anneal_large *anneal, const struct rm_plan *plan, int64_t *free_cores, bool *requested) {
        const struct rm_snapshot *snapshot = anneal->snapshot;
        uint64_t ranks = 0;

        for (uint32_t s = 0; s < snapshot->n_nodes; s++)
                free_cores[s] = snapshot->nodes[s].cores;
        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                const struct rm_job *job = &snapshot->jobs[j];

                if (plan->jobs[j].decision != RM_PLACE)
                        continue;
                for (uint32_t g = 0; g < job->n_groups; g++)
                        free_cores[plan->jobs[j].group_node[g]] -= job->groups[g].ranks;
                if (!takes_part(job))
                        continue;
                add_job(anneal, j);
                ranks += job->ranks;
                for (uint32_t g = 0; g < job->n_groups; g++) {
                        requested[plan->jobs[j].group_node[g]] = true;
                        if (job->groups[g].node >= 0)
                                requested[job->groups[g].node] = true;
                }
        }
        return ranks;
}

static bool read_plan(struct anneal_large *anneal, const struct rm_plan *plan, int64_t *free_cores, bool *requested,
                      uint32_t *node_of) {
        uint64_t ranks = read_jobs(anneal, plan, free_cores, requested);
        uint64_t groups = 0;

        list_nodes(anneal, free_cores, requested, ranks);
        for (uint32_t j = 0; j < anneal->n_jobs; j++)
                groups += anneal->jobs[j].n_groups;
        if (anneal->n_jobs == 0 || anneal->n_nodes < 2 || (uint64_t) anneal->n_jobs * anneal->n_nodes > MAX_CELLS)
                return false;
        anneal->at = arena_alloc(&anneal->arena, (size_t) anneal->n_jobs * anneal->n_nodes, sizeof(*anneal->at));
        anneal->places = arena_alloc(&anneal->arena, groups, sizeof(*anneal->places));
        anneal->best = arena_alloc(&anneal->arena, groups, sizeof(*anneal->best));
        anneal->on = arena_alloc(&anneal->arena, anneal->n_nodes, sizeof(*anneal->on));
        anneal->next = arena_alloc(&anneal->arena, groups, sizeof(*anneal->next));
        anneal->previous = arena_alloc(&anneal->arena, groups, sizeof(*anneal->previous));
        if (anneal->arena.failed)
                return false;
        for (uint32_t s = 0; s < anneal->n_nodes; s++)
                anneal->on[s] = NONE;
        for (uint32_t s = 0; s < anneal->n_nodes; s++)
                node_of[anneal->nodes[s].index] = s;
        for (uint32_t j = 0; j < anneal->n_jobs; j++) {
                const int32_t *node = plan->jobs[anneal->jobs[j].index].group_node + anneal->jobs[j].first_group;

                for (uint32_t g = 0; g < anneal->jobs[j].n_groups; g++)
                        set_groups(anneal, j, node_of[node[g]], groups_at(anneal, j, node_of[node[g]]) + 1);
        }
        return list_origins(anneal, node_of);
}

static void save(struct anneal_large *anneal) {
        memcpy(anneal->best, anneal->places, sizeof(*anneal->best) * anneal->n_places);
        anneal->n_best = anneal->n_places;
        anneal->unsaved = false;
}

struct anneal_large *anneal_large_create(const struct rm_snapshot *snapshot, const struct rm_plan *plan, uint64_t seed) {
        struct anneal_large *anneal = calloc(1, sizeof(*anneal));
        size_t n = snapshot->n_nodes + 1u;
        int64_t *free_cores = calloc(n, sizeof(*free_cores));
        bool *requested = calloc(n, sizeof(*requested)), done = false;
        uint32_t *node_of = calloc(n, sizeof(*node_of));

        if (anneal && free_cores && requested && node_of) {
                anneal->snapshot = snapshot;
                anneal->weight = snapshot->params.distribution_weight;
                anneal->random = RNG_BEGIN + seed;
                anneal->jobs = arena_alloc(&anneal->arena, 2u * (size_t) snapshot->n_jobs, sizeof(*anneal->jobs));
                anneal->nodes = arena_alloc(&anneal->arena, snapshot->n_nodes, sizeof(*anneal->nodes));
                for (int i = 0; i < DRAWS; i++)
                        anneal->draw[i] = -log((i + 0.5) / DRAWS);
                done = !anneal->arena.failed && read_plan(anneal, plan, free_cores, requested, node_of);
        }
        free(free_cores);
        free(requested);
        free(node_of);
        if (!done) {
                anneal_large_destroy(anneal);
                return NULL;
        }
        save(anneal);
        return anneal;
}

void anneal_large_destroy(struct anneal_large *anneal) {
        if (!anneal)
                return;
        arena_finish(&anneal->arena);
        free(anneal);
}

uint32_t anneal_large_places(const struct anneal_large *anneal) {
        return anneal->n_places;
}

/* ---- candidates ---- */

static int compare_candidates(const void *a, const void *b) {
        const struct candidate *x = a, *y = b;

        if (x->loss != y->loss)
                return x->loss < y->loss ? -1 : 1;
        return x->node < y->node ? -1 : x->node > y->node;
}

/* The losses of nodes by prices, and room to sort candidates in. */
struct losses {
        const struct lagrangian *lagrangian;
        int32_t *site_worth; /* as lagrangian_list_site_worth() has it */
        uint32_t *site_of;   /* each node of the snapshot: 1 + index of its site; 0: it has none */
        struct candidate *candidates;
};

/* The least loss of a plan against the bound when the demand has any number of ranks on the
 * node. */
static int64_t least_loss(const struct losses *losses, uint32_t demand, const int32_t *least, const struct rm_node *node,
                          uint32_t site) {
        const struct lagrangian *lagrangian = losses->lagrangian;
        uint32_t ranks = lagrangian->ranks[demand], most = ranks < node->cores ? ranks : node->cores;
        int64_t priority = lagrangian->classes->demands[demand].priority * ((int64_t) 1 << lagrangian->shift), loss = INT64_MAX;
        const struct home *home = site > 0 ? site_home(&lagrangian->homes.sites[site - 1], demand) : NULL;
        const int32_t *worth = site > 0 ? losses->site_worth + (site - 1) * (lagrangian->most_cores + 1ul)
                                        : lagrangian_best_worth(lagrangian, node->penalty);

        for (uint32_t x = 1; worth && x <= most; x++) {
                int64_t now = least[ranks - x] - least[ranks] + worth[node->cores] - worth[node->cores - x] +
                              priority * (node->penalty * x + lagrangian->weight) - (home ? home_saves(home, x) : 0);

                loss = now < loss ? now : loss;
        }
        return loss;
}

/* The `k` best of them are in front then, in any order. */
static void part(struct candidate *candidates, uint32_t n, uint32_t k) {
        uint32_t low = 0, high = n;

        while (high - low > 1) {
                struct candidate middle = candidates[low + (high - low) / 2];
                uint32_t less = low, more = high;

                for (uint32_t i = low; i < more;) {
                        struct candidate one = candidates[i];
                        int order = compare_candidates(&one, &middle);
                        uint32_t to = order < 0 ? less++ : order > 0 ? --more : i;

                        candidates[i] = candidates[to];
                        candidates[to] = one;
                        i += order <= 0;
                }
                if (k <= less)
                        high = less;
                else if (k >= more)
                        low = more;
                else
                        break;
        }
}

static void list_candidates(struct anneal_large *anneal, uint32_t job, const struct losses *losses, uint32_t demand,
                            const int32_t *least) {
        struct candidate *candidates = losses->candidates;
        uint32_t n = 0;

        for (uint32_t s = 0; s < anneal->n_nodes; s++) {
                uint32_t index = anneal->nodes[s].index;
                int64_t loss = least_loss(losses, demand, least, &anneal->snapshot->nodes[index], losses->site_of[index]);

                if (loss < INT64_MAX)
                        candidates[n++] = (struct candidate) { s, (float) loss };
        }
        if (n > anneal->most_candidates) {
                part(candidates, n, anneal->most_candidates);
                n = anneal->most_candidates;
        }
        qsort(candidates, n, sizeof(*candidates), compare_candidates);
        memcpy(anneal->candidates + (size_t) job * anneal->most_candidates, candidates, sizeof(*candidates) * n);
        anneal->n_candidates[job] = n;
}

static bool losses_init(struct losses *losses, struct arena *arena, const struct anneal_large *anneal,
                        struct lagrangian *lagrangian) {
        const struct homes *homes = &lagrangian->homes;

        losses->lagrangian = lagrangian;
        losses->candidates = arena_alloc(arena, anneal->n_nodes, sizeof(*losses->candidates));
        losses->site_of = arena_alloc(arena, anneal->snapshot->n_nodes, sizeof(*losses->site_of));
        losses->site_worth = arena_alloc(arena, homes->n_sites * (lagrangian->most_cores + 1ul), sizeof(*losses->site_worth));
        if (arena->failed)
                return false;
        for (uint32_t i = 0; i < homes->n_sites; i++)
                losses->site_of[homes->sites[i].node] = i + 1;
        lagrangian_restart(lagrangian);
        lagrangian_list_site_worth(lagrangian, losses->site_worth);
        return true;
}

/* Where jobs have many places, there are more to choose from. */
static uint32_t count_candidates(const struct anneal_large *anneal, const struct lagrangian *lagrangian) {
        uint64_t homes = 0;

        for (uint32_t i = 0; i < lagrangian->homes.n_sites; i++)
                homes += lagrangian->homes.sites[i].n_homes;
        return LEAST_CANDIDATES + (uint32_t) (2 * homes / anneal->n_jobs);
}

double anneal_large_prices_work_usec(const struct anneal_large *anneal, const struct lagrangian *lagrangian) {
        return (double) anneal->n_jobs * anneal->n_nodes * lagrangian->most_cores * scan_usec;
}

int anneal_large_set_prices(struct anneal_large *anneal, struct lagrangian *lagrangian) {
        const struct relaxation *classes = lagrangian->classes;
        struct arena arena = { 0 };
        struct losses losses;

        anneal->most_candidates = count_candidates(anneal, lagrangian);
        anneal->candidates =
                arena_alloc(&anneal->arena, (size_t) anneal->n_jobs * anneal->most_candidates, sizeof(*anneal->candidates));
        anneal->n_candidates = arena_alloc(&anneal->arena, anneal->n_jobs, sizeof(*anneal->n_candidates));
        if (!losses_init(&losses, &arena, anneal, lagrangian) || anneal->arena.failed) {
                arena_finish(&arena);
                return -ENOMEM;
        }
        for (uint32_t t = 0; t < classes->n_demands; t++) {
                uint32_t job = 0;

                while (job < anneal->n_jobs &&
                       (anneal->jobs[job].index != classes->demands[t].job || anneal->jobs[job].first_group > 0))
                        job++;
                if (job == anneal->n_jobs)
                        continue;
                lagrangian_cut(lagrangian, t, lagrangian->ranks[t], lagrangian->least);
                list_candidates(anneal, job, &losses, t, lagrangian->least);
        }
        arena_finish(&arena);
        return 0;
}

/* ---- one move ---- */

/* Ranks of the job's groups of the other size. */
static uint32_t sibling_ranks(const struct anneal_large *anneal, uint32_t job, uint32_t node) {
        int32_t sibling = anneal->jobs[job].sibling;

        return sibling >= 0 ? groups_at(anneal, (uint32_t) sibling, node) * anneal->jobs[sibling].group_size : 0;
}

/* Right by differences, as long as groups of the other size do not move at the same time: where
 * these are, the node is paid for. */
static int64_t price(const struct anneal_large *anneal, uint32_t job, uint32_t node, uint32_t groups) {
        const struct anneal_job *one = &anneal->jobs[job];
        int64_t cost = groups > 0 ? one->priority * anneal->nodes[node].penalty * one->group_size * groups : 0;

        if (groups > 0 && sibling_ranks(anneal, job, node) == 0)
                cost += one->priority * anneal->weight;
        if (anneal->origin_at && anneal->origin_at[cell(anneal, job, node)] > 0) {
                const struct origin *origin = &anneal->origins[anneal->origin_at[cell(anneal, job, node)] - 1];

                if (groups < origin->groups)
                        cost += origin->away[origin->groups - groups];
        }
        return cost;
}

/* May the job have so many groups there? */
static bool is_within_limit(const struct anneal_large *anneal, uint32_t job, uint32_t node, uint32_t groups) {
        const struct anneal_job *one = &anneal->jobs[job];

        return !one->limit ||
               (uint64_t) groups * one->group_size + sibling_ranks(anneal, job, node) <= one->limit[anneal->nodes[node].index];
}

static uint32_t least_of(uint32_t a, uint32_t b) {
        return a < b ? a : b;
}

static bool draw_shift(struct anneal_large *anneal, struct swap *swap) {
        uint32_t most = least_of(swap->x.groups, anneal->nodes[swap->node].free_cores / anneal->jobs[swap->x.job].group_size);

        if (most == 0)
                return false;
        swap->back = 0;
        swap->other = swap->x.job;
        swap->groups = random_below(anneal, 8) == 0 ? 1 + random_below(anneal, most) : most;
        return true;
}

/* How many groups of a size must go for `cores` to fit where `free_cores` are. */
static uint32_t to_make_space(uint32_t cores, uint32_t free_cores, uint32_t group_size) {
        return cores > free_cores ? (cores - free_cores + group_size - 1) / group_size : 0;
}

static bool draw_exchange(struct anneal_large *anneal, struct swap *swap) {
        uint32_t size = anneal->jobs[swap->x.job].group_size, other_size = anneal->jobs[swap->other].group_size;
        uint32_t here = anneal->nodes[swap->x.node].free_cores, there = anneal->nodes[swap->node].free_cores;

        swap->groups = swap->x.groups;
        swap->back = swap->other_there;
        switch (random_below(anneal, 4)) {
        case 0: /* all of x, and as few of the other as must make room */
                swap->back = to_make_space(swap->groups * size, there, other_size);
                break;
        case 1: /* the other way round */
                swap->groups = to_make_space(swap->back * other_size, here, size);
                break;
        case 2: /* all of x, and as many of the other as then fit */
                swap->back = least_of(swap->back, (here + swap->groups * size) / other_size);
                break;
        default:
                break;
        }
        return swap->groups <= swap->x.groups && swap->back <= swap->other_there && swap->groups + swap->back > 0 &&
               swap->groups * size <= there + swap->back * other_size && swap->back * other_size <= here + swap->groups * size;
}

/* False: some limit is in the way. */
static bool weigh(const struct anneal_large *anneal, struct swap *swap) {
        uint32_t x = swap->x.job, here = swap->x.node, there = swap->node;

        swap->delta = 0;
        if (swap->groups > 0 && swap->back > 0 && anneal->jobs[x].sibling == (int32_t) swap->other)
                return false;
        if (swap->groups > 0) {
                swap->x_there = groups_at(anneal, x, there);
                if (!is_within_limit(anneal, x, there, swap->x_there + swap->groups))
                        return false;
                swap->delta += price(anneal, x, here, swap->x.groups - swap->groups) - price(anneal, x, here, swap->x.groups) +
                               price(anneal, x, there, swap->x_there + swap->groups) - price(anneal, x, there, swap->x_there);
        }
        if (swap->back > 0) {
                uint32_t y = swap->other, to = swap->to;

                swap->other_to = groups_at(anneal, y, to);
                if (!is_within_limit(anneal, y, to, swap->other_to + swap->back))
                        return false;
                swap->delta += price(anneal, y, there, swap->other_there - swap->back) -
                               price(anneal, y, there, swap->other_there) + price(anneal, y, to, swap->other_to + swap->back) -
                               price(anneal, y, to, swap->other_to);
        }
        return true;
}

/* Draws a node among those that lose little, the better ones more often. */
static uint32_t draw_candidate(struct anneal_large *anneal, uint32_t job) {
        uint32_t n = anneal->n_candidates[job], a = random_below(anneal, n), b = random_below(anneal, n);

        return anneal->candidates[(size_t) job * anneal->most_candidates + least_of(a, b)].node;
}

static uint32_t draw_on(struct anneal_large *anneal, uint32_t node) {
        uint32_t place = (uint32_t) anneal->on[node];

        while (anneal->next[place] >= 0 && random_below(anneal, 2) > 0)
                place = (uint32_t) anneal->next[place];
        return place;
}

/* All of x takes the room of all of the other, which goes where it may as well be. */
static bool draw_chain(struct anneal_large *anneal, struct swap *swap) {
        uint32_t size = anneal->jobs[swap->x.job].group_size, other_size = anneal->jobs[swap->other].group_size;

        if (!anneal->n_candidates[swap->other])
                return false;
        swap->to = draw_candidate(anneal, swap->other);
        if (swap->to == swap->node || swap->to == swap->x.node)
                return false;
        swap->groups = swap->x.groups;
        swap->back = swap->other_there;
        return swap->groups * size <= anneal->nodes[swap->node].free_cores + swap->back * other_size &&
               swap->back * other_size <= anneal->nodes[swap->to].free_cores;
}

/* Draws a move to a node where the group may as well be. */
static bool draw_likely(struct anneal_large *anneal, struct swap *swap) {
        const struct place *other;

        swap->node = draw_candidate(anneal, swap->x.job);
        if (swap->node == swap->x.node)
                return false;
        if (anneal->on[swap->node] < 0 || random_below(anneal, 4) == 0)
                return draw_shift(anneal, swap);
        other = &anneal->places[draw_on(anneal, swap->node)];
        if (other->job == swap->x.job)
                return draw_shift(anneal, swap);
        swap->other = other->job;
        swap->other_there = other->groups;
        return random_below(anneal, 4) == 0 ? draw_chain(anneal, swap) : draw_exchange(anneal, swap);
}

/* Any place to any node, or to that of any other place. */
static bool draw_any(struct anneal_large *anneal, struct swap *swap) {
        const struct place *other;

        if (random_below(anneal, 4) == 0) {
                swap->node = random_below(anneal, anneal->n_nodes);
                return swap->node != swap->x.node && draw_shift(anneal, swap);
        }
        other = &anneal->places[random_below(anneal, anneal->n_places)];
        if (other->node == swap->x.node)
                return false;
        swap->node = other->node;
        swap->other = other->job;
        swap->other_there = other->groups;
        return other->job == swap->x.job ? draw_shift(anneal, swap) : draw_exchange(anneal, swap);
}

/* False: not a possible move. */
static bool draw_swap(struct anneal_large *anneal, struct swap *swap) {
        swap->x = anneal->places[random_below(anneal, anneal->n_places)];
        swap->to = swap->x.node;
        if (anneal->candidates && anneal->n_candidates[swap->x.job] > 0 && random_below(anneal, 8) > 0)
                return draw_likely(anneal, swap) && weigh(anneal, swap);
        return draw_any(anneal, swap) && weigh(anneal, swap);
}

static void make(struct anneal_large *anneal, const struct swap *swap) {
        uint32_t x = swap->x.job, y = swap->other, here = swap->x.node, there = swap->node;

        if (swap->groups > 0) {
                uint32_t cores = swap->groups * anneal->jobs[x].group_size;

                set_groups(anneal, x, here, swap->x.groups - swap->groups);
                set_groups(anneal, x, there, swap->x_there + swap->groups);
                anneal->nodes[here].free_cores += cores;
                anneal->nodes[there].free_cores -= cores;
        }
        if (swap->back > 0) {
                uint32_t cores = swap->back * anneal->jobs[y].group_size;

                set_groups(anneal, y, there, swap->other_there - swap->back);
                set_groups(anneal, y, swap->to, swap->other_to + swap->back);
                anneal->nodes[there].free_cores += cores;
                anneal->nodes[swap->to].free_cores -= cores;
        }
        anneal->gain -= swap->delta;
}

/* ---- the walk ---- */

static double typical_loss(struct anneal_large *anneal) {
        double sum = 0;
        int n = 0;

        for (int i = 0; i < SAMPLES; i++) {
                struct swap swap;

                if (!draw_swap(anneal, &swap) || swap.delta <= 0)
                        continue;
                sum += (double) swap.delta;
                n++;
        }
        return n > 0 ? sum / n : 1;
}

static void scan_around(struct anneal_large *anneal, double heat) {
        for (int i = 0; i < LOOKS; i++) {
                struct swap swap;

                if (!draw_swap(anneal, &swap) ||
                    (swap.delta > 0 && (double) swap.delta > heat * anneal->draw[random_below(anneal, DRAWS)]))
                        continue;
                if (swap.delta > 0 && anneal->unsaved)
                        save(anneal);
                make(anneal, &swap);
                if (anneal->gain > anneal->best_gain) {
                        anneal->best_gain = anneal->gain;
                        anneal->unsaved = true;
                }
        }
}

int64_t anneal_large_run(struct anneal_large *anneal, const struct deadline *deadline, int64_t until_usec, int64_t usec, double hot,
                         double cold) {
        int64_t begin = deadline_left_usec(deadline), end = begin - usec > until_usec ? begin - usec : until_usec, left;

        if (anneal->loss <= 0)
                anneal->loss = typical_loss(anneal);
        while ((left = deadline_left_usec(deadline)) > end)
                scan_around(anneal, anneal->loss * hot * pow(cold / hot, (double) (begin - left) / (double) (begin - end)));
        if (anneal->unsaved)
                save(anneal);
        return anneal->best_gain;
}

int anneal_large_write(const struct anneal_large *anneal, struct rm_plan *plan) {
        uint32_t n_nodes = anneal->snapshot->n_nodes, *count = calloc((size_t) n_nodes + 1, sizeof(*count));
        uint32_t *first = calloc((size_t) anneal->n_jobs + 2, sizeof(*first)),
                 *sorted = calloc((size_t) anneal->n_best + 1, sizeof(*sorted));
        int r = count && first && sorted ? 0 : -ENOMEM;

        for (uint32_t i = 0; r == 0 && i < anneal->n_best; i++)
                first[anneal->best[i].job + 2]++;
        for (uint32_t j = 0; r == 0 && j < anneal->n_jobs; j++)
                first[j + 1] += first[j];
        for (uint32_t i = 0; r == 0 && i < anneal->n_best; i++)
                sorted[first[anneal->best[i].job + 1]++] = i;
        for (uint32_t j = 0; r == 0 && j < anneal->n_jobs; j++) {
                uint32_t index = anneal->jobs[j].index;
                int32_t rest_node = RM_NO_NODE;

                if (anneal->jobs[j].first_group > 0) /* named with the full ones */
                        continue;
                for (uint32_t i = first[j]; i < first[j + 1]; i++)
                        count[anneal->nodes[anneal->best[sorted[i]].node].index] = anneal->best[sorted[i]].groups;
                if (anneal->jobs[j].sibling > (int32_t) j)
                        rest_node = (int32_t) anneal->nodes[anneal->best[sorted[first[j + 1]]].node].index;
                r = pack_name_groups(&anneal->snapshot->jobs[index], n_nodes, count, rest_node, plan->jobs[index].group_node);
        }
        free(count);
        free(first);
        free(sorted);
        return r;
}
