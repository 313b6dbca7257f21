/* The capsules of a host as its rmd sees them (daemon/capsule/capsule.h), over those of the virtual
 * world. */
#ifndef RM_TESTS_SIM_FAKECAPSULE_H
#define RM_TESTS_SIM_FAKECAPSULE_H

#include "tests/sim/capsules.h"

/* For one life of the host's process; it ends with capsule_ctx_destroy(). */
struct capsule_ctx *fakecapsule_begin(struct capsules *world, struct host *host);

#endif
