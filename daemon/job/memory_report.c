#include "daemon/job/memory_report.h"

#include <stdlib.h>
#include <string.h>

#include "common/timer.h"
#include "common/util.h"
#include "daemon/job/limits.h"
#include "daemon/job/pages_test.h"
#include "daemon/job/runner_internal.h"
#include "daemon/metrics/metrics.h"
#include "daemon/node/memory_use.h"
#include "daemon/node/topology.h"
#include "daemon/peers/peer_message.h"

/* Programs take memory in seconds, and a leader that has just been elected soon knows. */
#define REPORT_USEC 2000000U
/* A node without groups reports so rarely, or when its memory has changed by so much. */
#define QUIET_REPORT_USEC UINT64_C(30000000)
#define QUIET_STEP_BYTES (UINT64_C(16) << 20)

void memory_report_read(const struct resident *resident, size_t most, struct memory_report_use *ret) {
        cleanup_free char *cgroup = capsule_payload_cgroup(resident_capsule(resident));
        const char *charged = capsule_memory_cgroup(resident_capsule(resident));

        *ret = (struct memory_report_use) { .memory_bytes = memory_use_processes(cgroup, charged, most) };
        for (const char *const *mount = capsule_tmpfs_mounts; *mount; mount++) {
                cleanup_free char *path = xasprintf("%s%s", capsule_root(resident_capsule(resident)), *mount);

                ret->files_bytes += memory_use_files(path);
        }
}

uint64_t memory_report_capacity(const struct memory_report_node *node, uint64_t offered) {
        uint64_t reserve = limits_reserve(node->total), all, left;

        if (offered == UINT64_MAX || node->available == UINT64_MAX)
                return UINT64_MAX;
        all = node->available + node->groups;
        all = all > reserve ? all - reserve : 0;
        if (offered == 0)
                return all;
        left = offered > node->heads ? offered - node->heads : 0;
        return left < all ? left : all;
}

bool memory_report_due(const struct memory_report_sent *reported, const char *leader, const Rm__NodeMemory *report,
                       uint64_t now_usec) {
        uint64_t before = reported->capacity_bytes, capacity_bytes = report->capacity_bytes;

        if (report->n_groups > 0 || reported->groups || report->pages != reported->pages || !reported->leader ||
            strcmp(reported->leader, leader) != 0 || (report->counters && report->counters->changes != reported->changes))
                return true;
        return now_usec - reported->sent_usec >= QUIET_REPORT_USEC ||
               (capacity_bytes > before ? capacity_bytes - before : before - capacity_bytes) >= QUIET_STEP_BYTES;
}

static void send_report(struct runner *runner, Rm__NodeMemory *report) {
        const char *leader = cluster_leader(runner->rmd->cluster);
        struct memory_report_sent *reported = &runner->memory_reported;
        uint64_t now = now_usec();

        if (!leader || !memory_report_due(reported, leader, report, now))
                return;
        (void) cluster_send(runner->rmd->cluster, leader, &PEER_MESSAGE(report)); /* lost: the next one follows */
        free(reported->leader);
        *reported = (struct memory_report_sent) { .leader = xstrdup(leader),
                                                  .capacity_bytes = report->capacity_bytes,
                                                  .sent_usec = now,
                                                  .groups = report->n_groups > 0,
                                                  .pages = report->pages,
                                                  .changes = report->counters->changes };
}

struct tracking {
        bool failed; /* the last try to move it away could not track its memory */
};

static struct tracking *tracking_of(const struct resident *resident) {
        return resident_part(resident, RESIDENT_MEMORY, sizeof(struct tracking));
}

void memory_report_tracked(struct resident *resident, bool tracked) {
        tracking_of(resident)->failed = !tracked;
}

static size_t count_residents(const struct runner *runner) {
        size_t n = 0;

        for (const struct resident *l = LIST_FIRST(&runner->residents); l; l = resident_next_of(l))
                n++;
        return n;
}

static Rm__GroupProgress *progress_of(const struct resident *resident) {
        Rm__GroupProgress *ret;
        struct capsule_status status;

        capsule_get_status(resident_capsule(resident), &status);
        if (status.progress.ranks == 0)
                return NULL;
        ret = xcalloc(1, sizeof(*ret));
        rm__group_progress__init(ret);
        ret->ranks = status.progress.ranks;
        ret->done = status.progress.done;
        ret->total = status.progress.total;
        ret->goal_min = status.progress.goal_min;
        ret->goal_max = status.progress.goal_max;
        ret->age_usec = now_usec() - status.progress.done_usec;
        return ret;
}

static void report(struct runner *runner) {
        size_t most = count_residents(runner);
        cleanup_free Rm__GroupMemory *groups = xcalloc(most + 1, sizeof(*groups));
        cleanup_free Rm__GroupMemory **pointers = xcalloc(most + 1, sizeof(*pointers));
        struct memory_report_node node = { .total = runner->rmd->topology->memory_bytes, .available = memory_use_available() };
        Rm__NodeMemory message = RM__NODE_MEMORY__INIT;
        Rm__NodeCounters counters = RM__NODE_COUNTERS__INIT;
        const char *why;

        message.pages = pages_test_passed(runner->rmd->pages_test, &why);
        for (const struct resident *l = LIST_FIRST(&runner->residents); l; l = resident_next_of(l)) {
                struct memory_report_use use;
                Rm__GroupMemory *group;

                if (!resident_is_live(l) || resident_origin(l) == RESIDENT_DRILL)
                        continue;
                memory_report_read(l, MEMORY_REPORT_PROCESSES_MAX / most + 1, &use);
                *(resident_index(l) == STATE_HEAD ? &node.heads : &node.groups) += use.memory_bytes + use.files_bytes;
                if (resident_index(l) == STATE_HEAD)
                        continue;
                group = pointers[message.n_groups] = &groups[message.n_groups];
                message.n_groups++;
                rm__group_memory__init(group);
                group->job = resident_job(l);
                group->capsule = resident_index(l);
                group->memory_bytes = use.memory_bytes;
                group->files_bytes = use.files_bytes;
                group->tracked = message.pages && !tracking_of(l)->failed;
                group->progress = progress_of(l);
        }
        message.groups = pointers;
        metrics_report(runner->rmd->metrics, now_usec(), &counters);
        message.counters = &counters;
        message.capacity_bytes = memory_report_capacity(&node, runner->rmd->config->memory);
        send_report(runner, &message);
        for (size_t i = 0; i < message.n_groups; i++)
                free(groups[i].progress);
}

uint64_t memory_report_space(const struct runner *runner) {
        struct memory_report_node node = { .total = runner->rmd->topology->memory_bytes, .available = memory_use_available() };
        uint64_t reserve = limits_reserve(node.total), capacity;
        size_t most = count_residents(runner);

        for (const struct resident *l = LIST_FIRST(&runner->residents); l; l = resident_next_of(l)) {
                struct memory_report_use use;

                if (!resident_is_live(l))
                        continue;
                memory_report_read(l, MEMORY_REPORT_PROCESSES_MAX / most + 1, &use);
                *(resident_index(l) == STATE_HEAD ? &node.heads : &node.groups) += use.memory_bytes + use.files_bytes;
        }
        capacity = memory_report_capacity(&node, runner->rmd->config->memory);
        capacity = capacity > node.groups ? capacity - node.groups : 0;
        node.available = node.available > reserve ? node.available - reserve : 0;
        return node.available < capacity ? node.available : capacity;
}

static void on_report(evutil_socket_t fd, short what, void *arg) {
        struct runner *runner = arg;

        timer_arm(runner->memory, REPORT_USEC);
        report(runner);
}

void runner_report_memory(struct runner *runner) {
        timer_arm(runner->memory, 0);
}

void memory_report_start(struct runner *runner) {
        runner->memory = evtimer_new(runner->rmd->base, on_report, runner);
        timer_arm(runner->memory, REPORT_USEC);
}

void memory_report_stop(struct runner *runner) {
        event_free(runner->memory);
        free(runner->memory_reported.leader);
}
