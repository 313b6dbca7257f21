/* The functions that capture.c and arrival.c call, played by the test: one copy of a capsule, whose
 * operations end when the test says so, and one rm-mover. */
#ifndef RM_TESTS_TRANSFER_FAKES_H
#define RM_TESTS_TRANSFER_FAKES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/config/config.h"
#include "daemon/job/runner.h"
#include "daemon/transfer/mover.h"
#include "proto/mover.pb-c.h"

enum fake_op {
        FAKE_PRELOAD,
        FAKE_ANNOUNCE,
        FAKE_OVER,
        FAKE_FREEZE,
        FAKE_CUT,
        FAKE_OPEN,
        FAKE_SAVED_STATE,
        FAKE_DUMP,
        FAKE_PREPARE,
        FAKE_RESTORE,
        FAKE_OPS
};

/* The state of the test. */
struct fakes {
        struct event_base *base;
        struct config config;
        struct rmd rmd;
        struct resident *resident;
        struct calls calls; /* of it */
        bool gone; /* the copy is not here */
        enum capsule_phase phase;
        struct capsule_status status;
        unsigned asked[FAKE_OPS]; /* how often */
        int refused[FAKE_OPS]; /* what the call itself returns */
        capsule_done_fn done[FAKE_OPS]; /* of the last one; NULL: it has ended, or nobody waits */
        void *arg[FAKE_OPS];
        capsule_saved_state_fn saved_state;
        void *saved_state_arg;
        enum capsule_capture announced; /* what the last announcement was about */
        bool back, other_files, pages; /* of the last restore or dump */
        uint64_t left_ago_usec;        /* likewise */
        unsigned inflight; /* so often is a connection found that nobody has accepted */
        int mover_refuses;
        Rm__MoverCommand__BodyCase ordered[16]; /* of rm-mover */
        size_t n_ordered;
        size_t trees_ordered; /* of the last order that had some */
        bool announce_ordered;
        const struct mover_ops *mover_ops; /* NULL: none runs */
        void *mover_userdata;
        bool test_runs, test_passed;
        uint64_t memory_bytes;
        size_t measured_processes; /* that were to be looked at, last */
        unsigned retries; /* of the runner */
        uint64_t wait_usec; /* for which ranks may make others wait */
};

/* The only one, which the faked functions use. */
extern struct fakes *const fakes;

int fakes_set_up(void **state);
int fakes_tear_down(void **state);
/* The last operation of this kind ends; it must be under way. */
void fake_ends(enum fake_op op, int error, const char *text);
void fake_saved_state_ends(int error, const char *text);
void fake_mover_says(const Rm__MoverEvent *event);
/* The last order that rm-mover got, and how many it has got; 0: none. */
Rm__MoverCommand__BodyCase fake_last_order(void);
/* Lets the loop run until timers of up to so many microseconds have passed. */
void fake_time_passes(uint64_t usec);

#endif
