/* Whether the checkpoints that lie here are as they were written: an rm-mover reads a store again,
 * one after the other, now and then, and on request, or when a checkpoint could not be loaded. The
 * log hears what is no good: it counts no more, and is copied again from a node that has it
 * whole. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/checkpoint/checkpoints_internal.h"
#include "daemon/state/commands.h"

#define SILENCE_USEC (UINT64_C(120) * 1000000)
#define WAITING_MAX 4096U /* stores: what is more is not read this time */

static struct check *find(const struct checkpoints *c, uint64_t job, int32_t index) {
        struct check *check;

        TAILQ_FOREACH (check, &c->checks, entry)
                if (check->job == job && check->index == index)
                        return check;
        return NULL;
}

/* The check ends: requests that wait for it are answered. */
static void check_end(struct check *check, const Rm__MoverVerified *found, int error, const char *text) {
        struct checkpoints *c = check->c;
        struct check_waiter *waiter;

        TAILQ_REMOVE(&c->checks, check, entry);
        mover_stop(check->mover, c->remover, "");
        event_free(check->deadline);
        while ((waiter = SLIST_FIRST(&check->waiters))) {
                SLIST_REMOVE_HEAD(&check->waiters, entry);
                waiter->fn(waiter->userdata, check->index, found, error, text);
                free(waiter);
        }
        free(check->had);
        free(check);
        checkpoints_retry(c);
}

static void check_fail(struct check *check, const char *why) {
        log_warn("checkpoints of job %" PRIu64 ", capsule %" PRId32 ": they cannot be verified: %s", check->job, check->index, why);
        check_end(check, NULL, -EIO, why);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg) {
        check_fail(arg, "rm-mover does not answer");
}

/* ---- what was found ---- */

static const Rm__MoverVerdict *verdict_on(const Rm__MoverVerified *found, uint64_t checkpoint) {
        for (size_t i = 0; i < found->n_verdicts; i++)
                if (found->verdicts[i]->checkpoint == checkpoint)
                        return found->verdicts[i];
        return NULL;
}

static bool is_had(const struct check *check, uint64_t checkpoint) {
        for (size_t i = 0; i < check->n_had; i++)
                if (check->had[i] == checkpoint)
                        return true;
        return false;
}

/* A checkpoint that has come since then has no verdict, and is not missing. */
static void note_had(struct check *check) {
        const Rm__Job *job = state_job(checkpoints_state(check->c), check->job);
        const char *here = stores_place(check->c);

        check->had = xcalloc((job ? job->n_checkpoints : 0) + 1u, sizeof(*check->had));
        for (size_t i = 0; job && i < job->n_checkpoints; i++) {
                const Rm__CheckpointPart *part = checkpoint_part(job->checkpoints[i], check->index);

                if (part && names_have(part->stored, part->n_stored, here))
                        check->had[check->n_had++] = job->checkpoints[i]->id;
        }
}

/* Tells the log of checkpoints that it takes to be here, and that are not, or are damaged. */
static void report_log(const struct check *check, const Rm__MoverVerified *found) {
        const Rm__Job *job = state_job(checkpoints_state(check->c), check->job);
        const char *here = stores_place(check->c);
        struct command cmd;

        for (size_t i = 0; job && i < job->n_checkpoints; i++) {
                const Rm__CheckpointPart *part = checkpoint_part(job->checkpoints[i], check->index);
                const Rm__MoverVerdict *verdict = verdict_on(found, job->checkpoints[i]->id);

                if (!part || !names_have(part->stored, part->n_stored, here) || (verdict && verdict->code == 0) ||
                    (!verdict && !is_had(check, job->checkpoints[i]->id)))
                        continue;
                checkpoints_propose(check->c, command_checkpoint_copy_lost(&cmd, job->id, job->checkpoints[i]->id, check->index,
                                                                           here, verdict ? verdict->text : "it is missing"));
        }
}

static void on_event(void *userdata, const Rm__MoverEvent *event) {
        struct check *check = userdata;

        switch (event->body_case) {
        case RM__MOVER_EVENT__BODY_PROGRESS:
                timer_arm(check->deadline, SILENCE_USEC);
                break;
        case RM__MOVER_EVENT__BODY_VERIFIED:
                report_log(check, event->verified);
                check_end(check, event->verified, 0, "");
                break;
        case RM__MOVER_EVENT__BODY_FAILED:
                check_fail(check, event->failed->text);
                break;
        default:
                break;
        }
}

static void on_gone(void *userdata) {
        check_fail(userdata, "rm-mover exited unexpectedly");
}

static const struct mover_ops ops = { on_event, on_gone };

/* ---- one after the other ---- */

static int start(struct check *check, struct rm_error *err) {
        cleanup_free char *dir = stores_dir(check->c, check->job, check->index);
        Rm__MoverVerify body = RM__MOVER_VERIFY__INIT;
        Rm__MoverStore store;
        int r = stores_describe(check->c, check->job, check->index, dir, &store, err);

        if (r == 0 && !check->c->shared)
                r = stores_make(check->c, check->job, err); /* it may be missing, with all that was in it */
        if (r < 0)
                return r;
        body.store = &store;
        body.bytes_per_sec = check->c->rmd->config->checkpoint_rate_bytes_per_sec;
        r = mover_start(check->c->rmd, "verify", &MOVER_COMMAND(&body), &ops, check, &check->mover, err);
        if (r < 0)
                return r;
        note_had(check);
        timer_arm(check->deadline, SILENCE_USEC);
        return 0;
}

/* Files come and go there just now. */
static bool is_busy(const struct check *check) {
        return saves_busy(check->c, check->job, check->index) || copies_use(check->c, check->job, check->index) ||
               loads_use(check->c, check->job, check->index);
}

static bool has_manifest(const struct checkpoints *c, uint64_t job, int32_t index, uint64_t checkpoint) {
        cleanup_free char *dir = stores_dir(c, job, index);
        char **names;
        size_t n;

        if (stores_files(dir, checkpoint, true, &names, &n) < 0)
                return false;
        free_all(names, n);
        return true;
}

/* Checks the stores that this node has by the log and that are not there: on a new disk no
 * directory says that one was there. `all`: also those that are there. A store that is missing on a
 * file system of all nodes may only not be mounted. */
static void want_listed(struct checkpoints *c, bool all) {
        const Rm__State *state = checkpoints_state(c);
        const char *here = stores_place(c);

        for (size_t i = 0; i < state->n_jobs && !c->shared; i++)
                for (size_t k = 0; k < state->jobs[i]->n_checkpoints; k++) {
                        const Rm__Checkpoint *checkpoint = state->jobs[i]->checkpoints[k];

                        for (size_t p = 0; p < checkpoint->n_parts; p++) {
                                const Rm__CheckpointPart *part = checkpoint->parts[p];

                                if (names_have(part->stored, part->n_stored, here) &&
                                    (all || !has_manifest(c, state->jobs[i]->id, part->capsule, checkpoint->id)))
                                        checks_want(c, state->jobs[i]->id, part->capsule, NULL);
                        }
                }
}

void checks_wake(struct checkpoints *c) {
        struct check *check, *next;
        struct rm_error err = { 0 };

        if (!c->scanned) {
                c->scanned = true;
                want_listed(c, false);
        }
        TAILQ_FOREACH (check, &c->checks, entry)
                if (check->mover)
                        return;
        for (check = TAILQ_FIRST(&c->checks); check; check = next) {
                next = TAILQ_NEXT(check, entry);
                if (is_busy(check)) {
                        checkpoints_retry(c);
                        continue;
                }
                if (start(check, &err) == 0)
                        return;
                check_fail(check, error_text(&err));
        }
}

void checks_want(struct checkpoints *c, uint64_t job, int32_t index, struct check_waiter *waiter) {
        struct check *check = find(c, job, index);
        size_t n = 0;

        if (!check) {
                TAILQ_FOREACH (check, &c->checks, entry)
                        n++;
                if (n >= WAITING_MAX) {
                        if (waiter)
                                waiter->fn(waiter->userdata, index, NULL, -EBUSY, "too many wait for that");
                        free(waiter);
                        return;
                }
                check = xcalloc(1, sizeof(*check));
                *check = (struct check) { .c = c, .job = job, .index = index };
                check->deadline = evtimer_new(c->rmd->base, on_deadline, check);
                TAILQ_INSERT_TAIL(&c->checks, check, entry);
        }
        if (waiter)
                SLIST_INSERT_HEAD(&check->waiters, waiter, entry);
        checkpoints_wake(c);
}

void checks_want_unread(struct checkpoints *c, uint64_t job, int32_t index, int code) {
        if (code == -EBADMSG || code == -ENODATA || (code == -ENOENT && !c->shared))
                checks_want(c, job, index, NULL);
}

/* ---- of a checkpoint, all that is here ---- */

struct verification {
        uint64_t checkpoint;
        size_t open; /* parts that have no answer yet */
        Rm__VerifiedCheckpoint found;
        int error;
        char *text;
        checkpoints_verified_fn fn;
        void *userdata;
};

static void verification_step(struct verification *v) {
        if (--v->open > 0)
                return;
        v->fn(v->userdata, &v->found, v->error, v->text);
        for (size_t i = 0; i < v->found.n_parts; i++) {
                free(v->found.parts[i]->error);
                free(v->found.parts[i]);
        }
        free(v->found.parts);
        free(v->text);
        free(v);
}

static void on_checked(void *userdata, int32_t index, const Rm__MoverVerified *found, int error, const char *text) {
        const Rm__MoverVerdict *verdict;
        struct verification *v = userdata;
        Rm__VerifiedPart *part;

        if (!found) {
                v->error = error;
                free(v->text);
                v->text = xstrdup(text);
                verification_step(v);
                return;
        }
        verdict = verdict_on(found, v->checkpoint);
        part = xcalloc(1, sizeof(*part));
        rm__verified_part__init(part);
        part->capsule = index;
        part->error = xstrdup(verdict ? verdict->text : "it is missing");
        v->found.parts = xrealloc(v->found.parts, (v->found.n_parts + 1) * sizeof(*v->found.parts));
        v->found.parts[v->found.n_parts++] = part;
        verification_step(v);
}

void checkpoints_verify(struct checkpoints *c, uint64_t job, uint64_t checkpoint, checkpoints_verified_fn fn, void *userdata) {
        const Rm__Checkpoint *record = checkpoints_record(c, job, checkpoint);
        const char *here = stores_place(c);
        struct verification *v = xcalloc(1, sizeof(*v));

        *v = (struct verification) {
                .checkpoint = checkpoint, .open = 1, .found = RM__VERIFIED_CHECKPOINT__INIT, .error = -ENOENT
        };
        v->fn = fn;
        v->userdata = userdata;
        v->text = xstrdup("nothing of it is here");
        for (size_t i = 0; record && i < record->n_parts; i++) {
                struct check_waiter *waiter;

                if (!names_have(record->parts[i]->stored, record->parts[i]->n_stored, here))
                        continue;
                v->error = 0;
                v->open++;
                waiter = xcalloc(1, sizeof(*waiter));
                *waiter = (struct check_waiter) { .fn = on_checked, .userdata = v };
                checks_want(c, job, record->parts[i]->capsule, waiter);
        }
        verification_step(v);
}

/* ---- by itself ---- */

static void want_alone(struct checkpoints *c, uint64_t job, int32_t index, void *arg) {
        checks_want(c, job, index, NULL);
}

static void on_time(evutil_socket_t fd, short what, void *arg) {
        struct checkpoints *c = arg;

        /* Stores on a file system that all nodes share are read by one of them, the leader. */
        if (cluster_synced(c->rmd->cluster) && (!c->shared || cluster_is_leader(c->rmd->cluster)))
                stores_each(c, want_alone, NULL);
        if (cluster_synced(c->rmd->cluster))
                want_listed(c, true);
}

void checks_init(struct checkpoints *c) {
        uint64_t every_usec = c->rmd->config->checkpoint_verify_usec;
        struct timeval every = { .tv_sec = (time_t) (every_usec / 1000000), .tv_usec = (suseconds_t) (every_usec % 1000000) };

        TAILQ_INIT(&c->checks);
        if (every_usec == 0)
                return;
        c->verify = event_new(c->rmd->base, -1, EV_PERSIST, on_time, c);
        (void) event_add(c->verify, &every);
}

void checks_finish(struct checkpoints *c) {
        while (!TAILQ_EMPTY(&c->checks))
                check_end(TAILQ_FIRST(&c->checks), NULL, -ECANCELED, "rmd ends");
        if (c->verify)
                event_free(c->verify);
}
