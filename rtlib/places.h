/* Places at which a program wants to be saved: where it waits for a checkpoint that is near. */
#ifndef RM_RTLIB_PLACES_H
#define RM_RTLIB_PLACES_H

#include <stdbool.h>
#include <stdint.h>

/* This process has one. True: it is the first. */
bool places_note(void);
bool places_any(void);

/* Called by events.h: the rank is to wait at its next place, for so long at most from now on; in
 * place of an earlier request. And: no longer. */
void places_requested(uint64_t serial, uint64_t hold_usec);
void places_over(void);

/* The rank is at a place: waits there, if that is requested, until it is no longer, or until the
 * next place is requested. */
void places_stay(uint32_t rank);

#endif
