#include "daemon/job/head_step.h"

#include <assert.h>
#include <stddef.h>

#include "common/util.h"

#define IN(phase) (1U << (unsigned) (phase))
#define ANY_PHASE (~0U)

struct rule {
        unsigned phases;  /* the head is in one of these */
        unsigned with;    /* all of these facts are so */
        unsigned without; /* none of these is */
        enum head_step step;
};

/* The first rule that applies holds. */
static const struct rule rules[] = {
        /* A node that failed while the job came back from its checkpoint: the attempt has not
         * begun, and the next one may. */
        { IN(RESIDENT_LOST) | IN(RESIDENT_UNSTARTED), HEAD_STARTING | HEAD_FROM_CHECKPOINT | HEAD_MAY_RESTART, 0,
          HEAD_RESTART_JOB },
        { IN(RESIDENT_UNSTARTED), 0, 0, HEAD_REPORT_UNSTARTED },
        { IN(RESIDENT_LOST), 0, 0, HEAD_REPORT_LOST },
        { IN(RESIDENT_READY) | IN(RESIDENT_LAUNCHED) | IN(RESIDENT_EXITED), HEAD_PLACED, 0, HEAD_REPORT_PLACED },
        /* A job is reported as running also when mpirun has ended since: the end of a job that
         * never ran would be another one. */
        { ANY_PHASE, HEAD_STARTING | HEAD_OCCUPIED, HEAD_CANCELLED | HEAD_FROM_CHECKPOINT, HEAD_REPORT_RUNNING },
        { ANY_PHASE, HEAD_STARTING | HEAD_OCCUPIED | HEAD_ALL_READY, HEAD_CANCELLED, HEAD_REPORT_RUNNING },
        { IN(RESIDENT_EXITED), 0, 0, HEAD_REPORT_EXIT },
        { ANY_PHASE, HEAD_ENDING, 0, HEAD_END_JOB },
        { ANY_PHASE, HEAD_NO_RANKS, 0, HEAD_AWAIT_MPIRUN },
        /* The launch is refused without a lease, and tried again when there is one. */
        { IN(RESIDENT_READY), HEAD_STARTING | HEAD_ALL_READY, HEAD_FROM_CHECKPOINT, HEAD_LAUNCH },
};

enum head_step head_step(enum resident_phase phase, unsigned facts) {
        assert(resident_phase_has_capsule(phase));
        for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
                if ((rules[i].phases & IN(phase)) && (facts & rules[i].with) == rules[i].with && !(facts & rules[i].without))
                        return rules[i].step;
        return HEAD_WAIT;
}
