/* The reader of exported checkpoints against arbitrary bytes, also where no MAC is right: what it gives out can be read, and what it says is valid can be used. */
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/mover/export_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

struct input {
        const uint8_t *data;
        size_t left_bytes;
};

static int on_read(void *ctx, void *data, size_t size_bytes, struct rm_error *err) {
        struct input *input = ctx;

        (void) err;
        if (input->left_bytes < size_bytes)
                return -ENODATA;
        memcpy(data, input->data, size_bytes);
        input->data += size_bytes;
        input->left_bytes -= size_bytes;
        return 0;
}

/* As rm-mover and rmd look at it. */
static void use_head(const Rm__ExportHead *head) {
        cleanup_free char *dir = NULL;

        if (!export_head_valid(head))
                return;
        dir = export_part_dir("dir", head->job->checkpoints[0]->parts[0]->capsule);
        if (strlen(dir) < strlen("dir/g0") || !head->cluster || !head->job->spec->user)
                abort();
}

/* 0: it goes on. */
static int use(struct export_stream *s, const Rm__ExportRecord *record) {
        uint8_t contents[256];

        switch (record->body_case) {
        case RM__EXPORT_RECORD__BODY_HEAD:
                use_head(record->head);
                return export_read_mac(s, NULL) == -ENODATA;
        case RM__EXPORT_RECORD__BODY_FILE:
                if (!record->file->name)
                        abort();
                return record->file->size_bytes > sizeof(contents) ||
                       export_read_data(s, contents, (size_t) record->file->size_bytes, NULL) < 0;
        default:
                return 1;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes) {
        struct input input = { data, size_bytes };
        const struct export_io io = { .read = on_read, .ctx = &input };
        const struct export_keys keys = { .has_second = true };
        struct export_stream *s = NULL;
        Rm__ExportRecord *record = NULL;
        int r;

        if (export_stream_create(&keys, &io, &s, NULL) < 0)
                abort();
        while ((r = export_read_record(s, &record, NULL)) == 0) {
                r = use(s, record);
                rm__export_record__free_unpacked(record, NULL);
                if (r != 0)
                        break;
        }
        export_stream_destroy(s);
        return 0;
}
