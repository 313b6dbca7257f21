#include "daemon/requests/views.h"

#include <stdlib.h>
#include <string.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/frame.h"
#include "common/util.h"
#include "daemon/config/config.h"
#include "daemon/leader/checkpoint_schedule.h"
#include "daemon/requests/requests.h"

/* What is left of a command line that does not fit: enough to know it by. */
#define ARGV_CUT_BYTES 1024U
/* And of a long list of capsules. */
#define CAPSULES_CUT 200U
/* From when a node is known to be lost until its jobs run again: about that. */
#define RESTART_USEC UINT64_C(1500000)
/* For the frame, and what an answer has beside the list. */
#define FRAME_SLACK_BYTES (64U << 10)

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
static void cut_argv(Rm__JobSpec *spec, char *room, size_t room_bytes) {
        size_t used = 0;
        size_t n = 0;

        while (n < spec->n_argv && used + strlen(spec->argv[n]) < room_bytes)
                used += strlen(spec->argv[n++]) + 1;
        if (n == 0 && spec->n_argv > 0) {
                (void) snprintf(room, room_bytes, "%s", spec->argv[0]);
                spec->argv[n++] = room;
        }
        spec->n_argv = n;
}

static void copy_job(Rm__JobView *view, Rm__JobSpec *spec, const Rm__Job *job, size_t max_bytes) {
        cleanup_free char **argv = xcalloc(spec->n_argv, sizeof(char *));
        char room[ARGV_CUT_BYTES];
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
                cut_argv(spec, room, sizeof(room));
                view->argv_cut = true;
        }
        if (protobuf_c_message_get_packed_size(&slim.base) > max_bytes && slim.n_capsules > CAPSULES_CUT) {
                view->capsules_left_out = (uint32_t) (slim.n_capsules - CAPSULES_CUT);
                slim.n_capsules = CAPSULES_CUT;
        }
        view->job = (Rm__Job *) message_copy(&slim.base);
}

/* What the job has to wait for first. */
static void tell_fence(Rm__Job *job, const Rm__Node *node) {
        cleanup_free char *text = node ? xasprintf("starts again when node %s is fenced: %s", node->name, node->fence) : NULL;

        if (text)
                message_set_string(&job->reason, text);
}

static void tell_fold(Rm__JobView *view, const struct state_index *index, const Rm__Job *job) {
        const Rm__Node *node = state_job_fold(index, job, &view->folded_ranks);

        if (!node)
                return;
        message_set_string(&view->folded_node, node->name);
        view->folded_cores = node_usable_cores(node);
}

/* What would have to be done again, and the time until it can be. */
static uint64_t expected_loss(const struct client *client, const Rm__Job *job) {
        uint64_t from_usec = job->start_usec, now = now_real_usec();

        for (size_t i = 0; i < job->n_checkpoints; i++)
                if (job->checkpoints[i]->state == RM__CHECKPOINT_STATE__CHECKPOINT_DONE &&
                    job->checkpoints[i]->captured_usec > from_usec)
                        from_usec = job->checkpoints[i]->captured_usec;
        return (now > from_usec ? now - from_usec : 0) + client->rmd->config->lease_usec + RESTART_USEC;
}

static void tell_checkpoints(Rm__JobView *view, const struct client *client, const Rm__State *state, const Rm__Job *job) {
        if (view->foreign || job_ended(job))
                return;
        view->checkpoint_interval_usec = checkpoint_interval_usec(state, job, client->rmd->config->checkpoint_mtbf_usec);
        if (job->state == RM__JOB_STATE__JOB_RUNNING && job_wants_restart(job->spec) && !job->own_state)
                view->expected_loss_usec = expected_loss(client, job);
}

static void tell_active(Rm__JobView *view, const Rm__State *state, const Rm__Job *job) {
        view->active_ranks = job_active_ranks(state, job);
        for (size_t i = 0; i < job->n_capsules; i++)
                view->parked_groups += job_group_parked(job, job->capsules[i]);
}

Rm__JobView *job_view(const struct client *client, const struct state_index *index, const Rm__Job *job, size_t max_bytes) {
        Rm__JobView *view = xcalloc(1, sizeof(*view));
        cleanup_free char *nodes = job_nodes(job);
        Rm__JobSpec spec = *job->spec;

        rm__job_view__init(view);
        view->foreign = !client_may(client, job->spec->uid);
        /* The environment is long and of no use to anybody here; the token is the front end's. */
        spec.n_env = 0;
        spec.token = (char *) "";
        /* Who has it could try out what a short environment may be. */
        spec.body_digest = (ProtobufCBinaryData) { 0 };
        if (view->foreign) {
                spec.n_argv = 0;
                spec.cwd = spec.availability_path = (char *) "";
        }
        copy_job(view, &spec, job, max_bytes);
        for (size_t i = 0; i < view->job->n_capsules; i++) {
                view->job->capsules[i]->address += client->rmd->config->network; /* for people: the whole address */
                if (view->foreign)
                        message_set_string(&view->job->capsules[i]->obstacle, NULL);
        }
        tell_fence(view->job, job_fence_node(state_index_state(index), job));
        message_set_string(&view->state, state_job_word(index, job));
        message_set_string(&view->nodes, nodes);
        tell_fold(view, index, job);
        tell_active(view, state_index_state(index), job);
        tell_checkpoints(view, client, state_index_state(index), job);
        return view;
}

size_t page_bytes(bool paged) {
        return paged ? PAGE_BYTES : FRAME_MAX_LOCAL_BYTES - FRAME_SLACK_BYTES;
}

void page_refuse(struct client *client, uint32_t request_id, const char *verb) {
        client_error(
                client, request_id, -EMSGSIZE,
                "%s: the list does not fit into one answer; this command is older than rmd and cannot ask for pages: install the "
                "same version of both, or ask for fewer",
                verb);
}
