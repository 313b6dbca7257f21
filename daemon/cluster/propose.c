#include "daemon/cluster/propose.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>

#include "common/util.h"
#include "daemon/cluster/state.h"

#define TIMEOUT_USEC UINT64_C(10000000)

enum proposal_stage {
        PROPOSAL_QUEUED,
        PROPOSAL_SENT,   /* to the leader over there */
        PROPOSAL_DONE,   /* the leader has answered, but the local state does not hold the command yet */
        PROPOSAL_LOGGED, /* in our own log: only the log answers, or the deadline, or that we do not lead any more */
};

struct proposal {
        struct proposals *proposals;
        Rm__Command *command; /* until it has been sent */
        propose_fn callback;
        void *userdata;
        uint64_t deadline_usec;
        uint32_t id;
        enum proposal_stage stage;
        Rm__ProposeReply *reply; /* DONE */
        TAILQ_ENTRY(proposal) entry;
};

struct proposals {
        struct proposals_ops ops;
        void *userdata;
        struct event *flush;
        uint64_t timeout_usec;
        TAILQ_HEAD(, proposal) list; /* in the order they were made */
        size_t n_done; /* in stage DONE */
        uint32_t next_id;
};

static void proposal_free(struct proposal *proposal) {
        if (proposal->command)
                rm__command__free_unpacked(proposal->command, NULL);
        if (proposal->reply)
                rm__propose_reply__free_unpacked(proposal->reply, NULL);
        free(proposal);
}

static void answer(struct proposal *proposal, int code, const char *text, uint64_t index, uint64_t created) {
        propose_fn callback = proposal->callback;
        void *userdata = proposal->userdata;

        TAILQ_REMOVE(&proposal->proposals->list, proposal, entry);
        proposal->proposals->n_done -= proposal->stage == PROPOSAL_DONE;
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

        free(logged);
        if (proposal)
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
        struct proposals *p = proposal->proposals;
        struct logged *logged = xcalloc(1, sizeof(*logged));
        int r;

        logged->proposals = p;
        logged->id = proposal->id;
        proposal->stage = PROPOSAL_LOGGED;
        r = p->ops.log(p->userdata, proposal->command, on_logged, logged);
        if (r < 0) {
                free(logged);
                answer(proposal, r, refusal(r), 0, 0);
                return;
        }
        rm__command__free_unpacked(take_ptr(proposal->command), NULL);
}

/* ---- the leader's log ---- */

static void flush_to_leader(struct proposal *proposal) {
        struct proposals *p = proposal->proposals;
        Rm__PeerMessage message = RM__PEER_MESSAGE__INIT;
        Rm__Propose propose = RM__PROPOSE__INIT;
        int r;

        propose.id = proposal->id;
        propose.command = proposal->command;
        message.body_case = RM__PEER_MESSAGE__BODY_PROPOSE;
        message.propose = &propose;
        r = p->ops.send(p->userdata, &message);
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
        uint32_t end = p->next_id;
        enum propose_route route;
        struct proposal *proposal;

        while ((route = p->ops.route(p->userdata)) != PROPOSE_NOWHERE && (proposal = next_queued(p, end))) {
                if (route == PROPOSE_HERE)
                        flush_to_log(proposal);
                else
                        flush_to_leader(proposal);
        }
}

void proposals_leader_changed(struct proposals *p) {
        struct proposal *proposal;

        event_active(p->flush, EV_TIMEOUT, 0);
        for (;;) {
                TAILQ_FOREACH (proposal, &p->list, entry)
                        if (proposal->stage == PROPOSAL_SENT)
                                break;
                if (!proposal)
                        return;
                answer(proposal, -EHOSTUNREACH, "the leader was lost before it answered; it may be done or not", 0, 0);
        }
}

/* A voter gets the command through raft, others behind all that they lack: the answer may be here first. */
void proposals_reply(struct proposals *p, const Rm__ProposeReply *reply) {
        struct proposal *proposal = find(p, reply->id, PROPOSAL_SENT);

        if (!proposal)
                return;
        if (reply->index <= p->ops.get_state(p->userdata)->index) {
                answer(proposal, reply->code, reply->text, reply->index, reply->created);
                return;
        }
        proposal->stage = PROPOSAL_DONE;
        proposal->reply = (Rm__ProposeReply *) message_copy(&reply->base);
        p->n_done++;
}

static struct proposal *next_done(const struct proposals *p, uint64_t index) {
        struct proposal *proposal;

        TAILQ_FOREACH (proposal, &p->list, entry)
                if (proposal->stage == PROPOSAL_DONE && proposal->reply->index <= index)
                        return proposal;
        return NULL;
}

void proposals_applied(struct proposals *p) {
        struct proposal *proposal;

        while (p->n_done > 0 && (proposal = next_done(p, p->ops.get_state(p->userdata)->index))) {
                Rm__ProposeReply *reply = take_ptr(proposal->reply);

                answer(proposal, reply->code, reply->text, reply->index, reply->created);
                rm__propose_reply__free_unpacked(reply, NULL);
        }
}

/* ---- ours ---- */

void proposals_add(struct proposals *p, const Rm__Command *command, propose_fn callback, void *userdata) {
        struct proposal *proposal = xcalloc(1, sizeof(*proposal));

        proposal->proposals = p;
        proposal->command = (Rm__Command *) message_copy(&command->base);
        proposal->callback = callback;
        proposal->userdata = userdata;
        proposal->deadline_usec = now_usec() + p->timeout_usec;
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

struct proposals *proposals_create(struct event_base *base, uint64_t timeout_usec, const struct proposals_ops *ops,
                                   void *userdata) {
        struct proposals *p = xcalloc(1, sizeof(*p));

        p->ops = *ops;
        p->userdata = userdata;
        p->timeout_usec = timeout_usec ? timeout_usec : TIMEOUT_USEC;
        TAILQ_INIT(&p->list);
        /* Numbers of an earlier life of this daemon must not be taken for ours. */
        if (getrandom(&p->next_id, sizeof(p->next_id), 0) != (ssize_t) sizeof(p->next_id))
                p->next_id = (uint32_t) now_real_usec();
        p->flush = evtimer_new(base, on_flush, p);
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
