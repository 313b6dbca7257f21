/* The reader of exported checkpoints against arbitrary bytes: as they are, for what is read before
 * a key was found to be right; and sealed, for what a holder of the key could make it read. What it
 * gives out can be read, and what it says is valid can be used. */
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/mover/export_stream.h"
#include "daemon/store/directory.h"
#include "tests/unit/mover/sealed_bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

/* Checks the head as rm-mover and rmd do. */
static void use_head(const Rm__ExportHead *head) {
        cleanup_free char *dir = NULL;

        if (!export_head_valid(head))
                return;
        dir = directory_of_capsule("dir", head->job->checkpoints[0]->parts[0]->capsule);
        if (strlen(dir) < strlen("dir/g0") || !head->job->spec->user)
                abort();
}

/* 0: it goes on. */
static int use_file(struct seal *s, const Rm__ExportFile *file) {
        uint8_t contents[256];

        if (!file->name)
                abort();
        return file->size_bytes > sizeof(contents) || seal_read(s, contents, (size_t) file->size_bytes, NULL) < 0;
}

static void import_all(struct bytes *b) {
        const struct seal_keys keys = { .cluster = "blue", .n = SEAL_KEYS_MAX };
        const struct seal_io io = { bytes_write, bytes_read, b };
        Rm__ExportHead *head = NULL;
        Rm__ExportFile *file = NULL;
        struct seal *s = NULL;

        if (seal_open(&keys, &io, &s, NULL) < 0)
                return;
        if (export_read_message(s, &rm__export_head__descriptor, (ProtobufCMessage **) &head, NULL) == 0) {
                int r = 0;

                use_head(head);
                rm__export_head__free_unpacked(head, NULL);
                while (r == 0 && export_read_message(s, &rm__export_file__descriptor, (ProtobufCMessage **) &file, NULL) == 0) {
                        r = use_file(s, file);
                        rm__export_file__free_unpacked(file, NULL);
                }
                (void) seal_read_end(s, NULL);
        }
        seal_destroy(s);
}

static void seal_it(const uint8_t *data, size_t size_bytes, struct bytes *ret) {
        const struct seal_keys keys = { .cluster = "blue", .n = 1 };
        const struct seal_io io = { bytes_write, bytes_read, ret };
        struct seal *s = NULL;

        if (seal_create(&keys, &io, &s, NULL) < 0 || seal_write(s, data, size_bytes, NULL) < 0 || seal_write_end(s, NULL) < 0)
                abort();
        seal_destroy(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
        struct bytes as_it_is = { .data = (uint8_t *) data, .used = size_bytes }, sealed = { 0 };

        import_all(&as_it_is);
        seal_it(data, size_bytes, &sealed);
        import_all(&sealed);
        free(sealed.data);
        return 0;
}
