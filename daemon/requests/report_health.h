/* The check of a ReportHealth, wherever it comes from. Pure. */
#ifndef RM_REQUESTS_REPORT_HEALTH_H
#define RM_REQUESTS_REPORT_HEALTH_H

#include "common/error.h"
#include "proto/local.pb-c.h"

/* -EINVAL: what is wrong, and what is allowed. */
int report_health_check(const Rm__ReportHealth *in, struct rm_error *err);

#endif
