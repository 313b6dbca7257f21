/* Growing and shrinking of this process (rm/rmrt_resize.h): the state in resize_state.h, at the
 * program socket. */
#ifndef RM_RTLIB_RESIZING_H
#define RM_RTLIB_RESIZING_H

#include <stdint.h>

#include "proto/program.pb-c.h"

/* This process is rank `rank` of a job that begins with `ranks` active ones; 0: of a fixed
 * number. */
void resizing_init(uint32_t rank, uint32_t ranks);
/* Takes a notice of notices.h. */
void resizing_receive(const Program__Resize *notice);
/* The program ends: waits until rmd has heard that parked ranks are to end, some seconds at
 * most. */
void resizing_finish(void);

#endif
