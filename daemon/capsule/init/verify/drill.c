#include "daemon/capsule/init/verify/drill.h"

#include <errno.h>
#include <sys/stat.h>

#include "common/error.h"
#include "daemon/capsule/init/verify/image_sockets.h"
#include "daemon/capsule/init/verify/inventory.h"
#include "daemon/capsule/init/verify/rollback.h"

static int refuse(const char *what, const char *path, struct rm_error *error) {
        error_set(error, -EOPNOTSUPP, "the job uses the %s %.300s while it runs, so this cannot be rehearsed", what, path);
        error_clean(error);
        return -EOPNOTSUPP;
}

/* Both ends of a pipe with a name have the same one, wherever they are opened: CRIU would put the
 * data of then into what the job reads now. */
static int search_pipes(const Capsule__Inventory *inventory, struct rm_error *error) {
        for (size_t f = 0; f < inventory->n_files; f++) {
                const Capsule__InventoryFile *file = inventory->files[f];

                if (inventory_has_path(file) && S_ISFIFO(file->mode) && !inventory_is_carried(file->name))
                        return refuse("named pipe", file->name, error);
        }
        return 0;
}

int drill_check(const Capsule__Inventory *inventory, const Capsule__Spec *spec, const struct image_sockets *sockets, int copies_fd,
                struct rm_error *error) {
        int r = search_pipes(inventory, error);

        /* CRIU binds a socket anew, in the place of what has its name. */
        if (r == 0 && sockets->n > 0)
                r = refuse("socket", sockets->paths[0], error);
        return r < 0 ? r : rollback_scan(inventory, spec, copies_fd, error);
}
