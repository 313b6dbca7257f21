#include "daemon/view/use.h"

#include <stdlib.h>

#include "common/util.h"

/* Copies the nodes that are up and have reported. */
static void fill_nodes(const struct rm_snapshot *nodes, Rm__Use *use) {
        use->nodes = xcalloc(nodes->n_nodes + 1u, sizeof(*use->nodes));
        for (uint32_t s = 0; s < nodes->n_nodes; s++) {
                const struct rm_node *from = &nodes->nodes[s];
                Rm__NodeUse *node;

                if (from->state == RM_NODE_DOWN || from->memory_free == RM_NO_MEMORY_LIMIT)
                        continue;
                node = xcalloc(1, sizeof(*node));
                rm__node_use__init(node);
                node->node = (char *) from->name;
                node->memory_free_bytes = (uint64_t) from->memory_free;
                use->nodes[use->n_nodes++] = node;
        }
}

static void add_progress(const struct view_figures *figures, const Rm__Job *job, Rm__Use *use) {
        Rm__Progress *progress = xcalloc(1, sizeof(*progress));

        rm__progress__init(progress);
        if (figures->progress(figures->context, job, progress))
                use->progress[use->n_progress++] = progress;
        else
                free(progress);
}

static void add_start(const struct view_figures *figures, const Rm__Job *job, Rm__Use *use) {
        uint64_t usec = figures->start(figures->context, job);
        Rm__ExpectedStart *start;

        if (usec == 0)
                return;
        start = xcalloc(1, sizeof(*start));
        rm__expected_start__init(start);
        start->job = job->id;
        start->expected_start_usec = usec;
        use->starts[use->n_starts++] = start;
}

void view_use(const struct view_source *source, const struct view_reader *reader, const struct view_figures *figures, uint64_t job,
              bool all_progress, Rm__Use *ret) {
        const Rm__State *state = state_index_state(source->index);
        const Rm__Job *one = state_job(state, job);

        fill_nodes(figures->nodes, ret);
        if (one && view_may(reader, one->spec->uid))
                ret->slowdown = figures->slowdown(figures->context, one);
        ret->progress = xcalloc(state->n_jobs + 1, sizeof(*ret->progress));
        ret->starts = xcalloc(state->n_jobs + 1, sizeof(*ret->starts));
        for (size_t i = 0; i < state->n_jobs && (job > 0 || all_progress); i++) {
                const Rm__Job *each = state->jobs[i];

                if ((job != 0 && each->id != job) || !view_may(reader, each->spec->uid))
                        continue;
                if (each->state == RM__JOB_STATE__JOB_RUNNING)
                        add_progress(figures, each, ret);
                else if (each->state == RM__JOB_STATE__JOB_PENDING)
                        add_start(figures, each, ret);
        }
}

void view_use_finish(Rm__Use *use) {
        free_all(use->nodes, use->n_nodes);
        free_all(use->progress, use->n_progress);
        free_all(use->starts, use->n_starts);
}
