#include "daemon/capsule/init/carry.h"

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/init/base/pids.h"
#include "daemon/capsule/init/criu/waiting.h"
#include "daemon/capsule/init/ctl.h"
#include "daemon/capsule/init/init.h"
#include "daemon/capsule/init/program_socket.h"
#include "daemon/capsule/init/ranks/park.h"
#include "daemon/capsule/init/ranks/rank_watch.h"
#include "daemon/capsule/init/stdio.h"
#include "daemon/capsule/init/verify/files_sync.h"
#include "daemon/capsule/init/verify/inventory.h"
#include "daemon/capsule/init/verify/rollback.h"
#include "daemon/capsule/init/verify/settings.h"
#include "daemon/capsule/init/verify/sysv.h"
#include "daemon/capsule/init/verify/written.h"

enum { SYNC_USEC = 10000000 }; /* the group is frozen meanwhile; a move that cannot be sure of its data is none */

int saved_state_send(struct init *init, struct ticket ticket, bool checkpoint, int files_fd, uint64_t files_max_bytes,
                     struct rm_error *error) {
        Capsule__SavedState saved_state = CAPSULE__SAVED_STATE__INIT;
        uint64_t ends[2] = { 0 };
        int r = inventory_take(init->core.node.cgroup_payload, init->core.spec, &saved_state.inventory, error);

        if (r == 0)
                r = files_sync(saved_state.inventory, init->core.spec, SYNC_USEC, error);
        if (r == 0 && files_fd >= 0)
                r = rollback_copy(saved_state.inventory, init->core.spec, files_fd, files_max_bytes, error);
        if (r < 0) {
                capsule__inventory__free_unpacked(saved_state.inventory, NULL);
                return r;
        }
        if (checkpoint)
                rollback_hash(saved_state.inventory, init->core.spec);
        written_report(init->written, checkpoint, saved_state.inventory);
        saved_state.n_output_end = ARRAY_SIZE(ends);
        saved_state.output_end = ends;
        stdio_get_saved_state(init->stdio, &saved_state);
        saved_state.payload_pid = (uint32_t) init->core.payload_pid;
        saved_state.free_pid = pids_find_gap();
        saved_state.sysv = sysv_read();
        waiting_saved_state(init->waiting, &saved_state);
        program_socket_saved_state(init->program_socket, &saved_state);
        saved_state.parking = park_saved_state(init->park); /* with what was in the program socket's queue */
        saved_state.rank_watch = rank_watch_saved_state(init->rank_watch);
        ctl_reply_saved_state(init->ctl, ticket, &saved_state);
        program_socket_saved_state_finish(&saved_state);
        waiting_saved_state_finish(&saved_state);
        capsule__sysv__free_unpacked(saved_state.sysv, NULL);
        capsule__parking__free_unpacked(saved_state.parking, NULL);
        capsule__rank_watch__free_unpacked(saved_state.rank_watch, NULL);
        capsule__inventory__free_unpacked(saved_state.inventory, NULL);
        return 0;
}

int saved_state_set(struct init *init, const Capsule__SavedState *saved_state, struct rm_error *error) {
        int r = stdio_set_saved_state(init->stdio, saved_state);

        if (r < 0)
                return error_set(error, r, "the data sent with the capsule is damaged");
        r = sysv_make(saved_state->sysv, error);
        if (r < 0)
                return r;
        waiting_set_saved_state(init->waiting, saved_state);
        program_socket_set_saved_state(init->program_socket, saved_state);
        if (saved_state->inventory)
                written_load(init->written, saved_state->inventory);
        if (saved_state->parking)
                park_set_saved_state(init->park, saved_state->parking);
        if (saved_state->rank_watch)
                rank_watch_set_saved_state(init->rank_watch, saved_state->rank_watch);
        return 0;
}

Capsule__SavedState *saved_state_copy(const Capsule__SavedState *saved_state) {
        size_t size = capsule__saved_state__get_packed_size(saved_state);
        cleanup_free uint8_t *data = xcalloc(1, size + 1);

        (void) capsule__saved_state__pack(saved_state, data);
        return capsule__saved_state__unpack(NULL, size, data);
}

int saved_state_verify(const struct init *init, const Capsule__SavedState *saved_state, bool moved, struct rm_error *error) {
        Capsule__Inventory *now = NULL;
        int r = settings_make(saved_state->inventory, error);

        if (r < 0)
                return r;
        r = inventory_take(init->core.node.cgroup_payload, init->core.spec, &now, error);
        if (r == 0)
                r = inventory_compare(saved_state->inventory, now, error);
        if (r == 0 && moved)
                r = inventory_compare_written(saved_state->inventory, now, error);
        if (r == 0)
                r = inventory_reach(now, init->core.spec, error);
        capsule__inventory__free_unpacked(now, NULL);
        return r < 0 ? error_prefix(error, "the restored processes differ from the dumped ones") : 0;
}
