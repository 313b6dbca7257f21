#include "daemon/capsule/init/base/groups.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/cgroup.h"
#include "daemon/capsule/init/core.h"

static int open_dir(const char *path, const char *leaf, struct rm_error *error) {
        cleanup_free char *full = xasprintf("%s/%s", path, leaf);
        int fd = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return fd >= 0 ? fd : error_sys(error, -errno, "cannot open %s", full);
}

/* Controllers of a v2 tree are where the freezer is, and several of a v1 hierarchy in one place. */
static bool seen(const Capsule__Spec *spec, size_t which) {
        bool same = !*spec->limit_dirs[which] || strcmp(spec->limit_dirs[which], spec->cgroup_dir) == 0;

        for (size_t i = 0; i < which && !same; i++)
                same = strcmp(spec->limit_dirs[i], spec->limit_dirs[which]) == 0;
        return same;
}

int groups_open(struct core *core, struct rm_error *error) {
        static const char *const leaves[] = { [LEAF_INIT] = "init", [LEAF_PAYLOAD] = "payload" };
        struct node_fds *node = &core->node;

        node->cgroup_init = open_dir(core->spec->cgroup_dir, leaves[LEAF_INIT], error);
        node->cgroup_payload = open_dir(core->spec->cgroup_dir, leaves[LEAF_PAYLOAD], error);
        if (node->cgroup_init < 0 || node->cgroup_payload < 0)
                return -EIO;
        for (size_t i = 0; i < LIMIT_GROUPS_MAX; i++) {
                bool other = i < core->spec->n_limit_dirs && !seen(core->spec, i);

                for (enum leaf leaf = LEAF_INIT; leaf <= LEAF_PAYLOAD; leaf++) {
                        node->limit_groups[i][leaf] = other ? open_dir(core->spec->limit_dirs[i], leaves[leaf], error) : -1;
                        if (other && node->limit_groups[i][leaf] < 0)
                                return -EIO;
                }
        }
        return 0;
}

int groups_enter(const struct core *core, enum leaf leaf, pid_t pid) {
        const struct node_fds *node = &core->node;
        int r = cgroup_enter(leaf == LEAF_INIT ? node->cgroup_init : node->cgroup_payload, pid);

        for (size_t i = 0; i < LIMIT_GROUPS_MAX && r == 0; i++)
                if (node->limit_groups[i][leaf] >= 0)
                        r = cgroup_enter(node->limit_groups[i][leaf], pid);
        return r;
}
