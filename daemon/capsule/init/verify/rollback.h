/* Files go back with a job: before its processes are restored from a checkpoint, after which they
 * had gone on, what they have written since is taken back, of files that are written in place only
 * if they were copied. */
#ifndef RM_DAEMON_CAPSULE_INIT_VERIFY_ROLLBACK_H
#define RM_DAEMON_CAPSULE_INIT_VERIFY_ROLLBACK_H

#include <errno.h>
#include <stdbool.h>

#include "proto/capsule.pb-c.h"

struct rm_error;

#define ROLLBACK_OTHER_FILE (-EEXIST) /* another file stands under a name of one of the job's */

/* Copies, while the processes of `inventory` stand still, those of its files that are open for
 * writing, and not only at their end, to the directory `dir_fd`, each under its index, and marks
 * them. The directory becomes the owner's, with whose rights a child reads them; one that he may
 * not read is not copied. -EFBIG: they are larger than `max_bytes` together; then, and after any
 * error, copies that were made are left there. */
int rollback_copy(Capsule__Inventory *inventory, const Capsule__Spec *spec, int dir_fd, uint64_t max_bytes, struct rm_error *error);

/* Rolls back the files that had a path when the processes of `inventory` were saved. A file that
 * was open for writing is cut back to its size of then, by a child with the owner's rights; a file
 * that was copied gets its contents of then again, from the directory `copies_fd` (-1: there is
 * none), and is made anew if it is gone; a file of others must have that size. What stands under
 * its name must be that file (file_identity.h), unless `other_files` are taken for those of the
 * job. -ENOENT: a file is gone; -ERANGE: shorter than it was, unless `other_files`;
 * ROLLBACK_OTHER_FILE: another one; the text names it, and then nothing was changed.
 * `ret_mismatches`: names of files, a space between them, that may differ from what they were,
 * since they are written in place, and were written to since; "" if there are none; malloc'ed. */
int rollback_files(const Capsule__Inventory *inventory, const Capsule__Spec *spec, int copies_fd, bool other_files,
                   char **ret_mismatches, struct rm_error *error);

/* Would rollback_files() succeed? Nothing is changed. Errors as above. */
int rollback_scan(const Capsule__Inventory *inventory, const Capsule__Spec *spec, int copies_fd, struct rm_error *error);

#endif
