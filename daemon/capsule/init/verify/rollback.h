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
#define ROLLBACK_CHANGED (-EBADMSG) /* the file is the same, and has other contents */

/* Copies, while the processes of `inventory` stand still, those of its files that are open for
 * writing, and not only at their end, to the directory `dir_fd`, each under its index, and marks
 * them. The directory becomes the owner's, with whose rights a child reads them; one that he may
 * not read is not copied. -EFBIG: they are larger than `max_bytes` together; then, and after any
 * error, copies that were made are left there. */
int rollback_copy(Capsule__Inventory *inventory, const Capsule__Spec *spec, int dir_fd, uint64_t max_bytes, struct rm_error *error);

/* Hashes the begin and the end of the files of `inventory` that are open for writing, while its
 * processes stand still, by a child with the owner's rights. What it cannot read, or not in a third
 * of a second, has no hash. */
void rollback_hash(Capsule__Inventory *inventory, const Capsule__Spec *spec);

/* Rolls back the files that had a path when the processes of `inventory` were saved. A file that
 * was open for writing is cut back to its size of then, by a child with the owner's rights; a file
 * that was copied gets its contents of then again, from the directory `copies_fd` (-1: there is
 * none), and is made anew if it is gone. What stands under its name must be that file
 * (file_identity.h), or a copy of it if it is only read, and a program, or a file that the job only
 * adds to, must not have changed, unless `restore` says that other files are taken for those of the
 * job. -ENOENT: a
 * file is gone; -ERANGE: shorter than it was, unless `other_files`; ROLLBACK_OTHER_FILE,
 * ROLLBACK_CHANGED; the text names it, and then nothing was changed. What is cut off of a file that
 * the job only adds to, and has not made itself, or that was written to after the job had left, is
 * kept beside it: rollback_keep_end(). Where it cannot be kept, as on a disk that is full, nothing
 * is changed, with the errno of that, unless `other_files`.
 * `ret_mismatches`: names of files, a space between them, that may differ from what they were,
 * since they were written in place since then, or of which something was cut off that may be
 * somebody else's; "" if there are none; malloc'ed. */
int rollback_files(const Capsule__Inventory *inventory, const Capsule__Spec *spec, int copies_fd, const Capsule__Restore *restore,
                   char **ret_mismatches, struct rm_error *error);

/* Would rollback_files() succeed? Nothing is changed. Errors as above. */
int rollback_scan(const Capsule__Inventory *inventory, const Capsule__Spec *spec, int copies_fd, struct rm_error *error);

#endif
