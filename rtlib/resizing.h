/* Growing and shrinking of this process (rm/rmrt_resize.h): the state in resize.h, at the door. */
#ifndef RM_RTLIB_RESIZING_H
#define RM_RTLIB_RESIZING_H

#include <stdint.h>

#include "proto/door.pb-c.h"

/* This process is rank `rank` of a job that begins with `ranks` active ones; 0: of a fixed
 * number. */
void resizing_init(uint32_t rank, uint32_t ranks);
/* Takes a notice of notices.h. */
void resizing_hear(const Door__Resize *notice);
/* The program ends: waits until rmd has heard that parked ranks are to end, some seconds at
 * most. */
void resizing_finish(void);

#endif
