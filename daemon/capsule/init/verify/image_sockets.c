#include "daemon/capsule/init/verify/image_sockets.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/init/base/identity.h"
#include "daemon/capsule/init/criu/image_fixup.h"
#include "daemon/capsule/init/verify/inventory.h"

enum { SCAN_USEC = 5000000 };

static void see_socket(void *arg, const char *path) {
        struct image_sockets *sockets = arg;

        if (inventory_is_carried(path) && !strstr(path, "/../"))
                return;
        sockets->paths = xgrow(sockets->paths, sockets->n, sizeof(*sockets->paths));
        sockets->paths[sockets->n++] = xstrdup(path);
}

int image_sockets_read(int images_fd, struct image_sockets *ret, struct rm_error *error) {
        cleanup_close int fd = openat(images_fd, "files.img", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        struct stat st;
        void *map;

        *ret = (struct image_sockets) { 0 };
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
                return error_set(error, -ENODATA, "there is no list of open files in the image");
        map = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map == MAP_FAILED)
                return error_sys(error, -errno, "cannot look through CRIU's images");
        (void) image_fixup_sockets(map, (size_t) st.st_size, see_socket, ret);
        (void) munmap(map, (size_t) st.st_size);
        return 0;
}

void image_sockets_finish(struct image_sockets *sockets) {
        for (size_t i = 0; i < sockets->n; i++)
                free(sockets->paths[i]);
        free(sockets->paths);
        *sockets = (struct image_sockets) { 0 };
}

/* Reports the number of the first name that something else has, or how many there are. */
static void scan_as_owner(int error, int report_fd, const void *arg) {
        const struct image_sockets *sockets = arg;
        struct stat st;
        size_t i = 0;

        while (error == 0 && i < sockets->n && (lstat(sockets->paths[i], &st) < 0 || S_ISSOCK(st.st_mode)))
                i++;
        (void) write_all(report_fd, &i, sizeof(i));
}

int image_sockets_check(const struct image_sockets *sockets, const Capsule__Spec *spec, struct rm_error *error) {
        size_t i = 0;
        int r;

        if (sockets->n == 0)
                return 0;
        r = identity_ask(spec, 0, scan_as_owner, sockets, SCAN_USEC, &i, sizeof(i));
        if (r < 0)
                return error_sys(error, r, "cannot look at the names of its sockets");
        if (i >= sockets->n)
                return 0;
        error_set(error, -EEXIST, "%.400s: a file stands where the job had a socket", sockets->paths[i]);
        error_clean(error);
        return -EEXIST;
}
