#include "daemon/capsule/init/rehearsal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/init/image_fixup.h"
#include "daemon/capsule/init/inventory.h"
#include "daemon/capsule/init/rollback.h"

static int refuse(const char *what, const char *path, struct rm_error *error) {
        error_set(error, -EOPNOTSUPP, "the job uses the %s %.300s while it runs, so this cannot be rehearsed", what, path);
        error_clean(error);
        return -EOPNOTSUPP;
}

/* Both ends of a pipe with a name have the same one, wherever they are opened: CRIU would put the data of then into what the job reads now. */
static int look_for_pipes(const Capsule__Inventory *inventory, struct rm_error *error) {
        for (size_t f = 0; f < inventory->n_files; f++) {
                const Capsule__InventoryFile *file = inventory->files[f];

                if (inventory_has_path(file) && S_ISFIFO(file->mode) && !inventory_is_carried(file->name))
                        return refuse("named pipe", file->name, error);
        }
        return 0;
}

static void see_socket(void *arg, const char *path) {
        char **found = arg;

        if (!*found && (!inventory_is_carried(path) || strstr(path, "/../")))
                *found = xstrdup(path);
}

/* CRIU binds a socket anew, in the place of what has its name. */
static int look_for_sockets(int images_fd, struct rm_error *error) {
        cleanup_close int fd = openat(images_fd, "files.img", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        cleanup_free char *found = NULL;
        struct stat st;
        void *map;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
                return error_set(error, -ENODATA, "there is no list of open files in the image");
        map = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map == MAP_FAILED)
                return error_sys(error, -errno, "cannot look through CRIU's images");
        (void) image_fixup_sockets(map, (size_t) st.st_size, see_socket, &found);
        (void) munmap(map, (size_t) st.st_size);
        return found ? refuse("socket", found, error) : 0;
}

int rehearsal_check(const Capsule__Inventory *inventory, const Capsule__Spec *spec, int images_fd, int copies_fd,
                    struct rm_error *error) {
        int r = look_for_pipes(inventory, error);

        if (r == 0)
                r = look_for_sockets(images_fd, error);
        return r < 0 ? r : rollback_look(inventory, spec, copies_fd, error);
}
