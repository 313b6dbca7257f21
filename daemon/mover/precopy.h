/* Memory of running processes, sent ahead of their image: what does not change until they are
 * frozen is not sent again. */
#ifndef RM_MOVER_PRECOPY_H
#define RM_MOVER_PRECOPY_H

#include "daemon/image/known.h"
#include "daemon/image/writer.h"
#include "daemon/mover/files.h"
#include "daemon/mover/hooks.h"

/* The private and shared memory of the processes that `procs_file` names (as cgroup.procs does),
 * round after round while a round finds much less to send than the one before, as one object of
 * kind BLOCKS; each block is added to `known`. With `tracked`, private memory is left out that
 * pages.h sends, and with `files` (NULL ok) those that files.h sends. Only pages that are there are
 * read, nothing is changed in the processes. One that ends meanwhile or may not be read is passed
 * over. `*ret_rounds` is set also after an error. Errors are those of the writer and hooks. */
int precopy_run(const char *procs_file, bool tracked, const struct files *files, struct image_writer *w, struct image_known *known,
                const struct mover_hooks *hooks, uint64_t *ret_rounds, struct rm_error *err);

#endif
