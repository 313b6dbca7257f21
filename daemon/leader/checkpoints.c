#include "daemon/leader/checkpoints.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/util.h"
#include "daemon/cluster/commands.h"
#include "daemon/config/config.h"

static bool listed(char *const *names, size_t n, const char *name) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(names[i], name) == 0)
                        return true;
        return false;
}

/* The first other node that is UP; "" if there is none. The lists of the state are sorted by name. */
static const char *partner_of(const Rm__State *state, const char *node) {
        for (size_t i = 0; i < state->n_nodes; i++)
                if (state->nodes[i]->health == RM__NODE_HEALTH__NODE_HEALTH_UP && strcmp(state->nodes[i]->name, node) != 0)
                        return state->nodes[i]->name;
        return "";
}

int leader_checkpoint(struct rmd *rmd, uint64_t id, Rm__CheckpointCause cause, const char *by, bool stop,
                      cluster_propose_fn callback, void *userdata, struct rm_error *err) {
        const Rm__State *state = cluster_state(rmd->cluster);
        const Rm__Job *job = state_job(state, id);
        bool copies = strcmp(rmd->config->checkpoint_store, CONFIG_STORE_PARTNER) == 0 && rmd->config->checkpoint_copies > 0;
        cleanup_free char **nodes = NULL;
        cleanup_free char **partners = NULL;
        Rm__CmdCheckpointStart *body;
        struct command c;

        if (!rmd->leader)
                return error_set(err, -EHOSTUNREACH, "this node does not lead any more");
        if (!job || job_ended(job))
                return error_set(err, -ENOENT, "job %" PRIu64 " does not run", id);
        nodes = xcalloc(job->n_capsules + 1, sizeof(*nodes));
        partners = xcalloc(job->n_capsules + 1, sizeof(*partners));
        body = command_checkpoint_start(&c, id, cause);
        body->by = (char *) by;
        body->stop = stop;
        body->capsule_nodes = nodes;
        body->partners = partners;
        for (size_t i = 0; i < job->n_capsules; i++) {
                char *node = job->capsules[i]->node;

                if (listed(nodes, body->n_capsule_nodes, node))
                        continue;
                nodes[body->n_capsule_nodes++] = node;
                partners[body->n_partners++] = (char *) (copies ? partner_of(state, node) : "");
        }
        cluster_propose(rmd->cluster, &c.command, callback, userdata);
        return 0;
}
