/* CRIU's images, whose content a user has shaped: what PID 1 and rm-mover look for in them. The
 * first byte says as which image the rest is read. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/init/criu/image_identity.h"
#include "daemon/capsule/init/criu/watches.h"
#include "daemon/criu_images/open_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OWNER = 1000, TID = 42, KINDS = 6 };

/* As the kernel's of one thread, and one file of each sort. */
struct world {
        Capsule__Spec spec;
        Capsule__Inventory inventory;
        Capsule__InventoryTask task, *tasks[1];
        Capsule__InventoryThread thread, *threads[1];
        Capsule__InventoryFile file, deleted, *files[2];
};

static void make_world(struct world *w) {
        capsule__spec__init(&w->spec);
        capsule__inventory__init(&w->inventory);
        capsule__inventory_task__init(&w->task);
        capsule__inventory_thread__init(&w->thread);
        capsule__inventory_file__init(&w->file);
        capsule__inventory_file__init(&w->deleted);
        w->spec.uid = w->spec.gid = OWNER;
        w->thread.tid = TID;
        w->thread.bounding = UINT64_C(0x1ffffffffff);
        w->file.name = (char *) "/home/a/data";
        w->deleted.name = (char *) "deleted";
        w->deleted.inode = 4711;
        w->deleted.uid = OWNER;
        w->deleted.mode = 0100600;
        *w->threads = &w->thread;
        *w->tasks = &w->task;
        w->files[0] = &w->file;
        w->files[1] = &w->deleted;
        w->task.threads = w->threads;
        w->inventory.tasks = w->tasks;
        w->inventory.files = w->files;
        w->task.n_threads = w->inventory.n_tasks = 1;
        w->inventory.n_files = ARRAY_SIZE(w->files);
}

/* An image that has passed passes again when its bounding set is lifted. */
static void scan_core(struct world *w, uint8_t *image, size_t size) {
        const struct image_identity_scope scope = { &w->spec, &w->inventory, 0 };
        cleanup_free uint8_t *lifted = xcalloc(1, image_identity_lifted_bytes(size));
        struct rm_error error = { 0 };
        size_t n;

        if (image_identity_check(&scope, image, size, TID, &error) < 0)
                return;
        n = image_identity_lift_bounding(image, size, lifted);
        w->thread.bounding = UINT64_MAX;
        if (n == 0 || n > image_identity_lifted_bytes(size) ||
            (image_identity_check(&scope, lifted, n, TID, &error) < 0 && !memmem(error.text, sizeof(error.text), "bounding", 8)))
                __builtin_trap();
}

static void scan_files(struct world *w, const char *name, uint8_t *image, size_t size) {
        uint8_t none[] = { 0x19, 0x43, 0x56, 0x54, 0x38, 0x31, 0x30, 0x56 };
        const struct criu_image images[] = { { (char *) name, image, size }, { (char *) "files.img", none, sizeof(none) } };
        struct rm_error error = { 0 };

        (void) open_files_check(images, ARRAY_SIZE(images), &w->inventory, &error);
}

static void scan_watches(const uint8_t *data, size_t size) {
        cleanup_free char *line = xcalloc(1, size + 1);
        struct watches watches = { 0 };

        memcpy(line, data, size);
        if (!watches_add(&watches, line) || watches.n > 1)
                __builtin_trap();
        watches_finish(&watches);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_free uint8_t *image = NULL;
        struct world w;

        if (size == 0)
                return 0;
        image = xcalloc(1, size);
        memcpy(image, data + 1, size - 1);
        make_world(&w);
        switch (*data % KINDS) {
        case 0:
                scan_core(&w, image, size - 1);
                break;
        case 1:
                (void) image_identity_check_memory(image, size - 1, NULL);
                break;
        case 2:
                scan_files(&w, "files.img", image, size - 1);
                break;
        case 3:
                scan_files(&w, "remap-fpath.img", image, size - 1);
                break;
        case 4:
                scan_files(&w, "ghost-file-1.img", image, size - 1);
                break;
        default:
                scan_watches(data + 1, size - 1);
        }
        return 0;
}
