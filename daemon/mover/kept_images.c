#include "daemon/mover/kept_images.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/criu_images/open_files.h"
#include "proto/capsule.pb-c.h"

enum { SPACE_BYTES = 4096 };

struct kept_images {
        struct criu_image *list;
        size_t n;
};

struct kept_images *kept_images_create(void) {
        return xcalloc(1, sizeof(struct kept_images));
}

void kept_images_destroy(struct kept_images *k) {
        if (!k)
                return;
        for (size_t i = 0; i < k->n; i++) {
                free(k->list[i].name);
                free(k->list[i].bytes);
        }
        free(k->list);
        free(k);
}

size_t kept_images_begin(struct kept_images *k, const char *name) {
        if (open_files_needs(name) == 0)
                return 0;
        k->list = xgrow(k->list, k->n, sizeof(*k->list));
        k->list[k->n++] = (struct criu_image) { .name = xstrdup(name) };
        return k->n;
}

/* The room is a power of two from SPACE_BYTES on. */
static void make_space(struct criu_image *image, size_t more) {
        size_t space = SPACE_BYTES;

        while (space < image->size)
                space *= 2;
        if (image->bytes && image->size + more <= space)
                return;
        while (space < image->size + more)
                space *= 2;
        image->bytes = xrealloc(image->bytes, space);
}

void kept_images_add(struct kept_images *k, size_t number, const void *data, size_t size_bytes) {
        struct criu_image *image = &k->list[number - 1];
        size_t most = open_files_needs(image->name);

        /* A byte more tells that it is too long. */
        most += most == OPEN_FILES_IMAGE_BYTES;
        if (size_bytes > most - image->size)
                size_bytes = most - image->size;
        if (size_bytes == 0)
                return;
        make_space(image, size_bytes);
        memcpy(image->bytes + image->size, data, size_bytes);
        image->size += size_bytes;
}

int kept_images_check(const struct kept_images *k, const void *saved_state, size_t saved_state_bytes, struct rm_error *err) {
        Capsule__SavedState *m = capsule__saved_state__unpack(NULL, saved_state_bytes, saved_state);
        int r;

        if (!m || !m->inventory)
                r = error_set(err, -EBADMSG, "there is no inventory to compare the image with");
        else
                r = open_files_check(k->list, k->n, m->inventory, err);
        capsule__saved_state__free_unpacked(m, NULL);
        return r;
}
