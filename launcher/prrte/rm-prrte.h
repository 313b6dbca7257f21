/* The library that rmd preloads into mpirun and its daemons: where it is, and what of it the unit
 * test calls. */
#ifndef RM_LAUNCHER_PRRTE_RM_PRRTE_H
#define RM_LAUNCHER_PRRTE_RM_PRRTE_H

/* The path of the library in a capsule; the same as LAUNCH_PRRTE in daemon/job/launch.h. */
#define PRRTE_PRELOAD "/run/rmd-prrte.so"
/* So begins a variable whose value is one that a shell would have dropped; as LAUNCH_VARIABLE
 * there. */
#define PRRTE_VARIABLE "RM_VARIABLE_"

/* Takes `self` out of LD_PRELOAD, in place, and that out of `env` if nothing is left of it; gives
 * variables that a shell would have dropped their names again. */
void prrte_clean_environment(char **env, const char *self);

/* This process is a daemon, and writes to that file; NULL: it is none. */
void prrte_set_daemon(const char *ends_path);

#endif
