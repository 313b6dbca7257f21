/* The copies of CRIU's images that a checkpoint is judged by: whole, however they come, and no
 * longer than they may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/criu_images/open_files.h"
#include "daemon/mover/kept_images.h"
#include "proto/capsule.pb-c.h"

/* A files.img with the regular file /a, and a ghost file of inode 7, user 5 and mode 0100600, with
 * contents. */
static const uint8_t files[] = { 0x19, 0x43, 0x56, 0x54, 0x38, 0x31, 0x30, 0x56, 12,   0, 0,   0,
                                 0x08, 1,    0x10, 3,    0x1a, 6,    0x08, 3,    0x32, 2, '/', 'a' };
static const uint8_t ghost[] = { 0x19, 0x43, 0x56, 0x54, 0x05, 0x36, 0x58, 0x52, 8,    0,
                                 0,    0,    0x08, 5,    0x18, 0x80, 0x83, 0x02, 0x28, 7 };

static int check(const struct kept_images *k, const char *name, uint64_t inode) {
        Capsule__InventoryFile file = CAPSULE__INVENTORY_FILE__INIT, deleted = CAPSULE__INVENTORY_FILE__INIT;
        Capsule__InventoryFile *list[] = { &file, &deleted };
        Capsule__Inventory inventory = CAPSULE__INVENTORY__INIT;
        Capsule__SavedState saved_state = CAPSULE__SAVED_STATE__INIT;
        uint8_t packed[256];

        file.name = (char *) name;
        deleted.name = (char *) "deleted";
        deleted.uid = 5;
        deleted.mode = 0100600;
        deleted.inode = inode;
        inventory.files = list;
        inventory.n_files = ARRAY_SIZE(list);
        saved_state.inventory = &inventory;
        return kept_images_check(k, packed, capsule__saved_state__pack(&saved_state, packed), NULL);
}

static void add_in_parts(struct kept_images *k, size_t number, const uint8_t *bytes, size_t size, size_t part) {
        for (size_t at = 0; at < size; at += part)
                kept_images_add(k, number, bytes + at, size - at < part ? size - at : part);
}

static void test_parts(void **state) {
        static const uint8_t contents[70000];

        (void) state;
        for (size_t part = 1; part <= sizeof(files); part++) {
                struct kept_images *k = kept_images_create();
                size_t of_files, of_ghost;

                assert_int_equal(kept_images_begin(k, "pages-1.img"), 0);
                assert_int_equal(kept_images_begin(k, "core-1.img"), 0);
                of_files = kept_images_begin(k, "files.img");
                of_ghost = kept_images_begin(k, "ghost-file-1.img");
                assert_true(of_files > 0 && of_ghost > 0 && of_files != of_ghost);
                add_in_parts(k, of_ghost, ghost, sizeof(ghost), part);
                add_in_parts(k, of_files, files, sizeof(files), part);
                add_in_parts(k, of_ghost, contents, sizeof(contents), part * 1000);
                assert_int_equal(check(k, "/a", 7), 0);
                assert_int_equal(check(k, "/b", 7), -EPERM);
                assert_int_equal(check(k, "/a", 8), -EPERM);
                kept_images_destroy(k);
        }
}

static void test_too_much(void **state) {
        enum { PART = 1 << 20 };
        uint8_t *part = calloc(1, PART);
        struct kept_images *k = kept_images_create();
        size_t number = kept_images_begin(k, "files.img");

        (void) state;
        assert_non_null(part);
        for (size_t bytes = 0; bytes < OPEN_FILES_IMAGE_BYTES + 2 * (size_t) PART; bytes += PART)
                kept_images_add(k, number, part, PART);
        assert_int_equal(check(k, "/a", 7), -EFBIG);
        kept_images_destroy(k);
        free(part);
}

static void test_nothing(void **state) {
        struct kept_images *k = kept_images_create();

        (void) state;
        assert_int_equal(check(k, "/a", 7), -EBADMSG);
        assert_int_equal(kept_images_check(k, "\xff", 1, NULL), -EBADMSG);
        assert_int_equal(kept_images_check(k, "", 0, NULL), -EBADMSG);
        kept_images_destroy(k);
        kept_images_destroy(NULL);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_parts), cmocka_unit_test(test_too_much),
                                            cmocka_unit_test(test_nothing) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
