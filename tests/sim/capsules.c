#include "tests/sim/capsules.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/util.h"
#include "daemon/cluster/lease.h"
#include "daemon/cluster/state.h"
#include "daemon/job/fence.h"

struct copy {
        struct host *host;
        uint64_t job, incarnation;
        int32_t index;
        bool ran;
        uint64_t end_usec; /* of the lease that PID 1 was told of; 0: of none */
        LIST_ENTRY(copy) entry;
};

struct capsules {
        struct timeline *timeline;
        struct checks *checks;
        uint64_t n_ran;
        LIST_HEAD(, copy) list;
};

struct capsules *capsules_create(struct timeline *t, struct checks *checks) {
        struct capsules *c = xcalloc(1, sizeof(*c));

        c->timeline = t;
        c->checks = checks;
        LIST_INIT(&c->list);
        return c;
}

static void copy_remove(struct copy *copy) {
        LIST_REMOVE(copy, entry);
        free(copy);
}

void capsules_destroy(struct capsules *c) {
        if (!c)
                return;
        while (!LIST_EMPTY(&c->list))
                copy_remove(LIST_FIRST(&c->list));
        free(c);
}

bool capsules_of(const Rm__Job *job) {
        return job->spec->on_node_loss == STATE_LOSS_RESTART;
}

static struct copy *find(const struct capsules *c, const struct host *host, uint64_t incarnation) {
        struct copy *copy;

        LIST_FOREACH (copy, &c->list, entry)
                if (copy->host == host && copy->incarnation == incarnation)
                        return copy;
        return NULL;
}

bool capsules_exist(const struct capsules *c, const struct host *host, uint64_t incarnation) {
        return find(c, host, incarnation) != NULL;
}

/* It is to run on this host. */
static bool is_named(const Rm__Job *job, const Rm__Capsule *capsule, const struct host *host) {
        return job && capsule && job_running(job) && capsule->state != RM__CAPSULE_STATE__CAPSULE_GONE &&
               strcmp(capsule->node, host_name(host)) == 0;
}

static bool copy_named(const struct copy *copy, const Rm__State *state) {
        const Rm__Job *job = state_job(state, copy->job);
        const Rm__Capsule *capsule = job ? job_capsule(job, copy->index) : NULL;

        return is_named(job, capsule, copy->host) && capsule->incarnation == copy->incarnation;
}

static void make(struct capsules *c, struct host *host, const Rm__Job *job, const Rm__Capsule *capsule) {
        struct copy *copy = xcalloc(1, sizeof(*copy));

        *copy = (struct copy) { .host = host, .job = job->id, .index = capsule->index, .incarnation = capsule->incarnation };
        LIST_INSERT_HEAD(&c->list, copy, entry);
}

void capsules_see(struct capsules *c, struct host *host, const Rm__State *state) {
        struct copy *copy, *next;

        for (copy = LIST_FIRST(&c->list); copy; copy = next) {
                next = LIST_NEXT(copy, entry);
                if (copy->host == host && !copy_named(copy, state))
                        copy_remove(copy);
        }
        for (size_t i = 0; i < state->n_jobs; i++)
                for (size_t k = 0; capsules_of(state->jobs[i]) && k < state->jobs[i]->n_capsules; k++)
                        if (is_named(state->jobs[i], state->jobs[i]->capsules[k], host) &&
                            !find(c, host, state->jobs[i]->capsules[k]->incarnation))
                                make(c, host, state->jobs[i], state->jobs[i]->capsules[k]);
}

/* PID 1 takes as long to freeze it as it may. */
static bool runs(const struct copy *copy) {
        return copy->end_usec == UINT64_MAX ||
               (copy->end_usec > 0 && host_monotonic_usec(copy->host) < copy->end_usec + LEASE_FENCE_USEC);
}

static void check_alone(struct capsules *c, const struct copy *copy) {
        const struct copy *other;

        LIST_FOREACH (other, &c->list, entry)
                if (other != copy && other->job == copy->job && other->index == copy->index && runs(other))
                        checks_fail(c->checks,
                                    "capsule %" PRId32 " of job %" PRIu64 " runs on %s (incarnation %" PRIu64
                                    ") and on %s (%" PRIu64 ")",
                                    copy->index, copy->job, host_name(copy->host), copy->incarnation, host_name(other->host),
                                    other->incarnation);
}

void capsules_lease(struct capsules *c, struct host *host, const Rm__State *state, uint64_t end_usec) {
        struct copy *copy;

        LIST_FOREACH (copy, &c->list, entry) {
                const struct fence_view view = { .synced = true,
                                                 .belongs = copy->host == host && copy_named(copy, state),
                                                 .can_fence = true,
                                                 .lease_usec = end_usec,
                                                 .told_usec = copy->end_usec };

                if (fence_due(&view) != FENCE_RENEW)
                        continue;
                if (end_usec <= host_monotonic_usec(host)) { /* it stands still, or does so soon */
                        if (copy->end_usec == UINT64_MAX)
                                copy->end_usec = host_monotonic_usec(host);
                        continue;
                }
                if (!runs(copy))
                        timeline_trace(c->timeline, host_name(host),
                                       "runs capsule %" PRId32 " of job %" PRIu64 ", incarnation %" PRIu64, copy->index, copy->job,
                                       copy->incarnation);
                c->n_ran += !copy->ran;
                copy->ran = true;
                copy->end_usec = end_usec;
                check_alone(c, copy);
        }
}

uint64_t capsules_count(const struct capsules *c) {
        return c->n_ran;
}
