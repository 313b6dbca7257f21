/* The parts of rmd that stand on its cluster, wired as in daemon/main.c, over the capsules and
 * movers of the virtual world. */
#ifndef RM_TESTS_SIM_DAEMON_H
#define RM_TESTS_SIM_DAEMON_H

#include "daemon/cluster/cluster.h"
#include "daemon/context.h"
#include "tests/sim/capsules.h"
#include "tests/sim/fakemover.h"

struct daemon;

/* Little beside leases, so that a node that nobody has heard is DOWN long before its lease ends. */
#define DAEMON_NODE_TIMEOUT_USEC 400000U

/* For one life of the host's process. */
struct daemon *daemon_create(struct event_base *base, struct host *host, struct capsules *capsules, struct movers *movers);
/* The cluster is there. */
void daemon_start(struct daemon *d, struct cluster *cluster);
/* To be called before the cluster goes. NULL ok. */
void daemon_stop(struct daemon *d);
void daemon_destroy(struct daemon *d); /* NULL ok */

/* Callbacks of the cluster, as of struct cluster_ops. */
void daemon_on_applied(struct daemon *d, const Rm__Command *command, const struct state_result *result);
void daemon_on_installed(struct daemon *d);
void daemon_on_message(struct daemon *d, const char *node, const Rm__PeerMessage *message);
void daemon_on_peer(struct daemon *d, const char *node, bool connected);
void daemon_on_heartbeat(struct daemon *d);
void daemon_on_lease(struct daemon *d);
void daemon_on_leader(struct daemon *d);

#endif
