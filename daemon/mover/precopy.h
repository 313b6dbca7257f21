/* Memory of running processes, sent ahead of their image: what does not change until they are frozen is not sent again. */
#ifndef RM_MOVER_PRECOPY_H
#define RM_MOVER_PRECOPY_H

#include "daemon/image/known.h"
#include "daemon/image/writer.h"

struct precopy_hooks {
        void *ctx;
        /* Now and then; nonzero ends it with this value. */
        int (*poll)(void *ctx, const char *what, struct rm_error *err);
        /* At the end of a round: what has been collected should go out. */
        int (*idle)(void *ctx, struct rm_error *err);
};

struct precopy_figures {
        uint64_t raw_bytes;  /* of the stream */
        uint64_t wire_bytes; /* of the stream */
        uint64_t rounds;
        uint64_t usec;
};

/* The private and shared memory of the processes that `procs_file` names (as cgroup.procs does), round after round while a round finds much less to
 * send than the one before, as one object of kind BLOCKS; each block is added to `known`. Only pages that are there are read, nothing
 * is changed in the processes. One that ends meanwhile or may not be read is passed over. Errors are those of the writer and hooks. */
int precopy_run(const char *procs_file, struct image_writer *w, struct image_known *known, const struct precopy_hooks *hooks,
                struct precopy_figures *figures, struct rm_error *err);

#endif
