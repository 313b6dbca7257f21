/* The log is told what keeps a capsule from being moved, as its PID 1 says. */
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/job/runner_internal.h"
#include "daemon/state/commands.h"

struct blocker {
        char *text; /* "": there is none; NULL: PID 1 has not told */
        uint64_t processes; /* changes with the processes of the capsule, as PID 1 has told; 0: it has not */
        /* The time of the refusal in the state that is known here; 0: there is none. */
        uint64_t refused_usec;
        uint64_t refused_processes; /* the processes at that time */
};

static struct blocker *blocker_of(const struct resident *resident) {
        return resident_part(resident, RESIDENT_BLOCKER, sizeof(struct blocker));
}

void blocker_forget(struct resident *resident) {
        free(take_ptr(blocker_of(resident)->text));
}

void blocker_reported(struct resident *resident, const char *text, uint64_t processes) {
        struct blocker *blocker = blocker_of(resident);

        free(blocker->text);
        blocker->text = xstrdup(text);
        blocker->processes = processes;
}

/* Has the capsule other processes than when its move was refused? Then the reason may be gone, also
 * if only a move can tell. */
static bool has_changed(struct blocker *blocker, const Rm__Refusal *refusal) {
        uint64_t usec = refusal ? refusal->last_usec : 0;

        if (usec != blocker->refused_usec) {
                blocker->refused_usec = usec;
                blocker->refused_processes = blocker->processes;
        }
        return refusal && refusal->times > 0 && blocker->processes != blocker->refused_processes;
}

void blocker_report(struct runner *runner, struct resident *resident, const Rm__Capsule *capsule) {
        struct blocker *blocker = blocker_of(resident);
        bool changed = has_changed(blocker, capsule->refusal);
        struct command c;

        if (!resident_is_live(resident) || !blocker->text || capsule->state == RM__CAPSULE_STATE__CAPSULE_PLACED ||
            (!changed && strcmp(blocker->text, capsule->blocker) == 0))
                return;
        runner_propose(runner, resident,
                       command_capsule_blocker(&c, resident_job(resident), resident_index(resident),
                                               cluster_self(runner->rmd->cluster), blocker->text, changed));
}
