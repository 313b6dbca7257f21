/* Types and operations that the program frees while something of ours still needs them: they are
 * freed after it. */
#ifndef RM_RTLIB_FT_DEFERRED_H
#define RM_RTLIB_FT_DEFERRED_H

/* An operation that has begun needs all memory that the program has now. */
void deferred_hold(void);
void deferred_release(void);

#endif
