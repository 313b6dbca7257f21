/* Gives the processes of a control group only a part of the processor time that they could use. */
#ifndef RM_MOVER_SLOW_H
#define RM_MOVER_SLOW_H

struct slow;

/* `group_dir`: with the controller "cpu" of either version. 0 or -errno; nothing is limited yet. */
int slow_open(const char *group_dir, unsigned cores, struct slow **ret);
/* Limits each of the `cores` to so much of a second. 0 or -errno. */
int slow_set(struct slow *slow, unsigned usec_per_sec);
/* No limit any more. NULL ok. */
void slow_end(struct slow *slow);

#endif
