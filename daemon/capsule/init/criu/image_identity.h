/* Compares what CRIU's images say of a process's rights with what the kernel said of it when its
 * group was frozen, before CRIU gives it these rights. CRIU has the one from memory of the process
 * itself, where any process of its owner's may write; the other PID 1 has read from /proc. Pure. */
#ifndef RM_DAEMON_CAPSULE_INIT_CRIU_IMAGE_IDENTITY_H
#define RM_DAEMON_CAPSULE_INIT_CRIU_IMAGE_IDENTITY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/capsule.pb-c.h"

struct rm_error;

struct image_identity_scope {
        const Capsule__Spec *spec;
        const Capsule__Inventory *inventory; /* of the dumped processes */
        uint32_t securebits; /* of this process, which all that it starts inherit (prctl(2)) */
};

/* `image`: a core-TID.img. Ids, groups, capabilities, securebits, no_new_privs and seccomp of the
 * thread `tid` are those of the spec, of the inventory and of the scope? A zombie's image has none
 * of these. 0, or with the difference in `error` -EPERM; -EBADMSG: it is damaged. */
int image_identity_check(const struct image_identity_scope *scope, uint8_t *image, size_t size_bytes, pid_t tid,
                         struct rm_error *error);

/* `image`: an mm-PID.img. Is the process dumpable? What is not, is never saved. Errors as above. */
int image_identity_check_memory(uint8_t *image, size_t size_bytes, struct rm_error *error);

/* Writes a copy of a core-TID.img that has passed to `ret`, of image_identity_lifted_bytes(); its
 * bounding set has all capabilities. CRIU drops what is not in there, which takes CAP_SETPCAP also
 * where it is not there any more; so a restored process has the set of PID 1, as that of every
 * process in a capsule is. PR_SET_KEEPCAPS is left out, which takes CAP_SETPCAP as well. Returns
 * its size in bytes. */
size_t image_identity_lift_bounding(uint8_t *image, size_t size_bytes, uint8_t *ret);
size_t image_identity_lifted_bytes(size_t size_bytes);

#endif
