#include "tests/sim/raftcode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

/* ---- bytes ---- */

static void put(struct bytes *bytes, const void *data, size_t n) {
        bytes->data = xrealloc(bytes->data, bytes->n + n + 1);
        if (n > 0)
                memcpy(bytes->data + bytes->n, data, n);
        bytes->n += n;
}

static void put_number(struct bytes *bytes, uint64_t number) {
        put(bytes, &number, sizeof(number));
}

static uint64_t get_number(const uint8_t **at) {
        uint64_t number;

        memcpy(&number, *at, sizeof(number));
        *at += sizeof(number);
        return number;
}

static void *raft_copy(const void *data, size_t n) {
        void *copy = raft_malloc(n + 1);

        if (!copy)
                abort();
        memcpy(copy, data, n);
        return copy;
}

static void *raft_array(size_t n, size_t size_bytes) {
        void *array = raft_calloc(n, size_bytes);

        if (!array)
                abort();
        return array;
}

/* ---- configurations ---- */

static void put_configuration(struct bytes *bytes, const struct raft_configuration *configuration) {
        struct raft_buffer buf;

        if (raft_configuration_encode(configuration, &buf) != 0)
                abort();
        put_number(bytes, buf.len);
        put(bytes, buf.base, buf.len);
        raft_free(buf.base);
}

static void get_configuration(const uint8_t **at, struct raft_configuration *ret) {
        struct raft_buffer buf;

        buf.len = get_number(at);
        buf.base = raft_copy(*at, buf.len); /* aligned, as the decoder wants it */
        *at += buf.len;
        if (raft_configuration_decode(&buf, ret) != 0)
                abort();
        raft_free(buf.base);
}

/* ---- entries ---- */

void entry_pack(const struct raft_entry *entry, struct bytes *ret) {
        put_number(ret, entry->term);
        put_number(ret, entry->type);
        put_number(ret, entry->buf.len);
        put(ret, entry->buf.base, entry->buf.len);
}

/* Without its data, whose place is returned. */
static const uint8_t *get_entry(const uint8_t **at, struct raft_entry *ret) {
        const uint8_t *data;

        ret->term = get_number(at);
        ret->type = (enum raft_entry_type) get_number(at);
        ret->buf.len = get_number(at);
        data = *at;
        *at += ret->buf.len;
        return data;
}

/* Raft frees the batch of the first entry, and with it all. */
static void make_batch(struct raft_entry *entries, size_t n, const uint8_t *const *data) {
        size_t size_bytes = 0;
        uint8_t *batch;

        for (size_t i = 0; i < n; i++)
                size_bytes += entries[i].buf.len;
        batch = raft_array(1, size_bytes + 8);
        for (size_t i = 0, used = 0; i < n; used += entries[i++].buf.len) {
                memcpy(batch + used, data[i], entries[i].buf.len);
                entries[i].buf.base = batch + used;
                entries[i].batch = batch;
        }
}

struct raft_entry *entries_unpack(const struct bytes *records, size_t n) {
        struct raft_entry *entries = n > 0 ? raft_array(n, sizeof(*entries)) : NULL;
        cleanup_free const uint8_t **data = xcalloc(n + 1, sizeof(*data));

        for (size_t i = 0; i < n; i++) {
                const uint8_t *at = records[i].data;

                data[i] = get_entry(&at, &entries[i]);
        }
        if (n > 0)
                make_batch(entries, n, data);
        return entries;
}

/* ---- messages ---- */

void message_describe(const struct raft_message *message, char *buf, size_t buf_bytes) {
        const struct raft_append_entries *append = &message->append_entries;
        const struct raft_append_entries_result *result = &message->append_entries_result;
        const struct raft_request_vote *vote = &message->request_vote;

        switch (message->type) {
        case RAFT_APPEND_ENTRIES:
                (void) snprintf(buf, buf_bytes, "append term %llu after %llu^%llu, %u entries, committed %llu", append->term,
                                append->prev_log_index, append->prev_log_term, append->n_entries, append->leader_commit);
                return;
        case RAFT_APPEND_ENTRIES_RESULT:
                (void) snprintf(buf, buf_bytes, "append result term %llu rejected %llu last %llu capacity %u", result->term,
                                result->rejected, result->last_log_index, result->capacity);
                return;
        case RAFT_REQUEST_VOTE:
                (void) snprintf(buf, buf_bytes, "%svote? term %llu last %llu^%llu", vote->pre_vote ? "pre-" : "", vote->term,
                                vote->last_log_index, vote->last_log_term);
                return;
        case RAFT_REQUEST_VOTE_RESULT:
                (void) snprintf(buf, buf_bytes, "vote term %llu %s", message->request_vote_result.term,
                                message->request_vote_result.vote_granted ? "yes" : "no");
                return;
        case RAFT_INSTALL_SNAPSHOT:
                (void) snprintf(buf, buf_bytes, "snapshot term %llu of %llu^%llu", message->install_snapshot.term,
                                message->install_snapshot.last_index, message->install_snapshot.last_term);
                return;
        default:
                (void) snprintf(buf, buf_bytes, "message of type %d", (int) message->type);
        }
}

/* ---- snapshots ---- */

void snapshot_pack(const struct raft_snapshot *snapshot, struct bytes *ret) {
        put_number(ret, snapshot->index);
        put_number(ret, snapshot->term);
        put_number(ret, snapshot->configuration_index);
        put_configuration(ret, &snapshot->configuration);
        put_number(ret, snapshot->bufs[0].len);
        put(ret, snapshot->bufs[0].base, snapshot->bufs[0].len);
}

struct raft_snapshot *snapshot_unpack(const void *data) {
        const uint8_t *at = data;
        struct raft_snapshot *snapshot = raft_array(1, sizeof(*snapshot));

        snapshot->index = get_number(&at);
        snapshot->term = get_number(&at);
        snapshot->configuration_index = get_number(&at);
        get_configuration(&at, &snapshot->configuration);
        snapshot->n_bufs = 1;
        snapshot->bufs = raft_array(1, sizeof(*snapshot->bufs));
        snapshot->bufs[0].len = get_number(&at);
        snapshot->bufs[0].base = raft_copy(at, snapshot->bufs[0].len);
        return snapshot;
}
