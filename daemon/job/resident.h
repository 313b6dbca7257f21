/* One capsule on this node; one copy, when a move is under way. Belongs to the runner. */
#ifndef RM_JOB_RESIDENT_H
#define RM_JOB_RESIDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/capsule/capsule.h"

struct resident {
        uint64_t job;
        int32_t index;
        uint64_t incarnation;
        struct capsule *capsule;
        bool ready;       /* answers */
        bool adopted;     /* made by an rmd before this one */
        char *making_again; /* what was left of it goes: its id; NULL: no */
        bool lost;        /* not made, or its PID 1 died */
        char *lost_text;
        bool limited;     /* arrived or adopted, its limits were set anew */
        bool unstarted;   /* lost since its command could not be started */
        bool launching;   /* its command was sent */
        bool exited;
        int wait_status;
        uint64_t end_real_usec; /* when it exited or was lost; 0: it has not */
        bool reporting;   /* a proposal about it is under way */
        bool captured;     /* transfer/capture.c has frozen it, and opens it again */
        bool rehearsal;    /* only to try a restore in it */
        bool restored;     /* what was captured for a checkpoint is in it, frozen and cut off; its restart opens it */
        void **parts;      /* by enum resident_part */
        struct resident *next;
};

struct resident *resident_create(uint64_t job, int32_t index, uint64_t incarnation);
/* Frees what the files below keep of it, too, but not what that points at. NULL ok. */
void resident_destroy(struct resident *resident);

/* What one file keeps of each capsule. Its type is known in that file only, which also frees what it points at. */
enum resident_part {
        RESIDENT_AGENTS,      /* agents.c */
        RESIDENT_BLOCKER,     /* blocker.c */
        RESIDENT_CORES,       /* cores.c */
        RESIDENT_CORE_REPORT, /* core_report.c */
        RESIDENT_ENDING,      /* ending.c */
        RESIDENT_ENDS,        /* ends.c */
        RESIDENT_LEASES,      /* leases.c */
        RESIDENT_MEMORY,      /* memory_report.c */
        RESIDENT_OWN_STATE,   /* own_state.c */
        RESIDENT_RANK_ENDS,   /* rank_ends.c */
        RESIDENT_RANK_LOSS,   /* rank_loss.c */
        RESIDENT_RESIZING,    /* resizing.c */
        RESIDENT_STALLS,      /* stalls.c */
        RESIDENT_TRAFFIC,     /* traffic.c */
        RESIDENT_PARTS
};

/* The part of `size_bytes`, zeroed when it is first asked for: nothing is known then. Lives as long as the resident. */
void *resident_part(const struct resident *resident, enum resident_part part, size_t size_bytes);

#endif
