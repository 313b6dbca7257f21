/* What a program wants to do before and after it is captured. */
#ifndef RM_RTLIB_EVENTS_H
#define RM_RTLIB_EVENTS_H

#include <stdint.h>

#include "rm/rmrt.h"

/* As rmrt_at(). */
int events_add(enum rmrt_event event, rmrt_event_fn fn, void *data);
/* As of Listen; 0: it wants nothing. */
uint32_t events_wanted(void);
/* Takes what has come, and calls the program's functions, in the thread that calls this; another one does nothing meanwhile. */
void events_look(uint32_t rank);

#endif
