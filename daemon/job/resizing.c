/* Jobs that grow and shrink, on the nodes of their groups. PID 1 of each keeps what it is told and
 * what its ranks have said, and both go with it when it moves; so all of this may be done again at
 * any time. */
#include <inttypes.h>
#include <string.h>

#include "common/util.h"
#include "daemon/cluster/cluster.h"
#include "daemon/job/runner_internal.h"
#include "daemon/state/commands.h"

/* The part of each copy that this file keeps. Neither flag says anything of the other. */
struct resizing {
        bool ordered; /* its PID 1 has `order` */
        Capsule__ResizeOrder order;
        bool awake_reported; /* that the group runs though it is parked */
};

static struct resizing *resizing_of(const struct resident *resident) {
        return resident_part(resident, RESIDENT_RESIZING, sizeof(struct resizing));
}

void resizing_order_again(struct resident *resident) {
        resizing_of(resident)->ordered = false;
}

static Capsule__ResizeOrder order_of(const Rm__Job *job, const Rm__Capsule *capsule) {
        const Rm__Resize *resize = job->resize;
        Capsule__ResizeOrder order = CAPSULE__RESIZE_ORDER__INIT;

        order.first = job_first_rank(job, capsule);
        order.ranks = capsule->ranks;
        order.active = resize->active;
        order.requested = resize->requested;
        order.epoch = resize->epoch;
        order.begun = resize->begun;
        order.freeze = job_group_may_freeze(job, capsule);
        order.end = resize->ending;
        return order;
}

static bool same_order(const Capsule__ResizeOrder *a, const Capsule__ResizeOrder *b) {
        return a->first == b->first && a->ranks == b->ranks && a->active == b->active && a->requested == b->requested &&
               a->epoch == b->epoch && a->begun == b->begun && a->freeze == b->freeze && a->end == b->end;
}

/* Does the state lack something of what the ranks have said? Words about another change than the
 * one under way are old. */
static bool is_news(const Rm__Resize *resize, const struct capsule_resize_said *said) {
        bool begun = said->begun == resize->epoch && !resize->begun, done = said->done == resize->epoch;

        return (said->listens && !resize->listens) || (said->ending && !resize->ending) ||
               (resize->requested > 0 && (begun || done));
}

static void report(struct runner *runner, struct resident *resident, const Rm__Job *job) {
        struct capsule_status status;
        Rm__CmdJobResizeReported *body;
        struct command c;

        capsule_get_status(resident_capsule(resident), &status);
        if (!is_news(job->resize, &status.resize_said))
                return;
        body = command_job_resize_reported(&c, job->id, job->attempt);
        body->listens = status.resize_said.listens;
        body->begun = status.resize_said.begun;
        body->done = status.resize_said.done;
        body->ranks = status.resize_said.ranks;
        body->ending = status.resize_said.ending;
        runner_propose(runner, resident, &c.command);
}

static bool is_first_parked(const Rm__Job *job, const Rm__Capsule *capsule) {
        const Rm__Capsule *before = job_capsule(job, capsule->index - 1);

        return job_group_may_freeze(job, capsule) && before && !job_group_parked(job, before);
}

/* A program that knows nothing of librmrt runs all its ranks: whoever shares cores with them is to
 * find out why. */
static void report_awake(struct runner *runner, const struct resident *resident, const Rm__Job *job, const Rm__Capsule *capsule) {
        struct resizing *resizing = resizing_of(resident);
        struct capsule_status status;
        cleanup_free char *text = NULL;
        struct command c;

        capsule_get_status(resident_capsule(resident), &status);
        if (!status.resize_said.awake || resizing->awake_reported || !is_first_parked(job, capsule))
                return;
        resizing->awake_reported = true;
        text = xasprintf("job %" PRIu64 " of %s: group %" PRId32
                         " on %s is in reserve and runs, on cores that the job does not have: "
                         "its program does not wait in rmrt_resize_point(3)",
                         job->id, job->spec->user, capsule->index, capsule->node);
        cluster_propose(runner->rmd->cluster, command_note(&c, text), NULL, NULL);
}

void resizing_apply(struct runner *runner, struct resident *resident, const Rm__Job *job, const Rm__Capsule *capsule) {
        struct resizing *resizing = resizing_of(resident);
        Capsule__ResizeOrder order = order_of(job, capsule);

        if (!resizing->ordered || !same_order(&order, &resizing->order)) {
                resizing->ordered = capsule_resize_order(resident_capsule(resident), &order) == 0;
                resizing->order = order;
        }
        report_awake(runner, resident, job, capsule);
        if (capsule->index == 0 && job_running(job))
                report(runner, resident, job);
}
