/* The rm-movers of moves and checkpoints (daemon/transfer/mover.h), which die with the rmd that has
 * started them. */
#ifndef RM_TESTS_SIM_FAKEMOVER_H
#define RM_TESTS_SIM_FAKEMOVER_H

#include "tests/sim/host.h"

struct movers;

struct movers *movers_create(struct timeline *t);
void movers_destroy(struct movers *movers); /* NULL ok */
/* Movers that are started on this host are among them. */
void movers_begin(struct movers *movers, struct host *host);

#endif
