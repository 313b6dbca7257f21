/* Writes the seeds of fuzz_store into a directory: manifests with every kind of object, and with
 * nothing.
 * usage: make_store_seeds DIRECTORY */
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "daemon/store/manifest.h"

static struct checkpoint_object *object_add(struct checkpoint *c, Rm__ImageKind kind, const char *role, const char *path) {
        static const struct image_attribute attributes[] = { { "user.tag", "value", 5 } };
        struct image_object o = { kind, role, path, "", 0640, 1000, 100, 1700000000, 5, NULL, 0, 0 };
        struct checkpoint_object *object;

        if (kind == RM__IMAGE_KIND__IMAGE_KIND_SYMLINK || kind == RM__IMAGE_KIND__IMAGE_KIND_HARDLINK)
                o.target = "a/b";
        if (kind == RM__IMAGE_KIND__IMAGE_KIND_REGULAR) {
                o.attributes = attributes;
                o.n_attributes = 1;
        }
        object = checkpoint_object_create(&o);
        object->size_bytes = object->map ? 9 * IMAGE_BLOCK_BYTES + 1 : 0;
        (void) checkpoint_add(c, object, NULL);
        return object;
}

static void objects_add(struct checkpoint *c, uint32_t block) {
        static const struct {
                Rm__ImageKind kind;
                const char *role;
                const char *path;
        } list[] = {
                { RM__IMAGE_KIND__IMAGE_KIND_CRIU, "", "core-1.img" },    { RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY, "tmp", "a" },
                { RM__IMAGE_KIND__IMAGE_KIND_REGULAR, "tmp", "a/b" },     { RM__IMAGE_KIND__IMAGE_KIND_SYMLINK, "tmp", "a/link" },
                { RM__IMAGE_KIND__IMAGE_KIND_HARDLINK, "tmp", "a/hard" }, { RM__IMAGE_KIND__IMAGE_KIND_FIFO, "tmp", "a/fifo" },
                { RM__IMAGE_KIND__IMAGE_KIND_DIRECTORY_END, "tmp", "a" }, { RM__IMAGE_KIND__IMAGE_KIND_SPOOL, "stdout", "" },
                { RM__IMAGE_KIND__IMAGE_KIND_PAGES, "", "17" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(list); i++) {
                struct checkpoint_object *object = object_add(c, list[i].kind, list[i].role, list[i].path);

                if (object->map) {
                        blockmap_put(object->map, 0, block);
                        blockmap_put(object->map, 1, block);
                        blockmap_put(object->map, 9, block);
                }
                if (object->present) {
                        (void) pageset_add(object->present, 0, 2 * IMAGE_BLOCK_BYTES);
                        (void) pageset_add(object->present, 9 * IMAGE_BLOCK_BYTES, 20 * IMAGE_BLOCK_BYTES);
                }
        }
        (void) checkpoint_add_meta(c, "carry", "some bytes", 10, NULL);
        checkpoint_add_pack(c, 1, 5000);
        checkpoint_add_pack(c, 4, 70000);
}

static int seed_write(const char *directory, const char *name, const struct checkpoint *c, const struct index *ix) {
        static const struct store_key key;
        cleanup_free char *path = xasprintf("%s/%s", directory, name);
        cleanup_file FILE *f = fopen(path, "w");

        return f ? manifest_write(f, c, ix, &key, NULL) : -EIO;
}

int main(int argc, char **argv) {
        const uint8_t hash[INDEX_HASH_BYTES] = { 1, 2, 3 };
        struct checkpoint *full = checkpoint_create(4), *empty = checkpoint_create(1);
        struct index ix;
        uint32_t frame;
        int r;

        if (argc != 2) {
                (void) fputs("usage: make_store_seeds DIRECTORY\n", stderr);
                return 2;
        }
        index_init(&ix, 0);
        frame = index_frame_add(&ix, NULL);
        objects_add(full, index_block_add(&ix, frame, hash, 100));
        r = seed_write(argv[1], "full", full, &ix);
        if (r == 0)
                r = seed_write(argv[1], "empty", empty, &ix);
        if (r < 0)
                (void) fprintf(stderr, "make_store_seeds: cannot write to %s\n", argv[1]);
        checkpoint_destroy(full);
        checkpoint_destroy(empty);
        index_finish(&ix);
        return r < 0 ? 1 : 0;
}
