/* Processes that wait in MPI_Init until they replace a critical rank that was lost. */
#ifndef RM_RTLIB_FT_SPARE_H
#define RM_RTLIB_FT_SPARE_H

#include <stdbool.h>

/* Called by a spare process: returns once it is a rank of the program, together with the others;
 * ends the process if the program has come to its end without it. */
void spare_wait(void);
/* The same end for one that is to replace a rank, and is not yet with the others. To be called
 * while it waits for them. */
void spare_scan(void);

/* For rmrt_is_respawned(), which finds it by its name. */
__attribute__((visibility("default"))) bool rmrt_ft_is_respawned(void);

/* Called by a rank, when all living ones have come to MPI_Finalize: spare processes that still wait
 * are to end. Returns when they know. */
void spare_end_others(void);

#endif
