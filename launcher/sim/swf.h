/* Traces in the Standard Workload Format: one job a line, 18 numbers, -1 for what is not known;
 * comments begin with ';'. */
#ifndef RM_SIM_SWF_H
#define RM_SIM_SWF_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum {
        SWF_MAX_BYTES = 1024 * 1024 * 1024,
        SWF_MAX_RANKS = 1 << 20, /* of a job */
};

struct swf_job {
        uint64_t number;
        int64_t submit_usec; /* from the start of the trace, not falling */
        int64_t run_usec; /* > 0: what it takes on cores of its own */
        int64_t limit_usec; /* > 0: the time it asked for; what it took where the trace does not say */
        uint32_t ranks;
        uint64_t rank_bytes; /* memory of one process; 0: not known */
};

struct swf {
        struct swf_job *jobs; /* in the order of submission */
        size_t n_jobs;
        size_t n_skipped; /* lines that are no whole job: cancelled before they ran, or parts of one */
};

/* Strict: any bytes give a trace or one error that begins with "NAME:LINE: " (-EINVAL). */
int swf_parse(const char *name, const char *text, size_t size_bytes, struct swf *ret_swf, struct rm_error *err);
/* "-": the standard input. */
int swf_read(const char *path, struct swf *ret_swf, struct rm_error *err);
void swf_finish(struct swf *swf);

#endif
