/* Which log this voter keeps, and raft's number of it: the file "voter" beside the log. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/log/raftlog_internal.h"

/* The version of the format of all files in the directory, as the file "voter" says. Versions 0.1
 * wrote 1 (which that file does not name), 2 and 3. */
#define FORMAT 4U

uint64_t raftlog_draw_id(void) {
        uint64_t id = 0;

        while (id == 0)
                if (getrandom(&id, sizeof(id), 0) != (ssize_t) sizeof(id))
                        id = now_real_usec();
        return id;
}

char *raftlog_identity_path(const char *dir) {
        return xasprintf("%s/voter", dir);
}

bool raftlog_exists(const char *dir) {
        cleanup_free char *path = raftlog_identity_path(dir);

        return access(path, F_OK) == 0;
}

int raftlog_identity_read(struct raftlog *log, struct rm_error *err) {
        cleanup_free char *text = NULL;
        unsigned format = 1;
        int used = 0, r = read_file(log->identity_path, 256, &text, NULL);

        if (r < 0)
                return error_sys(err, r, "cannot read %s", log->identity_path);
        (void) sscanf(text, "rmd-log %u\n%n", &format, &used);
        if (used == 0)
                format = 1;
        if (sscanf(text + used, "%" SCNx64 " %" SCNx64, &log->voter_id, &log->log_id) != 2 || !log->voter_id || !log->log_id)
                return error_set(err, -EBADMSG, "%s: not what was written there", log->identity_path);
        if (format != FORMAT)
                return error_set(
                        err, -ENOTSUP,
                        "it is of format %u, and this version of rmd reads format %u only: start the version that wrote it, "
                        "let its jobs end or cancel them, stop it on all nodes, remove %s, and start this one; it begins with "
                        "an empty log, without the jobs, moves and drains of the old one",
                        format, FORMAT, log->identity_path);
        return 0;
}

int raftlog_identity_write(const struct raftlog *log, struct rm_error *err) {
        cleanup_free char *text = xasprintf("rmd-log %u\n%016" PRIx64 " %016" PRIx64 "\n", FORMAT, log->voter_id, log->log_id);
        int r = write_file_atomic(log->identity_path, text, strlen(text), 0600, true);

        if (r == 0)
                r = sync_name(log->identity_path);
        if (r < 0)
                return error_sys(err, r, "cannot write %s", log->identity_path);
        return 0;
}

/* A directory of logs without the file that says whose they are is what an interrupted beginning
 * leaves, or of a mistake; no entry in it was ever acknowledged, but it is not ours to remove. */
int raftlog_set_aside(const struct raftlog *log, struct rm_error *err) {
        cleanup_free char *aside = xasprintf("%s.unused.%" PRIu64, log->log_dir, now_real_usec() / 1000000U);

        if (rmdir(log->log_dir) == 0 || errno == ENOENT)
                return 0;
        if (rename(log->log_dir, aside) < 0)
                return error_sys(err, -errno, "cannot rename %s", log->log_dir);
        log_warn("%s belonged to no log that was finished; it is now %s", log->log_dir, aside);
        return 0;
}

static char *known_path(const struct raftlog *log) {
        return xasprintf("%s/../applied", log->log_dir);
}

void raftlog_known_read(struct raftlog *log) {
        cleanup_free char *path = known_path(log), *text = NULL;
        uint64_t log_id = 0, voter_id = 0, index = 0;

        if (read_file(path, 256, &text, NULL) == 0 &&
            sscanf(text, "%" SCNx64 " %" SCNx64 " %" SCNu64 ".", &log_id, &voter_id, &index) == 3 && log_id == log->log_id &&
            voter_id == log->voter_id && strchr(text, '.'))
                log->known_index = log->noted_index = index;
}

void raftlog_known_note(struct raftlog *log) {
        cleanup_free char *path = known_path(log), *text = NULL;
        uint64_t index = raft_last_applied(&log->raft);

        if (index <= log->noted_index || log->failed.code < 0)
                return;
        text = xasprintf("%016" PRIx64 " %016" PRIx64 " %" PRIu64 ".\n", log->log_id, log->voter_id, index);
        if (write_file_atomic(path, text, strlen(text), 0600, false) == 0)
                log->noted_index = index;
}

int raftlog_discard(const char *dir, struct rm_error *err) {
        cleanup_free char *identity = raftlog_identity_path(dir);
        cleanup_free char *log = xasprintf("%s/log", dir), *known = xasprintf("%s/applied", dir);
        int r;

        /* Without this file the rest belongs to no voter. If it came back after a loss of power,
         * this voter would go on from where it was, and lead if it was alone then. */
        if (unlink(identity) < 0 && errno != ENOENT)
                return error_sys(err, -errno, "cannot remove %s", identity);
        r = sync_name(identity);
        if (r < 0)
                return error_sys(err, r, "cannot sync %s", dir);
        (void) unlink(known);
        r = remove_tree(log);
        return r < 0 && r != -ENOENT ? error_sys(err, r, "cannot remove %s", log) : 0;
}
