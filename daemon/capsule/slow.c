#include "daemon/capsule/slow.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/capsule/cgroup.h"
#include "daemon/capsule/private.h"

/* Processes fork meanwhile. */
#define PASSES_IN 2U
#define PASSES_OUT_MAX 10U

/* ---- v1: a group beside the others, into which the processes go ---- */

/* Moves all processes of a group to another one. Returns how many went. */
static unsigned move_all(const char *from, const char *to) {
        cleanup_free char *path = xasprintf("%s/cgroup.procs", from);
        cleanup_file FILE *f = fopen(path, "re");
        cleanup_free char *line = NULL;
        size_t size = 0;
        unsigned n = 0;

        while (f && getline(&line, &size, f) > 0)
                n += controllers_write(to, "cgroup.procs", line) == 0;
        return n;
}

static char *make_v1(const char *parent, const char *id, const char *payload) {
        cleanup_free char *dir = parent ? xasprintf("%s/%s", parent, id) : NULL;

        if (!dir || (mkdir(parent, 0755) < 0 && errno != EEXIST) || (mkdir(dir, 0755) < 0 && errno != EEXIST))
                return NULL;
        for (unsigned i = 0; i < PASSES_IN; i++)
                (void) move_all(payload, dir);
        return take_ptr(dir);
}

/* Back to where rmd is, and with it all capsules. */
static void remove_v1(const char *parent, const char *id) {
        cleanup_free char *dir = xasprintf("%s/%s", parent, id);
        cleanup_free char *own = xasprintf("%s/..", parent);

        if (access(dir, F_OK) < 0)
                return;
        for (unsigned i = 0; i < PASSES_OUT_MAX && move_all(dir, own) > 0; i++)
                ;
        if (rmdir(dir) < 0)
                log_warn("%s: cannot be removed: %s", dir, strerror(errno));
}

/* ---- both ---- */

char *capsule_slow_begin(struct capsule *capsule) {
        cleanup_free char *payload = capsule_payload_cgroup(capsule);

        if (cgroup_is_v1(payload) == 0 && controllers_enable(payload, "cpu"))
                return take_ptr(payload);
        return make_v1(capsule->ctx->controllers.cpu_v1, capsule->id, payload);
}

void slow_group_remove(const struct capsule_ctx *ctx, const char *id, const char *cgroup_dir) {
        if (!ctx->cgroup_v1) {
                (void) controllers_write(cgroup_dir, "cgroup.subtree_control", "-cpu");
                /* Refused while another capsule has it. */
                (void) controllers_write(ctx->cgroup_parent, "cgroup.subtree_control", "-cpu");
        }
        if (ctx->controllers.cpu_v1)
                remove_v1(ctx->controllers.cpu_v1, id);
}

void capsule_slow_end(struct capsule *capsule) {
        slow_group_remove(capsule->ctx, capsule->id, capsule->cgroup_dir);
}
