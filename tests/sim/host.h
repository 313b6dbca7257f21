/* Hosts of the virtual world: a process each, that can be killed, stopped and continued at any
 * event, and clocks of its own, that drift and jump. Does not know what the process is. */
#ifndef RM_TESTS_SIM_HOST_H
#define RM_TESTS_SIM_HOST_H

#include <stddef.h>

#include "tests/sim/timeline.h"

struct host;

enum host_state {
        HOST_RUNS,
        HOST_STOPPED, /* by SIGSTOP: what is for it waits */
        HOST_DEAD,
};

/* The calls of the host's process. NULL members are skipped. */
struct host_ops {
        void (*on_start)(void *userdata);
        /* The process is gone: free what it had. Nothing that is done here has an effect on the
         * world. */
        void (*on_killed)(void *userdata);
        void (*on_packet)(void *userdata, unsigned from, const void *data, size_t size_bytes);
        /* After each event of this host. */
        void (*on_idle)(void *userdata);
};

/* Begins HOST_DEAD. `number` is its address, from 0. */
struct host *host_create(struct timeline *t, unsigned number, const char *name, const struct host_ops *ops, void *userdata);
/* The process must be dead, or its owner frees what it has. NULL ok. */
void host_destroy(struct host *host);

unsigned host_number(const struct host *host);
const char *host_name(const struct host *host);
enum host_state host_state(const struct host *host);
struct timeline *host_timeline(const struct host *host);

/* The parts of the host's system that belong to its process; NULL until one is set. */
enum host_part {
        HOST_NETWORK,
        HOST_DISK,
        HOST_TIMERS,
        HOST_SOCKETS,
        HOST_STORAGE,
        HOST_CAPSULES,
        HOST_MOVERS,
        HOST_PROCESS,
        HOST_KEPT,
        HOST_PARTS
};
void *host_part(const struct host *host, enum host_part part);
void host_set_part(struct host *host, enum host_part part, void *what);

/* No effect in a state from which that cannot be. */
void host_start(struct host *host);
void host_kill(struct host *host);
void host_stop(struct host *host);
void host_continue(struct host *host);

/* ---- for the process ---- */

/* After so long by the host's monotonic clock. Never after the process was killed: then `drop` is
 * called, NULL ok. */
void host_after(struct host *host, uint64_t delay_usec, event_fn fn, event_fn drop, void *userdata);
/* As CLOCK_BOOTTIME: it jumps when the host was suspended. */
uint64_t host_monotonic_usec(const struct host *host);
/* As CLOCK_MONOTONIC: it does not. */
uint64_t host_awake_usec(const struct host *host);
uint64_t host_real_usec(const struct host *host);

/* The host whose process runs now; NULL: none does. For code that asks for the time without naming
 * a host. */
struct host *host_current(void);

/* ---- for the world ---- */

/* Which life of the process this is. */
uint64_t host_life(const struct host *host);
/* Calls `fn` now, or when the host is continued, and `drop` if that life has ended. `life` 0: for
 * any life, and dropped if the process is dead. */
void host_deliver(struct host *host, uint64_t life, event_fn fn, event_fn drop, void *userdata);
void host_packet(struct host *host, unsigned from, const void *data, size_t size_bytes);

/* Millionths that its clocks go too fast, or too slow. */
void host_set_drift(struct host *host, int drift_ppm);
/* The clock jumps as after the suspension of a virtual machine. The monotonic clock only goes
 * ahead. */
void host_jump(struct host *host, uint64_t ahead_usec);
/* The clock is set as by an administrator. */
void host_set_real(struct host *host, int64_t change_usec);

#endif
