#include "daemon/metrics/tally.h"

#include <stdlib.h>
#include <string.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/util.h"

/* A job that has not ended. Times are of the log; 0: not known. */
struct tally_job {
        uint64_t id;
        uint64_t waiting_usec; /* since when it waits to be placed */
        uint64_t safe_usec;    /* since when its work would be lost with a node */
        uint64_t lost_usec;    /* since when it recovers from the loss of a node */
        UT_hash_handle hh;
};

struct tally {
        char *self;
        struct counters counters;
        uint64_t changes;
        struct tally_job *jobs;
};

struct tally *tally_create(const char *self) {
        struct tally *tally = xcalloc(1, sizeof(*tally));

        tally->self = xstrdup(self);
        return tally;
}

static void forget_all(struct tally *tally) {
        struct tally_job *job, *next;

        HASH_ITER (hh, tally->jobs, job, next) {
                HASH_DEL(tally->jobs, job);
                free(job);
        }
}

void tally_destroy(struct tally *tally) {
        if (!tally)
                return;
        forget_all(tally);
        free(tally->self);
        free(tally);
}

const struct counters *tally_counters(const struct tally *tally) {
        return &tally->counters;
}

uint64_t tally_changes(const struct tally *tally) {
        return tally->changes;
}

static void add(struct tally *tally, size_t counter, uint64_t n) {
        tally->counters.values[counter] += n;
        tally->changes++;
}

static void observe(struct tally *tally, enum histogram histogram, uint64_t usec) {
        counters_observe(&tally->counters, histogram, usec);
        tally->changes++;
}

static struct tally_job *job_entry(struct tally *tally, uint64_t id) {
        struct tally_job *entry;

        HASH_FIND(hh, tally->jobs, &id, sizeof(id), entry);
        if (entry)
                return entry;
        entry = xcalloc(1, sizeof(*entry));
        entry->id = id;
        HASH_ADD(hh, tally->jobs, id, sizeof(entry->id), entry);
        return entry;
}

static void forget_job(struct tally *tally, uint64_t id) {
        struct tally_job *entry = job_entry(tally, id);

        HASH_DEL(tally->jobs, entry);
        free(entry);
}

/* ---- the node that counts ---- */

static bool is_up(const Rm__Node *node) {
        return node && node->health == RM__NODE_HEALTH__NODE_HEALTH_UP;
}

static bool counts(const struct tally *tally, const Rm__State *state, const char *preferred) {
        if (preferred && is_up(state_node(state, preferred)))
                return strcmp(preferred, tally->self) == 0;
        for (size_t i = 0; i < state->n_nodes; i++)
                if (is_up(state->nodes[i]))
                        return strcmp(state->nodes[i]->name, tally->self) == 0;
        return false;
}

/* The node of the job's mpirun; NULL: it has none now. */
static const char *head_node(const Rm__Job *job) {
        const Rm__Capsule *head = job ? job_capsule(job, STATE_HEAD) : NULL;

        return head ? head->node : NULL;
}

static uint64_t since(uint64_t begin_usec, uint64_t now_usec) {
        return now_usec > begin_usec ? now_usec - begin_usec : 0;
}

/* ---- since when ---- */

static const Rm__Checkpoint *find_checkpoint(const Rm__Job *job, uint64_t id) {
        for (size_t i = 0; i < job->n_checkpoints; i++)
                if (job->checkpoints[i]->id == id)
                        return job->checkpoints[i];
        return NULL;
}

/* When the newest checkpoint that the job can go on from was captured, or when it began. */
static uint64_t safe_since(const Rm__Job *job) {
        uint64_t usec = job->start_usec;

        for (size_t i = 0; i < job->n_checkpoints; i++)
                if (job->checkpoints[i]->state == RM__CHECKPOINT_STATE__CHECKPOINT_DONE &&
                    job->checkpoints[i]->captured_usec > usec)
                        usec = job->checkpoints[i]->captured_usec;
        return usec;
}

void tally_learn(struct tally *tally, const Rm__State *state) {
        forget_all(tally);
        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Job *job = state->jobs[i];

                if (job->state == RM__JOB_STATE__JOB_PENDING)
                        job_entry(tally, job->id)->waiting_usec =
                                job->pending_since_usec ? job->pending_since_usec : job->submit_usec;
                else if (job->state == RM__JOB_STATE__JOB_RUNNING)
                        job_entry(tally, job->id)->safe_usec = safe_since(job);
        }
}

/* ---- events ---- */

struct happened {
        const Rm__State *state;
        const Rm__Event *event;
        const Rm__Job *job;   /* NULL: it is about none, or it is forgotten */
        const Rm__Move *move; /* likewise */
};

static void job_waits(struct tally *tally, const struct happened *what) {
        job_entry(tally, what->event->job)->waiting_usec = what->event->time_usec;
}

/* The waiting time of a job that has lost a node counts as recovery. */
static void job_placed(struct tally *tally, const struct happened *what) {
        struct tally_job *entry = job_entry(tally, what->event->job);

        if (entry->waiting_usec && !entry->lost_usec && counts(tally, what->state, what->event->node))
                observe(tally, HISTOGRAM_WAITING, since(entry->waiting_usec, what->event->time_usec));
        entry->waiting_usec = 0;
}

static void job_started(struct tally *tally, const struct happened *what) {
        struct tally_job *entry = job_entry(tally, what->event->job);

        entry->safe_usec = what->event->time_usec;
        if (entry->lost_usec && counts(tally, what->state, what->event->node)) {
                observe(tally, HISTOGRAM_RECOVERY, since(entry->lost_usec, what->event->time_usec));
                add(tally, COUNTER_RECOVERIES_DONE, 1);
        }
        entry->lost_usec = 0;
}

/* The head may have been on the node that was lost. */
static void job_restarted(struct tally *tally, const struct happened *what) {
        struct tally_job *entry = job_entry(tally, what->event->job);

        if (entry->safe_usec && counts(tally, what->state, head_node(what->job)))
                add(tally, COUNTER_WORK_LOST_USEC, since(entry->safe_usec, what->event->time_usec));
        entry->safe_usec = 0;
        /* A second loss before it runs again is part of the same recovery. */
        if (!entry->lost_usec)
                entry->lost_usec = what->event->time_usec;
}

/* A job that could not be restored has not recovered either. */
static void job_ended_event(struct tally *tally, const struct happened *what) {
        struct tally_job *entry = job_entry(tally, what->event->job);
        bool by_loss = what->job && what->job->state == RM__JOB_STATE__JOB_NODE_FAIL;

        if ((by_loss || (entry->lost_usec && what->job && what->job->state == RM__JOB_STATE__JOB_FAILED)) &&
            counts(tally, what->state, head_node(what->job)))
                add(tally, COUNTER_RECOVERIES_FAILED, 1);
        forget_job(tally, what->event->job);
}

static size_t cause_of(const Rm__Move *move) {
        size_t cause = (size_t) move->cause;

        return cause >= 1 && cause <= COUNTERS_CAUSES ? cause - 1 : 0;
}

static void move_done(struct tally *tally, const struct happened *what) {
        if (!what->move || !counts(tally, what->state, what->move->to))
                return;
        add(tally, COUNTER_MOVES_DONE + cause_of(what->move), 1);
        add(tally, COUNTER_MOVE_BYTES, what->move->image_bytes);
        observe(tally, HISTOGRAM_FREEZE, what->move->freeze_usec);
}

static void move_failed(struct tally *tally, const struct happened *what) {
        if (what->move && counts(tally, what->state, what->move->from))
                add(tally, COUNTER_MOVES_FAILED + cause_of(what->move), 1);
}

static void checkpoint_captured(struct tally *tally, const struct happened *what) {
        const Rm__Checkpoint *checkpoint = what->job ? find_checkpoint(what->job, what->job->last_checkpoint) : NULL;

        if (checkpoint && counts(tally, what->state, head_node(what->job)))
                observe(tally, HISTOGRAM_PAUSE, checkpoint->pause_usec);
}

static void checkpoint_done(struct tally *tally, const struct happened *what) {
        if (what->job)
                job_entry(tally, what->event->job)->safe_usec = safe_since(what->job);
        if (counts(tally, what->state, head_node(what->job)))
                add(tally, COUNTER_CHECKPOINTS_DONE, 1);
}

static void checkpoint_failed(struct tally *tally, const struct happened *what) {
        if (counts(tally, what->state, head_node(what->job)))
                add(tally, COUNTER_CHECKPOINTS_FAILED, 1);
}

void tally_event(struct tally *tally, const Rm__State *state, const Rm__Event *event) {
        static const struct {
                const char *kind;
                void (*count)(struct tally *tally, const struct happened *what);
        } kinds[] = {
                { "job-submitted", job_waits },         { "job-requeued", job_waits },
                { "job-released", job_waits },          { "job-placed", job_placed },
                { "job-started", job_started },         { "job-restarted", job_restarted },
                { "job-ended", job_ended_event },       { "move-done", move_done },
                { "move-failed", move_failed },         { "checkpoint-captured", checkpoint_captured },
                { "checkpoint-done", checkpoint_done }, { "checkpoint-failed", checkpoint_failed },
        };

        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
                if (strcmp(kinds[i].kind, event->kind) == 0) {
                        struct happened what = { state, event, state_job(state, event->job), state_move(state, event->move) };

                        kinds[i].count(tally, &what);
                        return;
                }
}

void tally_policy(struct tally *tally, uint64_t usec, bool failed) {
        add(tally, COUNTER_POLICY_RUNS, 1);
        add(tally, COUNTER_POLICY_USEC, usec);
        add(tally, COUNTER_POLICY_FAILURES, failed);
}
