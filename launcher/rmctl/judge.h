/* The judgement of rmctl doctor: facts of nodes in, findings out. Pure. */
#ifndef RM_LAUNCHER_RMCTL_JUDGE_H
#define RM_LAUNCHER_RMCTL_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/local.pb-c.h"

enum severity { SEVERITY_OK, SEVERITY_WARNING, SEVERITY_PROBLEM };

/* A node, and what it has answered. All strings and the facts are the caller's. */
struct examined {
        const char *node;
        bool requested; /* findings are made of it; of the others only what it is compared with comes */
        bool leader;
        const char *silence; /* why there are no facts; NULL: there are */
        const char *silence_fix;
        const Rm__NodeFacts *facts;
        /* The blockers that keep groups there, as rmd tells them to a user who may know. */
        char *const *staying;
        size_t n_staying;
        /* The node's wall clock is ahead of ours by so much, give or take `clock_error_usec`. */
        int64_t clock_usec;
        uint64_t clock_error_usec;
};

struct finding {
        const char *node; /* as in `struct examined` */
        const char *check; /* static */
        enum severity severity;
        char *text; /* what is so */
        char *means; /* for moving and restoring jobs; NULL with SEVERITY_OK */
        char *fix; /* a command or a setting; NULL with SEVERITY_OK */
};

/* Initialise with `= {0}`. */
struct findings {
        struct finding *list;
        size_t n;
};

/* Adds at least one finding for each wanted node, in their order. */
void judge(const struct examined *nodes, size_t n, struct findings *findings);
void findings_finish(struct findings *findings);
/* "problem" */
const char *severity_name(enum severity severity);

#endif
