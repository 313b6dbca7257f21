/* Gives restored processes the pages that they still lack, from stores, until nothing is missing:
 * the server of `criu restore --lazy-pages`. Blocking.
 *
 * Descriptors and holes are the whole state. A holder of duplicates of the userfaultfds and of the
 * stores' files can have another server go on where one died; if there are none, missing pages
 * silently read as zeros, so then the processes must be killed. */
#ifndef RM_DAEMON_PAGES_SERVE_H
#define RM_DAEMON_PAGES_SERVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "daemon/pages/page_store.h"
#include "daemon/pages/pageset.h"

struct serve;

/* The calls for a holder of duplicates. A userfaultfd's number is another one than those of all
 * others that are served at the time. */
struct serve_ops {
        void *ctx;
        /* A process is served: CRIU has restored it, or it was forked. Duplicates of these belong
         * to their holder. What was forked gets a copy of what its parent lacks into its store:
         * until copied() that is not all there. `parent_uffd` is -1 otherwise. Nonzero ends the
         * server. */
        int (*began)(void *ctx, int uffd, int page_store_fd, int parent_uffd);
        int (*copied)(void *ctx, int uffd);
        /* The process has all pages, or has ended: duplicates of its userfaultfd must be closed,
         * else it waits indefinitely where it has never written. */
        int (*ended)(void *ctx, int uffd);
        uint64_t max_bytes; /* in all stores; where a fork would make it more, the server ends with -ENOMEM. 0: no limit */
};

/* Memory that outlives the server, of pages that come later. */
struct serve_left {
        atomic_ullong bytes; /* still to come */
        atomic_ullong faults; /* waited for one */
        atomic_ullong p99_usec; /* so long at most did 99 of 100 of these wait */
};

struct serve_figures {
        uint64_t faults; /* that waited for a page, of zeros or not */
        uint64_t bytes; /* given */
        uint64_t usec; /* in serve_run() */
        uint64_t later_bytes; /* came later */
};

/* `in_hand` is memory that outlives the server, or NULL: nonzero while it holds events that it has
 * read and not carried out. If it is so when the server has died, no other may go on: pages could
 * come back that the program has given back. */
/* `ops`, or any of its functions, NULL ok. Never NULL. */
struct serve *serve_create(const struct serve_ops *ops, atomic_uint *in_hand);
/* The stores, and userfaultfds, too. The processes must be served no more. NULL ok. */
void serve_destroy(struct serve *serve);

/* Adds, before the restore, the missing pages of the process that the image calls `pid`. Owns
 * `store`. */
void serve_add(struct serve *serve, pid_t pid, struct page_store *store);
/* These pages of a pid that was added are not in its store yet, and come over the socket of
 * serve_from(). Until they have, no other server can go on. Owns `later`. */
void serve_later(struct serve *serve, pid_t pid, struct pageset *later);
/* Where such pages come from, and are asked for (later.h). The server ends with -EPIPE
 * if the other end hangs up before all has come. Owns `fd`. */
void serve_from(struct serve *serve, int fd, struct serve_left *left);
/* Waits until the pages of [start, end) have come, of a pid that CRIU has restored. */
int serve_fetch(struct serve *serve, pid_t pid, uint64_t start, uint64_t end);

/* To be given before the rest, in the order told: what was written last. Of a pid that was added;
 * others are passed over. */
void serve_expedite(struct serve *serve, pid_t pid, uint64_t start, uint64_t end);
/* In place of serve_add(), after another server: threads that wait for a page are found again. Owns
 * both. 0 or -errno. */
int serve_resume(struct serve *serve, int uffd, struct page_store *store);
/* Makes, after serve_resume() for both, the copy that the other server had begun. */
int serve_copy(struct serve *serve, int uffd, int parent_uffd);

/* Serves CRIU on `fd`, connected by it: takes the userfaultfd of each process, serves those that
 * are there meanwhile, and returns when the restore is finished. -ECANCELED: CRIU has ended before;
 * -EPROTO: it sends a message that it should not, or has restored other processes than those whose
 * pages are here: none may run with zeros in place of its pages. */
int serve_accept(struct serve *serve, int fd, struct rm_error *err);
/* Faults in [start, end) of a process that serve_accept() has taken are to come here, as CRIU
 * should have arranged, if anything is missing there. 0 or -errno. */
int serve_register(struct serve *serve, pid_t pid, uint64_t start, uint64_t end);
/* Serves until no page is missing; the userfaultfds are closed then. A child that is forked
 * meanwhile gets a copy of all pages that its parent lacks: memory for that must be limited from
 * outside. After an error the processes must be killed, unless another server goes on. */
int serve_run(struct serve *serve, struct rm_error *err);

/* Bytes still missing. */
uint64_t serve_missing_bytes(const struct serve *serve);
const struct serve_figures *serve_figures(const struct serve *serve);

#endif
