#include "daemon/transfer/trees.h"

#include <stdlib.h>

#include "common/util.h"
#include "daemon/job/launch.h"
#include "daemon/state/state.h"

void transfer_trees_init(struct transfer_trees *ret, const struct config *config, const struct resident *resident) {
        /* These files are made again by the PID 1 of the restored capsule. */
        static char *run_private[] = { (char *) "criu.kdat", (char *) "rm/criu", (char *) "rm/io", (char *) "rm/hosts",
                                       (char *) "rm/door" };
        const char *root = capsule_root(resident_capsule(resident));

        for (size_t i = 0; i < ARRAY_SIZE(ret->trees); i++) {
                rm__mover_tree__init(&ret->trees[i]);
                ret->list[i] = &ret->trees[i];
        }
        ret->trees[0].role = (char *) "tmp";
        ret->trees[0].path = xasprintf("%s/tmp", root);
        ret->trees[1].role = (char *) "shm";
        ret->trees[1].path = xasprintf("%s/dev/shm", root);
        ret->trees[2].role = (char *) "run";
        ret->trees[2].path = xasprintf("%s/run", root);
        ret->trees[2].exclude = run_private;
        ret->trees[2].n_exclude = ARRAY_SIZE(run_private);
        ret->n = 3;
        if (resident_index(resident) != STATE_HEAD)
                return;
        ret->trees[3].role = (char *) "spool";
        ret->trees[3].path = launch_spool_dir(config, capsule_id(resident_capsule(resident)));
        ret->n = 4;
}

void transfer_trees_add_files(struct transfer_trees *trees, const char *images_dir) {
        Rm__MoverTree *tree = trees->list[trees->n++];

        tree->role = (char *) "files";
        tree->path = xasprintf("%s/" CAPSULE_FILES_DIR, images_dir);
        tree->still = true;
}

void transfer_trees_finish(struct transfer_trees *trees) {
        for (size_t i = 0; i < trees->n; i++)
                free(trees->trees[i].path);
}
