/* The notices of PID 1 to this rank, and the parts of the library that take them. */
#ifndef RM_RTLIB_NOTICES_H
#define RM_RTLIB_NOTICES_H

#include <stdbool.h>
#include <stdint.h>

/* Takes what has come for this rank, and calls the program's functions (events.h), in the thread
 * that calls this; another one does nothing meanwhile. */
void notices_take(uint32_t rank);
/* Is this thread in one of the program's functions that it calls? */
bool notices_inside(void);

#endif
