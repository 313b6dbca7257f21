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

static int write_into(const char *dir, const char *name, const char *text) {
        cleanup_free char *path = xasprintf("%s/%s", dir, name);

        return write_text(path, text);
}

/* ---- v1: a group beside the others, into which the processes go ---- */

/* How many went. */
static unsigned move_all(const char *from, const char *to) {
        cleanup_free char *path = xasprintf("%s/cgroup.procs", from);
        cleanup_file FILE *f = fopen(path, "re");
        cleanup_free char *line = NULL;
        size_t size = 0;
        unsigned n = 0;

        while (f && getline(&line, &size, f) > 0)
                n += write_into(to, "cgroup.procs", line) == 0;
        return n;
}

static char *v1_dir(const char *id, char **ret_parent) {
        *ret_parent = controllers_find_v1("cpu");
        return *ret_parent ? xasprintf("%s/%s", *ret_parent, id) : NULL;
}

static char *make_v1(const char *id, const char *payload) {
        cleanup_free char *parent = NULL;
        cleanup_free char *dir = v1_dir(id, &parent);

        if (!dir || (mkdir(parent, 0755) < 0 && errno != EEXIST) || (mkdir(dir, 0755) < 0 && errno != EEXIST))
                return NULL;
        for (unsigned i = 0; i < PASSES_IN; i++)
                (void) move_all(payload, dir);
        return take_ptr(dir);
}

/* Back to where rmd is, and with it all capsules. */
static void remove_v1(const char *id) {
        cleanup_free char *parent = NULL;
        cleanup_free char *dir = v1_dir(id, &parent);
        cleanup_free char *own = parent ? xasprintf("%s/..", parent) : NULL;

        if (!dir || access(dir, F_OK) < 0)
                return;
        for (unsigned i = 0; i < PASSES_OUT_MAX && move_all(dir, own) > 0; i++)
                ;
        if (rmdir(dir) < 0)
                log_warn("%s: cannot be removed: %s", dir, strerror(errno));
}

/* ---- both ---- */

char *slow_group_make(const char *id, const char *cgroup_dir) {
        cleanup_free char *payload = xasprintf("%s/payload", cgroup_dir);

        if (cgroup_is_v1(cgroup_dir) == 0 && controllers_enable(payload, "cpu"))
                return take_ptr(payload);
        return make_v1(id, payload);
}

void slow_group_remove(const char *id, const char *cgroup_parent, const char *cgroup_dir) {
        if (cgroup_is_v1(cgroup_parent) == 0) {
                (void) write_into(cgroup_dir, "cgroup.subtree_control", "-cpu");
                /* Refused while another capsule has it. */
                (void) write_into(cgroup_parent, "cgroup.subtree_control", "-cpu");
        }
        remove_v1(id);
}

char *capsule_slow_begin(struct capsule *capsule) {
        return slow_group_make(capsule->id, capsule->cgroup_dir);
}

void capsule_slow_end(struct capsule *capsule) {
        slow_group_remove(capsule->id, capsule->ctx->cgroup_parent, capsule->cgroup_dir);
}
