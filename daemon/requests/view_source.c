#include "daemon/requests/view_source.h"

#include "common/util.h"
#include "daemon/cluster/cluster.h"
#include "daemon/config/config.h"

struct view_source request_view_source(const struct rmd *rmd) {
        return (struct view_source) {
                .index = cluster_index(rmd->cluster),
                .leader = cluster_leader(rmd->cluster),
                .network = rmd->config->network,
                .lease_usec = rmd->config->lease_usec,
                .checkpoint_mtbf_usec = rmd->config->checkpoint_mtbf_usec,
                .now_real_usec = now_real_usec(),
        };
}

struct view_reader request_view_reader(const struct client *client) {
        return (struct view_reader) { .uid = client->uid, .admin = client->admin };
}
