/* rmctl checkpoint-job, restart-job, list-checkpoints, verify-checkpoint, remove-checkpoint */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "launcher/rmctl/checkpoint.h"
#include "launcher/rmctl/human.h"
#include "launcher/rmctl/pages.h"
#include "launcher/rmctl/verb.h"
#include "proto/json.h"

#define STORED_SHARED "*"

/* ---- what there is ---- */

static const char *state_text(Rm__CheckpointState state) {
        static const char *const texts[] = { "CAPTURING", "STORING", "DONE", "DRILLING" };

        return (size_t) state < ARRAY_SIZE(texts) ? texts[state] : "?";
}

static const char *cause_text(Rm__CheckpointCause cause) {
        static const char *const texts[] = { "-", "interval", "asked", "drain", "limit", "drill" };

        return (size_t) cause < ARRAY_SIZE(texts) ? texts[cause] : "?";
}

/* The sums over all parts. */
struct sum {
        uint64_t raw_bytes;
        uint64_t stored_bytes;
        uint64_t store_usec; /* of the slowest */
        size_t n_stored;     /* parts that at least one place has */
};

static struct sum sum_of(const Rm__Checkpoint *c) {
        struct sum sum = { 0 };

        for (size_t i = 0; i < c->n_parts; i++) {
                const Rm__CheckpointPart *part = c->parts[i];

                sum.raw_bytes += part->raw_bytes;
                sum.stored_bytes += part->stored_bytes;
                sum.n_stored += part->n_stored > 0;
                if (part->store_usec > sum.store_usec)
                        sum.store_usec = part->store_usec;
        }
        return sum;
}

/* The nodes that have a part of the checkpoint; STORED_SHARED: any node. */
static struct hostlist holders_of(const Rm__Checkpoint *c) {
        struct hostlist hosts = { 0 };

        for (size_t i = 0; i < c->n_parts; i++)
                for (size_t k = 0; k < c->parts[i]->n_stored; k++)
                        hostlist_add(&hosts, c->parts[i]->stored[k]);
        return hosts;
}

/* "n[1-2]"; "all nodes" if it is shared. */
static char *nodes_text(const Rm__Checkpoint *c) {
        struct hostlist hosts = holders_of(c);
        char *text = hosts.n_names == 1 && strcmp(hosts.names[0], STORED_SHARED) == 0
                             ? xstrdup("all nodes")
                             : hostlist_compress(hosts.names, hosts.n_names);

        hostlist_finish(&hosts);
        return text;
}

/* ---- list-checkpoints ---- */

static void fill_row(struct table *t, const Rm__Job *job, const Rm__Checkpoint *c, uint64_t now) {
        struct sum sum = sum_of(c);
        const char *state = state_text(c->state);

        table_printf(t, "%" PRIu64 ".%" PRIu64, job->id, c->id);
        table_cell(t, job->spec->name);
        table_colour(t, state, colour_of_state(state));
        table_cell(t, cause_text(c->cause));
        table_take(t, human_ago(c->start_usec, now));
        table_take(t, c->pause_usec ? human_duration(c->pause_usec) : NULL);
        table_take(t, sum.raw_bytes ? human_bytes(sum.raw_bytes) : NULL);
        table_take(t, sum.stored_bytes ? human_bytes(sum.stored_bytes) : NULL);
        table_take(t, nodes_text(c));
}

static bool is_mine(const Rm__JobView *view) {
        return view->job && view->job->spec && !view->foreign;
}

static void table_checkpoints(struct call *call, const Rm__JobList *jobs) {
        static const struct column columns[] = {
                { "CHECKPOINT", true, false, 0 }, { "JOB", false, true, 0 },    { "STATE", false, false, 0 },
                { "CAUSE", false, false, 2 },     { "AGE", false, false, 0 },   { "PAUSE", true, false, 0 },
                { "SIZE", true, false, 3 },       { "STORED", true, false, 0 }, { "NODES", false, true, 0 },
        };
        struct table *t = table_create(columns, ARRAY_SIZE(columns));
        uint64_t now = now_real_usec();

        for (size_t i = 0; i < jobs->n_jobs; i++)
                for (size_t k = 0; is_mine(jobs->jobs[i]) && k < jobs->jobs[i]->job->n_checkpoints; k++)
                        fill_row(t, jobs->jobs[i]->job, jobs->jobs[i]->job->checkpoints[k], now);
        call_print_table(call, t);
}

static void json_checkpoints(const Rm__JobList *jobs) {
        json_t *array = json_array();

        for (size_t i = 0; i < jobs->n_jobs; i++)
                for (size_t k = 0; is_mine(jobs->jobs[i]) && k < jobs->jobs[i]->job->n_checkpoints; k++) {
                        const Rm__Job *job = jobs->jobs[i]->job;
                        json_t *one = json_from_message(&job->checkpoints[k]->base);

                        (void) json_object_set_new(one, "job", json_integer((json_int_t) job->id));
                        (void) json_array_append_new(array, one);
                }
        call_print_json("checkpoints", array);
}

static int run_list(struct call *call) {
        cleanup_free uint64_t *jobs = NULL;
        Rm__LocalReply *reply = NULL;
        int r = call_jobs(call, &jobs);

        if (r == 0)
                r = call_fetch_jobs(call, jobs, call->n_args, true, &reply);
        if (r < 0)
                return r;
        if (call->json)
                json_checkpoints(reply->jobs);
        else
                table_checkpoints(call, reply->jobs);
        rm__local_reply__free_unpacked(reply, NULL);
        return 0;
}

/* ---- checkpoint-job ---- */

static void report_done(const struct call *call, const Rm__Job *job, const Rm__Checkpoint *c) {
        struct sum sum = sum_of(c);
        cleanup_free char *pause = human_duration(c->pause_usec);
        cleanup_free char *raw = human_bytes(sum.raw_bytes);
        cleanup_free char *stored = human_bytes(sum.stored_bytes);
        cleanup_free char *took = human_duration(sum.store_usec);
        cleanup_free char *nodes = nodes_text(c);

        call_progress("");
        if (call->json) {
                json_t *one = json_from_message(&c->base);

                (void) json_object_set_new(one, "job", json_integer((json_int_t) job->id));
                call_print_json("checkpoint", one);
                return;
        }
        (void) printf("checkpoint %" PRIu64 ".%" PRIu64 ": pause %s, %s, %s stored in %s, on %s\n", job->id, c->id, pause, raw,
                      stored, took, nodes);
}

static void report_under_way(const Rm__Job *job, const Rm__Checkpoint *c) {
        cleanup_free char *text = NULL;

        if (c->state == RM__CHECKPOINT_STATE__CHECKPOINT_STORING)
                text = xasprintf("checkpoint %" PRIu64 ".%" PRIu64 ": storing, %zu of %zu parts", job->id, c->id,
                                 sum_of(c).n_stored, c->n_parts);
        else
                text = xasprintf("checkpoint %" PRIu64 ".%" PRIu64 ": capturing", job->id, c->id);
        call_progress(text);
}

/* 1: it is done, 0: it is under way. One that failed is forgotten. */
static int judge(struct call *call, const Rm__Job *job, uint64_t number) {
        for (size_t i = 0; i < job->n_checkpoints; i++) {
                const Rm__Checkpoint *c = job->checkpoints[i];

                if (c->id != number)
                        continue;
                if (c->state == RM__CHECKPOINT_STATE__CHECKPOINT_DONE)
                        report_done(call, job, c);
                else
                        report_under_way(job, c);
                return c->state == RM__CHECKPOINT_STATE__CHECKPOINT_DONE;
        }
        if (job->last_checkpoint < number)
                return 0; /* this node has not heard of it yet */
        return error_set(&call->err, -ECANCELED, "checkpoint %" PRIu64 ".%" PRIu64 " has failed: %s", job->id, number,
                         *job->checkpoint_error ? job->checkpoint_error : "see 'rmctl events'");
}

static int scan(struct call *call, void *arg) {
        const struct checkpoint_awaited *awaited = arg;
        Rm__LocalReply *reply = NULL;
        int r = call_fetch_jobs(call, &awaited->job, 1, true, &reply);

        if (r < 0)
                return r;
        if (reply->jobs->n_jobs == 1 && reply->jobs->jobs[0]->job)
                r = awaited->judge(call, reply->jobs->jobs[0]->job, awaited->number);
        else
                r = error_set(&call->err, -ENOENT, "job %" PRIu64 " is not there any more", awaited->job);
        rm__local_reply__free_unpacked(reply, NULL);
        return r;
}

int checkpoint_wait(struct call *call, const struct checkpoint_awaited *awaited, uint64_t timeout_usec) {
        int r = call_await(call, scan, (void *) awaited, timeout_usec);

        return r != 0 ? r
                      : error_set(&call->err, -ETIMEDOUT, "%s %" PRIu64 ".%" PRIu64 " is not done after %" PRIu64 " s; it goes on",
                                  awaited->what, awaited->job, awaited->number, timeout_usec / 1000000U);
}

static int wait_done(struct call *call, uint64_t job, uint64_t number, uint64_t timeout_usec) {
        const struct checkpoint_awaited awaited = { "checkpoint", job, number, judge };
        int r = checkpoint_wait(call, &awaited, timeout_usec);

        return r < 0 ? r : 0;
}

static void report_begun(const struct call *call, uint64_t job, uint64_t number) {
        if (call->json)
                call_print_json(NULL, json_pack("{s:I,s:I}", "job", (json_int_t) job, "checkpoint", (json_int_t) number));
        else
                (void) printf("checkpoint %" PRIu64 ".%" PRIu64 " begun\n", job, number);
}

/* A move is over sooner, or is given up ([sched] move_timeout). */
#define BEGIN_USEC 60000000U

/* 0: no limit; never 0 of one. */
static uint64_t time_left(uint64_t timeout_usec, uint64_t begun_usec) {
        uint64_t passed_usec = now_usec() - begun_usec;

        if (timeout_usec == 0)
                return 0;
        return passed_usec < timeout_usec ? timeout_usec - passed_usec : 1;
}

struct checkpoint_wanted {
        const Rm__CheckpointJob *body;
        uint64_t number; /* once it has begun */
        bool no_wait;
};

/* A move or a change of the number of ranks (EAGAIN) passes by itself, and rmd may have begun
 * it. */
static int begin(struct call *call, void *arg) {
        struct checkpoint_wanted *wanted = arg;
        int r;

        error_clear(&call->err);
        r = call_request_ok(call, &wanted->body->base, &wanted->number);
        if (r != -EAGAIN || wanted->no_wait)
                return r < 0 ? r : 1;
        call_progress(error_text(&call->err));
        return 0;
}

static int run_checkpoint(struct call *call) {
        Rm__CheckpointJob body = RM__CHECKPOINT_JOB__INIT;
        struct checkpoint_wanted wanted = { .body = &body, .no_wait = call_flag(call, "no-wait") != NULL };
        uint64_t timeout_usec = 0, begun_usec = now_usec();
        bool no_wait = wanted.no_wait;
        int r = call_job(call, &body.job);

        if (r == 0)
                r = call_duration(call, "timeout", &timeout_usec);
        if (r == 0 && no_wait && (call_flag(call, "wait") || call_flag(call, "timeout")))
                r = call_usage(call, "--no-wait excludes --wait and --timeout");
        if (r < 0)
                return r;
        body.stop = call_flag(call, "stop") != NULL;
        body.force = call_flag(call, "force") != NULL;
        r = call_await(call, begin, &wanted, timeout_usec ? timeout_usec : BEGIN_USEC);
        if (r <= 0)
                return r < 0 ? r : call->err.code;
        if (!no_wait)
                return wait_done(call, body.job, wanted.number, time_left(timeout_usec, begun_usec));
        report_begun(call, body.job, wanted.number);
        return 0;
}

/* ---- restart-job, remove-checkpoint ---- */

int checkpoint_read_name(struct call *call, bool any, uint64_t *ret_job, uint64_t *ret_number) {
        cleanup_free char *copy = xstrdup(call->args[0]);
        char *dot = strchr(copy, '.');
        int64_t job = 0, number = 0;

        if (dot)
                *dot = 0;
        if ((!dot && !any) || parse_i64(copy, 1, INT64_MAX, &job) < 0 || (dot && parse_i64(dot + 1, 1, INT64_MAX, &number) < 0))
                return call_usage(call, "'%s' is not %s, as %s (see 'rmctl list-checkpoints')", call->args[0],
                                  any ? "a job or a checkpoint" : "a checkpoint", any ? "7 or 7.2" : "7.2");
        *ret_job = (uint64_t) job;
        *ret_number = (uint64_t) number;
        return 0;
}

static int run_restart(struct call *call) {
        Rm__RestartJob body = RM__RESTART_JOB__INIT;
        int r = checkpoint_read_name(call, true, &body.job, &body.checkpoint);

        if (r < 0)
                return r;
        body.saved_rights = call_flag(call, "saved-rights") != NULL;
        body.other_files = call_flag(call, "other-files") != NULL;
        r = call_request_ok(call, &body.base, NULL);
        if (r == 0 && call->json)
                call_print_json("restarted", json_integer((json_int_t) body.job));
        return r;
}

/* ---- verify-checkpoint ---- */

static uint64_t raw_bytes_of(const Rm__Checkpoint *c, int32_t capsule) {
        for (size_t i = 0; i < c->n_parts; i++)
                if (c->parts[i]->capsule == capsule)
                        return c->parts[i]->raw_bytes;
        return 0;
}

/* Verifies the parts of the checkpoint on one node: one line for all that are good and one for each
 * that is not; returns how many are not. */
static int verify_node(struct call *call, uint64_t job, const Rm__Checkpoint *c, const char *node, json_t *array) {
        Rm__VerifyCheckpoint body = RM__VERIFY_CHECKPOINT__INIT;
        Rm__LocalReply *reply = NULL;
        uint64_t good_bytes = 0;
        int n_good = 0, n_bad = 0;
        int r;

        body.job = job;
        body.checkpoint = c->id;
        body.node = (char *) node;
        r = call_request(call, &body.base, RM__LOCAL_REPLY__BODY_VERIFIED_CHECKPOINT, &reply);
        if (r < 0)
                return r;
        for (size_t i = 0; i < reply->verified_checkpoint->n_parts; i++) {
                const Rm__VerifiedPart *part = reply->verified_checkpoint->parts[i];
                bool good = !part->error[0];
                json_t *one = json_from_message(&part->base);

                (void) json_object_set_new(one, "node", json_string(node));
                (void) json_array_append_new(array, one);
                n_bad += !good;
                n_good += good;
                good_bytes += good ? raw_bytes_of(c, part->capsule) : 0;
                if (!good && !call->json && part->capsule < 0)
                        printf("%s: mpirun: %s\n", node, part->error);
                else if (!good && !call->json)
                        printf("%s: group %d: %s\n", node, part->capsule, part->error);
        }
        if (n_good > 0 && !call->json) {
                cleanup_free char *bytes = human_bytes(good_bytes);

                printf("%s: %d part%s, %s: good\n", node, n_good, n_good == 1 ? "" : "s", bytes);
        }
        (void) fflush(stdout);
        rm__local_reply__free_unpacked(reply, NULL);
        return n_bad;
}

static int verify_nodes(struct call *call, uint64_t job, const Rm__Checkpoint *c) {
        struct hostlist hosts = holders_of(c);
        json_t *array = json_array();
        int n_bad = 0, r = 0;

        for (size_t i = 0; i < hosts.n_names && r >= 0; i++) {
                r = verify_node(call, job, c, hosts.names[i], array);
                if (r == -EHOSTUNREACH) { /* what a node has that is away is looked at when it is back */
                        (void) fprintf(stderr, "rmctl: %s\n", error_text(&call->err));
                        call->err = (struct rm_error) { 0 };
                        r = 1;
                }
                n_bad += r > 0 ? r : 0;
        }
        hostlist_finish(&hosts);
        if (r < 0) {
                json_decref(array);
                return r;
        }
        if (call->json)
                call_print_json("parts", array);
        else
                json_decref(array);
        return n_bad > 0 ? 1 : 0;
}

static int run_verify(struct call *call) {
        uint64_t id = 0, number = 0;
        Rm__LocalReply *reply = NULL;
        const Rm__Checkpoint *found = NULL;
        int r = checkpoint_read_name(call, false, &id, &number);

        if (r == 0)
                r = call_fetch_jobs(call, &id, 1, true, &reply);
        if (r < 0)
                return r;
        for (size_t i = 0; i < reply->jobs->n_jobs; i++)
                for (size_t k = 0; is_mine(reply->jobs->jobs[i]) && k < reply->jobs->jobs[i]->job->n_checkpoints; k++)
                        if (reply->jobs->jobs[i]->job->checkpoints[k]->id == number)
                                found = reply->jobs->jobs[i]->job->checkpoints[k];
        if (found)
                r = verify_nodes(call, id, found);
        else
                r = error_set(&call->err, -ENOENT, "there is no checkpoint %s of yours (see 'rmctl list-checkpoints')",
                              call->args[0]);
        rm__local_reply__free_unpacked(reply, NULL);
        return r;
}

static int run_remove(struct call *call) {
        Rm__RemoveCheckpoint body = RM__REMOVE_CHECKPOINT__INIT;
        int r = checkpoint_read_name(call, false, &body.job, &body.checkpoint);

        if (r < 0)
                return r;
        r = call_request_ok(call, &body.base, NULL);
        if (r == 0 && call->json)
                call_print_json("removed", json_string(call->args[0]));
        return r;
}

const struct verb verb_checkpoint_job = {
        .name = "checkpoint-job",
        .args = "JOB",
        .min_args = 1,
        .max_args = 1,
        .role = ROLE_OWNER,
        .help = "save a running job, so that it can go on from there\n"
                "Returns when all of it is stored; the job runs on as soon as it is captured.",
        .flags = { { "stop", NULL, "then take the job off its nodes; restart-job lets it go on" },
                   { "force", NULL, "also of a job whose program keeps its own state" },
                   { "wait", NULL, "return when it is done (default)" },
                   { "no-wait", NULL, "return when it has begun" },
                   { "timeout", "TIME", "stop waiting after TIME (exit status 1); the checkpoint continues" } },
        .run = run_checkpoint,
};

const struct verb verb_restart_job = {
        .name = "restart-job",
        .args = "JOB[.N]",
        .min_args = 1,
        .max_args = 1,
        .role = ROLE_OWNER,
        .help = "let a job that was stopped, or has ended, go on from a checkpoint\n"
                "It waits to be placed, and goes on from checkpoint N, or from the newest. Newer ones than N are removed.",
        .flags = { { "other-files", NULL, "take files that were put where those of the job stood for its own" },
                   { "saved-rights", NULL, "(root) also with groups that its owner is not a member of any more" } },
        .run = run_restart,
};

const struct verb verb_list_checkpoints = {
        .name = "list-checkpoints",
        .args = "[JOBS]",
        .max_args = SIZE_MAX,
        .role = ROLE_OWNER,
        .help = "list checkpoints of jobs\n"
                "PAUSE is how long the job stood still, SIZE the contents, STORED what they added to the disk of each node that\n"
                "captured some, NODES who has any of it.",
        .run = run_list,
};

const struct verb verb_verify_checkpoint = {
        .name = "verify-checkpoint",
        .args = "JOB.N",
        .min_args = 1,
        .max_args = 1,
        .role = ROLE_OWNER,
        .help = "read a checkpoint again, on each node that has some of it\n"
                "What is damaged is named, and counts no more; it is copied again from a node that has it whole.\n"
                "Exit status 1: something is damaged or missing.",
        .run = run_verify,
};

const struct verb verb_remove_checkpoint = {
        .name = "remove-checkpoint",
        .args = "JOB.N",
        .min_args = 1,
        .max_args = 1,
        .role = ROLE_OWNER,
        .help = "remove a checkpoint of a job",
        .run = run_remove,
};
