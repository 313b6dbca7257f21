/* Where arbitrary streams with right checksums put files: below the given directories, or
 * nowhere. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/util.h"
#include "daemon/image/place.h"
#include "tests/unit/image/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* The directory is on a tmpfs: offsets of pages are addresses. */
static char base[] = "/dev/shm/rmd-fuzz-place.XXXXXX";

static void base_remove(void) {
        (void) remove_tree(base);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
        (void) argc;
        (void) argv;
        if (!mkdtemp(base))
                abort();
        (void) atexit(base_remove);
        return 0;
}

static char *directory_make(const char *name) {
        char *path = xasprintf("%s/%s", base, name);

        if (mkdir(path, 0700) < 0)
                abort();
        return path;
}

/* A file beside the directories, which no name leads to. */
static void canary_check(const char *path, bool first) {
        cleanup_free char *text = NULL;

        if (first && write_file_atomic(path, "kept", 4, 0600, false) < 0)
                abort();
        if (read_file(path, 100, &text, NULL) < 0 || strcmp(text, "kept") != 0)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
        cleanup_free char *images = directory_make("images"), *tree = directory_make("tree");
        cleanup_free char *spool = xasprintf("%s/spool", base), *canary = xasprintf("%s/canary", base);
        struct image_place *place = image_place_create();
        struct image_reader *reader = NULL;
        struct rm_error err = { 0 };
        struct memory m;

        canary_check(canary, true);
        memory_init_of(&m, data, size_bytes);
        memory_reseal(&m);
        image_place_images(place, images);
        image_place_tree(place, "tmp", tree);
        image_place_file(place, "stdout", spool);
        if (image_reader_create(&m.source, image_place_target(place), image_place_delta(place), &reader, &err) == 0)
                (void) image_reader_run(reader, &err);
        image_reader_destroy(reader);
        image_place_destroy(place);
        memory_finish(&m);
        canary_check(canary, false);
        if (remove_tree(base) < 0 || mkdir(base, 0700) < 0)
                abort();
        return 0;
}
