/* The members of the log: computes which step, of those that raft allows, comes next. Pure;
 * members_run.c takes the steps. */
#ifndef RM_CLUSTER_MEMBERS_H
#define RM_CLUSTER_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/log/raftlog.h"

/* The number of voters is limited, since raft asks each of them about every entry. */
#define MEMBERS_VOTERS_MAX 5U

/* A node of the cluster, or one that is in the log's configuration only. */
struct members_node {
        const char *name;
        int32_t switch_at; /* the switch it is plugged into; -1: not known */
        bool self;         /* the leader */
        bool usable;       /* connected, UP, and its rmd knows how to keep a log */
        bool lost;         /* for so long that another is to take its place */
        bool drained; /* or failing: all is to leave it */
        bool leaving;      /* to be removed from the cluster, or removed already */
        enum raftlog_role role;
        bool current;      /* it has the leader's entries */
        uint64_t id; /* raft's number, if it is in the configuration; else the one that it has prepared a log with; 0: none yet */
};

enum members_action {
        MEMBERS_NOTHING,
        MEMBERS_INVITE, /* it is to prepare a log */
        MEMBERS_ADD,
        MEMBERS_FILL, /* it is to get the entries */
        MEMBERS_PROMOTE, /* it gets its vote */
        MEMBERS_REMOVE,
        MEMBERS_TRANSFER, /* it is to lead */
};

struct members_step {
        enum members_action action;
        const struct members_node *node; /* NULL with MEMBERS_NOTHING */
};

/* `wanted`: voters, 1, 3 or 5. As many of them as there are nodes for, but always an odd number:
 * one more would make a majority larger, and bear no loss more. A voter that is lost, drained or
 * leaves is replaced if there is another node, by one on the switch with the fewest voters; without
 * another node a lost or drained one stays, one that leaves does not. Those that are to get a vote
 * get all entries first, so that no moment is longer than it must be in which there is an even
 * number. The leader goes last: another one leads before. */
struct members_step members_next(const struct members_node *nodes, size_t n, unsigned requested);

#endif
