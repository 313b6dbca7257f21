/* Lists of jobs and moves, page by page. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/requests/requests.h"
#include "daemon/requests/views.h"

#define JOBS_NAMED_MAX 100U /* that may be named even where fewer are known: so many get the usual answer */

static int compare_ids(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return (x > y) - (x < y);
}

/* Adds a job that this client may see. False: the page is full, and there are further ones. */
static bool add_job(struct client *client, const Rm__ListJobs *list, const Rm__Job *job, size_t *bytes, Rm__JobList *jobs) {
        size_t max_bytes = list->n_jobs > 0 ? VIEW_WHOLE_BYTES : VIEW_LISTED_BYTES;

        if (!client_may(client, job->spec->uid))
                return true;
        jobs->more = *bytes >= page_bytes(list->paged);
        if (jobs->more)
                return false;
        jobs->jobs[jobs->n_jobs] = job_view(client, cluster_index(client->rmd->cluster), job, max_bytes);
        *bytes += protobuf_c_message_get_packed_size(&jobs->jobs[jobs->n_jobs++]->base);
        return true;
}

/* Each once and in the order of their ids, as in a list of all. */
static void collect_named(struct client *client, const Rm__ListJobs *list, Rm__JobList *jobs) {
        cleanup_free uint64_t *ids = xcalloc(list->n_jobs, sizeof(*ids));
        size_t bytes = 0;

        memcpy(ids, list->jobs, sizeof(*ids) * list->n_jobs);
        qsort(ids, list->n_jobs, sizeof(*ids), compare_ids);
        for (size_t i = 0; i < list->n_jobs; i++) {
                const Rm__Job *job = state_job(cluster_state(client->rmd->cluster), ids[i]);

                if (job && ids[i] > list->after && (i == 0 || ids[i - 1] != ids[i]) && !add_job(client, list, job, &bytes, jobs))
                        return;
        }
}

/* Up to what fits; sets `more` where there are further ones. */
static void collect_jobs(struct client *client, const Rm__ListJobs *list, Rm__JobList *jobs) {
        const Rm__State *state = cluster_state(client->rmd->cluster);
        size_t bytes = 0;

        for (size_t i = 0; i < state->n_jobs; i++) {
                const Rm__Job *job = state->jobs[i];

                if (job->id > list->after && (list->all || !job_ended(job)) && !add_job(client, list, job, &bytes, jobs))
                        return;
        }
}

void request_list_jobs(struct client *client, const Rm__LocalRequest *request) {
        const Rm__State *state = cluster_state(client->rmd->cluster);
        const Rm__ListJobs *list = request->list_jobs;
        Rm__JobList jobs = RM__JOB_LIST__INIT;
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;

        /* Some are named twice. */
        if (list->n_jobs > state->n_jobs + JOBS_NAMED_MAX) {
                client_error(client, request->id, -E2BIG, "list-jobs: %zu jobs named, and %zu are known", list->n_jobs,
                             state->n_jobs);
                return;
        }
        for (size_t i = 0; i < list->n_jobs; i++) {
                const Rm__Job *job = state_job(state, list->jobs[i]);

                /* Another user's job is as unknown as one that is not there. */
                if (!job || !client_may(client, job->spec->uid)) {
                        client_error(client, request->id, -ENOENT, "no job %" PRIu64 " of yours", list->jobs[i]);
                        return;
                }
        }
        jobs.jobs = xcalloc(state->n_jobs, sizeof(Rm__JobView *));
        if (list->n_jobs > 0)
                collect_named(client, list, &jobs);
        else
                collect_jobs(client, list, &jobs);
        reply.body_case = RM__LOCAL_REPLY__BODY_JOBS;
        reply.jobs = &jobs;
        if (jobs.more && !list->paged)
                page_refuse(client, request->id, "list-jobs");
        else
                client_reply(client, request->id, &reply);
        for (size_t i = 0; i < jobs.n_jobs; i++)
                rm__job_view__free_unpacked(jobs.jobs[i], NULL);
        free(jobs.jobs);
}

static bool move_wanted(const struct client *client, const Rm__State *state, const Rm__ListMoves *list, const Rm__Move *move) {
        const Rm__Job *job;

        if ((list->job && move->job != list->job) || move->id <= list->since)
                return false;
        job = state_job(state, move->job);
        return job ? client_may(client, job->spec->uid) : client->admin;
}

void request_list_moves(struct client *client, const Rm__LocalRequest *request) {
        const Rm__State *state = cluster_state(client->rmd->cluster);
        const Rm__ListMoves *list = request->list_moves;
        size_t max_bytes = page_bytes(list->paged);
        Rm__MoveList moves = RM__MOVE_LIST__INIT;
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        size_t bytes = 0;

        moves.moves = xcalloc(state->n_moves, sizeof(Rm__Move *));
        for (size_t i = 0; i < state->n_moves && !moves.more; i++) {
                if (!move_wanted(client, state, list, state->moves[i]))
                        continue;
                moves.more = bytes >= max_bytes;
                if (moves.more)
                        break;
                moves.moves[moves.n_moves++] = state->moves[i];
                bytes += protobuf_c_message_get_packed_size(&state->moves[i]->base);
        }
        reply.body_case = RM__LOCAL_REPLY__BODY_MOVES;
        reply.moves = &moves;
        if (moves.more && !list->paged)
                page_refuse(client, request->id, "list-moves");
        else
                client_reply(client, request->id, &reply);
        free(moves.moves);
}
