/*
 * A job that rmd lets in, from arbitrary bytes: whatever passes the check must go into the state,
 * be shown to a policy, be written and read again, waiting and running, without being refused or
 * left out. The bytes are appended to a good spec, as protobuf merges messages: single fields are
 * replaced, lists grow.
 */
#include <stdlib.h>
#include <string.h>

#include "common/groups.h"
#include "common/text.h"
#include "common/unknown.h"
#include "common/util.h"
#include "daemon/leader/round_input.h"
#include "daemon/requests/jobspec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

static void check(bool holds) {
        if (!holds)
                abort();
}

static Rm__JobSpec *any_spec(const uint8_t *data, size_t size_bytes) {
        char *argv[] = { (char *) "mpirun", (char *) "./a.out" }, *env[] = { (char *) "HOME=/home/alice" };
        Rm__JobSpec base = RM__JOB_SPEC__INIT;
        cleanup_free uint8_t *bytes = NULL;
        size_t used;

        base.name = (char *) "a.out";
        base.argv = argv;
        base.n_argv = ARRAY_SIZE(argv);
        base.env = env;
        base.n_env = ARRAY_SIZE(env);
        base.cwd = (char *) "/home/alice";
        base.ranks = 4;
        used = rm__job_spec__get_packed_size(&base);
        bytes = xcalloc(1, used + size_bytes);
        (void) rm__job_spec__pack(&base, bytes);
        if (size_bytes > 0)
                memcpy(bytes + used, data, size_bytes);
        return rm__job_spec__unpack(NULL, used + size_bytes, bytes);
}

struct world {
        Rm__State *state;
        struct state_index *indexed;
        uint64_t index;
};

static void apply(struct world *w, Rm__Command *command) {
        struct state_result result;

        command->time_usec = UINT64_C(1800000000000000) + w->index;
        state_apply(w->state, w->indexed, ++w->index, command, &result);
        check(result.error.code == 0);
        for (size_t i = 0; i < result.n_events; i++)
                check(text_is_plain(result.events[i]->text));
        state_result_finish(&result);
}

static void join(struct world *w, const char *name) {
        Rm__Node node = RM__NODE__INIT;
        Rm__CmdNodeJoin body = RM__CMD_NODE_JOIN__INIT;
        Rm__Command command = RM__COMMAND__INIT;

        node.name = (char *) name;
        node.address = (char *) "10.0.0.1";
        node.port = 7700;
        node.cores = 64;
        body.node = &node;
        command.body_case = RM__COMMAND__BODY_NODE_JOIN;
        command.node_join = &body;
        apply(w, &command);
}

static void submit(struct world *w, Rm__JobSpec *spec) {
        Rm__CmdJobSubmit body = RM__CMD_JOB_SUBMIT__INIT;
        Rm__Command command = RM__COMMAND__INIT;

        body.spec = spec;
        command.body_case = RM__COMMAND__BODY_JOB_SUBMIT;
        command.job_submit = &body;
        apply(w, &command);
}

/* Places all ranks on n1, in groups of the size that the view has chosen: also those of parked
 * ranks, which policies are not shown. */
static void start(struct world *w, const struct rm_job *job) {
        uint32_t n_groups;
        cleanup_free uint32_t *ranks = groups_create(state_job(w->state, 1)->spec->ranks, job->group_size, &n_groups);
        cleanup_free char **nodes = xcalloc(n_groups, sizeof(*nodes));
        Rm__CmdJobPlace place = RM__CMD_JOB_PLACE__INIT;
        Rm__CmdJobRunning running = RM__CMD_JOB_RUNNING__INIT;
        Rm__Command command = RM__COMMAND__INIT;

        for (uint32_t g = 0; g < n_groups; g++)
                nodes[g] = (char *) "n1";
        place.job = running.job = 1;
        place.head_node = (char *) "n1";
        place.group_nodes = nodes;
        place.group_ranks = ranks;
        place.n_group_nodes = place.n_group_ranks = n_groups;
        place.group_size = job->group_size;
        command.body_case = RM__COMMAND__BODY_JOB_PLACE;
        command.job_place = &place;
        apply(w, &command);
        command.body_case = RM__COMMAND__BODY_JOB_RUNNING;
        command.job_running = &running;
        apply(w, &command);
}

/* n1 is lost, with all of it. */
static void start_again(struct world *w) {
        Rm__CmdNodeHealth health = RM__CMD_NODE_HEALTH__INIT;
        Rm__CmdJobRestart restart = RM__CMD_JOB_RESTART__INIT;
        Rm__Command command = RM__COMMAND__INIT;

        health.node = restart.node = (char *) "n1";
        health.health = RM__NODE_HEALTH__NODE_HEALTH_DOWN;
        command.body_case = RM__COMMAND__BODY_NODE_HEALTH;
        command.node_health = &health;
        apply(w, &command);
        restart.job = 1;
        restart.attempt = 2;
        restart.reason = (char *) "node n1 is down";
        restart.down = true;
        command.body_case = RM__COMMAND__BODY_JOB_RESTART;
        command.job_restart = &restart;
        apply(w, &command);
        check(state_job(w->state, 1)->state == RM__JOB_STATE__JOB_PENDING);
}

static struct round_input expect_shown(const struct world *w) {
        const struct round_input_config config = { .distribution_weight = 10,
                                                   .now_usec = UINT64_C(1800000001000000),
                                                   .horizon_usec = 600000000,
                                                   .age_weight = 1,
                                                   .bytes_per_cost = 1 };
        struct snapshot *again = NULL, *policy = NULL;
        cleanup_free char *text = NULL;
        struct rm_error err = { 0 };
        struct round_input input;
        json_t *json;

        round_input_create(w->indexed, &config, &input);
        check(input.n_left_out == 0 && input.n_jobs == 1);
        check(snapshot_check(snapshot_view(input.snapshot), &err) == 0);
        json = snapshot_to_json(snapshot_view(input.snapshot));
        text = json_dumps(json, JSON_COMPACT);
        json_decref(json);
        check(text && snapshot_parse(text, strlen(text), &again, &err) == 0);
        snapshot_destroy(again);
        check(round_policy_snapshot(snapshot_view(input.snapshot), input.jobs, &policy, &err) == 0);
        snapshot_destroy(policy);
        return input;
}

static void submit_and_show(Rm__JobSpec *spec) {
        struct world w = { .state = state_create("fuzz") };
        struct round_input input;
        uint32_t n_groups;

        w.indexed = state_index_create(w.state);
        join(&w, "n1");
        join(&w, "n2");
        submit(&w, spec);
        input = expect_shown(&w);
        n_groups = groups_number(spec->ranks, snapshot_view(input.snapshot)->jobs[0].group_size);
        check(n_groups <= STATE_GROUPS_MAX);
        /* More would take seconds for each input, and it is the first groups that matter. */
        if (n_groups < 500) {
                start(&w, &snapshot_view(input.snapshot)->jobs[0]);
                round_input_finish(&input);
                input = expect_shown(&w);
                if (job_may_restart(state_job(w.state, 1))) {
                        start_again(&w);
                        round_input_finish(&input);
                        input = expect_shown(&w);
                }
        }
        round_input_finish(&input);
        state_index_destroy(w.indexed);
        rm__state__free_unpacked(w.state, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
        static const struct jobspec_rules rules = { .max_priority = JOBSPEC_PRIORITY_MAX };
        Rm__JobSpec *spec = any_spec(data, size_bytes);
        struct rm_error err = { 0 };

        if (!spec)
                return 0;
        unknown_drop(&spec->base); /* as the decoder of connections does */
        if (jobspec_check(spec, &rules, &err) < 0) {
                check(err.text[0] != '\0' && text_is_plain(err.text));
        } else {
                jobspec_normalize(spec);
                /* These fields are set by rmd, whatever the client has sent. */
                spec->uid = spec->gid = 1000;
                message_set_string(&spec->user, "alice");
                message_set_string(&spec->submit_node, "n1");
                free(spec->body_digest.data);
                spec->body_digest = (ProtobufCBinaryData) { 0 };
                spec->body_bytes = 0;
                spec->argv_cut = spec->cwd_cut = false;
                submit_and_show(spec);
        }
        rm__job_spec__free_unpacked(spec, NULL);
        return 0;
}
