#include "daemon/cluster/leading_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/peers/peer_message.h"
#include "daemon/state/commands.h"
#include "daemon/state/feature_level.h"

/* Given to the log, which may answer it after the leadership is lost: that answer is dropped. */
struct asked {
        struct leading *leading; /* NULL: answered by leading_destroy() */
        raftlog_done_fn done;
        void *context;
        LIST_ENTRY(asked) entry;
};

/* Another node's proposal. */
struct served {
        struct leading *leading;
        char *node;
        uint32_t id;
};

/* ---- into the log ---- */

static void on_done(void *userdata, const struct raftlog_outcome *outcome) {
        struct asked *asked = userdata;

        if (asked->leading) {
                LIST_REMOVE(asked, entry);
                asked->done(asked->context, outcome);
        }
        free(asked);
}

/* Leaders before us may have had a clock that was ahead: the log's times never go back. Of commands
 * before a snapshot only the state tells. */
static uint64_t log_usec(struct leading *l) {
        uint64_t now = now_real_usec(), least = leading_state(l)->time_usec;

        if (now < least)
                now = least;
        if (now > l->last_time_usec)
                l->last_time_usec = now;
        return l->last_time_usec;
}

uint64_t leading_long_down_usec(struct leading *l) {
        uint64_t now = log_usec(l);

        /* Our clock may be ahead of that of the leader that has seen it go down. How long we lead
         * needs no other clock. */
        if (now_usec() - l->since_usec < l->voter_timeout_usec)
                return 0;
        return now > l->voter_timeout_usec ? now - l->voter_timeout_usec : 0;
}

int leading_propose(struct leading *l, Rm__Command *command, raftlog_done_fn done, void *context, struct rm_error *err) {
        struct rm_error why = { 0 };
        struct asked *asked;
        int r;

        if (state_understands(command, &why) < 0 || feature_level_check(l->later, leading_state(l), command, &why) < 0) {
                log_warn("a command is refused: %s", error_text(&why));
                return error_set(err, why.code, "%s", error_text(&why));
        }
        command->time_usec = log_usec(l);
        asked = xcalloc(1, sizeof(*asked));
        *asked = (struct asked) { .leading = l, .done = done, .context = context };
        LIST_INSERT_HEAD(&l->asked, asked, entry);
        r = l->ops.log(l->userdata, command, on_done, asked);
        if (r < 0) {
                LIST_REMOVE(asked, entry);
                free(asked);
        }
        return r;
}

static void answer_all(struct leading *l, int code) {
        struct raftlog_outcome outcome = { 0 };
        struct asked *asked;

        (void) error_set(&outcome.error, code, "%s",
                         code == -ECANCELED ? "shutting down" : "the leader has changed; it may be done or not");
        while ((asked = LIST_FIRST(&l->asked))) {
                LIST_REMOVE(asked, entry);
                asked->leading = NULL;
                asked->done(asked->context, &outcome);
        }
}

/* ---- others' proposals ---- */

static void send_reply(struct leading *l, const char *node, uint32_t id, const struct raftlog_outcome *outcome) {
        Rm__ProposeReply reply = RM__PROPOSE_REPLY__INIT;

        reply.id = id;
        reply.code = outcome->error.code;
        reply.text = outcome->error.code < 0 ? (char *) error_text(&outcome->error) : (char *) protobuf_c_empty_string;
        reply.index = outcome->index;
        reply.created = outcome->created;
        (void) l->transport_ops->send(l->transport, node, &PEER_MESSAGE(&reply));
}

/* An entry that is cancelled since this node stops is not answered: the node that asked will see
 * the connection end. */
static void on_served(void *userdata, const struct raftlog_outcome *outcome) {
        struct served *served = userdata;

        if (outcome->error.code != -ECANCELED)
                send_reply(served->leading, served->node, served->id, outcome);
        free(served->node);
        free(served);
}

void leading_serve(struct leading *l, const char *node, const Rm__Propose *propose) {
        struct raftlog_outcome outcome = { 0 };
        struct served *served;
        int r;

        if (!propose->command || (propose->command->origin && strcmp(propose->command->origin->node, node) != 0)) {
                (void) error_set(&outcome.error, -EINVAL, "the proposal holds no command of node %s", node);
                send_reply(l, node, propose->id, &outcome);
                return;
        }
        served = xcalloc(1, sizeof(*served));
        served->leading = l;
        served->node = xstrdup(node);
        served->id = propose->id;
        r = leading_propose(l, propose->command, on_served, served, &outcome.error);
        if (r < 0) {
                if (outcome.error.code == 0)
                        (void) error_sys(&outcome.error, r, "the leader's log");
                on_served(served, &outcome);
        }
}

/* ---- what happens ---- */

void leading_follow(struct leading *l, const char *node, const Rm__Follow *follow) {
        members_follows(l->members, node, follow->number);
        if (follow->voter && follow->number != 0 && !members_knows(l->members, follow->number))
                members_retire(l->members, node, follow->number);
        else
                followers_serve(l->followers, node, follow);
}

void leading_voter_ready(struct leading *l, const char *node, const Rm__VoterReady *message) {
        members_ready(l->members, node, message);
}

void leading_applied(struct leading *l, uint64_t before, uint64_t index, const Rm__Command *command) {
        followers_applied(l->followers, before, index, command);
}

void leading_scan(struct leading *l, const char *node) {
        health_check(l->health, node);
}

void leading_lost(struct leading *l, const char *node) {
        followers_lost(l->followers, node);
}

void leading_drained(struct leading *l, const char *node) {
        followers_drained(l->followers, node);
}

static void on_lease_logged(void *userdata, const struct raftlog_outcome *outcome) {
        struct leading *l = userdata;

        l->logging_lease = false;
}

/* The next leader is to know how long leases may last that were given before it. */
static void log_lease(struct leading *l) {
        const Rm__State *state = leading_state(l);
        uint64_t usec = l->leases ? leases_to_log_usec(l->leases, now_usec(), state->lease_usec) : 0;
        struct command c;

        if (usec > 0 && !l->logging_lease)
                l->logging_lease = leading_propose(l, command_lease(&c, usec), on_lease_logged, l, NULL) == 0;
}

void leading_heartbeat(struct leading *l) {
        log_lease(l);
        health_check(l->health, NULL);
        followers_heartbeat(l->followers);
        members_heartbeat(l->members);
}

/* ---- create and destroy ---- */

struct leading *leading_create(const struct leading_config *config, const struct leading_ops *ops, void *userdata) {
        struct leading *l = xcalloc(1, sizeof(*l));

        l->ops = *ops;
        l->userdata = userdata;
        l->log_id = config->log_id;
        l->feed = config->feed;
        l->transport_ops = config->transport_ops;
        l->transport = config->transport;
        l->last_time_usec = config->last_time_usec;
        l->node_timeout_usec = config->node_timeout_usec;
        l->voter_timeout_usec = config->voter_timeout_usec;
        l->since_usec = now_usec();
        l->voters = config->voters;
        l->leases = config->leases;
        l->later = config->later;
        l->log = config->log;
        LIST_INIT(&l->asked);
        l->followers = followers_create(l);
        l->health = health_create(l);
        l->members = members_create(l);
        return l;
}

void leading_destroy(struct leading *l, int code) {
        if (!l)
                return;
        answer_all(l, code);
        members_destroy(l->members);
        health_destroy(l->health);
        followers_destroy(l->followers);
        free(l);
}
