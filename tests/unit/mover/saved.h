/* Checkpoints that a mover makes of children, and loads for another one. */
#ifndef RM_TESTS_MOVER_SAVED_H
#define RM_TESTS_MOVER_SAVED_H

#include "../pages/child.h"
#include "bed.h"

/* A packed Capsule__SavedState with an inventory of nothing. */
#define SAVED_STATE "\x52\0"
enum { SAVED_STATE_BYTES = 2 };

struct saved {
        struct bed *bed; /* its directories, and the pair that loads */
        char *store;
        struct pair pair; /* the one that saves: PAIR_SEND */
        uint64_t bytes_per_sec;
        uint64_t memory_bytes;
        const char *key_file; /* that of the bed */
};

int saved_setup(void **state);
int saved_teardown(void **state);

/* Starts it, and waits until it is ready. */
void save_begin(struct saved *s, const char *environment);
/* `number`: of the checkpoint. */
void say_checkpoint(struct saved *s, uint64_t number, const pid_t *pids, size_t n);
void say_captured(struct saved *s);
void say_release(struct saved *s);

/* The next event other than progress must be this one. Caller frees. */
Rm__MoverEvent *save_receive(struct saved *s, Rm__MoverEvent__BodyCase kind);
void save_expect(struct saved *s, Rm__MoverEvent__BodyCase kind);
void save_fails(struct saved *s, const char *text);
/* Ends the save; returns its exit code. */
int save_end(struct saved *s);

/* Until it is ready for the freeze; through the freeze, which must have begun for the processes;
 * and until it is stored. */
void checkpoint_ahead(struct saved *s, uint64_t number, const pid_t *pids, size_t n);
void checkpoint_freeze(struct saved *s);
/* Makes a whole checkpoint: the processes are frozen at the end. Returns the last event. Caller
 * frees. */
Rm__MoverEvent *checkpoint_make(struct saved *s, uint64_t number, const pid_t *pids, size_t n);

/* A process that stands still since a checkpoint goes on; and does its next step. */
void let_run(pid_t pid);
void let_write(const struct child *child);

/* Loads it into the bed's directories. */
void load_begin(struct saved *s, uint64_t number);
void load_make(struct saved *s, uint64_t number);

/* Which checkpoints are there, in order, e.g. "1 3 ": each whole. Malloc'ed. */
char *stored_numbers(const struct saved *s);
/* Damages a file of the store: one bit of the byte there. */
void store_flip(const struct saved *s, const char *name, off_t at);
/* The store, for rm-mover. */
void store_fill(const struct saved *s, Rm__MoverStore *ret);

#endif
