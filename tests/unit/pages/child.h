/* Children whose memory is tracked. */
#ifndef RM_TESTS_UNIT_PAGES_CHILD_H
#define RM_TESTS_UNIT_PAGES_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The calling process and what it begins from now on get their turn as others do, though
 * tools/lib/give-way runs the test: processes that are stopped for milliseconds only must be given
 * a processor within them. */
void priority_normal(void);

struct child {
        pid_t pid;
        int pidfd;
        int link; /* a socket whose other end the child's function gets */
};

/* Runs `function` in a child, and returns when it has written its first byte into the link; ends it
 * when it returns. */
struct child child_begin(void (*function)(int link));
/* Kills it, unless it has ended; returns its status. */
int child_end(struct child *child);
/* Waits for its own end, which must be a good one. */
void child_finish(struct child *child);

/* Ends the children that a failed test has left: many compute indefinitely, and others would be too
 * slow beside them. */
void children_end(void);

/* Checks a condition that must be true in a child. */
#define child_assert(condition) child_check((condition), #condition, __LINE__)
void child_check(bool condition, const char *text, int line);

/* Called in a child: it is ready. Waits for a byte from the parent. */
void child_ready(int link);
void child_wait(int link);

/* Called in the parent. */
void child_go(const struct child *child);
void child_expect(const struct child *child); /* a byte, which says that all is well */

/* A line of its status file, as "State:\tS (sleeping)". malloc'ed. */
char *child_status(pid_t pid, const char *name);
/* Which system calls its threads are in: " NUMBER" of each, or " running". malloc'ed. */
char *child_calls(pid_t pid);
/* Waits until all its threads wait in system calls, and none touches its memory. */
void child_settle(const struct child *child);
unsigned child_descriptors(pid_t pid);

#endif
