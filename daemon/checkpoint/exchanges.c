/* Checkpoints that their owner takes away as a file (exports.c), and brings back (imports.c): the
 * bytes go between his program and an rm-mover, which both of them start here. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/checkpoint/checkpoints_internal.h"

#define SILENCE_USEC (300U * UINT64_C(1000000)) /* a disk may take long to have written a large file */
#define EXCHANGES_MAX 16U
#define EXCHANGES_USER_MAX 2U

bool exchanges_use(const struct checkpoints *c, uint64_t job) {
        const struct exchange *exchange;

        LIST_FOREACH (exchange, &c->exchanges, entry)
                if (exchange->job == job && (!exchange->in || exchange->held))
                        return true;
        return false;
}

void exchange_free(struct exchange *exchange) {
        LIST_REMOVE(exchange, entry);
        mover_stop(exchange->mover, exchange->c->remover, exchange->dir ? exchange->dir : "");
        event_free(exchange->deadline);
        if (exchange->head)
                rm__export_head__free_unpacked(exchange->head, NULL);
        caller_finish(&exchange->caller);
        if (exchange->held)
                checkpoints_retry(exchange->c); /* what has come to nothing is tidied up */
        (void) unlink(exchange->socket);
        free(exchange->socket);
        free(exchange->dir);
        free(exchange->user);
        free((char *) exchange->today.name);
        free((gid_t *) exchange->today.groups);
        free(exchange);
}

void exchange_end(struct exchange *exchange, int error, const char *text) {
        exchange->ops.on_end(exchange->userdata, error, text);
        exchange_free(exchange);
}

void exchange_fail(struct exchange *exchange, int error, const char *text) {
        log_info("%s of a checkpoint by %s: %s", exchange->in ? "import" : "export", exchange->user, text);
        exchange_end(exchange, error, text);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg) {
        exchange_fail(arg, -ETIMEDOUT, "rm-mover does not answer");
}

static int check_number(const struct checkpoints *c, uint32_t uid, struct rm_error *err) {
        const struct exchange *exchange;
        unsigned n = 0, n_user = 0;

        LIST_FOREACH (exchange, &c->exchanges, entry) {
                n++;
                n_user += exchange->uid == uid;
        }
        if (uid != 0 && (n_user >= EXCHANGES_USER_MAX || n >= EXCHANGES_MAX))
                return error_set(err, -EBUSY, "%s checkpoints are being exported or imported on this node; try again later",
                                 n_user >= EXCHANGES_USER_MAX ? "two of your" : "too many");
        return 0;
}

static void copy_today(const struct owner_today *today, struct owner_today *ret) {
        gid_t *groups = xcalloc(today->n_groups + 1, sizeof(*groups));

        for (size_t i = 0; i < today->n_groups; i++)
                groups[i] = today->groups[i];
        *ret = (struct owner_today) { .name = xstrdup(today->name ? today->name : ""),
                                      .groups = groups,
                                      .n_groups = today->n_groups };
}

struct exchange *exchange_create(struct checkpoints *c, bool in, const struct checkpoints_user *user,
                                 const struct checkpoints_exchange_ops *ops, void *userdata, struct rm_error *err) {
        struct exchange *exchange;

        if (check_number(c, user->uid, err) < 0)
                return NULL;
        exchange = xcalloc(1, sizeof(*exchange));
        *exchange = (struct exchange) { .c = c, .in = in, .uid = user->uid, .ops = *ops, .userdata = userdata };
        exchange->user = xstrdup(user->name);
        exchange->admin = user->admin;
        copy_today(&user->today, &exchange->today);
        exchange->socket = xasprintf("%s/%" PRIu64, c->sockets, ++c->last_socket);
        exchange->deadline = evtimer_new(c->rmd->base, on_deadline, exchange);
        timer_arm(exchange->deadline, SILENCE_USEC);
        caller_init(&exchange->caller, &c->exchanges_calls, exchange);
        LIST_INSERT_HEAD(&c->exchanges, exchange, entry);
        return exchange;
}

/* ---- rm-mover ---- */

static void failed(struct exchange *exchange, const Rm__MoverFailed *failed) {
        const Rm__Checkpoint *record = checkpoints_record(exchange->c, exchange->job, exchange->checkpoint);

        /* The stores here are read again, and copied from a node that has them whole. */
        if (!exchange->in && record && (failed->code == -EBADMSG || failed->code == -ENODATA))
                for (size_t i = 0; i < record->n_parts; i++)
                        checks_want(exchange->c, exchange->job, record->parts[i]->capsule, NULL);
        exchange_fail(exchange, failed->code < 0 ? failed->code : -EIO, failed->text);
}

static void on_event(void *userdata, const Rm__MoverEvent *event) {
        struct exchange *exchange = userdata;

        timer_arm(exchange->deadline, SILENCE_USEC);
        switch (event->body_case) {
        case RM__MOVER_EVENT__BODY_LISTENING:
                exchange->ops.on_open(exchange->userdata, exchange->socket);
                break;
        case RM__MOVER_EVENT__BODY_SENT:
                exchange_end(exchange, 0, "");
                break;
        case RM__MOVER_EVENT__BODY_IMPORTING:
                import_head(exchange, &event->importing->head);
                break;
        case RM__MOVER_EVENT__BODY_IMPORTED:
                import_arrived(exchange);
                break;
        case RM__MOVER_EVENT__BODY_FAILED:
                failed(exchange, event->failed);
                break;
        default:
                break;
        }
}

static void on_gone(void *userdata) {
        struct exchange *exchange = userdata;

        if (!exchange->held)
                exchange_fail(exchange, -EIO, "rm-mover exited unexpectedly");
}

static const struct mover_ops ops = { on_event, on_gone };

int exchange_start(struct exchange *exchange, Rm__MoverStore *store, ProtobufCBinaryData head, const char *key_file,
                   struct rm_error *err) {
        Rm__MoverExchange body = RM__MOVER_EXCHANGE__INIT;
        Rm__MoverCommand command = MOVER_COMMAND(&body);

        body.store = store;
        body.head = head;
        body.client_uid = exchange->uid;
        body.socket = exchange->socket;
        body.bytes_per_sec = exchange->c->rmd->config->checkpoint_rate_bytes_per_sec;
        body.key_file = (char *) key_file;
        if (exchange->in)
                command.body_case = RM__MOVER_COMMAND__BODY_IMPORT_CHECKPOINT;
        return mover_start(exchange->c->rmd, exchange->in ? "import" : "export", &command, &ops, exchange, &exchange->mover, err);
}

/* ---- create and destroy ---- */

/* Users reach a socket of theirs in it, and see no others. */
int exchanges_init(struct checkpoints *c, struct rm_error *err) {
        int r;

        c->sockets = xasprintf("%s/exchanges", c->rmd->config->runtime_dir);
        (void) remove_tree(c->sockets); /* of an rmd that was killed */
        r = mkdir_p(c->sockets, 0711);
        if (r == 0 && chmod(c->sockets, 0711) < 0) /* whatever the umask */
                r = -errno;
        return r < 0 ? error_sys(err, r, "making %s", c->sockets) : 0;
}

void exchanges_finish(struct checkpoints *c) {
        while (!LIST_EMPTY(&c->exchanges))
                exchange_end(LIST_FIRST(&c->exchanges), -ECANCELED, "rmd ends");
        (void) rmdir(c->sockets);
        free(c->sockets);
}
