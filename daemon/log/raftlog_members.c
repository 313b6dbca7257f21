/* The other voters of a log: raft's messages to and from them, and the pace of its clock. raft_uv
 * keeps the log on the disk; its own network and its own clock are not used. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/log/raft_message.h"
#include "daemon/log/raftlog_internal.h"
#include "daemon/peers/peer_message.h"

/* A leader says so often within an election timeout that it leads. */
#define HEARTBEATS 5U
/* A single voter needs neither heartbeats nor elections; this is how often raft wakes up for
 * nothing. */
#define ALONE_USEC UINT64_C(2000000)
#define NOTE_USEC UINT64_C(500000)

static struct raftlog *log_of(struct raft_io *io) {
        struct raft *raft = io->data;

        return raft->data;
}

/* ---- raft_uv asks for a network, which is not used ---- */

static int no_init(struct raft_uv_transport *transport, raft_id id, const char *address) {
        return 0;
}

static int no_listen(struct raft_uv_transport *transport, raft_uv_accept_cb accept) {
        return 0;
}

static int no_connect(struct raft_uv_transport *transport, struct raft_uv_connect *request, raft_id id, const char *address,
                      raft_uv_connect_cb done) {
        return RAFT_NOCONNECTION;
}

static void no_close(struct raft_uv_transport *transport, raft_uv_transport_close_cb done) {
        done(transport);
}

void raftlog_transport_init(struct raft_uv_transport *transport) {
        *transport = (struct raft_uv_transport) {
                .version = 1, .init = no_init, .listen = no_listen, .connect = no_connect, .close = no_close
        };
}

static struct raft_server *find_server(struct raftlog *log, raft_id id) {
        for (unsigned i = 0; i < log->raft.configuration.n; i++)
                if (log->raft.configuration.servers[i].id == id)
                        return &log->raft.configuration.servers[i];
        return NULL;
}

/* ---- messages ---- */

static int send_part(struct raftlog *log, const char *node, Rm__RaftPart *part) {
        return log->ops.send(log->userdata, node, &PEER_MESSAGE(part));
}

/* libraft 0.22.1 may have chosen an older snapshot than the one that it then reads: it corrects the
 * index in the message, but not the term. */
static void correct_snapshot(const struct raftlog *log, struct raft_message *message) {
        if (message->type == RAFT_INSTALL_SNAPSHOT && message->install_snapshot.last_index == log->got_index)
                message->install_snapshot.last_term = log->got_term;
}

/* libraft 0.22.1 does not set the last index when it refuses what a leader of an earlier term
 * sends. That one may lead the later term when the answer comes: it gets the index as it is when
 * another entry is in the way. */
static void correct_refusal(struct raftlog *log, struct raft_message *message) {
        struct raft_append_entries_result *result = &message->append_entries_result;
        uint64_t last = raft_last_index(&log->raft);

        if (message->type == RAFT_APPEND_ENTRIES_RESULT && result->rejected > 0)
                result->last_log_index = last < result->rejected ? last : result->rejected - 1;
}

/* libraft 0.22.1 refuses a pre-vote of an earlier term with the term that it was asked for, so that
 * the candidate never learns of the later one. Where it alone has all that was committed, and too
 * few others are of its term, no voter is ever elected. He takes the later term when he is told of
 * it, and is heard the next time. */
static void correct_pre_vote(const struct raftlog *log, struct raft_message *message) {
        struct raft_request_vote_result *result = &message->request_vote_result;

        if (message->type == RAFT_REQUEST_VOTE_RESULT && result->pre_vote && !result->vote_granted &&
            result->term < raft_current_term(&log->raft))
                result->term = raft_current_term(&log->raft);
}

/* The node that `message` is for, or NULL if it is no member any more. While libraft 0.22.1 reads
 * the snapshot for a message, its address goes when the configuration changes. */
static const char *receiver_of(struct raftlog *log, const struct raft_message *message) {
        const struct raft_server *server;

        if (message->type != RAFT_INSTALL_SNAPSHOT)
                return message->server_address;
        server = find_server(log, message->server_id);
        return server ? server->address : NULL;
}

/* NULL: nothing yet. */
static struct reported *find_reported(const struct raftlog *log, uint64_t id) {
        struct reported *reported;

        LIST_FOREACH (reported, &log->reported, entry)
                if (reported->id == id)
                        return reported;
        return NULL;
}

/* A voter that gets the message takes for committed all that it has by then. If the message is
 * lost, a heartbeat does the same. */
static void note_reported(struct raftlog *log, const struct raft_message *message) {
        const struct raft_append_entries *append = &message->append_entries;
        struct reported *reported = find_reported(log, message->server_id);
        uint64_t last;

        if (message->type != RAFT_APPEND_ENTRIES)
                return;
        if (!reported) {
                reported = xcalloc(1, sizeof(*reported));
                reported->id = message->server_id;
                LIST_INSERT_HEAD(&log->reported, reported, entry);
        }
        last = append->prev_log_index + append->n_entries;
        reported->index = append->leader_commit < last ? append->leader_commit : last;
}

/* A message that cannot be sent is lost: raft sends again those that matter. */
static int send_message(struct raft_io *io, struct raft_io_send *req, const struct raft_message *in, raft_io_send_cb cb) {
        struct raftlog *log = log_of(io);
        struct raft_message corrected = *in, *message = &corrected;
        const char *receiver = receiver_of(log, in);
        Rm__RaftPart part = RM__RAFT_PART__INIT;
        cleanup_free uint8_t *data = NULL;
        size_t size_bytes = 0;

        correct_snapshot(log, message);
        correct_refusal(log, message);
        correct_pre_vote(log, message);
        note_reported(log, message);
        if (!log->closing && log->ops.send && receiver && raft_message_pack(message, &data, &size_bytes) == 0) {
                part.log = log->log_id;
                part.from = log->voter_id;
                part.to = message->server_id;
                part.total_bytes = size_bytes;
                for (; part.offset < size_bytes; part.offset += part.data.len) {
                        part.data.data = data + part.offset;
                        part.data.len = size_bytes - part.offset < PART_BYTES ? size_bytes - part.offset : PART_BYTES;
                        if (send_part(log, receiver, &part) < 0)
                                break;
                }
        }
        if (cb)
                cb(req, 0);
        return 0;
}

/* libraft 0.22.1 tells the others of a commit with their next entries or heartbeat, and clients of
 * those nodes would wait so long. This is a heartbeat as Raft knows it: it says that the entry at
 * `index`, of this term, is committed. */
static void report_committed(struct raftlog *log, const struct raft_server *server, uint64_t index) {
        struct raft_message message = { .type = RAFT_APPEND_ENTRIES, .server_id = server->id, .server_address = server->address };

        message.append_entries.term = raft_current_term(&log->raft);
        message.append_entries.prev_log_index = index;
        message.append_entries.prev_log_term = raft_current_term(&log->raft);
        message.append_entries.leader_commit = index;
        (void) send_message(&log->io, NULL, &message, NULL);
}

/* Tells the voters that have the entry that it is committed; the others are told when they report
 * that they have it. */
static void on_commit_event(evutil_socket_t fd, short what, void *userdata) {
        struct raftlog *log = userdata;
        const struct raft_configuration *configuration = &log->raft.configuration;
        uint64_t index = raft_commit_index(&log->raft);

        if (raft_state(&log->raft) != RAFT_LEADER || log->won_term != raft_current_term(&log->raft) || index <= log->won_commit)
                return;
        for (unsigned i = 0; i < configuration->n; i++) {
                const struct raft_server *server = &configuration->servers[i];
                const struct reported *reported = find_reported(log, server->id);
                raft_index match = 0;

                if (server->id != log->voter_id && reported && reported->index < index &&
                    raft_match_index(&log->raft, server->id, &match) == 0 && match >= index)
                        report_committed(log, server, index);
        }
}

static struct inbound *inbound_get(struct raftlog *log, uint64_t from) {
        struct inbound *inbound;

        LIST_FOREACH (inbound, &log->inbound, entry)
                if (inbound->from == from)
                        return inbound;
        inbound = xcalloc(1, sizeof(*inbound));
        inbound->from = from;
        LIST_INSERT_HEAD(&log->inbound, inbound, entry);
        return inbound;
}

static void inbound_free(struct inbound *inbound) {
        LIST_REMOVE(inbound, entry);
        parts_reset(&inbound->parts);
        free(inbound);
}

/* A standby knows no end of its leader, for it wants no election. */
static bool has_no_leader(const struct raftlog *log) {
        const struct raft *raft = &log->raft;

        return log->io.time((struct raft_io *) &log->io) >= raft->election_timer_start + raft->election_timeout;
}

/* Voters that still hear the leader refuse their votes, as ever. */
void raftlog_leader_gone(struct raftlog *log) {
        struct raft *raft = &log->raft;
        raft_time begun;

        if (raft_state(raft) != RAFT_FOLLOWER)
                return;
        raft->follower_state.current_leader.id = 0;
        begun = log->io.time(&log->io) + (raft_time) random() % (raft->election_timeout / 2 + 1);
        begun -= raft->follower_state.randomized_election_timeout;
        if (begun < raft->election_timer_start)
                raft->election_timer_start = begun;
}

/* libraft gives no vote of a standby. But its leader, if that kept the log alone, may have made it
 * a voter, and have ended before this came here: then it cannot be elected again without this vote.
 * By Raft every voter that is asked votes, whatever its own configuration says; the candidate
 * counts votes by its own. */
static void give_vote_request(struct raftlog *log, struct raft_message *message) {
        struct raft_server *self = find_server(log, log->voter_id);
        bool standby = self && self->role == RAFT_STANDBY && raft_state(&log->raft) == RAFT_FOLLOWER && has_no_leader(log);

        if (standby) {
                self->role = RAFT_VOTER;
                log->raft.follower_state.current_leader.id = 0;
        }
        log->uv.receive(&log->io, message);
        if (standby)
                self->role = RAFT_STANDBY;
}

/* Or any other message. Raft frees the entries, if it does not keep them. */
static void give_entries(struct raftlog *log, struct raft_message *message) {
        if (message->type == RAFT_APPEND_ENTRIES)
                raftlog_changes_come(log, &message->append_entries);
        log->uv.receive(&log->io, message);
        raftlog_changes_note(log);
}

/* libraft 0.22.1 tells the one that is to lead so with its next answer, though entries may still be
 * on their way to it, and ignores that where they are not on the disk yet. Then nothing could be
 * changed until the leader gave it up, an election's time later. So the word is kept until they are
 * there. */
static bool keep_early_lead(struct raftlog *log, const struct raft_message *message) {
        if (message->type != RAFT_TIMEOUT_NOW || log->raft.last_stored >= message->timeout_now.last_log_index)
                return false;
        free(log->early_lead_node);
        log->early_lead_node = xstrdup(message->server_address);
        log->early_lead = *message;
        log->early_lead.server_address = log->early_lead_node;
        return true;
}

/* Raft looks at the term and the leader, and whether there are further entries. */
static void on_early_lead(evutil_socket_t fd, short what, void *userdata) {
        struct raftlog *log = userdata;
        struct raft_message message = log->early_lead;
        cleanup_free char *node = take_ptr(log->early_lead_node);

        log->early_lead = (struct raft_message) { 0 };
        if (message.type == RAFT_TIMEOUT_NOW && log->failed.code == 0 && raft_state(&log->raft) == RAFT_FOLLOWER) {
                uv_update_time(uvloop_get(log->loop));
                log->uv.receive(&log->io, &message);
                uvloop_kick(log->loop);
        }
}

/* libraft 0.22.1 means to put off the installation of a snapshot while it makes one, and then uses
 * the pointer that it has just cleared. So such a message is lost; the leader sends it again. */
static void give_to_raft(struct raftlog *log, const char *node, uint64_t from, const void *data, size_t size_bytes) {
        struct raft_message message;

        if (raft_message_unpack(data, size_bytes, &message) < 0) {
                log_warn("node %s sends a message of raft that cannot be read", node);
                return;
        }
        message.server_id = from;
        message.server_address = node;
        raftlog_changes_note(log);
        if (log->failed.code < 0 || (message.type == RAFT_INSTALL_SNAPSHOT && log->puts > 0))
                raft_message_drop(&message);
        else if (message.type == RAFT_REQUEST_VOTE)
                give_vote_request(log, &message);
        else if (!keep_early_lead(log, &message))
                give_entries(log, &message);
        uvloop_kick(log->loop);
}

void raftlog_receive(struct raftlog *log, const char *node, const Rm__RaftPart *part) {
        struct inbound *inbound;

        if (part->log != log->log_id || part->to != log->voter_id || part->from == 0)
                return;
        uv_update_time(uvloop_get(log->loop));
        if (part->offset == 0 && part->data.len == part->total_bytes) {
                give_to_raft(log, node, part->from, part->data.data, part->data.len);
                return;
        }
        inbound = inbound_get(log, part->from);
        if (part->offset != 0 && inbound->parts.received_bytes == 0)
                return; /* its beginning was lost */
        if (parts_add(&inbound->parts, part->total_bytes, part->offset, part->data.data, part->data.len, RAFT_MESSAGE_MAX_BYTES) <=
            0)
                return;
        give_to_raft(log, node, part->from, inbound->parts.data, inbound->parts.received_bytes);
        inbound_free(inbound);
}

/* ---- raft's clock ---- */

static bool alone(const struct raftlog *log) {
        return log->raft.configuration.n == 1 && log->raft.configuration.servers[0].id == log->voter_id;
}

void raftlog_members_step(struct raftlog *log) {
        uint64_t tick_usec = alone(log) ? ALONE_USEC : log->heartbeat_msec * UINT64_C(1000);

        if (raft_state(&log->raft) == RAFT_LEADER && !alone(log))
                event_active(log->commit_event, EV_TIMEOUT, 0);
        if (log->early_lead.type == RAFT_TIMEOUT_NOW && log->raft.last_stored >= log->early_lead.timeout_now.last_log_index)
                event_active(log->early_lead_event, EV_TIMEOUT, 0);
        if (log->tick_usec == 0 || log->tick_usec == tick_usec)
                return;
        log->tick_usec = tick_usec;
        timer_arm(log->tick_event, tick_usec);
}

/* libraft 0.22.1 wants an answer of each of the others between two ticks, but sends no heartbeat to
 * those that got entries since the last one. So they would count as lost after each entry, and
 * those that are lost get entries with heartbeats only, that is up to two ticks late. */
void raftlog_members_urge(struct raftlog *log, bool urgent) {
        raft_set_heartbeat_timeout(&log->raft, urgent ? 0 : log->heartbeat_msec);
}

static void on_barred(struct raft_barrier *barrier, int status) {
        struct raftlog *log = barrier->data;

        (void) status;
        log->barring = false;
}

/* A leader that could not put an entry of its own term into the log when it was elected, for want
 * of room, commits nothing, and does not try again by itself. */
static void bar_again(struct raftlog *log) {
        if (raft_state(&log->raft) != RAFT_LEADER || raftlog_leading(log) || log->barring)
                return;
        memset(&log->barrier, 0, sizeof(log->barrier));
        log->barrier.data = log;
        log->barring = raft_barrier(&log->raft, &log->barrier, on_barred) == 0;
}

/* Raft stops where its disk fails, and says no more. */
static void see_stopped(struct raftlog *log) {
        struct rm_error why = { 0 };

        if (raft_state(&log->raft) != RAFT_UNAVAILABLE || log->failed.code < 0)
                return;
        (void) error_set(&why, -EIO, "the log in %s cannot be written: %s", log->log_dir, log->io.errmsg);
        (void) raftlog_fail(log, &why);
}

static void note_known(struct raftlog *log) {
        uint64_t now = now_usec();

        if (now < log->next_note_usec)
                return;
        log->next_note_usec = now + NOTE_USEC;
        raftlog_known_note(log);
}

static void on_tick(evutil_socket_t fd, short what, void *userdata) {
        struct raftlog *log = userdata;

        timer_arm(log->tick_event, log->tick_usec);
        uv_update_time(uvloop_get(log->loop));
        if (raft_state(&log->raft) != RAFT_UNAVAILABLE) {
                bar_again(log);
                raftlog_changes_note(log);
                raftlog_members_urge(log, true);
                log->uv.tick(&log->io);
                raftlog_members_urge(log, false);
        }
        see_stopped(log);
        note_known(log);
        uvloop_kick(log->loop);
}

static void no_tick(struct raft_io *io) {
}

static int start(struct raft_io *io, unsigned msecs, raft_io_tick_cb tick, raft_io_recv_cb receive) {
        struct raftlog *log = log_of(io);
        int r;

        log->uv.tick = tick;
        log->uv.receive = receive;
        r = log->uv.start(io, UINT32_MAX, no_tick, receive);
        if (r != 0)
                return r;
        log->tick_usec = 1; /* begun */
        raftlog_members_step(log);
        return 0;
}

/* ---- what is on the disk ---- */

static void keep_loaded(struct raftlog *log, uint64_t index, const struct raft_entry *entry) {
        struct loaded *loaded = xcalloc(1, sizeof(*loaded));

        loaded->index = index;
        loaded->buf.len = entry->buf.len;
        loaded->buf.base = xcalloc(1, entry->buf.len + 1);
        memcpy(loaded->buf.base, entry->buf.base, entry->buf.len);
        TAILQ_INSERT_TAIL(&log->loaded, loaded, entry);
}

/* The last configuration in the log, committed or not, has this voter and no other. */
static bool loaded_alone(const struct raftlog *log, const struct raft_snapshot *snapshot, const struct raft_entry *entries,
                         size_t n) {
        struct raft_configuration last = { 0 };
        const struct raft_configuration *configuration = snapshot ? &snapshot->configuration : &last;
        unsigned voters = 0;
        bool self = false;

        while (n > 0 && entries[n - 1].type != RAFT_CHANGE)
                n--;
        if (n > 0) {
                if (raft_configuration_decode(&entries[n - 1].buf, &last) != 0)
                        return false;
                configuration = &last;
        }
        for (unsigned i = 0; i < configuration->n; i++) {
                voters += configuration->servers[i].role == RAFT_VOTER;
                self |= configuration->servers[i].role == RAFT_VOTER && configuration->servers[i].id == log->voter_id;
        }
        if (n > 0)
                raft_configuration_close(&last);
        return self && voters == 1;
}

/* A voter that is alone elects itself, and libraft 0.22.1 has it lead in the term in which it led
 * before. But entries of that term, which it had sent to standbys and not yet written, would be
 * taken for those that it makes now. */
static int begin_term(struct raftlog *log, raft_term *term, raft_id *voted_for) {
        int r = log->uv.set_term(&log->io, *term + 1);

        if (r != 0)
                return r;
        *term += 1;
        *voted_for = 0;
        return 0;
}

static void discard(struct raft_snapshot *snapshot, struct raft_entry *entries, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (i == 0 || entries[i].batch != entries[i - 1].batch)
                        raft_free(entries[i].batch);
        raft_free(entries);
        if (!snapshot)
                return;
        for (unsigned i = 0; i < snapshot->n_bufs; i++)
                raft_free(snapshot->bufs[i].base);
        raft_free(snapshot->bufs);
        raft_configuration_close(&snapshot->configuration);
        raft_free(snapshot);
}

/* A log that has not all that was applied is not the one that it was. */
static int load(struct raft_io *io, raft_term *term, raft_id *voted_for, struct raft_snapshot **snapshot, raft_index *start_index,
                struct raft_entry *entries[], size_t *n_entries) {
        struct raftlog *log = log_of(io);
        int r = log->uv.load(io, term, voted_for, snapshot, start_index, entries, n_entries);

        for (size_t i = 0; r == 0 && i < *n_entries && *start_index + i <= log->known_index; i++)
                if ((*entries)[i].type == RAFT_COMMAND)
                        keep_loaded(log, *start_index + i, &(*entries)[i]);
        if (r == 0 && loaded_alone(log, *snapshot, *entries, *n_entries)) {
                r = begin_term(log, term, voted_for);
                if (r != 0)
                        discard(*snapshot, *entries, *n_entries);
        }
        return r;
}

/* ---- term and vote ---- */

/* Raft goes on without them, and a vote that is not on the disk may be given twice. */
static int stored(struct raftlog *log, int code, const char *what) {
        struct rm_error why = { 0 };

        if (code == 0)
                return 0;
        (void) error_set(&why, -EIO, "%s cannot be stored in %s: %s", what, log->log_dir, log->io.errmsg);
        (void) raftlog_fail(log, &why);
        return code;
}

static int set_term(struct raft_io *io, raft_term term) {
        struct raftlog *log = log_of(io);

        return stored(log, log->failed.code < 0 ? RAFT_IOERR : log->uv.set_term(io, term), "the term");
}

static int set_vote(struct raft_io *io, raft_id id) {
        struct raftlog *log = log_of(io);

        return stored(log, log->failed.code < 0 ? RAFT_IOERR : log->uv.set_vote(io, id), "the vote");
}

/* ---- snapshots ---- */

struct put {
        struct raft_io_snapshot_put uv; /* raft_uv's */
        struct raft_snapshot snapshot;
        bool corrected; /* its configuration is ours */
        struct raft_io_snapshot_put *raft;
        struct raftlog *log;
};

static void put_free(struct put *put) {
        if (put->corrected)
                raft_configuration_close(&put->snapshot.configuration);
        free(put);
}

/* Where raft has not noted that the last change is committed its own snapshot would have an older
 * configuration than there is at its index. */
static void correct_configuration(struct put *put) {
        uint64_t index;
        const struct raft_configuration *configuration = raftlog_changes_at(put->log, put->snapshot.index, &index);
        struct raft_configuration copy;

        if (!configuration || index <= put->snapshot.configuration_index || !raftlog_copy_configuration(configuration, &copy))
                return;
        put->corrected = true;
        put->snapshot.configuration = copy;
        put->snapshot.configuration_index = index;
}

static void on_put(struct raft_io_snapshot_put *req, int status) {
        struct put *put = req->data;
        struct raft_io_snapshot_put *raft = put->raft;

        put->log->puts--;
        put_free(put);
        raft->cb(raft, status);
}

static int put_snapshot(struct raft_io *io, unsigned trailing, struct raft_io_snapshot_put *req,
                        const struct raft_snapshot *snapshot, raft_io_snapshot_put_cb cb) {
        struct raftlog *log = log_of(io);
        struct put *put = xcalloc(1, sizeof(*put));
        int r;

        put->log = log;
        put->raft = req;
        put->uv.data = put;
        put->snapshot = *snapshot;
        req->cb = cb;
        if (trailing > 0)
                correct_configuration(put);
        log->puts++;
        r = log->uv.put(io, trailing, &put->uv, &put->snapshot, on_put);
        if (r != 0) {
                log->puts--;
                put_free(put);
        }
        return r;
}

struct get {
        struct raft_io_snapshot_get uv;
        struct raft_io_snapshot_get *raft;
        struct raftlog *log;
};

/* When a snapshot cannot be had, libraft frees what it has not set: so it is not told, and tries
 * again in its time. */
static void on_got(struct raft_io_snapshot_get *req, struct raft_snapshot *snapshot, int status) {
        struct get *get = req->data;
        struct raft_io_snapshot_get *raft = get->raft;
        struct raftlog *log = get->log;

        free(get);
        if (status != 0)
                return;
        log->got_index = snapshot->index;
        log->got_term = snapshot->term;
        raft->cb(raft, snapshot, status); /* sends it */
}

static int get_snapshot(struct raft_io *io, struct raft_io_snapshot_get *req, raft_io_snapshot_get_cb cb) {
        struct raftlog *log = log_of(io);
        struct get *get = xcalloc(1, sizeof(*get));
        int r;

        get->raft = req;
        get->log = log;
        get->uv.data = get;
        req->cb = cb;
        r = log->uv.get(io, &get->uv, on_got);
        if (r != 0)
                free(get);
        return r;
}

/* ---- create and destroy ---- */

void raftlog_members_init(struct raftlog *log, struct event_base *base, unsigned election_msec) {
        log->uv = (struct raftlog_uv) { .start = log->io.start,
                                        .put = log->io.snapshot_put,
                                        .get = log->io.snapshot_get,
                                        .set_term = log->io.set_term,
                                        .set_vote = log->io.set_vote };
        log->uv.load = log->io.load;
        log->io.load = load;
        log->io.start = start;
        log->io.send = send_message;
        log->io.snapshot_put = put_snapshot;
        log->io.snapshot_get = get_snapshot;
        log->io.set_term = set_term;
        log->io.set_vote = set_vote;
        log->heartbeat_msec = election_msec / HEARTBEATS > 0 ? election_msec / HEARTBEATS : 1;
        log->tick_event = evtimer_new(base, on_tick, log);
        log->commit_event = evtimer_new(base, on_commit_event, log);
        log->early_lead_event = evtimer_new(base, on_early_lead, log);
        if (!log->tick_event || !log->commit_event || !log->early_lead_event)
                abort();
}

void raftlog_members_finish(struct raftlog *log) {
        struct reported *reported;

        raftlog_changes_finish(log);
        while (!LIST_EMPTY(&log->inbound))
                inbound_free(LIST_FIRST(&log->inbound));
        while ((reported = LIST_FIRST(&log->reported))) {
                LIST_REMOVE(reported, entry);
                free(reported);
        }
        if (log->tick_event)
                event_free(log->tick_event);
        if (log->commit_event)
                event_free(log->commit_event);
        if (log->early_lead_event)
                event_free(log->early_lead_event);
        free(log->early_lead_node);
}
