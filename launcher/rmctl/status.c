/* rmctl status, snapshot, plan, list-policies */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "launcher/client/buffer.h"
#include "launcher/rmctl/human.h"
#include "launcher/rmctl/verb.h"
#include "proto/json.h"

/* ---- status ---- */

/* The time limit of an answer, as for every other request. */
#define ANSWER_USEC (60U * 1000000U)
#define HOUR_USEC (3600 * UINT64_C(1000000))

static void print_warning(const struct call *call, const Rm__Status *status, const char *text) {
        bool availability = status->availability && strcmp(status->availability->error, text) == 0;
        cleanup_free char *clean = human_clean(text);
        enum colour colour = call->colours ? COLOUR_YELLOW : COLOUR_NONE;

        (void) printf("%sWarning:        %s%s%s\n", colour_begin(colour), clean,
                      availability ? " (what stood there before stays in force)" : "", colour_end(colour));
}

/* "n1 n2 n3 (DOWN); quorum 2, 0 may be lost". Without a leader it is not known how many are
 * there. */
static char *voters_text(const Rm__Status *s) {
        struct buffer text = { 0 };

        for (size_t i = 0; i < s->n_voters; i++)
                buffer_printf(&text, "%s%s%s", i > 0 ? " " : "", s->voters[i]->node, s->voters[i]->up ? "" : " (DOWN)");
        if (*s->leader)
                buffer_printf(&text, "; quorum %u, %u may be lost", s->quorum, s->may_lose);
        else
                buffer_printf(&text, "; quorum %u, no leader: nothing can be changed", s->quorum);
        return buffer_take_text(&text);
}

/* "2", or "1 of 2 (older rmd on n3)" until all nodes are updated. */
static char *level_text(const Rm__Status *s) {
        if (s->level >= s->level_known)
                return xasprintf("%u", s->level);
        return xasprintf("%u of %u%s%s%s", s->level, s->level_known, s->level_behind[0] ? " (older rmd on " : "", s->level_behind,
                         s->level_behind[0] ? ")" : "");
}

/* "warn for 5m: coretemp0 temp1: 81 C (low threshold 80)" */
static void show_sensor(const Rm__SensorView *s) {
        uint64_t now = now_real_usec();
        cleanup_free char *key = xasprintf("Sensor %s", s->name);
        cleanup_free char *since = human_elapsed(now > s->since_usec ? now - s->since_usec : 0);
        cleanup_free char *text = xasprintf("%s for %s%s%s", s->status, since, *s->text ? ": " : "", s->text);

        call_take_key(key, *s->status ? human_clean(text) : xstrdup("has not answered yet"));
}

/* Shows the fault of a sensor, whose values are as old as its fault. */
static void show_fault(const struct call *call, const Rm__SensorView *s) {
        enum colour colour = call->colours ? COLOUR_YELLOW : COLOUR_NONE;
        cleanup_free char *clean = human_clean(s->fault);

        if (*s->fault)
                (void) printf("%sWarning:        sensor '%s': %s%s\n", colour_begin(colour), s->name, clean, colour_end(colour));
}

/* "3 in 1200 node-hours, 2 of them foreseen" */
static char *losses_text(const Rm__Status *s) {
        if (s->node_usec == 0)
                return NULL;
        return xasprintf("%" PRIu64 " in %.*f node-hours, %" PRIu64 " of them foreseen", s->losses,
                         s->node_usec < 100 * HOUR_USEC ? 1 : 0, (double) s->node_usec / (double) HOUR_USEC, s->losses_foreseen);
}

static void show_status(const Rm__Status *s) {
        cleanup_free char *up = human_elapsed(s->up_usec);

        call_print_key("Cluster", s->cluster);
        call_print_key("Leader", s->leader);
        call_print_key("This node", s->node);
        if (s->n_voters > 0)
                call_take_key("Voters", voters_text(s));
        call_take_key("Nodes", xasprintf("%u of %u up", s->nodes_up, s->nodes));
        call_take_key("Node losses", losses_text(s));
        call_take_key("Jobs", xasprintf("%u running, %u pending", s->jobs_running, s->jobs_pending));
        call_take_key("Moves", xasprintf("%u in progress", s->moves_running));
        /* Page tracking matters for moves from this node. */
        if (s->tracking)
                call_print_key("Page tracking", "yes");
        else if (s->untracked[0])
                call_take_key("Page tracking", xasprintf("no: %s", s->untracked));
        call_print_key("Policy", s->policy);
        if (s->availability && !s->availability->path[0]) {
                call_print_key("Availability", "no file yet; every node may be used whole");
        } else if (s->availability) {
                cleanup_free char *ago = human_ago(s->availability->changed_usec, now_real_usec());

                call_take_key("Availability", xasprintf("%s, changed %s", s->availability->path, ago));
        }
        for (size_t i = 0; i < s->n_sensors; i++)
                show_sensor(s->sensors[i]);
        call_take_key("Log", xasprintf("entry %" PRIu64, s->log_index));
        call_take_key("Feature level", level_text(s));
        call_take_key("rmd", xasprintf("%s, up %s", s->rmd_version, up));
}

static json_t *status_json(const Rm__Status *s) {
        json_t *root = json_from_message(&s->base);

        if (!*s->leader)
                (void) json_object_set_new(root, "may_lose", json_null());
        return root;
}

static int run_status(struct call *call) {
        Rm__GetStatus get = RM__GET_STATUS__INIT;
        Rm__LocalReply *reply = NULL;
        int r;

        r = call_request(call, &get.base, RM__LOCAL_REPLY__BODY_STATUS, &reply);
        if (r < 0)
                return r;
        if (call->json) {
                call_print_json(NULL, status_json(reply->status));
        } else {
                show_status(reply->status);
                for (size_t i = 0; i < reply->status->n_warnings; i++)
                        print_warning(call, reply->status, reply->status->warnings[i]);
                for (size_t i = 0; i < reply->status->n_sensors; i++)
                        show_fault(call, reply->status->sensors[i]);
        }
        rm__local_reply__free_unpacked(reply, NULL);
        return 0;
}

/* ---- snapshot and plan ---- */

/* A long document comes in several replies. */
static int fetch_text(struct call *call, const ProtobufCMessage *body, char **ret_text) {
        struct buffer text = { 0 };
        bool more = true;
        int r = call_connect(call);

        if (r == 0)
                r = client_send(call->client, body, NULL, &call->err);
        while (r == 0 && more) {
                Rm__LocalReply *reply = NULL;

                r = client_receive(call->client, ANSWER_USEC, &reply, &call->err);
                if (r < 0)
                        break;
                if (reply->body_case == RM__LOCAL_REPLY__BODY_TEXT) {
                        more = reply->text->more;
                        buffer_add(&text, reply->text->text, strlen(reply->text->text));
                } else {
                        r = error_set(&call->err, -EPROTO, "unexpected reply %d from rmd", (int) reply->body_case);
                }
                rm__local_reply__free_unpacked(reply, NULL);
        }
        if (r == 0)
                *ret_text = buffer_take_text(&text);
        buffer_finish(&text);
        return r;
}

/* rmd's document as it is, only laid out: it carries its own version. */
static void print_document(const char *text) {
        json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

        if (root)
                (void) json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
        else
                (void) fputs(text, stdout);
        (void) putchar('\n');
        json_decref(root);
}

static int run_snapshot(struct call *call) {
        Rm__GetSnapshot get = RM__GET_SNAPSHOT__INIT;
        cleanup_free char *text = NULL;
        int r;

        get.paged = true;
        r = fetch_text(call, &get.base, &text);
        if (r == 0)
                print_document(text);
        return r;
}

static const char *text_of(const json_t *object, const char *key, const char *otherwise) {
        const char *text = json_string_value(json_object_get(object, key));

        return text ? text : otherwise;
}

static void show_placement(struct call *call, const json_t *placement) {
        static const struct column columns[] = { { "JOB", false, true, 0 },
                                                 { "NODE", false, true, 0 },
                                                 { "RANKS", true, false, 0 } };
        struct table *t = table_create(columns, ARRAY_SIZE(columns));
        size_t i;
        json_t *entry;

        json_array_foreach(placement, i, entry) {
                table_cell(t, text_of(entry, "job", "?"));
                table_cell(t, text_of(entry, "node", "?"));
                table_printf(t, "%lld", (long long) json_integer_value(json_object_get(entry, "ranks")));
        }
        (void) putchar('\n');
        call_print_table(call, t);
}

/* "n1 n2 n3", shortened; the caller's. */
static char *names_of(const json_t *names) {
        struct hostlist hosts = { 0 };
        const json_t *name;
        char *text;
        size_t i;

        json_array_foreach((json_t *) names, i, name) hostlist_add(&hosts, json_string_value(name) ? json_string_value(name) : "?");
        text = hostlist_compress(hosts.names, hosts.n_names);
        hostlist_finish(&hosts);
        return text;
}

static void action_cells(struct table *t, const json_t *action) {
        const char *what = text_of(action, "action", "?");
        const json_t *group = json_object_get(action, "group");
        cleanup_free char *nodes = names_of(json_object_get(action, "nodes"));
        cleanup_free char *spares = names_of(json_object_get(action, "spares"));

        table_cell(t, what);
        table_cell(t, text_of(action, "job", "?"));
        if (json_integer_value(group) >= 0 && json_is_integer(group))
                table_printf(t, "%lld", (long long) json_integer_value(group));
        else
                table_cell(t, json_is_integer(group) ? "head" : "all");
        table_cell(t, text_of(action, "from", "-"));
        table_cell(t, text_of(action, "to", nodes));
        if (json_object_get(action, "held"))
                table_printf(t, "%s; not now: %s", text_of(action, "why", ""), text_of(action, "held", ""));
        else if (strcmp(what, "move") == 0)
                table_cell(t, text_of(action, "why", ""));
        else if (*spares)
                table_printf(t, "keeps %s free", spares);
        else
                table_cell(t, strcmp(what, "reserve") == 0 ? "spare nodes" : "there is room");
}

static void show_actions(struct call *call, const json_t *actions) {
        static const struct column columns[] = {
                { "ACTION", false, false, 0 }, { "JOB", false, true, 0 }, { "GROUP", true, false, 0 },
                { "FROM", false, true, 0 },    { "TO", false, true, 0 },  { "WHY", false, true, 0 },
        };
        struct table *t = table_create(columns, ARRAY_SIZE(columns));
        const json_t *action;
        size_t i;

        json_array_foreach((json_t *) actions, i, action) action_cells(t, action);
        (void) putchar('\n');
        call_print_table(call, t);
}

static void show_alternatives(struct call *call, const json_t *alternatives) {
        static const struct column columns[] = {
                { "POLICY", false, true, 0 },  { "COST", true, false, 0 }, { "BOUND", true, false, 0 },
                { "WAITING", true, false, 0 }, { "TIME", true, false, 0 }, { "METHOD", false, true, 0 },
        };
        struct table *t = table_create(columns, ARRAY_SIZE(columns));
        const json_t *entry;
        size_t i;

        json_array_foreach((json_t *) alternatives, i, entry) {
                const json_t *bound = json_object_get(entry, "bound");
                bool failed = json_object_get(entry, "error") != NULL;

                table_cell(t, text_of(entry, "policy", "?"));
                for (int column = 0; failed && column < 4; column++)
                        table_cell(t, "-");
                if (failed) {
                        table_colour(t, text_of(entry, "error", "?"), COLOUR_RED);
                        continue;
                }
                table_printf(t, "%lld", (long long) json_integer_value(json_object_get(entry, "cost")));
                if (json_is_integer(bound))
                        table_printf(t, "%lld", (long long) json_integer_value(bound));
                else
                        table_cell(t, "-");
                table_printf(t, "%lld", (long long) json_integer_value(json_object_get(entry, "waiting")));
                table_take(t, human_duration((uint64_t) json_integer_value(json_object_get(entry, "time_usec"))));
                table_cell(t, text_of(entry, "method", "-"));
        }
        (void) putchar('\n');
        call_print_table(call, t);
}

static void show_notes(struct call *call, const json_t *notes) {
        const json_t *note;
        size_t i;

        json_array_foreach((json_t *) notes, i, note) {
                bool waits = json_is_true(json_object_get(note, "waits")), folded = json_is_true(json_object_get(note, "folded"));
                const char *why = text_of(note, "note", "");

                call_take_key(waits ? "Waits" : "Runs", xasprintf("%s: %s%s%s", text_of(note, "job", "?"), folded ? "folded" : "",
                                                                  folded && *why ? "; " : "", why));
        }
}

static void show_plan(struct call *call, const json_t *plan) {
        const json_t *placement = json_object_get(plan, "placement"), *bound = json_object_get(plan, "bound");
        const json_t *actions = json_object_get(plan, "actions");

        call_take_key("Policy", xasprintf("%s (%s)", text_of(plan, "policy", "?"), text_of(plan, "method", "-")));
        call_take_key("Cost", xasprintf("%g", json_number_value(json_object_get(plan, "cost"))));
        if (json_is_true(json_object_get(plan, "proven")))
                call_print_key("Proof", "no plan is cheaper");
        else if (json_is_number(bound))
                call_take_key("Proof", xasprintf("no plan is cheaper than %g", json_number_value(bound)));
        call_take_key("Time", human_duration((uint64_t) json_integer_value(json_object_get(plan, "time_usec"))));
        call_print_key("Warnings", text_of(plan, "warnings", ""));
        if (json_array_size(actions) == 0)
                call_print_key("Would do", "nothing");
        show_notes(call, json_object_get(plan, "notes"));
        if (json_array_size(actions) > 0)
                show_actions(call, actions);
        if (json_array_size(placement) > 0)
                show_placement(call, placement);
        show_alternatives(call, json_object_get(plan, "alternatives"));
}

static int run_plan(struct call *call) {
        Rm__GetPlan get = RM__GET_PLAN__INIT;
        cleanup_free char *text = NULL;
        json_t *plan = NULL;
        int r;

        if (call_flag(call, "policy"))
                get.policy = (char *) call_flag(call, "policy");
        get.paged = true;
        r = fetch_text(call, &get.base, &text);
        if (r < 0)
                return r;
        plan = call->json ? NULL : json_loads(text, 0, NULL);
        if (json_is_object(plan))
                show_plan(call, plan);
        else
                print_document(text);
        json_decref(plan);
        return 0;
}

/* ---- policies ---- */

static void table_policies(struct call *call, const Rm__PolicyList *policies) {
        static const struct column columns[] = { { "POLICY", false, true, 0 },
                                                 { "DEFAULT", false, false, 0 },
                                                 { "DESCRIPTION", false, true, 0 } };
        struct table *t = table_create(columns, ARRAY_SIZE(columns));

        for (size_t i = 0; i < policies->n_policies; i++) {
                const Rm__PolicyView *p = policies->policies[i];

                table_cell(t, p->name);
                table_cell(t, p->is_default ? "yes" : "");
                if (*p->error)
                        table_colour(t, p->error, COLOUR_RED);
                else
                        table_cell(t, p->description);
        }
        call_print_table(call, t);
}

static int run_policies(struct call *call) {
        Rm__ListPolicies list = RM__LIST_POLICIES__INIT;
        Rm__LocalReply *reply = NULL;
        int r;

        r = call_request(call, &list.base, RM__LOCAL_REPLY__BODY_POLICIES, &reply);
        if (r < 0)
                return r;
        if (call->json)
                call_print_list("policies", (ProtobufCMessage *const *) reply->policies->policies, reply->policies->n_policies);
        else
                table_policies(call, reply->policies);
        rm__local_reply__free_unpacked(reply, NULL);
        return 0;
}

const struct verb verb_status = {
        .name = "status",
        .args = "",
        .help = "show the state of the cluster, and warnings",
        .run = run_status,
};

const struct verb verb_snapshot = {
        .name = "snapshot",
        .args = "",
        .role = ROLE_ADMIN,
        .help = "print the snapshot that a policy would get now, as JSON (for rm-policy-run)",
        .run = run_snapshot,
};

const struct verb verb_plan = {
        .name = "plan",
        .args = "",
        .role = ROLE_ADMIN,
        .help = "show what rmd would do now and why, and the plans of other policies; change nothing",
        .flags = { { "policy", "P", "use this policy (default: the cluster's)" } },
        .run = run_plan,
};

const struct verb verb_list_policies = {
        .name = "list-policies",
        .args = "",
        .help = "list placement policies",
        .run = run_policies,
};
