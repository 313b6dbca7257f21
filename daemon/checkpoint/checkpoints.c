#include "daemon/checkpoint/checkpoints.h"

#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/checkpoint/checkpoints_internal.h"
#include "daemon/state/commands.h"
#include "daemon/transfer/images.h"

#define RETRY_USEC 300000U
#define TIDY_USEC (2U * UINT64_C(1000000)) /* after a change of the state */

const Rm__State *checkpoints_state(const struct checkpoints *c) {
        return cluster_state(c->rmd->cluster);
}

const char *checkpoints_self(const struct checkpoints *c) {
        return cluster_self(c->rmd->cluster);
}

int checkpoints_send(struct checkpoints *c, const char *node, const Rm__PeerMessage *message) {
        return cluster_send(c->rmd->cluster, node, message);
}

const Rm__Checkpoint *checkpoints_record(const struct checkpoints *c, uint64_t job, uint64_t checkpoint) {
        const Rm__Job *j = state_job(checkpoints_state(c), job);

        return j ? job_checkpoint(j, checkpoint) : NULL;
}

void checkpoints_propose(struct checkpoints *c, const Rm__Command *command) {
        cluster_propose(c->rmd->cluster, command, NULL, NULL);
}

void checkpoints_propose_abort(struct checkpoints *c, uint64_t job, uint64_t checkpoint, const char *error) {
        struct command cmd;

        checkpoints_propose(c, command_checkpoint_abort(&cmd, job, checkpoint, error));
}

static void know_all(struct checkpoints *c, uint64_t until_usec) {
        if (c->since_usec == 0)
                c->since_usec = until_usec;
}

void checkpoints_started(struct checkpoints *c, uint64_t job, uint64_t checkpoint) {
        const Rm__Checkpoint *record = checkpoints_record(c, job, checkpoint);

        if (record && cluster_synced(c->rmd->cluster))
                know_all(c, record->start_usec - 1);
}

static void reconcile(struct checkpoints *c) {
        if (!cluster_synced(c->rmd->cluster)) {
                if (!LIST_EMPTY(&c->saves))
                        checkpoints_retry(c);
                return; /* what we know may be old */
        }
        know_all(c, checkpoints_state(c)->time_usec);
        c->reconciling = true;
        saves_wake(c);
        barrier_wake(c);
        copies_wake(c);
        restores_wake(c);
        drills_wake(c);
        checks_wake(c);
        c->reconciling = false;
        if (!evtimer_pending(c->tidy, NULL))
                timer_arm(c->tidy, TIDY_USEC);
}

static void on_wake(evutil_socket_t fd, short what, void *arg) {
        reconcile(arg);
}

static void on_retry(evutil_socket_t fd, short what, void *arg) {
        struct checkpoints *c = arg;

        c->retry_requested = false;
        reconcile(c);
}

static void on_tidy(evutil_socket_t fd, short what, void *arg) {
        struct checkpoints *c = arg;

        if (!cluster_synced(c->rmd->cluster))
                return;
        stores_tidy(c);
        copies_offer_again(c);
}

/* A call from within reconcile waits: an event that activates itself again and again leaves
 * libevent no time for any other. */
void checkpoints_wake(struct checkpoints *c) {
        if (c->reconciling)
                checkpoints_retry(c);
        else
                event_active(c->wake, EV_TIMEOUT, 0);
}

void checkpoints_retry(struct checkpoints *c) {
        if (c->retry_requested)
                return;
        c->retry_requested = true;
        timer_arm(c->retry, RETRY_USEC);
}

bool checkpoints_on_message(struct checkpoints *c, const char *node, const Rm__PeerMessage *message) {
        switch (message->body_case) {
        case RM__PEER_MESSAGE__BODY_CHECKPOINT_AT:
                barrier_on_at(c, message->checkpoint_at);
                return true;
        case RM__PEER_MESSAGE__BODY_CHECKPOINT_GO:
                saves_on_go(c, message->checkpoint_go);
                return true;
        case RM__PEER_MESSAGE__BODY_COPY_OFFER:
                copies_on_offer(c, node, message->copy_offer);
                return true;
        case RM__PEER_MESSAGE__BODY_COPY_ACCEPT:
                copies_on_accept(c, node, message->copy_accept);
                return true;
        case RM__PEER_MESSAGE__BODY_RESTORE_ASK:
                loads_on_ask(c, node, message->restore_ask);
                return true;
        case RM__PEER_MESSAGE__BODY_RESTORE_SAVED_STATE:
                restores_on_saved_state(c, node, message->restore_saved_state);
                return true;
        default:
                return false;
        }
}

void checkpoints_on_peer(struct checkpoints *c, const char *node, bool connected) {
        if (connected) {
                checkpoints_retry(c);
                return;
        }
        barrier_on_lost(c, node);
        saves_on_lost(c, node);
        copies_on_lost(c, node);
        restores_on_lost(c, node);
}

void checkpoints_keep(const struct checkpoints *c) {
        barrier_keep(c);
        saves_keep(c);
        copies_keep(c);
        restores_keep(c);
}

bool checkpoints_own(const struct checkpoints *c, const struct resident *resident) {
        return drills_own(c, resident);
}

void checkpoints_capsule_ready(struct checkpoints *c, struct resident *resident, int error, const char *text) {
        restores_capsule_ready(c, resident, error, text);
}

int checkpoints_create(struct rmd *rmd, struct checkpoints **ret, struct rm_error *err) {
        struct checkpoints *c = xcalloc(1, sizeof(*c));
        int r;

        c->rmd = rmd;
        c->dir = xasprintf("%s/checkpoints", rmd->config->runtime_dir);
        c->shared = strcmp(rmd->config->checkpoint_store, CONFIG_STORE_PARTNER) != 0;
        c->root = c->shared ? xstrdup(rmd->config->checkpoint_store) : xasprintf("%s/checkpoints", rmd->config->state_dir);
        r = images_mount(c->dir, err);
        if (r == 0) {
                r = mkdir_p(c->root, 0700);
                if (r < 0)
                        (void) error_sys(err, r, "making %s", c->root);
        }
        if (r == 0)
                r = exchanges_init(c, err);
        if (r < 0) {
                free(c->sockets);
                free(c->dir);
                free(c->root);
                free(c);
                return r;
        }
        c->remover = remover_create(rmd->base, MOVER_PROGRAM);
        c->wake = event_new(rmd->base, -1, 0, on_wake, c);
        c->retry = evtimer_new(rmd->base, on_retry, c);
        c->tidy = evtimer_new(rmd->base, on_tidy, c);
        c->tidy_again = evtimer_new(rmd->base, on_tidy, c);
        checks_init(c);
        stores_clean(c);
        imports_clean(c);
        *ret = c;
        return 0;
}

void checkpoints_destroy(struct checkpoints *c) {
        if (!c)
                return;
        saves_finish(c);
        barrier_finish(c);
        copies_finish(c);
        restores_finish(c);
        loads_finish(c);
        exchanges_finish(c);
        checks_finish(c);
        remover_destroy(c->remover);
        images_unmount(c->dir);
        event_free(c->wake);
        event_free(c->retry);
        event_free(c->tidy);
        event_free(c->tidy_again);
        free(c->dir);
        free(c->root);
        free(c);
}
