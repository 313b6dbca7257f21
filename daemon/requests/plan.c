/*
 * Plans a round without acting: what would be done now, and why, and how every policy would decide.
 * A whole round is made with the policy in question; then each policy answers the snapshot by
 * itself, one after the other.
 */
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/config/config.h"
#include "daemon/leader/leader.h"
#include "daemon/requests/requests.h"
#include "daemon/sched/round_json.h"
#include "daemon/sched/scheduler.h"

struct planning {
        struct client *client;
        uint32_t request_id;
        bool paged;
        char *policy;                /* in question */
        struct scheduler *scheduler; /* of its own: the leader's is not to wait */
        struct leader_snapshot snapshot;
        json_t *answer;
        json_t *policies; /* those there are */
        size_t next;      /* of them, to be asked */
};

static struct policy_host *host_of(struct planning *planning) {
        return scheduler_side_host(planning->scheduler);
}

/* Nothing of it is under way any more. */
static void planning_free(struct planning *planning) {
        client_release(planning->client);
        scheduler_destroy(planning->scheduler);
        leader_snapshot_finish(&planning->snapshot);
        json_decref(planning->answer);
        json_decref(planning->policies);
        free(planning->policy);
        free(planning);
}

static void fail(struct planning *planning, const struct rm_error *err) {
        client_error(planning->client, planning->request_id, err->code ? err->code : -EIO, "plan: %s", error_text(err));
        planning_free(planning);
}

/* ---- the alternatives ---- */

static void ask_next(struct planning *planning);

static const char *asked_policy(const struct planning *planning) {
        return json_string_value(json_object_get(json_array_get(planning->policies, planning->next), "name"));
}

static void add_alternative(struct planning *planning, const struct plan_answer *answer, const char *error) {
        json_t *list = json_object_get(planning->answer, "alternatives");

        if (answer) {
                const struct rm_plan *plan = answer->plan;
                json_int_t waiting = 0;

                for (uint32_t j = 0; j < plan->n_jobs; j++)
                        waiting += plan->jobs[j].decision == RM_WAIT;
                json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:o, s:b, s:I, s:I}", "policy", answer->policy, "method",
                                                      plan->method, "cost", (json_int_t) answer->cost, "bound",
                                                      plan->bound == RM_NO_BOUND ? json_null() : json_integer(plan->bound),
                                                      "proven", (int) plan->proven, "waiting", waiting, "time_usec",
                                                      (json_int_t) answer->time_usec));
        } else {
                json_array_append_new(list, json_pack("{s:s, s:s}", "policy", asked_policy(planning), "error", error));
        }
}

/* The plan of the policy in question is the body of the answer. */
static void take_plan(struct planning *planning, const struct plan_answer *answer) {
        json_t *plan = plan_to_json(answer, snapshot_view(planning->snapshot.policy));

        json_object_update(planning->answer, plan);
        json_decref(plan);
}

static void on_planned(void *context, struct plan_answer *answer, const struct rm_error *err) {
        struct planning *planning = context;
        bool in_question = strcmp(asked_policy(planning), planning->policy) == 0;

        if (!answer && in_question) {
                fail(planning, err);
                return;
        }
        add_alternative(planning, answer, error_text(err));
        if (in_question)
                take_plan(planning, answer);
        planning->next++;
        ask_next(planning);
}

static void ask_next(struct planning *planning) {
        struct rm_error err = { 0 };

        while (planning->next < json_array_size(planning->policies)) {
                if (policy_host_run(host_of(planning), asked_policy(planning), snapshot_view(planning->snapshot.policy),
                                    planning->client->rmd->config->budget_usec, on_planned, planning, &err) == 0)
                        return;
                add_alternative(planning, NULL, error_text(&err));
                planning->next++;
        }
        request_reply_json(planning->client, planning->request_id, planning->answer, planning->paged);
        planning_free(planning);
}

static bool is_listed(const json_t *policies, const char *name) {
        const json_t *entry;
        size_t i;

        json_array_foreach((json_t *) policies, i,
                           entry) if (strcmp(json_string_value(json_object_get(entry, "name")), name) == 0) return true;
        return false;
}

static void on_listed(void *context, json_t *list, const struct rm_error *err) {
        struct planning *planning = context;

        if (!list) {
                fail(planning, err);
                return;
        }
        planning->policies = json_deep_copy(list);
        /* A policy that the folder does not have by this name may still load; if not, its entry
         * says why. */
        if (!is_listed(list, planning->policy))
                json_array_insert_new(planning->policies, 0, json_pack("{s:s}", "name", planning->policy));
        ask_next(planning);
}

/* ---- the round ---- */

/* Moves that rmd would put off. */
static void add_holds(const struct planning *planning, const struct rm_snapshot *snapshot, const struct round_result *result) {
        json_t *actions = json_object_get(planning->answer, "actions");

        for (size_t i = 0; i < result->n_actions; i++) {
                const char *hold = leader_hold(planning->client->rmd, snapshot, &result->actions[i]);

                if (hold)
                        json_object_set_new(json_array_get(actions, i), "held", json_string(hold));
        }
}

static void on_round(void *context, const struct rm_snapshot *snapshot, const struct round_result *result, const char *warnings) {
        struct planning *planning = context;
        struct rm_error err = { 0 };

        planning->answer = round_result_to_json(snapshot, result);
        add_holds(planning, snapshot, result);
        json_object_set_new(planning->answer, "version", json_integer(1));
        json_object_set_new(planning->answer, "warnings", json_string(warnings));
        json_object_set_new(planning->answer, "alternatives", json_array());
        if (policy_host_list(host_of(planning), on_listed, planning, &err) < 0)
                fail(planning, &err);
}

void request_plan(struct client *client, const Rm__LocalRequest *request) {
        const char *asked = request->get_plan->policy;
        struct rmd *rmd = client->rmd;
        struct rm_error err = { 0 };
        struct planning *planning;

        if (asked[0] && !name_valid(asked)) {
                client_error(client, request->id, -EINVAL, "plan: not a valid policy name");
                return;
        }
        planning = xcalloc(1, sizeof(*planning));
        planning->client = client_hold(client);
        planning->request_id = request->id;
        planning->paged = request->get_plan->paged;
        planning->policy = xstrdup(asked[0] ? asked : rmd->config->policy);
        planning->scheduler = leader_side_scheduler(rmd, planning->policy);
        if (leader_snapshot(rmd, &planning->snapshot, &err) < 0 ||
            leader_try_round(rmd, planning->scheduler, on_round, planning, &err) < 0)
                fail(planning, &err);
}
