#include "policies/distrib/ejection.h"

#include <stdlib.h>

#include "policies/distrib/rankwise.h"
#include "policies/distrib/roll.h"
#include "policies/distrib/roster.h"

enum {
        MOST_NODES = 6,   /* of a chain */
        MOST_EJECTED = 10, /* pieces, at once */
        MOST_PLACED = 64, /* pieces, by a chain */
        MOST_TAKEN = 2,   /* pieces of others, by a node */
        MOST_TRIES = 20000, /* from a node that loses */
        LOOKS = 20,       /* at nodes and pieces, for each try */
        CLOCK_LOOKS = 4096, /* between two looks at the clock */
};

#define NONE UINT32_MAX

/* Ranks of a job that are to be placed. */
struct eject_loose {
        uint32_t job, ranks;
};

/* Ranks of a job on a node. */
struct eject_piece {
        uint32_t job, ranks, node;
        uint32_t next, before; /* of the same size */
};

struct eject_node {
        uint32_t cores, n_pieces;
        int64_t penalty;
        const int32_t *worth; /* of its cores */
        int64_t loss;         /* what it is worth, less what it gains; 0 where it takes no part */
        uint32_t *pieces;
        bool is_open; /* in the chain */
};

/* A chain as far as it goes. */
struct chain {
        int64_t budget; /* what was lost before, less what is lost now */
        uint32_t n_nodes, n_empty, n_ejected, n_placed;
        uint32_t empty[MOST_NODES];               /* nodes to be filled */
        struct eject_loose ejected[MOST_EJECTED]; /* one of each job where that is possible */
};

struct ejection {
        struct pieces *prices;
        uint32_t n_nodes, n_jobs;
        struct eject_node *nodes;
        struct roster roster;
        struct eject_piece *pieces;
        uint32_t n_pieces;
        uint32_t *unused, n_unused; /* of the pieces */
        uint32_t *by_size;  /* each number of ranks: a piece, or NONE */
        int32_t *node_of;   /* each rank of each job */
        uint32_t *next_rank; /* each job, in node_of */
        uint32_t *order;    /* nodes that lose, the most first */
        /* the chain in hand */
        uint32_t most_nodes; /* it may have */
        uint64_t tries, looks; /* left */
        uint32_t nodes_of_chain[MOST_NODES];
        struct eject_piece placed[MOST_PLACED];
        struct chain best;
        const struct deadline *deadline;
        int64_t until_usec;
        uint64_t random;
        struct arena arena;
};

static int64_t unit(const struct ejection *ejection) {
        return (int64_t) 1 << ejection->prices->shift;
}

static int64_t price(const struct ejection *ejection, uint32_t job, uint32_t ranks) {
        return ejection->prices->best_price[ejection->prices->first[job] + ranks];
}

/* What a node gains by a piece. */
static int64_t value(const struct ejection *ejection, const struct eject_node *node, uint32_t job, uint32_t ranks) {
        const struct pieces *prices = ejection->prices;

        return price(ejection, job, ranks) -
               prices->classes->demands[job].priority * (prices->weight + node->penalty * ranks) * unit(ejection);
}

/* ---- what is where ---- */

static void add_piece(struct ejection *ejection, uint32_t s, uint32_t job, uint32_t ranks) {
        uint32_t i = ejection->n_unused > 0 ? ejection->unused[--ejection->n_unused] : ejection->n_pieces++;
        struct eject_node *node = &ejection->nodes[s];
        struct eject_piece *piece = &ejection->pieces[i];

        *piece = (struct eject_piece) { .job = job, .ranks = ranks, .node = s, .next = ejection->by_size[ranks], .before = NONE };
        if (piece->next != NONE)
                ejection->pieces[piece->next].before = i;
        ejection->by_size[ranks] = i;
        node->pieces[node->n_pieces++] = i;
        node->loss -= value(ejection, node, job, ranks);
}

static void clear_node(struct ejection *ejection, uint32_t s) {
        struct eject_node *node = &ejection->nodes[s];

        for (uint32_t k = 0; k < node->n_pieces; k++) {
                const struct eject_piece *piece = &ejection->pieces[node->pieces[k]];

                if (piece->next != NONE)
                        ejection->pieces[piece->next].before = piece->before;
                if (piece->before != NONE)
                        ejection->pieces[piece->before].next = piece->next;
                else
                        ejection->by_size[piece->ranks] = piece->next;
                ejection->unused[ejection->n_unused++] = node->pieces[k];
        }
        node->n_pieces = 0;
        node->loss = node->worth ? node->worth[node->cores] : 0;
}

static void read_plan(struct ejection *ejection, const struct rm_plan *plan) {
        const struct relaxation *classes = ejection->prices->classes;
        int32_t *nodes = ejection->node_of;

        for (uint32_t s = 0; s < ejection->n_nodes; s++)
                clear_node(ejection, s);
        rankwise_read(classes, plan, nodes);
        for (uint32_t t = 0; t < ejection->n_jobs; nodes += classes->demands[t++].ranks) {
                uint32_t ranks = classes->demands[t].ranks;

                rankwise_sort(nodes, ranks);
                for (uint32_t i = 0, x; i < ranks; i += x) {
                        x = rankwise_piece(nodes + i, ranks - i);
                        add_piece(ejection, (uint32_t) nodes[i], t, x);
                }
        }
}

static void write_plan(struct ejection *ejection) {
        for (uint32_t t = 0, first = 0; t < ejection->n_jobs; first += ejection->prices->classes->demands[t++].ranks)
                ejection->next_rank[t] = first;
        for (uint32_t s = 0; s < ejection->n_nodes; s++)
                for (uint32_t k = 0; k < ejection->nodes[s].n_pieces; k++) {
                        const struct eject_piece *piece = &ejection->pieces[ejection->nodes[s].pieces[k]];

                        for (uint32_t i = 0; i < piece->ranks; i++)
                                ejection->node_of[ejection->next_rank[piece->job]++] = (int32_t) s;
                }
}

/* ---- making ---- */

static void list_nodes(struct ejection *ejection) {
        const struct relaxation *classes = ejection->prices->classes;

        for (uint32_t s = 0; s < ejection->n_nodes; s++) {
                struct eject_node *node = &ejection->nodes[s];
                uint32_t class = ejection->roster.class_of[s];

                if (class == classes->n_classes)
                        continue;
                node->cores = classes->classes[class].cores;
                node->penalty = classes->classes[class].penalty;
                node->worth = pieces_best_worth(ejection->prices, node->penalty);
                node->pieces = arena_alloc(&ejection->arena, node->cores, sizeof(*node->pieces));
        }
}

static bool make(struct ejection *ejection, const struct rm_snapshot *snapshot) {
        const struct relaxation *classes = ejection->prices->classes;
        struct arena *arena = &ejection->arena;
        uint32_t n_ranks = rankwise_ranks(classes);

        ejection->nodes = arena_alloc(arena, ejection->n_nodes, sizeof(*ejection->nodes));
        ejection->pieces = arena_alloc(arena, n_ranks, sizeof(*ejection->pieces));
        ejection->unused = arena_alloc(arena, n_ranks, sizeof(*ejection->unused));
        ejection->by_size = arena_alloc(arena, ejection->prices->most_cores + 1ul, sizeof(*ejection->by_size));
        ejection->node_of = arena_alloc(arena, n_ranks, sizeof(*ejection->node_of));
        ejection->next_rank = arena_alloc(arena, ejection->n_jobs, sizeof(*ejection->next_rank));
        ejection->order = arena_alloc(arena, ejection->n_nodes, sizeof(*ejection->order));
        if (arena->failed || !roster_init(&ejection->roster, arena, classes, snapshot))
                return false;
        for (uint32_t x = 0; x <= ejection->prices->most_cores; x++)
                ejection->by_size[x] = NONE;
        list_nodes(ejection);
        return !arena->failed;
}

struct ejection *ejection_create(struct pieces *pieces, const struct rm_snapshot *snapshot) {
        struct ejection *ejection = calloc(1, sizeof(*ejection));

        if (!ejection)
                return NULL;
        ejection->prices = pieces;
        ejection->n_nodes = snapshot->n_nodes;
        ejection->n_jobs = pieces->classes->n_demands;
        ejection->random = ROLL_BEGIN;
        if (!make(ejection, snapshot)) {
                ejection_destroy(ejection);
                return NULL;
        }
        return ejection;
}

void ejection_destroy(struct ejection *ejection) {
        if (!ejection)
                return;
        arena_finish(&ejection->arena);
        free(ejection);
}

/* ---- a chain ---- */

static bool fill_next(struct ejection *ejection, const struct chain *chain);

/* A look at a node or a piece. False: there have been enough. */
static bool may_look(struct ejection *ejection) {
        if (ejection->looks == 0 || ejection->tries == 0)
                return false;
        ejection->looks--;
        if (ejection->looks % CLOCK_LOOKS == 0 && deadline_left_usec(ejection->deadline) <= ejection->until_usec)
                ejection->looks = 0;
        return true;
}

static bool try_one(struct ejection *ejection) {
        if (ejection->tries == 0)
                return false;
        ejection->tries--;
        return true;
}

/* A piece is to be placed again; as one with what else is of its job, where nodes are large enough. False: too many are. */
static bool eject(const struct ejection *ejection, struct chain *chain, const struct eject_piece *piece) {
        uint32_t i = 0;

        while (i < chain->n_ejected && chain->ejected[i].job != piece->job)
                i++;
        if (i < chain->n_ejected && chain->ejected[i].ranks + piece->ranks <= ejection->prices->largest[piece->job]) {
                uint32_t ranks = chain->ejected[i].ranks;

                chain->budget += price(ejection, piece->job, ranks) + price(ejection, piece->job, piece->ranks) -
                                 price(ejection, piece->job, ranks + piece->ranks);
                chain->ejected[i].ranks += piece->ranks;
                return true;
        }
        if (chain->n_ejected == MOST_EJECTED)
                return false;
        chain->ejected[chain->n_ejected++] = (struct eject_loose) { piece->job, piece->ranks };
        return true;
}

static void forget_ejected(struct chain *chain, uint32_t i) {
        chain->ejected[i] = chain->ejected[--chain->n_ejected];
}

/* The node is one of the chain, and all it holds is ejected. False: it can't be, and is not. */
static bool open_node(struct ejection *ejection, struct chain *chain, uint32_t s) {
        struct eject_node *node = &ejection->nodes[s];

        if (chain->n_nodes == ejection->most_nodes)
                return false;
        for (uint32_t k = 0; k < node->n_pieces; k++)
                if (!eject(ejection, chain, &ejection->pieces[node->pieces[k]]))
                        return false;
        chain->budget += node->loss;
        ejection->nodes_of_chain[chain->n_nodes++] = s;
        node->is_open = true;
        return true;
}

static void place(struct ejection *ejection, struct chain *chain, uint32_t s, uint32_t job, uint32_t ranks) {
        ejection->placed[chain->n_placed++] = (struct eject_piece) { .job = job, .ranks = ranks, .node = s };
}

/* Has the node in hand, which is the last one that anything was placed on, a piece of the job? */
static bool has_job(const struct ejection *ejection, const struct chain *chain, uint32_t s, uint32_t job) {
        for (uint32_t i = chain->n_placed; i > 0; i--) {
                const struct eject_piece *piece = &ejection->placed[i - 1];

                if (piece->node != s)
                        break;
                if (piece->job == job)
                        return true;
        }
        return false;
}

/* Nothing else is for the node in hand, which loses so much. */
static bool close_node(struct ejection *ejection, const struct chain *chain, int64_t loss) {
        struct chain next;

        if (loss >= chain->budget)
                return false;
        next = *chain;
        next.budget -= loss;
        return fill_next(ejection, &next);
}

static bool take(struct ejection *ejection, const struct chain *chain, uint32_t s, uint32_t left, int64_t loss, uint32_t n_taken);

/* The piece of another node is for this one, which has `left` cores then and loses so much; the other one is to be filled. */
static bool take_piece(struct ejection *ejection, const struct chain *chain, uint32_t s, const struct eject_piece *piece,
                       uint32_t left, int64_t loss, uint32_t n_taken) {
        struct chain next = *chain;
        uint32_t i = 0;
        bool done = false;

        if (next.n_empty == MOST_NODES || !open_node(ejection, &next, piece->node))
                return false;
        next.empty[next.n_empty++] = piece->node;
        while (i < next.n_ejected && next.ejected[i].job != piece->job)
                i++;
        if (i < next.n_ejected && next.ejected[i].ranks == piece->ranks) { /* else it is one with others of the job */
                forget_ejected(&next, i);
                place(ejection, &next, s, piece->job, piece->ranks);
                done = close_node(ejection, &next, loss) || (n_taken < MOST_TAKEN && take(ejection, &next, s, left, loss, n_taken));
        }
        ejection->nodes[piece->node].is_open = false;
        return done;
}

/* Of what others hold, for the node in hand. */
static bool take(struct ejection *ejection, const struct chain *chain, uint32_t s, uint32_t left, int64_t loss, uint32_t n_taken) {
        const struct eject_node *node = &ejection->nodes[s];
        uint32_t begin;

        if (left == 0 || chain->n_nodes == ejection->most_nodes || chain->n_placed == MOST_PLACED)
                return false;
        begin = roll_below(&ejection->random, left);
        for (uint32_t k = 0; k < left; k++) {
                uint32_t x = (begin + k) % left + 1;

                for (uint32_t i = ejection->by_size[x]; i != NONE && may_look(ejection); i = ejection->pieces[i].next) {
                        const struct eject_piece *piece = &ejection->pieces[i];
                        const struct eject_node *other = &ejection->nodes[piece->node];
                        int64_t after;

                        if (other->is_open || has_job(ejection, chain, s, piece->job))
                                continue;
                        after = loss - value(ejection, node, piece->job, x);
                        if (after - node->worth[left - x] >= chain->budget + other->loss)
                                continue;
                        if (try_one(ejection) && take_piece(ejection, chain, s, piece, left - x, after, n_taken + 1))
                                return true;
                }
        }
        return false;
}

static bool choose(struct ejection *ejection, const struct chain *chain, uint32_t s, uint32_t left, int64_t loss, uint32_t from);

/* An ejected piece is for the node in hand, or as much of it as there is room for: then that was all. */
static bool choose_piece(struct ejection *ejection, const struct chain *chain, uint32_t s, uint32_t left, int64_t loss,
                         uint32_t i) {
        const struct eject_node *node = &ejection->nodes[s];
        uint32_t job = chain->ejected[i].job, ranks = chain->ejected[i].ranks, x = ranks < left ? ranks : left;
        struct chain next;

        loss -= value(ejection, node, job, x);
        if (x < ranks)
                loss += price(ejection, job, x) + price(ejection, job, ranks - x) - price(ejection, job, ranks);
        if (loss - node->worth[left - x] >= chain->budget)
                return false;
        next = *chain;
        place(ejection, &next, s, job, x);
        if (x < ranks) {
                next.ejected[i].ranks -= x;
                return close_node(ejection, &next, loss);
        }
        forget_ejected(&next, i);
        return choose(ejection, &next, s, left - x, loss, i); /* the last one is in its place, of which nothing was decided */
}

/* Which of the ejected pieces, from the given one on, are for the node in hand, of which `left` cores are left. */
static bool choose(struct ejection *ejection, const struct chain *chain, uint32_t s, uint32_t left, int64_t loss, uint32_t from) {
        const struct eject_node *node = &ejection->nodes[s];

        if (loss - node->worth[left] >= chain->budget || chain->n_placed == MOST_PLACED || !try_one(ejection))
                return false;
        for (uint32_t i = from; left > 0 && i < chain->n_ejected; i++)
                if (!has_job(ejection, chain, s, chain->ejected[i].job) && choose_piece(ejection, chain, s, left, loss, i))
                        return true;
        return close_node(ejection, chain, loss) || take(ejection, chain, s, left, loss, 0);
}

/* The piece is for a node that is not in the chain yet. */
static bool displace(struct ejection *ejection, const struct chain *chain, uint32_t s, uint32_t i) {
        uint32_t job = chain->ejected[i].job, ranks = chain->ejected[i].ranks;
        const struct eject_node *node = &ejection->nodes[s];
        int64_t loss = node->worth[node->cores] - value(ejection, node, job, ranks);
        struct chain next = *chain;
        bool done;

        if (loss - node->worth[node->cores - ranks] >= chain->budget + node->loss || !try_one(ejection))
                return false;
        forget_ejected(&next, i);
        if (!open_node(ejection, &next, s))
                return false;
        place(ejection, &next, s, job, ranks);
        done = choose(ejection, &next, s, node->cores - ranks, loss, 0);
        ejection->nodes[s].is_open = false;
        return done;
}

/* All nodes of the chain are filled, and something is left over: the largest piece goes somewhere else. */
static bool displace_largest(struct ejection *ejection, const struct chain *chain) {
        uint32_t n = ejection->roster.first[ejection->prices->classes->n_classes], begin = roll_below(&ejection->random, n);
        uint32_t largest = 0, empty_class = NONE;

        for (uint32_t i = 1; i < chain->n_ejected; i++)
                if (chain->ejected[i].ranks > chain->ejected[largest].ranks)
                        largest = i;
        for (uint32_t k = 0; k < n && may_look(ejection); k++) {
                uint32_t s = ejection->roster.nodes[(begin + k) % n];
                const struct eject_node *node = &ejection->nodes[s];

                if (node->is_open || node->cores < chain->ejected[largest].ranks)
                        continue;
                if (node->n_pieces == 0) { /* one of them is as good as another */
                        if (ejection->roster.class_of[s] == empty_class)
                                continue;
                        empty_class = ejection->roster.class_of[s];
                }
                if (displace(ejection, chain, s, largest))
                        return true;
        }
        return false;
}

/* True: the chain has come to an end, and is in `best`. */
static bool fill_next(struct ejection *ejection, const struct chain *chain) {
        const struct eject_node *node;
        struct chain next;
        uint32_t s;

        if (chain->n_empty == 0 && chain->n_ejected == 0) {
                ejection->best = *chain;
                return true;
        }
        if (chain->n_empty == 0)
                return chain->n_nodes < ejection->most_nodes && chain->n_placed < MOST_PLACED && displace_largest(ejection, chain);
        next = *chain;
        s = next.empty[--next.n_empty];
        node = &ejection->nodes[s];
        return choose(ejection, &next, s, node->cores, node->worth[node->cores], 0);
}

/* ---- chains ---- */

static void apply(struct ejection *ejection) {
        const struct chain *chain = &ejection->best;

        for (uint32_t i = 0; i < chain->n_nodes; i++)
                clear_node(ejection, ejection->nodes_of_chain[i]);
        for (uint32_t i = 0; i < chain->n_placed; i++)
                add_piece(ejection, ejection->placed[i].node, ejection->placed[i].job, ejection->placed[i].ranks);
}

/* A chain that begins at the node. Returns what is gained by it, scaled. */
static int64_t try_node(struct ejection *ejection, uint32_t s) {
        struct chain chain = { 0 };
        bool done = false;

        ejection->tries = MOST_TRIES;
        ejection->looks = (uint64_t) LOOKS * MOST_TRIES;
        if (open_node(ejection, &chain, s)) {
                chain.empty[chain.n_empty++] = s;
                done = fill_next(ejection, &chain);
                ejection->nodes[s].is_open = false;
        }
        if (done)
                apply(ejection);
        return done ? ejection->best.budget : 0;
}

static int compare_losses(const void *a, const void *b, void *context) {
        const struct eject_node *nodes = context, *x = &nodes[*(const uint32_t *) a], *y = &nodes[*(const uint32_t *) b];

        if (x->loss != y->loss)
                return x->loss > y->loss ? -1 : 1;
        return x < y ? -1 : x > y;
}

/* More than the least that plans can differ by. */
static bool loses(const struct ejection *ejection, uint32_t s) {
        return ejection->nodes[s].loss > unit(ejection);
}

static uint32_t list_losers(struct ejection *ejection) {
        uint32_t n = 0;

        for (uint32_t s = 0; s < ejection->n_nodes; s++)
                if (loses(ejection, s))
                        ejection->order[n++] = s;
        qsort_r(ejection->order, n, sizeof(*ejection->order), compare_losses, ejection->nodes);
        return n;
}

/* From all nodes that lose. Returns what is gained. */
static int64_t try_all(struct ejection *ejection) {
        uint32_t n = list_losers(ejection);
        int64_t gain = 0;

        for (uint32_t i = 0; i < n && deadline_left_usec(ejection->deadline) > ejection->until_usec; i++)
                if (loses(ejection, ejection->order[i]))
                        gain += try_node(ejection, ejection->order[i]);
        return gain;
}

const int32_t *ejection_run(struct ejection *ejection, const struct rm_plan *plan, const struct deadline *deadline,
                            int64_t until_usec, int64_t *ret_gain) {
        int64_t gain = 0;

        ejection->deadline = deadline;
        ejection->until_usec = until_usec;
        read_plan(ejection, plan);
        /* short chains first, and again after a gain */
        for (ejection->most_nodes = 2; ejection->most_nodes <= MOST_NODES; ejection->most_nodes++) {
                int64_t more = try_all(ejection);

                if (more > 0)
                        ejection->most_nodes = 1;
                gain += more;
                if (deadline_left_usec(deadline) <= until_usec)
                        break;
        }
        *ret_gain = gain >> ejection->prices->shift; /* exact: prices cancel out */
        if (*ret_gain <= 0)
                return NULL;
        write_plan(ejection);
        return ejection->node_of;
}
