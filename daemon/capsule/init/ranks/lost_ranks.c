#include "daemon/capsule/init/ranks/lost_ranks.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/capsule/init/ranks/ranks.h"

/* A rank of the group. */
struct rank {
        pid_t pid;      /* 0: none has said that it is this rank */
        bool gone;      /* that process has ended */
        bool finished;  /* it has ended MPI_Finalize */
        bool lost;      /* it ended without; never undone */
        uint32_t known; /* so many of the list */
};

struct lost_ranks {
        uint32_t first;
        size_t n; /* 0: there is no order */
        struct rank *ranks;
        size_t open; /* of them: neither finished nor lost */
        bool speak;  /* some have a process, or had */
        bool others_speak; /* of the job */
        unsigned sought; /* so often in vain, for those that are not known */
        uint32_t *list; /* of all that the job has lost */
        size_t n_list;
};

struct lost_ranks *lost_ranks_create(void) {
        return xcalloc(1, sizeof(struct lost_ranks));
}

void lost_ranks_destroy(struct lost_ranks *ranks) {
        if (ranks) {
                free(ranks->ranks);
                free(ranks->list);
        }
        free(ranks);
}

/* ---- from rmd ---- */

static bool make_ranks(struct lost_ranks *ranks, const Capsule__RankOrder *order) {
        if (ranks->first == order->first && ranks->n == order->ranks)
                return false;
        free(ranks->ranks);
        free(take_ptr(ranks->list));
        ranks->n_list = 0;
        ranks->first = order->first;
        ranks->n = order->ranks;
        ranks->ranks = xcalloc(ranks->n + 1, sizeof(*ranks->ranks));
        ranks->open = ranks->n;
        ranks->speak = false;
        ranks->sought = 0;
        return true;
}

bool lost_ranks_order(struct lost_ranks *ranks, const Capsule__RankOrder *order) {
        bool news;

        if (order->ranks > RANKS_MAX || order->first > UINT32_MAX - order->ranks || order->n_lost > LOST_RANKS_MAX)
                return false;
        news = make_ranks(ranks, order) || (order->speaks && !ranks->others_speak);
        ranks->others_speak = order->speaks;
        if (order->n_lost <= ranks->n_list)
                return news;
        ranks->list = xrealloc(ranks->list, order->n_lost * sizeof(*ranks->list));
        memcpy(ranks->list + ranks->n_list, order->lost + ranks->n_list, (order->n_lost - ranks->n_list) * sizeof(*ranks->list));
        ranks->n_list = order->n_lost;
        return true;
}

uint32_t lost_ranks_first(const struct lost_ranks *ranks) {
        return ranks->first;
}

size_t lost_ranks_count(const struct lost_ranks *ranks) {
        return ranks->n;
}

bool lost_ranks_speak(const struct lost_ranks *ranks) {
        return ranks->speak;
}

bool lost_ranks_finished(const struct lost_ranks *ranks) {
        return ranks->n > 0 && ranks->open == 0;
}

/* ---- what is said ---- */

static bool lives(const struct rank *rank) {
        return rank->pid > 0 && !rank->gone && !rank->lost;
}

static bool say(const struct lost_ranks *ranks, const struct rank *rank, Program__Loss__Step step, Program__Loss *ret) {
        program__loss__init(ret);
        ret->step = step;
        ret->rank = ranks->first + (uint32_t) (rank - ranks->ranks);
        ret->count = (uint32_t) ranks->n_list;
        return true;
}

/* Says which lost ranks the rank does not know yet, or as many of them as there is room for. */
static bool say_lost(const struct lost_ranks *ranks, const struct rank *rank, Program__Loss *ret) {
        size_t lacks = ranks->n_list - rank->known;

        if (!lives(rank) || rank->finished || lacks == 0)
                return false;
        (void) say(ranks, rank, PROGRAM__LOSS__STEP__LOST, ret);
        ret->from = rank->known;
        ret->lost = ranks->list + rank->known;
        ret->n_lost = lacks < LOST_RANKS_REPORTED_MAX ? lacks : LOST_RANKS_REPORTED_MAX;
        return true;
}

/* The next part, if there is more than one, follows at once. */
static bool receive_known(const struct lost_ranks *ranks, struct rank *rank, const Program__Loss *step, Program__Loss *ret) {
        if (step->count <= rank->known || step->count > ranks->n_list)
                return false;
        rank->known = step->count;
        return say_lost(ranks, rank, ret);
}

static void finish(struct lost_ranks *ranks, struct rank *rank) {
        ranks->open -= !rank->finished;
        rank->finished = true;
}

bool lost_ranks_receive(struct lost_ranks *ranks, pid_t pid, const Program__Loss *step, Program__Loss *ret) {
        bool opens = step->step == PROGRAM__LOSS__STEP__HELLO || step->step == PROGRAM__LOSS__STEP__FINISHED;
        struct rank *rank;

        if (pid <= 1 || step->rank < ranks->first || step->rank - ranks->first >= ranks->n)
                return false;
        rank = &ranks->ranks[step->rank - ranks->first];
        if (rank->pid == 0 && !rank->lost && opens)
                rank->pid = pid;
        ranks->speak |= rank->pid > 0;
        if (rank->pid != pid || !lives(rank))
                return false;
        if (step->step == PROGRAM__LOSS__STEP__KNOWN)
                return receive_known(ranks, rank, step, ret);
        if (step->step == PROGRAM__LOSS__STEP__FINISHED)
                finish(ranks, rank);
        return opens && say(ranks, rank, PROGRAM__LOSS__STEP__RECEIVED, ret);
}

/* ---- what becomes of them ---- */

pid_t lost_ranks_pid(const struct lost_ranks *ranks, size_t at) {
        const struct rank *rank = &ranks->ranks[at];

        return lives(rank) && !rank->finished ? rank->pid : 0;
}

void lost_ranks_gone(struct lost_ranks *ranks, size_t at) {
        ranks->ranks[at].gone = true;
}

static bool is_unjudged(const struct rank *rank) {
        return rank->gone && !rank->finished && !rank->lost;
}

bool lost_ranks_unjudged(const struct lost_ranks *ranks) {
        for (size_t i = 0; i < ranks->n; i++)
                if (is_unjudged(&ranks->ranks[i]))
                        return true;
        return false;
}

static bool is_sought(const struct rank *rank) {
        return rank->pid == 0 && !rank->gone && !rank->lost;
}

bool lost_ranks_seek(const struct lost_ranks *ranks) {
        for (size_t i = 0; i < ranks->n && ranks->others_speak; i++)
                if (is_sought(&ranks->ranks[i]))
                        return true;
        return false;
}

size_t lost_ranks_pids(const struct lost_ranks *ranks, pid_t *ret) {
        size_t n = 0;

        for (size_t i = 0; i < ranks->n; i++)
                if (ranks->ranks[i].pid > 0)
                        ret[n++] = ranks->ranks[i].pid;
        return n;
}

void lost_ranks_sought(struct lost_ranks *ranks, bool found) {
        ranks->sought = found ? 0 : ranks->sought + 1;
        if (ranks->sought < LOST_RANKS_SOUGHT_MAX)
                return;
        for (size_t i = 0; i < ranks->n; i++)
                ranks->ranks[i].gone |= is_sought(&ranks->ranks[i]);
}

bool lost_ranks_judge(struct lost_ranks *ranks) {
        bool news = false;

        for (size_t i = 0; i < ranks->n; i++) {
                bool lost = is_unjudged(&ranks->ranks[i]);

                ranks->ranks[i].lost |= lost;
                ranks->open -= lost;
                news |= lost;
        }
        return news;
}

bool lost_ranks_next(const struct lost_ranks *ranks, size_t *at, Program__Loss *ret) {
        while (*at < ranks->n)
                if (say_lost(ranks, &ranks->ranks[(*at)++], ret))
                        return true;
        return false;
}

void lost_ranks_said(const struct lost_ranks *ranks, Capsule__RanksSaid *ret) {
        capsule__ranks_said__init(ret);
        ret->speaks = lost_ranks_speak(ranks);
        ret->finished = lost_ranks_finished(ranks);
        ret->lost = xcalloc(ranks->n + 1, sizeof(*ret->lost));
        for (size_t i = 0; i < ranks->n; i++)
                if (ranks->ranks[i].lost)
                        ret->lost[ret->n_lost++] = ranks->first + (uint32_t) i;
}

/* ---- to the other end ---- */

static Capsule__RankOrder *copy_order(const struct lost_ranks *ranks) {
        Capsule__RankOrder *order = xcalloc(1, sizeof(*order));

        capsule__rank_order__init(order);
        order->first = ranks->first;
        order->ranks = (uint32_t) ranks->n;
        order->lost = xcalloc(ranks->n_list + 1, sizeof(*order->lost));
        order->n_lost = ranks->n_list;
        if (ranks->n_list > 0)
                memcpy(order->lost, ranks->list, ranks->n_list * sizeof(*order->lost));
        return order;
}

Capsule__RankWatch *lost_ranks_saved_state(const struct lost_ranks *ranks) {
        Capsule__RankWatch *saved_state;

        if (ranks->n == 0)
                return NULL;
        saved_state = xcalloc(1, sizeof(*saved_state));
        capsule__rank_watch__init(saved_state);
        saved_state->order = copy_order(ranks);
        saved_state->ranks = xcalloc(ranks->n, sizeof(*saved_state->ranks)); /* NOLINT(bugprone-sizeof-expression) */
        for (size_t i = 0; i < ranks->n; i++) {
                Capsule__WatchedRank *rank = xcalloc(1, sizeof(*rank));

                capsule__watched_rank__init(rank);
                rank->pid = (uint32_t) ranks->ranks[i].pid;
                rank->finished = ranks->ranks[i].finished;
                rank->lost = ranks->ranks[i].lost;
                rank->known = ranks->ranks[i].known;
                saved_state->ranks[saved_state->n_ranks++] = rank;
        }
        return saved_state;
}

/* Takes the carry. Whether the process of a rank lives here is for the code that watches it to
 * see. */
void lost_ranks_set_saved_state(struct lost_ranks *ranks, const Capsule__RankWatch *saved_state) {
        if (!saved_state->order || saved_state->n_ranks != saved_state->order->ranks)
                return;
        (void) lost_ranks_order(ranks, saved_state->order);
        if (ranks->n != saved_state->n_ranks || ranks->first != saved_state->order->first) /* too many */
                return;
        ranks->open = ranks->n;
        for (size_t i = 0; i < ranks->n; i++) {
                const Capsule__WatchedRank *rank = saved_state->ranks[i];

                ranks->ranks[i] = (struct rank) {
                        .pid = rank->pid > 1 && rank->pid <= INT32_MAX ? (pid_t) rank->pid : 0,
                        .finished = rank->finished,
                        .lost = rank->lost,
                        .known = rank->known <= ranks->n_list ? rank->known : 0,
                };
                ranks->open -= rank->finished || rank->lost;
                ranks->speak |= ranks->ranks[i].pid > 0;
        }
}
