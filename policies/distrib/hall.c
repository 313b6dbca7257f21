#include "policies/distrib/hall.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placement/cost.h"
#include "policies/distrib/rankwise.h"
#include "policies/distrib/roll.h"

enum {
        CANDIDATES = 24,    /* of a job */
        MOST_CHANGES = 64,  /* in a move */
        DRAWS = 1024,       /* entries of the table of logarithms */
        RATHER_FULL = 10000, /* a core left free counts as one part in so many of what a job costs: else all want the same nodes */
        LOOKS = 512, /* moves between two looks at the clock, and at what is amiss */
        TRIES = 8,
        SPARE = 16, /* one part in so many more than all ranks could fill, */
        SPARE_NODES = 4, /* and so many of the largest nodes, take part */
};

/* In parts of what a job costs. */
static const double hottest = 0.02, coldest = 0.001, first_fee = 0.05, last_fee = 0.5;
/* Less is not amiss. */
static const double small_hole = 0.001;
/* Of the time, before the hall is closed. */
static const double open_part = 0.7;
/* Of looking at a number of ranks of a job on a node. */
static const double look_usec = 0.002;

#define NOWHERE UINT32_MAX
#define CLOSED (INT64_MAX / 1024) /* a fee that nobody pays */

/* Ranks of a job on a node. */
struct place {
        uint32_t job, ranks;
};

struct hall_job {
        uint32_t ranks, waiting;
        int64_t priority;
        const int32_t *wait_cost; /* of so many ranks, without the fee */
        uint32_t *nodes; /* that it is on */
        uint32_t n_nodes;
};

struct hall_node {
        uint32_t index; /* in the snapshot */
        uint32_t cores, free_cores;
        int64_t penalty;
        const int32_t *worth; /* of its cores; NULL: nothing */
        struct place *places;
        uint32_t n_places;
        uint32_t first_candidate, n_candidates; /* in by_node */
};

struct candidate {
        uint32_t job, node, ranks;
        int64_t loss; /* of a plan against the bound when so many ranks of the job are on the node, at least */
};

/* What there was before. */
struct change {
        uint32_t job, node, ranks; /* node: NOWHERE, in the hall */
};

struct hall {
        const struct pieces *pieces;
        struct hall_job *jobs;
        struct hall_node *nodes;
        uint32_t n_jobs, n_nodes;
        struct candidate *candidates, *by_node; /* of each job; of each node; the best first */
        uint32_t *n_candidates;
        uint32_t *waiting, *holes; /* jobs and nodes that are amiss */
        uint32_t n_waiting, n_holes;
        struct change changes[MOST_CHANGES];
        uint32_t n_changes;
        int64_t gain; /* by the changes, fees and what is forgiven included */
        uint32_t n_in_hall;
        int64_t fee, cost, best_cost; /* cost: of what is placed, scaled as all is */
        int32_t *best_node; /* each rank of each job */
        int32_t *first_node; /* the same, where walks begin */
        uint32_t n_ranks;
        uint32_t *number_of; /* each node of the snapshot: its number, from 1 on */
        double draw[DRAWS]; /* -log of numbers evenly between 0 and 1 */
        uint64_t random;
        struct arena arena;
};

static uint32_t roll(struct hall *hall, uint32_t n) {
        return roll_below(&hall->random, n);
}

static uint32_t least_of(uint32_t a, uint32_t b) {
        return a < b ? a : b;
}

bool hall_applies(const struct pieces *pieces, const struct rm_snapshot *snapshot) {
        bool applies = !pieces->has_groups && pieces->homes.n_sites == 0;

        for (uint32_t t = 0; t < pieces->classes->n_demands && applies; t++) {
                const struct rm_job *job = &snapshot->jobs[pieces->classes->demands[t].job];

                applies = job->group_size == 1 && !job->node_limit && !job_runs(job);
        }
        return applies;
}

/* ---- what is where ---- */

static struct place *find_place(const struct hall *hall, uint32_t job, uint32_t node) {
        struct place *places = hall->nodes[node].places;

        for (uint32_t i = 0; i < hall->nodes[node].n_places; i++)
                if (places[i].job == job)
                        return &places[i];
        return NULL;
}

static uint32_t ranks_at(const struct hall *hall, uint32_t job, uint32_t node) {
        const struct place *place = find_place(hall, job, node);

        return place ? place->ranks : 0;
}

static void forget_node(struct hall_job *job, uint32_t node) {
        uint32_t i = 0;

        while (job->nodes[i] != node)
                i++;
        job->nodes[i] = job->nodes[--job->n_nodes];
}

static void set_ranks(struct hall *hall, uint32_t job, uint32_t node, uint32_t ranks) {
        struct hall_node *one = &hall->nodes[node];
        struct place *place = find_place(hall, job, node);

        one->free_cores += (place ? place->ranks : 0) - ranks;
        if (place && ranks > 0)
                place->ranks = ranks;
        else if (place) {
                *place = one->places[--one->n_places];
                forget_node(&hall->jobs[job], node);
        } else if (ranks > 0) {
                one->places[one->n_places++] = (struct place) { job, ranks };
                hall->jobs[job].nodes[hall->jobs[job].n_nodes++] = node;
        }
}

static int64_t place_cost(const struct hall *hall, uint32_t job, uint32_t node, uint32_t ranks) {
        if (ranks == 0)
                return 0;
        return hall->jobs[job].priority * (hall->nodes[node].penalty * ranks + hall->pieces->weight) *
               ((int64_t) 1 << hall->pieces->shift);
}

static int64_t wait_cost(const struct hall *hall, uint32_t job, uint32_t ranks) {
        return ranks > 0 ? hall->jobs[job].wait_cost[ranks] + hall->fee : 0;
}

/* What the cores would be worth that are free. */
static int64_t hole_of(const struct hall_node *node) {
        return node->worth ? node->worth[node->cores] - node->worth[node->cores - node->free_cores] : 0;
}

static int64_t relief(const struct hall *hall, const struct hall_node *node) {
        int64_t hole = hole_of(node);

        return hole > hall->fee ? hole - hall->fee : 0;
}

static void put(struct hall *hall, uint32_t job, uint32_t node, uint32_t ranks) {
        if (node == NOWHERE) {
                hall->n_in_hall += (uint32_t) (ranks > 0) - (uint32_t) (hall->jobs[job].waiting > 0);
                hall->jobs[job].waiting = ranks;
                return;
        }
        hall->cost -= place_cost(hall, job, node, ranks_at(hall, job, node));
        set_ranks(hall, job, node, ranks);
        hall->cost += place_cost(hall, job, node, ranks);
}

/* A part of a move. False: there are too many. */
static bool change(struct hall *hall, uint32_t job, uint32_t node, uint32_t ranks) {
        uint32_t before = node == NOWHERE ? hall->jobs[job].waiting : ranks_at(hall, job, node);

        if (hall->n_changes == MOST_CHANGES)
                return false;
        hall->changes[hall->n_changes++] = (struct change) { job, node, before };
        if (node == NOWHERE)
                hall->gain += wait_cost(hall, job, before) - wait_cost(hall, job, ranks);
        else
                hall->gain +=
                        place_cost(hall, job, node, before) - place_cost(hall, job, node, ranks) - relief(hall, &hall->nodes[node]);
        put(hall, job, node, ranks);
        if (node != NOWHERE)
                hall->gain += relief(hall, &hall->nodes[node]);
        return true;
}

static void undo(struct hall *hall) {
        while (hall->n_changes > 0) {
                const struct change *last = &hall->changes[--hall->n_changes];

                put(hall, last->job, last->node, last->ranks);
        }
}

/* ---- making ---- */

/* The cheapest first, of those the largest. */
static int compare_nodes(const void *a, const void *b) {
        const struct hall_node *x = a, *y = b;

        if (x->penalty != y->penalty)
                return x->penalty < y->penalty ? -1 : 1;
        if (x->cores != y->cores)
                return x->cores > y->cores ? -1 : 1;
        return x->index < y->index ? -1 : x->index > y->index;
}

/* Those of the plan, and the cheapest, as many as all ranks could fill. */
static bool list_nodes(struct hall *hall, const struct rm_snapshot *snapshot) {
        uint64_t room = 0, ranks = hall->n_ranks;
        uint32_t *number_of = hall->number_of;

        for (uint32_t i = 0; i < hall->n_ranks; i++)
                number_of[hall->first_node[i]] = 1;
        for (uint32_t s = 0; s < snapshot->n_nodes; s++)
                hall->nodes[s] =
                        (struct hall_node) { .index = s, .cores = snapshot->nodes[s].cores, .penalty = snapshot->nodes[s].penalty };
        qsort(hall->nodes, snapshot->n_nodes, sizeof(*hall->nodes), compare_nodes);
        ranks += ranks / SPARE + SPARE_NODES * (uint64_t) hall->pieces->most_cores;
        for (uint32_t s = 0; s < snapshot->n_nodes; s++) {
                struct hall_node node = hall->nodes[s];

                if (room >= ranks && number_of[node.index] == 0)
                        continue;
                room += node.cores;
                node.free_cores = node.cores;
                node.worth = pieces_best_worth(hall->pieces, node.penalty);
                node.places = arena_alloc(&hall->arena, node.cores, sizeof(*node.places));
                hall->nodes[hall->n_nodes] = node;
                number_of[node.index] = ++hall->n_nodes;
        }
        return !hall->arena.failed;
}

static bool list_jobs(struct hall *hall) {
        const struct pieces *pieces = hall->pieces;
        const struct relaxation *classes = pieces->classes;

        for (uint32_t t = 0; t < classes->n_demands; t++) {
                struct hall_job *job = &hall->jobs[hall->n_jobs++];
                int32_t *least = arena_alloc(&hall->arena, classes->demands[t].ranks + 1ul, sizeof(*least));

                job->ranks = classes->demands[t].ranks;
                job->priority = classes->demands[t].priority;
                job->nodes = arena_alloc(&hall->arena, job->ranks, sizeof(*job->nodes));
                if (hall->arena.failed)
                        return false;
                pieces_cut(pieces, t, job->ranks, least);
                job->wait_cost = least;
        }
        return true;
}

/* Insert it, if it is one of the best. */
static uint32_t insert(struct candidate *candidates, uint32_t n, struct candidate candidate) {
        uint32_t i = n < CANDIDATES ? n++ : CANDIDATES - 1;

        if (i == CANDIDATES - 1 && n == CANDIDATES && candidates[i].ranks > 0 && candidates[i].loss <= candidate.loss)
                return n;
        for (; i > 0 && candidates[i - 1].loss > candidate.loss; i--)
                candidates[i] = candidates[i - 1];
        candidates[i] = candidate;
        return n;
}

static void list_candidates(struct hall *hall, uint32_t job) {
        struct candidate *candidates = hall->candidates + (size_t) job * CANDIDATES;
        const int32_t *wait = hall->jobs[job].wait_cost;
        uint32_t ranks = hall->jobs[job].ranks;
        int64_t rather_full = hall->pieces->best / hall->n_jobs / RATHER_FULL;

        for (uint32_t s = 0; s < hall->n_nodes; s++) {
                const struct hall_node *node = &hall->nodes[s];

                for (uint32_t x = 1; node->worth && x <= least_of(ranks, node->cores); x++) {
                        int64_t loss = (int64_t) wait[ranks - x] - wait[ranks] + node->worth[node->cores] -
                                       node->worth[node->cores - x] + place_cost(hall, job, s, x) +
                                       (int64_t) (node->cores - x) * rather_full;

                        hall->n_candidates[job] =
                                insert(candidates, hall->n_candidates[job], (struct candidate) { job, s, x, loss });
                }
        }
}

static int compare_candidates(const void *a, const void *b) {
        const struct candidate *x = a, *y = b;

        if (x->node != y->node)
                return x->node < y->node ? -1 : 1;
        if (x->loss != y->loss)
                return x->loss < y->loss ? -1 : 1;
        return x->job < y->job ? -1 : x->job > y->job;
}

static void list_by_node(struct hall *hall) {
        uint32_t n = 0;

        for (uint32_t j = 0; j < hall->n_jobs; j++) {
                memcpy(hall->by_node + n, hall->candidates + (size_t) j * CANDIDATES,
                       sizeof(*hall->by_node) * hall->n_candidates[j]);
                n += hall->n_candidates[j];
        }
        qsort(hall->by_node, n, sizeof(*hall->by_node), compare_candidates);
        for (uint32_t i = n; i-- > 0;) {
                hall->nodes[hall->by_node[i].node].first_candidate = i;
                hall->nodes[hall->by_node[i].node].n_candidates++;
        }
}

static bool make_lists(struct hall *hall, const struct rm_snapshot *snapshot) {
        uint32_t n_jobs = hall->pieces->classes->n_demands;
        struct arena *arena = &hall->arena;

        hall->n_ranks = rankwise_ranks(hall->pieces->classes);
        hall->jobs = arena_alloc(arena, n_jobs, sizeof(*hall->jobs));
        hall->nodes = arena_alloc(arena, snapshot->n_nodes, sizeof(*hall->nodes));
        hall->candidates = arena_alloc(arena, (size_t) n_jobs * CANDIDATES, sizeof(*hall->candidates));
        hall->by_node = arena_alloc(arena, (size_t) n_jobs * CANDIDATES, sizeof(*hall->by_node));
        hall->n_candidates = arena_alloc(arena, n_jobs, sizeof(*hall->n_candidates));
        hall->waiting = arena_alloc(arena, n_jobs, sizeof(*hall->waiting));
        hall->holes = arena_alloc(arena, snapshot->n_nodes, sizeof(*hall->holes));
        hall->best_node = arena_alloc(arena, hall->n_ranks, sizeof(*hall->best_node));
        hall->first_node = arena_alloc(arena, hall->n_ranks, sizeof(*hall->first_node));
        hall->number_of = arena_alloc(arena, snapshot->n_nodes, sizeof(*hall->number_of));
        return !arena->failed;
}

static void save(struct hall *hall) {
        int32_t *to = hall->best_node;

        hall->best_cost = hall->cost;
        for (uint32_t j = 0; j < hall->n_jobs; j++)
                for (uint32_t i = 0; i < hall->jobs[j].n_nodes; i++)
                        for (uint32_t k = ranks_at(hall, j, hall->jobs[j].nodes[i]); k > 0; k--)
                                *to++ = (int32_t) hall->nodes[hall->jobs[j].nodes[i]].index;
}

static bool make(struct hall *hall, const struct rm_snapshot *snapshot, const struct rm_plan *plan) {
        if (!make_lists(hall, snapshot))
                return false;
        rankwise_read(hall->pieces->classes, plan, hall->first_node);
        if (!list_nodes(hall, snapshot) || !list_jobs(hall))
                return false;
        for (int i = 0; i < DRAWS; i++)
                hall->draw[i] = -log((i + 0.5) / DRAWS);
        for (uint32_t j = 0; j < hall->n_jobs; j++)
                list_candidates(hall, j);
        list_by_node(hall);
        return true;
}

static double making_usec(const struct pieces *pieces, const struct rm_snapshot *snapshot) {
        double sizes = 0;

        for (uint32_t t = 0; t < pieces->classes->n_demands; t++)
                sizes += pieces->largest[t];
        return sizes * snapshot->n_nodes * look_usec;
}

struct hall *hall_create(struct pieces *pieces, const struct rm_snapshot *snapshot, int64_t usec, const struct rm_plan *plan) {
        struct hall *hall;

        if (making_usec(pieces, snapshot) > (double) usec)
                return NULL;
        hall = calloc(1, sizeof(*hall));
        if (!hall)
                return NULL;
        hall->pieces = pieces;
        pieces_restart(pieces);
        if (!make(hall, snapshot, plan)) {
                hall_destroy(hall);
                return NULL;
        }
        return hall;
}

void hall_destroy(struct hall *hall) {
        if (!hall)
                return;
        arena_finish(&hall->arena);
        free(hall);
}

/* All as it was in the first plan. */
static void begin(struct hall *hall) {
        const int32_t *node = hall->first_node;

        hall->fee = CLOSED;
        for (uint32_t j = 0; j < hall->n_jobs; j++) {
                put(hall, j, NOWHERE, 0);
                while (hall->jobs[j].n_nodes > 0)
                        put(hall, j, hall->jobs[j].nodes[0], 0);
        }
        for (uint32_t j = 0; j < hall->n_jobs; j++)
                for (uint32_t g = 0; g < hall->jobs[j].ranks; g++, node++) {
                        uint32_t number = hall->number_of[*node] - 1;

                        put(hall, j, number, ranks_at(hall, j, number) + 1);
                }
        save(hall);
}

/* ---- moves ---- */

/* The better ones more often. */
static const struct candidate *draw_candidate(struct hall *hall, const struct candidate *candidates, uint32_t n) {
        return &candidates[least_of(roll(hall, n), roll(hall, n))];
}

static const struct candidate *draw_for(struct hall *hall, uint32_t job) {
        return draw_candidate(hall, hall->candidates + (size_t) job * CANDIDATES, hall->n_candidates[job]);
}

/* So many ranks more for the node, of those that wait, or else from up to a few other nodes. Returns how many were found; *ret_from: the
 * last node they are from. */
static uint32_t fetch(struct hall *hall, uint32_t j, uint32_t node, uint32_t wanted, uint32_t *ret_from) {
        struct hall_job *job = &hall->jobs[j];
        uint32_t left = wanted;

        *ret_from = NOWHERE;
        if (job->waiting > 0) {
                uint32_t n = least_of(left, job->waiting);

                if (change(hall, j, NOWHERE, job->waiting - n))
                        left -= n;
        }
        for (int i = 0; i < 3 && left > 0 && job->n_nodes > 0; i++) {
                uint32_t from = job->nodes[roll(hall, job->n_nodes)], there, n;

                if (from == node)
                        continue;
                there = ranks_at(hall, j, from);
                n = least_of(left, there);
                if (change(hall, j, from, there - n)) {
                        left -= n;
                        *ret_from = from;
                }
        }
        return wanted - left;
}

/* Where ranks go that have to leave the node: to `from`, or where they may as well be, or into the hall. */
static bool send_away(struct hall *hall, uint32_t j, uint32_t ranks, uint32_t node, uint32_t from) {
        uint32_t way = roll(hall, 8);

        if (from != NOWHERE && way < 4 && hall->nodes[from].free_cores > 0) {
                uint32_t n = least_of(ranks, hall->nodes[from].free_cores);

                if (!change(hall, j, from, ranks_at(hall, j, from) + n))
                        return false;
                ranks -= n;
        }
        if (ranks > 0 && way >= 3 && way < 6 && hall->n_candidates[j] > 0) {
                uint32_t to = draw_for(hall, j)->node;

                if (to != node && hall->nodes[to].free_cores >= ranks)
                        return change(hall, j, to, ranks_at(hall, j, to) + ranks);
        }
        return ranks == 0 || change(hall, j, NOWHERE, hall->jobs[j].waiting + ranks);
}

/* Others leave the node until it has so many free cores. */
static bool make_room(struct hall *hall, uint32_t job, uint32_t node, uint32_t cores, uint32_t from) {
        struct hall_node *one = &hall->nodes[node];

        while (one->free_cores < cores) {
                uint32_t need = cores - one->free_cores, n;
                struct place place;

                if (one->n_places == 0 || (one->n_places == 1 && one->places[0].job == job))
                        return false;
                place = one->places[roll(hall, one->n_places)];
                if (place.job == job)
                        continue;
                n = roll(hall, 4) == 0 ? least_of(need, place.ranks) : place.ranks;
                if (!change(hall, place.job, node, place.ranks - n) || !send_away(hall, place.job, n, node, from))
                        return false;
        }
        return true;
}

/* So many ranks of the job are to be on the node. */
static bool move_to(struct hall *hall, uint32_t job, uint32_t node, uint32_t ranks) {
        uint32_t there = ranks_at(hall, job, node), from, n;

        if (roll(hall, 4) == 0)
                ranks = least_of(hall->nodes[node].cores, hall->jobs[job].ranks);
        if (there >= ranks)
                return false;
        n = fetch(hall, job, node, ranks - there, &from);
        return n > 0 && make_room(hall, job, node, n, from) && change(hall, job, node, there + n);
}

/* What waits takes what is free somewhere. */
static bool move_in(struct hall *hall, uint32_t job) {
        uint32_t node = roll(hall, hall->n_nodes), n;

        for (int i = 0; i < TRIES && hall->nodes[node].free_cores == 0; i++)
                node = roll(hall, hall->n_nodes);
        n = least_of(hall->jobs[job].waiting, hall->nodes[node].free_cores);
        return n > 0 && change(hall, job, NOWHERE, hall->jobs[job].waiting - n) &&
               change(hall, job, node, ranks_at(hall, job, node) + n);
}

static bool move_out(struct hall *hall, uint32_t j) {
        struct hall_job *job = &hall->jobs[j];
        uint32_t node, n;

        if (job->n_nodes == 0)
                return false;
        node = job->nodes[roll(hall, job->n_nodes)];
        n = ranks_at(hall, j, node);
        return change(hall, j, node, 0) && change(hall, j, NOWHERE, job->waiting + n);
}

/* What is amiss more often than the rest. False: not a possible move. */
static bool move(struct hall *hall) {
        uint32_t way = roll(hall, 8), job = roll(hall, hall->n_jobs);
        const struct candidate *candidate;

        if (way < 3 && hall->n_waiting > 0)
                job = hall->waiting[roll(hall, hall->n_waiting)];
        if (way >= 6 && hall->n_holes > 0) {
                const struct hall_node *node = &hall->nodes[hall->holes[roll(hall, hall->n_holes)]];

                if (node->n_candidates == 0)
                        return false;
                candidate = draw_candidate(hall, hall->by_node + node->first_candidate, node->n_candidates);
                return move_to(hall, candidate->job, candidate->node, candidate->ranks);
        }
        if (hall->jobs[job].waiting > 0 && roll(hall, 4) == 0)
                return move_in(hall, job);
        if (hall->fee < CLOSED && roll(hall, 16) == 0)
                return move_out(hall, job);
        if (hall->n_candidates[job] == 0)
                return false;
        candidate = draw_for(hall, job);
        return move_to(hall, job, candidate->node, candidate->ranks);
}

/* ---- the walk ---- */

static void list_amiss(struct hall *hall, double scale) {
        hall->n_waiting = hall->n_holes = 0;
        for (uint32_t j = 0; j < hall->n_jobs; j++)
                if (hall->jobs[j].waiting > 0)
                        hall->waiting[hall->n_waiting++] = j;
        for (uint32_t s = 0; s < hall->n_nodes; s++)
                if ((double) hole_of(&hall->nodes[s]) > small_hole * scale)
                        hall->holes[hall->n_holes++] = s;
}

static void look_around(struct hall *hall, double heat) {
        for (int i = 0; i < LOOKS; i++) {
                hall->n_changes = 0;
                hall->gain = 0;
                if (!move(hall) || (hall->gain < 0 && (double) -hall->gain > heat * hall->draw[roll(hall, DRAWS)]))
                        undo(hall);
                else if (hall->n_in_hall == 0 && hall->cost < hall->best_cost)
                        save(hall);
        }
}

static void walk(struct hall *hall, const struct deadline *deadline, int64_t until_usec, int64_t usec) {
        int64_t begin = deadline_left_usec(deadline), end = begin - usec > until_usec ? begin - usec : until_usec, left;
        double scale = (double) hall->pieces->best / hall->n_jobs;

        while ((left = deadline_left_usec(deadline)) > end) {
                double part = (double) (begin - left) / (double) (begin - end);

                hall->fee = part < open_part ? (int64_t) (scale * first_fee * pow(last_fee / first_fee, part / open_part)) : CLOSED;
                list_amiss(hall, scale);
                look_around(hall, scale * hottest * pow(coldest / hottest, part));
        }
}

int64_t hall_walk(struct hall *hall, const struct deadline *deadline, int64_t until_usec, int64_t usec, uint64_t seed) {
        hall->random = ROLL_BEGIN + seed;
        begin(hall);
        walk(hall, deadline, until_usec, usec);
        return hall->best_cost >> hall->pieces->shift;
}

const int32_t *hall_nodes(const struct hall *hall) {
        return hall->best_node;
}
