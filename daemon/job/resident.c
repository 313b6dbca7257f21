#include "daemon/job/resident.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/util.h"

struct resident {
        struct runner *runner;
        struct caller caller;
        uint64_t job;
        int32_t index;
        uint64_t incarnation;
        struct capsule *capsule;
        enum resident_origin origin;
        enum resident_phase phase;
        enum resident_holder holder;
        int wait_status;
        uint64_t end_real_usec;
        char *why_lost;
        void **parts; /* by enum resident_part */
        LIST_ENTRY(resident) entry;
};

struct resident *resident_create(struct runner *runner, struct calls *calls, uint64_t job, int32_t index, uint64_t incarnation) {
        struct resident *resident = xcalloc(1, sizeof(*resident));

        *resident = (struct resident) { .runner = runner, .job = job, .index = index, .incarnation = incarnation };
        caller_init(&resident->caller, calls, resident);
        resident->parts = xcalloc(RESIDENT_PARTS, sizeof(*resident->parts));
        return resident;
}

void resident_destroy(struct resident *resident) {
        if (!resident)
                return;
        caller_finish(&resident->caller);
        for (size_t i = 0; i < RESIDENT_PARTS; i++)
                free(resident->parts[i]);
        free(resident->parts);
        free(resident->why_lost);
        free(resident);
}

uint64_t resident_job(const struct resident *resident) {
        return resident->job;
}

int32_t resident_index(const struct resident *resident) {
        return resident->index;
}

uint64_t resident_incarnation(const struct resident *resident) {
        return resident->incarnation;
}

bool resident_is(const struct resident *resident, uint64_t job, int32_t index, uint64_t incarnation) {
        return resident->job == job && resident->index == index && resident->incarnation == incarnation;
}

struct runner *resident_runner(const struct resident *resident) {
        return resident->runner;
}

struct call *resident_call(const struct resident *resident) {
        return call_create(&resident->caller);
}

struct capsule *resident_capsule(const struct resident *resident) {
        return resident->capsule;
}

enum resident_origin resident_origin(const struct resident *resident) {
        return resident->origin;
}

/* ---- its life ---- */

enum resident_phase resident_phase(const struct resident *resident) {
        return resident->phase;
}

bool resident_answers(const struct resident *resident) {
        return resident_phase_answers(resident->phase);
}

bool resident_is_live(const struct resident *resident) {
        return resident_answers(resident) && resident->phase != RESIDENT_EXITED;
}

bool resident_is_lost(const struct resident *resident) {
        return resident_phase_is_lost(resident->phase);
}

enum resident_action resident_event(struct resident *resident, enum resident_event event) {
        enum resident_phase before = resident->phase;
        enum resident_action action = resident_next(before, event, &resident->phase);

        if (action == RESIDENT_REFUSED)
                log_warn("job %" PRIu64 ", capsule %" PRId32 ": '%s' is ignored while it is %s", resident->job, resident->index,
                         resident_event_name(event), resident_phase_name(before));
        return action;
}

enum resident_action resident_made(struct resident *resident, struct capsule *capsule, enum resident_origin origin) {
        enum resident_action action = resident_event(resident, RESIDENT_EV_MADE);

        assert(action != RESIDENT_REFUSED && capsule);
        resident->capsule = capsule;
        resident->origin = origin;
        return action;
}

enum resident_action resident_exited(struct resident *resident, int wait_status, uint64_t end_real_usec) {
        enum resident_action action = resident_event(resident, RESIDENT_EV_EXITED);

        if (action != RESIDENT_REFUSED) {
                resident->wait_status = wait_status;
                resident->end_real_usec = end_real_usec;
        }
        return action;
}

enum resident_action resident_lost(struct resident *resident, enum resident_event event, const char *why, uint64_t end_real_usec) {
        enum resident_action action = resident_event(resident, event);

        if (action == RESIDENT_REFUSED)
                return action;
        assert(resident_is_lost(resident));
        free(resident->why_lost);
        resident->why_lost = xstrdup(why);
        if (end_real_usec)
                resident->end_real_usec = end_real_usec;
        return action;
}

struct capsule *resident_remake(struct resident *resident) {
        return resident_event(resident, RESIDENT_EV_REMAKE) == RESIDENT_REFUSED ? NULL : take_ptr(resident->capsule);
}

int resident_wait_status(const struct resident *resident) {
        return resident->wait_status;
}

uint64_t resident_end_real_usec(const struct resident *resident) {
        return resident->end_real_usec;
}

const char *resident_why_lost(const struct resident *resident) {
        return resident->why_lost;
}

/* ---- who opens a frozen copy ---- */

enum resident_holder resident_holder(const struct resident *resident) {
        return resident->holder;
}

void resident_hold(struct resident *resident, enum resident_holder holder) {
        assert(resident_answers(resident));
        assert(holder == RESIDENT_CAPTURED || resident->holder != RESIDENT_CAPTURED);
        resident->holder = holder;
}

void resident_release(struct resident *resident, enum resident_holder holder) {
        if (resident->holder == holder)
                resident->holder = RESIDENT_FREE;
}

/* ---- what others keep of it ---- */

void *resident_part(const struct resident *resident, enum resident_part part, size_t size_bytes) {
        if (!resident->parts[part])
                resident->parts[part] = xcalloc(1, size_bytes);
        return resident->parts[part];
}

/* ---- those of one runner ---- */

void resident_list_add(struct resident_list *list, struct resident *resident) {
        LIST_INSERT_HEAD(list, resident, entry);
}

void resident_list_remove(struct resident *resident) {
        LIST_REMOVE(resident, entry);
}

struct resident *resident_next_of(const struct resident *resident) {
        return LIST_NEXT(resident, entry);
}
