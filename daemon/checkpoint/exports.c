/* A checkpoint goes to its owner's program. This node gets the parts first that it has not; rmd
 * remembers nothing of that: the program asks again. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/frame.h"
#include "common/hostlist.h"
#include "common/util.h"
#include "daemon/checkpoint/checkpoints_internal.h"
#include "daemon/state/commands.h"
#include "daemon/transfer/mover_setup.h"

#define COMING_MAX 16U /* parts that come at once */
#define STALE_COPY_USEC 10000000U /* of the log: longer than a copy waits for a node that does not answer */
#define HEAD_MAX_BYTES (FRAME_MAX_MOVER_BYTES - 65536U) /* with what else is said to rm-mover */

/* ---- the parts ---- */

static bool has_part(const struct checkpoints *c, const Rm__CheckpointPart *part) {
        return names_have(part->stored, part->n_stored, stores_place(c));
}

static bool is_coming(const struct checkpoints *c, const Rm__CheckpointPart *part) {
        return names_have(part->partners, part->n_partners, checkpoints_self(c));
}

static size_t count_coming(const struct checkpoints *c, const Rm__Checkpoint *record) {
        size_t n = 0;

        for (size_t i = 0; i < record->n_parts; i++)
                n += !has_part(c, record->parts[i]) && is_coming(c, record->parts[i]);
        return n;
}

/* "mpirun", "group 0"; malloc'ed. */
static char *part_name(const Rm__CheckpointPart *part) {
        return part->capsule == STATE_HEAD ? xstrdup("mpirun") : xasprintf("group %" PRId32, part->capsule);
}

/* The part can be had at some time, by asking again. */
static int check_reach(const struct checkpoints *c, const Rm__CheckpointPart *part, struct rm_error *err) {
        cleanup_free char *name = part_name(part);
        cleanup_free char *holders = hostlist_compress(part->stored, part->n_stored);
        bool stored_shared = names_have(part->stored, part->n_stored, STATE_STORED_SHARED);

        if (stored_shared)
                return error_set(err, -EOPNOTSUPP,
                                 "%s of it is in a store that nodes share, and [checkpoint] store is another one on this node",
                                 name);
        if (c->shared)
                return error_set(err, -EOPNOTSUPP, "%s of it is not in the store that nodes share, but on the disk of %s", name,
                                 holders);
        if (!checkpoint_part_holder(checkpoints_state(c), part, NULL))
                return error_set(err, -EHOSTDOWN, "no node that is up has %s of it (that has: %s)", name, holders);
        if (!is_coming(c, part) && part->n_partners >= STATE_PARTNERS_MAX)
                return error_set(err, -EDQUOT, "as many nodes as may have %s of it; export it on one of them (%s)", name,
                                 part->partners[0]);
        return 0;
}

static int want_part(struct checkpoints *c, uint64_t job, uint64_t checkpoint, const Rm__CheckpointPart *part, size_t *coming,
                     struct rm_error *err) {
        struct command cmd;
        int r = check_reach(c, part, err);

        if (r < 0 || is_coming(c, part) || *coming >= COMING_MAX)
                return r;
        ++*coming;
        checkpoints_propose(c, command_checkpoint_copy_requested(&cmd, job, checkpoint, part->capsule, checkpoints_self(c)));
        return 0;
}

int checkpoints_gather(struct checkpoints *c, uint64_t job, uint64_t checkpoint, uint64_t since_usec, size_t *ret_here,
                       struct rm_error *err) {
        const Rm__Checkpoint *record = checkpoints_record(c, job, checkpoint);
        size_t here = 0, coming;
        int r = 0;

        if (!record || record->state != RM__CHECKPOINT_STATE__CHECKPOINT_DONE)
                return error_set(err, -EBUSY, "it is not done");
        /* Before that the copy may have been ordered by an earlier request, from a node that was
         * lost. */
        if (since_usec > 0 && record->copy_error_usec >= since_usec + STALE_COPY_USEC)
                return error_set(err, -EIO, "this node cannot get all parts of it: see 'rmctl events'");
        coming = count_coming(c, record);
        for (size_t i = 0; i < record->n_parts && r == 0; i++) {
                if (has_part(c, record->parts[i]))
                        here++;
                else
                        r = want_part(c, job, checkpoint, record->parts[i], &coming, err);
        }
        if (r == 0)
                *ret_here = here;
        return r;
}

/* ---- the file ---- */

/* Fills in the fields of the job that a restart needs: `ret` borrows from it. */
static void fill_job(Rm__Job *ret, const Rm__Job *job, Rm__Checkpoint **checkpoint) {
        rm__job__init(ret);
        ret->id = job->id;
        ret->spec = job->spec;
        ret->submit_usec = job->submit_usec;
        ret->attempt = job->attempt;
        ret->free_attempts = job->free_attempts;
        ret->last_checkpoint = job->last_checkpoint;
        ret->checkpoints = checkpoint;
        ret->n_checkpoints = 1;
}

/* The caller's. Where its parts are, and whose disks they filled, is of this cluster at this
 * time. */
static Rm__Checkpoint *copy_record(const Rm__Checkpoint *record) {
        Rm__Checkpoint *copy = (Rm__Checkpoint *) message_copy(&record->base);

        for (size_t i = 0; i < copy->n_parts; i++) {
                names_clear(&copy->parts[i]->stored, &copy->parts[i]->n_stored);
                names_clear(&copy->parts[i]->partners, &copy->parts[i]->n_partners);
        }
        return copy;
}

static int start_export(struct exchange *exchange, const Rm__Job *job, const Rm__Checkpoint *record, const char *key_file,
                        struct rm_error *err) {
        const struct checkpoints *c = exchange->c;
        cleanup_free char *dir = xasprintf("%s/%" PRIu64, c->root, job->id);
        Rm__Checkpoint *copy = copy_record(record);
        Rm__ExportHead head = RM__EXPORT_HEAD__INIT;
        cleanup_free uint8_t *packed = NULL;
        ProtobufCBinaryData bytes;
        Rm__MoverStore store;
        Rm__Job of;

        fill_job(&of, job, &copy);
        head.time_usec = now_real_usec();
        head.job = &of;
        bytes.len = rm__export_head__get_packed_size(&head);
        bytes.data = packed = xrealloc(NULL, bytes.len + 1);
        (void) rm__export_head__pack(&head, packed);
        rm__checkpoint__free_unpacked(copy, NULL);
        if (bytes.len > HEAD_MAX_BYTES)
                return error_set(err, -EFBIG, "the job has too many groups");
        mover_store_init(&store, c->rmd->config, dir);
        return exchange_start(exchange, &store, bytes, key_file, err);
}

int checkpoints_export(struct checkpoints *c, uint64_t job, uint64_t checkpoint, const struct checkpoints_user *user,
                       const struct checkpoints_exchange_ops *exchange_ops, void *userdata, struct rm_error *err) {
        const Rm__Job *j = state_job(checkpoints_state(c), job);
        const Rm__Checkpoint *record = checkpoints_record(c, job, checkpoint);
        struct exchange *exchange;
        int r;

        if (!record)
                return error_set(err, -ENOENT, "it is not there any more");
        exchange = exchange_create(c, false, user, exchange_ops, userdata, err);
        if (!exchange)
                return err->code;
        exchange->job = job;
        exchange->checkpoint = checkpoint;
        r = start_export(exchange, j, record, user->key_file, err);
        if (r < 0)
                exchange_free(exchange);
        return r;
}
