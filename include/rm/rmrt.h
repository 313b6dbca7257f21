/* librmrt: what a program may tell rmd, the resource manager that it runs under. No program must.
 *
 * Outside of rmd every call succeeds and does nothing, so that one binary runs everywhere. All calls may be made by any thread, none waits, none makes
 * a thread, and none of them keeps a descriptor open. Link with -lrmrt (pkg-config rmrt).
 *
 * Errors are negative errno values. The library prints nothing. */
#ifndef RM_RMRT_H
#define RM_RMRT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Finds out whether this process is a rank of a job of rmd; before or after MPI_Init(). Again: does nothing. Always 0. */
int rmrt_init(void);

/* Is it? False before rmrt_init(). */
bool rmrt_is_managed(void);

/* `done` of `total` steps of equal work are done, as of this rank; `total` 0: not known. The job is as far as the rank that has done the fewest. To be
 * called after each step: costs some tens of nanoseconds, and rmd is told once a second at most. -EINVAL: more are done than there are. */
int rmrt_step(uint64_t done, uint64_t total);

/* How many steps per second are wanted, at least and at most; 0: no such limit. -EINVAL: negative, not a number, or more at least than at most. */
int rmrt_goal(double steps_min, double steps_max);

/* Tells rmd what was said last. The other calls do nothing after it. */
void rmrt_finalize(void);

#ifdef __cplusplus
}
#endif

#endif
