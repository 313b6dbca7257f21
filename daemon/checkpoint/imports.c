/* A checkpoint comes from its owner's program. It is put beside the stores, and is not known to the
 * log before rm-mover has found it to be what this cluster has exported. */
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
#include "daemon/job/user_limits.h"
#include "daemon/state/commands.h"
#include "daemon/store/directory.h"
#include "daemon/transfer/mover_setup.h"

#define IMPORT_PREFIX "import-" /* of directories beside those of jobs */
#define RANDOM_DIGITS 16U /* at the end of their names */

/* ---- may it come? ---- */

/* Imports of one user run one after the other: bytes do not count as the user's before the log
 * knows of them. */
static bool is_beside_another(const struct exchange *exchange, uint32_t owner) {
        const struct exchange *other;

        LIST_FOREACH (other, &exchange->c->exchanges, entry)
                if (other != exchange && other->in && other->job > 0 && other->head->job->spec->uid == owner)
                        return true;
        return false;
}

static int check_head(const struct exchange *exchange, const Rm__ExportHead *head, struct rm_error *err) {
        uint32_t uid;

        if (!head || !head->job || !head->job->spec || head->job->n_checkpoints != 1)
                return error_set(err, -EPROTO, "rm-mover says nothing that could be understood");
        uid = head->job->spec->uid;
        if (exchange->uid != 0 && exchange->uid != uid)
                return error_set(err, -EPERM, "it is a checkpoint of a job of user %u; only this user may import it",
                                 (unsigned) uid);
        /* A job that root imports waits for restart-job, which checks the owner again. */
        if (exchange->uid != 0 && owner_check(head->job->spec, &exchange->today, err) < 0) {
                cleanup_free char *text = xstrdup(err->text);

                return error_set(err, -EPERM, "%s; root may import it", text);
        }
        if (is_beside_another(exchange, uid))
                return error_set(err, -EBUSY, "another checkpoint of this user is being imported on this node; try again later");
        return state_check_import(cluster_index(exchange->c->rmd->cluster), head->job, err);
}

void import_head(struct exchange *exchange, const ProtobufCBinaryData *packed) {
        Rm__MoverProceed body = RM__MOVER_PROCEED__INIT;
        struct rm_error err = { 0 };

        if (exchange->head)
                return;
        exchange->head = rm__export_head__unpack(NULL, packed->len, packed->data);
        if (check_head(exchange, exchange->head, &err) < 0) {
                exchange_fail(exchange, err.code, error_text(&err));
                return;
        }
        exchange->job = exchange->head->job->id;
        exchange->checkpoint = exchange->head->job->checkpoints[0]->id;
        body.space_bytes = space_left_of_user(exchange->c, exchange->head->job->spec->uid);
        if (mover_command(exchange->mover, &MOVER_COMMAND(&body)) < 0)
                exchange_fail(exchange, -EIO, "rm-mover cannot be reached");
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
        free_all(names, n);
        return r;
}

static int place_part(const struct exchange *exchange, int32_t index) {
        cleanup_free char *from = directory_of_capsule(exchange->dir, index);
        cleanup_free char *to = stores_dir(exchange->c, exchange->job, index);

        if (rename(from, to) == 0)
                return 0;
        return errno == ENOTEMPTY || errno == EEXIST ? merge(from, to, exchange->head->job->checkpoints[0]->id) : -errno;
}

/* The log knows nothing of the files that a failure leaves, so they are removed like any others of
 * that kind. */
static int place(const struct exchange *exchange, struct rm_error *err) {
        const Rm__Checkpoint *checkpoint = exchange->head->job->checkpoints[0];
        int r = stores_make(exchange->c, exchange->job, err);

        if (r < 0)
                return r;
        for (size_t i = 0; i < checkpoint->n_parts && r == 0; i++)
                r = place_part(exchange, checkpoint->parts[i]->capsule);
        if (r == -EEXIST)
                return error_set(
                        err, r, "other checkpoints of that job are here, made after it had gone on another way; remove them first");
        if (r == -EAGAIN)
                return error_set(err, r, "checkpoints of that job are in use on this node just now; try again");
        return r < 0 ? error_sys(err, r, "storing it") : 0;
}

static void import_end(struct exchange *exchange) {
        cleanup_free char *text = NULL;
        char name[48];

        (void) checkpoint_name(exchange->job, exchange->head->job->checkpoints[0]->id, name);
        text = xasprintf("checkpoint %s has been imported; 'rmctl restart-job %s' lets the job go on from there", name, name);
        exchange_end(exchange, 0, text);
}

static void on_proposed(void *userdata, int code, const char *text, uint64_t index, uint64_t created) {
        struct exchange *exchange = call_done(userdata, code);

        if (!exchange)
                return;
        if (code < 0)
                exchange_fail(exchange, code, text && *text ? text : strerror(-code));
        else
                import_end(exchange);
}

void import_arrived(struct exchange *exchange) {
        struct checkpoints *c = exchange->c;
        struct rm_error err = { 0 };
        Rm__UserLimits limits;
        struct command cmd;

        if (!exchange->head || exchange->held)
                return;
        /* Time has passed since it was asked first. */
        if (state_check_import(cluster_index(c->rmd->cluster), exchange->head->job, &err) < 0) {
                exchange_fail(exchange, err.code, error_text(&err));
                return;
        }
        exchange->held = true;
        if (place(exchange, &err) < 0) {
                exchange_fail(exchange, err.code, error_text(&err));
                return;
        }
        (void) evtimer_del(exchange->deadline);
        cluster_propose(c->rmd->cluster,
                        command_checkpoint_import(&cmd, exchange->head->job, stores_place(c), exchange->user,
                                                  user_limits(c->rmd, exchange->admin, &limits)),
                        on_proposed, call_create(&exchange->caller));
}

/* ---- it begins ---- */

static char *import_dir(const struct checkpoints *c) {
        uint64_t random = 0;

        (void) !getrandom(&random, sizeof(random), 0);
        return xasprintf("%s/" IMPORT_PREFIX "%s-%016" PRIx64, c->root, checkpoints_self(c), random);
}

static int start_import(struct exchange *exchange, const char *key_file, struct rm_error *err) {
        Rm__MoverStore store;

        if (mkdir(exchange->dir, 0700) < 0)
                return error_sys(err, -errno, "making %s", exchange->dir);
        mover_store_init(&store, exchange->c->rmd->config, exchange->dir);
        return exchange_start(exchange, &store, (ProtobufCBinaryData) { 0 }, key_file, err);
}

int checkpoints_import(struct checkpoints *c, const struct checkpoints_user *user,
                       const struct checkpoints_exchange_ops *exchange_ops, void *userdata, struct rm_error *err) {
        struct exchange *exchange = exchange_create(c, true, user, exchange_ops, userdata, err);
        int r;

        if (!exchange)
                return err->code;
        exchange->dir = import_dir(c);
        r = start_import(exchange, user->key_file, err);
        if (r < 0)
                exchange_free(exchange);
        return r;
}

/* On a file system of all nodes there are those of others, and a node's name may begin with
 * another's. */
static bool is_own_import(const char *name, const char *prefix) {
        size_t n = strlen(prefix);

        return strncmp(name, prefix, n) == 0 && strlen(name + n) == RANDOM_DIGITS &&
               strspn(name + n, "0123456789abcdef") == RANDOM_DIGITS;
}

void imports_clean(struct checkpoints *c) {
        cleanup_free char *prefix = xasprintf(IMPORT_PREFIX "%s-", checkpoints_self(c));
        const struct dirent *entry;
        DIR *d = opendir(c->root);

        while (d && (entry = readdir(d)))
                if (is_own_import(entry->d_name, prefix)) {
                        cleanup_free char *dir = xasprintf("%s/%s", c->root, entry->d_name);

                        remover_add(c->remover, remover_set_aside(c->remover, dir));
                }
        if (d)
                (void) closedir(d);
}
