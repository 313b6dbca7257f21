#include "daemon/capsule/init/ops_internal.h"

#include "common/error.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/capsule/init/carry.h"
#include "daemon/capsule/init/criu/criu.h"
#include "daemon/capsule/init/fencing.h"
#include "daemon/capsule/init/freezer.h"
#include "daemon/capsule/init/init.h"
#include "daemon/capsule/init/memory/fill.h"
#include "daemon/capsule/init/ops.h"
#include "daemon/capsule/init/ranks/park.h"
#include "daemon/capsule/init/verify/blocker_scan.h"
#include "daemon/capsule/init/verify/watch.h"

enum { LINK_DOWN_USEC = 20000 }; /* after the cut, unless the dump comes first */

static void on_dumped(struct core *core, int error, const char *text) {
        struct init *init = init_of(core);

        ops_close_images(init->ops, error, text);
        if (init->core.phase == CAPSULE__PHASE__PHASE_DUMPING) {
                /* CRIU puts the freezer back as it found it; when it failed, better be sure. */
                (void) freezer_set(init, true, NULL);
                ops_set_phase(init, CAPSULE__PHASE__PHASE_FROZEN);
        }
        ops_done(init->ops, error, text);
}

/* Looks at a frozen group once in a freeze, before it is cut off: a group that is not to be moved
 * has then lost nothing but the moment. */
int ops_scan_frozen(struct ops *ops, struct rm_error *error) {
        int r;

        if (ops->scanned)
                return 0;
        freezer_note_calls(ops->init);
        dump_needs_finish(&ops->needs);
        r = blocker_refuse(&ops->init->core, &ops->needs, error);
        ops->scanned = r == 0;
        return r;
}

void ops_take_link_down(struct ops *ops) {
        struct rm_error error = { 0 };

        if (ops->link_deadline == UINT64_MAX)
                return;
        ops->link_deadline = UINT64_MAX;
        if (link_set_up(&ops->init->link, false, &error) < 0)
                log_error("%s", error_text(&error));
}

int ops_cut(struct ops *ops, const Capsule__Request *request, struct ticket ticket, struct rm_error *error) {
        int r = ops->init->core.phase == CAPSULE__PHASE__PHASE_FROZEN ? ops_scan_frozen(ops, error) : 0;

        if (r < 0)
                return r;
        if (ops->init->link.up)
                ops->link_deadline = now_usec() + LINK_DOWN_USEC;
        fencing_leave_cut(ops->init->fencing);
        return link_set_filter(&ops->init->link, true, error);
}

int ops_dump(struct ops *ops, const Capsule__Request *request, struct ticket ticket, struct rm_error *error) {
        const Capsule__Dump *dump = request->dump;
        int r = fill_refuse(ops->init->fill, error);

        if (r < 0)
                return r;
        r = ops_scan_frozen(ops, error);
        if (r == 0)
                r = ops_open_images(ops, dump->images_dir, error);
        if (r == 0)
                r = criu_dump(ops->init->criu, ops->images_fd, &ops->needs, dump->stream, dump->pages, dump->timeout_usec,
                              on_dumped, error);
        if (r < 0) {
                ops_close_images(ops, r, error_text(error));
                return r;
        }
        ops_set_phase(ops->init, CAPSULE__PHASE__PHASE_DUMPING);
        ops_take_link_down(ops); /* while CRIU works */
        return ops_start(ops, ticket);
}

int ops_preload(struct ops *ops, const Capsule__Request *request, struct ticket ticket, struct rm_error *error) {
        int r;

        if (ops->init->core.phase == CAPSULE__PHASE__PHASE_EMPTY)
                return criu_preload_restore(ops->init->criu, ops->free_pid, error);
        /* A dump that would be in vain is refused, most often before anything has to stand still;
         * and the kernel then has at hand what the look in the freeze reads. */
        r = ops_refuse_while_ending(ops, error);
        if (r < 0)
                return r;
        park_rest(ops->init->park);
        r = fill_refuse(ops->init->fill, error);
        if (r == 0)
                r = watch_warn(ops->init->watch, error);
        return r < 0 ? r : criu_preload_dump(ops->init->criu, error);
}

/* A link that CRIU makes in the directory of such a file would have to be there as long as the
 * checkpoint. */
static int refuse_linked(const struct ops *ops, struct rm_error *error) {
        if (!ops->needs.linked)
                return 0;
        error_set(error, -EOPNOTSUPP, "it has %.300s open, which has another name now: cannot be saved", ops->needs.linked);
        error_clean(error);
        return -EOPNOTSUPP;
}

int ops_get_saved_state(struct ops *ops, const Capsule__Request *request, struct ticket ticket, struct rm_error *error) {
        const Capsule__GetSavedState *body = request->get_saved_state;
        cleanup_close int files_fd = -1;
        int r = body->checkpoint ? refuse_linked(ops, error) : 0;

        if (r == 0 && *body->files_dir)
                r = ops_open_directory(ops, body->files_dir, &files_fd, error);
        if (r == 0)
                r = saved_state_send(ops->init, ticket, body->checkpoint, files_fd, body->max_bytes, error);
        return r < 0 ? r : STARTED;
}
