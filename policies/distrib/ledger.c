#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(entry) ((void) (entry)) /* then the next one of its kind is another entry */
#define HASH_FUNCTION(key, n, hash) HASH_FNV(key, n, hash)
#include "policies/distrib/ledger.h"

#include <string.h>

enum {
        MAX_LISTED = 16 * LEDGER_MAX_ENTRIES, /* prices of them, and what else tells them apart */
        MAX_PRICES = 50000,
};

uint32_t ledger_demand_of(const struct ledger *ledger, uint32_t price) {
        uint32_t low = 0, high = ledger->pieces->classes->n_demands;

        while (high - low > 1) {
                uint32_t middle = low + (high - low) / 2;

                if (ledger->pieces->first[middle] <= price)
                        low = middle;
                else
                        high = middle;
        }
        return low;
}

int ledger_row_of_owner(const struct ledger *ledger, const struct entry *entry) {
        return entry->is_sale ? ledger->class_row[entry->owner] : (int) entry->owner + 1;
}

static int make_row_of_owner(struct ledger *ledger, const struct entry *entry) {
        if (entry->is_sale && ledger->class_row[entry->owner] == 0) {
                int row = ledger->class_row[entry->owner] = glp_add_rows(ledger->lp, 1);

                glp_set_row_bnds(ledger->lp, row, GLP_UP, 0, ledger->pieces->classes->classes[entry->owner].nodes);
        }
        return ledger_row_of_owner(ledger, entry);
}

/* One more piece in a row or a column of so many coefficients; the same ones follow each other. Returns how many there are then. */
static int add_piece(struct ledger *ledger, int length, int index, bool is_sale) {
        if (length == 0 || ledger->indices[length] != index) {
                ledger->indices[++length] = index;
                ledger->coefficients[length] = 0;
        }
        ledger->coefficients[length] += is_sale ? 1 : -1;
        return length;
}

/* A row for a price that is both bought and sold from now on. */
static void add_row(struct ledger *ledger, uint32_t price) {
        int length = 0, row = glp_add_rows(ledger->lp, 1);

        for (uint32_t i = ledger->head[price]; i > 0; i = ledger->next[i - 1]) {
                const struct entry *entry = &ledger->entries[ledger->entry_of[i - 1]];

                length = add_piece(ledger, length, entry->column, entry->is_sale);
        }
        glp_set_row_bnds(ledger->lp, row, GLP_FX, 0, 0);
        glp_set_mat_row(ledger->lp, row, length, ledger->indices, ledger->coefficients);
        ledger->row_of[price] = row;
        ledger->row_price[ledger->n_row_prices++] = price;
}

static bool has_other_side(const struct ledger *ledger, uint32_t price, bool is_sale) {
        uint32_t i = ledger->head[price];

        return i > 0 && ledger->entries[ledger->entry_of[i - 1]].is_sale != is_sale;
}

bool ledger_first_is_sale(const struct ledger *ledger, uint32_t price) {
        uint32_t i = ledger->head[price];

        while (ledger->next[i - 1] > 0)
                i = ledger->next[i - 1];
        return ledger->entries[ledger->entry_of[i - 1]].is_sale;
}

static void add_column(struct ledger *ledger, struct entry *entry) {
        int length = 0;

        for (uint32_t i = 0; i < entry->n; i++) {
                int row = ledger->row_of[entry->prices[i]];

                if (row > 0)
                        length = add_piece(ledger, length, row, entry->is_sale);
        }
        ledger->indices[++length] = make_row_of_owner(ledger, entry);
        ledger->coefficients[length] = 1;
        entry->column = glp_add_cols(ledger->lp, 1);
        glp_set_col_bnds(ledger->lp, entry->column, GLP_LO, 0, 0);
        glp_set_obj_coef(ledger->lp, entry->column, entry->cost);
        glp_set_mat_col(ledger->lp, entry->column, length, ledger->indices, ledger->coefficients);
}

static int compare_prices(const void *a, const void *b) {
        const uint32_t *x = a, *y = b;

        return *x < *y ? -1 : *x > *y;
}

/* Who buys or sells, and then the prices: behind the list, where they stay if the entry is new. */
static uint32_t *list_key(struct ledger *ledger, const struct entry *entry) {
        uint32_t *key = ledger->list + ledger->n_listed;

        key[0] = 2 * entry->owner + entry->is_sale;
        memcpy(key + 1, entry->prices, sizeof(*key) * entry->n);
        return key;
}

static void link_prices(struct ledger *ledger, const struct entry *entry) {
        for (uint32_t i = 0; i < entry->n; i++) {
                uint32_t listed = ledger->n_listed + 1 + i, price = entry->prices[i];

                ledger->entry_of[listed] = ledger->n_entries;
                ledger->next[listed] = ledger->head[price];
                ledger->head[price] = listed + 1;
        }
}

uint32_t ledger_add(struct ledger *ledger, const struct entry *from) {
        uint32_t *key = list_key(ledger, from);
        size_t key_bytes = sizeof(*key) * (from->n + 1ul);
        struct entry *entry = NULL;

        HASH_FIND(hh, ledger->by_key, key, key_bytes, entry);
        if (entry)
                return (uint32_t) (entry - ledger->entries);
        if (from->n == 0 || ledger->n_entries == LEDGER_MAX_ENTRIES || from->n >= MAX_LISTED - ledger->n_listed)
                return LEDGER_FULL;
        entry = &ledger->entries[ledger->n_entries];
        *entry = (struct entry) { from->is_sale, from->owner, from->n, .prices = key + 1, .cost = from->cost };
        for (uint32_t i = 0; i < entry->n; i++)
                if (ledger->row_of[entry->prices[i]] == 0 && has_other_side(ledger, entry->prices[i], entry->is_sale))
                        add_row(ledger, entry->prices[i]);
        add_column(ledger, entry);
        link_prices(ledger, entry);
        ledger->n_listed += entry->n + 1;
        HASH_ADD_KEYPTR(hh, ledger->by_key, key, key_bytes, entry);
        return ledger->n_entries++;
}

uint32_t ledger_buy(struct ledger *ledger, uint32_t demand, uint32_t *prices, uint32_t n) {
        qsort(prices, n, sizeof(*prices), compare_prices);
        return ledger_add(ledger, &(struct entry) { .owner = demand, .n = n, .prices = prices });
}

uint32_t ledger_sell(struct ledger *ledger, uint32_t class, uint32_t *prices, uint32_t n) {
        const struct pieces *pieces = ledger->pieces;
        const struct relaxation *classes = pieces->classes;
        double cost = 0;

        qsort(prices, n, sizeof(*prices), compare_prices);
        for (uint32_t i = 0; i < n; i++) {
                uint32_t demand = ledger_demand_of(ledger, prices[i]);
                int64_t ranks = (int64_t) (prices[i] - pieces->first[demand]);

                cost += (double) (classes->demands[demand].priority * (classes->classes[class].penalty * ranks + pieces->weight));
        }
        return ledger_add(ledger, &(struct entry) { .is_sale = true, .owner = class, .n = n, .prices = prices, .cost = cost });
}

bool ledger_init(struct ledger *ledger, const struct pieces *pieces) {
        const struct relaxation *classes = pieces->classes;
        /* of a row, or a column; a job has at most as many pieces as ranks, so its column is not longer than that of prices */
        size_t most = LEDGER_MAX_ENTRIES + pieces->n_prices + classes->n_demands + classes->n_classes + 1;
        size_t n_key = 1ul + pieces->most_ranks + pieces->most_cores; /* of a job, or of a node */
        struct arena *arena = &ledger->arena;

        *ledger = (struct ledger) { .pieces = pieces };
        if (pieces->n_prices > MAX_PRICES || pieces->homes.n_sites > 0)
                return false;
        ledger->entries = arena_alloc(arena, LEDGER_MAX_ENTRIES, sizeof(*ledger->entries));
        ledger->row_of = arena_alloc(arena, pieces->n_prices, sizeof(*ledger->row_of));
        ledger->row_price = arena_alloc(arena, pieces->n_prices, sizeof(*ledger->row_price));
        ledger->head = arena_alloc(arena, pieces->n_prices, sizeof(*ledger->head));
        ledger->class_row = arena_alloc(arena, classes->n_classes, sizeof(*ledger->class_row));
        ledger->list = arena_alloc(arena, MAX_LISTED + n_key, sizeof(*ledger->list));
        ledger->entry_of = arena_alloc(arena, MAX_LISTED, sizeof(*ledger->entry_of));
        ledger->next = arena_alloc(arena, MAX_LISTED, sizeof(*ledger->next));
        ledger->indices = arena_alloc(arena, most, sizeof(*ledger->indices));
        ledger->coefficients = arena_alloc(arena, most, sizeof(*ledger->coefficients));
        if (arena->failed)
                return false;
        (void) glp_term_out(GLP_OFF);
        ledger->lp = glp_create_prob();
        glp_set_obj_dir(ledger->lp, GLP_MIN);
        glp_add_rows(ledger->lp, (int) classes->n_demands);
        for (uint32_t t = 0; t < classes->n_demands; t++)
                glp_set_row_bnds(ledger->lp, (int) t + 1, GLP_FX, 1, 1);
        return true;
}

void ledger_finish(struct ledger *ledger) {
        HASH_CLEAR(hh, ledger->by_key);
        if (ledger->lp)
                glp_delete_prob(ledger->lp);
        arena_finish(&ledger->arena);
}
