/* Checkpoints that their owner takes away as a file (exports.c), and brings back (imports.c): the bytes go between his program and an rm-mover, which both of them start here. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/checkpoint/checkpoints_internal.h"

#define SILENCE_USEC (300U * UINT64_C(1000000)) /* a disk may take long to have written a large file */
#define TRANSFERS_MAX 16U
#define TRANSFERS_USER_MAX 2U

bool transfers_use(const struct checkpoints *c, uint64_t job) {
        const struct transfer *transfer;

        LIST_FOREACH (transfer, &c->transfers, entry)
                if (transfer->job == job && (!transfer->in || transfer->held))
                        return true;
        return false;
}

void transfer_free(struct transfer *transfer) {
        LIST_REMOVE(transfer, entry);
        mover_stop(transfer->mover, transfer->c->remover, transfer->dir ? transfer->dir : "");
        event_free(transfer->deadline);
        if (transfer->head)
                rm__export_head__free_unpacked(transfer->head, NULL);
        if (transfer->proposal)
                transfer->proposal->transfer = NULL;
        if (transfer->held)
                checkpoints_retry(transfer->c); /* what has come to nothing is tidied up */
        free(transfer->dir);
        free(transfer->user);
        free(transfer);
}

void transfer_end(struct transfer *transfer, int error, const char *text) {
        transfer->ops.on_end(transfer->userdata, error, text);
        transfer_free(transfer);
}

void transfer_fail(struct transfer *transfer, int error, const char *text) {
        log_info("%s of a checkpoint by %s: %s", transfer->in ? "import" : "export", transfer->user, text);
        transfer_end(transfer, error, text);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg) {
        transfer_fail(arg, -ETIMEDOUT, "rm-mover does not answer");
}

static int check_number(const struct checkpoints *c, uint32_t uid, struct rm_error *err) {
        const struct transfer *transfer;
        unsigned n = 0, n_user = 0;

        LIST_FOREACH (transfer, &c->transfers, entry) {
                n++;
                n_user += transfer->uid == uid;
        }
        if (uid != 0 && (n_user >= TRANSFERS_USER_MAX || n >= TRANSFERS_MAX))
                return error_set(err, -EBUSY, "%s checkpoints are being exported or imported on this node; try again later",
                                 n_user >= TRANSFERS_USER_MAX ? "two of your" : "too many");
        return 0;
}

struct transfer *transfer_create(struct checkpoints *c, bool in, const struct checkpoints_user *user,
                                 const struct checkpoints_transfer_ops *ops, void *userdata, struct rm_error *err) {
        struct transfer *transfer;

        if (check_number(c, user->uid, err) < 0)
                return NULL;
        transfer = xcalloc(1, sizeof(*transfer));
        *transfer = (struct transfer) { .c = c, .in = in, .uid = user->uid, .ops = *ops, .userdata = userdata };
        transfer->user = xstrdup(user->name);
        transfer->deadline = evtimer_new(c->rmd->base, on_deadline, transfer);
        timer_arm(transfer->deadline, SILENCE_USEC);
        LIST_INSERT_HEAD(&c->transfers, transfer, entry);
        return transfer;
}

/* ---- rm-mover ---- */

static void failed(struct transfer *transfer, const Rm__MoverFailed *failed) {
        const Rm__Checkpoint *record = checkpoints_record(transfer->c, transfer->job, transfer->checkpoint);

        /* What is here is read again, and copied from a node that has it whole. */
        if (!transfer->in && record && (failed->code == -EBADMSG || failed->code == -ENODATA))
                for (size_t i = 0; i < record->n_parts; i++)
                        checks_want(transfer->c, transfer->job, record->parts[i]->capsule, NULL);
        transfer_fail(transfer, failed->code < 0 ? failed->code : -EIO, failed->text);
}

static void on_event(void *userdata, const Rm__MoverEvent *event) {
        struct transfer *transfer = userdata;

        timer_arm(transfer->deadline, SILENCE_USEC);
        switch (event->body_case) {
        case RM__MOVER_EVENT__BODY_LISTENING:
                transfer->ops.on_open(transfer->userdata, event->listening->name);
                break;
        case RM__MOVER_EVENT__BODY_SENT:
                transfer_end(transfer, 0, "");
                break;
        case RM__MOVER_EVENT__BODY_IMPORTING:
                import_head(transfer, &event->importing->head);
                break;
        case RM__MOVER_EVENT__BODY_IMPORTED:
                import_arrived(transfer);
                break;
        case RM__MOVER_EVENT__BODY_FAILED:
                failed(transfer, event->failed);
                break;
        default:
                break;
        }
}

static void on_gone(void *userdata) {
        struct transfer *transfer = userdata;

        if (!transfer->held)
                transfer_fail(transfer, -EIO, "rm-mover exited unexpectedly");
}

static const struct mover_ops ops = { on_event, on_gone };

int transfer_start(struct transfer *transfer, const char *role, const Rm__MoverCommand *command, struct rm_error *err) {
        int r = mover_start(transfer->c->rmd, role, &ops, transfer, &transfer->mover, err);

        if (r < 0)
                return r;
        r = mover_command(transfer->mover, command);
        return r < 0 ? error_sys(err, r, "sending to rm-mover") : 0;
}

/* ---- life ---- */

void transfers_finish(struct checkpoints *c) {
        while (!LIST_EMPTY(&c->transfers))
                transfer_end(LIST_FIRST(&c->transfers), -ECANCELED, "rmd ends");
}
