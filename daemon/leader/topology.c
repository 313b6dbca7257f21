#include "daemon/leader/topology.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/cluster/cluster.h"
#include "daemon/config/config.h"
#include "daemon/state/commands.h"

struct reported {
        Rm__Switch *items;
        Rm__Switch **pointers;
};

/* Points into `switches`. */
static struct reported fill(const struct switches *switches, Rm__CmdTopology *ret_body) {
        struct reported reported = { xcalloc(switches->n, sizeof(*reported.items)), xcalloc(switches->n, sizeof(Rm__Switch *)) };

        for (size_t i = 0; i < switches->n; i++) {
                const struct config_switch *at = &switches->list[i];

                rm__switch__init(&reported.items[i]);
                reported.items[i].name = at->name;
                reported.items[i].above = at->parent == SIZE_MAX ? 0 : (uint32_t) at->parent + 1;
                reported.items[i].nodes = at->nodes.names;
                reported.items[i].n_nodes = at->nodes.n_names;
                reported.items[i].line = (uint32_t) at->line;
                reported.pointers[i] = &reported.items[i];
        }
        ret_body->switches = reported.pointers;
        ret_body->n_switches = switches->n;
        return reported;
}

static bool same(const Rm__CmdTopology *a, const Rm__CmdTopology *b) {
        size_t size_bytes = rm__cmd_topology__get_packed_size(a);
        cleanup_free uint8_t *of_a = NULL;
        cleanup_free uint8_t *of_b = NULL;

        if (rm__cmd_topology__get_packed_size(b) != size_bytes)
                return false;
        of_a = xcalloc(1, size_bytes);
        of_b = xcalloc(1, size_bytes);
        (void) rm__cmd_topology__pack(a, of_a);
        (void) rm__cmd_topology__pack(b, of_b);
        return memcmp(of_a, of_b, size_bytes) == 0;
}

static bool report_switches(struct rmd *rmd, const struct switches *switches) {
        const Rm__State *state = cluster_state(rmd->cluster);
        Rm__CmdTopology known = RM__CMD_TOPOLOGY__INIT;
        struct command c;
        Rm__CmdTopology *body = command_topology(&c);
        struct reported reported = fill(switches, body);
        bool news;

        body->path = rmd->config->topology;
        known.path = state->topology_path;
        known.switches = state->switches;
        known.n_switches = state->n_switches;
        known.error = state->topology_error;
        news = !same(&known, body);
        if (news)
                cluster_decide(rmd->cluster, &c.command);
        free(reported.items);
        free(reported.pointers);
        return news;
}

/* The state keeps the switches that it has. */
static bool report_error(struct rmd *rmd, const char *error) {
        struct command c;

        if (strcmp(cluster_state(rmd->cluster)->topology_error, error) == 0)
                return false;
        command_topology(&c)->error = (char *) error;
        cluster_decide(rmd->cluster, &c.command);
        return true;
}

bool topology_report(struct rmd *rmd, const struct switches_file *file) {
        const char *error = switches_file_error(file);

        return error ? report_error(rmd, error) : report_switches(rmd, switches_file_list(file));
}
