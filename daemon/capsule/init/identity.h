/* The job's owner, as rm-capsule makes processes of him and finds him in what was restored. */
#ifndef RM_DAEMON_CAPSULE_INIT_IDENTITY_H
#define RM_DAEMON_CAPSULE_INIT_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/capsule.pb-c.h"

struct rm_error;

/* What CRIU needs where it runs as the owner, and nothing that opens, makes or owns files beyond his rights. On a node whose
 * bounding set is not whole CAP_SETPCAP as well: the restorer drops each capability that is not in the set. A dump may search any
 * directory besides: the kernel names what inotify watches by a handle, and only so does CRIU find its path. */
uint64_t identity_criu_capabilities(bool dump);

/* In a child: real, effective, saved and file system ids become the owner's, with his groups in the spec's order, and
 * `extra_group` unless that is IDENTITY_NO_GROUP. Of all capabilities only `capabilities` (1 << CAP_...) stay, so that they outlive
 * execve(2). A job of root keeps what root has. 0 or -errno; after an error the process must end. */
int identity_become(const Capsule__Spec *spec, uint64_t capabilities, gid_t extra_group);
#define IDENTITY_NO_GROUP ((gid_t) - 1)

/* Runs `fn` in a child that is the owner, without capabilities; `error`: negative, he could not be become. What it writes to `report_fd` the caller reads from `*ret_fd`, and
 * then calls identity_child_end(). 0 or -errno. */
typedef void (*identity_child_fn)(int error, int report_fd, const void *arg);
int identity_child(const Capsule__Spec *spec, identity_child_fn fn, const void *arg, pid_t *ret_pid, int *ret_fd);
void identity_child_end(pid_t pid, int fd);

/* What the kernel says of one thread. */
struct identity {
        uint32_t uids[4]; /* real, effective, saved, file system */
        uint32_t gids[4];
        uint32_t *groups; /* sorted, as the kernel keeps them */
        size_t n_groups;
        uint64_t inheritable;
        uint64_t permitted;
        uint64_t effective;
        uint64_t bounding;
        uint64_t ambient;
        uint32_t no_new_privs;
        uint32_t seccomp;
};

/* What follows "NAME:" in the text of a status file; NULL when it has no such line. */
const char *identity_field(const char *status, const char *name);

/* From the text of /proc/PID/task/TID/status. 0, or -EBADMSG when a line is missing. Free with identity_finish(). */
int identity_parse(const char *status, struct identity *ret);
void identity_finish(struct identity *identity);

/* Is that thread the owner, with no capability that he does not have at login? 0; -EPERM: it has ids or groups of somebody else,
 * -EACCES: capabilities; with what differs in `error`. */
int identity_check(const struct identity *identity, const Capsule__Spec *spec, struct rm_error *error);

#endif
