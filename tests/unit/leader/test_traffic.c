/* The reports of nodes about traffic, the leader's knowledge of it, and when it makes a round for
 * it. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <math.h>

#include "daemon/job/traffic_delta.h"
#include "daemon/leader/traffic.h"
#include "daemon/sched/move_cost.h"
#include "tests/unit/state/state_test.h"

#define SECOND UINT64_C(1000000)

struct scene {
        struct world world;
        struct traffic *traffic;
        uint64_t job;
};

/* Three groups of two ranks, running. */
static int set_up(void **state) {
        static const char *const nodes[] = { "n1", "n2", "n2" };
        static const uint32_t ranks[] = { 2, 2, 2 };
        struct scene *s = xcalloc(1, sizeof(*s));
        struct world *w = &s->world;

        world_init(w);
        assert_int_equal(join(w, "n1", 4), 0);
        assert_int_equal(join(w, "n2", 4), 0);
        s->job = (uint64_t) submit(w, 6);
        assert_int_equal(place(w, s->job, "n1", nodes, ranks, 3), 0);
        for (int32_t g = STATE_HEAD; g < 3; g++)
                assert_int_equal(ready(w, s->job, g, g <= 0 ? "n1" : "n2"), 0);
        assert_int_equal(running(w, s->job), 0);
        s->traffic = traffic_create();
        *state = s;
        return 0;
}

static int tear_down(void **state) {
        struct scene *s = *state;

        traffic_destroy(s->traffic);
        world_finish(&s->world);
        free(s);
        return 0;
}

/* Group `from` has sent within a time: `bytes` to group `to`, and nothing else. */
static void sends(struct scene *s, int32_t from, int32_t to, uint64_t bytes, uint64_t usec) {
        Rm__Traffic report = RM__TRAFFIC__INIT;
        Rm__TrafficTo one = RM__TRAFFIC_TO__INIT;
        Rm__TrafficTo *list[] = { &one };

        report.job = s->job;
        report.capsule = from;
        report.usec = usec;
        one.capsule = to;
        one.bytes = bytes;
        report.n_to = bytes > 0;
        report.to = list;
        traffic_add(s->traffic, s->world.state, &report);
}

/* Bytes between two groups in a snapshot that is made now, for a second; -1: nothing is known of
 * the job. */
static int64_t between(const struct scene *s, uint32_t a, uint32_t b) {
        cleanup_snapshot struct snapshot *snapshot = snapshot_create();
        const struct rm_job *job;

        snapshot_add_node(snapshot, "n1", 8);
        snapshot_add_job(snapshot, "1", 6, 2);
        traffic_fill(s->traffic, s->job, SECOND, snapshot, 0);
        job = &snapshot_view(snapshot)->jobs[0];
        if (!job->traffic.offset)
                return -1;
        for (uint64_t e = job->traffic.offset[2u * a]; e < job->traffic.offset[2u * a + 1]; e++)
                if (job->traffic.peer[e] == 2 * b)
                        return (int64_t) job->traffic.bytes[e];
        return 0;
}

static void known_when_all_have_reported(void **state) {
        struct scene *s = *state;

        sends(s, 0, 1, 3000, SECOND);
        sends(s, 1, 0, 8000, 2 * SECOND);
        assert_int_equal(between(s, 0, 1), -1);
        assert_false(traffic_shifted(s->traffic, s->job, 1));
        sends(s, 2, 0, 0, SECOND);
        assert_int_equal(between(s, 0, 1), 7000);
        assert_int_equal(between(s, 1, 0), 7000);
        assert_int_equal(between(s, 0, 2), 0);
        assert_true(traffic_shifted(s->traffic, s->job, 1));
        traffic_mark(s->traffic);
        assert_false(traffic_shifted(s->traffic, s->job, 1));
}

/* The weight of traffic falls with time, to a third after TRAFFIC_MEMORY_USEC. */
static void old_traffic_fades(void **state) {
        struct scene *s = *state;

        for (int32_t g = 0; g < 3; g++)
                sends(s, g, 1, g == 0 ? 9000 * (TRAFFIC_MEMORY_USEC / SECOND) : 0, TRAFFIC_MEMORY_USEC);
        for (int i = 0; i < 3; i++)
                sends(s, 0, 1, 0, TRAFFIC_MEMORY_USEC / 3);
        assert_in_range((uint64_t) between(s, 0, 1), 3000, 3600);
}

/* The bytes that a program sends as it begins count for their time, also in a first report. */
static void a_first_burst_counts_for_its_time(void **state) {
        struct scene *s = *state;

        for (int32_t g = 0; g < 3; g++)
                sends(s, g, 1, g == 0 ? 90000 : 0, SECOND);
        sends(s, 0, 1, 0, 4 * SECOND);
        assert_in_range((uint64_t) between(s, 0, 1), 17900, 18100);
        sends(s, 0, 1, 0, 4 * SECOND);
        assert_in_range((uint64_t) between(s, 0, 1), 9900, 10100);
}

/* The amount may change, it is the ways that count. */
static void shift(void **state) {
        struct scene *s = *state;

        for (int32_t g = 0; g < 3; g++)
                sends(s, g, (g + 1) % 2, g < 2 ? 10000 : 0, SECOND);
        traffic_mark(s->traffic);
        sends(s, 0, 1, 100000, 1000 * SECOND);
        sends(s, 1, 0, 100000, 1000 * SECOND);
        assert_false(traffic_shifted(s->traffic, s->job, 1));
        sends(s, 0, 2, 100000, 1000 * SECOND);
        assert_true(traffic_shifted(s->traffic, s->job, 1));
        assert_false(traffic_shifted(s->traffic, s->job, 1000)); /* so little is not worth it */
        traffic_mark(s->traffic);
        assert_false(traffic_shifted(s->traffic, s->job, 1));
}

static void hostile_reports(void **state) {
        struct scene *s = *state;

        sends(s, -1, 0, 5, SECOND);
        sends(s, 3, 0, 5, SECOND);
        sends(s, INT32_MAX, 0, 5, SECOND);
        sends(s, INT32_MIN, 0, 5, SECOND);
        sends(s, 0, 1, 5, 0);
        s->job += 7;
        sends(s, 0, 1, 5, SECOND);
        s->job -= 7;
        assert_int_equal(between(s, 0, 1), -1);
        sends(s, 0, 0, 5, SECOND);
        sends(s, 0, -1, 5, SECOND);
        sends(s, 1, 3, 5, SECOND);
        sends(s, 1, INT32_MAX, 5, SECOND);
        sends(s, 2, 0, UINT64_MAX, 1);
        assert_in_range((uint64_t) between(s, 2, 0), 1, (uint64_t) 1 << 53);
        assert_int_equal(between(s, 0, 1), 0);
}

static void ended_jobs_are_forgotten(void **state) {
        struct scene *s = *state;

        for (int32_t g = 0; g < 3; g++)
                sends(s, g, (g + 1) % 3, 1000, SECOND);
        traffic_forget_ended(s->traffic, s->world.state);
        assert_int_equal(between(s, 0, 1), 1000);
        assert_int_equal(ends(&s->world, s->job, 0, 0, ""), 0);
        traffic_forget_ended(s->traffic, s->world.state);
        assert_int_equal(between(s, 0, 1), -1);
        assert_false(traffic_shifted(s->traffic, s->job, 1));
}

/* On a link of 1 Gbit/s, within ten minutes: a group that stands still for a second must save the
 * link more than a second. */
static void worth_of_bytes(void **state) {
        int64_t bytes = move_cost_bytes(125000000, 600 * SECOND);

        (void) state;
        assert_int_equal(bytes, 12500000);
        assert_in_range((move_cost(SECOND, 600 * SECOND) - MOVE_COST_BASE) * bytes, 125000000, 125000000);
        assert_int_equal(move_cost_bytes(0, 600 * SECOND), 1);
        assert_int_equal(move_cost_bytes(125000000, 0), 1);
        assert_int_equal(move_cost_bytes(UINT64_MAX, UINT64_MAX), INT64_C(1) << 32);
}

/* ---- many groups: the same as by looking at all of them ---- */

enum { MANY = 2000, PARTNERS = 60, ROUNDS = 3 };

static uint32_t draw(uint64_t *random, uint32_t n) {
        *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t) (*random >> 33) % n;
}

/* A job of that many groups of one rank, as it stands in the state. */
static Rm__Job *add_large_job(Rm__State *state) {
        Rm__Job *job = xcalloc(1, sizeof(*job));

        rm__job__init(job);
        job->id = 99;
        job->state = RM__JOB_STATE__JOB_RUNNING;
        for (int32_t i = STATE_HEAD; i < MANY; i++) {
                Rm__Capsule *capsule = xcalloc(1, sizeof(*capsule));

                rm__capsule__init(capsule);
                capsule->index = i;
                capsule->address = (uint32_t) (i + 7);
                job->capsules = xrealloc(job->capsules, (job->n_capsules + 1) * sizeof(Rm__Capsule *));
                job->capsules[job->n_capsules++] = capsule;
        }
        state->jobs = xrealloc(state->jobs, (state->n_jobs + 1) * sizeof(Rm__Job *));
        state->jobs[state->n_jobs++] = job;
        return job;
}

/* Gives the report of a group in a round (0 ...), which tells of others in any order, some
 * twice. */
static void report_many(struct scene *s, int round, int32_t from, uint64_t *random, double *rates) {
        Rm__Traffic report = RM__TRAFFIC__INIT;
        Rm__TrafficTo to[PARTNERS], *list[PARTNERS];
        double weight = fmax(1 - exp(-(double) SECOND / TRAFFIC_MEMORY_USEC), 1.0 / (round + 1));

        report.job = 99;
        report.capsule = from;
        report.usec = SECOND;
        report.n_to = PARTNERS;
        report.to = list;
        for (int32_t i = 0; i < MANY; i++)
                rates[i] *= 1 - weight;
        for (uint32_t k = 0; k < PARTNERS; k++) {
                rm__traffic_to__init(&to[k]);
                to[k].capsule = k % 10 == 9 ? to[k - 1].capsule : (int32_t) draw(random, MANY);
                to[k].bytes = 100000 + draw(random, 1000000);
                list[k] = &to[k];
                if (to[k].capsule != from)
                        rates[to[k].capsule] += weight * (double) to[k].bytes;
        }
        traffic_add(s->traffic, s->world.state, &report);
}

static uint64_t bytes_in(const struct rm_job *job, uint32_t from, uint32_t to) {
        for (uint64_t e = job->traffic.offset[from]; e < job->traffic.offset[from + 1]; e++)
                if (job->traffic.peer[e] == to)
                        return job->traffic.bytes[e];
        return 0;
}

static void as_expected(const struct rm_job *job, double *const *rates) {
        for (uint32_t a = 0; a < MANY; a += 37)
                for (uint32_t b = 0; b < MANY; b++) {
                        uint64_t expected = a == b ? 0 : (uint64_t) rates[a][b] + (uint64_t) rates[b][a];
                        uint64_t have = bytes_in(job, a, b);

                        if (have + 2 < expected || have > expected + 2)
                                fail_msg("between %u and %u: %" PRIu64 " instead of %" PRIu64, a, b, have, expected);
                }
}

static void many_groups(void **state) {
        struct scene *s = *state;
        cleanup_snapshot struct snapshot *snapshot = snapshot_create();
        double **rates = xcalloc(MANY, sizeof(*rates));
        uint64_t random = 7;

        (void) add_large_job(s->world.state);
        for (int32_t i = 0; i < MANY; i++)
                rates[i] = xcalloc(MANY, sizeof(**rates));
        for (int round = 0; round < ROUNDS; round++)
                for (int32_t i = 0; i < MANY; i++)
                        report_many(s, round, i, &random, rates[i]);
        snapshot_add_node(snapshot, "n1", 8);
        snapshot_add_job(snapshot, "99", MANY, 1);
        traffic_fill(s->traffic, 99, SECOND, snapshot, 0);
        assert_non_null(snapshot_view(snapshot)->jobs[0].traffic.offset);
        as_expected(&snapshot_view(snapshot)->jobs[0], rates);
        for (int32_t i = 0; i < MANY; i++)
                free(rates[i]);
        free(rates);
}

/* The report of a node about its groups: with addresses of the head, of no group, once or twice, in
 * any order. */
static void ways_of_many_groups(void **state) {
        enum { FLOWS = MANY + 100 };
        struct scene *s = *state;
        const Rm__Job *job = add_large_job(s->world.state);
        const struct config config = { .network = 0x0ac90000 };
        cleanup_free struct capsule_flow *before = xcalloc(FLOWS, sizeof(*before));
        cleanup_free struct capsule_flow *now = xcalloc(FLOWS, sizeof(*now));
        cleanup_free struct traffic_sent *ways = xcalloc(FLOWS, sizeof(*ways));
        uint64_t random = 3;
        size_t n, next = 0;

        for (size_t i = 0; i < FLOWS; i++) {
                before[i] = (struct capsule_flow) { htonl(config.network + draw(&random, FLOWS)), draw(&random, 1000) };
                now[i] = (struct capsule_flow) { htonl(config.network + draw(&random, FLOWS)), draw(&random, 1000) };
        }
        n = traffic_delta(&config, job, before, FLOWS, now, FLOWS, ways);
        for (size_t i = 0; i < FLOWS; i++) {
                int64_t group = (int64_t) ntohl(now[i].address) - config.network - 7;
                uint64_t bytes = now[i].sent_bytes;
                size_t k = 0;

                while (k < FLOWS && before[k].address != now[i].address)
                        k++;
                if (k < FLOWS && bytes >= before[k].sent_bytes)
                        bytes -= before[k].sent_bytes;
                if (group < 0 || group >= MANY || bytes == 0)
                        continue;
                assert_true(next < n);
                assert_int_equal(ways[next].to, group);
                assert_int_equal(ways[next++].bytes, bytes);
        }
        assert_int_equal(next, n);
        assert_in_range(n, MANY / 2, FLOWS);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(known_when_all_have_reported, set_up, tear_down),
                cmocka_unit_test_setup_teardown(old_traffic_fades, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_first_burst_counts_for_its_time, set_up, tear_down),
                cmocka_unit_test_setup_teardown(shift, set_up, tear_down),
                cmocka_unit_test_setup_teardown(hostile_reports, set_up, tear_down),
                cmocka_unit_test_setup_teardown(ended_jobs_are_forgotten, set_up, tear_down),
                cmocka_unit_test_setup_teardown(many_groups, set_up, tear_down),
                cmocka_unit_test_setup_teardown(ways_of_many_groups, set_up, tear_down),
                cmocka_unit_test(worth_of_bytes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
