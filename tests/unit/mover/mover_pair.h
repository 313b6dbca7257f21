/* Plays rmd on both sides of a pair of movers, and CRIU as far as its image streaming goes. For
 * tests and the bench. */
#ifndef RM_TESTS_MOVER_PAIR_H
#define RM_TESTS_MOVER_PAIR_H

#include <sys/types.h>

#include "daemon/mover/control.h"

enum { PAIR_SEND = 0, PAIR_RECEIVE = 1 };

struct pair {
        pid_t pids[2];
        int fds[2]; /* -1: none */
};

/* Forks both. `environment` "NAME=VALUE" is set in both; NULL ok. */
void pair_start(struct pair *p, const char *environment);
/* The same as pair_start(), with another role in place of mover_send(), and none beside it with
 * `alone`. */
void pair_start_as(struct pair *p, int (*role)(struct control *control), bool alone, const char *environment);
/* Waits for both; their exit codes, 128+signal for a signal. */
void pair_finish(struct pair *p, int ret_codes[2]);

void pair_say(struct pair *p, int side, const Rm__MoverCommand *command);
/* The next event other than progress; NULL when the mover is gone. Caller frees. Gives up after a
 * minute: NULL. */
Rm__MoverEvent *pair_receive(struct pair *p, int side);
/* Hears until it is an event of this kind (0: until the end), and returns it, or NULL. *ret_failed:
 * what it failed with. Caller frees. */
Rm__MoverEvent *pair_expect(struct pair *p, int side, Rm__MoverEvent__BodyCase kind);

void pair_say_start(struct pair *p);
void pair_say_abort(struct pair *p, int side, const char *reason);

/* CRIU's side of the capture socket. */
int fake_criu_connect(const char *images_dir);
/* Asks for an image; the pipe to write it to. */
int fake_criu_open(int sock, const char *name);

#endif
