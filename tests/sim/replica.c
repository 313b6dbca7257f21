#include "tests/sim/replica.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/util.h"
#include "daemon/cluster/log_format.h"
#include "tests/sim/raftio.h"

/* A new leader within about half a second. */
#define HEARTBEAT_MSEC 100U
#define ELECTION_MSEC 500U
/* When a snapshot is lost on its way it is sent again after this. */
#define SNAPSHOT_MSEC 2000U
/* Half of what raftio.c makes ahead. */
#define RESERVE_KIB 4U
#define HANDED_ON_MAX 2U
/* In front of raft's messages, so that they are aligned. */
#define RAFT_HEAD_BYTES 8U

struct pending {
        struct raft_apply raft;
        struct replica *voter;
        struct answer_packet answer;
        unsigned client;
        uint64_t index;
        TAILQ_ENTRY(pending) entry;
};

struct replica {
        struct replica_config config;
        struct checks *checks;
        struct host *host;
        struct disk *disk;
        struct network *network;
        bool bootstrapped;
        /* While its process runs: */
        bool running, dying;
        struct raftio *rio;
        struct raft raft;
        struct raft_fsm fsm;
        struct raft_tracer tracer;
        Rm__State *state;
        struct state_index *indexed;
        uint64_t last_time_usec;
        TAILQ_HEAD(, pending) pending; /* in the order of the log */
};

/* ---- the state machine ---- */

static void set_state(struct replica *v, Rm__State *state) {
        state_index_destroy(v->indexed);
        if (v->state)
                rm__state__free_unpacked(v->state, NULL);
        v->state = state;
        v->indexed = state ? state_index_create(state) : NULL;
}

static void remember_outcome(struct replica *v, uint64_t index, const struct state_result *result) {
        struct pending *pending;

        TAILQ_FOREACH (pending, &v->pending, entry)
                if (pending->index == index) {
                        pending->answer.code = result->error.code;
                        pending->answer.created = result->created;
                        return;
                }
}

static int fsm_apply(struct raft_fsm *fsm, const struct raft_buffer *buf, void **result) {
        struct replica *v = fsm->data;
        uint64_t index = raft_last_applied(&v->raft) + 1;
        Rm__Command *command = log_entry_unpack(buf);
        struct state_result applied;

        *result = NULL;
        if (!command) {
                checks_fail(v->checks, "%s cannot read the entry at %" PRIu64, host_name(v->host), index);
                return 0;
        }
        state_apply(v->state, v->indexed, index, command, &applied);
        if (applied.unknown)
                checks_fail(v->checks, "%s does not understand the entry at %" PRIu64 ": %s", host_name(v->host), index,
                            error_text(&applied.error));
        if (command->time_usec > v->last_time_usec)
                v->last_time_usec = command->time_usec;
        remember_outcome(v, index, &applied);
        checks_applied(v->checks, host_name(v->host), index, buf, v->state, v->indexed, &applied);
        state_result_finish(&applied);
        rm__command__free_unpacked(command, NULL);
        return 0;
}

static int fsm_snapshot(struct raft_fsm *fsm, struct raft_buffer *bufs[], unsigned *n_bufs) {
        const struct replica *v = fsm->data;

        log_snapshot_pack(v->state, bufs, n_bufs);
        return 0;
}

static int fsm_restore(struct raft_fsm *fsm, struct raft_buffer *buf) {
        struct replica *v = fsm->data;
        Rm__State *state = log_snapshot_unpack(buf);

        if (!state) {
                checks_fail(v->checks, "%s cannot read its snapshot", host_name(v->host));
                return RAFT_CORRUPT;
        }
        set_state(v, state);
        timeline_trace(host_timeline(v->host), host_name(v->host), "has the state of a snapshot, at %" PRIu64, state->index);
        checks_restored(v->checks, host_name(v->host), v->state, v->indexed);
        raft_free(buf->base);
        return 0;
}

/* ---- requests ---- */

static void answer(struct replica *v, unsigned client, const struct answer_packet *packet) {
        if (!v->dying)
                network_send(v->network, v->config.number, client, packet, sizeof(*packet));
}

static void on_applied(struct raft_apply *raft, int status, void *result) {
        struct pending *pending = raft->data;
        struct replica *v = pending->voter;

        TAILQ_REMOVE(&v->pending, pending, entry);
        pending->answer.outcome = status == 0 ? OUTCOME_DONE : OUTCOME_UNKNOWN;
        answer(v, pending->client, &pending->answer);
        free(pending);
}

/* As cluster_log(): the log's times never go back. */
static int pack_command(struct replica *v, const void *data, size_t size_bytes, struct raft_buffer *ret) {
        Rm__Command *command = rm__command__unpack(NULL, size_bytes, data);
        int r;

        if (!command)
                abort();
        command->time_usec = host_real_usec(v->host);
        if (command->time_usec < v->last_time_usec)
                command->time_usec = v->last_time_usec;
        v->last_time_usec = command->time_usec;
        r = log_entry_pack(command, ret);
        rm__command__free_unpacked(command, NULL);
        return r;
}

static void propose(struct replica *v, const struct request_packet *request, const void *data, size_t size_bytes) {
        struct pending *pending = xcalloc(1, sizeof(*pending));
        struct raft_buffer buf;
        int r;

        if (pack_command(v, data, size_bytes, &buf) < 0)
                abort();
        pending->voter = v;
        pending->client = request->client;
        pending->index = raft_last_index(&v->raft) + 1;
        pending->answer =
                (struct answer_packet) { .kind = PACKET_ANSWER, .operation = request->operation, .index = pending->index };
        pending->raft.data = pending;
        checks_proposed(v->checks, pending->index, &buf, request->operation);
        timeline_trace(host_timeline(v->host), host_name(v->host), "puts operation %u into its log at %" PRIu64, request->operation,
                       pending->index);
        r = raft_apply(&v->raft, &pending->raft, &buf, 1, on_applied);
        if (r == 0) {
                TAILQ_INSERT_TAIL(&v->pending, pending, entry);
                return;
        }
        /* libraft has seen these two before it took the entry. */
        if (r == RAFT_NOSPACE || r == RAFT_NOTLEADER)
                raft_free(buf.base);
        else
                checks_fail(v->checks, "%s: the log rejects an entry: %s", host_name(v->host), raft_strerror(r));
        timeline_trace(host_timeline(v->host), host_name(v->host), "cannot: %s", raft_strerror(r));
        pending->answer.outcome = OUTCOME_REFUSED;
        answer(v, pending->client, &pending->answer);
        free(pending);
}

static void hand_on(struct replica *v, const struct request_packet *request, const void *data, size_t size_bytes) {
        struct answer_packet refusal = { .kind = PACKET_ANSWER, .operation = request->operation, .outcome = OUTCOME_REFUSED };
        struct request_packet *copy;
        const char *address;
        raft_id leader;

        raft_leader(&v->raft, &leader, &address);
        if (leader == 0 || leader == v->config.number + 1 || request->handed_on >= HANDED_ON_MAX) {
                answer(v, request->client, &refusal);
                return;
        }
        copy = xcalloc(1, size_bytes);
        memcpy(copy, data, size_bytes);
        copy->handed_on++;
        network_send(v->network, v->config.number, (unsigned) leader - 1, copy, size_bytes);
        free(copy);
}

static void on_packet(void *userdata, unsigned from, const void *data, size_t size_bytes) {
        struct replica *v = userdata;
        struct request_packet request;
        enum packet_kind kind;

        memcpy(&kind, data, sizeof(kind));
        if (kind == PACKET_RAFT) {
                raftio_receive(v->rio, from, (const uint8_t *) data + RAFT_HEAD_BYTES, size_bytes - RAFT_HEAD_BYTES);
                return;
        }
        memcpy(&request, data, sizeof(request));
        if (raft_state(&v->raft) == RAFT_LEADER)
                propose(v, &request, (const uint8_t *) data + sizeof(request), size_bytes - sizeof(request));
        else
                hand_on(v, &request, data, size_bytes);
}

static void send_raft(void *userdata, unsigned to, const void *data, size_t size_bytes) {
        struct replica *v = userdata;
        enum packet_kind kind = PACKET_RAFT;
        uint8_t *packet = xcalloc(1, RAFT_HEAD_BYTES + size_bytes);

        memcpy(packet, &kind, sizeof(kind));
        memcpy(packet + RAFT_HEAD_BYTES, data, size_bytes);
        network_send(v->network, v->config.number, to, packet, RAFT_HEAD_BYTES + size_bytes);
        free(packet);
}

/* ---- its process ---- */

/* raft_uv has libraft do this from its loop, by a function that is not exported. The list is one of libraft's: each link is that to the
 * next and that to the one before. */
static void fire_completed(struct replica *v) {
        void **list = v->raft.legacy.requests;

        while (list[0] != (void *) list) {
                void **link = list[0], **next = link[0], **previous = link[1];
                struct raft_apply *apply = (struct raft_apply *) (void *) ((char *) link - offsetof(struct raft_apply, queue));

                previous[0] = next;
                next[1] = previous;
                apply->cb(apply, apply->status, apply->result);
        }
}

static void on_idle(void *userdata) {
        struct replica *v = userdata;

        fire_completed(v);
        if (raft_state(&v->raft) == RAFT_LEADER)
                checks_leads(v->checks, v->config.number, host_name(v->host), raft_current_term(&v->raft),
                             raft_last_index(&v->raft));
}

static void emit(struct raft_tracer *tracer, int type, const void *info) {
        const struct raft_tracer_info *what = info;
        const struct replica *v = tracer->impl;

        if (type == RAFT_TRACER_DIAGNOSTIC && what->diagnostic.level <= 3)
                timeline_trace(host_timeline(v->host), host_name(v->host), "raft: %s", what->diagnostic.message);
}

static int bootstrap(struct replica *v) {
        struct raft_configuration configuration;
        int r = 0;

        raft_configuration_init(&configuration);
        for (unsigned i = 0; r == 0 && i < v->config.n_voters; i++) {
                cleanup_free char *address = xasprintf("v%u", i);

                r = raft_configuration_add(&configuration, i + 1, address, RAFT_VOTER);
        }
        if (r == 0)
                r = raft_bootstrap(&v->raft, &configuration);
        raft_configuration_close(&configuration);
        v->bootstrapped = r == 0;
        return r;
}

static void set_up_raft(struct replica *v) {
        raft_set_heartbeat_timeout(&v->raft, HEARTBEAT_MSEC);
        raft_set_election_timeout(&v->raft, ELECTION_MSEC);
        raft_set_install_snapshot_timeout(&v->raft, SNAPSHOT_MSEC);
        raft_set_capacity_threshold(&v->raft, RESERVE_KIB);
        raft_set_snapshot_threshold(&v->raft, v->config.snapshot_entries);
        raft_set_snapshot_trailing(&v->raft, v->config.trailing_entries);
        raft_set_pre_vote(&v->raft, v->config.pre_vote);
        v->tracer = (struct raft_tracer) { .impl = v, .version = 2, .emit = emit };
        v->raft.tracer = timeline_traced(host_timeline(v->host)) ? &v->tracer : NULL;
}

static void on_start(void *userdata) {
        struct replica *v = userdata;
        int r;

        v->running = true;
        v->dying = false;
        v->last_time_usec = 0;
        set_state(v, state_create(CHECKS_CLUSTER));
        v->rio = raftio_create(v->host, v->disk, send_raft, v);
        v->fsm =
                (struct raft_fsm) { .version = 1, .data = v, .apply = fsm_apply, .snapshot = fsm_snapshot, .restore = fsm_restore };
        memset(&v->raft, 0, sizeof(v->raft));
        r = raft_init(&v->raft, raftio_get(v->rio), &v->fsm, v->config.number + 1, host_name(v->host));
        if (r != 0)
                abort();
        set_up_raft(v);
        if (!v->bootstrapped)
                r = bootstrap(v);
        if (r == 0)
                r = raft_start(&v->raft);
        if (r != 0)
                checks_fail(v->checks, "%s does not start: %s", host_name(v->host), raft_strerror(r));
}

static void on_closed(struct raft *raft) {
}

static void on_killed(void *userdata) {
        struct replica *v = userdata;

        v->running = false;
        v->dying = true;
        raftio_kill(v->rio);
        raft_close(&v->raft, on_closed);
        raftio_destroy(v->rio);
        set_state(v, NULL);
}

struct replica *replica_create(struct timeline *t, struct checks *checks, const struct replica_config *config) {
        static const struct host_ops ops = {
                .on_start = on_start, .on_killed = on_killed, .on_packet = on_packet, .on_idle = on_idle
        };
        struct replica *v = xcalloc(1, sizeof(*v));
        cleanup_free char *name = xasprintf("v%u", config->number);

        v->config = *config;
        v->checks = checks;
        v->host = host_create(t, config->number, name, &ops, v);
        v->disk = disk_create(v->host);
        TAILQ_INIT(&v->pending);
        return v;
}

void replica_connect(struct replica *v, struct network *network) {
        v->network = network;
}

void replica_destroy(struct replica *v) {
        if (!v)
                return;
        host_kill(v->host);
        disk_destroy(v->disk);
        host_destroy(v->host);
        free(v);
}

struct host *replica_host(const struct replica *v) {
        return v->host;
}

struct disk *replica_disk(const struct replica *v) {
        return v->disk;
}

bool replica_leads(const struct replica *v) {
        return v->running && raft_state((struct raft *) &v->raft) == RAFT_LEADER;
}

const Rm__State *replica_state(const struct replica *v) {
        return v->running ? v->state : NULL;
}

uint64_t replica_applied(const struct replica *v) {
        return v->running ? raft_last_applied((struct raft *) &v->raft) : 0;
}
