/* Work that can wait gives way to the programs of the node. */
#ifndef RM_MOVER_PRIORITY_H
#define RM_MOVER_PRIORITY_H

#include <stdbool.h>

struct priority {
        bool low;
        int nice; /* as it was */
        int io;
};

/* Less of the processor and the disk than others get. Failures are ignored: it is done faster
 * then. */
void priority_lower(struct priority *p);
/* Restores the previous priority, if it was lowered. */
void priority_restore(struct priority *p);

#endif
