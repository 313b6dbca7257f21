/* Runs CRIU inside the capsule. */
#ifndef RM_DAEMON_CAPSULE_INIT_CRIU_CRIU_H
#define RM_DAEMON_CAPSULE_INIT_CRIU_CRIU_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/capsule.pb-c.h"

/* The directory where CRIU finds what it knows of the kernel; only root may write there. */
#define CRIU_KDAT_DIR "/run/rm/criu"

/* The directory, in that of the images, with the flags of mappings that rm-mover kept when private
 * memory travels apart, one file for each process (vmflags.h). */
#define CRIU_KEPT_FLAGS "vmflags"
/* CRIU's work directory, from that of PID 1; only root may write there. */
#define CRIU_WORK_DIR "criu/"

struct criu;
struct core;
struct dump_needs;
struct rm_error;
struct waiting;

/* `error` 0 or -errno; `text` from CRIU's log. */
typedef void (*criu_done_fn)(struct core *core, int error, const char *text);

/* Creates what runs CRIU for this capsule. Never returns NULL; the result lives as long as the
 * process, and `waiting` must, too. */
struct criu *criu_create(struct core *core, struct waiting *waiting);

/*
 * CRIU's own start (loading some twenty libraries) costs a good part of a short freeze. Both ways
 * of running it can be started early: for a dump it stops where it opens its configuration file, a
 * FIFO of ours; for a restore it is the service worker that waits for a request.
 */
int criu_preload_dump(struct criu *criu, struct rm_error *error);
/* `free_pid`: CRIU and its helpers take pids from there on, away from those to be restored. */
int criu_preload_restore(struct criu *criu, unsigned free_pid, struct rm_error *error);
/* Ends the service worker that waits for a request, if there is one, since none will come. */
void criu_unload_restore(struct criu *criu);

/* Dumps the payload; only one operation may be under way. `images_fd` stays the caller's and must
 * stay open until `done`. After `timeout_usec` (0: ten minutes) CRIU is killed and `done` gets
 * -ETIMEDOUT. `needs`: of what is dumped. `pages`: private memory travels apart, so the images need
 * not have it. */
int criu_dump(struct criu *criu, int images_fd, const struct dump_needs *needs, bool stream, bool pages, uint64_t timeout_usec,
              criu_done_fn done, struct rm_error *error);
/* Leaves the payload frozen. CRIU runs as the job's owner (but for a job of root), so it opens and
 * makes nothing that he could not, and only if the images give to no process more than `inventory`,
 * of the dumped ones, says (-EPERM, image_identity.h, image_files.h). When it fails, what it has
 * made until then is the caller's to kill. `lazy`: without private memory, see fill.h. `rollback`:
 * files may have other sizes than when they were dumped, see rollback.h. */
int criu_restore(struct criu *criu, int images_fd, const Capsule__Inventory *inventory, bool lazy, bool rollback,
                 uint64_t timeout_usec, criu_done_fn done, struct rm_error *error);
/* The preloaded CRIU that will restore; 0: none. */
pid_t criu_restore_pid(const struct criu *criu);
/* Kills CRIU: what it is doing fails. */
void criu_cancel(struct criu *criu);
/* Time (now_usec) at which criu_timeout wants to be called; UINT64_MAX: not. */
uint64_t criu_deadline(const struct criu *criu);
void criu_timeout(struct criu *criu);

/* The payload goes on here, or ends: what a dump has left in its directories goes. */
void criu_forget_dump(struct criu *criu);

/* PID 1 has reaped `pid`. True when it was ours. */
bool criu_reaped(struct criu *criu, pid_t pid, int status);

#endif
