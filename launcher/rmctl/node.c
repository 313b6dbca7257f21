/* rmctl list-nodes, show-node */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "common/util.h"
#include "launcher/rmctl/human.h"
#include "launcher/rmctl/node.h"
#include "launcher/rmctl/pages.h"
#include "launcher/rmctl/use.h"

int node_fetch(struct call *call, const struct hostlist *hosts, Rm__LocalReply **ret_reply) {
        Rm__ListNodes list = RM__LIST_NODES__INIT;

        list.names = hosts->names;
        list.n_names = hosts->n_names;
        return call_request_pages(call, &list.base, RM__LOCAL_REPLY__BODY_NODES, ret_reply);
}

static bool any_switch(const Rm__NodeList *nodes) {
        for (size_t i = 0; i < nodes->n_nodes; i++)
                if (nodes->nodes[i]->n_switch_ > 0)
                        return true;
        return false;
}

/* Until it is to be empty, or since then; NULL: whenever. */
static char *deadline_text(const Rm__Node *n, uint64_t now) {
        uint64_t at = n->drain_deadline_usec;
        cleanup_free char *text = at ? human_elapsed(at > now ? at - now : now - at) : NULL;

        return !text ? NULL : at > now ? xasprintf("in %s", text) : xasprintf("%s ago", text);
}

/* NULL: nothing is wrong. */
static const Rm__NodeCondition *worst_of(const Rm__NodeView *v) {
        for (size_t i = 0; i < v->node->n_conditions; i++)
                if (v->node->conditions[i]->condition == v->condition)
                        return v->node->conditions[i];
        return NULL;
}

static char *condition_text(const Rm__NodeCondition *said) {
        return xasprintf("%s: %s (%s, %s)", node_condition_name(said->condition), said->reason, said->source, said->by);
}

static uint64_t state_since_usec(const Rm__NodeView *v) {
        const Rm__NodeCondition *worst = worst_of(v);

        if (v->node->drain)
                return v->node->drain_since_usec;
        return strcmp(v->state, "FAILING") == 0 && worst ? worst->since_usec : v->node->health_since_usec;
}

static void table_nodes(struct call *call, const Rm__NodeList *nodes) {
        /* SWITCH is the last: it is left out where nothing is known of switches. */
        static const struct column columns[] = {
                { "NODE", false, true, 0 },   { "STATE", false, false, 0 }, { "CORES", true, false, 0 },
                { "USABLE", true, false, 0 }, { "RANKS", true, false, 0 },  { "CAPSULES", true, false, 2 },
                { "MEMORY", true, false, 3 }, { "FREE", true, false, 3 },   { "SINCE", false, false, 1 },
                { "NOTE", false, true, 0 },   { "SWITCH", false, true, 4 },
        };
        bool switches = any_switch(nodes);
        struct table *t = table_create(columns, ARRAY_SIZE(columns) - !switches);
        uint64_t now = now_real_usec();

        for (size_t i = 0; i < nodes->n_nodes; i++) {
                const Rm__NodeView *v = nodes->nodes[i];
                const Rm__Node *n = v->node;

                if (!n)
                        continue;
                table_cell(t, n->name);
                table_colour(t, v->state, colour_of_state(v->state));
                table_printf(t, "%u", n->cores);
                table_printf(t, "%u", v->usable_cores);
                table_printf(t, "%u", v->ranks);
                table_printf(t, "%u", v->capsules);
                table_take(t, n->memory_bytes ? human_bytes(n->memory_bytes) : NULL);
                table_take(t, v->memory_reported ? human_bytes(v->memory_free_bytes) : NULL);
                table_take(t, human_ago(state_since_usec(v), now));
                if (n->drain) {
                        cleanup_free char *deadline = v->capsules > 0 ? deadline_text(n, now) : NULL;

                        table_printf(t, "%s (%s%s%s)", *n->drain_reason ? n->drain_reason : "drained", n->drain_by,
                                     deadline ? ", deadline " : "", deadline ? deadline : "");
                } else if (worst_of(v)) {
                        table_take(t, condition_text(worst_of(v)));
                } else {
                        table_cell(t, v->leader ? "leader" : "");
                }
                if (switches)
                        table_cell(t, v->n_switch_ > 0 ? v->switch_[0] : "");
        }
        call_print_table(call, t);
}

/* The nodes of the command line, with what the leader knows of their use. */
static int fetch_named(struct call *call, Rm__LocalReply **ret_reply) {
        struct hostlist hosts = { 0 };
        int r = call_hosts(call, &hosts);

        if (r == 0)
                r = node_fetch(call, &hosts, ret_reply);
        hostlist_finish(&hosts);
        if (r == 0)
                use_fill_nodes(call, (*ret_reply)->nodes);
        return r;
}

static int run_list(struct call *call) {
        Rm__LocalReply *reply = NULL;
        int r = fetch_named(call, &reply);

        if (r < 0)
                return r;
        if (call->json)
                call_print_list("nodes", (ProtobufCMessage *const *) reply->nodes->nodes, reply->nodes->n_nodes);
        else
                table_nodes(call, reply->nodes);
        if (reply->nodes->n_nodes == 0)
                (void) fprintf(stderr, "rmctl: this node has joined no cluster yet: 'rmctl status' says why\n");
        rm__local_reply__free_unpacked(reply, NULL);
        return 0;
}

static char *ago_and_time(uint64_t when_usec) {
        cleanup_free char *ago = human_ago(when_usec, now_real_usec());
        cleanup_free char *iso = text_iso_time(when_usec);

        return when_usec ? xasprintf("%s (%.19sZ)", ago, iso) : xstrdup("-");
}

/* "leaf1 below row2 below spine" */
static char *way_up(const Rm__NodeView *v) {
        char *text = xstrdup(v->n_switch_ > 0 ? v->switch_[0] : "-");

        for (size_t i = 1; i < v->n_switch_; i++) {
                char *longer = xasprintf("%s below %s", text, v->switch_[i]);

                free(text);
                text = longer;
        }
        return text;
}

static void show_node(const struct call *call, const Rm__NodeView *v) {
        const Rm__Node *n = v->node;

        call_print_key("Node", n->name);
        call_state_key(call, "State", v->state);
        call_take_key("Since", ago_and_time(n->health_since_usec));
        call_take_key("Address", xasprintf("%s:%u", n->address, n->port));
        call_take_key("Cores",
                      xasprintf("%u, %u usable%s", n->cores, v->usable_cores, n->available_set ? " (availability file)" : ""));
        call_take_key("Memory", n->memory_bytes ? human_bytes(n->memory_bytes) : NULL);
        call_take_key("Free memory", v->memory_reported ? human_bytes(v->memory_free_bytes) : NULL);
        call_print_key("Topology", n->topology);
        call_take_key("Switch", way_up(v));
        call_take_key("Ranks", xasprintf("%u in %u capsules", v->ranks, v->capsules));
        call_print_key("Leader", v->leader ? "yes" : "no");
        call_print_key("Boot", n->boot_id);
        if (n->fenced || n->fence[0])
                call_print_key("Fence", n->fenced ? "done" : n->fence);
        call_print_key("Condition", node_condition_name(v->condition));
        for (size_t i = 0; i < n->n_conditions; i++) {
                cleanup_free char *text = condition_text(n->conditions[i]);
                cleanup_free char *since = ago_and_time(n->conditions[i]->since_usec);

                call_take_key("Said", xasprintf("%s, since %s", text, since));
        }
        call_take_key("Feature level", xasprintf("%u", n->level));
        for (size_t i = 0; i < v->n_staying; i++)
                call_print_key("Cannot move", v->staying[i]);
        if (!n->drain)
                return;
        call_print_key("Drain reason", n->drain_reason);
        call_print_key("Drained by", n->drain_by);
        call_take_key("Drained", ago_and_time(n->drain_since_usec));
        if (n->drain_deadline_usec > 0) {
                cleanup_free char *deadline = deadline_text(n, now_real_usec());
                cleanup_free char *iso = text_iso_time(n->drain_deadline_usec);

                call_take_key("Deadline", xasprintf("%s (%.19sZ)", deadline, iso));
        }
}

static int run_show(struct call *call) {
        Rm__LocalReply *reply = NULL;
        int r = call->json ? run_list(call) : fetch_named(call, &reply);

        if (r < 0 || call->json)
                return r;
        for (size_t i = 0; i < reply->nodes->n_nodes; i++) {
                if (i > 0)
                        (void) putchar('\n');
                if (reply->nodes->nodes[i]->node)
                        show_node(call, reply->nodes->nodes[i]);
        }
        rm__local_reply__free_unpacked(reply, NULL);
        return 0;
}

const struct verb verb_list_nodes = {
        .name = "list-nodes",
        .args = "[NODES]",
        .max_args = SIZE_MAX,
        .help = "list nodes, their states and what runs on them\n"
                "USABLE is the number of cores that rmd may use: all or those in the availability file; 0 if drained, failing or "
                "not up.\n"
                "FREE is the memory that groups which come there may take, as the leader counts it.\n"
                "SWITCH is shown if [cluster] topology is set.",
        .run = run_list,
};

const struct verb verb_show_node = {
        .name = "show-node",
        .args = "NODES",
        .min_args = 1,
        .max_args = SIZE_MAX,
        .help = "show all details of nodes",
        .run = run_show,
};
