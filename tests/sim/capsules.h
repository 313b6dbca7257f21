/* The capsules of the hosts of the virtual world, each with the PID 1 that it really has
 * (daemon/capsule/init), as far as rmd sees it: it carries out requests after a while, freezes what
 * is in it by its own clock when its lease ends, and stays when the rmd of its host is killed or
 * stopped. What must hold of them is looked at here: of one capsule only the copy runs that the log
 * names, only one at a time, and what a move opens is what its source was when it was cut. */
#ifndef RM_TESTS_SIM_CAPSULES_H
#define RM_TESTS_SIM_CAPSULES_H

#include "daemon/capsule/capsule.h"
#include "tests/sim/checks.h"
#include "tests/sim/host.h"
#include "tests/sim/kept.h"
#include "tests/sim/saved.h"

struct capsules;
struct copy;

struct capsules *capsules_create(struct timeline *t, struct checks *checks, struct kept *kept);
void capsules_destroy(struct capsules *c); /* NULL ok */

/* A node has applied the command to `state`; the first one that does tells what the log says. */
void capsules_applied(struct capsules *c, const Rm__State *state, const Rm__Command *command, const struct state_result *result);
/* NULL: every copy that is there is named by this state; else what is not so. */
const char *capsules_unsettled(struct capsules *c, const Rm__State *state);
/* NULL: no capsule has stood still for longer than that; else which one has. */
const char *capsules_frozen(const struct capsules *c, uint64_t usec);
/* The machine is off: nothing of its capsules is left. */
void capsules_lose(struct capsules *c, const struct host *host);

/* The counts of the whole history: copies whose payload has run, moves whose copy was opened, times
 * that PID 1 had no lease any more. */
struct capsules_counts {
        uint64_t ran, opened, fenced, ended, lost;
        uint64_t gone; /* with their machines */
        uint64_t went_on; /* from a checkpoint */
        uint64_t held, changed; /* times that a group stood still as it was parked; programs that have another number of ranks */
};
void capsules_count(const struct capsules *c, struct capsules_counts *ret);

/* ---- for the rmd of a host (fakecapsule.c, fakemover.c) ---- */

enum request_op {
        OP_RUN,
        OP_SIGNAL,
        OP_END_RANKS,
        OP_FREEZE,
        OP_THAW,
        OP_CUT,
        OP_OPEN,
        OP_PRELOAD,
        OP_DUMP,
        OP_GET_SAVED_STATE,
        OP_RESTORE_PREPARE,
        OP_RESTORE,
        OP_RESTORE_BACK,
        OP_AGENT_REPLY,
        OP_LEASE,
        OP_RESIZE_ORDER,
        OP_QUIT,
        OPS
};

struct request {
        enum request_op op;
        uint64_t number; /* of its answer; 0: none is wanted */
        char text[128]; /* directory of the images, or id of an rm-agent */
        bool pages;
        int status; /* of an rm-agent; a signal */
        uint32_t attempt;
        uint32_t active; /* as RM_ACTIVE_RANKS says; 0: it does not */
        Capsule__ResizeOrder resize;
        uint64_t end_usec; /* of a lease */
};

enum report_kind {
        REPORT_STATUS,
        REPORT_READY,
        REPORT_ANSWER,
        REPORT_AGENT_REQUEST,
        REPORT_AGENT_GONE,
        REPORT_EXITED,
        REPORT_FILLING,
        REPORT_UNFENCED,
        REPORT_SAID,
        REPORT_OUTPUT,
        REPORT_LOST,
        REPORT_REMOVED,
};

struct report {
        enum report_kind kind;
        struct capsule_status status;
        uint64_t number; /* ANSWER */
        int error;
        char text[64];
        char host[64]; /* AGENT_REQUEST */
};

/* A report came to the handle of that number, in the process of the host. */
typedef void (*capsules_report_fn)(struct host *host, uint64_t handle, const struct report *report);

/* NULL: there is none, nor what is left of one. */
struct copy *capsules_find(struct capsules *c, const struct host *host, const char *id);
/* The next one on the host after `copy`; NULL: the first, or there is none. */
struct copy *capsules_next(struct capsules *c, const struct host *host, struct copy *copy);
const char *copy_id(const struct copy *copy);

/* Begins to make one; it reports to the handle when it is made. */
struct copy *capsules_make(struct capsules *c, struct host *host, const struct capsule_spec *spec, uint64_t handle,
                           capsules_report_fn report);
/* Another process looks after it now; everything that it should know is reported. */
void copy_connect(struct copy *copy, uint64_t handle, capsules_report_fn report);
/* Carried out later. */
void copy_request(struct copy *copy, const struct request *request);
/* Kills what is in it. `ask`: by its PID 1, so that it happens also when the host's process dies
 * now. Removed: REPORT_REMOVED to the handle. */
void copy_remove(struct copy *copy, bool ask);

/* An image: which payload, and how often that had begun to run when it was dumped. */
struct image {
        uint64_t payload, runs;
        bool pages;
};
/* The questions of PID 1 to movers (fakemover.c): CRIU has written the image into that directory,
 * with what a checkpoint needs of it / where is it? false: there is no mover for it. */
bool mover_captured(struct host *host, const char *dir, const struct image *image, const struct saved *saved);
bool mover_image(struct host *host, const char *dir, struct image *ret);
bool mover_saved(struct host *host, const char *dir, struct saved *ret);

#endif
