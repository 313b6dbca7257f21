/* A linear program of pieces (pieces.h): a column for each way that a job buys or a node sells, a row for each job, class of nodes and
 * price. */
#ifndef RM_POLICIES_DISTRIB_LEDGER_H
#define RM_POLICIES_DISTRIB_LEDGER_H

#include <glpk.h>
#include <stdbool.h>
#include <uthash.h>

#include "policies/distrib/pieces.h"

/* A way to buy all of a job, or what a node sells. */
struct entry {
        bool is_sale;
        uint32_t owner; /* demand or class */
        uint32_t n; /* pieces */
        const uint32_t *prices; /* of each, in order */
        double cost; /* of what is sold */
        int column; /* of the program */
        UT_hash_handle hh;
};

/* More than these are not taken. */
#define LEDGER_MAX_ENTRIES 30000

/* Fields are the interface; `lp` may be given more columns, and its costs and bounds be changed. */
struct ledger {
        const struct pieces *pieces;
        struct entry *entries;
        uint32_t n_entries;
        glp_prob *lp;
        int *row_of; /* each price; 0: nobody sells it, or nobody buys it */
        uint32_t *row_price; /* which prices have rows */
        uint32_t n_row_prices;
        int *indices; /* for a row or a column, at will */
        double *coefficients;
        /* the ledger's own */
        int *class_row; /* each class; 0: none yet */
        struct entry *by_key; /* which is what the list has of them */
        uint32_t *list; /* of each entry, one after another, whose it is and then its prices */
        uint32_t *entry_of; /* each price of these: its entry */
        uint32_t *next; /* each of these: the next one of the same price, from 1 on; 0: none */
        uint32_t *head; /* each price: the same */
        uint32_t n_listed;
        struct arena arena;
};

/* Nobody may run on a node already. The pieces are borrowed. False: no memory, or more than this is made for; ledger_finish() is fine
 * then. */
bool ledger_init(struct ledger *ledger, const struct pieces *pieces);
void ledger_finish(struct ledger *ledger);

#define LEDGER_FULL UINT32_MAX

/* An entry, a new one if it is not there yet; LEDGER_FULL: there is no room for it. `prices`: of each piece; put in order. */
uint32_t ledger_buy(struct ledger *ledger, uint32_t demand, uint32_t *prices, uint32_t n);
uint32_t ledger_sell(struct ledger *ledger, uint32_t class, uint32_t *prices, uint32_t n);
/* One of another ledger of the same pieces. */
uint32_t ledger_add(struct ledger *ledger, const struct entry *from);

/* Was it there to be sold before it was bought? Of a price with a row. */
bool ledger_first_is_sale(const struct ledger *ledger, uint32_t price);

/* The row of the job or class of nodes. */
int ledger_row_of_owner(const struct ledger *ledger, const struct entry *entry);

/* Whose price it is. */
uint32_t ledger_demand_of(const struct ledger *ledger, uint32_t price);

#endif
