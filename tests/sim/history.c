#include "tests/sim/history.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/state/state.h"
#include "tests/sim/faults.h"
#include "tests/sim/node.h"

#define MAX_HOSTS 9U
/* So that their timers are not in step; the one that begins the cluster is first. */
#define START_MAX_USEC 300000U
/* The time that progress may take after the faults; an election takes one of its timeouts, a lost
 * snapshot five seconds, and each may be unlucky a few times. */
#define PROGRESS_USEC UINT64_C(10000000)
/* Until the voters are as they are to stay: each step of a change is tried again after a second, a
 * transfer after ten. */
#define SETTLE_USEC UINT64_C(40000000)
/* When the voters are settled, three of four proposals are answered within this time: two ways over
 * the network and back, and two disks, one after the other, take 2.8 ms at most. Whoever waited for
 * a heartbeat, or for a tick of raft's clock, would wait for up to 60 ms. */
#define ANSWER_USEC UINT64_C(6000)
#define ANSWERS 40U
/* When nobody asks for anything any more, all that has begun comes to its end: what runs does so
 * for up to 25 s, a move waits for up to 15 s for what does not come, and may be followed by a
 * restart. */
#define JOBS_USEC UINT64_C(120000000)

/* Nodes read their stores again after 15 s at most (daemon.c), one store after the other. */
#define COPIES_USEC UINT64_C(60000000)
/* Without faults nothing stands still for longer: 30 s until it is frozen and cut off, and the time
 * that a move or checkpoint may take then. */
#define FROZEN_USEC UINT64_C(40000000)

struct history {
        struct history_config config;
        struct timeline *timeline;
        struct checks *checks;
        struct kept *kept;
        struct capsules *capsules;
        struct movers *movers;
        struct network *network;
        struct faults *faults;
        unsigned n_voters; /* that there are to be */
        unsigned n_hosts;
        struct node *nodes[MAX_HOSTS];
        struct host *hosts[MAX_HOSTS];
        struct disk *disks[MAX_HOSTS];
        uint64_t answers_since_usec; /* 0: not yet */
        uint64_t answers_usec[ANSWERS]; /* how long each took */
        unsigned n_answers;
};

static int leader(void *userdata) {
        const struct history *h = userdata;

        for (unsigned i = 0; i < h->n_hosts; i++)
                if (node_leads(h->nodes[i]))
                        return (int) i;
        return -1;
}

static void on_change(void *userdata, unsigned number) {
        faults_delicate(((struct history *) userdata)->faults, number);
}

static void on_answer(void *userdata, uint64_t begin_usec) {
        struct history *h = userdata;

        if (h->answers_since_usec > 0 && begin_usec >= h->answers_since_usec && h->n_answers < ANSWERS)
                h->answers_usec[h->n_answers++] = timeline_now_usec(h->timeline) - begin_usec;
}

static bool may_damage(void *userdata, unsigned host) {
        const struct history *h = userdata;
        int leads = leader(userdata);

        return leads >= 0 && node_can_spare(h->nodes[leads], h->nodes, h->n_hosts, host);
}

/* The capsules of the host go with it. */
static void on_power_off(void *userdata, unsigned host) {
        struct history *h = userdata;

        capsules_lose(h->capsules, h->hosts[host]);
        node_reboot(h->nodes[host]);
}

static void on_disk_lost(void *userdata, unsigned host) {
        kept_disk_lost(((struct history *) userdata)->hosts[host]);
}

static unsigned draw_voters(struct timeline *t) {
        static const unsigned numbers[] = { 1, 3, 3, 3, 5, 5 };

        return numbers[timeline_random(t, ARRAY_SIZE(numbers))];
}

static unsigned draw_faults(const struct history *h) {
        static const unsigned numbers[] = { 2, 5, 10, 20, 40 };
        unsigned drawn = numbers[timeline_random(h->timeline, ARRAY_SIZE(numbers))];

        return h->config.n_faults < 0 ? drawn : (unsigned) h->config.n_faults;
}

static void make_hosts(struct history *h) {
        struct timeline *t = h->timeline;
        struct node_config config = { .n_hosts = h->n_hosts, .voters = h->n_voters, .on_change = on_change, .userdata = h };

        config.on_answer = on_answer;
        config.snapshot_entries = 5 + (unsigned) timeline_random(t, 60);
        config.lease_usec = timeline_random(t, 2) ? timeline_between(t, LEASE_MIN_USEC, LEASE_MAX_USEC) : 0;
        timeline_trace(t, "----", "%u nodes, %u voters, a snapshot every %u entries", h->n_hosts, h->n_voters,
                       config.snapshot_entries);
        for (unsigned i = 0; i < h->n_hosts; i++) {
                config.number = i;
                h->nodes[i] = node_create(t, h->checks, h->capsules, h->movers, &config);
                h->hosts[i] = node_host(h->nodes[i]);
                h->disks[i] = node_disk(h->nodes[i]);
                kept_add_host(h->kept, h->hosts[i]);
        }
}

static void start_host(void *userdata) {
        host_start(userdata);
}

static void begin(struct history *h) {
        struct faults_world world = { .favourite = leader, .may_damage = may_damage, .userdata = h };

        world.on_power_off = on_power_off;
        world.on_disk_lost = on_disk_lost;

        h->timeline = timeline_create(h->config.seed, h->config.trace);
        timeline_record(h->timeline, h->config.record);
        timeline_follow(h->timeline, h->config.follow);
        h->checks = checks_create(h->timeline);
        h->kept = kept_create(h->timeline, h->checks);
        h->capsules = capsules_create(h->timeline, h->checks, h->kept);
        h->movers = movers_create(h->timeline);
        h->n_voters = h->config.n_voters ? h->config.n_voters : draw_voters(h->timeline);
        h->n_hosts = h->n_voters + 1 + (unsigned) timeline_random(h->timeline, 3);
        make_hosts(h);
        h->network = network_create(h->timeline, h->hosts, h->n_hosts);
        world.timeline = h->timeline;
        world.network = h->network;
        world.hosts = h->hosts;
        world.disks = h->disks;
        world.n_victims = h->n_hosts;
        h->faults = faults_create(&world, draw_faults(h), h->config.seconds * UINT64_C(1000000));
        for (unsigned i = 0; i < h->n_hosts; i++)
                timeline_at(h->timeline, i == 0 ? 0 : timeline_random(h->timeline, START_MAX_USEC), start_host, NULL, h->hosts[i]);
}

static void end(struct history *h) {
        for (unsigned i = 0; i < h->n_hosts; i++)
                node_destroy(h->nodes[i]);
        kept_destroy(h->kept);
        capsules_destroy(h->capsules); /* what still runs in them, after a violation, has events to come */
        timeline_destroy(h->timeline);
        network_destroy(h->network);
        faults_destroy(h->faults);
        movers_destroy(h->movers);
        checks_destroy(h->checks);
}

/* A violation of something else says more than that the histories differ. */
static void check_trail(struct history *h) {
        uint64_t parted_usec = timeline_parted_usec(h->timeline);

        if (!checks_violation(h->checks) && parted_usec < UINT64_MAX)
                checks_fail(h->checks, "the same seed has given two histories: they differ from %.6f s on",
                            (double) parted_usec / 1e6);
}

static bool run_until(struct history *h, uint64_t until_usec) {
        while (!checks_violation(h->checks) && timeline_now_usec(h->timeline) < until_usec)
                if (!timeline_step(h->timeline))
                        checks_fail(h->checks, "nothing will happen any more");
        return !checks_violation(h->checks);
}

/* Every node was answered what it proposed after that time, and has applied what was acknowledged
 * at that point. */
static bool has_progressed(const struct history *h, uint64_t since_usec, uint64_t *index) {
        for (unsigned i = 0; i < h->n_hosts && *index == 0; i++)
                if (node_answered_begin_usec(h->nodes[i]) <= since_usec)
                        return false;
        if (*index == 0)
                *index = checks_last_acknowledged(h->checks);
        for (unsigned i = 0; i < h->n_hosts; i++)
                if (node_index(h->nodes[i]) < *index)
                        return false;
        return true;
}

static void check_progress(struct history *h, uint64_t *ret_usec) {
        uint64_t since_usec = timeline_now_usec(h->timeline), index = 0;

        while (!checks_violation(h->checks) && !has_progressed(h, since_usec, &index)) {
                if (timeline_now_usec(h->timeline) - since_usec > PROGRESS_USEC)
                        checks_fail(h->checks, "no progress within %" PRIu64 " s after the faults: %s", PROGRESS_USEC / 1000000,
                                    index == 0 ? "proposals are not answered" : "nodes lag behind");
                else
                        (void) timeline_step(h->timeline);
        }
        *ret_usec = timeline_now_usec(h->timeline) - since_usec;
}

static void check_voters(struct history *h) {
        uint64_t since_usec = timeline_now_usec(h->timeline);
        const char *what = "";

        while (!checks_violation(h->checks) && what) {
                int leads = leader(h);

                what = node_voters_unsettled(leads >= 0 ? h->nodes[leads] : NULL);
                if (what && timeline_now_usec(h->timeline) - since_usec > SETTLE_USEC)
                        checks_fail(h->checks, "%" PRIu64 " s after the faults: %s", SETTLE_USEC / 1000000, what);
                else
                        (void) timeline_step(h->timeline);
        }
}

static int compare_usec(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return (x > y) - (x < y);
}

static void check_answers(struct history *h, uint64_t *ret_usec) {
        h->answers_since_usec = timeline_now_usec(h->timeline);
        while (!checks_violation(h->checks) && h->n_answers < ANSWERS)
                if (timeline_now_usec(h->timeline) - h->answers_since_usec > SETTLE_USEC)
                        checks_fail(h->checks, "proposals are not answered");
                else
                        (void) timeline_step(h->timeline);
        qsort(h->answers_usec, h->n_answers, sizeof(h->answers_usec[0]), compare_usec);
        *ret_usec = h->answers_usec[h->n_answers * 3 / 4];
        if (!checks_violation(h->checks) && *ret_usec > ANSWER_USEC)
                checks_fail(h->checks, "a quarter of the proposals is answered after %" PRIu64 " us or more, without any fault",
                            *ret_usec);
}

static void describe(const Rm__Job *job, char *text, size_t bytes) {
        size_t used = (size_t) snprintf(text, bytes, "job %" PRIu64 " (attempt %" PRIu32 ") is %s (%s):", job->id, job->attempt,
                                        protobuf_c_enum_descriptor_get_value(&rm__job_state__descriptor, (int) job->state)->name,
                                        job->reason);

        for (size_t i = 0; i < job->n_capsules && used < bytes; i++)
                used += (size_t) snprintf(
                        text + used, bytes - used, " %" PRId32 ".i%" PRIu64 " on %s %s", job->capsules[i]->index,
                        job->capsules[i]->incarnation, job->capsules[i]->node,
                        protobuf_c_enum_descriptor_get_value(&rm__capsule_state__descriptor, (int) job->capsules[i]->state)->name);
}

/* Nothing begins on a node that is: of those that have a warning, too. */
static bool is_suspect(const Rm__Node *node) {
        return node_condition(node) > RM__CONDITION__CONDITION_OK;
}

static uint32_t usable_cores(const Rm__Node *node) {
        if (node->health != RM__NODE_HEALTH__NODE_HEALTH_UP || node->drain || is_suspect(node))
                return 0;
        return node->available_set && node->available_cores < node->cores ? node->available_cores : node->cores;
}

/* Each group has its cores on one node, and a job that goes on from a checkpoint has the groups of
 * that. */
static bool has_space(const Rm__State *state, const Rm__Job *job) {
        const Rm__Checkpoint *checkpoint = job_newest_checkpoint(state, job);
        uint32_t size = checkpoint ? checkpoint->group_size : job->group_size;
        uint32_t groups, space = 0;

        if (size == 0) /* it is chosen anew, as nodes are then */
                size = 1;
        if (size > job->spec->ranks)
                size = job->spec->ranks;
        groups = (job->spec->ranks + size - 1) / size;
        for (size_t i = 0; i < state->n_nodes; i++)
                space += usable_cores(state->nodes[i]) / size;
        return groups <= space;
}

/* A job that starts again, and for which there is space if nothing else runs. */
static bool is_due(const Rm__State *state, const Rm__Job *job) {
        return job->attempt > 1 && !job->held && has_space(state, job);
}

/* NULL: no job that was placed goes on, and no move; else what does. */
static const char *goes_on(const struct history *h) {
        static char text[512];
        const Rm__State *state = NULL;

        for (unsigned i = 0; i < h->n_hosts && !state; i++)
                state = node_led_state(h->nodes[i]);
        if (!state)
                return "there is no leader";
        for (size_t i = 0; i < state->n_moves; i++)
                if (state->moves[i]->state == RM__MOVE_STATE__MOVE_RUNNING ||
                    state->moves[i]->state == RM__MOVE_STATE__MOVE_COMMITTED) {
                        (void) snprintf(text, sizeof(text), "move %" PRIu64 " is not over", state->moves[i]->id);
                        return text;
                }
        for (size_t i = 0; i < state->n_jobs; i++)
                if (!job_ended(state->jobs[i]) &&
                    (state->jobs[i]->state != RM__JOB_STATE__JOB_PENDING || is_due(state, state->jobs[i]))) {
                        describe(state->jobs[i], text, sizeof(text));
                        return text;
                }
        return capsules_unsettled(h->capsules, state);
}

static void check_jobs(struct history *h, uint64_t *ret_usec) {
        uint64_t since_usec = timeline_now_usec(h->timeline);
        const char *what = "";

        for (unsigned i = 0; i < h->n_hosts; i++)
                node_rest(h->nodes[i]);
        while (!checks_violation(h->checks) && what) {
                uint64_t until_usec = timeline_now_usec(h->timeline) + 50000;

                while (!checks_violation(h->checks) && timeline_now_usec(h->timeline) < until_usec)
                        (void) timeline_step(h->timeline);
                what = goes_on(h);
                if (timeline_now_usec(h->timeline) - since_usec > FROZEN_USEC && capsules_frozen(h->capsules, FROZEN_USEC))
                        checks_fail(h->checks, "%s", capsules_frozen(h->capsules, FROZEN_USEC));
                if (what && timeline_now_usec(h->timeline) - since_usec > JOBS_USEC)
                        checks_fail(h->checks, "%" PRIu64 " s after the last request: %s", JOBS_USEC / 1000000, what);
        }
        *ret_usec = timeline_now_usec(h->timeline) - since_usec;
}

/* Copies that disks have lost are reported to the log, as nodes verify their stores now and
 * then. */
static void check_copies(struct history *h) {
        uint64_t since_usec = timeline_now_usec(h->timeline);
        const char *what = "";

        while (!checks_violation(h->checks) && what) {
                what = kept_unsettled(h->kept);
                if (what && timeline_now_usec(h->timeline) - since_usec > COPIES_USEC)
                        checks_fail(h->checks, "%" PRIu64 " s after all jobs: %s", COPIES_USEC / 1000000, what);
                else if (what)
                        (void) run_until(h, timeline_now_usec(h->timeline) + 100000);
        }
}

void history_run(const struct history_config *config, struct history_result *ret) {
        struct history h = { .config = *config };

        memset(ret, 0, sizeof(*ret));
        begin(&h);
        if (run_until(&h, config->seconds * UINT64_C(1000000)))
                check_progress(&h, &ret->recovery_usec);
        check_voters(&h);
        check_answers(&h, &ret->answer_usec);
        check_jobs(&h, &ret->jobs_usec);
        check_copies(&h);
        check_trail(&h);
        ret->violation = xstrdup(checks_violation(h.checks));
        ret->n_voters = h.n_voters;
        ret->events = timeline_count(h.timeline);
        ret->virtual_usec = timeline_now_usec(h.timeline);
        for (unsigned i = 0; i < h.n_hosts; i++)
                ret->operations += node_answered(h.nodes[i]);
        ret->changes = node_changes(h.nodes[0]);
        capsules_count(h.capsules, &ret->capsules);
        kept_count(h.kept, &ret->kept);
        ret->repeated = checks_repeated(h.checks);
        ret->resubmitted = checks_resubmitted(h.checks);
        end(&h);
}
