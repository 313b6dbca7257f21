/* Where checkpoints lie on this node: ROOT/JOB/head and ROOT/JOB/gN, each a store
 * (daemon/store/store.h). Only names are looked at here; what is in the files is the movers'. */
#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/checkpoint/checkpoints_internal.h"
#include "daemon/store/directory.h"
#include "daemon/transfer/mover_setup.h"

#define NEW_SEC 60

static char *job_dir(const struct checkpoints *c, uint64_t job) {
        return xasprintf("%s/%" PRIu64, c->root, job);
}

char *stores_dir(const struct checkpoints *c, uint64_t job, int32_t index) {
        cleanup_free char *dir = job_dir(c, job);

        return directory_of_capsule(dir, index);
}

const char *stores_place(const struct checkpoints *c) {
        return c->shared ? STATE_STORED_SHARED : checkpoints_self(c);
}

int stores_describe(const struct checkpoints *c, uint64_t job, int32_t index, const char *dir, Rm__MoverStore *ret,
                    struct rm_error *err) {
        const Rm__Job *j = state_job(checkpoints_state(c), job);

        if (!j)
                return error_set(err, -ENOENT, "there is no job %" PRIu64, job);
        mover_store_init(ret, c->rmd->config, dir);
        ret->job = job;
        ret->capsule = index;
        ret->uid = j->spec->uid;
        return 0;
}

int stores_make(const struct checkpoints *c, uint64_t job, struct rm_error *err) {
        cleanup_free char *dir = job_dir(c, job);
        int r = mkdir_p(dir, 0700);

        return r < 0 ? error_sys(err, r, "making %s", dir) : 0;
}

/* A job's directory is named by its number, without leading zeros; 0: it is none. */
static uint64_t job_of(const char *name) {
        int64_t number = 0;

        return *name != '0' && parse_i64(name, 1, INT64_MAX, &number) == 0 ? (uint64_t) number : 0;
}

int stores_files(const char *dir, uint64_t checkpoint, bool whole, char ***ret_names, size_t *ret_n) {
        DIR *d = opendir(dir);
        const struct dirent *entry;
        char **names = NULL;
        bool manifest = false;
        size_t n = 0;

        if (!d)
                return -errno;
        while ((entry = readdir(d))) {
                if (!directory_name_valid(entry->d_name, checkpoint))
                        continue;
                if (directory_manifest_number(entry->d_name) > 0) {
                        manifest = true;
                        continue;
                }
                names = xrealloc(names, (n + 2) * sizeof(*names));
                names[n++] = xstrdup(entry->d_name);
        }
        (void) closedir(d);
        if (!manifest && whole) {
                free_all(names, n);
                return -ENOENT;
        }
        names = xrealloc(names, (n + 1) * sizeof(*names));
        if (manifest) {
                names[n] = xcalloc(1, DIRECTORY_NAME_BYTES);
                directory_manifest_name(checkpoint, names[n++]);
        }
        *ret_names = names;
        *ret_n = n;
        return 0;
}

/* ---- stores that are not needed ---- */

static bool index_of(const char *name, int32_t *ret) {
        char *end;
        long index;

        if (strcmp(name, "head") == 0) {
                *ret = STATE_HEAD;
                return true;
        }
        if (name[0] != 'g' || name[1] < '0' || name[1] > '9')
                return false;
        index = strtol(name + 1, &end, 10);
        *ret = (int32_t) index;
        return !*end && index <= INT32_MAX;
}

static bool in_use(const struct checkpoints *c, uint64_t job, int32_t index) {
        return saves_use(c, job, index) || copies_use(c, job, index) || loads_use(c, job, index) || exchanges_use(c, job);
}

void stores_each(struct checkpoints *c, void (*fn)(struct checkpoints *c, uint64_t job, int32_t index, void *arg), void *arg) {
        const Rm__State *state = checkpoints_state(c);

        for (size_t i = 0; i < state->n_jobs; i++) {
                cleanup_free char *dir = state->jobs[i]->n_checkpoints > 0 ? job_dir(c, state->jobs[i]->id) : NULL;
                const struct dirent *entry;
                DIR *d = dir ? opendir(dir) : NULL;
                int32_t index;

                while (d && (entry = readdir(d)))
                        if (index_of(entry->d_name, &index))
                                fn(c, state->jobs[i]->id, index, arg);
                if (d)
                        (void) closedir(d);
        }
}

/* The part is to be here: on its own node, unless the part there was damaged, or on a node that
 * gets a copy. */
static bool belongs_here(const struct checkpoints *c, const Rm__Checkpoint *checkpoint, const Rm__CheckpointPart *part) {
        bool done = checkpoint->state == RM__CHECKPOINT_STATE__CHECKPOINT_DONE;

        return c->shared || (!done && strcmp(part->node, checkpoints_self(c)) == 0) ||
               names_have(part->partners, part->n_partners, checkpoints_self(c)) ||
               names_have(part->stored, part->n_stored, checkpoints_self(c));
}

/* This node is to have a part of the capsule of some checkpoint of the job, or (`number` not 0) of
 * that one. */
static bool is_needed(const struct checkpoints *c, const Rm__Job *job, int32_t index, uint64_t number) {
        for (size_t i = 0; i < job->n_checkpoints; i++) {
                const Rm__CheckpointPart *part = checkpoint_part(job->checkpoints[i], index);

                if (part && belongs_here(c, job->checkpoints[i], part) && (number == 0 || job->checkpoints[i]->id == number))
                        return true;
        }
        return false;
}

static void remove_dir(struct checkpoints *c, const char *dir) {
        remover_add(c->remover, remover_set_aside(c->remover, dir));
}

/* The name is one that remover_set_aside() gives. */
static bool is_aside(const char *name) {
        const char *dot = strrchr(name, '.');

        return dot && strncmp(dot, ".removed-", 9) == 0 && dot[9] && strspn(dot + 9, "0123456789") == strlen(dot + 9);
}

static void clean_dir(struct checkpoints *c, const char *dir, bool of_jobs) {
        const struct dirent *entry;
        DIR *d = opendir(dir);

        while (d && (entry = readdir(d))) {
                char *path = xasprintf("%s/%s", dir, entry->d_name);

                if (is_aside(entry->d_name)) {
                        remover_add(c->remover, path);
                        continue;
                }
                if (of_jobs && job_of(entry->d_name) > 0)
                        clean_dir(c, path, false);
                free(path);
        }
        if (d)
                (void) closedir(d);
}

void stores_clean(struct checkpoints *c) {
        clean_dir(c, c->root, true);
}

/* The file may be an import: on a file system of all nodes another node puts it there before the
 * log knows of it. */
static bool is_new(const struct checkpoints *c, const char *path) {
        struct stat st;

        if (!c->shared || lstat(path, &st) < 0 || time(NULL) >= st.st_ctime + NEW_SEC)
                return false;
        /* No change of the state may follow. */
        if (!evtimer_pending(c->tidy_again, NULL))
                timer_arm(c->tidy_again, (NEW_SEC + 1) * UINT64_C(1000000));
        return true;
}

/* A copy that was given up, as its checkpoint was, leaves such files; no copy uses the store while
 * it is tidied. */
static bool is_half_copied(const char *name) {
        const char *dot = strrchr(name, '.');

        return dot && strcmp(dot, COPIES_PART_SUFFIX) == 0;
}

/* Manifests that the state knows no more go here, and packs that came with newer ones than those it
 * knows, which no older one needs. Others that none needs any more go with the next checkpoint, or
 * with the directory. */
static void tidy_files(struct checkpoints *c, const Rm__Job *job, int32_t index, const char *dir) {
        uint64_t newest = job->n_checkpoints > 0 ? job->checkpoints[job->n_checkpoints - 1]->id : 0;
        const struct dirent *entry;
        DIR *d = opendir(dir);

        while (d && (entry = readdir(d))) {
                uint64_t manifest = directory_manifest_number(entry->d_name), pack = directory_pack_number(entry->d_name);
                cleanup_free char *path = xasprintf("%s/%s", dir, entry->d_name);

                /* A checkpoint that is being made elsewhere may be newer than the newest that is
                 * known here. */
                if (manifest > job->last_checkpoint || pack > job->last_checkpoint)
                        continue;
                if ((is_half_copied(entry->d_name) || (manifest > 0 ? !is_needed(c, job, index, manifest) : pack > newest)) &&
                    !is_new(c, path))
                        (void) unlink(path);
        }
        if (d)
                (void) closedir(d);
}

static bool may_have_first(const struct checkpoints *c, const Rm__Job *job) {
        return c->shared && !job_ended(job);
}

static void tidy_capsule(struct checkpoints *c, const Rm__Job *job, int32_t index, const char *dir) {
        if (job->n_checkpoints == 0 || is_needed(c, job, index, 0))
                tidy_files(c, job, index, dir);
        else if (!is_new(c, dir))
                remove_dir(c, dir);
}

static void tidy_job(struct checkpoints *c, uint64_t id) {
        const Rm__Job *job = state_job(checkpoints_state(c), id);
        cleanup_free char *dir = job_dir(c, id);
        const struct dirent *entry;
        bool busy = false;
        DIR *d = opendir(dir);

        while (d && (entry = readdir(d))) {
                cleanup_free char *path = xasprintf("%s/%s", dir, entry->d_name);
                int32_t index;

                if (!index_of(entry->d_name, &index))
                        continue;
                if (in_use(c, id, index))
                        busy = true;
                else if (job && (job->n_checkpoints > 0 || may_have_first(c, job)))
                        tidy_capsule(c, job, index, path);
        }
        if (d)
                (void) closedir(d);
        /* On a shared file system another node may be making the first one just now. */
        if (!busy && !is_new(c, dir) && (!job || (job->n_checkpoints == 0 && !may_have_first(c, job))))
                remove_dir(c, dir);
}

void stores_tidy(struct checkpoints *c) {
        const struct dirent *entry;
        DIR *d;

        /* A directory that all nodes have is the leader's to tidy. */
        if (c->shared && !cluster_is_leader(c->rmd->cluster))
                return;
        d = opendir(c->root);
        while (d && (entry = readdir(d))) {
                uint64_t id = job_of(entry->d_name);

                if (id > 0)
                        tidy_job(c, id);
        }
        if (d)
                (void) closedir(d);
}
