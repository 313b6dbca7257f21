/* Memory of the capsules that are here, and reports of it to the leader, so that nothing is planned
 * onto a node that is full. */
#ifndef RM_JOB_MEMORY_REPORT_H
#define RM_JOB_MEMORY_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/job/runner.h"

/* The memory that a capsule takes. */
struct memory_report_use {
        uint64_t memory_bytes; /* its processes' own */
        uint64_t files_bytes;  /* in its /tmp, /dev/shm and /run */
};
/* Looks at `most` of its processes; for more it is estimated (memory_use.h). */
void memory_report_read(const struct resident *resident, size_t most, struct memory_report_use *ret);

/* Processes that are looked at in one call of the loop: 20 us each. A user may have thousands. */
#define MEMORY_REPORT_PROCESSES_MAX 2000U

/* The memory of a node, in bytes. */
struct memory_report_node {
        uint64_t total;
        uint64_t available; /* that the kernel could give; UINT64_MAX: not known */
        uint64_t groups;    /* taken by groups of ranks that are here */
        uint64_t heads;     /* taken by capsules of mpirun */
};

/* A move away has begun, which could track the capsule's memory, or did not try to; or could
 * not. */
void memory_report_tracked(struct resident *resident, bool tracked);

/* The last report. */
struct memory_report_sent {
        char *leader;
        uint64_t capacity_bytes;
        uint64_t sent_usec;
        bool groups; /* there were some */
        bool pages;
        uint64_t changes; /* of the counters */
};

/* Pure. Must this be reported, too? Without groups little changes, and a leader has many nodes. */
bool memory_report_due(const struct memory_report_sent *reported, const char *leader, const Rm__NodeMemory *report,
                       uint64_t now_usec);

/* The memory that could be added here now, whatever jobs there are; UINT64_MAX: nobody knows. */
uint64_t memory_report_space(const struct runner *runner);

/* Pure. What groups may have on the node in all, those that are there included; UINT64_MAX: no
 * limit. `offered`: [node] memory. */
uint64_t memory_report_capacity(const struct memory_report_node *node, uint64_t offered);

#endif
