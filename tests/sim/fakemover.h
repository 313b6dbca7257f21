/* rm-mover of each move (daemon/transfer/mover.h), which dies with the rmd that has started it, and the removal of what it leaves
 * (daemon/transfer/remover.h), which is nothing. */
#ifndef RM_TESTS_SIM_FAKEMOVER_H
#define RM_TESTS_SIM_FAKEMOVER_H

#include "tests/sim/host.h"

struct movers;

struct movers *movers_create(struct timeline *t);
void movers_destroy(struct movers *movers); /* NULL ok */
/* Those that are started on this host are among them. */
void movers_begin(struct movers *movers, struct host *host);

#endif
