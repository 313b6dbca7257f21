/* The capsules by the log, and the invariants of those that run: of each only the copy runs
 * that the log names, and only one at a time. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/state/state.h"
#include "tests/sim/capsules_internal.h"

static struct named *find_named(const struct capsules *c, uint64_t job, int32_t index) {
        struct named *named;

        LIST_FOREACH (named, &c->named, entry)
                if (named->job == job && named->index == index)
                        return named;
        return NULL;
}

static void check_alone(const struct copy *copy) {
        const struct copy *other;

        LIST_FOREACH (other, &copy->world->copies, entry)
                if (other != copy && other->job == copy->job && other->index == copy->index && copy_runs(other))
                        checks_fail(copy->world->checks,
                                    "capsule %" PRId32 " of job %" PRIu64 " runs on %s (incarnation %" PRIu64
                                    ") and on %s (%" PRIu64 ")",
                                    copy->index, copy->job, host_name(copy->host), copy->incarnation, host_name(other->host),
                                    other->incarnation);
}

static void check_named(const struct copy *copy) {
        const struct named *named = find_named(copy->world, copy->job, copy->index);

        if (!named || named->incarnation != copy->incarnation)
                checks_fail(copy->world->checks,
                            "capsule %" PRId32 " of job %" PRIu64 " runs on %s as incarnation %" PRIu64
                            ", and by the log it is %" PRIu64,
                            copy->index, copy->job, host_name(copy->host), copy->incarnation, named ? named->incarnation : 0);
}

void named_check(const struct copy *copy) {
        check_alone(copy);
        check_named(copy);
}

uint32_t named_attempt(const struct copy *copy) {
        const struct named *named = find_named(copy->world, copy->job, copy->index);

        return named && named->incarnation == copy->incarnation ? named->attempt : 0;
}

void named_finish(struct capsules *c) {
        struct named *named;

        while ((named = LIST_FIRST(&c->named))) {
                LIST_REMOVE(named, entry);
                free(named);
        }
}

/* ---- what the log says ---- */

/* `attempt` 0: as it was. */
static void name(struct capsules *c, uint64_t job, int32_t index, uint64_t incarnation, uint32_t attempt) {
        struct named *named = find_named(c, job, index);

        if (!named) {
                named = xcalloc(1, sizeof(*named));
                named->job = job;
                named->index = index;
                LIST_INSERT_HEAD(&c->named, named, entry);
        }
        named->incarnation = incarnation;
        if (attempt > 0)
                named->attempt = attempt;
}

static void see_placed(struct capsules *c, const Rm__Job *job) {
        for (size_t i = 0; job && i < job->n_capsules; i++)
                name(c, job->id, job->capsules[i]->index, job->capsules[i]->incarnation, job->attempt);
}

static void see_moved(struct capsules *c, const Rm__State *state, uint64_t id) {
        const Rm__Move *move = state_move(state, id);

        if (move)
                name(c, move->job, move->capsule, move->incarnation, 0);
}

/* No copy of a job that may start again runs once it is told gone. */
static void see_gone(struct capsules *c, const Rm__State *state, const Rm__CmdCapsuleGone *gone) {
        const Rm__Job *job = state_job(state, gone->job);
        const struct copy *copy;

        LIST_FOREACH (copy, &c->copies, entry)
                if (job && job_wants_restart(job->spec) && copy->job == gone->job && copy->index == gone->capsule &&
                    copy->incarnation == gone->incarnation && strcmp(host_name(copy->host), gone->node) == 0 && copy_runs(copy))
                        checks_fail(c->checks, "%s has told that capsule %s is gone, and it runs", gone->node, copy->id);
}

void capsules_applied(struct capsules *c, const Rm__State *state, const Rm__Command *command, const struct state_result *result) {
        if (state->index <= c->index)
                return;
        c->index = state->index;
        if (result->error.code < 0 || result->repeated)
                return;
        if (command->body_case == RM__COMMAND__BODY_JOB_PLACE)
                see_placed(c, state_job(state, command->job_place->job));
        else if (command->body_case == RM__COMMAND__BODY_MOVE_COMMIT)
                see_moved(c, state, command->move_commit->move);
        else if (command->body_case == RM__COMMAND__BODY_CAPSULE_GONE)
                see_gone(c, state, command->capsule_gone);
}

const char *capsules_unsettled(struct capsules *c, const Rm__State *state) {
        static char text[128];
        const struct copy *copy;

        LIST_FOREACH (copy, &c->copies, entry) {
                const Rm__Job *job = state_job(state, copy->job);
                const Rm__Capsule *capsule = job ? job_capsule(job, copy->index) : NULL;

                if (capsule && job_running(job) && capsule->incarnation == copy->incarnation &&
                    strcmp(capsule->node, host_name(copy->host)) == 0)
                        continue;
                (void) snprintf(text, sizeof(text), "capsule %s is still on %s", copy->id, host_name(copy->host));
                return text;
        }
        return NULL;
}

const char *capsules_frozen(const struct capsules *c, uint64_t usec) {
        static char text[128];
        const struct copy *copy;

        LIST_FOREACH (copy, &c->copies, entry)
                if (!copy->dead && copy->frozen_usec > 0 && timeline_now_usec(c->timeline) - copy->frozen_usec > usec) {
                        (void) snprintf(text, sizeof(text), "capsule %s has stood still on %s for too long", copy->id,
                                        host_name(copy->host));
                        return text;
                }
        return NULL;
}
