#include "daemon/leader/job_places.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

#define SAME_SHARE 0.01
/* A rate that has changed by more than this part is logged again. */
#define SAME_RATE 0.2

static void place_finish(struct job_place *place) {
        free_all(place->nodes, place->n_nodes);
        *place = (struct job_place) { 0 };
}

void job_places_finish(struct job_places *places) {
        for (size_t i = 0; i < places->n_places; i++)
                place_finish(&places->places[i]);
        *places = (struct job_places) { 0 };
}

/* FNV-1a, and a step that spreads it over all bits: sums of these tell sets of nodes apart. */
static uint64_t hash_node(const char *name) {
        uint64_t hash = UINT64_C(0xcbf29ce484222325);

        for (; *name; name++)
                hash = (hash ^ (unsigned char) *name) * UINT64_C(0x100000001b3);
        hash ^= hash >> 32;
        hash *= UINT64_C(0xd6e8feb86659fd93);
        return hash ^ hash >> 32;
}

static bool counts(const Rm__Job *job, const Rm__Capsule *capsule) {
        return capsule->index != STATE_HEAD && !job_group_parked(job, capsule);
}

static uint64_t set_of(const Rm__Job *job) {
        uint64_t set = 0;

        for (size_t i = 0; i < job->n_capsules; i++)
                if (counts(job, job->capsules[i]))
                        set += hash_node(job->capsules[i]->node) * job->capsules[i]->ranks;
        return set;
}

/* As set_of(), of groups that may be elsewhere now. */
static uint64_t set_of_nodes(const Rm__Job *job, char *const *nodes) {
        uint64_t set = 0;

        for (size_t i = 0; i < job->n_capsules; i++) {
                const Rm__Capsule *capsule = job->capsules[i];

                if (capsule->index != STATE_HEAD && (size_t) capsule->index < job->n_capsules && nodes[capsule->index])
                        set += hash_node(nodes[capsule->index]) * capsule->ranks;
        }
        return set;
}

void job_places_load(struct job_places *places, const Rm__Job *job) {
        for (size_t i = 0; i < job->n_rates && places->n_places < JOB_PLACES_MOST; i++) {
                const Rm__JobRate *rate = job->rates[i];
                struct job_place *place = &places->places[places->n_places];

                if (rate->n_nodes != job->n_capsules)
                        continue;
                *place = (struct job_place) { .share = (double) rate->share_milli / 1e3,
                                              .rate = (double) rate->rate_micro / 1e6,
                                              .usec = rate->usec,
                                              .left = rate->left,
                                              .n_nodes = rate->n_nodes };
                place->logged_rate = place->rate;
                place->nodes = xcalloc(place->n_nodes + 1, sizeof(*place->nodes));
                for (size_t k = 0; k < rate->n_nodes; k++)
                        place->nodes[k] = rate->nodes[k][0] ? xstrdup(rate->nodes[k]) : NULL;
                place->set = set_of_nodes(job, place->nodes);
                places->n_places++;
        }
        places->attempt = job->rates_attempt;
        places->next_move = job->rates_next_move;
        places->logged = true;
}

bool job_place_measured(const struct job_place *place) {
        return place->usec >= JOB_PLACE_MEASURED_USEC && place->rate > 0;
}

void job_place_pack(const struct job_place *place, Rm__JobRate *ret) {
        static char none[] = "";

        *ret = (Rm__JobRate) RM__JOB_RATE__INIT;
        ret->nodes = xcalloc(place->n_nodes + 1, sizeof(*ret->nodes));
        ret->n_nodes = place->n_nodes;
        for (size_t i = 0; i < place->n_nodes; i++)
                ret->nodes[i] = place->nodes[i] ? place->nodes[i] : none;
        ret->share_milli = (uint64_t) (place->share * 1e3);
        ret->rate_micro = (uint64_t) fmin(place->rate * 1e6, 1e18);
        ret->usec = place->usec;
        ret->left = place->left;
}

bool job_places_take_news(struct job_places *places) {
        struct job_place *here = job_places_here(places);
        bool news = here && job_place_measured(here) &&
                    (!places->logged || fabs(here->rate - here->logged_rate) > SAME_RATE * here->logged_rate);

        if (!news)
                return false;
        for (size_t i = 0; i < places->n_places; i++)
                places->places[i].logged_rate = places->places[i].rate;
        places->logged = true;
        return true;
}

/* A job that was moved by hand is not moved back, so only other moves count. */
static bool had_to_leave(const struct job_places *places, const Rm__State *state, const Rm__Job *job) {
        if (job->attempt != places->attempt)
                return true;
        for (size_t i = state->n_moves; i > 0 && state->moves[i - 1]->id >= places->next_move; i--) {
                Rm__MoveCause cause = state->moves[i - 1]->cause;

                if (state->moves[i - 1]->job == job->id &&
                    (cause == RM__MOVE_CAUSE__MOVE_CAUSE_NEEDED || cause == RM__MOVE_CAUSE__MOVE_CAUSE_RECOVER))
                        return true;
        }
        return false;
}

static void describe(struct job_place *place, const Rm__Job *job) {
        place->n_nodes = job->n_capsules;
        place->nodes = xcalloc(place->n_nodes + 1, sizeof(*place->nodes));
        for (size_t i = 0; i < job->n_capsules; i++) {
                const Rm__Capsule *capsule = job->capsules[i];

                if (counts(job, capsule) && (size_t) capsule->index < place->n_nodes)
                        place->nodes[capsule->index] = xstrdup(capsule->node);
        }
}

static size_t find(const struct job_places *places, uint64_t set, double share) {
        size_t at = 0;

        while (at < places->n_places && (places->places[at].set != set || fabs(places->places[at].share - share) >= SAME_SHARE))
                at++;
        return at;
}

/* Once the job is back, it has no place any more that it had to leave: another one is a choice, and
 * each noise would be a reason for it. */
static void note_return(struct job_places *places, const struct job_place *to) {
        if (!to->left)
                return;
        for (size_t i = 0; i < places->n_places; i++)
                places->places[i].left = false;
}

/* The place becomes the first. The one where the job was longest ago is forgotten; or rather the
 * last one, if the job was only passing through it, as when its groups leave a node one after the
 * other. */
static void bring_to_front(struct job_places *places, size_t at, uint64_t set, double share) {
        struct job_place place = { .set = set, .share = share };

        if (at < places->n_places) {
                place = places->places[at];
        } else if (places->n_places > 0 && places->places[0].usec < JOB_PLACE_MEASURED_USEC) {
                place_finish(&places->places[0]);
                at = 0;
        } else if (places->n_places < JOB_PLACES_MOST) {
                places->n_places++;
        } else {
                at--;
                place_finish(&places->places[at]);
        }
        memmove(&places->places[1], &places->places[0], at * sizeof(places->places[0]));
        places->places[0] = place;
}

static void arrive(struct job_places *places, const Rm__State *state, const Rm__Job *job, uint64_t set, double share) {
        size_t at = find(places, set, share);

        places->logged = false;
        if (places->n_places > 0 && places->places[0].set != set && had_to_leave(places, state, job))
                places->places[0].left = true;
        bring_to_front(places, at, set, share);
        if (!places->places[0].nodes)
                describe(&places->places[0], job);
        note_return(places, &places->places[0]);
}

bool job_places_scan(struct job_places *places, const struct state_index *index, const Rm__Job *job, double share) {
        const Rm__State *state = state_index_state(index);
        uint64_t set = share > 0 ? set_of(job) : 0;
        bool was_here = places->here;
        bool same = places->n_places > 0 && find(places, set, share) == 0;

        places->here = share > 0;
        if (!places->here)
                return was_here;
        if (!same)
                arrive(places, state, job, set, share);
        places->attempt = job->attempt;
        places->next_move = state->next_move;
        return !same || !was_here;
}

struct job_place *job_places_here(struct job_places *places) {
        return places->here && places->n_places > 0 ? &places->places[0] : NULL;
}
