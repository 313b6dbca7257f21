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
static bool ask_after(ProtobufCMessage *body, const Rm__LocalReply *page) {
        const Rm__NodeList *nodes = page->nodes;
        const Rm__JobList *jobs = page->jobs;
        const Rm__MoveList *moves = page->moves;

        switch (page->body_case) {
        case RM__LOCAL_REPLY__BODY_NODES:
                if (nodes->n_nodes == 0 || !nodes->nodes[nodes->n_nodes - 1]->node)
                        return false;
                ((Rm__ListNodes *) body)->after = nodes->nodes[nodes->n_nodes - 1]->node->name;
                return true;
        case RM__LOCAL_REPLY__BODY_JOBS:
                if (jobs->n_jobs == 0 || !jobs->jobs[jobs->n_jobs - 1]->job)
                        return false;
                ((Rm__ListJobs *) body)->after = jobs->jobs[jobs->n_jobs - 1]->job->id;
                return true;
        case RM__LOCAL_REPLY__BODY_MOVES:
                if (moves->n_moves == 0)
                        return false;
                ((Rm__ListMoves *) body)->since = moves->moves[moves->n_moves - 1]->id;
                return true;
        default:
                return false;
        }
}

static void ask_paged(ProtobufCMessage *body, Rm__LocalReply__BodyCase kind) {
        if (kind == RM__LOCAL_REPLY__BODY_NODES)
                ((Rm__ListNodes *) body)->paged = true;
        else if (kind == RM__LOCAL_REPLY__BODY_JOBS)
                ((Rm__ListJobs *) body)->paged = true;
        else
                ((Rm__ListMoves *) body)->paged = true;
}

int call_request_pages(struct call *call, ProtobufCMessage *body, Rm__LocalReply__BodyCase kind, Rm__LocalReply **ret_reply) {
        Rm__LocalReply *all = NULL;
        int r;

        ask_paged(body, kind);
        r = call_request(call, body, kind, &all);
        while (r == 0 && *list_of(all).more) {
                Rm__LocalReply *page = NULL;

                *list_of(all).more = false;
                if (!ask_after(body, all))
                        break;
                r = call_request(call, body, kind, &page);
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

int call_fetch_jobs(struct call *call, const uint64_t *jobs, size_t n_jobs, bool all, Rm__LocalReply **ret_reply) {
        Rm__ListJobs list = RM__LIST_JOBS__INIT;

        list.jobs = (uint64_t *) jobs;
        list.n_jobs = n_jobs;
        list.all = all;
        return call_request_pages(call, &list.base, RM__LOCAL_REPLY__BODY_JOBS, ret_reply);
}
