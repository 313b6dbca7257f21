/*
 * Snapshots from arbitrary bytes; what is accepted must survive writing, reading again, and a whole
 * round. Input that does not begin as JSON drives a generator of snapshots that are nearly right:
 * bytes alone seldom get past the parser of JSON.
 */
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/sched/round.h"
#include "daemon/sched/snapshot.h"
#include "placement/pack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

static void check(bool holds) {
        if (!holds)
                abort();
}

static char *snapshot_text(const struct rm_snapshot *snapshot) {
        json_t *json = snapshot_to_json(snapshot);
        char *text = json_dumps(json, JSON_COMPACT);

        json_decref(json);
        check(text != NULL);
        return text;
}

static void write_and_read(const struct rm_snapshot *snapshot) {
        cleanup_free char *text = snapshot_text(snapshot), *text_again = NULL;
        struct snapshot *again = NULL;

        check(snapshot_parse(text, strlen(text), &again, NULL) == 0);
        text_again = snapshot_text(snapshot_view(again));
        check(strcmp(text, text_again) == 0);
        snapshot_destroy(again);
}

/* Time limits, measured moves and steps, and spare nodes, made up from what is there. */
static struct round_job *any_round_jobs(const struct rm_snapshot *snapshot, int32_t *spares, uint64_t *move_usec) {
        struct round_job *jobs = xcalloc(snapshot->n_jobs + 1u, sizeof(*jobs));

        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                const struct rm_job *job = &snapshot->jobs[j];
                bool odd = job->ranks % 2;

                spares[j] = snapshot->n_nodes > 0 ? (int32_t) (job->ranks % snapshot->n_nodes) : RM_NO_NODE;
                jobs[j] = (struct round_job) { .head_node = RM_NO_NODE,
                                               .head_moving_to = RM_NO_NODE,
                                               .left_usec = odd ? 0 : 1 + job->age,
                                               .spares = job->age % 3,
                                               .n_spare_nodes = odd && job->groups[0].node >= 0,
                                               .spare_nodes = &spares[j],
                                               .group_move_usec = odd ? NULL : move_usec,
                                               .steps = { .own_rate = job->age % 7,
                                                          .shared_rate = job->age % 5,
                                                          .shared_by = 1 + job->age % 3,
                                                          .left = job->age % 11,
                                                          .goal_min = job->age % 4,
                                                          .goal_max = job->age % 6 } };
        }
        return jobs;
}

static void one_round(const struct rm_snapshot *snapshot) {
        cleanup_free int32_t *spares = xcalloc(snapshot->n_jobs + 1u, sizeof(*spares));
        cleanup_free uint64_t *move_usec = xcalloc(10000, sizeof(*move_usec));
        cleanup_free struct round_job *jobs = any_round_jobs(snapshot, spares, move_usec);
        struct round_result *result;
        struct round *round = NULL;
        struct rm_error err = { 0 };

        for (uint32_t i = 0; i < 10000; i++)
                move_usec[i] = i % 5;
        if (round_create(snapshot, jobs, &round, &err) < 0) {
                check(err.text[0] != '\0');
                return;
        }
        for (uint32_t pass = 0; pass < round_passes(round); pass++) {
                const struct rm_snapshot *asked = round_prepare(round, pass);
                cleanup_plan struct rm_plan *plan = plan_create(asked);
                struct pack pack;

                check(pack_init(&pack, asked, plan) == 0);
                if (pack_running(&pack, NULL, NULL) == 0 && pack_waiting(&pack, true) == 0)
                        check(round_accept(round, pass, "fuzz", plan, &err) == 0);
                else
                        round_skip(round, pass, "no room");
                pack_finish(&pack);
        }
        round_finish(round, &result);
        round_result_destroy(result);
        round_destroy(round);
}

/* ---- the generator ---- */

struct bytes {
        const uint8_t *at;
        size_t left;
};

/* 0 .. n-1; 0 when the input is used up, so that everything ends. */
static unsigned take(struct bytes *bytes, unsigned n) {
        if (bytes->left == 0)
                return 0;
        bytes->left--;
        return *bytes->at++ % n;
}

static json_t *any_number(struct bytes *bytes) {
        static const json_int_t odd[] = { -1, 0, INT64_C(1) << 53, (INT64_C(1) << 53) + 1, INT64_MAX, INT64_MIN, 1 << 20, 1000000 };

        switch (take(bytes, 24)) {
        case 1:
                return json_integer(odd[take(bytes, 8)]);
        case 2:
                return json_real(1.5);
        case 3:
                return json_null();
        default:
                return json_integer(take(bytes, 12));
        }
}

static json_t *any_name(struct bytes *bytes, const char *letter) {
        return take(bytes, 30) == 1 ? any_number(bytes) : json_sprintf("%s%u", letter, take(bytes, 6));
}

static json_t *any_names(struct bytes *bytes) {
        json_t *names = json_array();

        for (unsigned n = take(bytes, 4); n > 0; n--)
                json_array_append_new(names, any_name(bytes, "s"));
        return names;
}

static json_t *any_node(struct bytes *bytes, unsigned i) {
        static const char *const states[] = { "IDLE", "DRAINING", "DOWN", "MIXED", "?" };
        json_t *node = json_object();

        json_object_set_new(node, "name", take(bytes, 20) ? json_sprintf("n%u", i) : any_name(bytes, "n"));
        json_object_set_new(node, "cores", any_number(bytes));
        json_object_set_new(node, "penalty", any_number(bytes));
        if (take(bytes, 3) == 1)
                json_object_set_new(node, "state", json_string(states[take(bytes, 5)]));
        if (take(bytes, 4) == 1)
                json_object_set_new(node, "switch", any_names(bytes));
        return node;
}

static json_t *any_placed(struct bytes *bytes) {
        json_t *runs = json_array();

        for (unsigned n = take(bytes, 5); n > 0; n--) {
                json_t *run = json_object();

                json_object_set_new(run, "node", take(bytes, 8) == 1 ? json_null() : any_name(bytes, "n"));
                json_object_set_new(run, "ranks", any_number(bytes));
                if (take(bytes, 6) == 1)
                        json_object_set_new(run, "pinned", json_true());
                json_array_append_new(runs, run);
        }
        return runs;
}

static json_t *any_traffic(struct bytes *bytes) {
        json_t *triples = json_array();

        for (unsigned n = take(bytes, 5); n > 0; n--) {
                json_t *triple = json_array();

                for (int i = 0; i < 3; i++)
                        json_array_append_new(triple, any_number(bytes));
                json_array_append_new(triples, triple);
        }
        return triples;
}

static json_t *any_job(struct bytes *bytes, unsigned i) {
        json_t *job = json_object();

        json_object_set_new(job, "name", take(bytes, 20) ? json_sprintf("j%u", i) : any_name(bytes, "j"));
        json_object_set_new(job, "ranks", any_number(bytes));
        json_object_set_new(job, "priority", any_number(bytes));
        if (take(bytes, 2) == 1)
                json_object_set_new(job, "group_size", any_number(bytes));
        if (take(bytes, 2) == 1)
                json_object_set_new(job, "placed", any_placed(bytes));
        if (take(bytes, 3) == 1)
                json_object_set_new(job, "move_cost", any_number(bytes));
        if (take(bytes, 4) == 1)
                json_object_set_new(job, "age", any_number(bytes));
        if (take(bytes, 4) == 1)
                json_object_set_new(job, "traffic", any_traffic(bytes));
        if (take(bytes, 3) == 1)
                json_object_set_new(job, "time_limit_usec", any_number(bytes));
        if (take(bytes, 4) == 1)
                json_object_set_new(job, "policy", any_name(bytes, "p"));
        if (take(bytes, 3) == 1) {
                json_t *map = json_object();

                for (unsigned n = take(bytes, 4); n > 0; n--) {
                        char name[8];

                        (void) snprintf(name, sizeof(name), "n%u", take(bytes, 6));
                        json_object_set_new(map, name, any_number(bytes));
                }
                json_object_set_new(job, "availability", map);
        }
        return job;
}

static char *any_snapshot(struct bytes *bytes) {
        json_t *nodes = json_array(), *jobs = json_array(), *root;
        unsigned n_nodes = take(bytes, 6), n_jobs = take(bytes, 7);
        char *text;

        for (unsigned i = 0; i < n_nodes; i++)
                json_array_append_new(nodes, any_node(bytes, i));
        for (unsigned i = 0; i < n_jobs; i++)
                json_array_append_new(jobs, any_job(bytes, i));
        root = json_pack("{s:i, s:{s:b}, s:o, s:o}", "version", 1, "params", "backfill", (int) take(bytes, 2), "nodes", nodes,
                         "jobs", jobs);
        text = json_dumps(root, JSON_COMPACT);
        json_decref(root);
        check(text != NULL);
        return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
        struct bytes bytes = { data, size_bytes };
        bool as_it_is = size_bytes == 0 || data[0] == '{' || data[0] == '[';
        cleanup_free char *text = as_it_is ? NULL : any_snapshot(&bytes);
        struct snapshot *snapshot = NULL;
        struct rm_error err = { 0 };
        uint64_t ranks = 0;

        if (snapshot_parse(text ? text : (const char *) data, text ? strlen(text) : size_bytes, &snapshot, &err) < 0) {
                check(err.text[0] != '\0');
                return 0;
        }
        for (uint32_t j = 0; j < snapshot_view(snapshot)->n_jobs; j++)
                ranks += snapshot_view(snapshot)->jobs[j].ranks;
        if (ranks < 10000) { /* larger ones are right as well, but take their time */
                write_and_read(snapshot_view(snapshot));
                one_round(snapshot_view(snapshot));
                snapshot_params(snapshot)->backfill = ROUND_BACKFILL_LIMITS;
                one_round(snapshot_view(snapshot));
        }
        snapshot_destroy(snapshot);
        return 0;
}
