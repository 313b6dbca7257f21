/* The name of this node stays the same while jobs have something on it. */
#ifndef RM_SETUP_NODENAME_H
#define RM_SETUP_NODENAME_H

#include "common/error.h"

/* The host may get another name while rmd is not running, by hand or from the network. To the
 * cluster that is another node: the capsules here would be nobody's, and the node that has them
 * would be lost. So the name under which they were made is kept in `runtime_dir`, which a boot
 * empties as it ends them. `*name` (malloc'ed) becomes that name where it is another one and there
 * are capsules; else that name is forgotten for `*name`. */
int nodename_keep(const char *runtime_dir, char **name, struct rm_error *err);

#endif
