/* Copies of what was captured on one node, on others: no shared file system is needed, and a lost
 * node has not the only one. Files of a store never change once a checkpoint is made, so what is
 * there already need not be sent again. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/checkpoint/checkpoints_internal.h"
#include "daemon/peers/peer_message.h"
#include "daemon/state/commands.h"
#include "daemon/store/directory.h"
#include "daemon/transfer/mover_setup.h"

#define ANSWER_USEC (20U * UINT64_C(1000000))
#define SILENCE_USEC (60U * UINT64_C(1000000))
#define FILES_MAX 4096U

static struct copy *find(const struct checkpoints *c, uint64_t job, uint64_t checkpoint, int32_t index, const char *node, bool in) {
        struct copy *copy;

        LIST_FOREACH (copy, &c->copies, entry)
                if (copy->job == job && copy->checkpoint == checkpoint && copy->index == index && copy->in == in &&
                    strcmp(copy->node, node) == 0)
                        return copy;
        return NULL;
}

bool copies_use(const struct checkpoints *c, uint64_t job, int32_t index) {
        const struct copy *copy;

        LIST_FOREACH (copy, &c->copies, entry)
                if (copy->job == job && copy->index == index)
                        return true;
        return false;
}

static void copy_free(struct copy *copy) {
        LIST_REMOVE(copy, entry);
        mover_stop(copy->mover, copy->c->remover, "");
        event_free(copy->deadline);
        caller_finish(&copy->caller);
        free_all(copy->files, copy->n_files);
        free(copy->bytes);
        free(copy->node);
        free(copy);
}

/* This end of it: the one that sends tells the log that there will be none. */
static void copy_fail(struct copy *copy, const char *why) {
        struct command cmd;

        log_warn("checkpoint %" PRIu64 ".%" PRIu64 ", capsule %" PRId32 ": copy %s %s: %s", copy->job, copy->checkpoint,
                 copy->index, copy->in ? "from" : "to", copy->node, why);
        if (!copy->in)
                checkpoints_propose(copy->c,
                                    command_checkpoint_uncopied(&cmd, copy->job, copy->checkpoint, copy->index, copy->node, why));
        copy_free(copy);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg) {
        copy_fail(arg, "timed out");
}

static struct copy *create(struct checkpoints *c, uint64_t job, uint64_t checkpoint, int32_t index, const char *node, bool in) {
        struct copy *copy = xcalloc(1, sizeof(*copy));

        *copy = (struct copy) { .c = c, .job = job, .checkpoint = checkpoint, .index = index, .in = in };
        copy->node = xstrdup(node);
        copy->deadline = evtimer_new(c->rmd->base, on_deadline, copy);
        timer_arm(copy->deadline, ANSWER_USEC);
        caller_init(&copy->caller, &c->copies_calls, copy);
        LIST_INSERT_HEAD(&c->copies, copy, entry);
        return copy;
}

/* ---- the end that has it ---- */

static void on_out_event(void *userdata, const Rm__MoverEvent *event) {
        struct copy *copy = userdata;

        switch (event->body_case) {
        case RM__MOVER_EVENT__BODY_PROGRESS:
                timer_arm(copy->deadline, SILENCE_USEC);
                break;
        case RM__MOVER_EVENT__BODY_ACKNOWLEDGED:
                copy->arrived = true; /* the other end tells the log; this one goes when the state shows it */
                break;
        case RM__MOVER_EVENT__BODY_FAILED:
                checks_want_unread(copy->c, copy->job, copy->index, event->failed->code);
                copy_fail(copy, event->failed->text);
                break;
        default:
                break;
        }
}

static void on_out_gone(void *userdata) {
        struct copy *copy = userdata;

        if (!copy->arrived)
                copy_fail(copy, "rm-mover exited unexpectedly");
}

static const struct mover_ops out_ops = { on_out_event, on_out_gone };

/* 0: there is no such file. */
static uint64_t file_bytes(const char *dir, const char *name) {
        cleanup_free char *path = xasprintf("%s/%s", dir, name);
        struct stat st;

        return lstat(path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t) st.st_size : 0;
}

static void offer(struct checkpoints *c, uint64_t job, uint64_t checkpoint, int32_t index, const char *node) {
        cleanup_free char *dir = stores_dir(c, job, index);
        Rm__CopyOffer body = RM__COPY_OFFER__INIT;
        struct copy *copy = create(c, job, checkpoint, index, node, false);
        int r = stores_files(dir, checkpoint, true, &body.files, &body.n_files);
        cleanup_free uint64_t *bytes = xcalloc(body.n_files + 1, sizeof(*bytes));

        for (size_t i = 0; i < body.n_files; i++)
                bytes[i] = file_bytes(dir, body.files[i]);
        body.bytes = bytes;
        body.n_bytes = body.n_files;
        body.index = checkpoints_state(c)->index;
        body.job = job;
        body.checkpoint = checkpoint;
        body.capsule = index;
        checks_want_unread(c, job, index, r);
        if (r < 0)
                copy_fail(copy, strerror(-r));
        else if (checkpoints_send(c, node, &PEER_MESSAGE(&body)) < 0)
                copy_fail(copy, "it cannot be reached");
        if (r == 0)
                free_all(body.files, body.n_files);
}

static bool is_up(const struct checkpoints *c, const char *name) {
        const Rm__Node *node = state_node(checkpoints_state(c), name);

        return node && node->health == RM__NODE_HEALTH__NODE_HEALTH_UP;
}

static bool is_copied(const Rm__CheckpointPart *part) {
        for (size_t i = 0; i < part->n_partners; i++)
                if (!names_have(part->stored, part->n_stored, part->partners[i]))
                        return false;
        return true;
}

/* The node that captured it; where copies are made again, the first one that has it. */
static bool is_ours_to_offer(const struct checkpoints *c, const Rm__Checkpoint *checkpoint, const Rm__CheckpointPart *part) {
        const Rm__Node *holder;

        if (checkpoint->state != RM__CHECKPOINT_STATE__CHECKPOINT_DONE)
                return strcmp(part->node, checkpoints_self(c)) == 0;
        holder = checkpoint_part_holder(checkpoints_state(c), part, NULL);
        return holder && strcmp(holder->name, checkpoints_self(c)) == 0;
}

/* Checkpoints of a capsule have files in common: one goes after the other. */
static bool is_sending(const struct checkpoints *c, uint64_t job, int32_t index, const char *node) {
        const struct copy *copy;

        LIST_FOREACH (copy, &c->copies, entry)
                if (!copy->in && copy->job == job && copy->index == index && strcmp(copy->node, node) == 0)
                        return true;
        return false;
}

void copies_offer(struct checkpoints *c, const Rm__Checkpoint *checkpoint, uint64_t job, int32_t index) {
        const Rm__CheckpointPart *part = checkpoint_part(checkpoint, index);
        struct command cmd;

        if (!part || c->shared || is_copied(part) || !is_ours_to_offer(c, checkpoint, part))
                return;
        for (size_t i = 0; i < part->n_partners; i++) {
                const char *node = part->partners[i];

                if (names_have(part->stored, part->n_stored, node) || is_sending(c, job, index, node))
                        continue;
                if (is_up(c, node))
                        offer(c, job, checkpoint->id, index, node);
                else
                        checkpoints_propose(c, command_checkpoint_uncopied(&cmd, job, checkpoint->id, index, node, "it is down"));
        }
}

static int start_out(struct copy *copy, const Rm__CopyAccept *accept, const Rm__Node *to, struct rm_error *err) {
        cleanup_free char *dir = stores_dir(copy->c, copy->job, copy->index);
        Rm__MoverLoad body;
        Rm__MoverStore store;
        int r = stores_describe(copy->c, copy->job, copy->index, dir, &store, err);

        if (r < 0)
                return r;
        mover_load_init(&body, &store, to->address, accept->port, &accept->token);
        body.checkpoint = copy->checkpoint;
        body.codec = RM__MOVER_CODEC__MOVER_CODEC_NONE; /* blocks are compressed already */
        body.bytes_per_sec = copy->c->rmd->config->checkpoint_rate_bytes_per_sec;
        body.files_only = true;
        body.have = accept->have;
        body.n_have = accept->n_have;
        return mover_start(copy->c->rmd, "load", &MOVER_COMMAND(&body), &out_ops, copy, &copy->mover, err);
}

void copies_on_accept(struct checkpoints *c, const char *node, const Rm__CopyAccept *accept) {
        struct copy *copy = find(c, accept->job, accept->checkpoint, accept->capsule, node, false);
        const Rm__Node *to = state_node(checkpoints_state(c), node);
        struct rm_error err = { 0 };

        if (!copy || ((copy->mover || copy->arrived) && !accept->error[0]))
                return;
        if (accept->later) {
                copy_free(copy);
                checkpoints_retry(c);
                return;
        }
        timer_arm(copy->deadline, SILENCE_USEC);
        if (accept->error[0] || !to)
                copy_fail(copy, accept->error[0] ? accept->error : "it is not in the cluster");
        else if (start_out(copy, accept, to, &err) < 0)
                copy_fail(copy, error_text(&err));
}

/* ---- the end that gets it ---- */

static void send_accept(struct checkpoints *c, const char *node, Rm__CopyAccept *body) {
        (void) checkpoints_send(c, node, &PEER_MESSAGE(body));
}

static void report(const struct copy *copy, uint32_t port, char **have, size_t n_have, const char *error) {
        Rm__CopyAccept body = RM__COPY_ACCEPT__INIT;

        body.job = copy->job;
        body.checkpoint = copy->checkpoint;
        body.capsule = copy->index;
        body.port = port;
        body.token.data = (uint8_t *) copy->token;
        body.token.len = sizeof(copy->token);
        body.have = have;
        body.n_have = n_have;
        body.error = (char *) error;
        send_accept(copy->c, copy->node, &body);
}

/* Tells the sender which of the offered files are here: files never change, so the size tells one
 * that is whole. */
static void report_listening(struct copy *copy, const char *dir, uint32_t port) {
        cleanup_free char **have = xcalloc(copy->n_files + 1, sizeof(*have));
        size_t n = 0;

        for (size_t i = 0; i < copy->n_files; i++)
                if (copy->bytes[i] > 0 && file_bytes(dir, copy->files[i]) == copy->bytes[i])
                        have[n++] = copy->files[i];
                else
                        copy->bytes[i] = 0;
        report(copy, port, have, n, "");
}

/* Files that were here, and were not sent therefore, may have gone meanwhile: an rm-mover that
 * opens the store removes packs that no manifest needs. 0, or -ESTALE. */
static int check_had(const struct copy *copy, const char *dir) {
        for (size_t i = 0; i < copy->n_files; i++)
                if (copy->bytes[i] > 0 && file_bytes(dir, copy->files[i]) != copy->bytes[i])
                        return -ESTALE;
        return 0;
}

/* Only what the checkpoint needs has come, of all that was offered. The manifest is the last of
 * them: without it the others mean nothing. An rm-mover that uses the store must not remove packs
 * whose manifest is not there yet (daemon/store/internal.h): it holds the lock for some
 * milliseconds, and -EAGAIN says so. */
static int settle_files(const struct copy *copy) {
        cleanup_free char *dir = stores_dir(copy->c, copy->job, copy->index);
        cleanup_close int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int r = dir_fd < 0 || flock(dir_fd, LOCK_SH | LOCK_NB) < 0 ? -errno : check_had(copy, dir);

        for (size_t i = 0; i < copy->n_files && r == 0; i++) {
                cleanup_free char *part = xasprintf("%s/%s" COPIES_PART_SUFFIX, dir, copy->files[i]);
                cleanup_free char *name = xasprintf("%s/%s", dir, copy->files[i]);

                if (rename(part, name) < 0 && (errno != ENOENT || (i + 1 == copy->n_files && access(name, F_OK) < 0)))
                        r = -errno;
        }
        return r;
}

static void propose_stored(struct copy *copy) {
        struct command cmd;

        (void) command_checkpoint_stored(&cmd, copy->job, copy->checkpoint, copy->index, checkpoints_self(copy->c));
        checkpoints_propose(copy->c, &cmd.command);
        checkpoints_retry(copy->c);
}

static void fail_to_settle(struct copy *copy, int r) {
        const char *why = r == -ESTALE ? "files that were there already have been removed meanwhile" : strerror(-r);

        report(copy, 0, NULL, 0, why);
        copy_fail(copy, why);
}

static void on_settled(void *userdata, int code) {
        struct copy *copy = call_done(userdata, code);

        if (copy && code < 0)
                fail_to_settle(copy, code);
        if (!copy || code < 0)
                return;
        (void) evtimer_del(copy->deadline);
        copy->arrived = true;
        propose_stored(copy);
}

/* rm-mover has forced the files to the disk under their names of before. Without the new ones,
 * which a loss of power would take back, there is no copy. */
static int sync_names(struct copy *copy) {
        struct checkpoints *c = copy->c;
        cleanup_free char *dir = stores_dir(c, copy->job, copy->index);
        int r = c->writer ? 0 : file_writer_create(c->rmd->base, &c->writer);

        if (r < 0)
                return r;
        copy->settling = true;
        file_writer_sync_name(c->writer, xasprintf("%s/%s", dir, copy->files[copy->n_files - 1]), on_settled,
                              call_create(&copy->caller));
        return 0;
}

static void settle(struct copy *copy) {
        int r = settle_files(copy);

        if (r == 0)
                r = sync_names(copy);
        if (r == -EAGAIN)
                checkpoints_retry(copy->c);
        else if (r < 0)
                fail_to_settle(copy, r);
}

static void on_in_event(void *userdata, const Rm__MoverEvent *event) {
        struct copy *copy = userdata;
        cleanup_free char *dir = stores_dir(copy->c, copy->job, copy->index);

        switch (event->body_case) {
        case RM__MOVER_EVENT__BODY_LISTENING:
                report_listening(copy, dir, event->listening->port);
                break;
        case RM__MOVER_EVENT__BODY_PROGRESS:
                timer_arm(copy->deadline, SILENCE_USEC);
                break;
        case RM__MOVER_EVENT__BODY_RECEIVED:
                timer_arm(copy->deadline, ANSWER_USEC);
                copy->received = true;
                settle(copy);
                break;
        case RM__MOVER_EVENT__BODY_FAILED:
                report(copy, 0, NULL, 0, event->failed->text);
                copy_fail(copy, event->failed->text);
                break;
        default:
                break;
        }
}

static void on_in_gone(void *userdata) {
        struct copy *copy = userdata;

        if (copy->received)
                return;
        report(copy, 0, NULL, 0, "rm-mover exited unexpectedly");
        copy_fail(copy, "rm-mover exited unexpectedly");
}

static const struct mover_ops in_ops = { on_in_event, on_in_gone };

static int start_in(struct copy *copy, struct rm_error *err) {
        cleanup_free char *dir = stores_dir(copy->c, copy->job, copy->index);
        cleanup_free Rm__MoverFile *files = xcalloc(copy->n_files + 1, sizeof(*files));
        cleanup_free Rm__MoverFile **list = xcalloc(copy->n_files + 1, sizeof(*list));
        Rm__MoverReceive body;
        int r = mkdir_p(dir, 0700);

        if (r < 0)
                return error_sys(err, r, "making %s", dir);
        for (size_t i = 0; i < copy->n_files; i++) {
                rm__mover_file__init(&files[i]);
                files[i].role = copy->files[i];
                files[i].path = xasprintf("%s/%s" COPIES_PART_SUFFIX, dir, copy->files[i]);
                (void) unlink(files[i].path);
                list[i] = &files[i];
        }
        mover_receive_init(&body, copy->c->rmd->config, copy->token, sizeof(copy->token));
        body.files = list;
        body.n_files = copy->n_files;
        body.sync = true;
        r = mover_start(copy->c->rmd, "receive", &MOVER_COMMAND(&body), &in_ops, copy, &copy->mover, err);
        for (size_t i = 0; i < copy->n_files; i++)
                free(files[i].path);
        return r;
}

/* The size of the offered files that are not here yet. */
static uint64_t new_bytes(const struct copy *copy) {
        cleanup_free char *dir = stores_dir(copy->c, copy->job, copy->index);
        uint64_t bytes = 0;

        for (size_t i = 0; i < copy->n_files; i++)
                if (file_bytes(dir, copy->files[i]) != copy->bytes[i])
                        bytes += copy->bytes[i] < UINT64_MAX - bytes ? copy->bytes[i] : UINT64_MAX - bytes;
        return bytes;
}

/* Another node is sending files of the same store. */
static bool is_beside_another(const struct copy *copy) {
        const struct copy *other;

        LIST_FOREACH (other, &copy->c->copies, entry)
                if (other != copy && other->in && !other->arrived && other->job == copy->job && other->index == copy->index)
                        return true;
        return false;
}

/* This node is to have a copy of it, by the state; the files are of that checkpoint, and of none
 * after it. */
static int check_offer(const struct copy *copy, const Rm__CopyOffer *offer, struct rm_error *err) {
        const struct checkpoints *c = copy->c;
        const Rm__Checkpoint *checkpoint = checkpoints_record(c, offer->job, offer->checkpoint);
        const Rm__CheckpointPart *part = checkpoint ? checkpoint_part(checkpoint, offer->capsule) : NULL;

        if (!part || (strcmp(part->node, copy->node) != 0 && !names_have(part->stored, part->n_stored, copy->node)) ||
            !names_have(part->partners, part->n_partners, checkpoints_self(c)))
                return error_set(err, -ENOENT, "by the state it is to have no copy");
        if (is_beside_another(copy))
                return error_set(err, -EBUSY, "a copy of another checkpoint comes just now");
        if (new_bytes(copy) > space_left(c, offer->job)) {
                space_make(copy->c, offer->job, offer->checkpoint);
                return error_set(err, -EDQUOT, "there is no room for the user's checkpoints");
        }
        if (offer->n_files == 0 || offer->n_files > FILES_MAX || offer->n_bytes != offer->n_files)
                return error_set(err, -EINVAL, "%zu files of %zu sizes are offered", offer->n_files, offer->n_bytes);
        for (size_t i = 0; i < offer->n_files; i++)
                if (!directory_name_valid(offer->files[i], offer->checkpoint))
                        return error_set(err, -EINVAL, "a file of another name is offered");
        return 0;
}

/* Answers an offer of a checkpoint that the state of this node does not have yet. */
static void report_later(struct checkpoints *c, const char *node, const Rm__CopyOffer *offer) {
        Rm__CopyAccept body = RM__COPY_ACCEPT__INIT;

        body.job = offer->job;
        body.checkpoint = offer->checkpoint;
        body.capsule = offer->capsule;
        body.later = true;
        send_accept(c, node, &body);
}

void copies_on_offer(struct checkpoints *c, const char *node, const Rm__CopyOffer *offer) {
        struct copy *copy = find(c, offer->job, offer->checkpoint, offer->capsule, node, true);
        struct rm_error err = { 0 };

        if (copy)
                copy_free(copy); /* it begins again */
        if (offer->index > checkpoints_state(c)->index) {
                report_later(c, node, offer);
                return;
        }
        copy = create(c, offer->job, offer->checkpoint, offer->capsule, node, true);
        for (size_t i = 0; i < offer->n_files && i < FILES_MAX; i++) {
                copy->files = xrealloc(copy->files, (copy->n_files + 1) * sizeof(*copy->files));
                copy->bytes = xrealloc(copy->bytes, (copy->n_files + 1) * sizeof(*copy->bytes));
                copy->bytes[copy->n_files] = i < offer->n_bytes ? offer->bytes[i] : 0;
                copy->files[copy->n_files++] = xstrdup(offer->files[i]);
        }
        if (getrandom(copy->token, sizeof(copy->token), 0) != (ssize_t) sizeof(copy->token))
                (void) error_set(&err, -EIO, "cannot get random bytes");
        else if (check_offer(copy, offer, &err) == 0 && start_in(copy, &err) == 0)
                return;
        report(copy, 0, NULL, 0, error_text(&err));
        copy_fail(copy, error_text(&err));
}

/* ---- both ---- */

void copies_offer_again(struct checkpoints *c) {
        const Rm__State *state = checkpoints_state(c);

        for (size_t i = 0; i < state->n_jobs; i++)
                for (size_t k = 0; k < state->jobs[i]->n_checkpoints; k++) {
                        const Rm__Checkpoint *checkpoint = state->jobs[i]->checkpoints[k];

                        if (checkpoint->state != RM__CHECKPOINT_STATE__CHECKPOINT_DONE)
                                continue;
                        for (size_t p = 0; p < checkpoint->n_parts; p++)
                                copies_offer(c, checkpoint, state->jobs[i]->id, checkpoint->parts[p]->capsule);
                }
}

void copies_wake(struct checkpoints *c) {
        struct copy *copy, *next;

        for (copy = LIST_FIRST(&c->copies); copy; copy = next) {
                const Rm__Checkpoint *checkpoint = checkpoints_record(c, copy->job, copy->checkpoint);
                const Rm__CheckpointPart *part = checkpoint ? checkpoint_part(checkpoint, copy->index) : NULL;
                const char *owner = copy->in ? checkpoints_self(c) : copy->node;

                next = LIST_NEXT(copy, entry);
                if (!part || names_have(part->stored, part->n_stored, owner))
                        copy_free(copy);
                else if (!copy->in && !is_up(c, copy->node))
                        copy_fail(copy, "it is down");
                else if (copy->in && copy->arrived)
                        propose_stored(copy);
                else if (copy->in && copy->received && !copy->settling)
                        settle(copy);
        }
}

void copies_on_lost(struct checkpoints *c, const char *node) {
        struct copy *copy, *next;

        for (copy = LIST_FIRST(&c->copies); copy; copy = next) {
                next = LIST_NEXT(copy, entry);
                /* A node that has the copy may not have told the log yet: if it has, the log's
                 * entry arrives before the loss. */
                if (strcmp(copy->node, node) == 0 && (!copy->arrived || !copy->in))
                        copy_fail(copy, "the connection was lost");
        }
}

void copies_keep(const struct checkpoints *c) {
        const struct copy *copy;

        LIST_FOREACH (copy, &c->copies, entry)
                cluster_keep(c->rmd->cluster, copy->node);
}

void copies_finish(struct checkpoints *c) {
        file_writer_destroy(take_ptr(c->writer));
        while (!LIST_EMPTY(&c->copies))
                copy_free(LIST_FIRST(&c->copies));
}
