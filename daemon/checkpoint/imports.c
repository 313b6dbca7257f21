/* A checkpoint comes from its owner's program. It is put beside the stores, and is known to nobody before rm-mover has found it to be what this cluster has exported. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/checkpoint/checkpoints_internal.h"
#include "daemon/cluster/commands.h"
#include "daemon/move/mover_setup.h"

#define IMPORT_PREFIX "import-" /* of directories beside those of jobs */

/* ---- may it come? ---- */

/* What comes does not count as this user's before the log knows of it: one after the other. */
static bool is_beside_another(const struct transfer *transfer, uint32_t owner) {
        const struct transfer *other;

        LIST_FOREACH (other, &transfer->c->transfers, entry)
                if (other != transfer && other->in && other->job > 0 && other->head->job->spec->uid == owner)
                        return true;
        return false;
}

static int check_head(const struct transfer *transfer, const Rm__ExportHead *head, struct rm_error *err) {
        uint32_t uid;

        if (!head || !head->job || !head->job->spec || head->job->n_checkpoints != 1)
                return error_set(err, -EPROTO, "rm-mover says nothing that could be understood");
        uid = head->job->spec->uid;
        if (transfer->uid != 0 && transfer->uid != uid)
                return error_set(err, -EPERM, "it is a checkpoint of a job of user %u; only this user may import it",
                                 (unsigned) uid);
        if (is_beside_another(transfer, uid))
                return error_set(err, -EBUSY, "another checkpoint of this user is being imported on this node; try again later");
        return state_check_import(cluster_index(transfer->c->rmd->cluster), head->job, err);
}

void import_head(struct transfer *transfer, const ProtobufCBinaryData *packed) {
        Rm__MoverCommand command = RM__MOVER_COMMAND__INIT;
        Rm__MoverProceed body = RM__MOVER_PROCEED__INIT;
        struct rm_error err = { 0 };

        if (transfer->head)
                return;
        transfer->head = rm__export_head__unpack(NULL, packed->len, packed->data);
        if (check_head(transfer, transfer->head, &err) < 0) {
                transfer_fail(transfer, err.code, error_text(&err));
                return;
        }
        transfer->job = transfer->head->job->id;
        transfer->checkpoint = transfer->head->job->checkpoints[0]->id;
        body.space_bytes = space_left_of_user(transfer->c, transfer->head->job->spec->uid);
        command.body_case = RM__MOVER_COMMAND__BODY_PROCEED;
        command.proceed = &body;
        if (mover_command(transfer->mover, &command) < 0)
                transfer_fail(transfer, -EIO, "rm-mover cannot be reached");
}

/* ---- what has come gets its place ---- */

/* Files of a store never change, so the size tells one that is whole. */
static int check_same(int from_fd, int to_fd, const char *name) {
        struct stat from, to;

        if (fstatat(to_fd, name, &to, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : -errno;
        if (fstatat(from_fd, name, &from, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        return from.st_size == to.st_size ? 0 : -EEXIST;
}

/* The manifest last. An rm-mover that removes what no manifest needs holds the lock meanwhile. */
static int merge(const char *from, const char *to, uint64_t checkpoint) {
        cleanup_close int from_fd = open(from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        cleanup_close int to_fd = open(to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        char **names = NULL;
        size_t n = 0;
        int r = from_fd < 0 || to_fd < 0 || flock(to_fd, LOCK_SH | LOCK_NB) < 0 ? -errno : 0;

        if (r == 0)
                r = stores_files(from, checkpoint, true, &names, &n);
        for (size_t i = 0; i < n && r == 0; i++)
                r = check_same(from_fd, to_fd, names[i]);
        for (size_t i = 0; i < n && r == 0; i++)
                r = renameat(from_fd, names[i], to_fd, names[i]) < 0 ? -errno : 0;
        stores_files_free(names, n);
        return r;
}

static int place_part(const struct transfer *transfer, int32_t index) {
        cleanup_free char *from = stores_part_dir(transfer->dir, index);
        cleanup_free char *to = stores_dir(transfer->c, transfer->job, index);

        if (rename(from, to) == 0)
                return 0;
        return errno == ENOTEMPTY || errno == EEXIST ? merge(from, to, transfer->head->job->checkpoints[0]->id) : -errno;
}

/* What a failure leaves the log knows nothing of, so it is removed as anything of that kind. */
static int place(const struct transfer *transfer, struct rm_error *err) {
        const Rm__Checkpoint *checkpoint = transfer->head->job->checkpoints[0];
        int r = stores_make(transfer->c, transfer->job, err);

        if (r < 0)
                return r;
        for (size_t i = 0; i < checkpoint->n_parts && r == 0; i++)
                r = place_part(transfer, checkpoint->parts[i]->capsule);
        if (r == -EEXIST)
                return error_set(
                        err, r, "other checkpoints of that job are here, made after it had gone on another way; remove them first");
        if (r == -EAGAIN)
                return error_set(err, r, "checkpoints of that job are in use on this node just now; try again");
        return r < 0 ? error_sys(err, r, "storing it") : 0;
}

static void import_end(struct transfer *transfer) {
        cleanup_free char *text = NULL;
        char name[48];

        (void) checkpoint_name(transfer->job, transfer->head->job->checkpoints[0]->id, name);
        text = xasprintf("checkpoint %s has been imported; 'rmctl restart-job %s' lets the job go on from there", name, name);
        transfer_end(transfer, 0, text);
}

static void on_proposed(void *userdata, int code, const char *text, uint64_t index, uint64_t created) {
        struct proposal *proposal = userdata;
        struct transfer *transfer = proposal->transfer;

        free(proposal);
        if (!transfer)
                return;
        transfer->proposal = NULL;
        if (code < 0)
                transfer_fail(transfer, code, text && *text ? text : strerror(-code));
        else
                import_end(transfer);
}

void import_arrived(struct transfer *transfer) {
        struct checkpoints *c = transfer->c;
        struct rm_error err = { 0 };
        struct command cmd;

        if (!transfer->head || transfer->held)
                return;
        /* Time has passed since it was asked first. */
        if (state_check_import(cluster_index(c->rmd->cluster), transfer->head->job, &err) < 0) {
                transfer_fail(transfer, err.code, error_text(&err));
                return;
        }
        transfer->held = true;
        if (place(transfer, &err) < 0) {
                transfer_fail(transfer, err.code, error_text(&err));
                return;
        }
        (void) evtimer_del(transfer->deadline);
        transfer->proposal = xcalloc(1, sizeof(*transfer->proposal));
        transfer->proposal->transfer = transfer;
        cluster_propose(c->rmd->cluster, command_checkpoint_import(&cmd, transfer->head->job, stores_place(c), transfer->user),
                        on_proposed, transfer->proposal);
}

/* ---- it begins ---- */

static char *import_dir(const struct checkpoints *c) {
        uint64_t random = 0;

        (void) getrandom(&random, sizeof(random), 0);
        return xasprintf("%s/" IMPORT_PREFIX "%s-%016" PRIx64, c->root, checkpoints_self(c), random);
}

static int start_import(struct transfer *transfer, struct rm_error *err) {
        const struct config *config = transfer->c->rmd->config;
        Rm__MoverCommand command = RM__MOVER_COMMAND__INIT;
        Rm__MoverImport body = RM__MOVER_IMPORT__INIT;
        Rm__MoverStore store;

        if (mkdir(transfer->dir, 0700) < 0)
                return error_sys(err, -errno, "making %s", transfer->dir);
        mover_store_init(&store, config, transfer->dir);
        body.store = &store;
        body.client_uid = transfer->uid;
        body.bytes_per_sec = config->checkpoint_rate_bytes_per_sec;
        command.body_case = RM__MOVER_COMMAND__BODY_IMPORT_CHECKPOINT;
        command.import_checkpoint = &body;
        return transfer_start(transfer, "import", &command, err);
}

int checkpoints_import(struct checkpoints *c, const struct checkpoints_user *user,
                       const struct checkpoints_transfer_ops *transfer_ops, void *userdata, struct rm_error *err) {
        struct transfer *transfer = transfer_create(c, true, user, transfer_ops, userdata, err);
        int r;

        if (!transfer)
                return err->code;
        transfer->dir = import_dir(c);
        r = start_import(transfer, err);
        if (r < 0)
                transfer_free(transfer);
        return r;
}

void imports_clean(struct checkpoints *c) {
        cleanup_free char *prefix = xasprintf(IMPORT_PREFIX "%s-", checkpoints_self(c));
        const struct dirent *entry;
        DIR *d = opendir(c->root);

        while (d && (entry = readdir(d)))
                if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0) {
                        cleanup_free char *dir = xasprintf("%s/%s", c->root, entry->d_name);

                        remover_add(c->remover, remover_set_aside(c->remover, dir));
                }
        if (d)
                (void) closedir(d);
}
