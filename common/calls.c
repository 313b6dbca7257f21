#include "common/calls.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"

struct call {
        struct calls *calls;
        uint64_t number;
};

void caller_init(struct caller *caller, struct calls *calls, void *owner) {
        *caller = (struct caller) { .calls = calls, .number = ++calls->last_number, .owner = owner };
        LIST_INSERT_HEAD(&calls->callers, caller, entry);
}

void caller_renew(struct caller *caller) {
        caller->number = ++caller->calls->last_number;
}

void caller_finish(struct caller *caller) {
        if (!caller || !caller->calls)
                return;
        LIST_REMOVE(caller, entry);
        caller->calls = NULL;
}

struct call *call_create(const struct caller *caller) {
        struct call *call = xcalloc(1, sizeof(*call));

        *call = (struct call) { caller->calls, caller->number };
        return call;
}

bool call_begun(struct call *call, int result) {
        if (result < 0)
                free(call);
        return result >= 0;
}

void *call_done(struct call *call, int error) {
        struct caller *caller = NULL;

        if (error != -ECANCELED)
                LIST_FOREACH (caller, &call->calls->callers, entry)
                        if (caller->number == call->number)
                                break;
        free(call);
        return caller ? caller->owner : NULL;
}
