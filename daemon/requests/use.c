#include <errno.h>

#include "daemon/leader/leader.h"
#include "daemon/requests/requests.h"
#include "daemon/requests/view_source.h"
#include "daemon/view/use.h"

static double slowdown(const void *context, const Rm__Job *job) {
        return leader_slowdown(context, job);
}

static bool progress(const void *context, const Rm__Job *job, Rm__Progress *ret) {
        return leader_progress(context, job, ret);
}

static uint64_t start(const void *context, const Rm__Job *job) {
        return leader_expected_start(context, job);
}

void request_use(struct client *client, const Rm__LocalRequest *request) {
        const Rm__GetUse *in = request->get_use;
        const struct rmd *rmd = client->rmd;
        struct snapshot *nodes = leader_nodes(rmd);
        struct view_figures figures = { .slowdown = slowdown, .progress = progress, .start = start, .context = rmd };
        struct view_source source = request_view_source(rmd);
        struct view_reader reader = request_view_reader(client);
        Rm__Use use = RM__USE__INIT;

        if (!nodes) {
                client_error(client, request->id, -EHOSTUNREACH, "use: this node leads no longer");
                return;
        }
        figures.nodes = snapshot_view(nodes);
        view_use(&source, &reader, &figures, in->job, in->progress, &use);
        client_answer(client, request->id, &use.base);
        view_use_finish(&use);
        snapshot_destroy(nodes);
}
