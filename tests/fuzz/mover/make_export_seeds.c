/* Writes seeds of fuzz_export into a directory: a head and a file as they are inside the seal, and
 * the same sealed, with a key of zeros.
 * usage: make_export_seeds DIRECTORY */
#include <stdio.h>

#include "common/frame.h"
#include "common/util.h"
#include "daemon/mover/export_stream.h"

static int on_write(void *ctx, const void *data, size_t size_bytes, struct rm_error *err) {
        return fwrite(data, 1, size_bytes, ctx) == size_bytes ? 0 : error_set(err, -EIO, "write");
}

static uint8_t *head_pack(size_t *ret_bytes) {
        Rm__ExportHead head = RM__EXPORT_HEAD__INIT;
        Rm__Checkpoint checkpoint = RM__CHECKPOINT__INIT, *checkpoints[] = { &checkpoint };
        Rm__CheckpointPart mpirun = RM__CHECKPOINT_PART__INIT, group = RM__CHECKPOINT_PART__INIT, *parts[] = { &mpirun, &group };
        char *argv[] = { (char *) "mpirun", (char *) "program" };
        Rm__JobSpec spec = RM__JOB_SPEC__INIT;
        Rm__Job job = RM__JOB__INIT;

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
        head.job = &job;
        return frame_pack(FRAME_MAGIC_EXPORT, &head.base, ret_bytes);
}

static uint8_t *file_pack(size_t *ret_bytes) {
        Rm__ExportFile file = RM__EXPORT_FILE__INIT;

        file.capsule = -1;
        file.name = (char *) "manifest-2";
        file.size_bytes = 5;
        return frame_pack(FRAME_MAGIC_EXPORT, &file.base, ret_bytes);
}

int main(int argc, char **argv) {
        cleanup_free char *inside_path = argc == 2 ? xasprintf("%s/inside", argv[1]) : NULL;
        cleanup_free char *whole_path = argc == 2 ? xasprintf("%s/whole", argv[1]) : NULL;
        cleanup_file FILE *inside = inside_path ? fopen(inside_path, "w") : NULL;
        cleanup_file FILE *whole = whole_path ? fopen(whole_path, "w") : NULL;
        const struct seal_io io = { .write = on_write, .ctx = whole };
        const struct seal_keys keys = { .cluster = "blue", .n = 1 };
        size_t head_bytes = 0, file_bytes = 0;
        cleanup_free uint8_t *head = head_pack(&head_bytes), *file = file_pack(&file_bytes);
        struct seal *s = NULL;
        int r = inside && whole ? seal_create(&keys, &io, &s, NULL) : -EIO;
        const struct {
                const void *data;
                size_t size_bytes;
        } pieces[] = { { head, head_bytes }, { file, file_bytes }, { "12345", 5 } };

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(pieces); i++) {
                r = on_write(inside, pieces[i].data, pieces[i].size_bytes, NULL);
                if (r == 0)
                        r = seal_write(s, pieces[i].data, pieces[i].size_bytes, NULL);
        }
        if (r == 0)
                r = seal_write_end(s, NULL);
        seal_destroy(s);
        return r < 0 ? 1 : 0;
}
