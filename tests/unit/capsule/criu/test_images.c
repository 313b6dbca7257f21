/* The checks of PID 1 on CRIU's images: rights that a process is to get and did not have, and files
 * that the inventory does not know. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/error.h"
#include "common/util.h"
#include "daemon/capsule/init/criu/image_identity.h"
#include "daemon/capsule/init/criu/image_memory.h"
#include "daemon/criu_images/fields.h"
#include "daemon/criu_images/open_files.h"
#include "tests/unit/capsule/criu/image_writer.h"

/* ---- rights ---- */

enum { OWNER = 1000, TID = 42, NUMBERS = 20 };

/* As creds_entry has them, by the numbers of its fields. */
struct rights {
        uint64_t ids[9];
        uint64_t sets[NUMBERS][2];
        uint64_t securebits;
        uint64_t groups[4];
        size_t n_groups;
        uint64_t no_new_privs; /* 0: not there, as CRIU writes it */
        uint64_t seccomp;
        bool without; /* creds_entry is missing */
        bool twice;
};

static const uint64_t bounding = UINT64_C(0x1fffeffffff);

static struct rights of_owner(void) {
        struct rights r = { .groups = { 27, OWNER, 2000 }, .n_groups = 3, .seccomp = 2 };

        for (int i = 1; i <= 8; i++)
                r.ids[i] = OWNER;
        r.sets[12][0] = bounding & UINT32_MAX;
        r.sets[12][1] = bounding >> 32;
        return r;
}

static struct message core_of(const struct rights *r) {
        static const unsigned sets[] = { 9, 10, 11, 12, 19 };
        struct message creds = { 0 }, thread = { 0 }, core = { 0 }, image = begin_image(0x55053847);

        for (unsigned i = 1; i <= 8; i++)
                put_number(&creds, i, r->ids[i]);
        for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
                for (int word = 0; word < 2; word++)
                        put_number(&creds, sets[i], r->sets[sets[i]][word]);
        put_number(&creds, 13, r->securebits);
        for (size_t i = 0; i < r->n_groups; i++)
                put_number(&creds, 14, r->groups[i]);
        put_bytes(&creds, 15, "unconfined", 10);
        if (r->no_new_privs)
                put_number(&creds, 18, r->no_new_privs);
        put_number(&thread, 1, 0);
        for (int i = r->without ? 2 : r->twice ? 0 : 1; i < 2; i++)
                put_message(&thread, 10, &creds);
        put_number(&thread, 11, r->seccomp);
        put_bytes(&thread, 13, "ring", 4);
        put_number(&core, 1, 1);
        put_bytes(&core, 2, "registers", 9);
        put_bytes(&core, 3, "task", 4);
        put_message(&core, 5, &thread);
        put_entry(&image, &core);
        return image;
}

static int check_bytes(struct message *image, pid_t tid, uint64_t set, struct rm_error *error) {
        static uint32_t groups[] = { 2000, OWNER, 27 };
        Capsule__InventoryThread thread = CAPSULE__INVENTORY_THREAD__INIT, *threads[] = { &thread };
        Capsule__InventoryTask task = CAPSULE__INVENTORY_TASK__INIT, *tasks[] = { &task };
        Capsule__Inventory inventory = CAPSULE__INVENTORY__INIT;
        Capsule__Spec spec = CAPSULE__SPEC__INIT;
        const struct image_identity_scope scope = { &spec, &inventory, 0 };
        uint8_t *copy = malloc(image->size + 1); /* its end is watched by the sanitizer */
        int r;

        assert_non_null(copy);
        memcpy(copy, image->bytes, image->size);
        spec.uid = spec.gid = OWNER;
        spec.groups = groups;
        spec.n_groups = ARRAY_SIZE(groups);
        thread.tid = TID;
        thread.seccomp = 2;
        thread.bounding = set;
        task.threads = threads;
        task.n_threads = 1;
        inventory.tasks = tasks;
        inventory.n_tasks = 1;
        r = image_identity_check(&scope, copy, image->size, tid, error);
        free(copy);
        return r;
}

static int check(const struct rights *r, struct rm_error *error) {
        struct message image = core_of(r);

        return check_bytes(&image, TID, bounding, error);
}

static void refused(struct rights r, const char *why) {
        struct rm_error error = { 0 };

        if (check(&r, &error) != -EPERM)
                fail_msg("not refused: %s", why);
        if (!strstr(error.text, why))
                fail_msg("'%s' does not say '%s'", error.text, why);
        assert_ptr_equal(strstr(error.text, "thread 42 in the image"), error.text);
}

#define REFUSED(change, why)                                                                                                       \
        do {                                                                                                                       \
                struct rights r = of_owner();                                                                                      \
                change;                                                                                                            \
                refused(r, why);                                                                                                   \
        } while (0)

/* A process of the owner's writes into the memory where CRIU has these from. */
static void test_rights_from_memory(void **state) {
        struct rights ordinary = of_owner();

        (void) state;
        assert_int_equal(check(&ordinary, NULL), 0);
        REFUSED(r.securebits = 4, "securebits 0x4, not 0");        /* SECBIT_NO_SETUID_FIXUP */
        REFUSED(r.securebits = 0x2f, "securebits 0x2f");           /* what makes a set-user-ID root program a user's */
        REFUSED(r.securebits = 0x30, "securebits 0x30");           /* SECBIT_KEEP_CAPS, and its lock */
        for (unsigned i = 1; i <= 8; i++)
                REFUSED(r.ids[i] = 0, i % 2 ? "user id 0" : "group id 0");
        REFUSED(r.groups[2] = 0, "other groups");
        REFUSED(r.groups[r.n_groups++] = 42, "other groups");
        REFUSED(r.n_groups--, "other groups");
        REFUSED(r.sets[9][0] = 1, "capabilities");
        REFUSED(r.sets[10][1] = 0x100, "capabilities");
        REFUSED(r.sets[11][0] = 1U << 21, "capabilities");
        REFUSED(r.sets[19][1] = 1, "capabilities");
        REFUSED(r.sets[12][0] = UINT32_MAX, "bounding set");
        REFUSED(r.sets[12][1] = 0, "bounding set");
        REFUSED(r.no_new_privs = 1, "no_new_privs 1, had 0");
        REFUSED(r.seccomp = 0, "seccomp mode 0, had 2");
}

static void test_unknown_threads(void **state) {
        struct rights r = of_owner();
        struct message image = core_of(&r), core = { 0 }, zombie = begin_image(0x55053847);
        struct rm_error error = { 0 };

        (void) state;
        assert_int_equal(check_bytes(&image, TID + 1, bounding, &error), -EPERM);
        assert_non_null(strstr(error.text, "did not exist"));
        r.without = true;
        assert_int_equal(check(&r, NULL), -EBADMSG);
        r = of_owner();
        r.twice = true;
        assert_int_equal(check(&r, NULL), -EBADMSG);
        put_number(&core, 1, 1);
        put_bytes(&core, 3, "task", 4);
        put_entry(&zombie, &core);
        assert_int_equal(check_bytes(&zombie, TID + 1, bounding, NULL), 0);
        zombie.bytes[4]++;
        assert_int_equal(check_bytes(&zombie, TID + 1, bounding, NULL), -EBADMSG);
}

/* Cut short anywhere, or with any byte changed, it is refused or means the same, and nothing
 * outside is touched. */
static void test_damaged(void **state) {
        struct rights r = of_owner();
        struct message image = core_of(&r);

        (void) state;
        for (size_t n = 0; n < image.size; n++) {
                struct message cut = image;

                cut.size = n;
                assert_int_equal(check_bytes(&cut, TID, bounding, NULL), -EBADMSG);
        }
        for (size_t n = 0; n < image.size; n++)
                for (unsigned value = 0; value < 256; value++) {
                        struct message copy = image;

                        copy.bytes[n] = (uint8_t) value;
                        (void) check_bytes(&copy, TID, bounding, NULL);
                }
}

/* CRIU then has nothing to drop; all else is as it was, however few bytes the set had. */
static void test_bounding(void **state) {
        static const uint64_t sets[] = {
                0, 1, UINT64_C(0x10000000000), UINT64_C(0x1ffffffffff), UINT64_C(0x1fffeffffff), UINT64_MAX
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
                struct rights r = of_owner();
                struct message image, lifted = { 0 };
                uint8_t *space;

                r.sets[12][0] = sets[i] & UINT32_MAX;
                r.sets[12][1] = sets[i] >> 32;
                image = core_of(&r);
                assert_int_equal(check_bytes(&image, TID, sets[i], NULL), 0);
                space = malloc(image_identity_lifted_bytes(image.size));
                assert_non_null(space);
                lifted.size = image_identity_lift_bounding(image.bytes, image.size, space);
                assert_true(lifted.size > 0 && lifted.size <= image_identity_lifted_bytes(image.size));
                memcpy(lifted.bytes, space, lifted.size);
                free(space);
                assert_int_equal(check_bytes(&lifted, TID, UINT64_MAX, NULL), 0);
                assert_non_null(memmem(lifted.bytes, lifted.size, "registers", 9));
                assert_non_null(memmem(lifted.bytes, lifted.size, "unconfined", 10));
                assert_non_null(memmem(lifted.bytes, lifted.size, "ring", 4));
        }
}

static int check_memory(uint64_t dumpable, bool there, size_t cut) {
        struct message mm = { 0 }, image = begin_image(0x57492820);

        put_number(&mm, 1, 0x400000);
        put_bytes(&mm, 14, "mapping", 7);
        if (there)
                put_number(&mm, 15, dumpable);
        put_number(&mm, 17, 1);
        put_entry(&image, &mm);
        return image_identity_check_memory(image.bytes, image.size - cut, NULL);
}

static void test_dumpable(void **state) {
        (void) state;
        assert_int_equal(check_memory(1, true, 0), 0);
        assert_int_equal(check_memory(0, true, 0), -EPERM);
        assert_int_equal(check_memory(2, true, 0), -EPERM);
        assert_int_equal(check_memory(UINT64_MAX, true, 0), -EPERM);
        assert_int_equal(check_memory(1, false, 0), -EBADMSG);
        for (size_t cut = 1; cut < 20; cut++)
                assert_int_equal(check_memory(1, true, cut), -EBADMSG);
}

/* ---- files ---- */

enum { INODE = 4711, GHOST_MODE = 0100640, FIFO_MODE = 0010600 };

/* The images of a group that has /home/a/data open and a file without a name, and another that lost
 * one of its names. */
struct files {
        struct message files, remaps, ghost;
        const char *ghost_name;
};

static void put_file(struct message *image, unsigned type, unsigned id, const char *name) {
        struct message reg = { 0 }, entry = { 0 };

        put_number(&entry, 1, type);
        put_number(&entry, 2, id);
        if (name) {
                put_number(&reg, 1, id);
                put_number(&reg, 2, 0100000);
                put_bytes(&reg, 6, name, strlen(name));
                put_number(&reg, 10, 0100644);
                put_message(&entry, 3, &reg);
        }
        put_entry(image, &entry);
}

static void put_remap(struct message *image, unsigned file, unsigned by, unsigned type) {
        struct message entry = { 0 };

        put_number(&entry, 1, file);
        put_number(&entry, 2, by);
        put_number(&entry, 3, type);
        put_entry(image, &entry);
}

static struct message ghost_of(uint64_t inode, uint64_t uid, uint64_t mode) {
        struct message image = begin_image(0x52583605), entry = { 0 };

        put_number(&entry, 1, uid);
        put_number(&entry, 2, OWNER);
        put_number(&entry, 3, mode);
        put_number(&entry, 4, 0x58);
        put_number(&entry, 5, inode);
        put_entry(&image, &entry);
        memcpy(image.bytes + image.size, "contents", 8);
        image.size += 8;
        return image;
}

static struct files ordinary_files(void) {
        struct files f = { begin_image(0x56303138), begin_image(0x59133954), ghost_of(INODE, OWNER, GHOST_MODE),
                           "ghost-file-a.img" };

        put_file(&f.files, 1, 1, "/home/a/data");
        put_file(&f.files, 4, 2, NULL);
        put_file(&f.files, 1, 3, "/home/a/gone");
        put_remap(&f.remaps, 3, 10, 1);
        put_file(&f.files, 1, 5, "/home/a/link_remap.5");
        put_file(&f.files, 1, 4, "/home/a/renamed");
        put_remap(&f.remaps, 4, 5, 0);
        return f;
}

static int check_files(struct files *f, uint64_t inode, struct rm_error *error) {
        struct criu_image images[] = {
                { (char *) "files.img", f->files.bytes, f->files.size },
                { (char *) "remap-fpath.img", f->remaps.bytes, f->remaps.size },
                { (char *) f->ghost_name, f->ghost.bytes, f->ghost.size },
                { (char *) "core-1.img", NULL, 0 },
        };
        Capsule__InventoryFile data = CAPSULE__INVENTORY_FILE__INIT, deleted = CAPSULE__INVENTORY_FILE__INIT;
        Capsule__InventoryFile fifo = CAPSULE__INVENTORY_FILE__INIT;
        Capsule__InventoryFile socket = CAPSULE__INVENTORY_FILE__INIT, *files[] = { &socket, &data, &deleted, &fifo };
        Capsule__Inventory inventory = CAPSULE__INVENTORY__INIT;

        socket.name = (char *) "socket:";
        data.name = (char *) "/home/a/data";
        deleted.name = (char *) "deleted";
        deleted.uid = OWNER;
        deleted.mode = GHOST_MODE;
        deleted.inode = inode;
        fifo.name = (char *) "deleted";
        fifo.uid = OWNER;
        fifo.mode = FIFO_MODE;
        fifo.inode = inode;
        inventory.files = files;
        inventory.n_files = ARRAY_SIZE(files);
        return open_files_check(images, ARRAY_SIZE(images), &inventory, error);
}

#define UNKNOWN(change, why)                                                                                                       \
        do {                                                                                                                       \
                struct files f = ordinary_files();                                                                                 \
                struct rm_error error = { 0 };                                                                                     \
                change;                                                                                                            \
                if (check_files(&f, INODE, &error) != -EPERM || !strstr(error.text, why))                                          \
                        fail_msg("not refused: %s, but '%s'", why, error.text);                                                    \
        } while (0)

/* A process that CRIU asks may answer with files that it had not open. */
static void test_unknown_files(void **state) {
        struct files ordinary = ordinary_files();

        (void) state;
        assert_int_equal(check_files(&ordinary, INODE, NULL), 0);
        assert_int_equal(check_files(&ordinary, 0, NULL), -EPERM);
        /* CRIU was told another number of a FIFO. */
        ordinary.ghost = ghost_of(INODE + 1, OWNER, FIFO_MODE);
        assert_int_equal(check_files(&ordinary, INODE, NULL), 0);
        UNKNOWN(f.ghost = ghost_of(INODE, 0, FIFO_MODE), "the contents of a file without a name");
        UNKNOWN(f.ghost = ghost_of(INODE, OWNER, 0010640), "the contents of a file without a name");
        UNKNOWN(f.ghost = ghost_of(INODE + 1, OWNER, GHOST_MODE), "the contents of a file without a name");
        UNKNOWN(f.ghost = ghost_of(INODE, 0, GHOST_MODE), "the contents of a file without a name");
        UNKNOWN(f.ghost = ghost_of(INODE, OWNER, 0100600), "the contents of a file without a name");
        UNKNOWN(put_file(&f.files, 1, 9, "/etc/shadow"), "/etc/shadow");
        UNKNOWN(put_file(&f.files, 1, 9, "/home/a/dat"), "/home/a/dat");
        UNKNOWN(put_file(&f.files, 1, 9, "/home/a/link_remap.9"), "link_remap.9");
        UNKNOWN(put_remap(&f.remaps, 9, 1, 2), "of a process that has ended");
        UNKNOWN(put_file(&f.files, 14, 9, NULL), "kind 14"); /* a namespace */
        UNKNOWN(put_file(&f.files, 12, 9, NULL), "kind 12"); /* fanotify */
        UNKNOWN(put_file(&f.files, 10, 9, NULL), "kind 10"); /* a packet socket */
        UNKNOWN(put_file(&f.files, 99, 9, NULL), "kind 99");
}

static void test_damaged_files(void **state) {
        struct files f = ordinary_files();
        struct criu_image none = { (char *) "core-1.img", NULL, 0 };
        Capsule__Inventory inventory = CAPSULE__INVENTORY__INIT;

        (void) state;
        assert_int_equal(open_files_check(&none, 1, &inventory, NULL), -EBADMSG);
        for (size_t n = 1; n < f.files.size; n++) {
                struct files cut = ordinary_files();

                cut.files.size -= n;
                assert_true(check_files(&cut, INODE, NULL) != -EPERM);
        }
        for (size_t n = 0; n < f.files.size; n++)
                for (unsigned value = 0; value < 256; value++) {
                        struct files copy = f;

                        copy.files.bytes[n] = (uint8_t) value;
                        (void) check_files(&copy, INODE, NULL);
                }
        f.ghost.size = 11;
        assert_int_equal(check_files(&f, INODE, NULL), -EBADMSG);
        assert_true(open_files_needs("files.img") > 4096 && open_files_needs("ghost-file-1f.img") >= 4096 &&
                    open_files_needs("pages-1.img") == 0);
}

/* ---- reserved address space ---- */

enum { MM_DUMPABLE = 11, MM_MAPPING = 14, MAPPING_BEGIN = 1, MAPPING_END = 2, MAPPING_FLAGS = 6 };

static struct message image_of_mapping(uint64_t bytes, uint64_t flags) {
        struct message image = begin_image(0x57492820), mm = { .size = 0 }, mapping = { .size = 0 };

        put_number(&mapping, MAPPING_BEGIN, 0x7f0000000000);
        put_number(&mapping, MAPPING_END, 0x7f0000000000 + bytes);
        put_number(&mapping, 5, 0);
        put_number(&mapping, MAPPING_FLAGS, flags);
        put_bytes(&mapping, 12, "unknown", 7);
        put_number(&mm, MM_DUMPABLE, 1);
        put_message(&mm, MM_MAPPING, &mapping);
        put_bytes(&mm, 20, "last", 4);
        put_entry(&image, &mm);
        return image;
}

/* The flags of the only mapping after the change. */
static uint64_t flags_after(struct message *image, uint64_t most_bytes) {
        uint8_t *copy = malloc(image_memory_bytes(image->size)); /* its end is watched by the sanitizer */
        struct criu_cursor entries, mm, mapping;
        size_t n = image_memory_unreserve(image->bytes, image->size, most_bytes, copy);
        uint64_t flags = 0;
        struct criu_field f, inner;
        size_t fields = 0;

        assert_non_null(copy);
        assert_true(criu_image_open(copy, n, CRIU_IMAGE_MAGIC_MM, &entries) && criu_next_entry(&entries, &mm));
        assert_true(criu_all_read(&entries));
        for (; criu_next_field(&mm, &f); fields++)
                for (mapping = f.bytes; f.number == MM_MAPPING && criu_next_field(&mapping, &inner); fields++)
                        if (inner.number == MAPPING_FLAGS)
                                flags = inner.value;
        assert_int_equal(fields, 8);
        free(copy);
        return flags;
}

static void test_reserved(void **state) {
        static const struct {
                uint64_t bytes, flags;
                bool changes;
        } cases[] = {
                { 4097, MAP_PRIVATE | MAP_ANONYMOUS, true },
                { UINT64_C(1) << 46, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, true },
                { 4096, MAP_PRIVATE | MAP_ANONYMOUS, false },
                { 8192, MAP_PRIVATE, false },
                { 8192, MAP_SHARED | MAP_ANONYMOUS, false },
                { 8192, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, false },
                { 8192, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, false },
        };
        struct message image;
        uint8_t copy[4096];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                image = image_of_mapping(cases[i].bytes, cases[i].flags);
                assert_int_equal(flags_after(&image, 4096), cases[i].flags | (cases[i].changes ? MAP_NORESERVE : 0));
                assert_true(cases[i].changes || (image_memory_unreserve(image.bytes, image.size, 4096, copy) == image.size &&
                                                 memcmp(copy, image.bytes, image.size) == 0));
        }
        image = image_of_mapping(UINT64_C(1) << 46, MAP_PRIVATE | MAP_ANONYMOUS);
        for (size_t n = 0; n < image.size; n++)
                assert_true(image_memory_unreserve(image.bytes, n, 4096, copy) <= image_memory_bytes(n));
        image.bytes[4] = 0;
        assert_int_equal(image_memory_unreserve(image.bytes, image.size, 4096, copy), 0);
}

/* CRIU is given none of what only CAP_SETPCAP restores, and what it is not given is nothing that a
 * process without capabilities has. */
static void test_keep_caps(void **state) {
        struct rights r = of_owner();
        struct message without = core_of(&r), with;
        uint8_t spaces[2][2048];
        size_t bytes[2];

        (void) state;
        r.securebits = 1 << 4;
        with = core_of(&r);
        assert_int_equal(check_bytes(&with, TID, bounding, NULL), 0);
        bytes[0] = image_identity_lift_bounding(without.bytes, without.size, spaces[0]);
        bytes[1] = image_identity_lift_bounding(with.bytes, with.size, spaces[1]);
        assert_int_equal(bytes[0], bytes[1]);
        assert_memory_equal(spaces[0], spaces[1], bytes[0]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rights_from_memory), cmocka_unit_test(test_unknown_threads), cmocka_unit_test(test_damaged),
                cmocka_unit_test(test_bounding),           cmocka_unit_test(test_keep_caps),       cmocka_unit_test(test_dumpable),
                cmocka_unit_test(test_unknown_files),      cmocka_unit_test(test_damaged_files),   cmocka_unit_test(test_reserved),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
