/*
 * Prices of pieces by linear programming: the best prices for what jobs have bought and nodes have sold so far; what they buy and sell
 * at these is added, until nobody wants anything else; prices stay in a box around the best ones (boxstep: Marsten, Hogan &
 * Blankenship 1975). Where steps along what is over get stuck (pieces.h), that goes on.
 */
#ifndef RM_POLICIES_DISTRIB_MARKET_H
#define RM_POLICIES_DISTRIB_MARKET_H

#include <stdbool.h>

#include "policies/distrib/deadline.h"
#include "policies/distrib/ledger.h"
#include "policies/distrib/pieces.h"

struct market;

/* Remembers from now on what is bought and sold. Nobody may run on a node already. The pieces are borrowed, and must outlive it. NULL:
 * no memory, or more than this is made for. */
struct market *market_create(struct pieces *pieces);
void market_destroy(struct market *market); /* NULL ok */

/* The pieces have the best prices found. Ends when `until_usec` are left, or nothing more is to be gained. Returns the bound: no plan
 * costs less. */
int64_t market_raise(struct market *market, const struct deadline *deadline, int64_t until_usec);

/* Adds to the ledger what is bought and sold in the optimum of the program that was solved last. */
void market_list_used(const struct market *market, struct ledger *ledger);

#endif
