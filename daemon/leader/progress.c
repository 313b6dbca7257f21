#include "daemon/leader/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/util.h"
#include "daemon/leader/smoothing.h"

/* How often it is looked at on how many cores a job is. */
#define SCAN_USEC 1000000u

struct group {
        uint32_t ranks; /* that say how far they are; 0: nothing is known */
        uint64_t done, total;
        double goal_min, goal_max;
        uint64_t said_usec; /* when */
};

struct job {
        uint64_t id;
        uint32_t attempt;
        uint64_t done;       /* as of its groups */
        uint64_t since_usec; /* when that last changed; 0: nothing is known */
        double rate;         /* steps per second; 0: not known */
        uint64_t rate_usec;  /* how long steps were seen of which that is the mean */
        bool reported; /* by the report that is being taken */
        uint64_t scanned_usec;  /* when it was looked at where it is */
        uint64_t settled_usec; /* from then on what is told is of steps on those nodes */
        struct job_places places;
        size_t n_groups;
        struct group *groups;
        UT_hash_handle hh;
};

struct progress {
        struct job *jobs;
};

struct progress *progress_create(void) {
        return xcalloc(1, sizeof(struct progress));
}

static void drop(struct progress *progress, struct job *job) {
        HASH_DEL(progress->jobs, job);
        job_places_finish(&job->places);
        free(job->groups);
        free(job);
}

void progress_destroy(struct progress *progress) {
        struct job *job, *next;

        if (!progress)
                return;
        HASH_ITER (hh, progress->jobs, job, next)
                drop(progress, job);
        free(progress);
}

static struct job *find(const struct progress *progress, uint64_t id) {
        struct job *job;

        HASH_FIND(hh, progress->jobs, &id, sizeof(id), job);
        return job;
}

/* The progress of another attempt is not known yet. */
static void begin_again(struct job *job, uint32_t attempt) {
        memset(job->groups, 0, job->n_groups * sizeof(*job->groups));
        job->attempt = attempt;
        job->done = job->since_usec = job->scanned_usec = 0;
        job->rate = 0;
        job->rate_usec = 0;
}

static struct job *find_or_add(struct progress *progress, const Rm__Job *of) {
        struct job *job = find(progress, of->id);

        if (job && job->n_groups != of->n_capsules) {
                drop(progress, job);
                job = NULL;
        }
        if (job && job->attempt != of->attempt)
                begin_again(job, of->attempt);
        if (!job) {
                job = xcalloc(1, sizeof(*job));
                *job = (struct job) { .id = of->id, .attempt = of->attempt, .n_groups = of->n_capsules };
                job->groups = xcalloc(job->n_groups + 1, sizeof(*job->groups));
                job_places_load(&job->places, of);
                HASH_ADD(hh, progress->jobs, id, sizeof(job->id), job);
        }
        return job;
}

/* The group that is furthest behind; NULL: none has said anything. */
static const struct group *last_group(const struct job *job) {
        const struct group *last = NULL;

        for (size_t i = 0; i < job->n_groups; i++)
                if (job->groups[i].ranks > 0 && (!last || job->groups[i].done < last->done))
                        last = &job->groups[i];
        return last;
}

/* In a move the group is frozen, and is on both nodes. */
static double share_now(const struct state_index *index, const Rm__Job *of) {
        Rm__Move *const *moves;
        const Rm__Node *fullest;
        uint32_t ranks, cores;
        size_t n;

        moves = state_open_moves(index, &n);
        for (size_t i = 0; i < n; i++)
                if (moves[i]->job == of->id)
                        return 0;
        fullest = state_job_fold(index, of, &ranks);
        if (!fullest)
                return 1;
        cores = node_usable_cores(fullest);
        return cores > 0 ? (double) ranks / cores : 0;
}

/* Looks at the job's places once in a while, not at each report of a group, since that is a walk
 * over all of its groups. */
static void scan(struct job *job, const struct state_index *index, const Rm__Job *of, uint64_t now_usec) {
        if (job->scanned_usec > 0 && now_usec < job->scanned_usec + SCAN_USEC)
                return;
        job->scanned_usec = now_usec;
        if (job_places_scan(&job->places, index, of, share_now(index, of)))
                job->settled_usec = now_usec + PROGRESS_SETTLE_USEC;
}

/* Adds to a rate, which was seen for so long, what was seen for `usec` more. */
static void rate_add(double *rate, uint64_t *rate_usec, double seen, uint64_t usec) {
        *rate += smoothing_weight(rate_usec, usec, PROGRESS_MEMORY_USEC) * (seen - *rate);
}

static void measure(struct job *job, double seen, uint64_t usec) {
        struct job_place *m = job_places_here(&job->places);

        if (m && job->since_usec >= job->settled_usec)
                rate_add(&m->rate, &m->usec, seen, usec);
}

/* Steps that are undone (a program that begins again, a checkpoint) say nothing of the rate. */
static void follow(struct job *job) {
        uint64_t done = last_group(job)->done, said_usec = last_group(job)->said_usec;

        if (job->since_usec > 0 && done == job->done)
                return;
        if (job->since_usec > 0 && done > job->done && said_usec > job->since_usec) {
                uint64_t usec = said_usec - job->since_usec;
                double seen = (double) (done - job->done) * 1e6 / (double) usec;

                rate_add(&job->rate, &job->rate_usec, seen, usec);
                measure(job, seen, usec);
        }
        job->done = done;
        job->since_usec = said_usec;
}

static double usable_goal(double goal) {
        return goal >= 0 && isfinite(goal) ? goal : 0;
}

/* The progress that a group had when it was parked holds up no others. */
static bool forget_parked(struct progress *progress, const Rm__Job *of, int32_t group) {
        const Rm__Capsule *capsule = of && group >= 0 ? job_capsule(of, group) : NULL;
        struct job *job;

        if (!capsule || !job_group_parked(of, capsule))
                return false;
        job = find(progress, of->id);
        if (job && (size_t) group < job->n_groups)
                job->groups[group] = (struct group) { 0 };
        return true;
}

static void add_group(struct progress *progress, const Rm__State *state, const Rm__GroupMemory *reported, uint64_t now_usec) {
        const Rm__Job *of = state_job(state, reported->job);
        struct job *job;

        if (forget_parked(progress, of, reported->capsule))
                return;
        if (!of || !reported->progress || of->state != RM__JOB_STATE__JOB_RUNNING || reported->progress->ranks == 0 ||
            reported->capsule < 0 || !job_capsule(of, reported->capsule))
                return;
        job = find_or_add(progress, of);
        job->groups[reported->capsule] = (struct group) {
                .ranks = reported->progress->ranks,
                .done = reported->progress->done,
                .total = reported->progress->total,
                .goal_min = usable_goal(reported->progress->goal_min),
                .goal_max = usable_goal(reported->progress->goal_max),
                .said_usec = now_usec > reported->progress->age_usec ? now_usec - reported->progress->age_usec : now_usec,
        };
        job->reported = true;
}

/* A job is looked at once, however many of its groups are on that node. */
void progress_add(struct progress *progress, const struct state_index *index, const Rm__NodeMemory *report, uint64_t now_usec) {
        const Rm__State *state = state_index_state(index);

        for (size_t i = 0; i < report->n_groups; i++)
                add_group(progress, state, report->groups[i], now_usec);
        for (size_t i = 0; i < report->n_groups; i++) {
                struct job *job = find(progress, report->groups[i]->job);

                if (!job || !job->reported)
                        continue;
                scan(job, index, state_job(state, job->id), now_usec);
                follow(job);
                job->reported = false;
        }
}

void progress_forget(struct progress *progress, const Rm__State *state) {
        struct job *job, *next;

        HASH_ITER (hh, progress->jobs, job, next) {
                const Rm__Job *of = state_job(state, job->id);

                if (!of || job_ended(of))
                        drop(progress, job);
                else if (of->state != RM__JOB_STATE__JOB_RUNNING)
                        begin_again(job, job->attempt);
        }
}

/* The rate of a job that does not go on: at most one step in the time since the last one. */
static double rate_now(const struct job *job, uint64_t now_usec) {
        uint64_t usec = now_usec > job->since_usec ? now_usec - job->since_usec : 0;

        if (job->rate_usec < PROGRESS_FIRST_USEC)
                return 0;
        return usec > PROGRESS_STALL_USEC ? fmin(job->rate, 1e6 / (double) usec) : job->rate;
}

static uint32_t ranks_of(const struct job *job) {
        uint64_t n = 0;

        for (size_t i = 0; i < job->n_groups; i++)
                n += job->groups[i].ranks;
        return n < UINT32_MAX ? (uint32_t) n : UINT32_MAX;
}

static uint64_t left_usec(uint64_t steps, double rate) {
        double usec = rate > 0 ? (double) steps * 1e6 / rate : 0;

        return usec < 1e18 ? (uint64_t) usec : 0;
}

bool progress_get(const struct progress *progress, uint64_t id, uint64_t now_usec, Rm__Progress *ret) {
        const struct job *job = find(progress, id);
        const struct group *last = job ? last_group(job) : NULL;

        if (!last)
                return false;
        ret->job = id;
        ret->ranks = ranks_of(job);
        ret->done = last->done;
        ret->total = last->total;
        ret->rate = rate_now(job, now_usec);
        ret->left_usec = last->total > last->done ? left_usec(last->total - last->done, ret->rate) : 0;
        ret->goal_min = last->goal_min;
        ret->goal_max = last->goal_max;
        return true;
}

/* Where it was measured last on cores of its own, or on shared ones. */
static const struct job_place *last_measured(const struct job_places *places, bool shared) {
        for (size_t i = 0; i < places->n_places; i++)
                if ((places->places[i].share > 1) == shared && job_place_measured(&places->places[i]))
                        return &places->places[i];
        return NULL;
}

bool progress_take_news(const struct progress *progress, uint64_t *ret_job, const struct job_places **ret) {
        for (struct job *job = progress->jobs; job; job = job->hh.next)
                if (job_places_take_news(&job->places)) {
                        *ret_job = job->id;
                        *ret = &job->places;
                        return true;
                }
        return false;
}

size_t progress_places(const struct progress *progress, uint64_t id, const struct job_place *ret[JOB_PLACES_MOST]) {
        const struct job *job = find(progress, id);
        size_t n = 0;

        for (size_t i = 1; job && job->places.here && i < job->places.n_places; i++)
                if (job_place_measured(&job->places.places[i]))
                        ret[n++] = &job->places.places[i];
        return n;
}

void progress_steps(const struct progress *progress, uint64_t id, struct steps *ret) {
        const struct job *job = find(progress, id);
        const struct group *last = job ? last_group(job) : NULL;
        const struct job_place *own, *shared;

        *ret = (struct steps) { 0 };
        if (!last)
                return;
        own = last_measured(&job->places, false);
        shared = last_measured(&job->places, true);
        ret->own_rate = own ? own->rate : 0;
        ret->shared_rate = shared ? shared->rate : 0;
        ret->shared_by = shared ? shared->share : 0;
        if (job->places.here && job_place_measured(&job->places.places[0]))
                ret->here_rate = job->places.places[0].rate;
        if (last->total > 0) /* one that is ending has little left, which is not nothing known */
                ret->left = last->total > last->done ? last->total - last->done : 1;
        ret->goal_min = last->goal_min;
        ret->goal_max = last->goal_max;
}
