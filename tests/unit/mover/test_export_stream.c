/* The parts of an exported checkpoint, as messages inside its seal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/frame.h"
#include "common/util.h"
#include "daemon/mover/export_stream.h"
#include "tests/unit/mover/sealed_bytes.h"

static const struct seal_keys keys = { .cluster = "blue", .n = 1 };

static struct seal *writer(struct bytes *b) {
        const struct seal_io io = { bytes_write, bytes_read, b };
        struct seal *s = NULL;

        assert_int_equal(seal_create(&keys, &io, &s, NULL), 0);
        return s;
}

/* Ends the written stream, and opens it for reading. */
static struct seal *reader(struct bytes *b, struct seal *written) {
        const struct seal_io io = { bytes_write, bytes_read, b };
        struct seal *s = NULL;

        assert_int_equal(seal_write_end(written, NULL), 0);
        seal_destroy(written);
        assert_int_equal(seal_open(&keys, &io, &s, NULL), 0);
        return s;
}

static void test_head_is_one_job_with_one_checkpoint(void **state) {
        Rm__ExportHead head = RM__EXPORT_HEAD__INIT;
        Rm__Checkpoint checkpoint = RM__CHECKPOINT__INIT, *checkpoints[] = { &checkpoint };
        Rm__CheckpointPart part = RM__CHECKPOINT_PART__INIT, *parts[] = { &part };
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;
        Rm__Job job = RM__JOB__INIT;

        (void) state;
        assert_false(export_head_valid(NULL));
        assert_false(export_head_valid(&head));
        head.job = &job;
        assert_false(export_head_valid(&head));
        job.spec = &spec;
        job.checkpoints = checkpoints;
        job.n_checkpoints = 1;
        assert_false(export_head_valid(&head));
        checkpoint.parts = parts;
        checkpoint.n_parts = 1;
        assert_true(export_head_valid(&head));
        job.n_checkpoints = 0;
        assert_false(export_head_valid(&head));
}

static void test_messages_and_contents(void **state) {
        struct bytes b = { 0 };
        struct seal *s = writer(&b);
        Rm__ExportFile file = RM__EXPORT_FILE__INIT, *found = NULL;
        char contents[5];

        (void) state;
        file.capsule = -1;
        file.name = (char *) "pack-1";
        file.size_bytes = sizeof(contents);
        assert_int_equal(export_write_message(s, &file.base, NULL), 0);
        assert_int_equal(seal_write(s, "12345", sizeof(contents), NULL), 0);
        s = reader(&b, s);
        assert_int_equal(export_read_message(s, &rm__export_file__descriptor, (ProtobufCMessage **) &found, NULL), 0);
        assert_int_equal(found->capsule, -1);
        assert_string_equal(found->name, "pack-1");
        assert_int_equal(seal_read(s, contents, (size_t) found->size_bytes, NULL), 0);
        assert_memory_equal(contents, "12345", sizeof(contents));
        assert_int_equal(seal_read_end(s, NULL), 0);
        rm__export_file__free_unpacked(found, NULL);
        seal_destroy(s);
        free(b.data);
}

/* A sender with the key cannot make a reader take more memory than a message may have, either. */
static void test_no_message(void **state) {
        const struct {
                uint32_t magic;
                uint32_t size_bytes;
        } cases[] = { { FRAME_MAGIC_STORE, 2 },
                      { FRAME_MAGIC_EXPORT, EXPORT_MESSAGE_MAX_BYTES + 1 },
                      { FRAME_MAGIC_EXPORT, UINT32_MAX },
                      { FRAME_MAGIC_EXPORT, 100 },
                      { FRAME_MAGIC_EXPORT, 2 } };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct bytes b = { 0 };
                struct seal *s = writer(&b);
                ProtobufCMessage *found = NULL;
                uint8_t header[FRAME_HEADER_BYTES];

                frame_header_write(header, cases[i].magic, cases[i].size_bytes);
                assert_int_equal(seal_write(s, header, sizeof(header), NULL), 0);
                assert_int_equal(seal_write(s, "\377\377", 2, NULL), 0);
                s = reader(&b, s);
                assert_int_equal(export_read_message(s, &rm__export_head__descriptor, &found, NULL), -EBADMSG);
                assert_null(found);
                seal_destroy(s);
                free(b.data);
        }
}

static void test_no_larger_than_can_be_read(void **state) {
        struct bytes b = { 0 };
        struct seal *s = writer(&b);
        Rm__ExportFile file = RM__EXPORT_FILE__INIT;
        cleanup_free char *name = xcalloc(1, EXPORT_MESSAGE_MAX_BYTES + 1);

        (void) state;
        memset(name, 'x', EXPORT_MESSAGE_MAX_BYTES);
        file.name = name;
        assert_int_equal(export_write_message(s, &file.base, NULL), -EFBIG);
        seal_destroy(s);
        free(b.data);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_head_is_one_job_with_one_checkpoint),
                cmocka_unit_test(test_messages_and_contents),
                cmocka_unit_test(test_no_message),
                cmocka_unit_test(test_no_larger_than_can_be_read),
        };

        return cmocka_run_group_tests_name("export_stream", tests, NULL, NULL);
}
