/* Events about output that cannot be kept on this node's disk, so that mpirun keeps it in its
 * memory. */
#include <inttypes.h>

#include "common/util.h"
#include "daemon/job/runner_internal.h"
#include "daemon/state/commands.h"

struct stalls {
        unsigned reported; /* a bit for each enum capsule_stall */
};

/* Each reason is told once: a reader that is slower than the program makes it wait over and
 * over. */
void stalls_report(struct runner *runner, const struct resident *resident, enum capsule_stall why) {
        const Rm__Job *job = state_job(cluster_state(runner->rmd->cluster), resident_job(resident));
        struct stalls *stalls = resident_part(resident, RESIDENT_STALLS, sizeof(*stalls));
        const char *self = cluster_self(runner->rmd->cluster);
        cleanup_free char *text = NULL;
        struct command c;

        if (!job || why == CAPSULE_STALL_NONE || (stalls->reported & 1U << why))
                return;
        stalls->reported |= 1U << why;
        if (why == CAPSULE_STALL_QUOTA)
                text = xasprintf("job %" PRIu64 ": the output of %s kept on %s has reached [job] spool_max: until some is fetched "
                                 "mpirun keeps the rest in its memory",
                                 job->id, job->spec->user, self);
        else
                text = xasprintf("job %" PRIu64
                                 ": the disk with [cluster] state_dir on %s is full%s: until there is room mpirun keeps "
                                 "its output in its memory",
                                 job->id, self, why == CAPSULE_STALL_RESERVE ? " up to [job] spool_reserve" : "");
        cluster_propose(runner->rmd->cluster, command_note(&c, text), NULL, NULL);
}
