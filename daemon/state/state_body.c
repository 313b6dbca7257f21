/* How much of what is kept beside the state one user, and all users, may have. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/state/state.h"

bool job_has_body(const Rm__Job *job) {
        return job->spec->body_digest.len == STATE_DIGEST_BYTES && !job_ended(job);
}

/* Bodies that were counted, by their digests, which are as good as drawn by chance: open
 * addressing, at most half full. */
struct counted {
        const Rm__JobSpec **slots;
        size_t mask;
};

static bool count_once(struct counted *counted, const Rm__JobSpec *spec) {
        const uint8_t *digest = spec->body_digest.data;
        size_t at = 0;

        memcpy(&at, digest, sizeof(at));
        for (at &= counted->mask; counted->slots[at]; at = (at + 1) & counted->mask)
                if (memcmp(counted->slots[at]->body_digest.data, digest, STATE_DIGEST_BYTES) == 0)
                        return false;
        counted->slots[at] = spec;
        return true;
}

/* Sums up the bytes of environments that jobs hold together with this one: jobs of its user, or all
 * jobs; each body counts once. */
static uint64_t add_up(const Rm__State *state, const Rm__JobSpec *spec, bool all) {
        struct counted counted = { .mask = 15 };
        uint64_t bytes = spec->body_bytes;

        while (counted.mask < 2 * (state->n_jobs + 1))
                counted.mask = 2 * counted.mask + 1;
        counted.slots = xcalloc(counted.mask + 1, sizeof(*counted.slots));
        (void) count_once(&counted, spec);
        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Job *job = state->jobs[i];

                if ((all || job->spec->uid == spec->uid) && job_has_body(job) && count_once(&counted, job->spec))
                        bytes += job->spec->body_bytes;
        }
        free(counted.slots);
        return bytes;
}

int state_check_body(const Rm__State *state, const Rm__JobSpec *spec, struct rm_error *err) {
        uint64_t user_bytes;

        if (spec->body_digest.len == 0 && spec->body_bytes == 0)
                return 0;
        if (spec->body_digest.len != STATE_DIGEST_BYTES || spec->body_bytes == 0 || spec->body_bytes > STATE_BODY_MAX_BYTES)
                return error_set(err, -EINVAL, "the job has no command line and environment");
        user_bytes = add_up(state, spec, false);
        if (user_bytes > STATE_USER_BODIES_MAX_BYTES)
                return error_set(
                        err, -EDQUOT,
                        "the environments and command lines of your waiting and running jobs would be %.1f MiB, at most %u MiB "
                        "are kept; make the environment smaller, or try again when some have ended",
                        (double) user_bytes / (1 << 20), (unsigned) (STATE_USER_BODIES_MAX_BYTES >> 20));
        if (add_up(state, spec, true) > STATE_BODIES_MAX_BYTES)
                return error_set(
                        err, -EDQUOT,
                        "the environments and command lines of all jobs together are over %u MiB; try again when some have ended",
                        (unsigned) (STATE_BODIES_MAX_BYTES >> 20));
        return 0;
}
