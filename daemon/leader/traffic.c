#include "daemon/leader/traffic.h"

#include <math.h>
#include <stdlib.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/util.h"
#include "daemon/leader/smoothing.h"

/* More than any network carries; keeps sums in range. */
#define MOST_BYTES 1e15

struct way {
        int32_t to;
        double rate;   /* bytes in a second */
        double marked; /* as it was at traffic_mark() */
};

/* The traffic that one group sends. */
struct sender {
        uint64_t seen_usec; /* 0: nothing is known */
        size_t n_ways;
        struct way *ways;
};

struct job_traffic {
        uint64_t job;
        uint32_t n_senders;
        struct sender *senders;
        UT_hash_handle hh;
};

struct traffic {
        struct job_traffic *jobs;
};

struct traffic *traffic_create(void) {
        return xcalloc(1, sizeof(struct traffic));
}

static void forget(struct traffic *traffic, struct job_traffic *job) {
        HASH_DEL(traffic->jobs, job);
        for (uint32_t i = 0; i < job->n_senders; i++)
                free(job->senders[i].ways);
        free(job->senders);
        free(job);
}

void traffic_destroy(struct traffic *traffic) {
        struct job_traffic *job, *next;

        if (!traffic)
                return;
        HASH_ITER (hh, traffic->jobs, job, next)
                forget(traffic, job);
        free(traffic);
}

static struct job_traffic *find(const struct traffic *traffic, uint64_t number) {
        struct job_traffic *job;

        HASH_FIND(hh, traffic->jobs, &number, sizeof(number), job);
        return job;
}

static uint32_t groups_of(const Rm__Job *job) {
        uint32_t n = 0;

        for (size_t i = 0; i < job->n_capsules; i++)
                n += job->capsules[i]->index != STATE_HEAD;
        return n;
}

static struct job_traffic *find_or_add(struct traffic *traffic, const Rm__Job *of) {
        struct job_traffic *job = find(traffic, of->id);

        if (job)
                return job;
        job = xcalloc(1, sizeof(*job));
        job->job = of->id;
        job->n_senders = groups_of(of);
        job->senders = xcalloc(job->n_senders, sizeof(*job->senders));
        HASH_ADD(hh, traffic->jobs, job, sizeof(job->job), job);
        return job;
}

/* `places`: for each group that there is a way to, where it stands, counted from 1. */
static struct way *way_to(struct sender *sender, size_t *places, int32_t to) {
        if (places[to] == 0) {
                sender->ways = xrealloc(sender->ways, sizeof(*sender->ways) * (sender->n_ways + 1));
                sender->ways[sender->n_ways] = (struct way) { .to = to };
                places[to] = ++sender->n_ways;
        }
        return &sender->ways[places[to] - 1];
}

void traffic_add(struct traffic *traffic, const Rm__State *state, const Rm__Traffic *report) {
        const Rm__Job *of = state_job(state, report->job);
        cleanup_free size_t *places = NULL;
        struct job_traffic *job;
        struct sender *sender;
        double weight;

        if (!of || of->state != RM__JOB_STATE__JOB_RUNNING || report->usec == 0)
                return;
        job = find_or_add(traffic, of);
        if (report->capsule < 0 || (uint32_t) report->capsule >= job->n_senders)
                return;
        sender = &job->senders[report->capsule];
        weight = smoothing_weight(&sender->seen_usec, report->usec, TRAFFIC_MEMORY_USEC);
        places = xcalloc(job->n_senders, sizeof(*places));
        for (size_t i = 0; i < sender->n_ways; i++) {
                sender->ways[i].rate *= 1 - weight;
                places[sender->ways[i].to] = i + 1;
        }
        for (size_t i = 0; i < report->n_to; i++) {
                int32_t to = report->to[i]->capsule;
                double rate = fmin((double) report->to[i]->bytes, MOST_BYTES) * 1e6 / (double) report->usec;

                if (to >= 0 && (uint32_t) to < job->n_senders && to != report->capsule)
                        way_to(sender, places, to)->rate += weight * fmin(rate, MOST_BYTES);
        }
}

void traffic_forget_ended(struct traffic *traffic, const Rm__State *state) {
        struct job_traffic *job, *next;

        HASH_ITER (hh, traffic->jobs, job, next) {
                const Rm__Job *of = state_job(state, job->job);

                if (!of || !job_running(of))
                        forget(traffic, job);
        }
}

struct sums {
        double rate, marked;
};

static struct sums sum_up(const struct job_traffic *job) {
        struct sums sums = { 0 };

        for (uint32_t i = 0; i < job->n_senders; i++)
                for (size_t k = 0; k < job->senders[i].n_ways; k++) {
                        sums.rate += job->senders[i].ways[k].rate;
                        sums.marked += job->senders[i].ways[k].marked;
                }
        return sums;
}

/* The part of its traffic that goes other ways than it did: half of the distance of the two
 * distributions. */
static double shift_of(const struct job_traffic *job, struct sums sums) {
        double shift = 0;

        for (uint32_t i = 0; i < job->n_senders; i++)
                for (size_t k = 0; k < job->senders[i].n_ways; k++) {
                        const struct way *way = &job->senders[i].ways[k];

                        shift += fabs(way->rate / sums.rate - way->marked / sums.marked);
                }
        return shift / 2;
}

/* Until all groups were heard of it is not known how they talk. */
static bool all_known(const struct job_traffic *job) {
        for (uint32_t i = 0; i < job->n_senders; i++)
                if (job->senders[i].seen_usec == 0)
                        return false;
        return true;
}

bool traffic_shifted(const struct traffic *traffic, uint64_t job_id, double least) {
        const struct job_traffic *job = find(traffic, job_id);
        struct sums sums;

        if (!job || !all_known(job))
                return false;
        sums = sum_up(job);
        if (sums.rate < least || sums.rate <= 0)
                return false;
        return sums.marked < least || sums.marked <= 0 || shift_of(job, sums) > TRAFFIC_SHIFT;
}

static void mark_job(struct job_traffic *job) {
        for (uint32_t i = 0; i < job->n_senders; i++)
                for (size_t k = 0; k < job->senders[i].n_ways; k++)
                        job->senders[i].ways[k].marked = job->senders[i].ways[k].rate;
}

void traffic_mark(struct traffic *traffic) {
        struct job_traffic *job, *next;

        HASH_ITER (hh, traffic->jobs, job, next)
                if (all_known(job))
                        mark_job(job);
}

void traffic_fill(const struct traffic *traffic, uint64_t job_id, uint64_t usec, struct snapshot *snapshot, uint32_t index) {
        const struct job_traffic *job = find(traffic, job_id);
        const struct rm_job *view = &snapshot_view(snapshot)->jobs[index];
        cleanup_free struct snapshot_edge *edges = NULL;
        size_t n = 0, most = 0;

        if (!job || job->n_senders < view->n_groups || !all_known(job)) /* more: those are parked */
                return;
        for (uint32_t i = 0; i < job->n_senders; i++)
                most += job->senders[i].n_ways;
        edges = xcalloc(most + 1, sizeof(*edges));
        for (uint32_t i = 0; i < view->n_groups; i++)
                for (size_t k = 0; k < job->senders[i].n_ways; k++) {
                        const struct way *way = &job->senders[i].ways[k];
                        double bytes = fmin(way->rate * ((double) usec / 1e6), MOST_BYTES);

                        if (bytes >= 1 && (uint32_t) way->to < view->n_groups)
                                edges[n++] = (struct snapshot_edge) { view->groups[i].first_rank, view->groups[way->to].first_rank,
                                                                      (uint64_t) bytes };
                }
        snapshot_set_traffic(snapshot, index, edges, n);
}
