#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/job/runner_internal.h"
#include "daemon/job/traffic_delta.h"
#include "daemon/peers/peer_message.h"

/* The bytes that a group had sent, by address, when it was last looked at. */
struct sent {
        uint64_t at_usec; /* monotonic; 0: never */
        size_t n;
        struct capsule_flow *flows;
};

static struct sent *sent_of(const struct resident *resident) {
        return resident_part(resident, RESIDENT_TRAFFIC, sizeof(struct sent));
}

void traffic_forget(struct resident *resident) {
        free(take_ptr(sent_of(resident)->flows));
}

static void remember(struct sent *sent, const struct capsule_flow *flows, size_t n) {
        free(sent->flows);
        *sent = (struct sent) { .at_usec = now_usec(), .n = n, .flows = xcalloc(n + 1, sizeof(*flows)) };
        if (n > 0)
                memcpy(sent->flows, flows, sizeof(*flows) * n);
}

static void report(struct runner *runner, const struct resident *resident, const struct capsule_flow *flows, size_t n) {
        const Rm__Job *job = state_job(cluster_state(runner->rmd->cluster), resident_job(resident));
        const char *leader = cluster_leader(runner->rmd->cluster);
        const struct sent *before = sent_of(resident);
        cleanup_free struct traffic_sent *sent = xcalloc(n + 1, sizeof(*sent));
        cleanup_free Rm__TrafficTo *to = xcalloc(n + 1, sizeof(*to));
        cleanup_free Rm__TrafficTo **pointers = xcalloc(n + 1, sizeof(*pointers));
        Rm__Traffic traffic = RM__TRAFFIC__INIT;

        if (job)
                traffic.n_to = traffic_delta(runner->rmd->config, job, before->flows, before->n, flows, n, sent);
        for (size_t i = 0; i < traffic.n_to; i++) {
                rm__traffic_to__init(&to[i]);
                to[i].capsule = sent[i].to;
                to[i].bytes = sent[i].bytes;
                pointers[i] = &to[i];
        }
        traffic.job = resident_job(resident);
        traffic.capsule = resident_index(resident);
        traffic.usec = now_usec() - before->at_usec;
        traffic.to = pointers;
        if (leader && traffic.usec > 0)
                (void) cluster_send(runner->rmd->cluster, leader,
                                    &PEER_MESSAGE(&traffic)); /* lost: the next look tells of later bytes */
}

static void on_flows(struct capsule *capsule, int error, const char *text, const struct capsule_flow *flows, size_t n, void *arg) {
        const struct resident *resident = call_done(arg, error);

        if (error == 0 && resident) {
                if (sent_of(resident)->at_usec > 0)
                        report(resident_runner(resident), resident, flows, n);
                remember(sent_of(resident), flows, n);
        } else if (error < 0 && error != -EBUSY && error != -ECANCELED) {
                log_debug("capsule %s: %s", capsule_id(capsule), text);
        }
}

/* A group that may talk to others of its job. */
static bool of_interest(const struct runner *runner, const struct resident *resident) {
        const Rm__Job *job = state_job(cluster_state(runner->rmd->cluster), resident_job(resident));

        return resident_index(resident) != STATE_HEAD && resident_is_live(resident) && job &&
               job->state == RM__JOB_STATE__JOB_RUNNING && job->n_capsules > 2;
}

/* Asks a capsule for its traffic, but not while it is moved: nothing is to be in the way of the
 * freeze. */
static void ask(struct runner *runner, struct resident *resident) {
        struct call *call;

        if (capsule_phase(resident_capsule(resident)) != CAPSULE_RUNNING ||
            state_capsule_move(cluster_index(runner->rmd->cluster), resident_job(resident), resident_index(resident)))
                return;
        call = resident_call(resident);
        (void) call_begun(call, capsule_get_flows(resident_capsule(resident), on_flows, call));
}

static bool any_of_interest(const struct runner *runner) {
        for (const struct resident *l = LIST_FIRST(&runner->residents); l; l = resident_next_of(l))
                if (of_interest(runner, l))
                        return true;
        return false;
}

static void on_sample(evutil_socket_t fd, short what, void *arg) {
        struct runner *runner = arg;

        for (struct resident *l = LIST_FIRST(&runner->residents); l; l = resident_next_of(l))
                if (of_interest(runner, l))
                        ask(runner, l);
        traffic_wake(runner);
}

void traffic_wake(struct runner *runner) {
        uint64_t interval = runner->rmd->config->traffic_interval_usec;

        if (interval > 0 && !evtimer_pending(runner->sample, NULL) && any_of_interest(runner))
                timer_arm(runner->sample, interval);
}

void traffic_start(struct runner *runner) {
        runner->sample = evtimer_new(runner->rmd->base, on_sample, runner);
}

void traffic_stop(struct runner *runner) {
        event_free(runner->sample);
}
