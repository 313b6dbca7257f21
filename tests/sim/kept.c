#include "tests/sim/kept.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "tests/sim/disk.h"
#include "tests/sim/fakestore.h"

#define HOSTS_MAX 16U
#define PARTS_MAX (SAVED_GROUPS + 1U)

struct part {
        int32_t index;
        uint64_t stored; /* the bit of each host that has it */
        unsigned home; /* the host that captured it */
};

/* A checkpoint, as the log has it. */
struct record {
        uint64_t id;
        Rm__CheckpointState state;
        uint64_t seen_usec; /* of the timeline: when it was in the log first */
        uint64_t output_end;
        size_t n_parts;
        struct part parts[PARTS_MAX];
};

struct job {
        uint64_t id, restored_from;
        uint32_t attempt;
        Rm__JobState state;
        size_t n_records;
        struct record *records;
};

/* A time that a capsule stood still, cut off. */
struct standstill {
        uint64_t cut_usec, open_usec; /* UINT64_MAX: it still does */
};

/* A part that a host has, before something is removed. */
struct had {
        const struct record *record;
        uint64_t job;
        int32_t index;
};

struct kept {
        struct timeline *timeline;
        struct checks *checks;
        struct host *hosts[HOSTS_MAX];
        uint64_t disk_lost_usec[HOSTS_MAX]; /* 0: it never was */
        unsigned n_hosts;
        uint64_t index; /* of the log */
        struct job *jobs;
        size_t n_jobs;
        struct standstill *standstills; /* by number, from 1 */
        uint64_t n_standstills;
        struct had *had;
        size_t n_had;
        struct kept_counts counts;
};

struct kept *kept_create(struct timeline *t, struct checks *checks) {
        struct kept *k = xcalloc(1, sizeof(*k));

        k->timeline = t;
        k->checks = checks;
        return k;
}

static void jobs_free(struct job *jobs, size_t n) {
        for (size_t i = 0; i < n; i++)
                free(jobs[i].records);
        free(jobs);
}

void kept_destroy(struct kept *k) {
        if (!k)
                return;
        jobs_free(k->jobs, k->n_jobs);
        free(k->standstills);
        free(k->had);
        free(k);
}

void kept_add_host(struct kept *k, struct host *host) {
        k->hosts[k->n_hosts++] = host;
        host_set_part(host, HOST_KEPT, k);
}

void kept_count(const struct kept *k, struct kept_counts *ret) {
        *ret = k->counts;
}

/* ---- standstills ---- */

uint64_t kept_cut(struct kept *k) {
        if (k->n_standstills % 256 == 0)
                k->standstills = xrealloc(k->standstills, (k->n_standstills + 257) * sizeof(*k->standstills));
        k->standstills[++k->n_standstills] = (struct standstill) { timeline_now_usec(k->timeline), UINT64_MAX };
        return k->n_standstills;
}

void kept_open(struct kept *k, uint64_t cut) {
        if (cut > 0)
                k->standstills[cut].open_usec = timeline_now_usec(k->timeline);
}

/* ---- the log, as it was until now ---- */

static struct job *find_job(const struct kept *k, uint64_t id) {
        for (size_t i = 0; i < k->n_jobs; i++)
                if (k->jobs[i].id == id)
                        return &k->jobs[i];
        return NULL;
}

static struct record *find_record(const struct job *job, uint64_t id) {
        for (size_t i = 0; job && i < job->n_records; i++)
                if (job->records[i].id == id)
                        return &job->records[i];
        return NULL;
}

/* HOSTS_MAX: none of that name. */
static unsigned host_of(const struct kept *k, const char *name) {
        unsigned i = 0;

        while (i < k->n_hosts && strcmp(host_name(k->hosts[i]), name) != 0)
                i++;
        return i < k->n_hosts ? i : HOSTS_MAX;
}

static void copy_record(const struct kept *k, const struct record *before, const Rm__Checkpoint *checkpoint, struct record *ret) {
        *ret = (struct record) { .id = checkpoint->id, .state = checkpoint->state };
        ret->seen_usec = before ? before->seen_usec : timeline_now_usec(k->timeline);
        ret->output_end = checkpoint->n_output_end > 0 ? checkpoint->output_end[0] : 0;
        for (size_t i = 0; i < checkpoint->n_parts && i < PARTS_MAX; i++) {
                struct part *part = &ret->parts[ret->n_parts++];

                *part = (struct part) { .index = checkpoint->parts[i]->capsule, .home = host_of(k, checkpoint->parts[i]->node) };
                for (size_t s = 0; s < checkpoint->parts[i]->n_stored; s++)
                        part->stored |= UINT64_C(1) << host_of(k, checkpoint->parts[i]->stored[s]);
        }
}

static void take_over(struct kept *k, const Rm__State *state) {
        struct job *jobs = xcalloc(state->n_jobs + 1, sizeof(*jobs));

        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Job *job = state->jobs[i];
                const struct job *before = find_job(k, job->id);

                jobs[i] = (struct job) { job->id, job->restored_from, job->attempt, job->state, job->n_checkpoints, NULL };
                jobs[i].records = xcalloc(job->n_checkpoints + 1, sizeof(*jobs[i].records));
                for (size_t c = 0; c < job->n_checkpoints; c++)
                        copy_record(k, find_record(before, job->checkpoints[c]->id), job->checkpoints[c], &jobs[i].records[c]);
        }
        jobs_free(k->jobs, k->n_jobs);
        k->jobs = jobs;
        k->n_jobs = state->n_jobs;
}

static bool is_done(const struct record *record) {
        return record->state == RM__CHECKPOINT_STATE__CHECKPOINT_DONE;
}

/* ---- what lies on disks ---- */

static int load(const struct kept *k, unsigned host, uint64_t job, int32_t index, uint64_t checkpoint, bool safe,
                struct saved *ret) {
        cleanup_free char *dir = fakestore_dir(job, index);

        return fakestore_load(k->hosts[host], dir, checkpoint, safe, ret);
}

/* Each part of it can be had of these hosts. */
static bool is_whole(const struct kept *k, uint64_t job, const struct record *record, uint64_t hosts) {
        for (size_t i = 0; i < record->n_parts; i++) {
                bool any = false;

                for (unsigned host = 0; host < k->n_hosts && !any; host++)
                        any = record->parts[i].stored & hosts & UINT64_C(1) << host &&
                              load(k, host, job, record->parts[i].index, record->id, false, NULL) == 0;
                if (!any)
                        return false;
        }
        return true;
}

void kept_disk_lost(const struct host *host) {
        struct kept *k = host_part(host, HOST_KEPT);

        k->disk_lost_usec[host_number(host)] = timeline_now_usec(k->timeline);
}

static void add_had(struct kept *k, unsigned host, const struct job *job, const struct record *record) {
        for (size_t i = 0; i < record->n_parts; i++) {
                if (!(record->parts[i].stored >> host & 1) ||
                    load(k, host, job->id, record->parts[i].index, record->id, false, NULL) < 0)
                        continue;
                k->had = xrealloc(k->had, (k->n_had + 1) * sizeof(*k->had));
                k->had[k->n_had++] = (struct had) { record, job->id, record->parts[i].index };
        }
}

void kept_before(const struct host *host) {
        struct kept *k = host_part(host, HOST_KEPT);

        k->n_had = 0;
        for (size_t i = 0; i < k->n_jobs; i++)
                for (size_t c = 0; c < k->jobs[i].n_records; c++)
                        if (is_done(&k->jobs[i].records[c]))
                                add_had(k, host_number(host), &k->jobs[i], &k->jobs[i].records[c]);
}

void kept_after(const struct host *host, const char *what) {
        struct kept *k = host_part(host, HOST_KEPT);

        for (size_t i = 0; i < k->n_had; i++)
                if (load(k, host_number(host), k->had[i].job, k->had[i].index, k->had[i].record->id, false, NULL) < 0)
                        checks_fail(k->checks,
                                    "%s removes %s, and with it its copy of checkpoint %" PRIu64 ".%" PRIu64 ", capsule %" PRId32
                                    ", which it has by the log",
                                    host_name(host), what, k->had[i].job, k->had[i].record->id, k->had[i].index);
}

/* ---- what must hold ---- */

/* All stood still at one time. The head had written what the log says. */
static void check_captured(struct kept *k, uint64_t job, const Rm__Checkpoint *checkpoint) {
        uint64_t cut_usec = 0, open_usec = UINT64_MAX;
        struct saved saved;

        for (size_t i = 0; i < checkpoint->n_parts; i++) {
                unsigned host = host_of(k, checkpoint->parts[i]->node);
                const struct standstill *standstill;

                if (host == HOSTS_MAX || load(k, host, job, checkpoint->parts[i]->capsule, checkpoint->id, false, &saved) < 0)
                        continue; /* its disk is lost */
                if (saved.cut == 0) {
                        checks_fail(k->checks,
                                    "checkpoint %" PRIu64 ".%" PRIu64 ", capsule %" PRId32 ": it was captured, and never cut off",
                                    job, checkpoint->id, checkpoint->parts[i]->capsule);
                        return;
                }
                standstill = &k->standstills[saved.cut];
                if (standstill->cut_usec > cut_usec)
                        cut_usec = standstill->cut_usec;
                if (standstill->open_usec < open_usec)
                        open_usec = standstill->open_usec;
                if (saved.index == STATE_HEAD && checkpoint->n_output_end > 0 && checkpoint->output_end[0] != saved.written_bytes)
                        checks_fail(k->checks,
                                    "checkpoint %" PRIu64 ".%" PRIu64 " has output until %" PRIu64
                                    " by the log, and its head had written %" PRIu64,
                                    job, checkpoint->id, checkpoint->output_end[0], saved.written_bytes);
        }
        if (cut_usec > open_usec)
                checks_fail(k->checks,
                            "checkpoint %" PRIu64 ".%" PRIu64 " is no consistent cut: a capsule ran again %" PRIu64
                            " us before the last one was cut off",
                            job, checkpoint->id, cut_usec - open_usec);
}

/* Stored by all, just now. */
static void see_captured(struct kept *k, const Rm__Job *job, const struct job *before) {
        for (size_t i = 0; i < job->n_checkpoints; i++) {
                const Rm__Checkpoint *checkpoint = job->checkpoints[i];
                const struct record *record = find_record(before, checkpoint->id);

                if (checkpoint->state < RM__CHECKPOINT_STATE__CHECKPOINT_DONE || (record && record->state == checkpoint->state))
                        continue;
                if (checkpoint->state == RM__CHECKPOINT_STATE__CHECKPOINT_DONE)
                        k->counts.done++;
                check_captured(k, job->id, checkpoint);
        }
}

/* The hosts whose disks give back what they have. */
static uint64_t hosts_good(const struct kept *k, uint64_t since_usec) {
        uint64_t hosts = 0;

        for (unsigned i = 0; i < k->n_hosts; i++)
                if (!disk_was_broken(host_part(k->hosts[i], HOST_DISK), since_usec))
                        hosts |= UINT64_C(1) << i;
        return hosts;
}

static bool has_newer(const Rm__Job *job, uint64_t id) {
        for (size_t i = 0; i < job->n_checkpoints; i++)
                if (job->checkpoints[i]->id > id && job->checkpoints[i]->state == RM__CHECKPOINT_STATE__CHECKPOINT_DONE)
                        return true;
        return false;
}

static bool may_go(const struct kept *k, const Rm__Job *job, const struct record *record, const Rm__Command *command) {
        if (job_ended(job) || has_newer(job, record->id))
                return true;
        switch (command->body_case) {
        case RM__COMMAND__BODY_CHECKPOINT_REMOVE:
                return command->checkpoint_remove->checkpoint == record->id;
        case RM__COMMAND__BODY_JOB_RELEASE:
                return record->id > command->job_release->checkpoint && command->job_release->checkpoint > 0;
        case RM__COMMAND__BODY_CHECKPOINT_COPY_LOST:
        case RM__COMMAND__BODY_JOB_PLACE:
                return !is_whole(k, job->id, record, hosts_good(k, record->seen_usec));
        default:
                return false;
        }
}

/* A checkpoint that was done is in the log no more. */
static void see_gone(struct kept *k, const Rm__Job *job, const struct job *before, const Rm__Command *command) {
        for (size_t i = 0; i < before->n_records; i++) {
                const struct record *record = &before->records[i];

                if (!is_done(record) || job_checkpoint(job, record->id))
                        continue;
                if (!may_go(k, job, record, command))
                        checks_fail(k->checks,
                                    "checkpoint %" PRIu64 ".%" PRIu64
                                    ", which was done, is gone from the log after a command of kind %d",
                                    job->id, record->id, (int) command->body_case);
        }
}

static uint64_t hosts_up(const struct kept *k, const Rm__State *state) {
        uint64_t hosts = 0;

        for (size_t i = 0; i < state->n_nodes; i++)
                if (state->nodes[i]->health == RM__NODE_HEALTH__NODE_HEALTH_UP)
                        hosts |= UINT64_C(1) << host_of(k, state->nodes[i]->name);
        return hosts;
}

/* Checks that the job goes on from the newest checkpoint that nodes have that are up. It does not
 * begin again while any node that is away has one. */
static void see_placed(struct kept *k, const Rm__State *state, const Rm__Job *job, const struct job *before) {
        uint64_t hosts = job->restored_from > 0 ? hosts_up(k, state) : UINT64_MAX;

        k->counts.restored += job->restored_from > 0;
        for (size_t i = 0; before && i < before->n_records; i++) {
                const struct record *record = &before->records[i];

                if (!is_done(record) || record->id <= job->restored_from)
                        continue;
                k->counts.back++;
                if (is_whole(k, job->id, record, hosts & hosts_good(k, record->seen_usec)))
                        checks_fail(k->checks,
                                    "attempt %" PRIu32 " of job %" PRIu64 " goes back to checkpoint %" PRIu64
                                    ", and there are copies of all parts of %" PRIu64,
                                    job->attempt, job->id, job->restored_from, record->id);
        }
}

static bool changes_no_job(const Rm__Command *command) {
        return command->body_case == RM__COMMAND__BODY_CHECKPOINT_ABORT ||
               command->body_case == RM__COMMAND__BODY_CHECKPOINT_START ||
               command->body_case == RM__COMMAND__BODY_CHECKPOINT_CAPTURED ||
               command->body_case == RM__COMMAND__BODY_CHECKPOINT_COPY_LOST ||
               command->body_case == RM__COMMAND__BODY_CHECKPOINT_COPY_REQUESTED ||
               command->body_case == RM__COMMAND__BODY_CHECKPOINT_DRILLED;
}

static void see_job(struct kept *k, const Rm__State *state, const Rm__Job *job, const Rm__Command *command) {
        const struct job *before = find_job(k, job->id);

        if (before && changes_no_job(command) && (before->attempt != job->attempt || before->state != job->state))
                checks_fail(k->checks, "job %" PRIu64 " is in state %d of attempt %" PRIu32 " after a command about a checkpoint",
                            job->id, (int) job->state, job->attempt);
        if (command->body_case == RM__COMMAND__BODY_JOB_PLACE && command->job_place->job == job->id)
                see_placed(k, state, job, before);
        if (before)
                see_gone(k, job, before, command);
        see_captured(k, job, before);
}

/* A node has told that it has the part. */
static void see_stored(struct kept *k, const Rm__CmdCheckpointStored *stored) {
        const struct record *record = find_record(find_job(k, stored->job), stored->checkpoint);
        unsigned host = host_of(k, stored->node);
        int r;

        if (!record || host == HOSTS_MAX || k->disk_lost_usec[host] >= record->seen_usec)
                return;
        r = load(k, host, stored->job, stored->capsule, stored->checkpoint, true, NULL);
        if (r < 0)
                checks_fail(k->checks,
                            "%s has told that it has checkpoint %" PRIu64 ".%" PRIu64 ", capsule %" PRId32
                            ", and not all of it is safe on its disk (%d)",
                            stored->node, stored->job, stored->checkpoint, stored->capsule, r);
}

/* A node has told that it has the part no more. */
static void see_lost(struct kept *k, const Rm__CmdCheckpointCopyLost *lost) {
        unsigned host = host_of(k, lost->node);

        k->counts.lost++;
        if (host < HOSTS_MAX && load(k, host, lost->job, lost->capsule, lost->checkpoint, false, NULL) == 0)
                checks_fail(k->checks,
                            "%s has told that its copy of checkpoint %" PRIu64 ".%" PRIu64 ", capsule %" PRId32
                            " is no good (%s), and it is whole",
                            lost->node, lost->job, lost->checkpoint, lost->capsule, lost->error);
}

void kept_applied(struct kept *k, const Rm__State *state, const Rm__Command *command, const struct state_result *result) {
        if (state->index <= k->index)
                return;
        k->index = state->index;
        if (result->error.code == 0 && !result->repeated) {
                for (size_t i = 0; i < state->n_jobs; i++)
                        see_job(k, state, state->jobs[i], command);
                if (command->body_case == RM__COMMAND__BODY_CHECKPOINT_STORED)
                        see_stored(k, command->checkpoint_stored);
                else if (command->body_case == RM__COMMAND__BODY_CHECKPOINT_COPY_LOST)
                        see_lost(k, command->checkpoint_copy_lost);
                else if (command->body_case == RM__COMMAND__BODY_CHECKPOINT_DRILLED)
                        k->counts.drilled += command->checkpoint_drilled->error[0] == '\0';
        }
        take_over(k, state);
}

void kept_runs(struct kept *k, const struct saved *saved, const char *host) {
        const struct job *job = find_job(k, saved->job);
        const struct record *record = find_record(job, saved->checkpoint);

        if (!job || job->restored_from != saved->checkpoint)
                checks_fail(k->checks,
                            "%s lets capsule %" PRId32 " of job %" PRIu64 " go on from checkpoint %" PRIu64
                            ", and by the log it goes on from %" PRIu64,
                            host, saved->index, saved->job, saved->checkpoint, job ? job->restored_from : 0);
        else if (job->state < RM__JOB_STATE__JOB_RUNNING)
                checks_fail(k->checks, "%s lets capsule %" PRId32 " of job %" PRIu64 " go on before all of the job is restored",
                            host, saved->index, saved->job);
        if (record && saved->index == STATE_HEAD && record->output_end != saved->written_bytes)
                checks_fail(k->checks,
                            "job %" PRIu64 " goes on with its output at %" PRIu64 ", and that of checkpoint %" PRIu64
                            " ends at %" PRIu64,
                            saved->job, saved->written_bytes, saved->checkpoint, record->output_end);
}

/* The first part that is not there, or damaged; NULL: none is. */
static const struct part *missing_part(const struct kept *k, uint64_t job, const struct record *record, unsigned host) {
        for (size_t i = 0; is_done(record) && i < record->n_parts; i++)
                if (record->parts[i].stored >> host & 1 && load(k, host, job, record->parts[i].index, record->id, false, NULL) < 0)
                        return &record->parts[i];
        return NULL;
}

const char *kept_unsettled(const struct kept *k) {
        static char text[128];

        for (size_t i = 0; i < k->n_jobs; i++)
                for (size_t c = 0; c < k->jobs[i].n_records; c++)
                        for (unsigned host = 0; host < k->n_hosts; host++) {
                                const struct record *record = &k->jobs[i].records[c];
                                const struct part *part = missing_part(k, k->jobs[i].id, record, host);

                                if (!part)
                                        continue;
                                (void) snprintf(text, sizeof(text),
                                                "%s has not got checkpoint %" PRIu64 ".%" PRIu64 ", capsule %" PRId32
                                                ", and the log does not know",
                                                host_name(k->hosts[host]), k->jobs[i].id, record->id, part->index);
                                return text;
                        }
        return NULL;
}
