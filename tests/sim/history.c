#include "tests/sim/history.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "tests/sim/client.h"
#include "tests/sim/faults.h"

#define MAX_VOTERS 5U
#define N_CLIENTS 4U
#define MAX_HOSTS (MAX_VOTERS + N_CLIENTS)
/* So that their timers are not in step. */
#define START_MAX_USEC 300000U
/* After the faults; an election takes one of its timeouts, a lost snapshot two seconds, and each may be unlucky a few times. */
#define PROGRESS_USEC UINT64_C(10000000)

struct history {
        struct history_config config;
        struct timeline *timeline;
        struct checks *checks;
        struct network *network;
        struct faults *faults;
        unsigned n_voters;
        struct replica *voters[MAX_VOTERS];
        struct client *clients[N_CLIENTS];
        struct host *hosts[MAX_HOSTS];
        struct disk *disks[MAX_VOTERS];
};

static int leader(void *userdata) {
        const struct history *h = userdata;

        for (unsigned i = 0; i < h->n_voters; i++)
                if (replica_leads(h->voters[i]))
                        return (int) i;
        return -1;
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
        struct replica_config config = { .n_voters = h->n_voters, .pre_vote = timeline_random(t, 2) };

        config.snapshot_entries = 5 + (unsigned) timeline_random(t, 60);
        config.trailing_entries = 1 + (unsigned) timeline_random(t, 30);
        timeline_trace(t, "----", "%u voters, %spre-vote, a snapshot every %u entries, %u kept", h->n_voters,
                       config.pre_vote ? "" : "no ", config.snapshot_entries, config.trailing_entries);
        for (unsigned i = 0; i < h->n_voters; i++) {
                config.number = i;
                h->voters[i] = replica_create(t, h->checks, &config);
                h->hosts[i] = replica_host(h->voters[i]);
                h->disks[i] = replica_disk(h->voters[i]);
        }
        for (unsigned i = 0; i < N_CLIENTS; i++) {
                h->clients[i] = client_create(t, h->checks, h->n_voters + i, h->voters, h->n_voters);
                h->hosts[h->n_voters + i] = client_host(h->clients[i]);
        }
}

static void start_host(void *userdata) {
        host_start(userdata);
}

static void begin(struct history *h) {
        struct faults_world world = { .favourite = leader, .userdata = h };
        unsigned n_hosts;

        h->timeline = timeline_create(h->config.seed, h->config.trace);
        h->checks = checks_create(h->timeline, h->config.strict);
        h->n_voters = h->config.n_voters ? h->config.n_voters : draw_voters(h->timeline);
        n_hosts = h->n_voters + N_CLIENTS;
        make_hosts(h);
        h->network = network_create(h->timeline, h->hosts, n_hosts);
        for (unsigned i = 0; i < h->n_voters; i++)
                replica_connect(h->voters[i], h->network);
        for (unsigned i = 0; i < N_CLIENTS; i++)
                client_connect(h->clients[i], h->network);
        world.timeline = h->timeline;
        world.network = h->network;
        world.hosts = h->hosts;
        world.disks = h->disks;
        world.n_victims = h->n_voters;
        h->faults = faults_create(&world, draw_faults(h), h->config.seconds * UINT64_C(1000000));
        for (unsigned i = 0; i < n_hosts; i++)
                timeline_at(h->timeline, timeline_random(h->timeline, START_MAX_USEC), start_host, NULL, h->hosts[i]);
}

static void end(struct history *h) {
        for (unsigned i = 0; i < h->n_voters; i++)
                replica_destroy(h->voters[i]);
        for (unsigned i = 0; i < N_CLIENTS; i++)
                client_destroy(h->clients[i]);
        timeline_destroy(h->timeline);
        network_destroy(h->network);
        faults_destroy(h->faults);
        checks_destroy(h->checks);
}

static bool run_until(struct history *h, uint64_t until_usec) {
        while (!checks_violation(h->checks) && timeline_now_usec(h->timeline) < until_usec)
                if (!timeline_step(h->timeline))
                        checks_fail(h->checks, "nothing will happen any more");
        return !checks_violation(h->checks);
}

/* Every client was answered what it began to ask after that time, and every voter has applied what was acknowledged at that point. */
static bool has_progressed(const struct history *h, uint64_t since_usec, uint64_t *index) {
        for (unsigned i = 0; i < N_CLIENTS && *index == 0; i++)
                if (client_answered_begin_usec(h->clients[i]) <= since_usec)
                        return false;
        if (*index == 0)
                *index = checks_last_acknowledged(h->checks);
        for (unsigned i = 0; i < h->n_voters; i++)
                if (replica_applied(h->voters[i]) < *index)
                        return false;
        return true;
}

static void check_progress(struct history *h, uint64_t *ret_usec) {
        uint64_t since_usec = timeline_now_usec(h->timeline), index = 0;

        while (!checks_violation(h->checks) && !has_progressed(h, since_usec, &index)) {
                if (timeline_now_usec(h->timeline) - since_usec > PROGRESS_USEC)
                        checks_fail(h->checks, "no progress within %" PRIu64 " s after the faults: %s", PROGRESS_USEC / 1000000,
                                    index == 0 ? "clients are not answered" : "voters lag behind");
                else
                        (void) timeline_step(h->timeline);
        }
        *ret_usec = timeline_now_usec(h->timeline) - since_usec;
}

void history_run(const struct history_config *config, struct history_result *ret) {
        struct history h = { .config = *config };

        memset(ret, 0, sizeof(*ret));
        begin(&h);
        if (run_until(&h, config->seconds * UINT64_C(1000000)))
                check_progress(&h, &ret->recovery_usec);
        ret->violation = xstrdup(checks_violation(h.checks));
        ret->n_voters = h.n_voters;
        ret->events = timeline_count(h.timeline);
        ret->virtual_usec = timeline_now_usec(h.timeline);
        for (unsigned i = 0; i < N_CLIENTS; i++)
                ret->operations += client_answered(h.clients[i]);
        ret->repeats = checks_repeats(h.checks);
        end(&h);
}
