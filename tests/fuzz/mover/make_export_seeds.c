/* Writes the seed of fuzz_export into a directory: a head, a file and an end, made with a key of zeros.
 * usage: make_export_seeds DIRECTORY */
#include <stdio.h>

#include "common/util.h"
#include "daemon/mover/export_stream.h"

static int on_write(void *ctx, const void *data, size_t size_bytes, struct rm_error *err) {
        return fwrite(data, 1, size_bytes, ctx) == size_bytes ? 0 : error_set(err, -EIO, "write");
}

static int head_write(struct export_stream *s) {
        Rm__ExportRecord record = RM__EXPORT_RECORD__INIT;
        Rm__ExportHead head = RM__EXPORT_HEAD__INIT;
        Rm__Checkpoint checkpoint = RM__CHECKPOINT__INIT, *checkpoints[] = { &checkpoint };
        Rm__CheckpointPart mpirun = RM__CHECKPOINT_PART__INIT, group = RM__CHECKPOINT_PART__INIT, *parts[] = { &mpirun, &group };
        char *argv[] = { (char *) "mpirun", (char *) "program" };
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;
        Rm__Job job = RM__JOB__INIT;
        int r;

        mpirun.capsule = -1;
        mpirun.address = 1;
        group.ranks = 2;
        group.address = 2;
        checkpoint.id = 2;
        checkpoint.parts = parts;
        checkpoint.n_parts = ARRAY_SIZE(parts);
        spec.argv = argv;
        spec.n_argv = ARRAY_SIZE(argv);
        spec.ranks = 2;
        job.id = 7;
        job.spec = &spec;
        job.checkpoints = checkpoints;
        job.n_checkpoints = 1;
        head.version = EXPORT_VERSION;
        head.cluster = (char *) "blue";
        head.job = &job;
        record.body_case = RM__EXPORT_RECORD__BODY_HEAD;
        record.head = &head;
        r = export_write_record(s, &record, NULL);
        return r < 0 ? r : export_write_mac(s, NULL);
}

static int file_write(struct export_stream *s) {
        Rm__ExportRecord record = RM__EXPORT_RECORD__INIT;
        Rm__ExportFile file = RM__EXPORT_FILE__INIT;
        int r;

        file.name = (char *) "manifest-2";
        file.size_bytes = 5;
        record.body_case = RM__EXPORT_RECORD__BODY_FILE;
        record.file = &file;
        r = export_write_record(s, &record, NULL);
        return r < 0 ? r : export_write_data(s, "12345", 5, NULL);
}

static int end_write(struct export_stream *s) {
        Rm__ExportRecord record = RM__EXPORT_RECORD__INIT;
        Rm__ExportEnd end = RM__EXPORT_END__INIT;
        int r;

        end.files = 1;
        end.bytes = 5;
        record.body_case = RM__EXPORT_RECORD__BODY_END;
        record.end = &end;
        r = export_write_record(s, &record, NULL);
        return r < 0 ? r : export_write_mac(s, NULL);
}

int main(int argc, char **argv) {
        cleanup_free char *path = argc == 2 ? xasprintf("%s/whole", argv[1]) : NULL;
        cleanup_file FILE *f = path ? fopen(path, "w") : NULL;
        const struct export_io io = { .write = on_write, .ctx = f };
        const struct export_keys keys = { 0 };
        struct export_stream *s = NULL;
        int r = f ? export_stream_create(&keys, &io, &s, NULL) : -EIO;

        if (r == 0)
                r = head_write(s);
        if (r == 0)
                r = file_write(s);
        if (r == 0)
                r = end_write(s);
        export_stream_destroy(s);
        return r < 0 ? 1 : 0;
}
