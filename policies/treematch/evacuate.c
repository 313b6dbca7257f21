#include "policies/treematch/evacuate.h"

#include <stdlib.h>
#include <string.h>

#include "policies/treematch/anneal.h"
#include "policies/treematch/chain.h"
#include "policies/treematch/descend.h"
#include "policies/treematch/layout.h"
#include "policies/treematch/pair.h"

enum {
        ATTEMPTS = 1,
        ROUNDS = 12,
        ANNEAL_WORK = 3000, /* for each vertex that leaves */
        MOST_ANNEAL_WORK = 16 * 1000 * 1000, /* some 100 ms */
        PRICES = 10, /* that are tried to spend the budget */
};

/* A token stands for a vertex, not chosen yet, that leaves a leaf; or for a vertex that has no
 * place yet. */
struct token {
        uint32_t owner; /* the leaf that is left; from n_leaves on vertices that are nowhere */
        uint32_t to;
};

struct leaving {
        struct pool *pool;
        const struct evacuation *evacuation;
        uint32_t *excess;     /* each leaf */
        struct token *token;  /* those of an owner in a row, owners ascending */
        uint32_t n_tokens;
        uint32_t *first_token; /* each owner */
        uint32_t n_owners;
        uint32_t *trial, *best;
        int64_t least;
        struct tree free; /* the tree with the room that those that stay leave */
};

/* ---- how many ---- */

static uint32_t *count_excess(struct pool *pool, const struct evacuation *evacuation, uint32_t *here) {
        const struct tree *tree = evacuation->tree;
        uint32_t *excess = pool_zalloc(pool, tree->n_leaves, sizeof(*excess));

        memset(here, 0, sizeof(*here) * tree->n_leaves);
        for (uint32_t v = 0; v < evacuation->graph->n; v++)
                if (evacuation->home[v] != TREE_NONE)
                        here[evacuation->home[v]]++;
        for (uint32_t x = 0; x < tree->n_leaves; x++) {
                uint32_t space = tree->space[tree->leaf[x]];

                excess[x] = here[x] > space ? here[x] - space : 0;
        }
        return excess;
}

/* How many must move whatever is done. */
static uint32_t least_moves(struct pool *pool, const struct evacuation *evacuation) {
        struct pool_mark mark = pool_mark(pool);
        uint32_t *here = pool_alloc(pool, evacuation->tree->n_leaves, sizeof(*here)), sum = 0;
        const uint32_t *excess = count_excess(pool, evacuation, here);

        for (uint32_t x = 0; x < evacuation->tree->n_leaves; x++)
                sum += excess[x];
        pool_release(pool, mark);
        return sum;
}

static void make_tokens(struct leaving *l) {
        const struct evacuation *evacuation = l->evacuation;
        uint32_t n_leaves = evacuation->tree->n_leaves, *here = pool_alloc(l->pool, n_leaves, sizeof(*here));
        uint32_t *space = pool_alloc(l->pool, n_leaves, sizeof(*space)), nowhere = 0;

        l->excess = count_excess(l->pool, evacuation, here);
        for (uint32_t v = 0; v < evacuation->graph->n; v++)
                nowhere += evacuation->home[v] == TREE_NONE;
        l->n_owners = n_leaves + nowhere;
        l->first_token = pool_alloc(l->pool, l->n_owners + 1u, sizeof(*l->first_token));
        for (uint32_t x = 0; x < n_leaves; x++) {
                uint32_t all = evacuation->tree->space[evacuation->tree->leaf[x]];

                space[x] = here[x] < all ? all - here[x] : 0;
                l->first_token[x] = l->n_tokens;
                l->n_tokens += l->excess[x];
        }
        for (uint32_t i = 0; i <= nowhere; i++)
                l->first_token[n_leaves + i] = l->n_tokens + i;
        l->n_tokens += nowhere;
        l->token = pool_alloc(l->pool, l->n_tokens, sizeof(*l->token));
        for (uint32_t owner = 0; owner < l->n_owners; owner++)
                for (uint32_t i = l->first_token[owner]; i < l->first_token[owner + 1]; i++)
                        l->token[i] = (struct token) { owner, TREE_NONE };
        tree_with_space(l->pool, evacuation->tree, space, &l->free);
}

/* ---- from where to where ---- */

/* Owners, and how much those they own talk. */
static void owner_graph(struct leaving *l, struct graph *ret_graph) {
        const struct evacuation *evacuation = l->evacuation;
        uint32_t *owner = pool_alloc(l->pool, evacuation->graph->n, sizeof(*owner)), next = evacuation->tree->n_leaves;

        for (uint32_t v = 0; v < evacuation->graph->n; v++)
                owner[v] = evacuation->home[v] == TREE_NONE ? next++ : evacuation->home[v];
        graph_contract(l->pool, evacuation->graph, owner, l->n_owners, ret_graph);
}

/* Tokens of one owner hold together as much as the owner talks to the one it talks to most. */
static void token_graph(struct leaving *l, const struct graph *owners, struct graph *ret_graph) {
        uint64_t entries = 0, used = 0;

        for (uint32_t i = 0; i < l->n_tokens; i++) {
                uint32_t owner = l->token[i].owner;

                entries += l->first_token[owner + 1] - l->first_token[owner];
                for (uint64_t e = owners->first[owner]; e < owners->first[owner + 1]; e++)
                        entries += l->first_token[owners->to[e] + 1] - l->first_token[owners->to[e]];
        }
        graph_make(l->pool, l->n_tokens, entries, ret_graph);
        for (uint32_t i = 0; i < l->n_tokens; i++) {
                uint32_t owner = l->token[i].owner;
                int64_t most = 1;

                for (uint64_t e = owners->first[owner]; e < owners->first[owner + 1]; e++) {
                        most = owners->weight[e] > most ? owners->weight[e] : most;
                        for (uint32_t t = l->first_token[owners->to[e]]; t < l->first_token[owners->to[e] + 1]; t++) {
                                ret_graph->to[used] = t;
                                ret_graph->weight[used++] = owners->weight[e];
                        }
                }
                for (uint32_t t = l->first_token[owner]; t < l->first_token[owner + 1]; t++)
                        if (t != i) {
                                ret_graph->to[used] = t;
                                ret_graph->weight[used++] = most;
                        }
                ret_graph->first[i + 1] = used;
        }
}

static void send_tokens(struct leaving *l, const struct graph *tokens) {
        struct pool_mark mark = pool_mark(l->pool);
        uint32_t *all = pool_alloc(l->pool, l->n_tokens, sizeof(*all)), *to = pool_alloc(l->pool, l->n_tokens, sizeof(*to));
        uint32_t *number = pool_alloc(l->pool, l->n_tokens, sizeof(*number));

        for (uint32_t i = 0; i < l->n_tokens; i++) {
                all[i] = i;
                number[i] = UINT32_MAX;
        }
        descend(l->pool, &l->free, 0, tokens, l->evacuation->limits, all, l->n_tokens, number, 0, to);
        for (uint32_t i = 0; i < l->n_tokens; i++)
                l->token[i].to = to[i];
        pool_release(l->pool, mark);
}

/* ---- which vertices ---- */

struct wish {
        uint32_t vertex, token;
        int64_t gain;
};

static int compare_wishes(const void *a, const void *b) {
        const struct wish *x = a, *y = b;

        if (x->gain != y->gain)
                return x->gain > y->gain ? -1 : 1;
        if (x->vertex != y->vertex)
                return x->vertex < y->vertex ? -1 : 1;
        return x->token < y->token ? -1 : x->token > y->token;
}

/* The traffic of v with vertices that send, or are sent, to the same leaf as the token, less its
 * traffic with those at home. */
static int64_t wish_gain(const struct leaving *l, uint32_t v, const struct token *token, const uint8_t *sends) {
        const struct evacuation *evacuation = l->evacuation;
        int64_t gain = 0;

        for (uint64_t e = evacuation->graph->first[v]; e < evacuation->graph->first[v + 1]; e++) {
                uint32_t home = evacuation->home[evacuation->graph->to[e]];

                if (home == TREE_NONE)
                        continue;
                if (home == token->owner)
                        gain -= evacuation->graph->weight[e];
                else if (home == token->to || sends[home])
                        gain += evacuation->graph->weight[e];
        }
        return gain;
}

/* Members of each leaf at the beginning, in a row. */
static uint32_t *list_home(const struct leaving *l, uint32_t *ret_first) {
        const struct evacuation *evacuation = l->evacuation;
        uint32_t *member = pool_alloc(l->pool, evacuation->graph->n, sizeof(*member)), n_leaves = evacuation->tree->n_leaves;

        memset(ret_first, 0, sizeof(*ret_first) * (n_leaves + 2u));
        for (uint32_t v = 0; v < evacuation->graph->n; v++)
                if (evacuation->home[v] != TREE_NONE)
                        ret_first[evacuation->home[v] + 2]++;
        for (uint32_t x = 0; x < n_leaves; x++)
                ret_first[x + 2] += ret_first[x + 1];
        for (uint32_t v = 0; v < evacuation->graph->n; v++)
                if (evacuation->home[v] != TREE_NONE)
                        member[ret_first[evacuation->home[v] + 1]++] = v;
        return member;
}

/* Lists the owners that send to each leaf, in a row for each. */
static uint32_t *list_senders(const struct leaving *l, uint32_t *ret_first) {
        uint32_t n_leaves = l->evacuation->tree->n_leaves, *sender = pool_alloc(l->pool, l->n_tokens, sizeof(*sender));

        memset(ret_first, 0, sizeof(*ret_first) * (n_leaves + 2u));
        for (uint32_t i = 0; i < l->n_tokens; i++)
                ret_first[l->token[i].to + 2]++;
        for (uint32_t x = 0; x < n_leaves; x++)
                ret_first[x + 2] += ret_first[x + 1];
        for (uint32_t i = 0; i < l->n_tokens; i++)
                sender[ret_first[l->token[i].to + 1]++] = l->token[i].owner;
        return sender;
}

struct naming {
        const uint32_t *first_sender, *sender; /* each leaf */
        uint8_t *sends;                        /* each owner: sends to the leaf in hand; all 0 between */
        struct wish *wish;
};

/* Vertices for the tokens of one leaf: the strongest wish first. */
static void name_tokens(struct leaving *l, uint32_t owner, const uint32_t *member, uint32_t n, const struct naming *naming) {
        struct wish *wish = naming->wish;
        uint32_t first = l->first_token[owner], end = l->first_token[owner + 1], left = end - first;
        size_t n_wishes = 0;

        for (uint32_t t = first; t < end; t++) {
                const uint32_t *from = naming->first_sender + l->token[t].to;

                for (uint32_t i = from[0]; i < from[1]; i++)
                        naming->sends[naming->sender[i]] = 1;
                for (uint32_t i = 0; i < n; i++)
                        if (!l->evacuation->fixed[member[i]])
                                wish[n_wishes++] =
                                        (struct wish) { member[i], t, wish_gain(l, member[i], &l->token[t], naming->sends) };
                for (uint32_t i = from[0]; i < from[1]; i++)
                        naming->sends[naming->sender[i]] = 0;
        }
        qsort(wish, n_wishes, sizeof(*wish), compare_wishes);
        for (size_t i = 0; i < n_wishes && left > 0; i++) {
                struct token *token = &l->token[wish[i].token];

                if (token->to == TREE_NONE || l->trial[wish[i].vertex] != owner)
                        continue;
                l->trial[wish[i].vertex] = token->to;
                token->to = TREE_NONE;
                left--;
        }
}

static void name_all(struct leaving *l) {
        const struct evacuation *evacuation = l->evacuation;
        struct pool_mark mark = pool_mark(l->pool);
        uint32_t n_leaves = evacuation->tree->n_leaves, *first = pool_alloc(l->pool, n_leaves + 2u, sizeof(*first));
        const uint32_t *member = list_home(l, first);
        uint32_t *first_sender = pool_alloc(l->pool, n_leaves + 2u, sizeof(*first_sender)), next = l->first_token[n_leaves];
        struct naming naming = { .first_sender = first_sender,
                                 .sender = list_senders(l, first_sender),
                                 .sends = pool_zalloc(l->pool, l->n_owners, 1) };
        uint64_t most = 0;

        for (uint32_t x = 0; x < n_leaves; x++) {
                uint64_t here = (uint64_t) (first[x + 1] - first[x]) * l->excess[x];

                most = here > most ? here : most;
        }
        naming.wish = pool_alloc(l->pool, most, sizeof(*naming.wish));
        for (uint32_t v = 0; v < evacuation->graph->n; v++)
                l->trial[v] = evacuation->home[v] == TREE_NONE ? l->token[next++].to : evacuation->home[v];
        for (uint32_t x = 0; x < n_leaves; x++)
                if (l->excess[x] > 0)
                        name_tokens(l, x, member + first[x], first[x + 1] - first[x], &naming);
        pool_release(l->pool, mark);
}

/* ---- better ---- */

static uint64_t anneal_work(const struct leaving *l) {
        return l->n_tokens < MOST_ANNEAL_WORK / ANNEAL_WORK ? l->n_tokens * ANNEAL_WORK : MOST_ANNEAL_WORK;
}

/* Exchanges of the trial, with every move at a price. */
static int64_t refine(struct leaving *l, const int64_t *price, bool strict) {
        const struct evacuation *evacuation = l->evacuation;
        struct pool_mark mark = pool_mark(l->pool);
        struct layout_ties ties = { evacuation->home, price, evacuation->fixed, strict };
        uint64_t entries = evacuation->graph->first[evacuation->graph->n];
        struct layout layout;

        layout_make(l->pool, evacuation->tree, evacuation->graph, &ties, l->trial, &layout);
        if (strict)
                anneal(l->pool, &layout, evacuation->limits, l->pool->work + anneal_work(l));
        (void) pair_refine(l->pool, &layout, ROUNDS, l->pool->work + 100 * entries);
        if (!strict)
                (void) chain_refine(l->pool, &layout, l->pool->work + 10 * entries);
        pool_release(l->pool, mark);
        return layout_cost(l->pool, evacuation->tree, evacuation->graph, l->trial);
}

static uint32_t count_moves(const struct evacuation *evacuation, const uint32_t *leaf) {
        uint32_t moves = 0;

        for (uint32_t v = 0; v < evacuation->graph->n; v++)
                moves += evacuation->home[v] != TREE_NONE && evacuation->home[v] != leaf[v];
        return moves;
}

/* More than any move can save. */
static int64_t dear(const struct evacuation *evacuation) {
        int64_t most = 0;

        for (uint32_t v = 0; v < evacuation->graph->n; v++) {
                int64_t sum = 0;

                for (uint64_t e = evacuation->graph->first[v]; e < evacuation->graph->first[v + 1]; e++)
                        sum += evacuation->graph->weight[e];
                most = sum > most ? sum : most;
        }
        return 4 * most * (evacuation->tree->max_depth + 1) + 1;
}

static void set_prices(const struct evacuation *evacuation, int64_t least, int64_t *price) {
        for (uint32_t v = 0; v < evacuation->graph->n; v++)
                price[v] = evacuation->price[v] > least ? evacuation->price[v] : least;
}

/* The price between the two as their magnitudes go: halfway in bits, then halfway between the
 * rest. */
static int64_t middle_price(int64_t low, int64_t high) {
        int low_bits = 64 - __builtin_clzll((uint64_t) low | 1), high_bits = 64 - __builtin_clzll((uint64_t) high | 1);

        return high_bits - low_bits > 1 ? (int64_t) 1 << ((low_bits + high_bits) / 2 - 1) : low + (high - low) / 2;
}

/* Finds, with the budget, the lowest price of a move at which it is not exceeded, between nothing
 * and `high`, at which it is not. */
static void spend_budget(struct leaving *l, int64_t high, int64_t *price) {
        const struct evacuation *evacuation = l->evacuation;
        uint32_t *start = pool_alloc(l->pool, evacuation->graph->n, sizeof(*start));
        uint32_t most = least_moves(l->pool, evacuation) + evacuation->budget;
        int64_t low = -1;

        memcpy(start, l->best, sizeof(*start) * evacuation->graph->n);
        for (uint32_t i = 0; i < PRICES && high - low > 1 && !limits_over(evacuation->limits); i++) {
                int64_t middle = i == 0 ? 0 : middle_price(low, high), cost;

                set_prices(evacuation, middle, price);
                memcpy(l->trial, start, sizeof(*start) * evacuation->graph->n);
                cost = refine(l, price, false);
                if (count_moves(evacuation, l->trial) > most) {
                        low = middle;
                        continue;
                }
                high = middle;
                if (cost < l->least) {
                        l->least = cost;
                        memcpy(l->best, l->trial, sizeof(*l->best) * evacuation->graph->n);
                }
        }
}

uint32_t evacuate_solve(struct pool *pool, const struct evacuation *evacuation, uint32_t *ret_leaf) {
        struct pool_mark mark = pool_mark(pool);
        struct leaving l = { .pool = pool,
                             .evacuation = evacuation,
                             .trial = pool_alloc(pool, evacuation->graph->n, sizeof(*l.trial)),
                             .best = ret_leaf,
                             .least = INT64_MAX };
        int64_t *price = pool_alloc(pool, evacuation->graph->n, sizeof(*price)), high = dear(evacuation);
        struct graph owners, tokens;

        make_tokens(&l);
        owner_graph(&l, &owners);
        token_graph(&l, &owners, &tokens);
        for (uint32_t i = 0; i < (l.n_tokens > 0 ? ATTEMPTS : 1); i++) {
                int64_t cost;

                if (l.n_tokens > 0)
                        send_tokens(&l, &tokens);
                name_all(&l);
                set_prices(evacuation, high, price);
                cost = refine(&l, price, true);
                if (cost < l.least) {
                        l.least = cost;
                        memcpy(l.best, l.trial, sizeof(*l.best) * evacuation->graph->n);
                }
                if (limits_over(evacuation->limits))
                        break;
        }
        if (evacuation->budget > 0)
                spend_budget(&l, high, price);
        pool_release(pool, mark);
        return count_moves(evacuation, ret_leaf) - least_moves(pool, evacuation);
}
