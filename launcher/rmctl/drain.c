/* rmctl drain-node, resume-node, remove-node, confirm-lost */
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "launcher/client/buffer.h"
#include "launcher/rmctl/human.h"
#include "launcher/rmctl/node.h"

/* Another node takes its place in the log before. */
#define REMOVE_USEC (30U * UINT64_C(1000000))

/* The memory of a command that waits until nodes are DRAINED. */
struct wait {
        const struct hostlist *hosts;
        /* Nodes once known to be draining: this node may hear of the drain later than the
         * leader. */
        struct hostlist seen;
        struct hostlist reported; /* what keeps groups on them */
        struct hostlist rest; /* nodes that were not DRAINED at the last look */
        struct hostlist lost; /* those of them that never will be while we wait */
        unsigned ranks, capsules; /* there */
};

static void wait_finish(struct wait *wait) {
        hostlist_finish(&wait->seen);
        hostlist_finish(&wait->reported);
        hostlist_finish(&wait->rest);
        hostlist_finish(&wait->lost);
}

/* Each of them once: the drain ends when that has changed, or the job is gone. */
static void report_staying(struct wait *wait, const Rm__NodeView *v) {
        for (size_t i = 0; i < v->n_staying; i++) {
                cleanup_free char *text = xasprintf("%s: %s", v->node->name, v->staying[i]);
                cleanup_free char *clean = human_clean(text);

                if (names_have(wait->reported.names, wait->reported.n_names, text))
                        continue;
                call_progress("");
                (void) fprintf(stderr,
                               "rmctl: drain-node: %s; the node is not drained before this has changed ('rmctl cancel-job' ends "
                               "the job)\n",
                               clean);
                hostlist_add(&wait->reported, text);
        }
}

static int scan(struct call *call, struct wait *wait) {
        Rm__LocalReply *reply = NULL;
        int r = node_fetch(call, wait->hosts, &reply);

        if (r < 0)
                return r;
        hostlist_finish(&wait->rest);
        hostlist_finish(&wait->lost);
        wait->ranks = wait->capsules = 0;
        for (size_t i = 0; i < reply->nodes->n_nodes; i++) {
                const Rm__NodeView *v = reply->nodes->nodes[i];

                if (!v->node || strcmp(v->state, "DRAINED") == 0)
                        continue;
                hostlist_add(&wait->rest, v->node->name);
                wait->ranks += v->ranks;
                wait->capsules += v->capsules;
                if (v->node->drain)
                        hostlist_add(&wait->seen, v->node->name);
                report_staying(wait, v);
                /* Down, or resumed by another user. */
                if (strcmp(v->state, "DOWN") == 0 ||
                    (!v->node->drain && names_have(wait->seen.names, wait->seen.n_names, v->node->name)))
                        hostlist_add(&wait->lost, v->node->name);
        }
        rm__local_reply__free_unpacked(reply, NULL);
        return 0;
}

static int scan_drained(struct call *call, void *arg) {
        struct wait *wait = arg;
        int r = scan(call, wait);
        cleanup_free char *rest = NULL, *lost = NULL, *text = NULL;

        if (r < 0 || wait->rest.n_names == 0)
                return r < 0 ? r : 1;
        lost = hostlist_compress(wait->lost.names, wait->lost.n_names);
        if (*lost)
                return error_set(&call->err, -ECANCELED,
                                 "%s cannot be waited for (DOWN, or resumed meanwhile): see 'rmctl show-node %s'", lost, lost);
        rest = hostlist_compress(wait->rest.names, wait->rest.n_names);
        text = xasprintf("%s: %u ranks in %u capsules left", rest, wait->ranks, wait->capsules);
        call_progress(text);
        return 0;
}

/* Waits until all of `hosts` are DRAINED. */
static int wait_drained(struct call *call, const struct hostlist *hosts, uint64_t timeout_usec) {
        struct wait wait = { .hosts = hosts };
        int r = call_await(call, scan_drained, &wait, timeout_usec);
        cleanup_free char *rest = hostlist_compress(wait.rest.names, wait.rest.n_names);

        if (r == 0)
                r = error_set(&call->err, -ETIMEDOUT, "not drained after %llu s: %s (%u ranks left); draining goes on",
                              (unsigned long long) (timeout_usec / 1000000U), rest, wait.ranks);
        wait_finish(&wait);
        return r < 0 ? r : 0;
}

/* A caller that does not wait learns at least what is known now. */
static void report_once(struct call *call, const struct hostlist *hosts) {
        struct wait wait = { .hosts = hosts };

        (void) scan(call, &wait);
        wait_finish(&wait);
}

static void report(const struct call *call, const struct hostlist *hosts, const char *what, const char *key) {
        cleanup_free char *text = hostlist_compress(hosts->names, hosts->n_names);

        if (!call->json) {
                (void) printf("%s %s\n", text, what);
                return;
        }
        json_t *names = json_array();

        for (size_t i = 0; i < hosts->n_names; i++)
                (void) json_array_append_new(names, json_string(hosts->names[i]));
        call_print_json(key, names);
}

static int run_drain(struct call *call) {
        Rm__DrainNode drain = RM__DRAIN_NODE__INIT;
        struct hostlist hosts = { 0 };
        uint64_t timeout_usec = 0;
        bool wait = call_flag(call, "wait") != NULL;
        int r = call_duration(call, "timeout", &timeout_usec);

        if (r == 0)
                r = call_duration(call, "deadline", &drain.deadline_usec);
        if (r == 0 && call_flag(call, "timeout") && !wait)
                r = call_usage(call, "--timeout is for --wait");
        if (r == 0)
                r = call_hosts(call, &hosts);
        if (r < 0)
                return r;
        drain.names = hosts.names;
        drain.n_names = hosts.n_names;
        drain.reason = (char *) (call_flag(call, "reason") ? call_flag(call, "reason") : "");
        drain.update = call_flag(call, "update") != NULL;
        r = call_request_ok(call, &drain.base, NULL);
        if (r == 0 && wait)
                r = wait_drained(call, &hosts, timeout_usec);
        else if (r == 0)
                report_once(call, &hosts);
        if (r == 0)
                report(call, &hosts, wait ? "drained" : "draining", wait ? "drained" : "draining");
        hostlist_finish(&hosts);
        return r;
}

int node_change(struct call *call, ProtobufCMessage *body, char ***names, size_t *n_names, const char *what, const char *key) {
        struct hostlist hosts = { 0 };
        int r = call_hosts(call, &hosts);

        if (r < 0)
                return r;
        *names = hosts.names;
        *n_names = hosts.n_names;
        r = call_request_ok(call, body, NULL);
        if (r == 0)
                report(call, &hosts, what, key);
        hostlist_finish(&hosts);
        return r;
}

static int run_resume(struct call *call) {
        Rm__ResumeNode resume = RM__RESUME_NODE__INIT;

        return node_change(call, &resume.base, &resume.names, &resume.n_names, "resumed", "resumed");
}

struct removal {
        const struct hostlist *hosts;
        struct hostlist rest; /* those that were still there at the last look */
};

static int scan_removed(struct call *call, void *arg) {
        const struct hostlist all = { 0 };
        struct removal *removal = arg;
        Rm__LocalReply *reply = NULL;
        int r = node_fetch(call, &all, &reply);

        if (r < 0)
                return r;
        hostlist_finish(&removal->rest);
        for (size_t i = 0; i < reply->nodes->n_nodes; i++) {
                const Rm__Node *node = reply->nodes->nodes[i]->node;

                if (node && names_have(removal->hosts->names, removal->hosts->n_names, node->name))
                        hostlist_add(&removal->rest, node->name);
        }
        rm__local_reply__free_unpacked(reply, NULL);
        return removal->rest.n_names == 0;
}

static int wait_removed(struct call *call, const struct hostlist *hosts, uint64_t timeout_usec) {
        struct removal removal = { .hosts = hosts };
        int r = call_await(call, scan_removed, &removal, timeout_usec);
        cleanup_free char *rest = hostlist_compress(removal.rest.names, removal.rest.n_names);

        hostlist_finish(&removal.rest);
        if (r != 0)
                return r < 0 ? r : 0;
        return error_set(
                &call->err, -ETIMEDOUT,
                "not removed after %llu s: %s still has capsules, or keeps the log and no other node can; it is removed as "
                "soon as that has changed",
                (unsigned long long) (timeout_usec / 1000000U), rest);
}

static int run_remove(struct call *call) {
        Rm__RemoveNode remove = RM__REMOVE_NODE__INIT;
        struct hostlist hosts = { 0 };
        uint64_t timeout_usec = REMOVE_USEC;
        int r = call_duration(call, "timeout", &timeout_usec);

        if (r == 0)
                r = call_hosts(call, &hosts);
        if (r < 0)
                return r;
        remove.names = hosts.names;
        remove.n_names = hosts.n_names;
        r = call_request_ok(call, &remove.base, NULL);
        if (r == 0)
                r = wait_removed(call, &hosts, timeout_usec);
        if (r == 0)
                report(call, &hosts, "removed", "removed");
        hostlist_finish(&hosts);
        return r;
}

static int run_confirm(struct call *call) {
        Rm__ConfirmLost lost = RM__CONFIRM_LOST__INIT;

        return node_change(call, &lost.base, &lost.names, &lost.n_names, "confirmed to be lost", "confirmed");
}

const struct verb verb_drain_node = {
        .name = "drain-node",
        .args = "NODES",
        .min_args = 1,
        .max_args = SIZE_MAX,
        .role = ROLE_ADMIN,
        .help = "evacuate nodes and place no further work on them\n"
                "Running ranks move to other nodes, where they share cores if necessary; no job is ended.",
        .flags = { { "reason", "TEXT", "reason, shown by list-nodes" },
                   { "deadline", "TIME",
                     "the nodes must be empty after TIME; their groups may stand still for longer in their moves" },
                   { "wait", NULL, "return when all nodes are DRAINED" },
                   { "timeout", "TIME", "stop waiting after TIME (exit status 1); the drain continues" },
                   { "update", NULL,
                     "change reason and deadline of nodes that are already drained; what is not given is removed" } },
        .run = run_drain,
};

const struct verb verb_resume_node = {
        .name = "resume-node",
        .args = "NODES",
        .min_args = 1,
        .max_args = SIZE_MAX,
        .role = ROLE_ADMIN,
        .help = "return drained nodes to service",
        .run = run_resume,
};

const struct verb verb_remove_node = {
        .name = "remove-node",
        .args = "NODES",
        .min_args = 1,
        .max_args = SIZE_MAX,
        .role = ROLE_ADMIN,
        .help = "remove nodes from the cluster for good\n"
                "Drain them first. If a node keeps the cluster's log, another one takes its place before. Its rmd ends; started "
                "again, it joins anew.",
        .flags = { { "timeout", "TIME", "stop waiting after TIME (30s; exit status 1); the node is removed later" } },
        .run = run_remove,
};

const struct verb verb_confirm_lost = {
        .name = "confirm-lost",
        .args = "NODES",
        .min_args = 1,
        .max_args = SIZE_MAX,
        .role = ROLE_ADMIN,
        .help = "let jobs start again that wait until nodes are fenced\n"
                "The nodes must be DOWN, and nothing may run on them any more: switch them off first.",
        .run = run_confirm,
};
