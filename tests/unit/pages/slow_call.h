/* A program that is in process_vm_writev(2) for as long as a test wants. */
#ifndef RM_TESTS_UNIT_PAGES_SLOW_CALL_H
#define RM_TESTS_UNIT_PAGES_SLOW_CALL_H

#include <sys/types.h>

/* The address to which a page is written. */
struct target {
        pid_t pid;
        char *there;
};

/* A program for child_begin(). A struct target that is written into the link begins the call, whose
 * page of contents is missing until a byte comes behind that. The child's bytes say that the call
 * waits, having looked up where it writes, and that it is over. */
void write_what_is_missing(int link);

#endif
