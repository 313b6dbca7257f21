#include "daemon/capsule/init/carry.h"

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/init/base/pids.h"
#include "daemon/capsule/init/criu/waiting.h"
#include "daemon/capsule/init/ctl.h"
#include "daemon/capsule/init/door.h"
#include "daemon/capsule/init/init.h"
#include "daemon/capsule/init/ranks/park.h"
#include "daemon/capsule/init/ranks/rank_watch.h"
#include "daemon/capsule/init/stdio.h"
#include "daemon/capsule/init/verify/files_sync.h"
#include "daemon/capsule/init/verify/inventory.h"
#include "daemon/capsule/init/verify/rollback.h"
#include "daemon/capsule/init/verify/sysv.h"
#include "daemon/capsule/init/verify/written.h"

enum { SYNC_USEC = 10000000 }; /* the group is frozen meanwhile; a move that cannot be sure of its data is none */

int carry_send(struct init *init, struct ticket ticket, bool checkpoint, int files_fd, uint64_t files_max_bytes,
               struct rm_error *error) {
        Capsule__Carry carry = CAPSULE__CARRY__INIT;
        uint64_t ends[2] = { 0 };
        int r = inventory_take(init->core.node.cgroup_payload, init->core.spec, &carry.inventory, error);

        if (r == 0)
                r = files_sync(carry.inventory, init->core.spec, SYNC_USEC, error);
        if (r == 0 && files_fd >= 0)
                r = rollback_copy(carry.inventory, init->core.spec, files_fd, files_max_bytes, error);
        if (r < 0) {
                capsule__inventory__free_unpacked(carry.inventory, NULL);
                return r;
        }
        written_report(init->written, checkpoint, carry.inventory);
        carry.n_output_end = ARRAY_SIZE(ends);
        carry.output_end = ends;
        stdio_get_carry(init->stdio, &carry);
        carry.payload_pid = (uint32_t) init->core.payload_pid;
        carry.free_pid = pids_find_gap();
        carry.sysv = sysv_read();
        waiting_carry(init->waiting, &carry);
        door_carry(init->door, &carry);
        carry.parking = park_carry(init->park); /* with what was in the door's queue */
        carry.rank_watch = rank_watch_carry(init->rank_watch);
        ctl_reply_carry(init->ctl, ticket, &carry);
        door_carry_finish(&carry);
        waiting_carry_finish(&carry);
        capsule__sysv__free_unpacked(carry.sysv, NULL);
        capsule__parking__free_unpacked(carry.parking, NULL);
        capsule__rank_watch__free_unpacked(carry.rank_watch, NULL);
        capsule__inventory__free_unpacked(carry.inventory, NULL);
        return 0;
}

int carry_set(struct init *init, const Capsule__Carry *carry, struct rm_error *error) {
        int r = stdio_set_carry(init->stdio, carry);

        if (r < 0)
                return error_set(error, r, "the data sent with the capsule is damaged");
        r = sysv_make(carry->sysv, error);
        if (r < 0)
                return r;
        waiting_set_carry(init->waiting, carry);
        door_set_carry(init->door, carry);
        if (carry->inventory)
                written_load(init->written, carry->inventory);
        if (carry->parking)
                park_set_carry(init->park, carry->parking);
        if (carry->rank_watch)
                rank_watch_set_carry(init->rank_watch, carry->rank_watch);
        return 0;
}

Capsule__Carry *carry_copy(const Capsule__Carry *carry) {
        size_t size = capsule__carry__get_packed_size(carry);
        cleanup_free uint8_t *data = xcalloc(1, size + 1);

        (void) capsule__carry__pack(carry, data);
        return capsule__carry__unpack(NULL, size, data);
}

int carry_verify(const struct init *init, const Capsule__Carry *carry, bool moved, struct rm_error *error) {
        Capsule__Inventory *now = NULL;
        int r = inventory_take(init->core.node.cgroup_payload, init->core.spec, &now, error);

        if (r == 0)
                r = inventory_compare(carry->inventory, now, error);
        if (r == 0 && moved)
                r = inventory_compare_written(carry->inventory, now, error);
        if (r == 0)
                r = inventory_reach(now, init->core.spec, error);
        capsule__inventory__free_unpacked(now, NULL);
        return r < 0 ? error_prefix(error, "the restored processes differ from the dumped ones") : 0;
}
