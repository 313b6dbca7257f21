#include "launcher/rmctl/pages.h"

#include <string.h>

#include "common/util.h"

/* A repeated field of messages. */
struct list {
        void ***items;
        size_t *n;
        protobuf_c_boolean *more;
};

static struct list list_of(Rm__LocalReply *reply) {
        switch (reply->body_case) {
        case RM__LOCAL_REPLY__BODY_NODES:
                return (struct list) { (void ***) &reply->nodes->nodes, &reply->nodes->n_nodes, &reply->nodes->more };
        case RM__LOCAL_REPLY__BODY_JOBS:
                return (struct list) { (void ***) &reply->jobs->jobs, &reply->jobs->n_jobs, &reply->jobs->more };
        case RM__LOCAL_REPLY__BODY_MOVES:
                return (struct list) { (void ***) &reply->moves->moves, &reply->moves->n_moves, &reply->moves->more };
        default:
                abort(); /* not a list */
        }
}

/* Moves the entries of `page` to the end of `all`. */
static void take_over(Rm__LocalReply *all, Rm__LocalReply *page) {
        struct list to = list_of(all);
        struct list from = list_of(page);

        *to.items = xrealloc(*to.items, (*to.n + *from.n) * sizeof(void *));
        memcpy(*to.items + *to.n, *from.items, *from.n * sizeof(void *));
        *to.n += *from.n;
        *from.n = 0;
}

/* False: nothing in this page tells where the next one begins. */
static bool ask_after(Rm__LocalRequest *request, const Rm__LocalReply *page) {
        const Rm__NodeList *nodes = page->nodes;
        const Rm__JobList *jobs = page->jobs;
        const Rm__MoveList *moves = page->moves;

        switch (page->body_case) {
        case RM__LOCAL_REPLY__BODY_NODES:
                if (nodes->n_nodes == 0 || !nodes->nodes[nodes->n_nodes - 1]->node)
                        return false;
                request->list_nodes->after = nodes->nodes[nodes->n_nodes - 1]->node->name;
                return true;
        case RM__LOCAL_REPLY__BODY_JOBS:
                if (jobs->n_jobs == 0 || !jobs->jobs[jobs->n_jobs - 1]->job)
                        return false;
                request->list_jobs->after = jobs->jobs[jobs->n_jobs - 1]->job->id;
                return true;
        case RM__LOCAL_REPLY__BODY_MOVES:
                if (moves->n_moves == 0)
                        return false;
                request->list_moves->since = moves->moves[moves->n_moves - 1]->id;
                return true;
        default:
                return false;
        }
}

static void ask_paged(Rm__LocalRequest *request) {
        if (request->body_case == RM__LOCAL_REQUEST__BODY_LIST_NODES)
                request->list_nodes->paged = true;
        else if (request->body_case == RM__LOCAL_REQUEST__BODY_LIST_JOBS)
                request->list_jobs->paged = true;
        else if (request->body_case == RM__LOCAL_REQUEST__BODY_LIST_MOVES)
                request->list_moves->paged = true;
}

int call_request_pages(struct call *call, Rm__LocalRequest *request, Rm__LocalReply__BodyCase body, Rm__LocalReply **ret_reply) {
        Rm__LocalReply *all = NULL;
        int r;

        ask_paged(request);
        r = call_request(call, request, body, &all);
        while (r == 0 && *list_of(all).more) {
                Rm__LocalReply *page = NULL;

                *list_of(all).more = false;
                if (!ask_after(request, all))
                        break;
                r = call_request(call, request, body, &page);
                if (r < 0)
                        break;
                /* An empty page would come again and again. */
                *list_of(all).more = *list_of(page).more && *list_of(page).n > 0;
                take_over(all, page);
                rm__local_reply__free_unpacked(page, NULL);
        }
        if (r < 0 && all)
                rm__local_reply__free_unpacked(take_ptr(all), NULL);
        if (r == 0)
                *ret_reply = all;
        return r;
}
