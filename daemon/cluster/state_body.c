/* How much of what is kept beside the state one user, and all users, may have. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/cluster/state.h"

bool job_has_body(const Rm__Job *job) {
        return job->spec->body_digest.len == STATE_DIGEST_BYTES && !job_ended(job);
}

static int compare(const void *a, const void *b) {
        const Rm__JobSpec *const *x = a, *const *y = b;

        return memcmp((*x)->body_digest.data, (*y)->body_digest.data, STATE_DIGEST_BYTES);
}

/* The specs of all jobs that have a body, and this one, those with the same body together; malloc'ed. */
static const Rm__JobSpec **sorted_specs(const Rm__State *state, const Rm__JobSpec *spec, size_t *ret_n) {
        const Rm__JobSpec **specs = xcalloc(state->n_jobs + 1, sizeof(*specs));
        size_t n = 0;

        for (size_t i = 0; i < state->n_jobs; i++)
                if (job_has_body(state->jobs[i]))
                        specs[n++] = state->jobs[i]->spec;
        specs[n++] = spec;
        qsort(specs, n, sizeof(*specs), compare);
        *ret_n = n;
        return specs;
}

/* What the user's jobs hold, and all jobs, each body once. */
static void add_up(const Rm__JobSpec *const *specs, size_t n, uint32_t uid, uint64_t *ret_user_bytes, uint64_t *ret_bytes) {
        bool counted = false;

        *ret_user_bytes = *ret_bytes = 0;
        for (size_t i = 0; i < n; i++) {
                bool first = i == 0 || compare(&specs[i - 1], &specs[i]) != 0;

                if (first) {
                        *ret_bytes += specs[i]->body_bytes;
                        counted = false;
                }
                if (specs[i]->uid == uid && !counted) {
                        *ret_user_bytes += specs[i]->body_bytes;
                        counted = true;
                }
        }
}

int state_check_body(const Rm__State *state, const Rm__JobSpec *spec, struct rm_error *err) {
        cleanup_free const Rm__JobSpec **specs = NULL;
        uint64_t user_bytes = 0, bytes = 0;
        size_t n = 0;

        if (spec->body_digest.len == 0 && spec->body_bytes == 0)
                return 0;
        if (spec->body_digest.len != STATE_DIGEST_BYTES || spec->body_bytes == 0 || spec->body_bytes > STATE_BODY_MAX_BYTES)
                return error_set(err, -EINVAL, "the job does not say what it is launched with");
        specs = sorted_specs(state, spec, &n);
        add_up(specs, n, spec->uid, &user_bytes, &bytes);
        if (user_bytes > STATE_USER_BODIES_MAX_BYTES)
                return error_set(
                        err, -EDQUOT,
                        "the environments and command lines of your waiting and running jobs would be %.1f MiB, at most %u MiB "
                        "are kept; make the environment smaller, or try again when some have ended",
                        (double) user_bytes / (1 << 20), (unsigned) (STATE_USER_BODIES_MAX_BYTES >> 20));
        if (bytes > STATE_BODIES_MAX_BYTES)
                return error_set(
                        err, -EDQUOT,
                        "the environments and command lines of all jobs together are over %u MiB; try again when some have ended",
                        (unsigned) (STATE_BODIES_MAX_BYTES >> 20));
        return 0;
}
