#include "placement/topology/gauge.h"

#include "placement/topology/map_context.h"

void gauge_init(struct gauge *gauge, const struct rm_snapshot *snapshot) {
        pool_init(&gauge->pool);
        places_make(&gauge->pool, snapshot, false, &gauge->places);
}

void gauge_finish(struct gauge *gauge) {
        pool_finish(&gauge->pool);
}

static uint32_t leaf_of(const struct gauge *gauge, int32_t node) {
        return gauge->places.tree.leaf_first[gauge->places.node_vertex[node]];
}

static uint32_t end_of(const struct rm_job *job, uint32_t group) {
        return job->groups[group].first_rank + job->groups[group].ranks;
}

double gauge_group(const struct gauge *gauge, const struct rm_job *job, const int32_t *node, uint32_t group, int32_t at) {
        const struct rm_traffic *traffic = &job->traffic;
        double sum = 0;

        for (uint32_t r = job->groups[group].first_rank; job_has_traffic(job) && r < end_of(job, group); r++)
                for (uint64_t e = traffic->offset[r]; e < traffic->offset[r + 1]; e++) {
                        uint32_t other = traffic->peer[e] / job->group_size;

                        if (other != group && node[other] != at)
                                sum += (double) traffic->bytes[e] *
                                       tree_distance(&gauge->places.tree, leaf_of(gauge, at), leaf_of(gauge, node[other]));
                }
        return sum;
}

double gauge_job(const struct gauge *gauge, const struct rm_job *job, const int32_t *node) {
        double sum = 0;

        for (uint32_t g = 0; g < job->n_groups; g++)
                sum += gauge_group(gauge, job, node, g, node[g]);
        return sum / 2; /* every pair stands in both rows */
}
