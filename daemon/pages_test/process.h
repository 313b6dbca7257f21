/* The process that rm-pages-test dumps and restores: it has memory of each kind, changes it when
 * told, and looks at it when it has been restored. */
#ifndef RM_DAEMON_PAGES_TEST_PROCESS_H
#define RM_DAEMON_PAGES_TEST_PROCESS_H

#include <signal.h>
#include <stddef.h>

enum {
        PROCESS_CHANGE = SIGUSR1,
        PROCESS_SCAN = SIGUSR2,
        PROCESS_LAZY_BYTES = 16 << 20, /* private memory that must not be in the images */
        PROCESS_IMAGE_BYTES = 4 << 20, /* more than what must be in there */
        PROCESS_CANNOT = 1, /* exit status: it could not make its memory */
        PROCESS_WRONG = 16, /* and more: the number of the memory that is not as it was */
};

/* Stops itself (SIGSTOP) when its memory is made, and again when it has changed it. Ends with 0
 * after it has looked at it and all is as it was. */
_Noreturn void process_run(void);

/* The name of the memory by the status with which the process has ended. */
const char *process_memory_name(int status);

#endif
