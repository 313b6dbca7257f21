/* What only the leader knows, since it is in no log: memory that is free, what folded jobs get of their cores, and how far programs are. */
#include <errno.h>
#include <stdlib.h>

#include "common/util.h"
#include "daemon/leader/leader.h"
#include "daemon/requests/requests.h"

/* Those that are up and have told. The names are the snapshot's. */
static void fill_nodes(const struct rm_snapshot *view, Rm__Use *use, Rm__NodeUse *nodes) {
        for (uint32_t s = 0; s < view->n_nodes; s++) {
                Rm__NodeUse *node = &nodes[use->n_nodes];

                if (view->nodes[s].state == RM_NODE_DOWN || view->nodes[s].memory_free == RM_NO_MEMORY_LIMIT)
                        continue;
                rm__node_use__init(node);
                node->node = (char *) view->nodes[s].name;
                node->memory_free_bytes = (uint64_t) view->nodes[s].memory_free;
                use->nodes[use->n_nodes++] = node;
        }
}

/* Of one job, or of all that the client may see. */
static void fill_progress(struct client *client, uint64_t only, Rm__Use *use) {
        const Rm__State *state = cluster_state(client->rmd->cluster);

        use->progress = xcalloc(state->n_jobs + 1, sizeof(*use->progress));
        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Job *job = state->jobs[i];
                Rm__Progress *progress;

                if (job->state != RM__JOB_STATE__JOB_RUNNING || (only > 0 && job->id != only) ||
                    !client_may(client, job->spec->uid))
                        continue;
                progress = xcalloc(1, sizeof(*progress));
                rm__progress__init(progress);
                if (leader_progress(client->rmd, job, progress))
                        use->progress[use->n_progress++] = progress;
                else
                        free(progress);
        }
}

static void free_progress(Rm__Use *use) {
        for (size_t i = 0; i < use->n_progress; i++)
                free(use->progress[i]);
        free(use->progress);
}

void request_use(struct client *client, const Rm__LocalRequest *request) {
        struct rmd *rmd = client->rmd;
        const Rm__Job *job = state_job(cluster_state(rmd->cluster), request->get_use->job);
        struct snapshot *snapshot = leader_nodes(rmd);
        uint32_t n = snapshot ? snapshot_view(snapshot)->n_nodes : 0;
        cleanup_free Rm__NodeUse *nodes = xcalloc(n + 1u, sizeof(*nodes));
        cleanup_free Rm__NodeUse **pointers = xcalloc(n + 1u, sizeof(*pointers));
        Rm__Use use = RM__USE__INIT;
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;

        if (!snapshot) {
                client_error(client, request->id, -EHOSTUNREACH, "use: this node leads no longer");
                return;
        }
        use.nodes = pointers;
        fill_nodes(snapshot_view(snapshot), &use, nodes);
        if (job && client_may(client, job->spec->uid))
                use.slowdown = leader_slowdown(rmd, job);
        if (request->get_use->job > 0 || request->get_use->progress)
                fill_progress(client, request->get_use->job, &use);
        reply.body_case = RM__LOCAL_REPLY__BODY_USE;
        reply.use = &use;
        client_reply(client, request->id, &reply);
        free_progress(&use);
        snapshot_destroy(snapshot);
}
