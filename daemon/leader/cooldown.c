#include "daemon/leader/cooldown.h"

#include <string.h>

/* A move that failed is tried again after this, doubled for each failure in a row. */
#define BACKOFF_FIRST_USEC 500000U
#define BACKOFF_MAX_USEC 30000000U
/* The same for a destination, longer than for the capsule: when that is over, it first goes
 * elsewhere, if it can. */
#define DESTINATION_FIRST_USEC 2000000U
/* A single failure may be chance, and going elsewhere may mean to share cores. */
#define DESTINATION_FAILURES 2U
/* A capsule whose move was refused for a reason of its own, and that has not changed since, is
 * tried less and less often. */
#define REFUSED_FIRST_USEC UINT64_C(4000000)
#define REFUSED_MAX_USEC UINT64_C(600000000)
/* A failed restore may be the destination's fault: others are tried first. */
#define REFUSED_THERE_TRIES 3U
/* Long enough for a user who moves capsules by hand to move the next one. */
#define REQUEST_USEC 60000000U

/* When this capsule may be moved again, after moves that failed; 0 = now. */
static uint64_t backoff_until(const Rm__State *state, uint64_t job, int32_t capsule) {
        uint64_t wait = 0;
        uint64_t last = 0;

        for (size_t i = state->n_moves; i > 0; i--) {
                const Rm__Move *move = state->moves[i - 1];

                if (move->job != job || move->capsule != capsule)
                        continue;
                if (move->state != RM__MOVE_STATE__MOVE_ABORTED)
                        break;
                if (!last)
                        last = move->end_usec;
                wait = wait ? wait * 2 : BACKOFF_FIRST_USEC;
                if (wait >= BACKOFF_MAX_USEC)
                        break;
        }
        return last ? last + (wait > BACKOFF_MAX_USEC ? BACKOFF_MAX_USEC : wait) : 0;
}

uint64_t cooldown_refused_until(const Rm__Refusal *refusal) {
        uint32_t times = refusal ? refusal->times : 0;
        uint64_t wait = REFUSED_FIRST_USEC;

        if (times > 0 && refusal->failure == RM__MOVE_FAILURE__MOVE_FAILURE_THERE)
                times = times > REFUSED_THERE_TRIES ? times - REFUSED_THERE_TRIES : 0;
        if (times == 0 || refusal->failure == RM__MOVE_FAILURE__MOVE_FAILURE_PASSING)
                return 0;
        for (uint32_t i = 1; i < times && wait < REFUSED_MAX_USEC; i++)
                wait *= 2;
        return refusal->last_usec + (wait < REFUSED_MAX_USEC ? wait : REFUSED_MAX_USEC);
}

static const Rm__Refusal *refusal_of(const Rm__State *state, uint64_t job_id, int32_t index) {
        const Rm__Job *job = state_job(state, job_id);
        const Rm__Capsule *capsule = job ? job_capsule(job, index) : NULL;

        return capsule ? capsule->refusal : NULL;
}

uint64_t cooldown_destination_until(const Rm__State *state, uint64_t job, const char *node) {
        uint64_t wait = DESTINATION_FIRST_USEC;
        uint64_t last = 0;
        unsigned failures = 0;

        for (size_t i = state->n_moves; i > 0 && wait < COOLDOWN_DESTINATION_MAX_USEC; i--) {
                const Rm__Move *move = state->moves[i - 1];

                if (move->job != job || strcmp(move->to, node) != 0 || move->state == RM__MOVE_STATE__MOVE_RUNNING)
                        continue;
                if (move->state != RM__MOVE_STATE__MOVE_ABORTED)
                        break;
                if (!last)
                        last = move->end_usec;
                if (++failures > DESTINATION_FAILURES)
                        wait *= 2;
        }
        if (failures < DESTINATION_FAILURES)
                return 0;
        return last + (wait > COOLDOWN_DESTINATION_MAX_USEC ? COOLDOWN_DESTINATION_MAX_USEC : wait);
}

static bool moved_by_request(const Rm__State *state, uint64_t job, uint64_t now) {
        for (size_t i = state->n_moves; i > 0; i--) {
                const Rm__Move *move = state->moves[i - 1];

                if (move->job == job && move->cause == RM__MOVE_CAUSE__MOVE_CAUSE_ASKED && now < move->start_usec + REQUEST_USEC)
                        return true;
        }
        return false;
}

/* The last move of the capsule that did not fail. */
static bool moved_by_choice(const Rm__State *state, uint64_t job, int32_t capsule, uint64_t horizon_usec, uint64_t now) {
        for (size_t i = state->n_moves; i > 0; i--) {
                const Rm__Move *move = state->moves[i - 1];

                if (move->job == job && move->capsule == capsule && move->state != RM__MOVE_STATE__MOVE_ABORTED)
                        return move->cause == RM__MOVE_CAUSE__MOVE_CAUSE_CHOICE && now < move->start_usec + horizon_usec;
        }
        return false;
}

enum cooldown cooldown_of(const Rm__State *state, uint64_t job, int32_t capsule, Rm__MoveCause cause, uint64_t horizon_usec,
                          uint64_t now_usec) {
        bool by_choice = cause == RM__MOVE_CAUSE__MOVE_CAUSE_CHOICE;

        if (by_choice && moved_by_request(state, job, now_usec))
                return COOLDOWN_REQUEST;
        if (by_choice && moved_by_choice(state, job, capsule, horizon_usec, now_usec))
                return COOLDOWN_CHOICE;
        if (cooldown_refused_until(refusal_of(state, job, capsule)) > now_usec)
                return COOLDOWN_REFUSED;
        return backoff_until(state, job, capsule) > now_usec ? COOLDOWN_FAILURE : COOLDOWN_NONE;
}

const char *cooldown_text(enum cooldown cooldown) {
        static const char *const texts[] = {
                [COOLDOWN_NONE] = NULL,
                [COOLDOWN_REQUEST] = "the job was moved on request less than a minute ago",
                [COOLDOWN_CHOICE] = "the group was moved by choice within the horizon",
                [COOLDOWN_FAILURE] = "its last move failed a moment ago",
                [COOLDOWN_REFUSED] = "it could not be moved ('rmctl show-job' says why), and has not changed since",
        };

        return texts[cooldown];
}
