#include "daemon/sched/malleable.h"

#include <stdlib.h>

#include "common/groups.h"
#include "common/util.h"

#define NONE SIZE_MAX

struct decision {
        const struct malleable_job *jobs;
        size_t n_jobs;
        uint32_t *requested; /* each job: what it has once all changes are made */
        struct malleable_node *nodes; /* what is left of them */
        size_t n_nodes;
        int32_t **group_node; /* each job: where its groups come to be; NULL: its number is fixed */
        bool *full; /* each job: there is no node for its next group */
        uint32_t *most_now; /* each job: it can grow to, before others of its groups have moved */
        struct malleable_answer *answer;
};

static uint32_t coming(const struct malleable_job *job) {
        return job->requested ? job->requested : job->active;
}

uint32_t malleable_group_size(uint32_t ranks, uint32_t most) {
        uint32_t size = most < ranks ? most : ranks;

        while (ranks % size != 0)
                size--;
        return size;
}

static uint32_t ranks_of(const struct malleable_job *job, uint32_t group) {
        return groups_ranks(job->most, job->step, group);
}

/* Ranks of one group that are to compute. */
struct need {
        size_t job;
        uint32_t group;
        uint32_t has; /* ranks of it that do already, so that it stays where it is */
        uint32_t more;
};

/* The first group that gets more when so many ranks of a job become `to`. */
static struct need need_of(const struct decision *d, size_t j, uint32_t from, uint32_t to) {
        const struct malleable_job *job = &d->jobs[j];
        struct need need = { .job = j, .group = from / job->step, .has = from % job->step };
        uint32_t most = ranks_of(job, need.group) - need.has;

        need.more = to - from < most ? to - from : most;
        return need;
}

static bool may_change(const struct malleable_job *job) {
        return job->may_change && job->requested == 0 && job->most > 0 && job->step > 0;
}

/* By how many ranks it can shrink next, so that its last group is whole or gone. */
static uint32_t shrinks_by(const struct decision *d, size_t j) {
        const struct malleable_job *job = &d->jobs[j];
        uint32_t now = d->requested[j], by;

        if (!may_change(job))
                return 0;
        by = now % job->step ? now % job->step : job->step;
        return now > by && now - by >= job->least ? by : 0;
}

static uint32_t grows_by(const struct decision *d, size_t j) {
        const struct malleable_job *job = &d->jobs[j];
        uint32_t now = d->requested[j], by;

        if (!may_change(job) || d->full[j] || now >= job->most || job->goal == MALLEABLE_AHEAD)
                return 0;
        by = job->step - now % job->step;
        return by < job->most - now ? by : job->most - now;
}

static bool shrinks_before(const struct decision *d, size_t a, size_t b) {
        const struct malleable_job *x = &d->jobs[a], *y = &d->jobs[b];

        if (x->priority != y->priority)
                return x->priority < y->priority;
        if ((x->goal == MALLEABLE_AHEAD) != (y->goal == MALLEABLE_AHEAD))
                return x->goal == MALLEABLE_AHEAD;
        return d->requested[a] >= d->requested[b]; /* and the youngest */
}

static bool grows_before(const struct decision *d, size_t a, size_t b) {
        const struct malleable_job *x = &d->jobs[a], *y = &d->jobs[b];

        if (x->priority != y->priority)
                return x->priority > y->priority;
        if ((x->goal == MALLEABLE_BEHIND) != (y->goal == MALLEABLE_BEHIND))
                return x->goal == MALLEABLE_BEHIND;
        return d->requested[a] < d->requested[b];
}

/* ---- jobs that give cores back ---- */

static void set_requested(struct decision *d, size_t j, uint32_t ranks, int64_t *freed) {
        *freed += d->requested[j];
        *freed -= ranks;
        d->requested[j] = ranks;
}

static bool can_stay(const struct malleable_job *job) {
        return job->may_stay && job->requested > job->active;
}

/* By `need` cores, as far as that goes; of jobs of no higher priority than `priority`. How many
 * that leaves free. */
static int64_t shrink(struct decision *d, int64_t need, int64_t priority) {
        int64_t freed = 0;

        for (size_t j = d->n_jobs; j-- > 0 && freed < need;)
                if (can_stay(&d->jobs[j]) && d->jobs[j].priority <= priority)
                        set_requested(d, j, d->jobs[j].active, &freed);
        while (freed < need) {
                size_t best = NONE;

                for (size_t j = 0; j < d->n_jobs; j++)
                        if (d->jobs[j].priority <= priority && shrinks_by(d, j) > 0 && (best == NONE || shrinks_before(d, j, best)))
                                best = j;
                if (best == NONE)
                        return freed;
                set_requested(d, best, d->requested[best] - shrinks_by(d, best), &freed);
        }
        return freed;
}

/* ---- where groups find cores ---- */

/* The ranks of the job's groups before this one that are on the node. */
static uint64_t ranks_on(const struct decision *d, size_t j, uint32_t group, size_t node) {
        uint64_t ranks = 0;

        for (uint32_t g = 0; g < group; g++)
                if (d->group_node[j][g] == (int32_t) node)
                        ranks += ranks_of(&d->jobs[j], g);
        return ranks;
}

static void add_move(struct malleable_answer *answer, const struct malleable_move *move) {
        answer->moves = xrealloc(answer->moves, (answer->n_moves + 1) * sizeof(*answer->moves));
        answer->moves[answer->n_moves++] = *move;
}

static bool fits(const struct decision *d, const struct need *need, size_t node) {
        const struct malleable_job *job = &d->jobs[need->job];
        const struct malleable_node *to = &d->nodes[node];

        if (to->free_cores < (int64_t) need->more)
                return false;
        if (job->node_limit && ranks_on(d, need->job, need->group, node) + need->has + need->more > job->node_limit[node])
                return false;
        return d->group_node[need->job][need->group] == (int32_t) node || to->free_memory == RM_NO_MEMORY_LIMIT ||
               (to->free_memory >= 0 && job->rank_memory_bytes <= (uint64_t) to->free_memory / ranks_of(job, need->group));
}

static bool stays(const struct decision *d, const struct need *need) {
        int32_t node = d->group_node[need->job][need->group];

        return node >= 0 && (size_t) node < d->n_nodes && fits(d, need, (size_t) node);
}

/* The group stays where it is parked, or goes where most cores are free. */
static int32_t find_node(const struct decision *d, const struct need *need) {
        int32_t best = RM_NO_NODE;

        if (stays(d, need))
                return d->group_node[need->job][need->group];
        for (size_t n = 0; n < d->n_nodes && (need->has == 0 || d->group_node[need->job][need->group] < 0); n++)
                if ((best < 0 || d->nodes[n].free_cores > d->nodes[best].free_cores) && fits(d, need, n))
                        best = (int32_t) n;
        return best;
}

/* The group must have moved before the job can grow further. */
static void wait_for_move(struct decision *d, size_t j, uint32_t group, int32_t node) {
        const int32_t from = d->group_node[j][group];
        const uint32_t moving = d->jobs[j].first_moving;
        bool moves = from >= 0 && from != node;

        if ((moves || (moving > 0 && group + 1 >= moving)) && d->requested[j] < d->most_now[j])
                d->most_now[j] = d->requested[j];
        if (moves)
                add_move(d->answer, &(struct malleable_move) { j, group, node });
}

/* The group gets cores. False: there are none for it. */
static bool take_cores(struct decision *d, const struct need *need) {
        int32_t *at = &d->group_node[need->job][need->group], node = find_node(d, need);
        const struct malleable_job *job = &d->jobs[need->job];

        if (node < 0)
                return false;
        wait_for_move(d, need->job, need->group, node);
        d->nodes[node].free_cores -= need->more;
        if (node != *at && d->nodes[node].free_memory != RM_NO_MEMORY_LIMIT)
                d->nodes[node].free_memory -= (int64_t) (job->rank_memory_bytes * ranks_of(job, need->group));
        *at = node;
        return true;
}

/* Takes the cores of a job that has been asked to grow, and has not begun to. */
static void take_for_coming(struct decision *d, size_t j) {
        const struct malleable_job *job = &d->jobs[j];
        struct need need;
        bool fit = true;

        for (uint32_t ranks = job->active; ranks < job->requested && fit; ranks += need.more) {
                need = need_of(d, j, ranks, job->requested);
                fit = (d->group_node[j][need.group] < 0 || stays(d, &need)) && take_cores(d, &need);
        }
        if (!fit && can_stay(job))
                d->requested[j] = job->active;
}

/* False: it has no node for another group. */
static bool grow_job(struct decision *d, size_t j, int64_t *spare) {
        struct need need = need_of(d, j, d->requested[j], d->requested[j] + grows_by(d, j));

        if (need.more > *spare || !take_cores(d, &need))
                return false;
        *spare -= need.more;
        d->requested[j] += need.more;
        return true;
}

static void grow(struct decision *d, int64_t spare) {
        for (;;) {
                size_t best = NONE;

                for (size_t j = 0; j < d->n_jobs; j++)
                        if (grows_by(d, j) > 0 && (best == NONE || grows_before(d, j, best)))
                                best = j;
                if (best == NONE)
                        return;
                d->full[best] = !grow_job(d, best, &spare);
        }
}

static void take_all_coming(struct decision *d) {
        for (size_t j = 0; j < d->n_jobs; j++)
                if (d->group_node[j] && d->jobs[j].requested > d->jobs[j].active)
                        take_for_coming(d, j);
}

/* ---- all of it ---- */

/* Cores that a job may use at all, of those that are usable now. */
static uint64_t cores_for(const struct rm_snapshot *snapshot, const struct rm_job *job) {
        uint64_t cores = 0;

        for (uint32_t n = 0; n < snapshot->n_nodes; n++) {
                uint32_t most = snapshot->nodes[n].cores;

                cores += job->node_limit && job->node_limit[n] < most ? job->node_limit[n] : most;
        }
        return cores;
}

struct malleable_waiting malleable_first_waiting(const struct rm_snapshot *snapshot, const struct round_result *result) {
        const struct rm_job *first = NULL;

        for (uint32_t j = 0; j < snapshot->n_jobs; j++) {
                const struct rm_job *job = &snapshot->jobs[j];

                if (!result->jobs[j].waits || (first && job->priority < first->priority) ||
                    (first && job->priority == first->priority && job->age <= first->age))
                        continue;
                if (job->ranks <= cores_for(snapshot, job))
                        first = job;
        }
        return first ? (struct malleable_waiting) { first->ranks, first->priority } : (struct malleable_waiting) { 0 };
}

static int32_t *copy_nodes(const struct malleable_job *job) {
        uint32_t n = job->most > 0 && job->step > 0 ? (job->most - 1) / job->step + 1 : 0;
        int32_t *nodes = n > 0 ? xcalloc(n, sizeof(*nodes)) : NULL;

        for (uint32_t g = 0; g < n; g++)
                nodes[g] = job->group_node ? job->group_node[g] : RM_NO_NODE;
        return nodes;
}

/* Some node has more ranks than cores: groups that share cores are to find others first. */
static bool any_crowded(const struct decision *d) {
        for (size_t n = 0; n < d->n_nodes; n++)
                if (d->nodes[n].free_cores < 0)
                        return true;
        return false;
}

static void decide(struct decision *d, const struct malleable_question *question) {
        const struct malleable_waiting *waiting = &question->waiting;
        int64_t later = (int64_t) question->cores, now = later; /* free cores: when all changes are made, and until then */

        for (size_t j = 0; j < d->n_jobs; j++) {
                const struct malleable_job *job = &d->jobs[j];

                d->requested[j] = coming(job);
                later -= coming(job);
                now -= job->requested > job->active ? job->requested : job->active;
        }
        if (later < 0) {
                (void) shrink(d, -later, INT64_MAX);
        } else if (waiting->ranks > later) {
                if (shrink(d, waiting->ranks - later, waiting->priority) < waiting->ranks - later)
                        for (size_t j = 0; j < d->n_jobs; j++)
                                d->requested[j] = coming(&d->jobs[j]); /* it would not fit all the same */
        } else {
                take_all_coming(d);
                if (waiting->ranks == 0 && now >= 0 && !any_crowded(d))
                        grow(d, now);
        }
}

void malleable_decide(const struct malleable_question *question, struct malleable_answer *ret) {
        size_t n_jobs = question->n_jobs, n_nodes = question->n_nodes;
        cleanup_free struct malleable_node *nodes = xcalloc(n_nodes + 1, sizeof(*nodes));
        cleanup_free int32_t **group_node = xcalloc(n_jobs + 1, sizeof(*group_node));
        cleanup_free bool *full = xcalloc(n_jobs + 1, sizeof(*full));
        cleanup_free uint32_t *most_now = xcalloc(n_jobs + 1, sizeof(*most_now));
        uint32_t *requested = xcalloc(n_jobs + 1, sizeof(*requested));
        struct decision d = { question->jobs, n_jobs, requested, nodes, n_nodes, group_node, full, most_now, ret };

        *ret = (struct malleable_answer) { .requested = requested };
        for (size_t n = 0; n < n_nodes; n++)
                nodes[n] = question->nodes[n];
        for (size_t j = 0; j < n_jobs; j++) {
                group_node[j] = copy_nodes(&question->jobs[j]);
                most_now[j] = UINT32_MAX;
        }
        decide(&d, question);
        for (size_t j = 0; j < n_jobs; j++) {
                if (requested[j] > most_now[j])
                        requested[j] = most_now[j];
                if (requested[j] == coming(&question->jobs[j]))
                        requested[j] = 0;
                free(group_node[j]);
        }
}

void malleable_answer_finish(struct malleable_answer *answer) {
        free(answer->requested);
        free(answer->moves);
        *answer = (struct malleable_answer) { 0 };
}
