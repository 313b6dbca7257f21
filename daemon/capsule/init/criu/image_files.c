#include "daemon/capsule/init/criu/image_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/error.h"
#include "common/openat.h"
#include "common/util.h"
#include "daemon/criu_images/open_files.h"

struct images {
        struct criu_image *list;
        size_t n;
};

/* `most`: bytes; of a longer one, one byte more. */
static int take_image(struct images *images, int dir_fd, const char *name, size_t most) {
        cleanup_close int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        struct criu_image *image;
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        images->list = xgrow(images->list, images->n, sizeof(*images->list));
        image = &images->list[images->n++];
        image->size = (uint64_t) st.st_size > most ? most + (most == OPEN_FILES_IMAGE_BYTES) : (size_t) st.st_size;
        image->name = xstrdup(name);
        image->bytes = xcalloc(1, image->size + 1);
        return read_all(fd, image->bytes, image->size);
}

static void images_finish(struct images *images) {
        for (size_t i = 0; i < images->n; i++) {
                free(images->list[i].name);
                free(images->list[i].bytes);
        }
        free(images->list);
}

int image_files_check(int images_fd, const Capsule__Inventory *inventory, struct rm_error *error) {
        cleanup_dir DIR *dir = opendir_at(images_fd, ".");
        struct images images = { 0 };
        int r = dir ? 0 : -errno;
        const char *name;

        while (r == 0 && (name = next_name(dir))) {
                size_t most = open_files_needs(name);

                if (most > 0)
                        r = take_image(&images, images_fd, name, most);
        }
        r = r < 0 ? error_sys(error, r, "cannot look through CRIU's images")
                  : open_files_check(images.list, images.n, inventory, error);
        images_finish(&images);
        return r;
}
