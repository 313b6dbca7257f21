#include "launcher/rmctl/use.h"

#include <string.h>

#include "common/util.h"

/* A leader that hangs is not waited for until it is replaced. */
#define ANSWER_USEC 1000000U

/* NULL: it is not to be had. */
static Rm__LocalReply *fetch(struct call *call, uint64_t job, bool progress) {
        Rm__GetUse get = RM__GET_USE__INIT;
        Rm__LocalReply *reply = NULL;
        struct rm_error none = { 0 };

        get.job = job;
        get.progress = progress;
        if (call_connect(call) < 0 || client_send(call->client, &get.base, NULL, &none) < 0 ||
            client_receive(call->client, ANSWER_USEC, &reply, &none) < 0 || reply->body_case == RM__LOCAL_REPLY__BODY_USE)
                return reply;
        rm__local_reply__free_unpacked(reply, NULL);
        return NULL;
}

/* Both are in the order of names, and the list may have fewer. */
void use_fill_nodes(struct call *call, const Rm__NodeList *nodes) {
        Rm__LocalReply *reply = fetch(call, 0, false);
        size_t k = 0;

        for (size_t i = 0; reply && i < nodes->n_nodes; i++) {
                Rm__NodeView *view = nodes->nodes[i];

                while (view->node && k < reply->use->n_nodes && strcmp(reply->use->nodes[k]->node, view->node->name) < 0)
                        k++;
                if (!view->node || k == reply->use->n_nodes || strcmp(reply->use->nodes[k]->node, view->node->name) != 0)
                        continue;
                view->memory_reported = true;
                view->memory_free_bytes = reply->use->nodes[k]->memory_free_bytes;
        }
        if (reply)
                rm__local_reply__free_unpacked(reply, NULL);
}

/* The leader knows more of jobs that run, and of those that wait. */
static bool is_there(const Rm__JobView *view) {
        return view->job && (view->job->state == RM__JOB_STATE__JOB_RUNNING || view->job->state == RM__JOB_STATE__JOB_PENDING);
}

/* Copies what the answer tells of the job into the view. */
static void take_job(Rm__JobView *view, Rm__Use *use) {
        for (size_t i = 0; i < use->n_progress && !view->progress; i++)
                if (use->progress[i] && use->progress[i]->job == view->job->id)
                        view->progress = take_ptr(use->progress[i]);
        for (size_t i = 0; i < use->n_starts; i++)
                if (use->starts[i]->job == view->job->id)
                        view->expected_start_usec = use->starts[i]->expected_start_usec;
}

void use_fill_job(struct call *call, Rm__JobView *view) {
        Rm__LocalReply *reply = is_there(view) ? fetch(call, view->job->id, true) : NULL;

        if (!reply)
                return;
        if (*view->folded_node)
                view->slowdown = reply->use->slowdown;
        take_job(view, reply->use);
        rm__local_reply__free_unpacked(reply, NULL);
}

void use_fill_jobs(struct call *call, const Rm__JobList *jobs) {
        Rm__LocalReply *reply = NULL;
        bool any = false;

        for (size_t i = 0; i < jobs->n_jobs && !any; i++)
                any = is_there(jobs->jobs[i]) && !jobs->jobs[i]->foreign;
        reply = any ? fetch(call, 0, true) : NULL;
        for (size_t i = 0; reply && i < jobs->n_jobs; i++)
                if (is_there(jobs->jobs[i]))
                        take_job(jobs->jobs[i], reply->use);
        if (reply)
                rm__local_reply__free_unpacked(reply, NULL);
}
