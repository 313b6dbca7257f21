/* Parts of checkpoints that are here, sent to the nodes where their capsules come back. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/checkpoint/checkpoints_internal.h"
#include "daemon/peers/peer_message.h"
#include "daemon/transfer/mover_setup.h"

bool loads_use(const struct checkpoints *c, uint64_t job, int32_t index) {
        const struct load *load;

        LIST_FOREACH (load, &c->loads, entry)
                if (load->job == job && load->index == index)
                        return true;
        return false;
}

static void load_free(struct load *load) {
        LIST_REMOVE(load, entry);
        mover_stop(load->mover, load->c->remover, "");
        free(load->node);
        free(load);
}

static void answer(struct checkpoints *c, const char *node, const Rm__RestoreSavedState *saved_state) {
        (void) checkpoints_send(c, node, &PEER_MESSAGE(saved_state));
}

static void report(const struct load *load, const ProtobufCBinaryData *saved_state, const char *error) {
        Rm__RestoreSavedState body = RM__RESTORE_SAVED_STATE__INIT;

        body.job = load->job;
        body.checkpoint = load->checkpoint;
        body.capsule = load->index;
        body.incarnation = load->incarnation;
        body.error = (char *) error;
        if (saved_state)
                body.saved_state = *saved_state;
        answer(load->c, load->node, &body);
}

static void on_event(void *userdata, const Rm__MoverEvent *event) {
        struct load *load = userdata;

        switch (event->body_case) {
        case RM__MOVER_EVENT__BODY_LOADING:
                report(load, &event->loading->saved_state, "");
                break;
        case RM__MOVER_EVENT__BODY_ACKNOWLEDGED:
                log_info("checkpoint %" PRIu64 ".%" PRIu64 ": capsule %" PRId32 " sent to %s", load->job, load->checkpoint,
                         load->index, load->node);
                load_free(load);
                break;
        case RM__MOVER_EVENT__BODY_FAILED:
                log_warn("checkpoint %" PRIu64 ".%" PRIu64 ": sending capsule %" PRId32 " to %s: %s", load->job, load->checkpoint,
                         load->index, load->node, event->failed->text);
                report(load, NULL, event->failed->text);
                checks_want_unread(load->c, load->job, load->index, event->failed->code);
                load_free(load);
                break;
        default:
                break;
        }
}

static void on_gone(void *userdata) {
        struct load *load = userdata;

        report(load, NULL, "rm-mover exited unexpectedly");
        load_free(load);
}

static const struct mover_ops ops = { on_event, on_gone };

static int start(struct load *load, const Rm__RestoreAsk *ask, const Rm__Node *to, struct rm_error *err) {
        cleanup_free char *dir = stores_dir(load->c, load->job, load->index);
        Rm__MoverLoad body;
        Rm__MoverStore store;
        int r = stores_describe(load->c, load->job, load->index, dir, &store, err);

        if (r < 0)
                return r;
        mover_load_init(&body, &store, to->address, ask->port, &ask->token);
        body.checkpoint = load->checkpoint;
        body.codec = (Rm__MoverCodec) load->c->rmd->config->move_codec;
        return mover_start(load->c->rmd, "load", &MOVER_COMMAND(&body), &ops, load, &load->mover, err);
}

void loads_on_ask(struct checkpoints *c, const char *node, const Rm__RestoreAsk *ask) {
        const Rm__Node *to = state_node(checkpoints_state(c), node);
        struct rm_error err = { 0 };
        struct load *load;

        if (!to || ask->token.len != CHECKPOINT_TOKEN_BYTES)
                return;
        load = xcalloc(1, sizeof(*load));
        *load = (struct load) {
                .c = c, .job = ask->job, .checkpoint = ask->checkpoint, .index = ask->capsule, .incarnation = ask->incarnation
        };
        load->node = xstrdup(node);
        LIST_INSERT_HEAD(&c->loads, load, entry);
        if (!checkpoints_record(c, ask->job, ask->checkpoint))
                (void) error_set(&err, -ENOENT, "%s knows nothing of that checkpoint", checkpoints_self(c));
        else if (start(load, ask, to, &err) == 0)
                return;
        report(load, NULL, error_text(&err));
        load_free(load);
}

void loads_finish(struct checkpoints *c) {
        while (!LIST_EMPTY(&c->loads))
                load_free(LIST_FIRST(&c->loads));
}
