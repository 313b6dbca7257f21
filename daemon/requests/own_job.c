#include "daemon/requests/own_job.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>

#include "daemon/cluster/cluster.h"

const Rm__Job *own_job_find(struct client *client, uint32_t request_id, const char *verb, uint64_t id) {
        const Rm__Job *job = state_job(cluster_state(client->rmd->cluster), id);

        if (job && client_may(client, job->spec->uid))
                return job;
        client_error(client, request_id, -ENOENT, "%s: no job %" PRIu64 " of yours", verb, id);
        return NULL;
}

bool own_job_refuse_signal(struct client *client, uint32_t request_id, const char *verb, uint32_t signal) {
        if (signal <= (uint32_t) SIGRTMAX)
                return false;
        client_error(client, request_id, -EINVAL, "%s: invalid signal %u", verb, signal);
        return true;
}
