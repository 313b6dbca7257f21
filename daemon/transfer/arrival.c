#include "daemon/transfer/arrival.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/log.h"
#include "common/text.h"
#include "common/util.h"
#include "daemon/config/config.h"
#include "daemon/transfer/images.h"
#include "daemon/transfer/mover.h"
#include "daemon/transfer/mover_setup.h"
#include "daemon/transfer/trees.h"

struct arrival {
        struct rmd *rmd;
        struct remover *remover;
        const struct arrival_ops *ops;
        void *owner;
        struct caller caller;
        char *dir;
        uint64_t job;
        int32_t index;
        uint64_t incarnation;
        struct mover *mover; /* NULL: none runs */
        uint8_t token[ARRIVAL_TOKEN_BYTES];
        bool carried;  /* the copy has got what travels beside the image */
        bool filtered; /* and its link is prepared */
        bool complete; /* the image is here */
        bool opening;
        bool pages;    /* with private memory apart from CRIU's images */
        uint64_t later_bytes;
};

struct arrival *arrival_create(struct rmd *rmd, struct calls *calls, struct remover *remover, const char *dir,
                               const struct arrival_ops *ops, void *owner) {
        struct arrival *arrival = xcalloc(1, sizeof(*arrival));

        *arrival = (struct arrival) { .rmd = rmd, .remover = remover, .ops = ops, .owner = owner, .dir = xstrdup(dir) };
        caller_init(&arrival->caller, calls, arrival);
        return arrival;
}

void arrival_destroy(struct arrival *arrival) {
        if (!arrival)
                return;
        arrival_end_mover(arrival);
        caller_finish(&arrival->caller);
        free(arrival->dir);
        free(arrival);
}

void arrival_begin(struct arrival *arrival, uint64_t job, int32_t index, uint64_t incarnation) {
        caller_renew(&arrival->caller);
        arrival->job = job;
        arrival->index = index;
        arrival->incarnation = incarnation;
}

static struct resident *ready_copy(const struct arrival *arrival) {
        struct resident *resident = runner_copy(arrival->rmd->runner, arrival->job, arrival->index, arrival->incarnation);

        return resident && resident_answers(resident) ? resident : NULL;
}

static void fail(struct arrival *arrival, int code, bool bad, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
static void fail(struct arrival *arrival, int code, bool bad, const char *fmt, ...) {
        char text[512];
        va_list ap;

        va_start(ap, fmt);
        (void) text_format_va(text, sizeof(text), fmt, ap);
        va_end(ap);
        arrival->ops->on_failed(arrival->owner, code, bad, text);
}

const uint8_t *arrival_token(const struct arrival *arrival) {
        return arrival->token;
}

bool arrival_is_complete(const struct arrival *arrival) {
        return arrival->complete;
}

bool arrival_has_pages(const struct arrival *arrival) {
        return arrival->pages;
}

uint64_t arrival_later_bytes(const struct arrival *arrival) {
        return arrival->later_bytes;
}

void arrival_end_mover(struct arrival *arrival) {
        mover_stop(take_ptr(arrival->mover), arrival->remover, arrival->dir);
}

void arrival_leave_mover(struct arrival *arrival) {
        mover_leave(take_ptr(arrival->mover));
}

/* ---- receiving ---- */

static void maybe_received(struct arrival *arrival) {
        if (arrival->complete && arrival->filtered)
                arrival->ops->on_received(arrival->owner);
}

static void on_filtered(struct capsule *capsule, int error, const char *text, void *arg) {
        struct arrival *arrival = call_done(arg, error);

        if (!arrival)
                return;
        if (error < 0) {
                fail(arrival, 0, false, "preparing the link: %s", text);
                return;
        }
        arrival->filtered = true;
        maybe_received(arrival);
}

void arrival_saved_state(struct arrival *arrival, const void *saved_state, size_t size_bytes) {
        const struct resident *resident = ready_copy(arrival);
        struct call *call;

        if (arrival->carried || !resident)
                return;
        arrival->carried = true;
        call = call_create(&arrival->caller);
        if (!call_begun(call, capsule_restore_prepare(resident_capsule(resident), saved_state, size_bytes, on_filtered, call)))
                fail(arrival, 0, false, "cannot prepare the link");
}

static void on_image(struct arrival *arrival, const Rm__MoverFigures *figures) {
        arrival->complete = true;
        arrival->pages = figures && figures->pages;
        arrival->later_bytes = figures ? figures->later_bytes : 0;
        maybe_received(arrival);
}

static void on_mover_event(void *userdata, const Rm__MoverEvent *event) {
        struct arrival *arrival = userdata;

        switch (event->body_case) {
        case RM__MOVER_EVENT__BODY_LISTENING:
                arrival->ops->on_listening(arrival->owner, (uint16_t) event->listening->port);
                break;
        case RM__MOVER_EVENT__BODY_PROGRESS:
                if (arrival->ops->on_progress)
                        arrival->ops->on_progress(arrival->owner);
                break;
        case RM__MOVER_EVENT__BODY_RECEIVED:
                on_image(arrival, event->received->figures);
                break;
        case RM__MOVER_EVENT__BODY_FAILED:
                fail(arrival, 0, event->failed->by_peer || event->failed->code == -EBADMSG, "receiving from %s: %s",
                     arrival->ops->get_sender(arrival->owner), event->failed->text);
                break;
        default:
                break;
        }
}

static void on_mover_gone(void *userdata) {
        struct arrival *arrival = userdata;

        if (!arrival->complete)
                fail(arrival, 0, false, "rm-mover exited unexpectedly");
}

static const struct mover_ops mover_ops = { on_mover_event, on_mover_gone };

static int make_directories(const struct arrival *arrival, bool files, struct rm_error *err) {
        cleanup_free char *dir = xasprintf("%s/" CAPSULE_FILES_DIR, arrival->dir);
        int r = images_directory(arrival->remover, arrival->dir, err);

        return r < 0 || !files ? r : images_directory(arrival->remover, dir, err);
}

static int start_mover(struct arrival *arrival, const struct resident *resident, const struct arrival_image *image,
                       struct rm_error *err) {
        const struct config *config = arrival->rmd->config;
        struct transfer_trees trees;
        Rm__MoverReceive body;
        int r;

        mover_receive_init(&body, config, arrival->token, sizeof(arrival->token));
        body.images_dir = arrival->dir;
        body.max_bytes = image->max_bytes;
        transfer_trees_init(&trees, config, resident);
        if (image->files)
                transfer_trees_add_files(&trees, arrival->dir);
        body.trees = trees.list;
        body.n_trees = trees.n;
        r = mover_start(arrival->rmd, "receive", &MOVER_COMMAND(&body), &mover_ops, arrival, &arrival->mover, err);
        transfer_trees_finish(&trees);
        return r;
}

int arrival_listen(struct arrival *arrival, const struct arrival_image *image, struct rm_error *err) {
        const struct resident *resident = ready_copy(arrival);
        int r;

        arrival_end_mover(arrival);
        arrival->carried = arrival->filtered = arrival->complete = arrival->pages = false;
        arrival->later_bytes = 0;
        if (!resident)
                return error_set(err, -ECHILD, "its capsule is gone");
        if (image->token)
                memcpy(arrival->token, image->token, sizeof(arrival->token));
        else if (getrandom(arrival->token, sizeof(arrival->token), 0) != (ssize_t) sizeof(arrival->token))
                return error_set(err, -EIO, "cannot get random bytes");
        r = make_directories(arrival, image->files, err);
        return r < 0 ? r : start_mover(arrival, resident, image, err);
}

/* ---- restoring ---- */

static void on_restored(struct capsule *capsule, int error, const char *text, void *arg) {
        struct arrival *arrival = call_done(arg, error);

        if (!arrival)
                return;
        if (error < 0)
                fail(arrival, error, false, "restoring: %s", text);
        else
                arrival->ops->on_restored(arrival->owner, text);
}

void arrival_restore(struct arrival *arrival, const struct capsule_rollback *back) {
        const struct resident *resident = ready_copy(arrival);
        uint64_t timeout_usec = arrival->rmd->config->move_timeout_usec;
        struct call *call = call_create(&arrival->caller);
        int r = -ECHILD;

        if (resident && back)
                r = capsule_restore_back(resident_capsule(resident), arrival->dir, arrival->pages, back, timeout_usec, on_restored,
                                         call);
        else if (resident)
                r = capsule_restore(resident_capsule(resident), arrival->dir, arrival->pages, timeout_usec, on_restored, call);
        if (!call_begun(call, r))
                fail(arrival, 0, false, "cannot start the restore");
}

/* ---- opening ---- */

static void on_opened(struct capsule *capsule, int error, const char *text, void *arg) {
        struct arrival *arrival = call_done(arg, error);

        if (!arrival)
                return;
        arrival->opening = false;
        if (error == -ETIME)
                return; /* there is no lease */
        if (error == 0) {
                arrival->ops->on_opened(arrival->owner);
                return;
        }
        log_error("capsule %s cannot be opened here: %s; trying again", capsule_id(capsule), text);
        arrival->ops->on_not_opened(arrival->owner);
}

void arrival_open(struct arrival *arrival) {
        const struct resident *resident = ready_copy(arrival);
        struct call *call;

        if (arrival->opening)
                return;
        call = call_create(&arrival->caller);
        arrival->opening = call_begun(call, resident ? capsule_open(resident_capsule(resident), on_opened, call) : -ECHILD);
        if (!arrival->opening)
                arrival->ops->on_not_opened(arrival->owner);
}
