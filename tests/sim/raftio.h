/* The log of a voter on the disk of its virtual host: in place of libraft's raft_uv. */
#ifndef RM_TESTS_SIM_RAFTIO_H
#define RM_TESTS_SIM_RAFTIO_H

#include "tests/sim/host.h"

/* Checks for free space after each event. */
void raftio_scan(struct host *host);

#endif
