/* This file is in place of daemon/log/raftlog_identity.c: on the disk of the virtual host. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/log/raftlog_internal.h"
#include "tests/sim/storage.h"

struct identity_record {
        uint64_t voter_id, log_id;
};

struct known_record {
        uint64_t voter_id, log_id, index;
};

static struct disk *current_disk(void) {
        return host_part(host_current(), HOST_DISK);
}

/* Calls of a killed process have no effect. */
static bool is_killed(void) {
        return host_state(host_current()) == HOST_DEAD;
}

uint64_t raftlog_draw_id(void) {
        return 1 + timeline_random(host_timeline(host_current()), UINT64_MAX - 1);
}

char *raftlog_identity_path(const char *dir) {
        return xasprintf("%s/voter", dir);
}

bool raftlog_exists(const char *dir) {
        uint64_t first, last;

        return disk_range(current_disk(), FILE_IDENTITY, &first, &last);
}

int raftlog_identity_read(struct raftlog *log, struct rm_error *err) {
        struct identity_record identity;
        size_t n;
        const void *data = storage_get(host_current(), FILE_IDENTITY, 0, &n);

        if (!data)
                return error_set(err, -EBADMSG, "not what was written there");
        memcpy(&identity, data, sizeof(identity));
        log->voter_id = identity.voter_id;
        log->log_id = identity.log_id;
        return 0;
}

int raftlog_identity_write(const struct raftlog *log, struct rm_error *err) {
        struct identity_record identity;

        if (is_killed())
                return -ECANCELED;
        if (disk_broken(current_disk()) || disk_full(current_disk()))
                return error_set(err, disk_broken(current_disk()) ? -EIO : -ENOSPC, "the disk");
        memset(&identity, 0, sizeof(identity));
        identity.voter_id = log->voter_id;
        identity.log_id = log->log_id;
        storage_put(host_current(), FILE_IDENTITY, 0, &identity, sizeof(identity));
        disk_sync_now(current_disk(), FILE_IDENTITY);
        return 0;
}

/* The rename is on the disk as soon as the new identity is. */
int raftlog_set_aside(const struct raftlog *log, struct rm_error *err) {
        storage_clear(host_current());
        return 0;
}

void raftlog_known_read(struct raftlog *log) {
        struct known_record known;
        size_t n;
        const void *data = storage_get(host_current(), FILE_KNOWN, 0, &n);

        if (!data)
                return;
        memcpy(&known, data, sizeof(known));
        if (known.voter_id == log->voter_id && known.log_id == log->log_id)
                log->known_index = log->noted_index = known.index;
}

/* The record is not synced. */
void raftlog_known_note(struct raftlog *log) {
        struct known_record known = { log->voter_id, log->log_id, raft_last_applied(&log->raft) };

        if (is_killed() || known.index <= log->noted_index || log->failed.code < 0 || disk_broken(current_disk()) ||
            disk_full(current_disk()))
                return;
        storage_put(host_current(), FILE_KNOWN, 0, &known, sizeof(known));
        log->noted_index = known.index;
}

int raftlog_discard(const char *dir, struct rm_error *err) {
        storage_clear(host_current());
        return 0;
}
