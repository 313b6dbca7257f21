/* Shared by the files of this folder: checkpoints.c (wiring), saves.c (capsules that are captured
 * here), barrier.c (all capsules of a job together), copies.c (to and from other nodes), restores.c
 * (capsules that come back here), drills.c (that are only tried), loads.c (parts that are sent to
 * those), stores.c (where all that lies), checks.c (whether it is as it was), space.c (how much of
 * it may be there), exports.c and imports.c (what their owners take away, and bring back),
 * exchanges.c (both of them). */
#ifndef RM_CHECKPOINT_CHECKPOINTS_INTERNAL_H
#define RM_CHECKPOINT_CHECKPOINTS_INTERNAL_H

#include <event2/event.h>
#include <stdint.h>
#include <sys/queue.h>

#include "common/calls.h"
#include "daemon/checkpoint/checkpoints.h"
#include "daemon/checkpoint/machine.h"
#include "daemon/checkpoint/rounds.h"
#include "daemon/cluster/cluster.h"
#include "daemon/config/config.h"
#include "daemon/job/file_writer.h"
#include "daemon/transfer/arrival.h"
#include "daemon/transfer/capture.h"
#include "daemon/transfer/gate.h"
#include "daemon/transfer/mover.h"
#include "proto/export.pb-c.h"

#define CHECKPOINT_TOKEN_BYTES 32U
#define DRILL_INCARNATION (UINT64_C(1) << 63) /* and the drill's number: no copy that the state names has such a one */

/* A capsule of this node, from its first checkpoint on: its rm-mover keeps track of what it
 * writes until it leaves. */
struct save {
        struct checkpoints *c;
        uint64_t job;
        int32_t index;
        uint64_t incarnation;
        uint64_t checkpoint; /* 0: none is made */
        uint64_t given_up; /* the latest that came to nothing here, until the state says so too; 0: none */
        enum save_state state;
        char *dir; /* of the capture socket */
        struct mover *mover; /* NULL: none runs */
        bool mover_ready;
        uint64_t mover_last; /* the checkpoint that it stored last, from which it goes on; 0: none */
        bool released; /* it tracks no more, and ends when it has stored what it has */
        enum capture_wait waits; /* in PREPARE */
        struct caller caller; /* of what ranks are asked between PRECOPY and FREEZE */
        struct capture *capture;
        uint64_t *kept; /* list_kept() */
        struct gate gate;
        struct event *deadline;
        uint64_t pause_usec;
        uint64_t raw_bytes, stored_bytes, store_usec;
        uint64_t output_end[2]; /* of a head, when it was cut */
        uint8_t *saved_state;
        size_t saved_state_bytes;
        bool pages; /* private memory goes apart from CRIU's images, as rm-mover has told */
        bool copies; /* with those of files that are written in place */
        char error[512];
        LIST_ENTRY(save) entry;
};

/* All capsules of a job, on the node of its head. */
struct barrier_part {
        int32_t index;
        Rm__CheckpointPhase phase;
        uint64_t pause_usec;
        uint32_t places; /* ranks that have some */
        uint32_t round; /* since which these wait at them; 0: they do not */
};
struct barrier {
        struct checkpoints *c;
        uint64_t job;
        uint64_t checkpoint;
        Rm__CheckpointPhase reached; /* by all, as they were told */
        size_t n;
        struct barrier_part *parts;
        uint64_t output_end[2]; /* of the head, when it was cut */
        bool failed;
        struct rounds rounds; /* between COPIED and CUT: ranks come to their places */
        struct event *round_over;
        LIST_ENTRY(barrier) entry;
};

/* A copy of a part that goes out, or (`in`) comes. */
struct copy {
        struct checkpoints *c;
        uint64_t job;
        uint64_t checkpoint;
        int32_t index;
        char *node; /* the other one */
        bool in;
        struct mover *mover;
        struct event *deadline;
        uint8_t token[CHECKPOINT_TOKEN_BYTES];
        char **files; /* in: that come, each as NAME.part until all are there */
        uint64_t *bytes; /* their sizes; once the other end knows what is here, 0 of those that are not */
        size_t n_files;
        bool received; /* in: all of them have come */
        bool settling; /* in: they have their names, which are forced to the disk */
        struct caller caller; /* of that */
        bool arrived; /* they are on the disk under their names, or the other end has them */
        LIST_ENTRY(copy) entry;
};

/* A capsule that comes back here. */
struct restore {
        struct checkpoints *c;
        uint64_t job;
        int32_t index;
        uint64_t incarnation;
        uint64_t checkpoint;
        enum restore_state state;
        char *dir;
        char *from; /* the node that sends it */
        char *tried; /* those that could not, separated by spaces */
        struct arrival *arrival;
        uint16_t port; /* where its rm-mover listens */
        struct event *deadline;
        uint64_t begin_usec;
        struct gate gate;
        bool drill; /* it only tries: then the capsule, made for that, is removed */
        bool drilled; /* and that is over; what has shown is for the log */
        uint64_t took_usec;
        char error[512];
        int code; /* of the capsule's error; 0: it was another one */
        bool said; /* that it fails: by who sends it, or what came does */
        bool unread; /* what was sent last was no good */
        uint64_t reported_usec; /* when the leader was told that it has failed */
        LIST_ENTRY(restore) entry;
};

/* A part that is sent to the node where its capsule comes back. */
struct load {
        struct checkpoints *c;
        uint64_t job;
        uint64_t checkpoint;
        int32_t index;
        uint64_t incarnation;
        char *node;
        struct mover *mover;
        LIST_ENTRY(load) entry;
};

/* A request waits for the result of a check. */
struct check_waiter {
        void (*fn)(void *userdata, int32_t index, const Rm__MoverVerified *found, int error, const char *text);
        void *userdata;
        SLIST_ENTRY(check_waiter) entry;
};

/* A store whose files are read again, or are to be. */
struct check {
        struct checkpoints *c;
        uint64_t job;
        int32_t index;
        struct mover *mover; /* NULL: its turn has not come */
        uint64_t *had; /* the checkpoints that this node had by the log when it began */
        size_t n_had;
        struct event *deadline;
        SLIST_HEAD(, check_waiter) waiters;
        TAILQ_ENTRY(check) entry;
};

/* A checkpoint that a user takes away or (`in`) brings back. */
struct exchange {
        struct checkpoints *c;
        bool in;
        bool held; /* in: the stores of its job have what has come, and the log is to hear of it */
        uint32_t uid; /* whose program it is */
        uint64_t job; /* in: 0 until it is known */
        uint64_t checkpoint; /* likewise */
        char *user;
        bool admin;
        struct owner_today today; /* in: who the user is, owned */
        char *socket; /* its path, where the program meets rm-mover */
        char *dir; /* in: where it comes to */
        Rm__ExportHead *head; /* in: NULL until it is known */
        struct mover *mover;
        struct event *deadline;
        struct caller caller; /* of what is proposed */
        struct checkpoints_exchange_ops ops;
        void *userdata;
        LIST_ENTRY(exchange) entry;
};

struct checkpoints {
        struct rmd *rmd;
        struct calls saves_calls;
        struct calls captures, arrivals, copies_calls, exchanges_calls;
        char *dir; /* a tmpfs: images and capture sockets */
        char *root; /* of all stores here */
        bool shared; /* it is on a file system of all nodes */
        struct remover *remover;
        struct event *wake;
        bool reconciling; /* on_wake() or on_retry() runs */
        /* An rmd before this one may have taken part in checkpoints that started until then, by the
         * log's clock; 0: not known yet. */
        uint64_t since_usec;
        struct event *retry;
        bool retry_requested;
        struct event *tidy; /* pending: stores are to be searched for parts that are not needed */
        struct event *tidy_again; /* pending: something was too new to be told from what is being made */
        LIST_HEAD(, save) saves;
        LIST_HEAD(, barrier) barriers;
        LIST_HEAD(, copy) copies;
        struct file_writer *writer; /* copies.c: made when it is first needed */
        LIST_HEAD(, restore) restores;
        LIST_HEAD(, load) loads;
        LIST_HEAD(, exchange) exchanges;
        char *sockets; /* the directory of theirs */
        uint64_t last_socket;
        struct event *verify; /* NULL: nothing is read again by itself */
        bool scanned; /* whether what this node has by the log is there */
        TAILQ_HEAD(, check) checks; /* the first that has an rm-mover is the only one */
};

/* ---- checkpoints.c ---- */
const Rm__State *checkpoints_state(const struct checkpoints *c);
const char *checkpoints_self(const struct checkpoints *c);
/* Look again in a moment. */
void checkpoints_retry(struct checkpoints *c);
int checkpoints_send(struct checkpoints *c, const char *node, const Rm__PeerMessage *message);
/* NULL: the state has no such job, or checkpoint. */
const Rm__Checkpoint *checkpoints_record(const struct checkpoints *c, uint64_t job, uint64_t checkpoint);
/* Proposed once; whether it holds, the state shows. */
void checkpoints_propose(struct checkpoints *c, const Rm__Command *command);
void checkpoints_propose_abort(struct checkpoints *c, uint64_t job, uint64_t checkpoint, const char *error);

/* ---- saves.c ---- */
void saves_wake(struct checkpoints *c);
void saves_on_go(struct checkpoints *c, const Rm__CheckpointGo *go);
/* The save of this checkpoint; NULL: it is not made here. */
const struct save *saves_find(const struct checkpoints *c, uint64_t job, int32_t index, uint64_t checkpoint);
/* The save that has stored this checkpoint last, if its rm-mover goes on; NULL: none has. */
const struct save *saves_last(const struct checkpoints *c, uint64_t job, int32_t index, uint64_t checkpoint);
/* Does an rm-mover of ours have this store open? */
bool saves_use(const struct checkpoints *c, uint64_t job, int32_t index);
/* Is something of it being captured or stored? */
bool saves_busy(const struct checkpoints *c, uint64_t job, int32_t index);
/* Without the node of the head no message says when it goes on. */
void saves_on_lost(struct checkpoints *c, const char *node);
void saves_keep(const struct checkpoints *c);
void saves_finish(struct checkpoints *c);

/* ---- barrier.c ---- */
void barrier_on_at(struct checkpoints *c, const Rm__CheckpointAt *at);
/* Removes barriers of checkpoints that the state has no more, or that have passed their last
 * phase. */
void barrier_wake(struct checkpoints *c);
/* A node that is still to capture something is out of reach: the checkpoint is given up. */
void barrier_on_lost(struct checkpoints *c, const char *node);
void barrier_keep(const struct checkpoints *c);
void barrier_finish(struct checkpoints *c);

/* ---- copies.c ---- */
/* This part is stored here: offers it to those that are to have a copy, and have none yet. */
void copies_offer(struct checkpoints *c, const Rm__Checkpoint *checkpoint, uint64_t job, int32_t index);
/* Offers those copies of finished checkpoints that are needed since others were lost. Looks at all
 * checkpoints. */
void copies_offer_again(struct checkpoints *c);
void copies_on_offer(struct checkpoints *c, const char *node, const Rm__CopyOffer *offer);
void copies_on_accept(struct checkpoints *c, const char *node, const Rm__CopyAccept *accept);
void copies_wake(struct checkpoints *c);
void copies_on_lost(struct checkpoints *c, const char *node);
bool copies_use(const struct checkpoints *c, uint64_t job, int32_t index);
/* A file that has not come as a whole has this after its name. */
#define COPIES_PART_SUFFIX ".part"
void copies_keep(const struct checkpoints *c);
void copies_finish(struct checkpoints *c);

/* ---- restores.c ---- */
void restores_wake(struct checkpoints *c);
void restores_capsule_ready(struct checkpoints *c, struct resident *resident, int error, const char *text);
void restores_on_saved_state(struct checkpoints *c, const char *node, const Rm__RestoreSavedState *saved_state);
void restores_on_lost(struct checkpoints *c, const char *node);
/* Tries one, with a capsule that is about to be made, which no other module uses. */
struct restore *restores_begin_drill(struct checkpoints *c, uint64_t job, const Rm__Checkpoint *checkpoint, int32_t index);
/* Removes the capsule too. */
void restores_end_drill(struct restore *restore);
void restores_keep(const struct checkpoints *c);
void restores_finish(struct checkpoints *c);

/* ---- drills.c ---- */
void drills_wake(struct checkpoints *c);
/* Is it of a drill that goes on? */
bool drills_own(const struct checkpoints *c, const struct resident *resident);
/* The drill's restore has succeeded, or (`error` not "") has not, or was not tried (`usec` 0). */
void drills_tried(struct restore *restore);

/* ---- loads.c ---- */
void loads_on_ask(struct checkpoints *c, const char *node, const Rm__RestoreAsk *ask);
bool loads_use(const struct checkpoints *c, uint64_t job, int32_t index);
void loads_finish(struct checkpoints *c);

/* ---- exchanges.c ---- */
int exchanges_init(struct checkpoints *c, struct rm_error *err);
/* NULL: there are too many. */
struct exchange *exchange_create(struct checkpoints *c, bool in, const struct checkpoints_user *user,
                                 const struct checkpoints_exchange_ops *ops, void *userdata, struct rm_error *err);
/* Starts the rm-mover of it. `head`: an ExportHead of what is exported; of an import, which has
 * none yet, empty. */
int exchange_start(struct exchange *exchange, Rm__MoverStore *store, ProtobufCBinaryData head, const char *key_file,
                   struct rm_error *err);
/* The exchange ends; its client is told. */
void exchange_end(struct exchange *exchange, int error, const char *text);
void exchange_fail(struct exchange *exchange, int error, const char *text);
/* Frees the exchange without telling its client. */
void exchange_free(struct exchange *exchange);
/* The stores of that job are read, or get what the log is about to know of. */
bool exchanges_use(const struct checkpoints *c, uint64_t job);
void exchanges_finish(struct checkpoints *c);

/* ---- imports.c ---- */
/* rm-mover says what comes; and that all of it is good. */
void import_head(struct exchange *exchange, const ProtobufCBinaryData *packed);
void import_arrived(struct exchange *exchange);
/* Removes the rest of imports that a previous rmd has left. */
void imports_clean(struct checkpoints *c);

/* ---- stores.c ---- */
/* The store's directory of one capsule; malloc'ed. */
char *stores_dir(const struct checkpoints *c, uint64_t job, int32_t index);
/* The store as rm-mover gets it, with the owner that the state has, not one that a message names.
 * `dir`, which stays the caller's, is that of stores_dir(). -ENOENT: there is no such job. */
int stores_describe(const struct checkpoints *c, uint64_t job, int32_t index, const char *dir, Rm__MoverStore *ret,
                    struct rm_error *err);
/* Where they lie, as CheckpointPart.stored has it: this node, or STATE_STORED_SHARED. */
const char *stores_place(const struct checkpoints *c);
/* Makes the directory above it. */
int stores_make(const struct checkpoints *c, uint64_t job, struct rm_error *err);
/* Names of the files there that make up `checkpoint` and those before it, the manifest last;
 * malloc'ed, as each name is. 0 or negative errno; `whole`: -ENOENT without the manifest. */
int stores_files(const char *dir, uint64_t checkpoint, bool whole, char ***ret_names, size_t *ret_n);
/* Removes stores that the state does not name any more. */
void stores_tidy(struct checkpoints *c);
/* Removes directories that a previous rmd was about to remove. */
void stores_clean(struct checkpoints *c);
/* Calls `fn` for each capsule that has a directory here. */
void stores_each(struct checkpoints *c, void (*fn)(struct checkpoints *c, uint64_t job, int32_t index, void *arg), void *arg);

/* ---- checks.c ---- */
void checks_init(struct checkpoints *c);
/* Reads that store when its turn comes; `waiter` NULL: no request waits. It is taken over. */
void checks_want(struct checkpoints *c, uint64_t job, int32_t index, struct check_waiter *waiter);
/* The same as checks_want(), if `code` says that a checkpoint of the store could not be read since
 * it is damaged, or not there. */
void checks_want_unread(struct checkpoints *c, uint64_t job, int32_t index, int code);
void checks_wake(struct checkpoints *c);
void checks_finish(struct checkpoints *c);

/* ---- space.c ---- */
/* The bytes that may be added on this node to the checkpoints of the job's user, at least 1: by
 * [checkpoint] space_max_per_user, and so that the disk does not become full. */
/* Pure: of a user who has so much already, where so much is free for checkpoints; `limit_bytes` 0:
 * half of what others have left him. At least 1. */
uint64_t space_of_user(uint64_t limit_bytes, uint64_t has_bytes, uint64_t free_bytes);
uint64_t space_left(const struct checkpoints *c, uint64_t job);
uint64_t space_left_of_user(const struct checkpoints *c, uint32_t uid);
/* There was no room: the oldest checkpoint of the job's user that this node has part of goes, of a
 * job that has a newer one; but not the one that wants it. */
void space_make(struct checkpoints *c, uint64_t wanting, uint64_t checkpoint);
/* The oldest one that is done and has a newer one that is; NULL: the job has none to spare. */
const Rm__Checkpoint *space_spare(const Rm__Job *job);

#endif
