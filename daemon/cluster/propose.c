/* Proposals on their way: kept until there is a leader, put into the own log or sent to the leader's, answered exactly once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/cluster/cluster_internal.h"

enum proposal_stage {
        PROPOSAL_QUEUED,
        PROPOSAL_SENT,   /* to the leader over there */
        PROPOSAL_LOGGED, /* in our own log: only the log answers, or the deadline */
};

struct proposal {
        struct proposals *proposals;
        Rm__Command *command; /* until it has been sent */
        cluster_propose_fn callback;
        void *userdata;
        uint64_t deadline_usec;
        uint32_t id;
        enum proposal_stage stage;
        TAILQ_ENTRY(proposal) entry;
};

struct proposals {
        struct cluster *cluster;
        struct event *flush;
        TAILQ_HEAD(, proposal) list; /* in the order they were made */
        uint32_t next_id;
};

/* Somebody else's, in our log. */
struct served {
        struct cluster *cluster;
        char *node;
        uint32_t id;
};

static void proposal_free(struct proposal *proposal) {
        if (proposal->command)
                rm__command__free_unpacked(proposal->command, NULL);
        free(proposal);
}

static void answer(struct proposal *proposal, int code, const char *text, uint64_t index, uint64_t created) {
        cluster_propose_fn callback = proposal->callback;
        void *userdata = proposal->userdata;

        TAILQ_REMOVE(&proposal->proposals->list, proposal, entry);
        proposal_free(proposal);
        if (callback)
                callback(userdata, code, text, index, created);
}

static struct proposal *find(struct proposals *p, uint32_t id, enum proposal_stage stage) {
        struct proposal *proposal;

        TAILQ_FOREACH (proposal, &p->list, entry)
                if (proposal->id == id && proposal->stage == stage)
                        return proposal;
        return NULL;
}

/* ---- our own log ---- */

/* The proposal itself may have been answered by its deadline: only its number goes into the log's hands. */
struct logged {
        struct proposals *proposals;
        uint32_t id;
};

static void on_logged(void *userdata, const struct raftlog_outcome *outcome) {
        struct logged *logged = userdata;
        struct proposal *proposal = find(logged->proposals, logged->id, PROPOSAL_LOGGED);
        bool closing = logged->proposals->cluster->closing;

        free(logged);
        if (!proposal)
                return;
        if (closing && outcome->error.code == -EHOSTUNREACH)
                answer(proposal, -ECANCELED, "shutting down", 0, 0);
        else
                answer(proposal, outcome->error.code, outcome->error.code < 0 ? error_text(&outcome->error) : "", outcome->index,
                       outcome->created);
}

static const char *refusal(int code) {
        switch (code) {
        case -EHOSTUNREACH:
                return "no leader";
        case -ENOSPC:
                return "the leader's disk is full, so that nothing can be changed until there is room; what runs goes on";
        default:
                return strerror(-code);
        }
}

static void flush_to_log(struct proposal *proposal) {
        struct logged *logged = xcalloc(1, sizeof(*logged));
        int r;

        logged->proposals = proposal->proposals;
        logged->id = proposal->id;
        proposal->stage = PROPOSAL_LOGGED;
        r = cluster_log(proposal->proposals->cluster, proposal->command, on_logged, logged);
        if (r < 0) {
                free(logged);
                answer(proposal, r, refusal(r), 0, 0);
                return;
        }
        rm__command__free_unpacked(take_ptr(proposal->command), NULL);
}

/* ---- the leader's log ---- */

static void flush_to_leader(struct proposal *proposal) {
        struct cluster *c = proposal->proposals->cluster;
        Rm__PeerMessage message = RM__PEER_MESSAGE__INIT;
        Rm__Propose propose = RM__PROPOSE__INIT;
        int r;

        propose.id = proposal->id;
        propose.command = proposal->command;
        message.body_case = RM__PEER_MESSAGE__BODY_PROPOSE;
        message.propose = &propose;
        r = peers_send(c->peers, c->leader, &message);
        if (r == -ENOTCONN) /* has failed, and is about to say so */
                r = -EHOSTUNREACH;
        if (r < 0) {
                answer(proposal, r, strerror(-r), 0, 0);
                return;
        }
        proposal->stage = PROPOSAL_SENT;
        rm__command__free_unpacked(take_ptr(proposal->command), NULL);
}

static struct proposal *next_queued(struct proposals *p, uint32_t end) {
        struct proposal *proposal;

        TAILQ_FOREACH (proposal, &p->list, entry)
                if (proposal->stage == PROPOSAL_QUEUED && (int32_t) (proposal->id - end) < 0)
                        return proposal;
        return NULL;
}

/* Answers may come from within, and with them new proposals: those wait for the next round. */
static void on_flush(evutil_socket_t fd, short what, void *userdata) {
        struct proposals *p = userdata;
        struct cluster *c = p->cluster;
        uint32_t end = p->next_id;
        struct proposal *proposal;

        while (c->leader && (c->log || peers_connected(c->peers, c->leader)) && (proposal = next_queued(p, end))) {
                if (c->log)
                        flush_to_log(proposal);
                else
                        flush_to_leader(proposal);
        }
}

void proposals_leader_changed(struct proposals *p) {
        struct proposal *proposal;

        if (p->cluster->leader) {
                event_active(p->flush, EV_TIMEOUT, 0);
                return;
        }
        for (;;) {
                TAILQ_FOREACH (proposal, &p->list, entry)
                        if (proposal->stage == PROPOSAL_SENT)
                                break;
                if (!proposal)
                        return;
                answer(proposal, -EHOSTUNREACH, "the leader was lost before it answered; it may be done or not", 0, 0);
        }
}

void proposals_reply(struct proposals *p, const char *node, const Rm__ProposeReply *reply) {
        struct proposal *proposal = find(p, reply->id, PROPOSAL_SENT);

        if (!p->cluster->leader || strcmp(p->cluster->leader, node) != 0 || !proposal)
                return;
        answer(proposal, reply->code, reply->text, reply->index, reply->created);
}

/* ---- others' proposals, at the leader ---- */

static void send_reply(struct cluster *c, const char *node, uint32_t id, const struct raftlog_outcome *outcome) {
        Rm__PeerMessage message = RM__PEER_MESSAGE__INIT;
        Rm__ProposeReply reply = RM__PROPOSE_REPLY__INIT;

        reply.id = id;
        reply.code = outcome->error.code;
        reply.text = outcome->error.code < 0 ? (char *) error_text(&outcome->error) : (char *) protobuf_c_empty_string;
        reply.index = outcome->index;
        reply.created = outcome->created;
        message.body_case = RM__PEER_MESSAGE__BODY_PROPOSE_REPLY;
        message.propose_reply = &reply;
        (void) peers_send(c->peers, node, &message);
}

static void on_served(void *userdata, const struct raftlog_outcome *outcome) {
        struct served *served = userdata;

        if (!served->cluster->closing)
                send_reply(served->cluster, served->node, served->id, outcome);
        free(served->node);
        free(served);
}

void proposals_serve(struct proposals *p, const char *node, const Rm__Propose *propose) {
        struct cluster *c = p->cluster;
        struct raftlog_outcome outcome = { 0 };
        struct served *served;
        int r;

        if (!c->log || !propose->command) {
                (void) error_set(&outcome.error, c->log ? -EINVAL : -EHOSTUNREACH, "this node does not lead");
                send_reply(c, node, propose->id, &outcome);
                return;
        }
        served = xcalloc(1, sizeof(*served));
        served->cluster = c;
        served->node = xstrdup(node);
        served->id = propose->id;
        r = cluster_log(c, propose->command, on_served, served);
        if (r < 0) {
                (void) error_sys(&outcome.error, r, "the leader's log");
                on_served(served, &outcome);
        }
}

/* ---- ours ---- */

void cluster_propose(struct cluster *c, const Rm__Command *command, cluster_propose_fn callback, void *userdata) {
        struct proposals *p = c->proposals;
        struct proposal *proposal = xcalloc(1, sizeof(*proposal));

        proposal->proposals = p;
        proposal->command = (Rm__Command *) message_copy(&command->base);
        proposal->callback = callback;
        proposal->userdata = userdata;
        proposal->deadline_usec = now_usec() + c->propose_timeout_usec;
        proposal->id = p->next_id++;
        TAILQ_INSERT_TAIL(&p->list, proposal, entry);
        event_active(p->flush, EV_TIMEOUT, 0);
}

void proposals_expire(struct proposals *p, uint64_t now) {
        struct proposal *proposal = TAILQ_FIRST(&p->list);

        /* All have the same time to live: the list is in the order of deadlines. */
        while (proposal && proposal->deadline_usec <= now) {
                if (proposal->stage == PROPOSAL_QUEUED)
                        answer(proposal, -EHOSTUNREACH, "no leader", 0, 0);
                else
                        answer(proposal, -ETIMEDOUT, "the leader has not answered in time; it may be done or not", 0, 0);
                proposal = TAILQ_FIRST(&p->list);
        }
}

struct proposals *proposals_create(struct cluster *c) {
        struct proposals *p = xcalloc(1, sizeof(*p));

        p->cluster = c;
        TAILQ_INIT(&p->list);
        /* Numbers of an earlier life of this daemon must not be taken for ours. */
        if (getrandom(&p->next_id, sizeof(p->next_id), 0) != (ssize_t) sizeof(p->next_id))
                p->next_id = (uint32_t) now_real_usec();
        p->flush = evtimer_new(c->base, on_flush, p);
        if (!p->flush)
                abort();
        return p;
}

void proposals_destroy(struct proposals *p) {
        struct proposal *proposal;

        if (!p)
                return;
        while ((proposal = TAILQ_FIRST(&p->list)))
                answer(proposal, -ECANCELED, "shutting down", 0, 0);
        event_free(p->flush);
        free(p);
}
