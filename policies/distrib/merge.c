#include "policies/distrib/merge.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/distrib/rankwise.h"
#include "policies/distrib/roster.h"

#define NOBODY UINT32_MAX

enum { WORTH_IT = 4 }; /* one part in so many of the time is worth another search */

static const double close_enough = 1e-4; /* of the cost, is as good as the cheapest */
/* Of what there may be to gain: what costs more in the relaxation than that is left out. More is looked at where all else is known. */
static const double first_loss = 0.3, least_loss = 0.1, all_loss = 1, wider = 1.7;
static const double tolerance = 1e-6;

/* Ranks of a job on a node. */
struct held {
        uint32_t node, price;
};

/* A piece that a job is cut into. */
struct wanted {
        uint32_t demand, next; /* of the same price; NOBODY: none */
};

struct merge {
        const struct pieces *pieces;
        struct ledger ledger;
        uint32_t n_nodes, n_ranks;
        struct roster roster;
        uint32_t *taken; /* each class: nodes in use */
        uint32_t *first_rank; /* each demand, in node_of; one more */
        uint32_t *placed; /* each demand: ranks */
        int32_t *node_of, *plan; /* each rank of each demand; in the plan that was returned */
        struct wanted *wanted; /* pieces that jobs are cut into */
        uint32_t *first_wanted; /* each price; NOBODY: none */
        int32_t *sorted; /* of one demand */
        struct held *held;
        uint32_t *prices; /* of a job or a node */
        uint32_t *entries, *best; /* of a plan, one for each job and each node; of the best one */
        uint32_t n_best;
        int64_t best_cost;
        double *in_best; /* each entry: how often it is in the best plan, */
        double *times; /* and in the one that is made */
        double loss; /* that is looked at */
        struct arena arena;
};

/* The part of the program that is not settled. */
struct part {
        glp_prob *lp;
        uint32_t *entry_of; /* each column */
        double *best; /* each column: how often it is in the best plan known */
        double *settled; /* each row of the whole: what is in it already */
        double cost; /* of what is settled */
        bool has_begun;
        struct arena arena;
};

struct ledger *merge_ledger(struct merge *merge) {
        return &merge->ledger;
}

/* ---- making ---- */

static bool make_lists(struct merge *merge) {
        const struct relaxation *classes = merge->pieces->classes;
        struct arena *arena = &merge->arena;

        merge->taken = arena_alloc(arena, classes->n_classes, sizeof(*merge->taken));
        merge->first_rank = arena_alloc(arena, classes->n_demands + 1ul, sizeof(*merge->first_rank));
        merge->placed = arena_alloc(arena, classes->n_demands, sizeof(*merge->placed));
        merge->node_of = arena_alloc(arena, merge->n_ranks, sizeof(*merge->node_of));
        merge->plan = arena_alloc(arena, merge->n_ranks, sizeof(*merge->plan));
        merge->wanted = arena_alloc(arena, merge->n_ranks, sizeof(*merge->wanted));
        merge->first_wanted = arena_alloc(arena, merge->pieces->n_prices, sizeof(*merge->first_wanted));
        merge->sorted = arena_alloc(arena, merge->pieces->most_ranks, sizeof(*merge->sorted));
        merge->held = arena_alloc(arena, merge->n_ranks, sizeof(*merge->held));
        merge->prices = arena_alloc(arena, merge->n_ranks, sizeof(*merge->prices));
        merge->entries = arena_alloc(arena, (size_t) classes->n_demands + merge->n_nodes, sizeof(*merge->entries));
        merge->best = arena_alloc(arena, (size_t) classes->n_demands + merge->n_nodes, sizeof(*merge->best));
        merge->in_best = arena_alloc(arena, LEDGER_MAX_ENTRIES, sizeof(*merge->in_best));
        merge->times = arena_alloc(arena, LEDGER_MAX_ENTRIES, sizeof(*merge->times));
        return !arena->failed;
}

struct merge *merge_create(const struct pieces *pieces, const struct rm_snapshot *snapshot) {
        const struct relaxation *classes = pieces->classes;
        struct merge *merge = calloc(1, sizeof(*merge));

        if (!merge)
                return NULL;
        merge->pieces = pieces;
        merge->n_nodes = snapshot->n_nodes;
        merge->best_cost = INT64_MAX;
        merge->loss = first_loss;
        merge->n_ranks = rankwise_ranks(classes);
        if (!make_lists(merge) || !roster_init(&merge->roster, &merge->arena, classes, snapshot) ||
            !ledger_init(&merge->ledger, pieces)) {
                merge_destroy(merge);
                return NULL;
        }
        for (uint32_t t = 0; t < classes->n_demands; t++)
                merge->first_rank[t + 1] = merge->first_rank[t] + classes->demands[t].ranks;
        return merge;
}

void merge_destroy(struct merge *merge) {
        if (!merge)
                return;
        ledger_finish(&merge->ledger);
        arena_finish(&merge->arena);
        free(merge);
}

/* ---- plans ---- */

static int compare_held(const void *a, const void *b) {
        const struct held *x = a, *y = b;

        return x->node < y->node ? -1 : x->node > y->node;
}

/* How jobs are cut, into `entries`, and what they hold where. Returns how much that is. */
static uint32_t add_jobs(struct merge *merge, const int32_t *nodes) {
        uint32_t n_held = 0;

        for (uint32_t t = 0; t < merge->pieces->classes->n_demands; t++) {
                uint32_t ranks = merge->pieces->classes->demands[t].ranks, n = 0;

                memcpy(merge->sorted, nodes + merge->first_rank[t], sizeof(*merge->sorted) * ranks);
                rankwise_sort(merge->sorted, ranks);
                for (uint32_t i = 0, x; i < ranks; i += x) {
                        uint32_t price;

                        x = rankwise_piece(merge->sorted + i, ranks - i);
                        price = (uint32_t) merge->pieces->first[t] + x;
                        merge->prices[n++] = price;
                        merge->held[n_held++] = (struct held) { (uint32_t) merge->sorted[i], price };
                }
                merge->entries[t] = ledger_buy(&merge->ledger, t, merge->prices, n);
        }
        return n_held;
}

/* What nodes hold, into `entries`. Returns how many there are with those of jobs. */
static uint32_t add_nodes(struct merge *merge, uint32_t n_held) {
        uint32_t n = merge->pieces->classes->n_demands;

        qsort(merge->held, n_held, sizeof(*merge->held), compare_held);
        for (uint32_t i = 0, k; i < n_held; i += k) {
                uint32_t class = merge->roster.class_of[merge->held[i].node];

                for (k = 0; i + k < n_held && merge->held[i + k].node == merge->held[i].node; k++)
                        merge->prices[k] = merge->held[i + k].price;
                merge->entries[n++] = class == merge->pieces->classes->n_classes
                                              ? LEDGER_FULL
                                              : ledger_sell(&merge->ledger, class, merge->prices, k);
        }
        return n;
}

void merge_add(struct merge *merge, const int32_t *nodes, int64_t cost) {
        uint32_t n = add_nodes(merge, add_jobs(merge, nodes));

        if (cost >= merge->best_cost)
                return;
        for (uint32_t i = 0; i < n; i++)
                if (merge->entries[i] == LEDGER_FULL)
                        return;
        memcpy(merge->best, merge->entries, sizeof(*merge->best) * n);
        merge->n_best = n;
        merge->best_cost = cost;
}

/* How jobs are cut: for each price whose pieces these are. False: not each job is, or one is twice. */
static bool list_wanted(struct merge *merge) {
        const struct relaxation *classes = merge->pieces->classes;
        const struct ledger *ledger = &merge->ledger;
        uint32_t n_wanted = 0, n_cut = 0;

        memset(merge->first_wanted, 0xff, sizeof(*merge->first_wanted) * merge->pieces->n_prices);
        for (uint32_t i = 0; i < ledger->n_entries; i++) {
                const struct entry *entry = &ledger->entries[i];

                if (entry->is_sale || merge->times[i] < 0.5)
                        continue;
                if (merge->times[i] > 1.5 || ++n_cut > classes->n_demands || entry->n > merge->n_ranks - n_wanted)
                        return false;
                for (uint32_t k = 0; k < entry->n; k++) {
                        merge->wanted[n_wanted] = (struct wanted) { entry->owner, merge->first_wanted[entry->prices[k]] };
                        merge->first_wanted[entry->prices[k]] = n_wanted++;
                }
        }
        return n_cut == classes->n_demands;
}

/* Another node of the class holds these, each for any job that wants it. False: there is no such node, or no such job. */
static bool fill_node(struct merge *merge, const struct entry *sale) {
        uint32_t at = merge->roster.first[sale->owner] + merge->taken[sale->owner]++;

        if (at >= merge->roster.first[sale->owner + 1])
                return false;
        for (uint32_t i = 0; i < sale->n; i++) {
                uint32_t price = sale->prices[i], wanted = merge->first_wanted[price], t, x;

                if (wanted == NOBODY)
                        return false;
                merge->first_wanted[price] = merge->wanted[wanted].next;
                t = merge->wanted[wanted].demand;
                x = price - (uint32_t) merge->pieces->first[t];
                while (x-- > 0)
                        merge->node_of[merge->first_rank[t] + merge->placed[t]++] = (int32_t) merge->roster.nodes[at];
        }
        return true;
}

/* The plan that `times` say. False: it is none. */
static bool write_plan(struct merge *merge) {
        const struct relaxation *classes = merge->pieces->classes;
        bool is_whole = true;

        if (!list_wanted(merge))
                return false;
        memset(merge->taken, 0, sizeof(*merge->taken) * classes->n_classes);
        memset(merge->placed, 0, sizeof(*merge->placed) * classes->n_demands);
        for (uint32_t i = 0; i < merge->ledger.n_entries; i++)
                for (double left = merge->times[i]; merge->ledger.entries[i].is_sale && left > 0.5; left--)
                        if (!fill_node(merge, &merge->ledger.entries[i]))
                                return false;
        for (uint32_t t = 0; t < classes->n_demands; t++)
                is_whole &= merge->placed[t] == classes->demands[t].ranks;
        return is_whole;
}

/* Less than the program says where a node has got two pieces of a job. */
static int64_t cost_of_plan(struct merge *merge) {
        const struct relaxation *classes = merge->pieces->classes;
        int64_t cost = 0;

        for (uint32_t t = 0; t < classes->n_demands; t++) {
                int32_t *nodes = merge->node_of + merge->first_rank[t];
                uint32_t ranks = classes->demands[t].ranks;

                rankwise_sort(nodes, ranks);
                for (uint32_t i = 0, x; i < ranks; i += x) {
                        const struct node_class *class = &classes->classes[merge->roster.class_of[nodes[i]]];

                        x = rankwise_piece(nodes + i, ranks - i);
                        cost += classes->demands[t].priority * (class->penalty * x + merge->pieces->weight);
                }
        }
        return cost;
}

/* ---- the program ---- */

/* What nobody sells can't be bought, and the other way round. */
static bool is_possible(const struct merge *merge, const struct entry *entry) {
        for (uint32_t i = 0; i < entry->n; i++)
                if (merge->ledger.row_of[entry->prices[i]] == 0)
                        return false;
        return true;
}

static int milliseconds(int64_t usec) {
        return usec / 1000 < INT_MAX ? (int) (usec / 1000) + 1 : INT_MAX;
}

static bool relax(glp_prob *lp, int64_t usec) {
        glp_smcp options;

        glp_init_smcp(&options);
        options.msg_lev = GLP_MSG_OFF;
        options.tm_lim = milliseconds(usec);
        return usec > 0 && glp_simplex(lp, &options) == 0 && glp_get_status(lp) == GLP_OPT;
}

static bool relax_all(struct merge *merge, int64_t usec) {
        for (uint32_t i = 0; i < merge->ledger.n_entries; i++) {
                const struct entry *entry = &merge->ledger.entries[i];

                glp_set_col_bnds(merge->ledger.lp, entry->column, is_possible(merge, entry) ? GLP_LO : GLP_FX, 0, 0);
        }
        return relax(merge->ledger.lp, usec);
}

/* What the best plan and the relaxation agree on, into `times`. */
static void settle(struct merge *merge, struct part *part) {
        struct ledger *ledger = &merge->ledger;

        memset(merge->in_best, 0, sizeof(*merge->in_best) * ledger->n_entries);
        for (uint32_t i = 0; i < merge->n_best; i++)
                merge->in_best[merge->best[i]]++;
        for (uint32_t i = 0; i < ledger->n_entries; i++) {
                const struct entry *entry = &ledger->entries[i];
                int length;

                merge->times[i] = fmin(merge->in_best[i], floor(glp_get_col_prim(ledger->lp, entry->column) + tolerance));
                if (merge->times[i] < 0.5)
                        continue;
                part->cost += merge->times[i] * entry->cost;
                length = glp_get_mat_col(ledger->lp, entry->column, ledger->indices, ledger->coefficients);
                for (int k = 1; k <= length; k++)
                        part->settled[ledger->indices[k]] += merge->times[i] * ledger->coefficients[k];
        }
}

static void add_rows(struct part *part, glp_prob *whole) {
        glp_add_rows(part->lp, glp_get_num_rows(whole));
        for (int i = 1; i <= glp_get_num_rows(whole); i++) {
                double left = glp_get_row_ub(whole, i) - part->settled[i];

                glp_set_row_bnds(part->lp, i, glp_get_row_type(whole, i), left, left);
        }
}

/* All that may take part in a cheaper plan, and what the best one has. */
static void add_columns(struct merge *merge, struct part *part) {
        struct ledger *ledger = &merge->ledger;
        double loss = merge->loss * ((double) merge->best_cost - glp_get_obj_val(ledger->lp));

        for (uint32_t i = 0; i < ledger->n_entries; i++) {
                const struct entry *entry = &ledger->entries[i];
                int length, column;

                if (glp_get_row_ub(part->lp, ledger_row_of_owner(ledger, entry)) < 0.5 || !is_possible(merge, entry) ||
                    (merge->in_best[i] < 0.5 && glp_get_col_dual(ledger->lp, entry->column) > loss))
                        continue;
                column = glp_add_cols(part->lp, 1);
                part->entry_of[column] = i;
                part->best[column] = merge->in_best[i] - merge->times[i];
                length = glp_get_mat_col(ledger->lp, entry->column, ledger->indices, ledger->coefficients);
                glp_set_mat_col(part->lp, column, length, ledger->indices, ledger->coefficients);
                glp_set_obj_coef(part->lp, column, entry->cost);
                glp_set_col_kind(part->lp, column, GLP_IV);
                glp_set_col_bnds(part->lp, column, GLP_LO, 0, 0);
        }
}

/* The best plan fulfils them, so these are fulfilled by what is settled. */
static void remove_empty_rows(struct merge *merge, struct part *part) {
        int n = 0, *rows = merge->ledger.indices;

        for (int i = 1; i <= glp_get_num_rows(part->lp); i++)
                if (glp_get_mat_row(part->lp, i, NULL, NULL) == 0)
                        rows[++n] = i;
        if (n > 0)
                glp_del_rows(part->lp, n, rows);
}

static bool make_part(struct merge *merge, struct part *part) {
        uint32_t n = merge->ledger.n_entries + 1;

        part->entry_of = arena_alloc(&part->arena, n, sizeof(*part->entry_of));
        part->best = arena_alloc(&part->arena, n, sizeof(*part->best));
        part->settled = arena_alloc(&part->arena, (size_t) glp_get_num_rows(merge->ledger.lp) + 1, sizeof(*part->settled));
        if (part->arena.failed)
                return false;
        part->lp = glp_create_prob();
        settle(merge, part);
        add_rows(part, merge->ledger.lp);
        add_columns(merge, part);
        remove_empty_rows(merge, part);
        return true;
}

static void finish_part(struct part *part) {
        if (part->lp)
                glp_delete_prob(part->lp);
        arena_finish(&part->arena);
}

/* What is dearer than the best plan need not be looked at. */
static void offer_best(glp_tree *tree, void *context) {
        struct part *part = context;

        if (glp_ios_reason(tree) != GLP_IHEUR || part->has_begun)
                return;
        part->has_begun = true;
        (void) glp_ios_heur_sol(tree, part->best);
}

/* What a search came to. */
enum outcome { NOTHING, BETTER, LATE };

static enum outcome decide(struct merge *merge, struct part *part, int64_t usec) {
        glp_iocp options;
        int status, r;

        glp_init_iocp(&options);
        options.msg_lev = GLP_MSG_OFF;
        options.br_tech = GLP_BR_FFV;
        options.mip_gap = close_enough;
        options.tm_lim = milliseconds(usec);
        options.cb_func = offer_best;
        options.cb_info = part;
        r = glp_intopt(part->lp, &options);
        status = glp_mip_status(part->lp);
        if ((status != GLP_OPT && status != GLP_FEAS) || llround(glp_mip_obj_val(part->lp) + part->cost) >= merge->best_cost)
                return r == GLP_ETMLIM ? LATE : NOTHING;
        for (int j = 1; j <= glp_get_num_cols(part->lp); j++)
                merge->times[part->entry_of[j]] += round(glp_mip_col_val(part->lp, j));
        return BETTER;
}

/* Once, until `end_usec` are left. */
static enum outcome search(struct merge *merge, const struct deadline *deadline, int64_t end_usec) {
        struct part part = { 0 };
        enum outcome outcome = LATE;
        int64_t left;

        if (relax_all(merge, deadline_left_usec(deadline) - end_usec) && make_part(merge, &part) &&
            relax(part.lp, deadline_left_usec(deadline) - end_usec) && (left = deadline_left_usec(deadline) - end_usec) > 0)
                outcome = decide(merge, &part, left);
        finish_part(&part);
        return outcome != BETTER || write_plan(merge) ? outcome : LATE;
}

const int32_t *merge_solve(struct merge *merge, const struct deadline *deadline, int64_t usec, int64_t *ret_cost) {
        int64_t end = deadline_left_usec(deadline) > usec ? deadline_left_usec(deadline) - usec : 0;
        enum outcome outcome = BETTER;
        bool is_better = false;

        if (merge->n_best == 0)
                return NULL;
        while (outcome != LATE && deadline_left_usec(deadline) - end > usec / WORTH_IT) {
                outcome = search(merge, deadline, end);
                if (outcome == BETTER) {
                        is_better = true;
                        *ret_cost = cost_of_plan(merge);
                        memcpy(merge->plan, merge->node_of, sizeof(*merge->plan) * merge->n_ranks);
                        merge_add(merge, merge->plan, *ret_cost);
                } else if (outcome == NOTHING && merge->loss >= all_loss)
                        break;
                else if (outcome == NOTHING)
                        merge->loss = fmin(merge->loss * wider, all_loss);
        }
        if (outcome == LATE && !is_better)
                merge->loss = fmax(merge->loss / wider, least_loss);
        return is_better ? merge->plan : NULL;
}
