/* The leader is told what groups get of cores that ranks share, so that a folded job's slowdown can
 * be shown. */
#ifndef RM_JOB_CORE_REPORT_H
#define RM_JOB_CORE_REPORT_H

struct runner;

void core_report_start(struct runner *runner);
void core_report_stop(struct runner *runner);

#endif
