#include "daemon/setup/nodename.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/openat.h"
#include "common/util.h"

#define NAME_MAX_BYTES 64U

static bool has_capsules(const char *runtime_dir) {
        cleanup_free char *path = xasprintf("%s/capsules", runtime_dir);
        cleanup_dir DIR *dir = opendir(path);
        const struct dirent *entry;

        while (dir && (entry = readdir(dir)))
                if (entry->d_name[0] == 'j')
                        return true;
        return false;
}

int nodename_keep(const char *runtime_dir, char **name, struct rm_error *err) {
        cleanup_free char *path = xasprintf("%s/node-name", runtime_dir);
        cleanup_free char *kept = NULL;
        int r = mkdir_p(runtime_dir, 0755);

        if (r < 0)
                return error_sys(err, r, "making %s", runtime_dir);
        if (read_file(path, NAME_MAX_BYTES, &kept, NULL) == 0 && name_valid(kept) && strcmp(kept, *name) != 0 &&
            has_capsules(runtime_dir)) {
                log_warn("this node is called '%s' now, but jobs have something on it as '%s': it stays '%s' until rmd is started "
                         "without them; see [node] name in rmd.conf(5)",
                         *name, kept, kept);
                free(*name);
                *name = take_ptr(kept);
                return 0;
        }
        r = write_file_atomic(path, *name, strlen(*name), 0644, false);
        return r < 0 ? error_sys(err, r, "writing %s", path) : 0;
}
