#include "daemon/capsule/init/freezer.h"

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/cgroup.h"
#include "daemon/capsule/init/base/pids.h"
#include "daemon/capsule/init/criu/waiting.h"
#include "daemon/capsule/init/init.h"
#include "daemon/capsule/init/ranks/park.h"

int freezer_set(const struct init *init, bool frozen, struct rm_error *error) {
        int r = cgroup_set_frozen(init->core.node.cgroup_payload, init->core.spec->cgroup_v1, frozen || park_holds(init->park));

        return r < 0 ? error_sys(error, r, "cannot %s the payload", frozen ? "freeze" : "thaw") : 0;
}

bool freezer_is_frozen(const struct init *init) {
        return cgroup_is_frozen(init->core.node.cgroup_payload, init->core.spec->cgroup_v1) == 1;
}

void freezer_note_calls(const struct init *init) {
        cleanup_free pid_t *pids = NULL;
        size_t n = pids_of_group(init->core.node.cgroup_payload, &pids);

        waiting_note(init->waiting, pids, n);
}

int freezer_resume(const struct init *init, struct rm_error *error) {
        if (!park_holds(init->park)) /* else it stands still as before */
                waiting_hold(init->waiting);
        return freezer_set(init, false, error);
}

void freezer_let_go(const struct init *init) {
        waiting_let_go(init->waiting);
}
