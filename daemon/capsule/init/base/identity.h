/* The job's owner, as rm-capsule makes processes of him and finds him in what was restored. */
#ifndef RM_DAEMON_CAPSULE_INIT_BASE_IDENTITY_H
#define RM_DAEMON_CAPSULE_INIT_BASE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/capsule.pb-c.h"

struct rm_error;

/* CRIU has these capabilities where it runs as the owner, each for a call that fails without it:
 *   CAP_SYS_ADMIN   dump: setns(2) to the payload's time namespace. Restore: setns(2) to the
 *                   descriptor broker's, and to mount a proc of its own.
 *   CAP_SYS_PTRACE  dump: /proc/PID/fd of the descriptor broker, which may do more. Both: ptrace(2)
 *                   where Yama's scope is 2.
 *   CAP_NET_ADMIN   both: setsockopt(2) with TCP_REPAIR.
 *   CAP_NET_RAW     restore: a raw socket, for the peers' last packets of connections that are
 *                   being closed; see put_criu_rule() in filter.c.
 * CAP_CHECKPOINT_RESTORE is a part of CAP_SYS_ADMIN. None of these opens, makes or owns files
 * beyond the owner's rights: what would take CAP_DAC_READ_SEARCH does PID 1 (watches.h). Nor can
 * CRIU give a process rights by them, except for what it has itself: image_identity.h looks, and
 * does away with the need for CAP_SETPCAP. */
enum identity_work {
        IDENTITY_RESTORE,
        IDENTITY_DUMP,
};
uint64_t identity_criu_capabilities(enum identity_work work);

/* Makes a child the owner: real, effective, saved and file system ids become the owner's, with his
 * groups in the spec's order, and `extra_group` unless that is IDENTITY_NO_GROUP. Of all
 * capabilities only `capabilities` (1 << CAP_...) stay, so that they outlive execve(2). A job of
 * root keeps what root has. 0 or -errno; after an error the process must end. */
int identity_become(const Capsule__Spec *spec, uint64_t capabilities, gid_t extra_group);
#define IDENTITY_NO_GROUP ((gid_t) - 1)

/* Protects a child that is to become the owner with capabilities, before it does: its memory is not
 * the owner's to read, and it leaves no core when he ends it by a signal. `for_good`: nor can he
 * allow it by prlimit(2); not for a child whose hard limit others inherit. 0 or -errno. */
int identity_refuse_core(bool for_good);

/* The process opens files as the owner from now on, with only `capabilities` (1 << CAP_...), and he
 * can neither stop nor end it: for a child that has something else to do before. 0 or -errno; after
 * an error it must end. */
int identity_borrow(const Capsule__Spec *spec, uint64_t capabilities);
/* A child that is root looks up paths as the owner, or as root again (`spec` NULL). 0 or -errno:
 * then it must not look. */
int identity_look_as(const Capsule__Spec *spec);
/* Runs `fn` in a child that opens files as the owner, with only `capabilities` (1 << CAP_...), and
 * that he can neither stop nor end; `error`: negative, he could not be become. What it writes to
 * `report_fd` the caller reads from `*ret_fd`, after identity_await(), and then calls
 * identity_child_end(), which ends it. `spec` NULL: the child stays root until `fn` calls
 * identity_borrow(). 0 or -errno. */
typedef void (*identity_child_fn)(int error, int report_fd, const void *arg);
int identity_child(const Capsule__Spec *spec, uint64_t capabilities, identity_child_fn fn, const void *arg, pid_t *ret_pid,
                   int *ret_fd);
void identity_child_end(pid_t pid, int fd);
/* Does all of this: runs `fn`, waits for its answer, but no longer than `most_usec`, and ends the
 * child. 0, -ETIMEDOUT, or -errno; -ENODATA: it has ended without a word. */
int identity_ask(const Capsule__Spec *spec, uint64_t capabilities, identity_child_fn fn, const void *arg, uint64_t most_usec,
                 void *ret_answer, size_t answer_bytes);
/* Kills a child and waits for its end, but no longer than a second: whom a file system of the
 * owner's keeps in the kernel ends when that answers. PID 1 then hears of it as of other
 * orphans. */
void identity_end(pid_t pid);
/* Waits until there is something to be read from this descriptor, or nobody has its other end any
 * more, but no longer than this: a user may keep a child for ever, by a file system of his own, or
 * by a signal if it is he already. 0, -ETIMEDOUT, or -errno. */
int identity_await(int fd, uint64_t most_usec);

/* The identity of one thread, as the kernel tells it. */
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

/* Returns what follows "NAME:" in the text of a status file; NULL when it has no such line. */
const char *identity_field(const char *status, const char *name);

/* Reads the text of /proc/PID/task/TID/status. 0, or -EBADMSG when a line is missing. Free with
 * identity_finish(). */
int identity_parse(const char *status, struct identity *ret);
void identity_finish(struct identity *identity);

/* Is that thread the owner, with no capability that he does not have at login? 0; -EPERM: it has
 * ids or groups of somebody else, -EACCES: capabilities; with what differs in `error`. */
int identity_check(const struct identity *identity, const Capsule__Spec *spec, struct rm_error *error);

#endif
