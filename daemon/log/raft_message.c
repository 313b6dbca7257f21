#include "daemon/log/raft_message.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "proto/peer.pb-c.h"

/* ---- out ---- */

static void put_vote(const struct raft_request_vote *in, Rm__RaftMessage *out) {
        out->version = in->version;
        out->term = in->term;
        out->candidate = in->candidate_id;
        out->last_index = in->last_log_index;
        out->last_term = in->last_log_term;
        out->disrupt_leader = in->disrupt_leader;
        out->pre_vote = in->pre_vote;
}

static void put_vote_result(const struct raft_request_vote_result *in, Rm__RaftMessage *out) {
        out->version = in->version;
        out->term = in->term;
        out->granted = in->vote_granted;
        out->pre_vote = in->pre_vote;
        out->features = in->features;
        out->capacity = in->capacity;
}

static void put_append(const struct raft_append_entries *in, Rm__RaftMessage *out) {
        out->version = in->version;
        out->term = in->term;
        out->previous_index = in->prev_log_index;
        out->previous_term = in->prev_log_term;
        out->commit = in->leader_commit;
        out->entries = xcalloc(in->n_entries + 1, sizeof(Rm__RaftEntry *));
        out->n_entries = in->n_entries;
        for (unsigned i = 0; i < in->n_entries; i++) {
                Rm__RaftEntry *entry = xcalloc(1, sizeof(*entry));

                rm__raft_entry__init(entry);
                entry->term = in->entries[i].term;
                entry->type = in->entries[i].type;
                entry->data = (ProtobufCBinaryData) { .len = in->entries[i].buf.len, .data = in->entries[i].buf.base };
                out->entries[i] = entry;
        }
}

static void put_append_result(const struct raft_append_entries_result *in, Rm__RaftMessage *out) {
        out->version = in->version;
        out->term = in->term;
        out->rejected = in->rejected;
        out->last_index = in->last_log_index;
        out->features = in->features;
        out->capacity = in->capacity;
}

static void put_snapshot(const struct raft_install_snapshot *in, Rm__RaftMessage *out) {
        struct raft_buffer buf;

        if (raft_configuration_encode(&in->conf, &buf) != 0)
                abort();
        out->version = in->version;
        out->term = in->term;
        out->last_index = in->last_index;
        out->last_term = in->last_term;
        out->configuration = (ProtobufCBinaryData) { .len = buf.len, .data = buf.base };
        out->configuration_index = in->conf_index;
        out->snapshot = (ProtobufCBinaryData) { .len = in->data.len, .data = in->data.base };
}

static void put_timeout_now(const struct raft_timeout_now *in, Rm__RaftMessage *out) {
        out->version = in->version;
        out->term = in->term;
        out->last_index = in->last_log_index;
        out->last_term = in->last_log_term;
}

static void free_out(Rm__RaftMessage *out) {
        free_all(out->entries, out->n_entries);
        raft_free(out->configuration.data);
}

int raft_message_pack(const struct raft_message *message, uint8_t **ret_data, size_t *ret_bytes) {
        Rm__RaftMessage out = RM__RAFT_MESSAGE__INIT;

        out.kind = message->type;
        switch (message->type) {
        case RAFT_REQUEST_VOTE:
                put_vote(&message->request_vote, &out);
                break;
        case RAFT_REQUEST_VOTE_RESULT:
                put_vote_result(&message->request_vote_result, &out);
                break;
        case RAFT_APPEND_ENTRIES:
                put_append(&message->append_entries, &out);
                break;
        case RAFT_APPEND_ENTRIES_RESULT:
                put_append_result(&message->append_entries_result, &out);
                break;
        case RAFT_INSTALL_SNAPSHOT:
                put_snapshot(&message->install_snapshot, &out);
                break;
        case RAFT_TIMEOUT_NOW:
                put_timeout_now(&message->timeout_now, &out);
                break;
        default:
                return -ENOMSG;
        }
        *ret_bytes = rm__raft_message__get_packed_size(&out);
        *ret_data = xcalloc(1, *ret_bytes + 1);
        (void) rm__raft_message__pack(&out, *ret_data);
        free_out(&out);
        return 0;
}

/* ---- in ---- */

static void *raft_array(size_t n, size_t size_bytes) {
        void *array = raft_calloc(n + 1, size_bytes);

        if (!array)
                abort();
        return array;
}

static void get_vote(const Rm__RaftMessage *in, struct raft_request_vote *ret) {
        *ret = (struct raft_request_vote) { .version = (unsigned char) in->version,
                                            .term = in->term,
                                            .candidate_id = in->candidate,
                                            .last_log_index = in->last_index,
                                            .last_log_term = in->last_term,
                                            .disrupt_leader = in->disrupt_leader,
                                            .pre_vote = in->pre_vote };
}

static void get_vote_result(const Rm__RaftMessage *in, struct raft_request_vote_result *ret) {
        *ret = (struct raft_request_vote_result) { .version = (unsigned char) in->version,
                                                   .term = in->term,
                                                   .vote_granted = in->granted,
                                                   .pre_vote = in->pre_vote,
                                                   .features = (unsigned short) in->features,
                                                   .capacity = (unsigned short) in->capacity };
}

static void get_append_result(const Rm__RaftMessage *in, struct raft_append_entries_result *ret) {
        *ret = (struct raft_append_entries_result) { .version = (unsigned char) in->version,
                                                     .term = in->term,
                                                     .rejected = in->rejected,
                                                     .last_log_index = in->last_index,
                                                     .features = (unsigned short) in->features,
                                                     .capacity = (unsigned short) in->capacity };
}

/* Raft frees the batch of the first entry, and with it the data of all. */
static int get_entries(const Rm__RaftMessage *in, struct raft_append_entries *ret) {
        size_t size_bytes = 0, used = 0;
        uint8_t *batch;

        for (size_t i = 0; i < in->n_entries; i++) {
                if (in->entries[i]->type < RAFT_COMMAND || in->entries[i]->type > RAFT_CHANGE)
                        return -EBADMSG;
                size_bytes += (in->entries[i]->data.len + 7) & ~(size_t) 7;
        }
        if (in->n_entries == 0)
                return 0;
        ret->entries = raft_array(in->n_entries, sizeof(*ret->entries));
        ret->n_entries = (unsigned) in->n_entries;
        batch = raft_array(1, size_bytes + 8);
        for (size_t i = 0; i < in->n_entries; i++) {
                const Rm__RaftEntry *entry = in->entries[i];

                ret->entries[i] = (struct raft_entry) { .term = entry->term,
                                                        .type = (enum raft_entry_type) entry->type,
                                                        .buf = { .base = batch + used, .len = entry->data.len },
                                                        .batch = batch };
                if (entry->data.len > 0)
                        memcpy(batch + used, entry->data.data, entry->data.len);
                used += (entry->data.len + 7) & ~(size_t) 7;
        }
        return 0;
}

static int get_append(const Rm__RaftMessage *in, struct raft_append_entries *ret) {
        *ret = (struct raft_append_entries) { .version = (unsigned char) in->version,
                                              .term = in->term,
                                              .prev_log_index = in->previous_index,
                                              .prev_log_term = in->previous_term,
                                              .leader_commit = in->commit };
        return in->n_entries > UINT_MAX ? -EBADMSG : get_entries(in, ret);
}

static struct raft_buffer copy_buffer(const ProtobufCBinaryData *data) {
        struct raft_buffer buf = { .base = raft_array(1, data->len + 8), .len = data->len };

        if (data->len > 0)
                memcpy(buf.base, data->data, data->len);
        return buf;
}

static int get_snapshot(const Rm__RaftMessage *in, struct raft_install_snapshot *ret) {
        struct raft_buffer configuration = copy_buffer(&in->configuration); /* aligned, as the decoder wants it */
        int r;

        *ret = (struct raft_install_snapshot) { .version = (unsigned char) in->version,
                                                .term = in->term,
                                                .last_index = in->last_index,
                                                .last_term = in->last_term,
                                                .conf_index = in->configuration_index };
        raft_configuration_init(&ret->conf);
        r = raft_configuration_decode(&configuration, &ret->conf);
        raft_free(configuration.base);
        if (r != 0)
                return -EBADMSG;
        ret->data = copy_buffer(&in->snapshot);
        return 0;
}

static int get(const Rm__RaftMessage *in, struct raft_message *ret) {
        switch (ret->type) {
        case RAFT_REQUEST_VOTE:
                get_vote(in, &ret->request_vote);
                return 0;
        case RAFT_REQUEST_VOTE_RESULT:
                get_vote_result(in, &ret->request_vote_result);
                return 0;
        case RAFT_APPEND_ENTRIES:
                return get_append(in, &ret->append_entries);
        case RAFT_APPEND_ENTRIES_RESULT:
                get_append_result(in, &ret->append_entries_result);
                return 0;
        case RAFT_INSTALL_SNAPSHOT:
                return get_snapshot(in, &ret->install_snapshot);
        case RAFT_TIMEOUT_NOW:
                ret->timeout_now = (struct raft_timeout_now) { .version = (unsigned char) in->version,
                                                               .term = in->term,
                                                               .last_log_index = in->last_index,
                                                               .last_log_term = in->last_term };
                return 0;
        default:
                return -EBADMSG;
        }
}

int raft_message_unpack(const void *data, size_t size_bytes, struct raft_message *ret) {
        Rm__RaftMessage *in = rm__raft_message__unpack(NULL, size_bytes, data);
        int r;

        if (!in)
                return -EBADMSG;
        *ret = (struct raft_message) { .type = (enum raft_message_type) in->kind };
        r = get(in, ret);
        rm__raft_message__free_unpacked(in, NULL);
        return r;
}

void raft_message_drop(struct raft_message *message) {
        if (message->type == RAFT_APPEND_ENTRIES && message->append_entries.n_entries > 0) {
                raft_free(message->append_entries.entries[0].batch);
                raft_free(message->append_entries.entries);
        } else if (message->type == RAFT_INSTALL_SNAPSHOT) {
                raft_configuration_close(&message->install_snapshot.conf);
                raft_free(message->install_snapshot.data.base);
        }
}
