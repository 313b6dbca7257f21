#include "daemon/leader/cores.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/cluster/cluster.h"
#include "daemon/sched/move_cost.h"
#include "daemon/state/commands.h"

/* The answer of one round, and what follows from it. */
struct answer {
        const Rm__State *state;
        const struct state_index *index;
        const struct rm_snapshot *snapshot;
        const struct round_result *result;
};

/* The new cores of one job's groups: groups whose cores stay have no entry. */
struct news {
        Rm__GroupCores *items;
        Rm__GroupCores **pointers;
        uint32_t *cores; /* of all ranks */
        bool shared; /* those that are shared, too */
        size_t n;
};

/* Traffic that no move would be worth says nothing about which ranks are to share a core either. */
static bool talks(const struct rm_snapshot *snapshot, const struct rm_job *job) {
        double least = (double) snapshot->params.bytes_per_cost * MOVE_COST_BASE, sum = 0;

        for (uint64_t e = 0; job->traffic.offset && e < job->traffic.offset[job->ranks]; e++)
                sum += (double) job->traffic.bytes[e];
        return sum > 0 && sum >= least;
}

/* The cores of a group's ranks into `cores`. 0: any, when the policy has no opinion, or ranks have
 * to share cores and are not to be given them: the kernel then decides which rank is on which. For
 * those that share, the policy has numbered the node's cores over and over. */
static size_t chosen_cores(const struct answer *answer, uint32_t j, uint32_t g, bool shared, uint32_t *cores) {
        const struct rm_group *group = &answer->snapshot->jobs[j].groups[g];
        const struct round_job_result *result = &answer->result->jobs[j];
        const struct rm_node *node;

        if (!result->rank_core || result->group_node[g] < 0 || (result->folded && !shared))
                return 0;
        node = &answer->snapshot->nodes[result->group_node[g]];
        for (uint32_t i = 0; i < group->ranks; i++) {
                int32_t core = result->rank_core[group->first_rank + i];

                if (core < 0 || node->cores == 0 || (!result->folded && (uint32_t) core >= node->cores))
                        return 0;
                cores[i] = (uint32_t) core % node->cores;
        }
        return group->ranks;
}

static bool same_cores(const Rm__Capsule *capsule, const uint32_t *cores, size_t n) {
        return capsule->n_cores == n && (n == 0 || memcmp(capsule->cores, cores, sizeof(*cores) * n) == 0);
}

/* Is it on its way, or about to be? Then it keeps what it has until it has arrived. */
static bool leaves(const struct answer *answer, uint32_t j, uint64_t number, const Rm__Capsule *capsule) {
        const int32_t *node = answer->result->jobs[j].group_node;

        return state_capsule_move(answer->index, number, capsule->index) ||
               (node && node[capsule->index] >= 0 &&
                strcmp(answer->snapshot->nodes[node[capsule->index]].name, capsule->node) != 0);
}

static void scan_group(const struct answer *answer, uint32_t j, uint64_t number, const Rm__Capsule *capsule, struct news *news) {
        uint32_t g = (uint32_t) capsule->index;
        uint32_t *cores = news->cores + answer->snapshot->jobs[j].groups[g].first_rank;
        Rm__GroupCores *item = &news->items[news->n];
        size_t n;

        if (leaves(answer, j, number, capsule))
                return;
        n = chosen_cores(answer, j, g, news->shared, cores);
        if (same_cores(capsule, cores, n))
                return;
        rm__group_cores__init(item);
        item->group = capsule->index;
        item->node = capsule->node;
        item->cores = cores;
        item->n_cores = n;
        news->pointers[news->n++] = item;
}

static void report_job(struct rmd *rmd, const struct answer *answer, uint32_t j) {
        const struct rm_job *job = &answer->snapshot->jobs[j];
        uint64_t number = strtoull(job->name, NULL, 10);
        const Rm__Job *of = state_job(answer->state, number);
        Rm__CmdJobCores *body;
        struct command c;
        struct news news = { .shared = talks(answer->snapshot, job) };

        if (!of || !job_running(of))
                return;
        news.items = xcalloc(job->n_groups, sizeof(*news.items));
        news.pointers = xcalloc(job->n_groups, sizeof(*news.pointers));
        news.cores = xcalloc(job->ranks, sizeof(*news.cores));
        for (size_t i = 0; i < of->n_capsules; i++)
                if (of->capsules[i]->index >= 0 && (uint32_t) of->capsules[i]->index < job->n_groups)
                        scan_group(answer, j, number, of->capsules[i], &news);
        body = command_job_cores(&c, number);
        body->groups = news.pointers;
        body->n_groups = news.n;
        if (news.n > 0)
                cluster_decide(rmd->cluster, &c.command);
        free(news.items);
        free(news.pointers);
        free(news.cores);
}

void cores_report(struct rmd *rmd, const struct rm_snapshot *snapshot, const struct round_result *result) {
        const struct answer answer = { cluster_state(rmd->cluster), cluster_index(rmd->cluster), snapshot, result };

        for (uint32_t j = 0; j < result->n_jobs; j++)
                report_job(rmd, &answer, j);
}
