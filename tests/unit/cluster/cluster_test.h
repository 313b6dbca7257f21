/* Several nodes of a cluster in one process, on the loopback and one loop, with real TLS. */
#ifndef RM_TESTS_CLUSTER_TEST_H
#define RM_TESTS_CLUSTER_TEST_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/cluster/cluster.h"

#define NODES_MAX 6

struct tnode {
        struct cluster *cluster;
        struct tls *tls;
        char name[16];
        char boot[16];
        char *dir;
        uint32_t port;
        uint32_t cores;
        unsigned applied;
        /* The applied commands that daemon/leader makes of files, without those that the cluster
         * makes of itself at any time (levels, leases, voters). */
        unsigned of_leader;
        unsigned installed;
        unsigned messages;
        unsigned peer_up;
        unsigned peer_down;
        unsigned leader_lost;
        unsigned failed;
        char why_failed[RM_ERROR_TEXT_BYTES];
        uint64_t last_sequence;
        char downs[256]; /* nodes that were seen going down */
};

struct world {
        struct event_base *base;
        char dir[64];
        uint8_t key[TLS_KEY_BYTES];
        uint64_t node_timeout_usec;
        uint64_t propose_timeout_usec;
        uint64_t idle_usec;
        uint64_t lease_usec;
        uint32_t snapshot_entries;
        unsigned voters; /* 0 = 1 */
        struct tnode nodes[NODES_MAX];
};

/* Run the loop until `condition` or for `msec`. */
#define RUN_UNTIL(w, condition, msec)                                                                                              \
        do {                                                                                                                       \
                uint64_t _end = now_usec() + (uint64_t) (msec) * 1000U;                                                            \
                while (!(condition) && now_usec() < _end) {                                                                        \
                        struct timeval _tick = { .tv_usec = 5000 };                                                                \
                        (void) event_base_loopexit((w)->base, &_tick);                                                             \
                        (void) event_base_loop((w)->base, EVLOOP_ONCE);                                                            \
                }                                                                                                                  \
        } while (0)

/* The same as RUN_UNTIL(), and the condition has to come true: on an idle machine within `msec`, on
 * a busy one some time. */
#define EXPECT(w, condition, msec)                                                                                                 \
        do {                                                                                                                       \
                RUN_UNTIL(w, condition, 20 * (msec));                                                                              \
                assert_true(condition);                                                                                            \
        } while (0)

static inline void tnode_on_applied(void *userdata, const Rm__Command *command, const struct state_result *result) {
        struct tnode *node = userdata;

        node->applied++;
        node->of_leader += command->body_case == RM__COMMAND__BODY_AVAILABILITY ||
                           command->body_case == RM__COMMAND__BODY_SCHEDULING || command->body_case == RM__COMMAND__BODY_TOPOLOGY;
        if (command->body_case == RM__COMMAND__BODY_NODE_HEALTH && result->error.code == 0 &&
            command->node_health->health == RM__NODE_HEALTH__NODE_HEALTH_DOWN &&
            strlen(node->downs) + strlen(command->node_health->node) + 2 < sizeof(node->downs)) {
                strcat(node->downs, command->node_health->node);
                strcat(node->downs, " ");
        }
}

static inline void tnode_on_installed(void *userdata) {
        ((struct tnode *) userdata)->installed++;
}

static inline void tnode_on_message(void *userdata, const char *from, const Rm__PeerMessage *message) {
        struct tnode *node = userdata;

        (void) from;
        node->messages++;
        if (message->body_case == RM__PEER_MESSAGE__BODY_MOVE_OPENED) {
                assert_true(message->move_opened->move == node->last_sequence + 1);
                node->last_sequence = message->move_opened->move;
        }
}

static inline void tnode_on_peer(void *userdata, const char *peer, bool connected) {
        struct tnode *node = userdata;

        (void) peer;
        if (connected)
                node->peer_up++;
        else
                node->peer_down++;
}

static inline void tnode_on_leader(void *userdata, const char *leader) {
        struct tnode *node = userdata;

        if (!leader)
                node->leader_lost++;
}

static inline void tnode_on_failed(void *userdata, const struct rm_error *why) {
        struct tnode *node = userdata;

        node->failed++;
        (void) snprintf(node->why_failed, sizeof(node->why_failed), "%s", why->text);
}

static inline void world_init(struct world *w) {
        memset(w, 0, sizeof(*w));
        w->base = event_base_new();
        w->node_timeout_usec = 2000000;
        w->propose_timeout_usec = 60000000;
        (void) snprintf(w->dir, sizeof(w->dir), "%s/test-cluster-XXXXXX", getenv("TEST_DIR") ? getenv("TEST_DIR") : "/tmp");
        assert_non_null(mkdtemp(w->dir));
        memset(w->key, 7, sizeof(w->key));
        for (int i = 0; i < NODES_MAX; i++) {
                struct tnode *node = &w->nodes[i];

                (void) snprintf(node->name, sizeof(node->name), "n%d", i + 1);
                (void) snprintf(node->boot, sizeof(node->boot), "boot%d", i + 1);
                node->dir = xasprintf("%s/%s", w->dir, node->name);
                node->cores = 4;
        }
}

static inline int tnode_try(struct world *w, struct tnode *node, bool bootstrap, const char *const *peers, size_t n_peers,
                            const char *cluster_name, struct rm_error *err) {
        static const struct cluster_ops ops = {
                .on_applied = tnode_on_applied,
                .on_installed = tnode_on_installed,
                .on_message = tnode_on_message,
                .on_peer = tnode_on_peer,
                .on_leader = tnode_on_leader,
                .on_failed = tnode_on_failed,
        };
        Rm__Node self = RM__NODE__INIT;
        struct cluster_config config = {
                .name = cluster_name,
                .self = &self,
                .listen_address = "127.0.0.1",
                .peers = peers,
                .n_peers = n_peers,
                .bootstrap = bootstrap,
                .state_dir = node->dir,
                .node_timeout_usec = w->node_timeout_usec,
                .heartbeat_usec = w->node_timeout_usec / 10,
                .idle_usec = w->idle_usec,
                .lease_usec = w->lease_usec,
                .propose_timeout_usec = w->propose_timeout_usec,
                .snapshot_entries = w->snapshot_entries,
                .voters = w->voters ? w->voters : 1,
        };
        int r;

        if (!node->tls)
                assert_int_equal(tls_create(cluster_name, TLS_PEER, w->key, &node->tls, NULL), 0);
        config.tls = node->tls;
        self.name = node->name;
        self.address = (char *) "127.0.0.1";
        self.port = node->port;
        self.cores = node->cores;
        self.boot_id = node->boot;
        r = cluster_create(w->base, &config, &ops, node, &node->cluster, err);
        if (r == 0)
                node->port = cluster_port(node->cluster);
        return r;
}

/* Start node `i`; node 0 keeps the log, the others join through node `through`. */
static inline struct tnode *tnode_start(struct world *w, int i, int through) {
        struct tnode *node = &w->nodes[i];
        cleanup_free char *peer = xasprintf("127.0.0.1:%u", w->nodes[through].port);
        const char *const peers[] = { peer };
        struct rm_error err = { 0 };

        if (tnode_try(w, node, i == 0, peers, i == through ? 0 : 1, "testers", &err) < 0)
                fail_msg("%s: %s", node->name, err.text);
        return node;
}

static inline void tnode_stop(struct tnode *node) {
        cluster_destroy(node->cluster);
        tls_destroy(node->tls);
        node->cluster = NULL;
        node->tls = NULL;
}

static inline void world_finish(struct world *w) {
        for (int i = 0; i < NODES_MAX; i++) {
                tnode_stop(&w->nodes[i]);
                free(w->nodes[i].dir);
        }
        (void) remove_tree(w->dir);
        event_base_free(w->base);
}

struct answer {
        unsigned calls;
        int code;
        uint64_t index;
        uint64_t created;
        uint64_t usec;
        char text[256];
};

static inline void on_answer(void *userdata, int code, const char *text, uint64_t index, uint64_t created) {
        struct answer *answer = userdata;

        answer->calls++;
        answer->code = code;
        answer->index = index;
        answer->created = created;
        answer->usec = now_usec();
        (void) snprintf(answer->text, sizeof(answer->text), "%s", text);
}

static inline void propose_note(struct tnode *node, const char *text, struct answer *answer) {
        Rm__Command command = RM__COMMAND__INIT;
        Rm__CmdNote note = RM__CMD_NOTE__INIT;

        note.text = (char *) text;
        command.body_case = RM__COMMAND__BODY_NOTE;
        command.note = &note;
        cluster_propose(node->cluster, &command, answer ? on_answer : NULL, answer);
}

static inline void propose_drain(struct tnode *node, const char *target, const char *reason, bool update, struct answer *answer) {
        Rm__Command command = RM__COMMAND__INIT;
        Rm__CmdNodeDrain drain = RM__CMD_NODE_DRAIN__INIT;

        drain.node = (char *) target;
        drain.reason = (char *) reason;
        drain.by = (char *) "root";
        drain.update = update;
        command.body_case = RM__COMMAND__BODY_NODE_DRAIN;
        command.node_drain = &drain;
        cluster_propose(node->cluster, &command, on_answer, answer);
}

static inline bool same_state(const struct tnode *a, const struct tnode *b) {
        const Rm__State *x = cluster_state(a->cluster);
        const Rm__State *y = cluster_state(b->cluster);
        size_t n = rm__state__get_packed_size(x);
        cleanup_free uint8_t *p = xcalloc(1, n);
        cleanup_free uint8_t *q = xcalloc(1, n);

        if (rm__state__get_packed_size(y) != n)
                return false;
        (void) rm__state__pack(x, p);
        (void) rm__state__pack(y, q);
        return memcmp(p, q, n) == 0;
}

/* Nodes 0 to n-1 are connected to node 0, which leads, and hold the same state with all of them UP,
 * to which the leader has nothing more to add by itself. */
static inline bool joined(const struct world *w, int n) {
        for (int i = 0; i < n; i++) {
                const struct tnode *node = &w->nodes[i];
                const Rm__State *state = cluster_state(node->cluster);

                if (!cluster_synced(node->cluster) || state->n_nodes < (size_t) n || state->level != STATE_LEVEL ||
                    !same_state(node, &w->nodes[0]))
                        return false;
                if (!cluster_connected(node->cluster, w->nodes[0].name) || !cluster_connected(w->nodes[0].cluster, node->name))
                        return false;
                for (int k = 0; k < n; k++)
                        if (state->nodes[k]->health != RM__NODE_HEALTH__NODE_HEALTH_UP)
                                return false;
        }
        return true;
}

#endif
