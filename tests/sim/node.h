/* A node: rmd's own daemon/cluster, with a log or without one, on a host of the virtual world; what
 * its users propose, and its capsules. */
#ifndef RM_TESTS_SIM_NODE_H
#define RM_TESTS_SIM_NODE_H

#include "tests/sim/capsules.h"
#include "tests/sim/checks.h"
#include "tests/sim/disk.h"
#include "tests/sim/fakemover.h"

struct node;

struct node_config {
        unsigned number; /* of its host; that of 0 begins the cluster */
        unsigned n_hosts;
        unsigned voters; /* that there are to be */
        unsigned snapshot_entries;
        uint64_t lease_usec; /* 0: another one at each start */
        /* The node begins a change of the voters. */
        void (*on_change)(void *userdata, unsigned number);
        /* The node gets the answer to a proposal that it made at that time. */
        void (*on_answer)(void *userdata, uint64_t begin_usec);
        void *userdata;
};

#define LEASE_MIN_USEC 500000U
#define LEASE_MAX_USEC 4000000U

/* Creates a node, whose process is not running yet. */
struct node *node_create(struct timeline *t, struct checks *checks, struct capsules *capsules, struct movers *movers,
                         const struct node_config *config);
void node_destroy(struct node *n); /* NULL ok */

struct host *node_host(const struct node *n);
struct disk *node_disk(const struct node *n);
struct checks *node_checks(const struct node *n);

/* The machine was off: it boots anew when its process starts. Its capsules are the caller's. */
void node_reboot(struct node *n);

/* ---- hooks.c ---- */

/* The node has applied a command; the state's time was `before_usec`. */
void node_applied(struct node *n, Rm__State *state, const struct state_index *indexed, uint64_t index, const Rm__Command *command,
                  const struct state_result *result, uint64_t before_usec);

void node_changing(struct node *n);

/* ---- for the history ---- */

/* The node is elected, as far as its raft knows. */
bool node_leads(const struct node *n);
/* Could the cluster do without its disk for good? On the leader: all others that are to keep the
 * log have theirs, at least two besides it if it has a vote, and nothing is being changed. */
bool node_can_spare(const struct node *leader, struct node *const *nodes, unsigned n_nodes, unsigned host);
/* NULL: who keeps the log is as it is to stay, an odd number; else what is not so. On the
 * leader. */
const char *node_voters_unsettled(const struct node *n);
/* When it made the last proposal that was answered. */
uint64_t node_answered_begin_usec(const struct node *n);
uint64_t node_answered(const struct node *n);
/* The users of the node make no more requests. */
void node_rest(struct node *n);
/* NULL: it does not lead, or its state is not current. */
const Rm__State *node_led_state(const struct node *n);
/* The index of its state; 0: its process does not run. */
uint64_t node_index(const struct node *n);
/* Changes of the voters that it has seen in its state. */
unsigned node_changes(const struct node *n);

#endif
