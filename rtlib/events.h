/* The functions that a program wants called before and after it is captured. */
#ifndef RM_RTLIB_EVENTS_H
#define RM_RTLIB_EVENTS_H

#include <stdint.h>

#include "proto/program.pb-c.h"
#include "rm/rmrt.h"

/* As rmrt_at(). */
int events_add(enum rmrt_event event, rmrt_event_fn fn, void *data);
/* The events that the program wants, as in Listen; 0: none. */
uint32_t events_requested(void);
/* The notices that have come, one after the other, in the thread that calls the program's
 * functions; then the rest of the work. */
struct events_pending {
        enum rmrt_event before; /* 0: none */
        uint64_t serial; /* of what is to be answered; 0: nothing */
};
void events_receive(struct events_pending *pending, const Program__Notice *notice);
void events_settle(const struct events_pending *pending, uint32_t rank);
/* The work that the notice asks for is done. */
void events_answer(uint32_t rank, uint64_t serial);

#endif
