#include "daemon/job/core_report.h"

#include <string.h>

#include "common/timer.h"
#include "common/util.h"
#include "daemon/job/runner_internal.h"
#include "daemon/node/core_time.h"
#include "daemon/peers/peer_message.h"

#define REPORT_USEC 2000000U
/* A report looks at so many processes of all groups at most: each takes 20 us, in which the loop
 * does nothing else. */
#define PROCESSES_MAX 2000U

/* The last look at a group. */
struct last {
        uint64_t at_usec; /* monotonic; 0: it was not, or shared no core then */
        struct core_time time;
};

static struct last *last_of(const struct resident *resident) {
        return resident_part(resident, RESIDENT_CORE_REPORT, sizeof(struct last));
}

/* Are there more ranks than cores that may be used? Otherwise there is nothing to tell. */
static bool ranks_share_cores(const struct runner *runner) {
        const struct cluster *cluster = runner->rmd->cluster;
        const Rm__Node *self = state_node(cluster_state(cluster), cluster_self(cluster));

        return self && state_node_ranks(cluster_index(cluster), self->name, NULL) > node_usable_cores(self);
}

static void send_report(const struct runner *runner, const struct resident *resident, const struct core_time *now) {
        const struct last *last = last_of(resident);
        const char *leader = cluster_leader(runner->rmd->cluster);
        Rm__CoreShare share = RM__CORE_SHARE__INIT;

        /* A sum has fallen, so a process of the group has ended: what it used is in the sums no
         * more. */
        if (!leader || now->ran_usec < last->time.ran_usec || now->waited_usec < last->time.waited_usec)
                return;
        share.job = resident_job(resident);
        share.capsule = resident_index(resident);
        share.usec = now_usec() - last->at_usec;
        share.ran_usec = now->ran_usec - last->time.ran_usec;
        share.waited_usec = now->waited_usec - last->time.waited_usec;
        (void) cluster_send(runner->rmd->cluster, leader, &PEER_MESSAGE(&share)); /* lost: the next one follows */
}

static void report(const struct runner *runner, const struct resident *resident, size_t most) {
        cleanup_free char *cgroup = capsule_payload_cgroup(resident_capsule(resident));
        cleanup_free char *procs_file = xasprintf("%s/cgroup.procs", cgroup);
        struct last *last = last_of(resident);
        struct core_time now;

        if (core_time_read(procs_file, most, &now) < 0) {
                last->at_usec = 0;
                return;
        }
        if (last->at_usec > 0)
                send_report(runner, resident, &now);
        *last = (struct last) { now_usec(), now };
}

static void on_report(evutil_socket_t fd, short what, void *arg) {
        struct runner *runner = arg;
        bool share = ranks_share_cores(runner);
        size_t n = 1;

        for (const struct resident *l = LIST_FIRST(&runner->residents); l; l = resident_next_of(l))
                n++;
        timer_arm(runner->core_report, REPORT_USEC);
        for (struct resident *l = LIST_FIRST(&runner->residents); l; l = resident_next_of(l)) {
                if (share && resident_index(l) != STATE_HEAD && resident_is_live(l) &&
                    capsule_phase(resident_capsule(l)) == CAPSULE_RUNNING)
                        report(runner, l, PROCESSES_MAX / n + 1);
                else
                        last_of(l)->at_usec = 0;
        }
}

void core_report_start(struct runner *runner) {
        runner->core_report = evtimer_new(runner->rmd->base, on_report, runner);
        timer_arm(runner->core_report, REPORT_USEC);
}

void core_report_stop(struct runner *runner) {
        event_free(runner->core_report);
}
