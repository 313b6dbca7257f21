/* Shared by capsules.c, which is PID 1, and payload.c, which is what runs in a capsule. */
#ifndef RM_TESTS_SIM_CAPSULES_INTERNAL_H
#define RM_TESTS_SIM_CAPSULES_INTERNAL_H

#include <sys/queue.h>

#include "daemon/capsule/init/ranks/parking_state.h"
#include "rtlib/resize_state.h"
#include "tests/sim/capsules.h"
#include "tests/sim/kept.h"

#define PAYLOAD_GROUPS SAVED_GROUPS

/* mpirun or the daemon of a group: it lives in one copy of its capsule, and in images. */
struct payload {
        struct capsules *world;
        unsigned refs; /* copies */
        uint64_t number, job;
        int32_t index;
        uint32_t attempt; /* of its job; 0: of none, for it is only tried */
        uint32_t born; /* the attempt in which its program began */
        uint64_t written_bytes; /* of output, by mpirun */
        uint64_t runs; /* times that it has begun to run, in whatever copy */
        uint64_t end_usec; /* of the timeline: when it ends by itself, or of a signal */
        int end_status; /* as of waitpid(2) */
        bool ended;
        unsigned n_groups; /* of a head */
        bool asked;
        bool answered[PAYLOAD_GROUPS]; /* its rm-agent */
        bool over[PAYLOAD_GROUPS]; /* the daemon of the group, or it could not be started */
        bool failed; /* of a head: a group has */
        bool forced; /* its end: it waits for nobody */
        uint32_t active; /* of a head: ranks that its job begins with; 0: it has none in reserve */
        struct resize *ranks; /* of a group (ranks.c) */
        uint32_t n_ranks;
        uint64_t make_usec; /* rank 0, which is here: when the change that has begun is made; 0: not all are there */
        Capsule__Parking *parking; /* as its PID 1 gave it to the other end; NULL: it did not */
        LIST_ENTRY(payload) entry;
};

struct waiting {
        struct request request;
        STAILQ_ENTRY(waiting) entry;
};

struct copy {
        struct capsules *world;
        struct host *host;
        char *id;
        uint64_t number, job, incarnation;
        int32_t index;
        unsigned n_groups; /* of its job */
        bool fenced; /* it runs only with a lease */
        uint64_t made_life; /* of the process that makes it */
        bool dead; /* PID 1 is */
        bool removing; /* by the process that it reports to */
        bool busy; /* with a freeze, a dump or a restore */
        bool has_saved_state;
        struct request current;
        STAILQ_HEAD(, waiting) waiting;
        struct capsule_status status;
        uint64_t lease_usec; /* its end; 0: it never had one */
        bool fence_done;
        struct payload *payload;
        uint64_t image_runs; /* of one that was restored */
        uint64_t cut; /* kept.h: the standstill in which it is; 0: none */
        uint64_t frozen_usec; /* of the timeline: since when it is frozen; 0: it is not */
        struct saved *saved; /* that it goes on from, until it runs; NULL: it does not */
        bool ran;
        struct parking *parking;
        uint32_t first_rank, n_ranks; /* of its order */
        bool held; /* it stands still since all of its ranks are parked */
        bool looks; /* and looks again by itself */
        uint64_t rest_usec; /* not to stand still before */
        uint64_t handle, life; /* that it reports to */
        capsules_report_fn report;
        uint64_t last_usec; /* when the last report, or request, is to arrive */
        LIST_ENTRY(copy) entry;
};

/* The log's entry of one capsule. */
struct named {
        uint64_t job, incarnation;
        int32_t index;
        uint32_t attempt; /* in which it was placed */
        LIST_ENTRY(named) entry;
};

struct capsules {
        struct timeline *timeline;
        struct checks *checks;
        struct kept *kept;
        struct capsules_counts counts;
        uint64_t last_number, index;
        uint64_t salt;
        LIST_HEAD(, copy) copies;
        LIST_HEAD(, payload) payloads;
        LIST_HEAD(, named) named;
};

typedef void (*copy_fn)(struct copy *copy);

/* After so long, unless it is gone then. */
void copy_later(struct copy *copy, uint64_t delay_usec, copy_fn fn);
void copy_report(struct copy *copy, const struct report *report);
/* The processes of the copy run, or may: PID 1 takes as long to freeze them as it may. */
bool copy_runs(const struct copy *copy);
/* The program of the copy has ended. */
void copy_exited(struct copy *copy, int wait_status);

/* ---- named.c ---- */

/* Checks that the copy may run: by the log it is the capsule. */
void named_check(const struct copy *copy);
/* The attempt of the copy's job, as it was placed; 0: the log does not name this copy. */
uint32_t named_attempt(const struct copy *copy);
void named_finish(struct capsules *c);

/* ---- payload.c ---- */

/* Starts the payload in the copy. */
void payload_start(struct copy *copy, const struct request *request);
void payload_hold(struct copy *copy, struct payload *payload);
/* Saves the payload as it is now; and restores another one, that goes on from that in the copy. */
void payload_save(const struct payload *payload, struct saved *ret);
void payload_restore(struct copy *copy, const struct saved *saved);
/* The copy is gone, or what ran in it. */
void payload_drop(struct copy *copy);
struct payload *payload_find(const struct capsules *c, uint64_t number);
/* The copy in which it runs; NULL: there is none now. */
struct copy *payload_home(const struct payload *payload);
void payload_signal(struct payload *payload, int signo);
/* False: no such rm-agent waits. */
bool payload_answer(struct payload *payload, const char *agent, int status);
/* Reports the rm-agents that wait. */
void payload_ask(struct copy *copy);

#endif
