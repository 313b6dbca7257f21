#include "daemon/cluster/propose.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>

#include "common/util.h"
#include "daemon/peers/peer_message.h"
#include "daemon/state/state.h"
#include "daemon/state/state_session.h"

#define TIMEOUT_USEC UINT64_C(10000000)
#define NO_LEADER "no leader can be reached now; running jobs go on, changes have to wait"
#define NOT_LEADING "this node does not lead any more"

/* Proposals have numbers (state_session.h), so that one may be sent again, to the next leader, when
 * the one before was lost before it answered: it is applied once. What came of it is then in the
 * state, however that comes here. Decisions of this node's leadership have no number: they go into
 * this node's own log, or nowhere. */
enum proposal_stage {
        PROPOSAL_QUEUED,
        PROPOSAL_HELD, /* the leader did not take it: to be sent again with the next beat, and nothing goes past it */
        PROPOSAL_SENT, /* to the leader over there */
        PROPOSAL_DONE, /* the leader has answered, but the local state does not hold the command yet */
        PROPOSAL_LOGGED, /* in our own log: only the log answers, or the deadline, or that we do not lead any more */
};

struct proposal {
        struct proposals *proposals;
        Rm__Command *command; /* until it has been sent; if it has a number, until it is answered */
        propose_fn callback;
        void *userdata;
        uint64_t deadline_usec;
        uint32_t id;
        uint64_t instance, sequence; /* its number; 0: it has none, or not yet */
        enum proposal_stage stage;
        bool leaders; /* a decision of this node's leadership, which ends with that */
        bool sent; /* a log may contain it */
        bool sent_again; /* another leader's may */
        Rm__ProposeReply *reply; /* DONE */
        TAILQ_ENTRY(proposal) entry;
};

struct proposals {
        struct proposals_ops ops;
        void *userdata;
        struct event *flush;
        uint64_t timeout_usec;
        TAILQ_HEAD(proposal_list, proposal) list; /* in the order they were made */
        size_t n_done; /* in stage DONE */
        uint32_t next_id;
        uint64_t instance, last_sequence; /* for new numbers */
        bool opened; /* the state has a session of the instance */
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

static void wake(struct proposals *p) {
        event_active(p->flush, EV_TIMEOUT, 0);
}

static struct proposal *find(struct proposals *p, uint32_t id, enum proposal_stage stage) {
        struct proposal *proposal;

        TAILQ_FOREACH (proposal, &p->list, entry)
                if (proposal->id == id && proposal->stage == stage)
                        return proposal;
        return NULL;
}

/* ---- numbers ---- */

static uint64_t draw_number(void) {
        uint64_t number = 0;

        while (number == 0)
                if (getrandom(&number, sizeof(number), 0) != (ssize_t) sizeof(number))
                        number = now_real_usec();
        return number;
}

static void begin_instance(struct proposals *p) {
        p->instance = draw_number();
        p->last_sequence = 0;
        p->opened = false;
}

/* The first one of this instance that is not answered. */
static const struct proposal *first_open(const struct proposals *p, uint64_t instance) {
        const struct proposal *proposal;

        TAILQ_FOREACH (proposal, &p->list, entry)
                if (proposal->sequence > 0 && proposal->instance == instance)
                        return proposal;
        return NULL;
}

/* The state is to know what came of each that is open. */
static bool may_number(const struct proposals *p) {
        const struct proposal *first = first_open(p, p->instance);

        return !first || p->last_sequence - first->sequence + 1 < STATE_RESULTS_KEPT;
}

static bool wants_number(const struct proposal *proposal) {
        return !proposal->leaders && proposal->sequence == 0;
}

static void set_number(struct proposal *proposal) {
        struct proposals *p = proposal->proposals;

        assert(proposal->sequence == 0); /* a number is never given twice: by it a command is done once */
        proposal->instance = p->instance;
        proposal->sequence = ++p->last_sequence;
}

/* The one before it that is not answered; NULL: there is none. */
static const struct proposal *open_before(const struct proposal *proposal) {
        const struct proposal *before = proposal;

        while ((before = TAILQ_PREV(before, proposal_list, entry)))
                if (before->sequence > 0 && before->instance == proposal->instance)
                        return before;
        return NULL;
}

/* Valid as long as nothing is answered. */
static void set_origin(struct proposal *proposal, Rm__Origin *origin) {
        const struct proposals *p = proposal->proposals;
        const struct proposal *before = open_before(proposal);

        rm__origin__init(origin);
        origin->node = (char *) p->ops.self(p->userdata);
        origin->instance = proposal->instance;
        origin->sequence = proposal->sequence;
        origin->after = before ? before->sequence : 0;
        origin->answered = first_open(p, proposal->instance)->sequence - 1;
        assert(origin->after < origin->sequence && origin->answered < origin->sequence);
        origin->opens = proposal->instance == p->instance && !p->opened;
        proposal->command->origin = origin;
}

/* Back into its place in the queue. `held`: not at once. */
static void send_again(struct proposal *proposal, bool held) {
        proposal->sent_again |= proposal->sent;
        proposal->stage = held ? PROPOSAL_HELD : PROPOSAL_QUEUED;
        if (!held)
                wake(proposal->proposals);
}

/* The command was sent: it is needed again only if it has a number. */
static void release_command(struct proposal *proposal) {
        proposal->command->origin = NULL;
        if (proposal->sequence == 0)
                rm__command__free_unpacked(take_ptr(proposal->command), NULL);
}

/* A leader, or this node's own log, did not put it there. Is it to be sent again? If it was sent
 * before, it may be in the log nevertheless. */
static bool try_again(struct proposal *proposal, int code, bool sent_before) {
        if (proposal->sequence == 0 || (code != -EHOSTUNREACH && code != -EILSEQ && !(code == -ENOSPC && sent_before)))
                return false;
        send_again(proposal, true);
        return true;
}

/* ---- our own log ---- */

/* The proposal itself may have been answered by its deadline: only its number goes into the log's
 * hands. */
struct logged {
        struct proposals *proposals;
        uint32_t id;
};

static void on_logged(void *userdata, const struct raftlog_outcome *outcome) {
        struct logged *logged = userdata;
        struct proposal *proposal = find(logged->proposals, logged->id, PROPOSAL_LOGGED);

        free(logged);
        if (!proposal || (outcome->error.code < 0 && try_again(proposal, outcome->error.code, true)))
                return;
        answer(proposal, outcome->error.code, outcome->error.code < 0 ? error_text(&outcome->error) : "", outcome->index,
               outcome->created);
}

static const char *refusal(int code) {
        switch (code) {
        case -EHOSTUNREACH:
                return NO_LEADER;
        case -ENOSPC:
                return "the leader's disk is full, so that nothing can be changed until there is room; what runs goes on";
        default:
                return strerror(-code);
        }
}

static void flush_to_log(struct proposal *proposal) {
        struct proposals *p = proposal->proposals;
        struct logged *logged = xcalloc(1, sizeof(*logged));
        bool sent_before = proposal->sent;
        struct rm_error err = { 0 };
        int r;

        logged->proposals = p;
        logged->id = proposal->id;
        proposal->stage = PROPOSAL_LOGGED;
        r = p->ops.log(p->userdata, proposal->command, on_logged, logged, &err);
        proposal->sent |= r == 0;
        release_command(proposal);
        if (r < 0) {
                free(logged);
                if (!try_again(proposal, r, sent_before))
                        answer(proposal, r, err.text[0] ? err.text : refusal(r), 0, 0);
        }
}

/* ---- the leader's log ---- */

static void flush_to_leader(struct proposal *proposal) {
        struct proposals *p = proposal->proposals;
        Rm__Propose propose = RM__PROPOSE__INIT;
        int r;

        propose.id = proposal->id;
        propose.command = proposal->command;
        r = p->ops.send(p->userdata, &PEER_MESSAGE(&propose));
        if (r == -ENOTCONN) /* has failed, and is about to say so */
                r = -EHOSTUNREACH;
        release_command(proposal);
        if (r == 0) {
                proposal->stage = PROPOSAL_SENT;
                proposal->sent = true;
        } else if (!try_again(proposal, r, proposal->sent)) {
                answer(proposal, r, strerror(-r), 0, 0);
        }
}

static struct proposal *next_queued(struct proposals *p, uint32_t end) {
        struct proposal *proposal;

        TAILQ_FOREACH (proposal, &p->list, entry)
                if (proposal->stage == PROPOSAL_HELD)
                        return NULL;
                else if (proposal->stage == PROPOSAL_QUEUED && (int32_t) (proposal->id - end) < 0)
                        return wants_number(proposal) && !may_number(p) ? NULL : proposal;
        return NULL;
}

static void flush_one(struct proposal *proposal, enum propose_route route) {
        Rm__Origin origin;

        if (proposal->leaders && route != PROPOSE_HERE) {
                answer(proposal, -EHOSTUNREACH, NOT_LEADING, 0, 0);
                return;
        }
        if (wants_number(proposal))
                set_number(proposal);
        if (proposal->sequence > 0)
                set_origin(proposal, &origin);
        if (route == PROPOSE_HERE)
                flush_to_log(proposal);
        else
                flush_to_leader(proposal);
}

/* Answers may come from within, and with them new proposals: those wait for the next round. */
static void on_flush(evutil_socket_t fd, short what, void *userdata) {
        struct proposals *p = userdata;
        uint32_t end = p->next_id;
        enum propose_route route;
        struct proposal *proposal;

        while ((route = p->ops.route(p->userdata)) != PROPOSE_NOWHERE && (proposal = next_queued(p, end)))
                flush_one(proposal, route);
}

/* A decision of this node's leadership, which has ended. One that has just begun may have made some
 * already. */
static struct proposal *next_lost(const struct proposals *p) {
        bool leads = p->ops.route(p->userdata) == PROPOSE_HERE;
        struct proposal *proposal;

        TAILQ_FOREACH (proposal, &p->list, entry)
                if (proposal->leaders && !leads && proposal->stage == PROPOSAL_QUEUED)
                        return proposal;
        return NULL;
}

void proposals_leader_changed(struct proposals *p) {
        struct proposal *proposal;

        TAILQ_FOREACH (proposal, &p->list, entry)
                if (proposal->stage == PROPOSAL_HELD || proposal->stage == PROPOSAL_SENT)
                        send_again(proposal, false);
        wake(p);
        while ((proposal = next_lost(p)))
                answer(proposal, -EHOSTUNREACH, NOT_LEADING, 0, 0);
}

/* ---- the answer ---- */

/* The oldest one whose result is in the state, however it has come there. */
static bool answer_from_state(struct proposals *p) {
        struct proposal *proposal;
        const Rm__SessionResult *result;
        const Rm__Session *session;

        TAILQ_FOREACH (proposal, &p->list, entry)
                if (proposal->sequence > 0 && proposal->sent)
                        break;
        if (!proposal)
                return false;
        session = state_session(p->ops.get_state(p->userdata), p->ops.self(p->userdata), proposal->instance);
        if (!session)
                return false;
        p->opened |= proposal->instance == p->instance;
        if (proposal->sequence > session->sequence)
                return false;
        result = session_result(session, proposal->sequence);
        if (result)
                answer(proposal, result->code, result->text, result->index, result->created);
        else
                answer(proposal, -ESTALE, "it may be done or not: what came of it is not known any more", 0, 0);
        wake(p); /* there is room for the number of another one */
        return true;
}

/* The state, which is at least at the reply's index, has no result of it. */
static void conclude(struct proposal *proposal, const Rm__ProposeReply *reply) {
        struct proposals *p = proposal->proposals;

        if (reply->code == -ESTALE && proposal->instance == p->instance)
                begin_instance(p);
        answer(proposal, reply->code, reply->text, reply->index, reply->created);
}

/* A voter gets the command through raft, others behind all that they lack: the answer may be here
 * first. */
void proposals_reply(struct proposals *p, const Rm__ProposeReply *reply) {
        struct proposal *proposal = find(p, reply->id, PROPOSAL_SENT);

        if (!proposal || (reply->code < 0 && (reply->index == 0 || reply->code == -EILSEQ) &&
                          try_again(proposal, reply->code, proposal->sent_again)))
                return;
        if (reply->index <= p->ops.get_state(p->userdata)->index) {
                conclude(proposal, reply);
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

        while (answer_from_state(p))
                ;
        while (p->n_done > 0 && (proposal = next_done(p, p->ops.get_state(p->userdata)->index))) {
                Rm__ProposeReply *reply = take_ptr(proposal->reply);

                conclude(proposal, reply);
                rm__propose_reply__free_unpacked(reply, NULL);
        }
}

/* ---- ours ---- */

static struct proposal *add(struct proposals *p, const Rm__Command *command, propose_fn callback, void *userdata) {
        struct proposal *proposal = xcalloc(1, sizeof(*proposal));

        proposal->proposals = p;
        proposal->command = (Rm__Command *) message_copy(&command->base);
        proposal->callback = callback;
        proposal->userdata = userdata;
        proposal->deadline_usec = now_usec() + p->timeout_usec;
        proposal->id = p->next_id++;
        TAILQ_INSERT_TAIL(&p->list, proposal, entry);
        wake(p);
        return proposal;
}

void proposals_add(struct proposals *p, const Rm__Command *command, propose_fn callback, void *userdata) {
        (void) add(p, command, callback, userdata);
}

void proposals_add_decision(struct proposals *p, const Rm__Command *command) {
        add(p, command, NULL, NULL)->leaders = true;
}

static void expire(struct proposal *proposal) {
        bool waits = proposal->stage == PROPOSAL_QUEUED || proposal->stage == PROPOSAL_HELD;

        if (waits && !proposal->sent)
                answer(proposal, -EHOSTUNREACH, NO_LEADER, 0, 0);
        else if (waits)
                answer(proposal, -ETIMEDOUT, "the leader was lost, and there is no other; it may be done or not", 0, 0);
        else
                answer(proposal, -ETIMEDOUT, "the leader has not answered in time; it may be done or not", 0, 0);
}

void proposals_expire(struct proposals *p, uint64_t now) {
        struct proposal *proposal;

        /* All have the same time to live: the list is in the order of deadlines. */
        while ((proposal = TAILQ_FIRST(&p->list)) && proposal->deadline_usec <= now)
                expire(proposal);
        TAILQ_FOREACH (proposal, &p->list, entry)
                if (proposal->stage == PROPOSAL_HELD)
                        send_again(proposal, false);
        wake(p);
}

struct proposals *proposals_create(struct event_base *base, uint64_t timeout_usec, const struct proposals_ops *ops,
                                   void *userdata) {
        struct proposals *p = xcalloc(1, sizeof(*p));

        p->ops = *ops;
        p->userdata = userdata;
        p->timeout_usec = timeout_usec ? timeout_usec : TIMEOUT_USEC;
        TAILQ_INIT(&p->list);
        /* Numbers of a previous rmd must not be taken for ours. */
        if (getrandom(&p->next_id, sizeof(p->next_id), 0) != (ssize_t) sizeof(p->next_id))
                p->next_id = (uint32_t) now_real_usec();
        begin_instance(p);
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
