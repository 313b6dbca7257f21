#include "policies/distrib/homes.h"

#include <stdlib.h>
#include <string.h>

#include "placement/pack.h"

enum { NONE = UINT32_MAX };

/* A group that runs, in the list of its node. */
struct lodger {
        uint32_t next;
        int32_t cost; /* of moving it, scaled */
        bool rest;    /* it is the smaller last one */
};

struct listing {
        struct homes *homes;
        const struct relaxation *relaxation;
        const struct rm_snapshot *snapshot;
        struct lodger *lodgers; /* one for each group of the job in hand */
        uint32_t *first;    /* each node: the dearest of the job's groups there; NONE between jobs */
        uint32_t *nodes;    /* those that it has groups on */
        uint32_t n_nodes;
        struct home *found;  /* of all jobs, one after another */
        uint32_t *found_node; /* each of them */
        uint32_t n_found;
        uint32_t *cores; /* each node; 0: nothing can be there */
        int shift;
        int32_t most;
        struct arena arena;
};

static bool init(struct listing *listing) {
        const struct rm_snapshot *snapshot = listing->snapshot;
        uint32_t groups = 0, most_groups = 0;

        for (uint32_t t = 0; t < listing->relaxation->n_demands; t++) {
                uint32_t n = snapshot->jobs[listing->relaxation->demands[t].job].n_groups;

                groups += n;
                most_groups = n > most_groups ? n : most_groups;
        }
        listing->lodgers = arena_alloc(&listing->arena, most_groups, sizeof(*listing->lodgers));
        listing->first = arena_alloc(&listing->arena, snapshot->n_nodes, sizeof(*listing->first));
        listing->nodes = arena_alloc(&listing->arena, snapshot->n_nodes, sizeof(*listing->nodes));
        listing->found = arena_alloc(&listing->arena, groups, sizeof(*listing->found));
        listing->found_node = arena_alloc(&listing->arena, groups, sizeof(*listing->found_node));
        listing->cores = arena_alloc(&listing->arena, snapshot->n_nodes, sizeof(*listing->cores));
        if (listing->arena.failed)
                return false;
        memset(listing->first, 0xff, sizeof(*listing->first) * snapshot->n_nodes);
        return true;
}

/* The cores are counted as the relaxation counts them: pinned groups stay, also where there are not
 * as many cores any more. */
static void count_cores(struct listing *listing) {
        const struct rm_snapshot *snapshot = listing->snapshot;

        for (uint32_t j = 0; j < snapshot->n_jobs; j++)
                for (uint32_t g = 0; g < snapshot->jobs[j].n_groups; g++)
                        if (snapshot->jobs[j].groups[g].node >= 0 && (snapshot->jobs[j].groups[g].flags & RM_GROUP_PINNED))
                                listing->cores[snapshot->jobs[j].groups[g].node] += snapshot->jobs[j].groups[g].ranks;
        for (uint32_t s = 0; s < snapshot->n_nodes; s++)
                if (snapshot->nodes[s].cores > listing->cores[s])
                        listing->cores[s] = snapshot->nodes[s].cores;
}

static int32_t scaled_cost(const struct listing *listing, const struct rm_group *group) {
        int64_t most = (int64_t) listing->most * group->ranks, scale = (int64_t) 1 << listing->shift;

        return (int32_t) (group->move_cost < most / scale ? group->move_cost * scale : most);
}

/* Into the list of its node, dearer ones before it. */
static void add_lodger(struct listing *listing, const struct rm_job *job, uint32_t g) {
        const struct rm_group *group = &job->groups[g];
        uint32_t *at = &listing->first[group->node];

        listing->lodgers[g].cost = scaled_cost(listing, group);
        listing->lodgers[g].rest = group->ranks < job->group_size;
        if (*at == NONE)
                listing->nodes[listing->n_nodes++] = (uint32_t) group->node;
        while (*at != NONE && listing->lodgers[*at].cost > listing->lodgers[g].cost)
                at = &listing->lodgers[*at].next;
        listing->lodgers[g].next = *at;
        *at = g;
}

static void save_one(const struct home *home, uint32_t ranks, int64_t cost) {
        if (ranks <= home->most)
                home->saved[ranks] = (int32_t) cost;
}

/* Saves costs by the sizes that groups make up; no job has the other sizes, and they stay 0. */
static void save(const struct listing *listing, uint32_t node, const struct home *home, uint32_t size, uint32_t rest,
                 int64_t of_rest) {
        uint32_t x = 0;
        int64_t sum = 0;

        if (rest > 0)
                save_one(home, rest, of_rest);
        for (uint32_t i = listing->first[node]; i != NONE; i = listing->lodgers[i].next) {
                if (listing->lodgers[i].rest)
                        continue;
                x += size;
                sum += listing->lodgers[i].cost;
                save_one(home, x, sum);
                if (rest > 0)
                        save_one(home, x + rest, sum + of_rest);
        }
}

/* Full groups stay from the dearest on, with the smaller last one or without; at most as many as
 * there are cores. False: no memory. */
static bool add_home(struct listing *listing, const struct rm_job *job, uint32_t demand, uint32_t node) {
        uint32_t size = job->group_size, rest = job_rest_ranks(job), most = rest;
        struct home *home = &listing->found[listing->n_found];
        int64_t sum = 0, of_rest = 0;

        for (uint32_t i = listing->first[node]; i != NONE; i = listing->lodgers[i].next) {
                of_rest += listing->lodgers[i].rest ? listing->lodgers[i].cost : 0;
                sum += listing->lodgers[i].cost;
                most += listing->lodgers[i].rest ? 0 : size;
        }
        listing->homes->moved += sum;
        home->demand = demand;
        home->most = most < listing->cores[node] ? most : listing->cores[node];
        home->saved = arena_alloc(&listing->homes->arena, home->most + 1u, sizeof(*home->saved));
        if (!home->saved)
                return false;
        save(listing, node, home, size, rest, of_rest);
        listing->found_node[listing->n_found++] = node;
        return true;
}

static bool list_job(struct listing *listing, uint32_t demand) {
        const struct rm_job *job = &listing->snapshot->jobs[listing->relaxation->demands[demand].job];
        bool done = true;

        listing->n_nodes = 0;
        for (uint32_t g = 0; g < job->n_groups; g++) {
                if (job->groups[g].node < 0)
                        continue;
                if (listing->cores[job->groups[g].node] > 0)
                        add_lodger(listing, job, g);
                else
                        listing->homes->moved += scaled_cost(listing, &job->groups[g]);
        }
        for (uint32_t i = 0; i < listing->n_nodes; i++) {
                done = done && add_home(listing, job, demand, listing->nodes[i]);
                listing->first[listing->nodes[i]] = NONE;
        }
        return done;
}

/* Homes in the order of nodes, and a site for each of these. */
static bool make_sites(struct listing *listing) {
        struct homes *homes = listing->homes;
        uint32_t *count = listing->first, n_nodes = listing->snapshot->n_nodes, n = 0;
        struct home *sorted = arena_alloc(&homes->arena, listing->n_found, sizeof(*sorted));

        memset(count, 0, sizeof(*count) * n_nodes);
        for (uint32_t i = 0; i < listing->n_found; i++)
                homes->n_sites += count[listing->found_node[i]]++ == 0;
        homes->sites = arena_alloc(&homes->arena, homes->n_sites, sizeof(*homes->sites));
        if (homes->arena.failed)
                return false;
        for (uint32_t s = 0, first = 0; s < n_nodes; s++) {
                uint32_t n_homes = count[s];

                if (n_homes > 0)
                        homes->sites[n++] = (struct site) {
                                .node = s,
                                .cores = listing->cores[s],
                                .penalty = listing->snapshot->nodes[s].penalty,
                                .homes = sorted + first,
                                .n_homes = n_homes,
                        };
                homes->most_homes = n_homes > homes->most_homes ? n_homes : homes->most_homes;
                count[s] = first;
                first += n_homes;
        }
        for (uint32_t i = 0; i < listing->n_found; i++)
                sorted[count[listing->found_node[i]]++] = listing->found[i];
        return true;
}

bool homes_init(struct homes *homes, const struct relaxation *relaxation, const struct rm_snapshot *snapshot, int shift,
                int32_t most) {
        struct listing listing = { .homes = homes, .relaxation = relaxation, .snapshot = snapshot, .shift = shift, .most = most };
        bool done;

        *homes = (struct homes) { 0 };
        done = init(&listing);
        if (done)
                count_cores(&listing);
        for (uint32_t t = 0; t < relaxation->n_demands && done; t++)
                done = list_job(&listing, t);
        done = done && make_sites(&listing);
        arena_finish(&listing.arena);
        return done;
}

void homes_finish(struct homes *homes) {
        arena_finish(&homes->arena);
}
