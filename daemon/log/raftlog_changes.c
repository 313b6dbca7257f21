/* Makes up for what libraft 0.22.1 forgets of changes of the configuration.
 *
 * Entries that come together count as if each had the index of the first of them. So of two changes
 * that a voter gets at once, after it was away, it notes that the first is committed, and never
 * that the second is: its snapshots would go on with the voters of before, also on voters that are
 * sent one. Besides, a change that was in the log when a voter started, above all one that is
 * alone, is applied and not noted as committed, so that no other change could ever follow. */
#include "daemon/log/raftlog_internal.h"

#include <stdlib.h>

#include "common/util.h"

/* A change of the configuration that came from another voter, and of which raft has not noted that
 * it is committed. */
struct change {
        uint64_t index, term;
        struct raft_configuration configuration;
        LIST_ENTRY(change) entry;
};

bool raftlog_copy_configuration(const struct raft_configuration *from, struct raft_configuration *to) {
        struct raft_buffer buf;
        bool copied;

        if (raft_configuration_encode(from, &buf) != 0)
                return false;
        copied = raft_configuration_decode(&buf, to) == 0;
        raft_free(buf.base);
        return copied;
}

static void change_free(struct change *change) {
        LIST_REMOVE(change, entry);
        raft_configuration_close(&change->configuration);
        free(change);
}

void raftlog_changes_finish(struct raftlog *log) {
        while (!LIST_EMPTY(&log->changes))
                change_free(LIST_FIRST(&log->changes));
}

/* 0: the log has no such entry, or not any more. */
static uint64_t term_at(const struct raft_trail *trail, uint64_t index) {
        if (index <= trail->offset)
                return 0;
        for (unsigned i = trail->front; i != trail->back; i = (i + 1) % trail->size)
                if (index <= trail->records[i].index)
                        return trail->records[i].term;
        return 0;
}

static bool is_in_log(const struct raftlog *log, const struct change *change) {
        return term_at(&log->raft.trail, change->index) == change->term;
}

static bool has(const struct raftlog *log, uint64_t index, uint64_t term) {
        const struct change *change;

        LIST_FOREACH (change, &log->changes, entry)
                if (change->index == index && change->term == term)
                        return true;
        return false;
}

static void add(struct raftlog *log, uint64_t index, const struct raft_entry *entry) {
        struct change *change;

        if (index <= raft_last_applied(&log->raft) || has(log, index, entry->term))
                return;
        change = xcalloc(1, sizeof(*change));
        change->index = index;
        change->term = entry->term;
        if (raft_configuration_decode(&entry->buf, &change->configuration) == 0)
                LIST_INSERT_HEAD(&log->changes, change, entry);
        else
                free(change);
}

void raftlog_changes_come(struct raftlog *log, const struct raft_append_entries *append) {
        for (unsigned i = 0; i < append->n_entries; i++)
                if (append->entries[i].type == RAFT_CHANGE)
                        add(log, append->prev_log_index + 1 + i, &append->entries[i]);
}

static const struct change *newest(const struct raftlog *log, uint64_t index_max) {
        const struct change *change, *found = NULL;

        LIST_FOREACH (change, &log->changes, entry)
                if (change->index <= index_max && (!found || change->index > found->index))
                        found = change;
        return found;
}

const struct raft_configuration *raftlog_changes_at(const struct raftlog *log, uint64_t index, uint64_t *ret_index) {
        const struct raft *raft = &log->raft;
        const struct change *change = newest(log, index);

        *ret_index = change ? change->index : raft->configuration_uncommitted_index;
        return change ? &change->configuration : *ret_index > 0 && *ret_index <= index ? &raft->configuration : NULL;
}

static void committed(struct raft *raft, const struct raft_configuration *configuration, uint64_t index) {
        struct raft_configuration copy;

        if (index <= raft->configuration_committed_index || !raftlog_copy_configuration(configuration, &copy))
                return;
        raft_configuration_close(&raft->configuration_committed);
        raft->configuration_committed = copy;
        raft->configuration_committed_index = index;
}

/* Forgets changes that raft has noted by now, or that its log does not have: raft may have cut them
 * off, or have refused them at once. A change that is applied is kept. */
static void drop(struct raftlog *log) {
        raft_index applied = raft_last_applied(&log->raft);
        struct change *change, *next;

        for (change = LIST_FIRST(&log->changes); change; change = next) {
                next = LIST_NEXT(change, entry);
                if (change->index <= log->raft.configuration_committed_index ||
                    (change->index > applied && !is_in_log(log, change)))
                        change_free(change);
        }
}

void raftlog_changes_note(struct raftlog *log) {
        struct raft *raft = &log->raft;
        raft_index applied = raft_last_applied(raft);
        const struct change *last, *done;

        drop(log);
        last = newest(log, UINT64_MAX);
        done = newest(log, applied);
        if (last && last->index > applied && last->index > raft->configuration_uncommitted_index)
                raft->configuration_uncommitted_index = last->index;
        if (done)
                committed(raft, &done->configuration, done->index);
        if (raft->configuration_uncommitted_index != 0 && raft->configuration_uncommitted_index <= applied) {
                committed(raft, &raft->configuration, raft->configuration_uncommitted_index);
                raft->configuration_uncommitted_index = 0;
        }
        drop(log);
}
