#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/job/runner_internal.h"
#include "daemon/job/ways.h"

/* What a group had sent, by address, when it was last looked at. */
struct sent {
        uint64_t at_usec; /* monotonic */
        size_t n;
        struct capsule_flow flows[];
};

/* Between asking a capsule and its answer. */
struct question {
        struct runner *runner;
        uint64_t job;
        int32_t index;
        uint64_t incarnation;
};

void traffic_forget(struct local *local) {
        free(local->sent);
        local->sent = NULL;
}

static void remember(struct local *local, const struct capsule_flow *flows, size_t n) {
        struct sent *sent = xcalloc(1, sizeof(*sent) + sizeof(*flows) * n);

        sent->at_usec = now_usec();
        sent->n = n;
        if (n > 0)
                memcpy(sent->flows, flows, sizeof(*flows) * n);
        traffic_forget(local);
        local->sent = sent;
}

static void report(struct runner *runner, const struct local *local, const struct capsule_flow *flows, size_t n) {
        const Rm__Job *job = state_job(cluster_state(runner->rmd->cluster), local->job);
        const char *leader = cluster_leader(runner->rmd->cluster);
        cleanup_free struct way_sent *ways = xcalloc(n + 1, sizeof(*ways));
        cleanup_free Rm__TrafficTo *to = xcalloc(n + 1, sizeof(*to));
        cleanup_free Rm__TrafficTo **pointers = xcalloc(n + 1, sizeof(*pointers));
        Rm__Traffic traffic = RM__TRAFFIC__INIT;
        Rm__PeerMessage message = RM__PEER_MESSAGE__INIT;

        if (job)
                traffic.n_to = ways_since(runner->rmd->config, job, local->sent->flows, local->sent->n, flows, n, ways);
        for (size_t i = 0; i < traffic.n_to; i++) {
                rm__traffic_to__init(&to[i]);
                to[i].capsule = ways[i].to;
                to[i].bytes = ways[i].bytes;
                pointers[i] = &to[i];
        }
        traffic.job = local->job;
        traffic.capsule = local->index;
        traffic.usec = now_usec() - local->sent->at_usec;
        traffic.to = pointers;
        message.body_case = RM__PEER_MESSAGE__BODY_TRAFFIC;
        message.traffic = &traffic;
        if (leader && traffic.usec > 0)
                (void) cluster_send(runner->rmd->cluster, leader, &message); /* lost: the next look tells of later bytes */
}

static void on_flows(struct capsule *capsule, int error, const char *text, const struct capsule_flow *flows, size_t n, void *arg) {
        struct question *question = arg;
        struct local *local;

        if (error == 0) {
                local = runner_copy(question->runner, question->job, question->index, question->incarnation);
                if (local && local->sent)
                        report(question->runner, local, flows, n);
                if (local)
                        remember(local, flows, n);
        } else if (error != -EBUSY && error != -ECANCELED) {
                log_debug("capsule %s: %s", capsule_id(capsule), text);
        }
        free(question);
}

/* A group that may talk to others of its job. */
static bool of_interest(const struct runner *runner, const struct local *local) {
        const Rm__Job *job = state_job(cluster_state(runner->rmd->cluster), local->job);

        return local->index != STATE_HEAD && local->ready && !local->exited && job && job->state == RM__JOB_STATE__JOB_RUNNING &&
               job->n_capsules > 2;
}

/* While it is moved it is not asked: nothing is to be in the way of the freeze. */
static void ask(struct runner *runner, struct local *local) {
        struct question *question;

        if (capsule_phase(local->capsule) != CAPSULE_RUNNING ||
            state_capsule_move(cluster_index(runner->rmd->cluster), local->job, local->index))
                return;
        question = xcalloc(1, sizeof(*question));
        *question = (struct question) { runner, local->job, local->index, local->incarnation };
        if (capsule_get_flows(local->capsule, on_flows, question) < 0)
                free(question);
}

static bool any_of_interest(const struct runner *runner) {
        for (const struct local *l = runner->locals; l; l = l->next)
                if (of_interest(runner, l))
                        return true;
        return false;
}

static void on_sample(evutil_socket_t fd, short what, void *arg) {
        struct runner *runner = arg;

        for (struct local *l = runner->locals; l; l = l->next)
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
