/* An exported checkpoint as bytes: what was written is read, with the first key or the second; whatever else comes is refused, at the latest at the MAC at its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/mover/export_stream.h"

enum { FILE_BYTES = 100 };

struct bytes {
        uint8_t *data;
        size_t used;
        size_t at;
};

static int on_write(void *ctx, const void *data, size_t size_bytes, struct rm_error *err) {
        struct bytes *b = ctx;

        (void) err;
        b->data = xrealloc(b->data, b->used + size_bytes);
        memcpy(b->data + b->used, data, size_bytes);
        b->used += size_bytes;
        return 0;
}

static int on_read(void *ctx, void *data, size_t size_bytes, struct rm_error *err) {
        struct bytes *b = ctx;

        (void) err;
        if (b->used - b->at < size_bytes)
                return -ENODATA;
        memcpy(data, b->data + b->at, size_bytes);
        b->at += size_bytes;
        return 0;
}

static struct export_stream *stream(struct bytes *b, char key, char second) {
        const struct export_io io = { on_write, on_read, b };
        struct export_keys keys = { .has_second = second != 0 };
        struct export_stream *s = NULL;

        memset(keys.key, key, sizeof(keys.key));
        memset(keys.second, second, sizeof(keys.second));
        assert_int_equal(export_stream_create(&keys, &io, &s, NULL), 0);
        return s;
}

static void write_head(struct export_stream *s) {
        Rm__ExportRecord record = RM__EXPORT_RECORD__INIT;
        Rm__ExportHead head = RM__EXPORT_HEAD__INIT;
        Rm__Checkpoint checkpoint = RM__CHECKPOINT__INIT, *checkpoints[] = { &checkpoint };
        Rm__CheckpointPart part = RM__CHECKPOINT_PART__INIT, *parts[] = { &part };
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;
        Rm__Job job = RM__JOB__INIT;

        part.capsule = -1;
        checkpoint.id = 2;
        checkpoint.parts = parts;
        checkpoint.n_parts = 1;
        job.id = 7;
        job.spec = &spec;
        job.checkpoints = checkpoints;
        job.n_checkpoints = 1;
        head.cluster = (char *) "blue";
        head.job = &job;
        record.body_case = RM__EXPORT_RECORD__BODY_HEAD;
        record.head = &head;
        assert_true(export_head_valid(&head));
        job.n_checkpoints = 0;
        assert_false(export_head_valid(&head));
        job.n_checkpoints = 1;
        assert_int_equal(export_write_record(s, &record, NULL), 0);
        assert_int_equal(export_write_mac(s, NULL), 0);
}

static struct bytes written(char key) {
        Rm__ExportRecord record = RM__EXPORT_RECORD__INIT;
        Rm__ExportFile file = RM__EXPORT_FILE__INIT;
        uint8_t contents[FILE_BYTES];
        struct bytes b = { 0 };
        struct export_stream *s = stream(&b, key, 0);

        memset(contents, 'x', sizeof(contents));
        write_head(s);
        file.name = (char *) "pack-1";
        file.size_bytes = FILE_BYTES;
        record.body_case = RM__EXPORT_RECORD__BODY_FILE;
        record.file = &file;
        assert_int_equal(export_write_record(s, &record, NULL), 0);
        assert_int_equal(export_write_data(s, contents, sizeof(contents), NULL), 0);
        assert_int_equal(export_write_mac(s, NULL), 0);
        export_stream_destroy(s);
        return b;
}

/* As a reader does that believes what stands before a MAC only so far as it must. */
static int read_all_of_it(struct bytes *b, char key, char second, bool *ret_head) {
        struct export_stream *s = stream(b, key, second);
        Rm__ExportRecord *record = NULL;
        uint8_t contents[FILE_BYTES];
        int r = export_read_record(s, &record, NULL);

        if (r == 0)
                r = export_read_mac(s, NULL);
        *ret_head = r == 0;
        if (record)
                rm__export_record__free_unpacked(take_ptr(record), NULL);
        if (r == 0)
                r = export_read_record(s, &record, NULL);
        if (r == 0 && (record->body_case != RM__EXPORT_RECORD__BODY_FILE || record->file->size_bytes != FILE_BYTES))
                r = -EBADMSG;
        if (r == 0)
                r = export_read_data(s, contents, sizeof(contents), NULL);
        if (r == 0)
                r = export_read_mac(s, NULL);
        if (record)
                rm__export_record__free_unpacked(record, NULL);
        export_stream_destroy(s);
        b->at = 0;
        return r;
}

static void test_read_with_either_key(void **state) {
        struct bytes b = written('a');
        bool head;

        (void) state;
        assert_int_equal(read_all_of_it(&b, 'a', 0, &head), 0);
        assert_int_equal(read_all_of_it(&b, 'a', 'b', &head), 0);
        assert_int_equal(read_all_of_it(&b, 'b', 'a', &head), 0);
        assert_int_equal(read_all_of_it(&b, 'b', 0, &head), -EBADMSG);
        assert_false(head);
        assert_int_equal(read_all_of_it(&b, 'b', 'c', &head), -EBADMSG);
        free(b.data);
}

static void test_every_bit_counts(void **state) {
        struct bytes b = written('a');
        bool head;

        (void) state;
        for (size_t i = 0; i < b.used * 8; i++) {
                b.data[i / 8] ^= (uint8_t) (1U << i % 8);
                assert_int_equal(read_all_of_it(&b, 'a', 0, &head), -EBADMSG);
                b.data[i / 8] ^= (uint8_t) (1U << i % 8);
        }
        assert_int_equal(read_all_of_it(&b, 'a', 0, &head), 0);
        free(b.data);
}

static void test_cut_off_anywhere(void **state) {
        struct bytes b = written('a');
        size_t whole = b.used;
        bool head;

        (void) state;
        for (b.used = 0; b.used < whole; b.used++)
                assert_int_equal(read_all_of_it(&b, 'a', 0, &head), -EBADMSG);
        free(b.data);
}

/* The head of one and the files of another, both good. */
static void test_no_parts_of_two(void **state) {
        struct bytes b = written('a'), other = { 0 };
        struct export_stream *s = stream(&other, 'a', 0);
        bool head;

        (void) state;
        write_head(s);
        write_head(s);
        export_stream_destroy(s);
        assert_true(other.used / 2 < b.used);
        other.used = other.used / 2;
        other.data = xrealloc(other.data, b.used + other.used);
        /* As it was: the same head, which is no forgery. Behind it what has a MAC for another place. */
        memcpy(other.data + other.used, b.data, b.used);
        other.used += b.used;
        assert_int_equal(read_all_of_it(&other, 'a', 0, &head), -EBADMSG);
        assert_true(head);
        free(other.data);
        free(b.data);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_read_with_either_key),
                cmocka_unit_test(test_every_bit_counts),
                cmocka_unit_test(test_cut_off_anywhere),
                cmocka_unit_test(test_no_parts_of_two),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
