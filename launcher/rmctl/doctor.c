/* rmctl doctor */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "launcher/rmctl/human.h"
#include "launcher/rmctl/judge.h"
#include "launcher/rmctl/node.h"

/* The number of requests that rmd handles for one user at a time. */
#define ASKED_AT_ONCE 8U
/* A node gives up collecting after 12 s, and says so. */
#define ANSWER_USEC UINT64_C(20000000)

/* A node, from the question to the answer. */
struct patient {
        uint32_t id; /* of the request that waits; 0: none */
        uint64_t sent_usec, sent_real_usec;
        char *silence;
        Rm__LocalReply *reply; /* owns the facts */
};

struct examination {
        struct call *call;
        size_t n;
        struct examined *nodes;
        struct patient *patients;
        Rm__LocalReply *list; /* owns the names */
};

static void examination_finish(struct examination *x) {
        for (size_t i = 0; i < x->n; i++) {
                free(x->patients[i].silence);
                if (x->patients[i].reply)
                        rm__local_reply__free_unpacked(x->patients[i].reply, NULL);
        }
        free(x->patients);
        free(x->nodes);
        if (x->list)
                rm__local_reply__free_unpacked(x->list, NULL);
}

/* ---- asking ---- */

/* Takes over `why`. */
static void set_silent(struct examination *x, size_t i, char *why, const char *fix) {
        x->patients[i].id = 0;
        x->patients[i].silence = why;
        x->nodes[i].silence = why;
        x->nodes[i].silence_fix = fix;
}

static int ask(struct examination *x, size_t i) {
        Rm__GetNodeFacts get = RM__GET_NODE_FACTS__INIT;
        struct patient *patient = &x->patients[i];

        get.node = (char *) x->nodes[i].node;
        patient->sent_usec = now_usec();
        patient->sent_real_usec = now_real_usec();
        return client_send(x->call->client, &get.base, &patient->id, &x->call->err);
}

/* The clocks are compared as NTP does it: half of the round-trip time is the uncertainty. */
static void compare_clocks(struct examined *node, const struct patient *patient, uint64_t now) {
        const Rm__NodeFacts *facts = node->facts;
        uint64_t back_real_usec = patient->sent_real_usec + (now - patient->sent_usec);
        uint64_t there = facts->sent_usec - facts->received_usec, away = now - patient->sent_usec;

        node->clock_usec =
                ((int64_t) (facts->received_usec - patient->sent_real_usec) + (int64_t) (facts->sent_usec - back_real_usec)) / 2;
        node->clock_error_usec = away > there ? (away - there) / 2 : 0;
}

/* Takes over the reply. */
static void take_reply(struct examination *x, size_t i, Rm__LocalReply *reply) {
        if (reply->body_case == RM__LOCAL_REPLY__BODY_NODE_FACTS) {
                x->patients[i].id = 0;
                x->patients[i].reply = reply;
                x->nodes[i].facts = reply->node_facts;
                compare_clocks(&x->nodes[i], &x->patients[i], now_usec());
                return;
        }
        if (reply->body_case == RM__LOCAL_REPLY__BODY_ERROR && reply->error->code == ENOSYS)
                set_silent(x, i, xasprintf("rmd is too old to be asked: %s", reply->error->text),
                           "install the same version of rmd there and on this node, then systemctl restart rmd");
        else
                set_silent(x, i,
                           xstrdup(reply->body_case == RM__LOCAL_REPLY__BODY_ERROR ? reply->error->text
                                                                                   : "rmd gave an unexpected answer"),
                           "rmctl list-nodes; systemctl status rmd, on that node");
        rm__local_reply__free_unpacked(reply, NULL);
}

/* Ends the questions whose time is over; returns when the next one's will be. */
static uint64_t expire(struct examination *x, uint64_t now) {
        uint64_t next = UINT64_MAX;

        for (size_t i = 0; i < x->n; i++) {
                uint64_t due = x->patients[i].sent_usec + ANSWER_USEC;

                if (!x->patients[i].id)
                        continue;
                if (due <= now)
                        set_silent(x, i, xasprintf("it did not answer within %u s", (unsigned) (ANSWER_USEC / 1000000)),
                                   "systemctl status rmd, on that node");
                else if (due < next)
                        next = due;
        }
        return next;
}

static size_t count_asked(const struct examination *x) {
        size_t n = 0;

        for (size_t i = 0; i < x->n; i++)
                n += x->patients[i].id != 0;
        return n;
}

/* Receives an answer, or the end of a node's time. */
static int receive_one(struct examination *x) {
        struct call *call = x->call;
        uint64_t now = now_usec(), due = expire(x, now);
        Rm__LocalReply *reply = NULL;
        struct rm_error err = { 0 };
        int r;

        if (due == UINT64_MAX)
                return 0;
        r = client_receive_any(call->client, due - now, &reply, &err);
        if (r == -ETIMEDOUT)
                return 0;
        if (r < 0) {
                call->err = err;
                return r;
        }
        for (size_t i = 0; i < x->n; i++)
                if (x->patients[i].id == reply->id) {
                        take_reply(x, i, reply);
                        return 0;
                }
        rm__local_reply__free_unpacked(reply, NULL); /* came too late */
        return 0;
}

/* Known to be away: not asked, since that would take as long as to find out again. */
static bool is_away(const Rm__NodeView *view) {
        return view->node->health == RM__NODE_HEALTH__NODE_HEALTH_DOWN;
}

static int ask_all(struct examination *x) {
        int r = 0;

        for (size_t i = 0; i < x->n && r >= 0; i++) {
                if (is_away(x->list->nodes->nodes[i])) {
                        set_silent(x, i, xstrdup("the node is DOWN"), "power it on, or systemctl start rmd, on that node");
                        continue;
                }
                while (r >= 0 && count_asked(x) >= ASKED_AT_ONCE)
                        r = receive_one(x);
                if (r >= 0)
                        r = ask(x, i);
        }
        while (r >= 0 && count_asked(x) > 0)
                r = receive_one(x);
        return r;
}

/* ---- nodes ---- */

/* All nodes, since those that are wanted are compared with the others. */
static int begin(struct examination *x, const struct hostlist *hosts) {
        static const struct hostlist all = { 0 };
        Rm__LocalReply *named = NULL;
        int r = 0;

        if (hosts->n_names > 0) { /* are there such nodes? */
                r = node_fetch(x->call, hosts, &named);
                if (r < 0)
                        return r;
                rm__local_reply__free_unpacked(named, NULL);
        }
        r = node_fetch(x->call, &all, &x->list);
        if (r < 0)
                return r;
        x->n = x->list->nodes->n_nodes;
        x->nodes = xcalloc(x->n, sizeof(*x->nodes));
        x->patients = xcalloc(x->n, sizeof(*x->patients));
        for (size_t i = 0; i < x->n; i++) {
                const Rm__NodeView *view = x->list->nodes->nodes[i];

                if (!view->node)
                        return error_set(&x->call->err, -EPROTO, "rmd told of a node without a name");
                x->nodes[i].node = view->node->name;
                x->nodes[i].leader = view->leader;
                x->nodes[i].staying = view->staying;
                x->nodes[i].n_staying = view->n_staying;
                x->nodes[i].requested = hosts->n_names == 0 || names_have(hosts->names, hosts->n_names, view->node->name);
        }
        return 0;
}

/* ---- telling ---- */

static size_t count(const struct findings *findings, enum severity severity) {
        size_t n = 0;

        for (size_t i = 0; i < findings->n; i++)
                n += findings->list[i].severity == severity;
        return n;
}

static json_t *finding_json(const struct finding *finding) {
        return json_pack("{s:s, s:s, s:s, s:s, s:s?, s:s?}", "node", finding->node, "check", finding->check, "severity",
                         severity_name(finding->severity), "finding", finding->text, "means", finding->means, "fix", finding->fix);
}

static void print_json(const struct examination *x, const struct findings *findings) {
        json_t *list = json_array(), *nodes = json_array(), *root;

        for (size_t i = 0; i < x->n; i++)
                if (x->nodes[i].requested)
                        (void) json_array_append_new(nodes, json_string(x->nodes[i].node));
        for (size_t i = 0; i < findings->n; i++)
                (void) json_array_append_new(list, finding_json(&findings->list[i]));
        root = json_pack("{s:o, s:I, s:I, s:o}", "nodes", nodes, "problems", (json_int_t) count(findings, SEVERITY_PROBLEM),
                         "warnings", (json_int_t) count(findings, SEVERITY_WARNING), "findings", list);
        call_print_json(NULL, root);
}

static bool is_same(const struct finding *a, const struct finding *b) {
        return a->severity == b->severity && strcmp(a->check, b->check) == 0 && strcmp(a->text, b->text) == 0 &&
               (!a->fix || strcmp(a->fix, b->fix) == 0);
}

/* NULL: it was told with an earlier node. Otherwise all nodes of which the same is to be told. */
static char *nodes_of(const struct findings *findings, size_t at) {
        struct hostlist list = { 0 };
        char *names;

        for (size_t i = 0; i < at; i++)
                if (is_same(&findings->list[i], &findings->list[at]))
                        return NULL;
        for (size_t i = at; i < findings->n; i++)
                if (is_same(&findings->list[i], &findings->list[at]))
                        hostlist_add(&list, findings->list[i].node);
        names = hostlist_compress(list.names, list.n_names);
        hostlist_finish(&list);
        return names;
}

static void print_line(const char *indent, const char *text) {
        cleanup_free char *clean = human_clean(text);

        (void) printf("%s%s\n", indent, clean);
}

static void print_finding(const struct call *call, const struct finding *finding, const char *nodes) {
        enum colour colour = finding->severity == SEVERITY_PROBLEM   ? COLOUR_RED
                             : finding->severity == SEVERITY_WARNING ? COLOUR_YELLOW
                                                                     : COLOUR_GREEN;

        if (!call->colours)
                colour = COLOUR_NONE;
        (void) printf("%s: %s%s%s: %s: ", nodes, colour_begin(colour), severity_name(finding->severity), colour_end(colour),
                      finding->check);
        print_line("", finding->text);
        if (finding->means)
                print_line("    ", finding->means);
        if (finding->fix)
                print_line("    fix: ", finding->fix);
}

/* The worst first. */
static void print_text(const struct call *call, const struct examination *x, const struct findings *findings) {
        enum severity least = call_flag(call, "all") ? SEVERITY_OK : SEVERITY_WARNING;
        size_t problems = count(findings, SEVERITY_PROBLEM), warnings = count(findings, SEVERITY_WARNING), nodes = 0;

        for (int severity = SEVERITY_PROBLEM; severity >= (int) least; severity--)
                for (size_t i = 0; i < findings->n; i++) {
                        cleanup_free char *names = (int) findings->list[i].severity == severity ? nodes_of(findings, i) : NULL;

                        if (names)
                                print_finding(call, &findings->list[i], names);
                }
        for (size_t i = 0; i < x->n; i++)
                nodes += x->nodes[i].requested;
        (void) printf("%zu node%s, %zu checks: %zu problem%s, %zu warning%s\n", nodes, nodes == 1 ? "" : "s", findings->n, problems,
                      problems == 1 ? "" : "s", warnings, warnings == 1 ? "" : "s");
}

static int run_doctor(struct call *call) {
        struct examination x = { .call = call };
        struct findings findings = { 0 };
        struct hostlist hosts = { 0 };
        int r = call_hosts(call, &hosts);

        if (r == 0)
                r = begin(&x, &hosts);
        if (r >= 0)
                r = ask_all(&x);
        if (r >= 0) {
                judge(x.nodes, x.n, &findings);
                if (call->json)
                        print_json(&x, &findings);
                else
                        print_text(call, &x, &findings);
                r = count(&findings, SEVERITY_PROBLEM) > 0 ? EXIT_REFUSED : EXIT_DONE;
        }
        findings_finish(&findings);
        examination_finish(&x);
        hostlist_finish(&hosts);
        return r;
}

const struct verb verb_doctor = {
        .name = "doctor",
        .args = "[NODES]",
        .max_args = SIZE_MAX,
        .help = "tell whether nodes are fit to move and restore jobs\n"
                "Each finding says what it means and what repairs it. Nodes are compared with all others of the cluster. Exit "
                "status "
                "1 if there is a problem.",
        .flags = { { "all", NULL, "show also what is well" } },
        .run = run_doctor,
};
