#include "daemon/capsule/init/verify/watch.h"

#include <string.h>

#include "common/util.h"
#include "daemon/capsule/init/base/pids.h"
#include "daemon/capsule/init/core.h"
#include "daemon/capsule/init/verify/blocker_scan.h"

enum {
        FIRST_USEC = 3000000, /* jobs that are short cost nothing */
        SCAN_USEC = 10000000, /* a look takes 1 to 2 ms for two ranks */
        LONG_USEC = 320000000,
};

struct watch {
        struct core *core;
        uint64_t deadline;
        uint64_t
                pause_usec; /* until the next look: longer each time that there was something new, as each is an entry in the log */
        struct blocker last; /* what the last look found, and when */
        uint64_t last_usec;
        char text[BLOCKER_TEXT_BYTES]; /* what rmd was told */
        uint64_t processes; /* likewise; see pids_fingerprint() */
};

struct watch *watch_create(struct core *core) {
        struct watch *watch = xcalloc(1, sizeof(*watch));

        watch->core = core;
        watch->deadline = UINT64_MAX;
        watch->pause_usec = SCAN_USEC;
        return watch;
}

uint64_t watch_deadline(const struct watch *watch) {
        return watch->core->phase == CAPSULE__PHASE__PHASE_RUNNING ? watch->deadline : UINT64_MAX;
}

void watch_resync(const struct watch *watch) {
        Capsule__Blocker blocker = CAPSULE__BLOCKER__INIT;

        blocker.text = (char *) watch->text;
        blocker.processes = watch->processes;
        watch->core->ops->send(watch->core, &blocker.base);
}

void watch_restart(struct watch *watch) {
        if (watch->deadline == UINT64_MAX)
                watch->deadline = now_usec() + FIRST_USEC;
}

static void report(struct watch *watch, const char *text, uint64_t processes) {
        bool changed = watch->processes != processes;

        watch->processes = processes;
        if (strcmp(watch->text, text) == 0) {
                if (changed)
                        watch_resync(watch);
                watch->pause_usec = watch->pause_usec / 2 > SCAN_USEC ? watch->pause_usec / 2 : SCAN_USEC;
                return;
        }
        strcpy(watch->text, text);
        watch->pause_usec = watch->pause_usec * 2 < LONG_USEC ? watch->pause_usec * 2 : LONG_USEC;
        watch_resync(watch);
}

/* PID 1 tells of a blocker that passes when it has seen it twice in a row, so it looks again
 * soon. */
static bool is_to_be_confirmed(const struct watch *watch, const struct blocker *found, const char *text) {
        return found->kind != BLOCKER_NONE && text[0] == '\0' && watch->last.kind != found->kind;
}

void watch_timeout(struct watch *watch) {
        struct blocker blocker;
        char text[BLOCKER_TEXT_BYTES] = "";
        cleanup_free pid_t *pids = NULL;
        size_t n = pids_of_group(watch->core->node.cgroup_payload, &pids);
        bool again;

        blocker_scan(watch->core, &blocker);
        if (blocker.kind != BLOCKER_NONE && (!blocker_is_transient(blocker.kind) || blocker_is_still(&watch->last, &blocker)))
                blocker_text(&blocker, text);
        again = is_to_be_confirmed(watch, &blocker, text);
        watch->last = blocker;
        watch->last_usec = now_usec();
        if (!again)
                report(watch, text, pids_fingerprint(pids, n));
        watch->deadline = now_usec() + (again ? FIRST_USEC : watch->pause_usec);
}

int watch_warn(const struct watch *watch, struct rm_error *error) {
        return blocker_warn(watch->core, &watch->last, now_usec() - watch->last_usec, error);
}
