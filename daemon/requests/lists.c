/* Lists of jobs and moves, page by page. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/util.h"
#include "daemon/requests/requests.h"
#include "daemon/requests/views.h"

#define JOBS_NAMED_MAX 100U /* that may be named even where fewer are known: so many get the usual answer */

static bool job_wanted(const struct client *client, const Rm__ListJobs *list, const Rm__Job *job) {
        if (job->id <= list->after || !client_may(client, job->spec->uid))
                return false;
        for (size_t i = 0; i < list->n_jobs; i++)
                if (list->jobs[i] == job->id)
                        return true;
        return list->n_jobs == 0 && (list->all || !job_ended(job));
}

/* Up to what fits; sets `more` where there are further ones. */
static void collect_jobs(struct client *client, const Rm__ListJobs *list, Rm__JobList *jobs) {
        const struct state_index *index = cluster_index(client->rmd->cluster);
        const Rm__State *state = state_index_state(index);
        size_t max_bytes = page_bytes(list->paged);
        size_t bytes = 0;

        for (size_t i = 0; i < state->n_jobs && !jobs->more; i++) {
                if (!job_wanted(client, list, state->jobs[i]))
                        continue;
                if (bytes >= max_bytes) {
                        jobs->more = true;
                        return;
                }
                jobs->jobs[jobs->n_jobs] =
                        job_view(client, index, state->jobs[i], list->n_jobs > 0 ? VIEW_WHOLE_BYTES : VIEW_LISTED_BYTES);
                bytes += protobuf_c_message_get_packed_size(&jobs->jobs[jobs->n_jobs++]->base);
        }
}

void request_list_jobs(struct client *client, const Rm__LocalRequest *request) {
        const Rm__State *state = cluster_state(client->rmd->cluster);
        const Rm__ListJobs *list = request->list_jobs;
        Rm__JobList jobs = RM__JOB_LIST__INIT;
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;

        /* Some would be named twice, and each is looked for in the whole list. */
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
