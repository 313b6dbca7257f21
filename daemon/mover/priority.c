#include "daemon/mover/priority.h"

#include <linux/ioprio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A tenth of what a program gets that runs beside it. */
#define NICE_LOW 10
/* The last of those that are not idle: idle ones may wait without end. */
#define IO_LOW IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 7)

void priority_lower(struct priority *p) {
        if (p->low)
                return;
        p->nice = getpriority(PRIO_PROCESS, 0);
        p->io = (int) syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0);
        p->low = true;
        (void) setpriority(PRIO_PROCESS, 0, p->nice > NICE_LOW ? p->nice : NICE_LOW);
        (void) syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IO_LOW);
}

void priority_restore(struct priority *p) {
        if (!p->low)
                return;
        p->low = false;
        (void) setpriority(PRIO_PROCESS, 0, p->nice);
        if (p->io >= 0)
                (void) syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, p->io);
}
