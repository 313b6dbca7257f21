/* How much of a disk checkpoints may take: so that no user takes what others, and the log, need. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/checkpoint/checkpoints_internal.h"
#include "daemon/state/commands.h"
#include "daemon/store/directory.h"
#include "daemon/store/store.h"

#define DEFAULT_SHARE 2U /* of what others have left, for one user */

struct sum {
        uint32_t uid;
        uint64_t bytes;
};

static void add(struct checkpoints *c, uint64_t job, int32_t index, void *arg) {
        cleanup_free char *dir = stores_dir(c, job, index);
        const Rm__Job *j = state_job(checkpoints_state(c), job);
        struct sum *sum = arg;
        cleanup_close int fd = -1;

        if (!j || j->spec->uid != sum->uid)
                return;
        fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0)
                sum->bytes += directory_bytes(fd);
}

static uint64_t less(uint64_t a, uint64_t b) {
        return a > b ? a - b : 0;
}

uint64_t space_of_user(uint64_t limit_bytes, uint64_t has_bytes, uint64_t free_bytes) {
        uint64_t left;

        if (limit_bytes == 0)
                limit_bytes = has_bytes > UINT64_MAX - free_bytes ? UINT64_MAX : (has_bytes + free_bytes) / DEFAULT_SHARE;
        left = less(limit_bytes, has_bytes);
        left = left < free_bytes ? left : free_bytes;
        return left > 0 ? left : 1;
}

uint64_t space_left_of_user(const struct checkpoints *c, uint32_t uid) {
        struct sum sum = { .uid = uid };
        struct statvfs fs;

        if (statvfs(c->root, &fs) < 0)
                return UINT64_MAX; /* that will show when it is written to */
        stores_each((struct checkpoints *) c, add, &sum);
        return space_of_user(c->rmd->config->checkpoint_space_bytes, sum.bytes,
                             less(fs.f_bavail, fs.f_blocks / STORE_RESERVE_SHARE) * fs.f_frsize);
}

uint64_t space_left(const struct checkpoints *c, uint64_t job) {
        const Rm__Job *j = state_job(checkpoints_state(c), job);

        return j ? space_left_of_user(c, j->spec->uid) : UINT64_MAX;
}

static bool has_part_here(const struct checkpoints *c, const Rm__Checkpoint *checkpoint) {
        for (size_t i = 0; i < checkpoint->n_parts; i++)
                if (names_have(checkpoint->parts[i]->stored, checkpoint->parts[i]->n_stored, stores_place(c)))
                        return true;
        return false;
}

const Rm__Checkpoint *space_spare(const Rm__Job *job) {
        const Rm__Checkpoint *oldest = NULL;

        for (size_t i = 0; i < job->n_checkpoints; i++) {
                if (job->checkpoints[i]->state != RM__CHECKPOINT_STATE__CHECKPOINT_DONE)
                        continue;
                if (oldest)
                        return oldest;
                oldest = job->checkpoints[i];
        }
        return NULL;
}

void space_make(struct checkpoints *c, uint64_t wanting, uint64_t checkpoint) {
        const Rm__State *state = checkpoints_state(c);
        const Rm__Job *for_job = state_job(state, wanting);
        const Rm__Checkpoint *oldest = NULL;
        cleanup_free char *by = NULL;
        uint64_t job = 0;
        struct command cmd;

        if (!for_job)
                return;
        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Checkpoint *spare = state->jobs[i]->spec->uid == for_job->spec->uid ? space_spare(state->jobs[i]) : NULL;

                if (!spare || !has_part_here(c, spare) || (state->jobs[i]->id == wanting && spare->id == checkpoint) ||
                    (oldest && oldest->start_usec <= spare->start_usec))
                        continue;
                oldest = spare;
                job = state->jobs[i]->id;
        }
        if (!oldest) {
                log_warn("there is no room for checkpoints of user %" PRIu32 ", and none of theirs to spare", for_job->spec->uid);
                return;
        }
        by = xasprintf("rmd: there is no room on %s", checkpoints_self(c));
        checkpoints_propose(c, command_checkpoint_remove(&cmd, job, oldest->id, by));
}
