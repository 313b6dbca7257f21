/* rmctl drain-node, resume-node */
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "launcher/client/buffer.h"
#include "launcher/rmctl/node.h"

/* rmd may be restarted while somebody waits, on the drained node above all. */
#define AWAY_USEC (60U * 1000000U)

/* Nodes that are not DRAINED yet, and whether one of them never will be while we wait. */
struct rest {
        struct hostlist hosts;
        struct hostlist lost;
        unsigned ranks;
};

static void rest_finish(struct rest *rest) {
        hostlist_finish(&rest->hosts);
        hostlist_finish(&rest->lost);
}

static bool contains(const struct hostlist *list, const char *name) {
        for (size_t i = 0; i < list->n_names; i++)
                if (strcmp(list->names[i], name) == 0)
                        return true;
        return false;
}

/* `seen` collects the nodes once known to be draining: this node may hear of the drain later than the leader. */
static int look(struct call *call, const struct hostlist *hosts, struct hostlist *seen, struct rest *ret_rest) {
        struct rest rest = { 0 };
        Rm__LocalReply *reply = NULL;
        int r = node_fetch(call, hosts, &reply);

        if (r < 0)
                return r;
        for (size_t i = 0; i < reply->nodes->n_nodes; i++) {
                const Rm__NodeView *v = reply->nodes->nodes[i];

                if (!v->node || strcmp(v->state, "DRAINED") == 0)
                        continue;
                hostlist_add(&rest.hosts, v->node->name);
                rest.ranks += v->ranks;
                if (v->node->drain)
                        hostlist_add(seen, v->node->name);
                /* Down, or told to resume by somebody else. */
                if (strcmp(v->state, "DOWN") == 0 || (!v->node->drain && contains(seen, v->node->name)))
                        hostlist_add(&rest.lost, v->node->name);
        }
        rm__local_reply__free_unpacked(reply, NULL);
        *ret_rest = rest;
        return 0;
}

static int not_drained(struct call *call, const struct rest *rest, uint64_t timeout_usec) {
        cleanup_free char *hosts = hostlist_compress(rest->hosts.names, rest->hosts.n_names);
        cleanup_free char *lost = hostlist_compress(rest->lost.names, rest->lost.n_names);

        if (rest->lost.n_names > 0)
                return error_set(&call->err, -ECANCELED,
                                 "%s cannot be waited for (DOWN, or resumed meanwhile): see 'rmctl show-node %s'", lost, lost);
        return error_set(&call->err, -ETIMEDOUT, "not drained after %llu s: %s (%u ranks left); draining goes on",
                         (unsigned long long) (timeout_usec / 1000000U), hosts, rest->ranks);
}

/* Until all of `hosts` are DRAINED. */
static int wait_drained(struct call *call, const struct hostlist *hosts, uint64_t timeout_usec) {
        uint64_t deadline_usec = timeout_usec ? now_usec() + timeout_usec : 0;
        uint64_t seen_usec = now_usec();
        struct hostlist seen = { 0 };
        struct rest rest = { 0 };
        int r;

        for (;;) {
                struct rest now = { 0 };

                r = look(call, hosts, &seen, &now);
                if (r == 0) {
                        rest_finish(&rest);
                        rest = now;
                        seen_usec = now_usec();
                        if (rest.hosts.n_names == 0)
                                break;
                        if (rest.lost.n_names > 0) {
                                r = not_drained(call, &rest, timeout_usec);
                                break;
                        }
                } else if (r != CLIENT_NO_DAEMON || now_usec() > seen_usec + AWAY_USEC) {
                        break;
                }
                if (!call_pause(deadline_usec)) {
                        r = r < 0 ? r : not_drained(call, &rest, timeout_usec);
                        break;
                }
        }
        rest_finish(&rest);
        hostlist_finish(&seen);
        return r;
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
        Rm__LocalRequest request = RM__LOCAL_REQUEST__INIT;
        struct hostlist hosts = { 0 };
        uint64_t timeout_usec = 0;
        bool wait = call_flag(call, "wait") != NULL;
        int r = call_duration(call, "timeout", &timeout_usec);

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
        request.body_case = RM__LOCAL_REQUEST__BODY_DRAIN_NODE;
        request.drain_node = &drain;
        r = call_request_ok(call, &request, NULL);
        if (r == 0 && wait)
                r = wait_drained(call, &hosts, timeout_usec);
        if (r == 0)
                report(call, &hosts, wait ? "drained" : "draining", wait ? "drained" : "draining");
        hostlist_finish(&hosts);
        return r;
}

static int run_resume(struct call *call) {
        Rm__ResumeNode resume = RM__RESUME_NODE__INIT;
        Rm__LocalRequest request = RM__LOCAL_REQUEST__INIT;
        struct hostlist hosts = { 0 };
        int r = call_hosts(call, &hosts);

        if (r < 0)
                return r;
        resume.names = hosts.names;
        resume.n_names = hosts.n_names;
        request.body_case = RM__LOCAL_REQUEST__BODY_RESUME_NODE;
        request.resume_node = &resume;
        r = call_request_ok(call, &request, NULL);
        if (r == 0)
                report(call, &hosts, "resumed", "resumed");
        hostlist_finish(&hosts);
        return r;
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
                   { "wait", NULL, "return when all nodes are DRAINED" },
                   { "timeout", "TIME", "stop waiting after TIME (exit status 1); the drain continues" },
                   { "update", NULL, "change the reason of nodes that are already drained" } },
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
