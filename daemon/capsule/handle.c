#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/capsule/private.h"

const char *const capsule_tmpfs_mounts[] = { "/tmp", "/dev/shm", "/run", NULL };

struct capsule *capsule_new(struct capsule_ctx *ctx, const char *id, const struct capsule_callbacks *callbacks, void *userdata) {
        struct capsule *capsule = xcalloc(1, sizeof(*capsule));

        capsule->ctx = ctx;
        capsule->callbacks = *callbacks;
        capsule->userdata = userdata;
        capsule->id = xstrdup(id);
        capsule->dir = xasprintf("%s/%s", ctx->runtime_dir, id);
        capsule->report_fd = -1;
        capsule->limits = (struct capsule_limits) { UINT64_MAX, UINT64_MAX };
        STAILQ_INIT(&capsule->pendings);
        LIST_INSERT_HEAD(&ctx->capsules, capsule, entry);
        return capsule;
}

static void capsule_free(struct capsule *capsule) {
        free(capsule->id);
        free(capsule->lost_ranks);
        free(capsule->dir);
        free(capsule->cgroup_dir);
        free(capsule->spool_dir);
        for (enum controller i = 0; i < CONTROLLER_COUNT; i++)
                free(capsule->limit_dirs[i]);
        free(capsule);
}

void capsule_hold(struct capsule *capsule) {
        capsule->held++;
}

bool capsule_release(struct capsule *capsule) {
        bool gone = capsule->gone;

        capsule->held--;
        if (gone && capsule->held == 0)
                capsule_free(capsule);
        return !gone;
}

void capsule_answer_error(struct capsule *capsule, const struct answer *answer, int error, const char *text) {
        if (answer->done)
                answer->done(capsule, error, text, answer->arg);
        else if (answer->saved_state)
                answer->saved_state(capsule, error, text, NULL, 0, answer->arg);
        else if (answer->flows)
                answer->flows(capsule, error, text, NULL, 0, answer->arg);
        else if (answer->rank_ends)
                answer->rank_ends(capsule, error, NULL, answer->arg);
}

void capsule_fail_pendings(struct capsule *capsule, int error, const char *text) {
        struct pending *p;

        capsule_hold(capsule);
        while ((p = STAILQ_FIRST(&capsule->pendings))) {
                STAILQ_REMOVE_HEAD(&capsule->pendings, entry);
                capsule_answer_error(capsule, &p->answer, error, text);
                free(p);
        }
        (void) capsule_release(capsule);
}

void capsule_unlink(struct capsule *capsule) {
        capsule_disconnect(capsule);
        if (capsule->report)
                event_free(capsule->report);
        capsule->report = NULL;
        cleanup_close_fd(&capsule->report_fd);
        LIST_REMOVE(capsule, entry);
        capsule->gone = true;
        if (capsule->held == 0)
                capsule_free(capsule);
}

const char *capsule_id(const struct capsule *capsule) {
        return capsule->id;
}

struct capsule *capsule_find(struct capsule_ctx *ctx, const char *id) {
        struct capsule *capsule;

        LIST_FOREACH (capsule, &ctx->capsules, entry)
                if (strcmp(capsule->id, id) == 0)
                        return capsule;
        return NULL;
}

pid_t capsule_init_pid(const struct capsule *capsule) {
        return capsule->init_pid;
}

char *capsule_payload_cgroup(const struct capsule *capsule) {
        return xasprintf("%s/payload", capsule->cgroup_dir);
}

char *capsule_init_cgroup(const struct capsule *capsule) {
        return xasprintf("%s/init", capsule->cgroup_dir);
}

const char *capsule_memory_cgroup(const struct capsule *capsule) {
        return capsule->limit_dirs[CONTROLLER_MEMORY];
}

const char *capsule_root(const struct capsule *capsule) {
        return capsule->init_pid > 0 ? capsule->root : NULL;
}

enum capsule_phase capsule_phase(const struct capsule *capsule) {
        return capsule->status.phase;
}

const char *capsule_phase_name(enum capsule_phase phase) {
        static const char *const names[] = { "creating",  "empty",    "running", "frozen", "dumping",
                                             "restoring", "restored", "exited",  "lost" };

        return (size_t) phase < ARRAY_SIZE(names) ? names[phase] : "?";
}

void capsule_get_status(const struct capsule *capsule, struct capsule_status *ret) {
        *ret = capsule->status;
}
