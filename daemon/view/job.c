#include "daemon/view/job.h"

#include <stdlib.h>
#include <string.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/util.h"
#include "daemon/view/checkpoint.h"

/* A command line that does not fit is cut to this size, which is enough to know it by. */
#define ARGV_CUT_BYTES 1024U
/* A long list of capsules is cut to this number. */
#define CAPSULES_CUT 200U

struct seen_node {
        const char *name; /* the state's */
        UT_hash_handle hh;
};

/* The nodes a job's groups are on, each once, as "n1 n2". */
static char *job_nodes(const Rm__Job *job) {
        cleanup_free struct seen_node *entries = xcalloc(job->n_capsules + 1, sizeof(*entries));
        struct seen_node *seen = NULL, *known;
        char *list = NULL;
        size_t bytes = 0, n = 0;
        FILE *f = open_memstream(&list, &bytes);

        if (!f)
                abort();
        for (size_t i = job->n_capsules > 1 ? 1 : 0; i < job->n_capsules; i++) { /* mpirun's only where there are no groups */
                const char *node = job->capsules[i]->node;

                HASH_FIND_STR(seen, node, known);
                if (known)
                        continue;
                (void) fprintf(f, "%s%s", n > 0 ? " " : "", node);
                entries[n].name = node;
                HASH_ADD_KEYPTR(hh, seen, node, strlen(node), &entries[n]);
                n++;
        }
        HASH_CLEAR(hh, seen);
        (void) fclose(f);
        return list;
}

/* Borrows from the job; the words that are cut are in `room`. */
static void cut_argv(Rm__JobSpec *spec, char *space, size_t space_bytes) {
        size_t used = 0;
        size_t n = 0;

        while (n < spec->n_argv && used + strlen(spec->argv[n]) < space_bytes)
                used += strlen(spec->argv[n++]) + 1;
        if (n == 0 && spec->n_argv > 0) {
                (void) snprintf(space, space_bytes, "%s", spec->argv[0]);
                spec->argv[n++] = space;
        }
        spec->n_argv = n;
}

static void copy_job(Rm__JobView *view, Rm__JobSpec *spec, const Rm__Job *job, size_t max_bytes) {
        cleanup_free char **argv = xcalloc(spec->n_argv, sizeof(char *));
        char space[ARGV_CUT_BYTES];
        Rm__Job slim = *job;

        if (spec->n_argv > 0)
                memcpy(argv, spec->argv, spec->n_argv * sizeof(char *));
        spec->argv = argv;
        slim.spec = spec;
        if (view->foreign) {
                slim.n_checkpoints = 0;
                slim.checkpoint_error = (char *) "";
                slim.drill = NULL;
        }
        if (protobuf_c_message_get_packed_size(&slim.base) > max_bytes && spec->n_argv > 0) {
                cut_argv(spec, space, sizeof(space));
                view->argv_cut = true;
        }
        if (protobuf_c_message_get_packed_size(&slim.base) > max_bytes && slim.n_capsules > CAPSULES_CUT) {
                view->capsules_left_out = (uint32_t) (slim.n_capsules - CAPSULES_CUT);
                slim.n_capsules = CAPSULES_CUT;
        }
        view->job = (Rm__Job *) message_copy(&slim.base);
}

/* Says in the job's reason that the job waits for a fence. */
static void report_fence(Rm__Job *job, const Rm__Node *node) {
        cleanup_free char *text = node ? xasprintf("starts again when node %s is fenced: %s", node->name, node->fence) : NULL;

        if (text)
                message_set_string(&job->reason, text);
}

/* Says in the job's reason that a node of it is lost, and what follows from that. Of how its ranks
 * share cores nothing is known then. False: none is. */
static bool report_lost(Rm__JobView *view, const Rm__State *state, const Rm__Job *job) {
        const Rm__Node *node = job_lost_node(state, job);
        cleanup_free char *text = NULL;

        if (!node)
                return false;
        if (node->health == RM__NODE_HEALTH__NODE_HEALTH_UNKNOWN)
                text = xasprintf("waits for word of node %s, which the leader has not heard of yet", node->name);
        else if (job_may_restart(job))
                text = xasprintf("node %s is down: the job starts again as soon as nothing of it can run there any more",
                                 node->name);
        else
                text = xasprintf("node %s is down: the job ends if the node is not back soon", node->name);
        message_set_string(&view->job->reason, text);
        return true;
}

static void report_fold(Rm__JobView *view, const struct state_index *index, const Rm__Job *job) {
        const Rm__Node *node = state_job_fold(index, job, &view->folded_ranks);

        if (!node)
                return;
        message_set_string(&view->folded_node, node->name);
        view->folded_cores = node_usable_cores(node);
}

static void report_active(Rm__JobView *view, const Rm__State *state, const Rm__Job *job) {
        view->active_ranks = job_active_ranks(state, job);
        for (size_t i = 0; i < job->n_capsules; i++)
                view->parked_groups += job_group_parked(job, job->capsules[i]);
}

Rm__JobView *view_job(const struct view_source *source, const struct view_reader *reader, const Rm__Job *job, size_t max_bytes) {
        const Rm__State *state = state_index_state(source->index);
        Rm__JobView *view = xcalloc(1, sizeof(*view));
        cleanup_free char *nodes = job_nodes(job);
        Rm__JobSpec spec = *job->spec;

        rm__job_view__init(view);
        view->foreign = !view_may(reader, job->spec->uid);
        /* The environment is long and of no use here; the token is the front end's. */
        spec.n_env = 0;
        spec.token = (char *) "";
        /* The digest would let its reader try out what a short environment may be. */
        spec.body_digest = (ProtobufCBinaryData) { 0 };
        if (view->foreign) {
                spec.n_argv = 0;
                spec.cwd = spec.availability_path = (char *) "";
        }
        copy_job(view, &spec, job, max_bytes);
        for (size_t i = 0; i < view->job->n_capsules; i++) {
                view->job->capsules[i]->address += source->network; /* for people: the whole address */
                if (!view->foreign)
                        continue;
                message_set_string(&view->job->capsules[i]->blocker, NULL);
                if (view->job->capsules[i]->refusal)
                        message_set_string(&view->job->capsules[i]->refusal->text, NULL);
        }
        message_set_string(&view->state, state_job_name(source->index, job));
        message_set_string(&view->nodes, nodes);
        if (!report_lost(view, state, job))
                report_fold(view, source->index, job);
        report_fence(view->job, job_fence_node(state, job));
        report_active(view, state, job);
        if (!view->foreign)
                view_checkpoints(source, job, view);
        return view;
}

/* ---- lists ---- */

struct listing {
        const struct view_source *source;
        const struct view_reader *reader;
        const struct view_jobs *which;
        size_t max_bytes;
        size_t bytes;
        Rm__JobList *list;
};

/* Adds a job that the reader may see. False: the page is full, and there are further ones. */
static bool add_job(struct listing *listing, const Rm__Job *job) {
        Rm__JobList *list = listing->list;

        if (job->id <= listing->which->after || !view_may(listing->reader, job->spec->uid))
                return true;
        list->more = listing->bytes >= listing->max_bytes;
        if (list->more)
                return false;
        list->jobs[list->n_jobs] = view_job(listing->source, listing->reader, job, listing->which->max_bytes_each);
        listing->bytes += protobuf_c_message_get_packed_size(&list->jobs[list->n_jobs++]->base);
        return true;
}

static int compare_ids(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return (x > y) - (x < y);
}

/* Each once and in the order of their ids, as in a list of all. */
static void add_named(struct listing *listing, const Rm__State *state) {
        const struct view_jobs *which = listing->which;
        cleanup_free uint64_t *ids = xcalloc(which->n_ids, sizeof(*ids));

        memcpy(ids, which->ids, sizeof(*ids) * which->n_ids);
        qsort(ids, which->n_ids, sizeof(*ids), compare_ids);
        for (size_t i = 0; i < which->n_ids; i++) {
                const Rm__Job *job = i == 0 || ids[i - 1] != ids[i] ? state_job(state, ids[i]) : NULL;

                if (job && !add_job(listing, job))
                        return;
        }
}

static void add_all(struct listing *listing, const Rm__State *state) {
        for (size_t i = 0; i < state->n_jobs; i++)
                if ((listing->which->ended || !job_ended(state->jobs[i])) && !add_job(listing, state->jobs[i]))
                        return;
}

void view_jobs(const struct view_source *source, const struct view_reader *reader, const struct view_jobs *which, size_t max_bytes,
               Rm__JobList *ret) {
        const Rm__State *state = state_index_state(source->index);
        struct listing listing = { source, reader, which, max_bytes, 0, ret };

        ret->jobs = xcalloc(state->n_jobs, sizeof(*ret->jobs));
        if (which->n_ids > 0)
                add_named(&listing, state);
        else
                add_all(&listing, state);
}

void view_jobs_finish(Rm__JobList *list) {
        for (size_t i = 0; i < list->n_jobs; i++)
                rm__job_view__free_unpacked(list->jobs[i], NULL);
        free(list->jobs);
}
