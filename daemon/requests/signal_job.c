#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/util.h"
#include "daemon/job/runner.h"
#include "daemon/requests/own_job.h"
#include "daemon/requests/requests.h"

struct signalling {
        struct client *client;
        uint32_t request_id;
        uint64_t job;
};

static void refuse_for_now(struct client *client, uint32_t request_id, uint64_t job) {
        client_error(client, request_id, -EAGAIN, "signal-job: job %" PRIu64 " cannot take a signal now", job);
}

/* The front end sends it again until it was taken. */
static void on_signalled(struct capsule *capsule, int error, const char *text, void *arg) {
        struct signalling *signalling = arg;

        (void) capsule;
        (void) text;
        if (error < 0)
                refuse_for_now(signalling->client, signalling->request_id, signalling->job);
        else
                client_ok(signalling->client, signalling->request_id, 0, NULL);
        client_release(signalling->client);
        free(signalling);
}

void request_signal_job(struct client *client, const Rm__LocalRequest *request) {
        const Rm__SignalJob *in = request->signal_job;
        struct signalling *signalling;

        if (!own_job_find(client, request->id, "signal-job", in->job) ||
            own_job_refuse_signal(client, request->id, "signal-job", in->signal))
                return;
        signalling = xcalloc(1, sizeof(*signalling));
        *signalling = (struct signalling) { client_hold(client), request->id, in->job };
        if (in->signal != 0 && runner_signal_head(client->rmd->runner, in->job, (int) in->signal, on_signalled, signalling) == 0)
                return;
        refuse_for_now(client, request->id, in->job);
        client_release(signalling->client);
        free(signalling);
}
