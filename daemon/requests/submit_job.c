#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/config/config.h"
#include "daemon/job/bodies.h"
#include "daemon/job/launch.h"
#include "daemon/job/user_limits.h"
#include "daemon/leader/round_input.h"
#include "daemon/requests/jobspec.h"
#include "daemon/requests/requests.h"
#include "daemon/sched/policy_model.h"
#include "daemon/state/commands.h"
#include "daemon/state/feature_level.h"

/* Checked where the job is submitted, so that a slip is told at once and not in a round of
 * scheduling. */
static int check_policy(const struct config *config, const char *policy, struct rm_error *err) {
        if (!policy[0] || policy_there(config->policy_dir, policy))
                return 0;
        return error_set(err, -ENOENT, "no policy '%s' (rmctl list-policies shows which there are)", policy);
}

/* The same of what it is to be started with. */
static int check_ft(const Rm__JobSpec *spec, const char *self, struct rm_error *err) {
        if (!launch_goes_on(spec) || access(RM_LIBEXEC_DIR "/" LAUNCH_FT_NAME, R_OK) == 0)
                return 0;
        return error_set(err, -EOPNOTSUPP,
                         "--on-rank-loss continue: %s has no " RM_LIBEXEC_DIR "/" LAUNCH_FT_NAME
                         " (rmd was built without Open MPI there)",
                         self);
}

/* Counts cores of all nodes, also of those that are down: they may be back before the job is
 * placed. */
static uint64_t most_capsules(const Rm__State *state, uint32_t per_core) {
        uint64_t cores = 0;

        for (size_t i = 0; i < state->n_nodes; i++)
                cores += state->nodes[i]->cores;
        return cores * per_core;
}

static int check_spec(const struct client *client, const Rm__JobSpec *spec, struct rm_error *err) {
        const struct config *config = client->rmd->config;
        const Rm__State *state = cluster_state(client->rmd->cluster);
        struct jobspec_rules rules = {
                .max_priority = client->admin ? JOBSPEC_PRIORITY_MAX : (int32_t) config->max_priority,
                .max_groups = client->admin ? 0 : config->max_groups_per_job,
                .max_capsules = most_capsules(state, config->max_capsules_per_core),
        };
        int r = jobspec_check(spec, &rules, err);

        if (r == 0)
                r = jobspec_check_groups(spec, round_input_group_size(state, spec, config->group_size), &rules, err);
        if (r == 0)
                r = check_ft(spec, cluster_self(client->rmd->cluster), err);
        return r < 0 ? r : check_policy(config, spec->policy, err);
}

/* The groups of a login, whatever the client says. */
static void set_groups(Rm__JobSpec *spec, const struct client *client) {
        free(spec->groups);
        spec->n_groups = client->n_groups > 0 ? client->n_groups : 1;
        spec->groups = xcalloc(spec->n_groups, sizeof(spec->groups[0]));
        spec->groups[0] = client->gid;
        for (size_t i = 0; i < client->n_groups; i++)
                spec->groups[i] = client->groups[i];
}

/* The user is the one that the kernel named, at the node where the client connected. */
static void set_origin(const struct client *client, Rm__JobSpec *spec) {
        spec->uid = client->uid;
        spec->gid = client->gid;
        message_set_string(&spec->user, client->user);
        message_set_string(&spec->submit_node, client->node ? client->node : cluster_self(client->rmd->cluster));
        set_groups(spec, client);
}

/* A submission carries its limits in fields of its own; that of groups is checked before
 * (check_spec()). */
static void set_limits(const struct client *client, Rm__CmdJobSubmit *body) {
        Rm__UserLimits limits;

        (void) user_limits(client->rmd, client->admin, &limits);
        body->max_jobs = limits.jobs;
        body->max_ranks = limits.ranks;
        body->ended_kept = limits.ended_kept;
}

/* A submission waits until the job's environment and arguments are on the disk. */
struct submission {
        struct client *client;
        uint32_t request_id;
        Rm__JobSpec *spec;
};

static void on_taken(void *userdata, const struct rm_error *err) {
        struct submission *submission = userdata;
        struct command c;

        set_limits(submission->client, command_job_submit(&c, submission->spec));
        if (err->code < 0)
                client_error(submission->client, submission->request_id, err->code, "submit: %s", err->text);
        else
                request_change(submission->client, &c.command, request_answer_proposed,
                               request_answer_begin(submission->client, submission->request_id));
        client_release(submission->client);
        rm__job_spec__free_unpacked(submission->spec, NULL);
        free(submission);
}

bool request_submission_known(struct client *client, const Rm__LocalRequest *request) {
        const struct cluster *cluster = client->rmd->cluster;
        struct rm_error err = { 0 };
        struct command c;

        if (!request->submit_job->spec)
                return true;
        /* Nodes with an older rmd run it without. */
        if (cluster_state(cluster)->level < STATE_LEVEL_NICE)
                request->submit_job->spec->nice = request->submit_job->spec->io_priority = request->submit_job->spec->scheduling =
                        0;
        (void) command_job_submit(&c, request->submit_job->spec);
        if (feature_level_check(feature_levels(), cluster_state(cluster), &c.command, &err) == 0)
                return true;
        client_error(client, request->id, err.code, "submit: %s", err.text);
        return false;
}

void request_keep_submission(struct client *client, const Rm__LocalRequest *request) {
        struct rm_error err = { 0 };
        Rm__JobSpec *spec = request->submit_job->spec ? (Rm__JobSpec *) message_copy(&request->submit_job->spec->base) : NULL;

        if (spec && check_spec(client, spec, &err) == 0) {
                jobspec_normalize(spec);
                set_origin(client, spec);
                bodies_offer(client->rmd->bodies, spec);
        }
        if (spec)
                rm__job_spec__free_unpacked(spec, NULL);
}

/* Without a write to the disk: there is no place for it, or it is in the state already. */
static bool answered_before(struct client *client, uint32_t request_id, const Rm__JobSpec *spec) {
        struct state_result result;
        enum state_effect effect;
        struct command c;

        set_limits(client, command_job_submit(&c, spec));
        effect = cluster_effect(client->rmd->cluster, &c.command, &result);
        if (effect == STATE_EFFECT_REFUSED)
                client_error(client, request_id, result.error.code, "%s", result.error.text);
        else if (effect == STATE_EFFECT_NONE)
                client_ok(client, request_id, result.created, NULL);
        return effect != STATE_EFFECT_CHANGE;
}

void request_submit_job(struct client *client, const Rm__LocalRequest *request) {
        struct submission *submission;
        struct rm_error err = { 0 };
        Rm__JobSpec *spec = request->submit_job->spec;

        if (!request_submission_known(client, request))
                return;
        if (!spec || check_spec(client, spec, &err) < 0) {
                client_error(client, request->id, err.code ? err.code : -EINVAL, "submit: %s", spec ? err.text : "no job in it");
                return;
        }
        /* Without its groups it would run, and fail where it needs them. */
        if (!client->identified && client->uid != 0) {
                client_error(client, request->id, -EAGAIN,
                             "submit: the user data base does not say who uid %u is (does LDAP or NIS hang?): try again later",
                             (unsigned) client->uid);
                return;
        }
        spec = (Rm__JobSpec *) message_copy(&spec->base);
        jobspec_normalize(spec);
        set_origin(client, spec);
        if (answered_before(client, request->id, spec)) {
                rm__job_spec__free_unpacked(spec, NULL);
                return;
        }
        submission = xcalloc(1, sizeof(*submission));
        submission->client = client_hold(client);
        submission->request_id = request->id;
        submission->spec = spec;
        bodies_take(client->rmd->bodies, spec, on_taken, submission);
}
