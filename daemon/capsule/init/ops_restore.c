#include "daemon/capsule/init/ops_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "common/error.h"
#include "common/text.h"
#include "common/util.h"
#include "daemon/capsule/capsule.h"
#include "daemon/capsule/cgroup.h"
#include "daemon/capsule/init/base/mounts.h"
#include "daemon/capsule/init/carry.h"
#include "daemon/capsule/init/criu/criu.h"
#include "daemon/capsule/init/freezer.h"
#include "daemon/capsule/init/init.h"
#include "daemon/capsule/init/memory/fill.h"
#include "daemon/capsule/init/ops.h"
#include "daemon/capsule/init/ptys.h"
#include "daemon/capsule/init/verify/drill.h"
#include "daemon/capsule/init/verify/image_sockets.h"
#include "daemon/capsule/init/verify/rollback.h"
#include "daemon/capsule/init/verify/rollback_closed.h"
#include "daemon/capsule/init/verify/written.h"

static void on_restored(struct core *core, int code, const char *text) {
        struct init *init = init_of(core);
        struct ops *ops = init->ops;
        struct rm_error error = { 0 };
        int r = fill_restored(init->fill, code, &error);

        if (r < 0 && *error.text)
                text = error_text(&error);
        code = r;
        if (code == 0) {
                /* The restored processes are frozen and cut off: the last moment at which they can
                 * be discarded. */
                code = saved_state_verify(init, ops->saved_state, !ops->back, &error);
                text = code < 0 ? error_text(&error) : "";
        }
        ops_close_images(ops, code, text);
        written_forget_events(init->written);
        if (code < 0) {
                (void) cgroup_kill(init->core.node.cgroup_payload, init->core.spec->cgroup_v1);
                (void) freezer_set(init, false, NULL);
                fill_end(init->fill);
                init->core.payload_pid = 0;
                ops_set_phase(init, CAPSULE__PHASE__PHASE_EMPTY);
        } else {
                (void) ptys_hang_up();
                ops_set_phase(init, CAPSULE__PHASE__PHASE_RESTORED);
        }
        ops_done(ops, code, code == 0 && ops->mismatches ? ops->mismatches : text);
}

static int start_uffd_handler(struct ops *ops, struct rm_error *error) {
        struct init *init = ops->init;
        int r = criu_preload_restore(init->criu, 0, error);

        return r < 0 ? r : fill_start(init->fill, ops->images_fd, criu_restore_pid(init->criu), error);
}

/* `names` are the callee's to free. */
static void add_mismatches(struct ops *ops, char *names) {
        if (*names)
                ops->mismatches = text_add_word(ops->mismatches, " ", names);
        free(names);
}

static int roll_back(struct ops *ops, const struct image_sockets *sockets, const Capsule__Restore *restore,
                     struct rm_error *error) {
        cleanup_close int copies_fd = openat(ops->images_fd, CAPSULE_FILES_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int r;

        if (ops->init->core.spec->drill)
                return drill_check(ops->saved_state->inventory, ops->init->core.spec, sockets, copies_fd, error);
        r = rollback_files(ops->saved_state->inventory, ops->init->core.spec, copies_fd, restore, &ops->mismatches, error);
        if (r == 0)
                add_mismatches(ops, rollback_closed(ops->saved_state->inventory, ops->init->core.spec, restore->left_ago_usec));
        return r;
}

/* Sees to the files of a restore. Nothing is changed before all was looked at. */
static int see_to_files(struct ops *ops, const Capsule__Restore *restore, struct rm_error *error) {
        struct image_sockets sockets;
        int r = image_sockets_read(ops->images_fd, &sockets, error);

        if (r == 0 && !ops->init->core.spec->drill)
                r = image_sockets_check(&sockets, ops->init->core.spec, error);
        if (r == 0 && restore->rollback)
                r = roll_back(ops, &sockets, restore, error);
        image_sockets_finish(&sockets);
        return r;
}

int ops_restore(struct ops *ops, const Capsule__Request *request, struct ticket ticket, struct rm_error *error) {
        int r;

        if (!ops->saved_state || !ops->saved_state->inventory)
                return error_set(error, -EPROTO, "no inventory came with the image: the restore cannot be verified");
        r = mounts_protect(ops->init->core.spec, error);
        written_watch(ops->init->written);
        free(take_ptr(ops->mismatches));
        if (r == 0)
                r = ops_open_images(ops, request->restore->images_dir, error);
        if (r == 0)
                r = see_to_files(ops, request->restore, error);
        if (r == 0)
                r = request->restore->pages ? start_uffd_handler(ops, error) : 0;
        if (r == 0)
                r = criu_restore(ops->init->criu, ops->images_fd, ops->saved_state->inventory, request->restore->pages,
                                 request->restore->rollback, request->restore->timeout_usec, on_restored, error);
        if (r < 0) {
                fill_end(ops->init->fill);
                ops_close_images(ops, r, error_text(error));
                return r;
        }
        ops->back = request->restore->rollback;
        ops_set_phase(ops->init, CAPSULE__PHASE__PHASE_RESTORING);
        return ops_start(ops, ticket);
}

int ops_restore_prepare(struct ops *ops, const Capsule__Request *request, struct ticket ticket, struct rm_error *error) {
        struct init *init = ops->init;
        const Capsule__SavedState *saved_state = request->restore_prepare->saved_state;
        int r = link_set_filter(&init->link, true, error);

        if (r == 0)
                r = link_set_up(&init->link, true, error);
        if (r < 0)
                return r;
        ops->free_pid = 20000;
        if (saved_state) {
                r = saved_state_set(init, saved_state, error);
                if (r < 0)
                        return r;
                ops->free_pid = saved_state->free_pid;
                capsule__saved_state__free_unpacked(ops->saved_state, NULL);
                ops->saved_state = saved_state_copy(saved_state);
        }
        ops_report(ops);
        return criu_preload_restore(init->criu, ops->free_pid, error);
}
