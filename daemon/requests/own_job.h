/* The job that a request is about. */
#ifndef RM_REQUESTS_OWN_JOB_H
#define RM_REQUESTS_OWN_JOB_H

#include "daemon/client/client.h"

/* The job, when this client may see and touch it; otherwise NULL, and the client was told so as to
 * a request of that name. */
const Rm__Job *own_job_find(struct client *client, uint32_t request_id, const char *verb, uint64_t id);
/* True: there is no such signal, and the client was told. 0, the usual one, is allowed. */
bool own_job_refuse_signal(struct client *client, uint32_t request_id, const char *verb, uint32_t signal);

#endif
