#include "daemon/transfer/images.h"

#include <errno.h>
#include <sys/mount.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/transfer/mover.h"

int images_mount(const char *dir, struct rm_error *err) {
        int r;

        remover_unmount(MOVER_PROGRAM, dir);
        (void) remove_tree(dir); /* not memory */
        r = mkdir_p(dir, 0700);
        if (r < 0)
                return error_sys(err, r, "making %s", dir);
        if (mount("rmd", dir, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700,size=90%,huge=never") < 0 &&
            mount("rmd", dir, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700,size=90%") < 0)
                return error_sys(err, -errno, "mounting a tmpfs on %s", dir);
        return 0;
}

void images_unmount(const char *dir) {
        remover_unmount(MOVER_PROGRAM, dir);
        (void) rmdir(dir);
}

int images_directory(struct remover *remover, const char *dir, struct rm_error *err) {
        int r;

        remover_add(remover, remover_set_aside(remover, dir));
        r = mkdir_p(dir, 0700);
        return r < 0 ? error_sys(err, r, "making %s", dir) : 0;
}
