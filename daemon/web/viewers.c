#include "daemon/web/viewers.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/message_body.h"
#include "common/text.h"
#include "common/timer.h"
#include "common/util.h"
#include "common/version.h"
#include "daemon/client/client.h"
#include "daemon/client/users.h"
#include "daemon/cluster/cluster.h"
#include "daemon/config/config.h"
#include "daemon/requests/requests.h"
#include "daemon/requests/service.h"
#include "daemon/requests/waiting.h"
#include "daemon/web/delta.h"
#include "proto/json.h"

/* The passes of one viewer begin at least so long after each other: as fast as an eye can
 * follow. */
#define PASS_USEC UINT64_C(250000)
/* A pass begins so long after the last one where nothing has changed: so the viewer knows that the
 * stream is alive, and the leader is asked for its figures so often. */
#define CALM_USEC UINT64_C(5000000)
/* The user data base is asked for its answer so often. */
#define USER_USEC UINT64_C(100000)
/* Turns take one part in so many of the time since the last turn. */
#define REST_PARTS 9U
/* A viewer that has so much to read is sent no more of the lists. */
#define PENDING_MAX_BYTES ((size_t) 64 << 10)
/* A viewer who comes anew gets events of the last so many entries of the log. */
#define ENTRIES_BACK 300U

/* The steps of a pass, in their order. */
enum step {
        STEP_REST,
        STEP_NODES,
        STEP_JOBS,
        STEP_MOVES,
        STEP_STATUS,
};

enum list {
        LIST_NODES,
        LIST_JOBS,
        LIST_MOVES,
        LISTS,
};

static const char *const list_names[LISTS] = { [LIST_NODES] = "nodes", [LIST_JOBS] = "jobs", [LIST_MOVES] = "moves" };

struct viewer {
        struct viewers *viewers;
        struct http_stream *stream;
        struct client *client;
        struct client_sink sink;
        uint64_t since;
        uint64_t end_usec;
        struct delta *lists[LISTS];
        json_t *gone; /* in this pass: keys of each list */
        enum step step;
        bool more;          /* the step's list has further pages, after these: */
        char *after_node;
        uint64_t after_id;
        uint64_t pass_usec; /* when its last pass began; 0: it had none */
        bool changed;       /* something, since then */
        bool known;         /* what its user may see */
        uint64_t user_usec; /* when the user data base was asked last, until then */
        bool asked_use;     /* the leader, which has not answered yet */
        TAILQ_ENTRY(viewer) entry;
};

struct viewers {
        struct rmd *rmd;
        struct event *turn;
        uint64_t rest_usec; /* until then nobody has a turn */
        TAILQ_HEAD(, viewer) list; /* who has waited longest for a turn first */
};

/* ---- what is sent ---- */

/* Sends an event with the JSON, and takes the JSON over. */
static void send_json(struct viewer *viewer, const char *name, json_t *json) {
        cleanup_free char *text = json_dumps(json, JSON_COMPACT | JSON_PRESERVE_ORDER);
        cleanup_free char *frame = text ? xasprintf("event: %s\ndata: %s\n\n", name, text) : NULL;

        json_decref(json);
        if (frame)
                http_stream_write(viewer->stream, frame, strlen(frame));
}

static void send_message(struct viewer *viewer, const char *name, const ProtobufCMessage *message) {
        send_json(viewer, name, json_from_message(message));
}

static void take_nodes(struct viewer *viewer, const Rm__NodeList *all) {
        cleanup_free Rm__NodeView **nodes = xcalloc(all->n_nodes + 1, sizeof(Rm__NodeView *));
        Rm__NodeList fresh = RM__NODE_LIST__INIT;

        fresh.nodes = nodes;
        for (size_t i = 0; i < all->n_nodes; i++)
                if (delta_is_new(viewer->lists[LIST_NODES], all->nodes[i]->node->name, &all->nodes[i]->base))
                        nodes[fresh.n_nodes++] = all->nodes[i];
        if (all->n_nodes > 0) {
                free(viewer->after_node);
                viewer->after_node = xstrdup(all->nodes[all->n_nodes - 1]->node->name);
        }
        viewer->more = all->more;
        if (fresh.n_nodes > 0)
                send_message(viewer, "nodes", &fresh.base);
}

/* A job is not new when only its expected loss differs, since that grows as time passes. */
static bool job_is_new(struct viewer *viewer, Rm__JobView *job) {
        cleanup_free char *key = xasprintf("%" PRIu64, job->job->id);
        uint64_t loss_usec = job->expected_loss_usec;
        bool is_new;

        job->expected_loss_usec = 0;
        is_new = delta_is_new(viewer->lists[LIST_JOBS], key, &job->base);
        job->expected_loss_usec = loss_usec;
        return is_new;
}

static void take_jobs(struct viewer *viewer, const Rm__JobList *all) {
        cleanup_free Rm__JobView **jobs = xcalloc(all->n_jobs + 1, sizeof(Rm__JobView *));
        Rm__JobList fresh = RM__JOB_LIST__INIT;

        fresh.jobs = jobs;
        for (size_t i = 0; i < all->n_jobs; i++)
                if (job_is_new(viewer, all->jobs[i]))
                        jobs[fresh.n_jobs++] = all->jobs[i];
        if (all->n_jobs > 0)
                viewer->after_id = all->jobs[all->n_jobs - 1]->job->id;
        viewer->more = all->more;
        if (fresh.n_jobs > 0)
                send_message(viewer, "jobs", &fresh.base);
}

static void take_moves(struct viewer *viewer, const Rm__MoveList *all) {
        cleanup_free Rm__Move **moves = xcalloc(all->n_moves + 1, sizeof(Rm__Move *));
        Rm__MoveList fresh = RM__MOVE_LIST__INIT;

        fresh.moves = moves;
        for (size_t i = 0; i < all->n_moves; i++) {
                cleanup_free char *key = xasprintf("%" PRIu64, all->moves[i]->id);

                if (delta_is_new(viewer->lists[LIST_MOVES], key, &all->moves[i]->base))
                        moves[fresh.n_moves++] = all->moves[i];
        }
        if (all->n_moves > 0)
                viewer->after_id = all->moves[all->n_moves - 1]->id;
        viewer->more = all->more;
        if (fresh.n_moves > 0)
                send_message(viewer, "moves", &fresh.base);
}

/* Only the leader's figures can be refused: there is no leader. */
static void take_error(struct viewer *viewer, const Rm__Error *error) {
        viewer->asked_use = false;
        send_json(viewer, "no-use", json_pack("{ss}", "text", error->text));
}

static void on_reply(void *userdata, const Rm__LocalReply *reply) {
        struct viewer *viewer = userdata;

        switch (reply->body_case) {
        case RM__LOCAL_REPLY__BODY_NODES:
                take_nodes(viewer, reply->nodes);
                break;
        case RM__LOCAL_REPLY__BODY_JOBS:
                take_jobs(viewer, reply->jobs);
                break;
        case RM__LOCAL_REPLY__BODY_MOVES:
                take_moves(viewer, reply->moves);
                break;
        case RM__LOCAL_REPLY__BODY_STATUS:
                send_message(viewer, "status", &reply->status->base);
                break;
        case RM__LOCAL_REPLY__BODY_USE:
                viewer->asked_use = false;
                send_message(viewer, "use", &reply->use->base);
                break;
        case RM__LOCAL_REPLY__BODY_EVENTS:
                send_message(viewer, "events", &reply->events->base);
                break;
        case RM__LOCAL_REPLY__BODY_ERROR:
                take_error(viewer, reply->error);
                break;
        default:
                break;
        }
}

static size_t pending_bytes(const void *userdata) {
        const struct viewer *viewer = userdata;

        return http_stream_pending_bytes(viewer->stream);
}

/* ---- what is asked ---- */

static void ask(struct viewer *viewer, const ProtobufCMessage *body) {
        Rm__LocalRequest request = RM__LOCAL_REQUEST__INIT;

        message_set_body(&request.base, body);
        request_dispatch(viewer->client, &request, waiting_begin());
}

static void ask_nodes(struct viewer *viewer) {
        Rm__ListNodes list = RM__LIST_NODES__INIT;

        list.paged = true;
        list.after = viewer->after_node ? viewer->after_node : (char *) "";
        ask(viewer, &list.base);
}

static void ask_jobs(struct viewer *viewer) {
        Rm__ListJobs list = RM__LIST_JOBS__INIT;

        list.paged = true;
        list.after = viewer->after_id;
        ask(viewer, &list.base);
}

static void ask_moves(struct viewer *viewer) {
        Rm__ListMoves list = RM__LIST_MOVES__INIT;

        list.paged = true;
        list.since = viewer->after_id;
        ask(viewer, &list.base);
}

static void ask_status(struct viewer *viewer) {
        Rm__GetStatus get = RM__GET_STATUS__INIT;

        ask(viewer, &get.base);
}

/* Asks for the figures of use. Another node may answer, and later. */
static void ask_use(struct viewer *viewer) {
        Rm__GetUse get = RM__GET_USE__INIT;

        if (viewer->asked_use)
                return;
        viewer->asked_use = true;
        get.progress = true;
        ask(viewer, &get.base);
}

static void ask_events(struct viewer *viewer) {
        uint64_t index = cluster_state(viewer->viewers->rmd->cluster)->index;
        Rm__FollowEvents follow = RM__FOLLOW_EVENTS__INIT;

        follow.since = index > ENTRIES_BACK ? index - ENTRIES_BACK : 0;
        /* A viewer that comes back goes on where it was. A larger index is of another log, or of a
         * node that knew more. */
        if (viewer->since > follow.since && viewer->since <= index)
                follow.since = viewer->since;
        follow.follow = true;
        ask(viewer, &follow.base);
}

/* ---- passes ---- */

/* False: the user data base is still being asked. */
static bool identify(struct viewer *viewer) {
        struct client *client = viewer->client;
        const struct user *user = NULL;
        int r = users_find(service_users(client->rmd->service), client->uid, client->gid, &user);

        if (r == 0)
                client_identify(client, user);
        /* The user stays a number, and no administrator, where the data base does not answer. */
        viewer->known = viewer->known || r != -EAGAIN;
        return viewer->known;
}

/* Tells the viewer first of all whose page it is, and where. */
static void send_hello(struct viewer *viewer) {
        const struct config *config = viewer->client->rmd->config;
        Rm__HelloReply hello = RM__HELLO_REPLY__INIT;

        hello.node = config->node_name;
        hello.cluster = config->cluster_name;
        hello.rmd_version = (char *) RM_VERSION;
        hello.uid = viewer->client->uid;
        hello.admin = viewer->client->admin;
        send_message(viewer, "hello", &hello.base);
        ask_events(viewer);
}

static void begin_list(struct viewer *viewer, enum step step) {
        viewer->step = step;
        free(take_ptr(viewer->after_node));
        viewer->after_id = 0;
}

static void begin_pass(struct viewer *viewer, uint64_t now) {
        if (viewer->pass_usec == 0)
                send_hello(viewer);
        if (now >= viewer->end_usec)
                http_stream_end(viewer->stream);
        viewer->pass_usec = now;
        viewer->changed = false;
        begin_list(viewer, STEP_NODES);
}

struct leaver {
        struct viewer *viewer;
        const char *list;
};

static void note_gone(void *userdata, const char *key) {
        const struct leaver *leaver = userdata;
        json_t *keys = json_object_get(leaver->viewer->gone, leaver->list);

        if (!keys) {
                keys = json_array();
                (void) json_object_set_new(leaver->viewer->gone, leaver->list, keys);
        }
        (void) json_array_append_new(keys, json_string(key));
}

/* The viewer shows what a pass has told when it has ended. */
static void end_pass(struct viewer *viewer) {
        const struct rmd *rmd = viewer->client->rmd;
        cleanup_free char *time = text_iso_time(now_real_usec());

        viewer->gone = json_object();
        for (size_t i = 0; i < LISTS; i++)
                delta_end_pass(viewer->lists[i], note_gone, &(struct leaver) { viewer, list_names[i] });
        if (json_object_size(viewer->gone) > 0)
                send_json(viewer, "gone", take_ptr(viewer->gone));
        else
                json_decref(take_ptr(viewer->gone));
        send_json(viewer, "pass",
                  json_pack("{ss, sI, sb}", "time", time, "index", (json_int_t) cluster_state(rmd->cluster)->index, "leads",
                            cluster_is_leader(rmd->cluster)));
        viewer->step = STEP_REST;
}

static void step_on(struct viewer *viewer) {
        viewer->more = false;
        switch (viewer->step) {
        case STEP_NODES:
                ask_nodes(viewer);
                if (!viewer->more)
                        begin_list(viewer, STEP_JOBS);
                break;
        case STEP_JOBS:
                ask_jobs(viewer);
                if (!viewer->more)
                        begin_list(viewer, STEP_MOVES);
                break;
        case STEP_MOVES:
                ask_moves(viewer);
                if (!viewer->more)
                        begin_list(viewer, STEP_STATUS);
                break;
        case STEP_STATUS:
                ask_status(viewer);
                ask_use(viewer);
                end_pass(viewer);
                break;
        case STEP_REST:
        default:
                break;
        }
}

/* ---- turns ---- */

/* Returns when the viewer has something to do next; UINT64_MAX: not before it has read. */
static uint64_t due_usec(const struct viewer *viewer, uint64_t now) {
        if (http_stream_pending_bytes(viewer->stream) > PENDING_MAX_BYTES)
                return UINT64_MAX;
        if (!viewer->known)
                return viewer->user_usec == 0 ? now : viewer->user_usec + USER_USEC;
        if (viewer->step != STEP_REST || viewer->pass_usec == 0)
                return now;
        return viewer->pass_usec + (viewer->changed ? PASS_USEC : CALM_USEC);
}

static void schedule(struct viewers *viewers) {
        uint64_t now = now_usec(), next = UINT64_MAX;
        const struct viewer *viewer;

        TAILQ_FOREACH (viewer, &viewers->list, entry) {
                uint64_t due = due_usec(viewer, now);

                next = due < next ? due : next;
        }
        if (next == UINT64_MAX)
                return;
        next = next < viewers->rest_usec ? viewers->rest_usec : next;
        timer_arm(viewers->turn, next > now ? next - now : 0);
}

static void work(struct viewer *viewer, uint64_t now) {
        if (viewer->step == STEP_REST) {
                viewer->user_usec = now;
                if (!identify(viewer))
                        return;
                begin_pass(viewer, now);
        }
        step_on(viewer);
}

static void on_turn(evutil_socket_t fd, short what, void *arg) {
        struct viewers *viewers = arg;
        uint64_t now = now_usec(), before_usec = thread_cpu_usec();
        struct viewer *viewer;

        TAILQ_FOREACH (viewer, &viewers->list, entry)
                events_publish(viewer->client);
        TAILQ_FOREACH (viewer, &viewers->list, entry)
                if (due_usec(viewer, now) <= now)
                        break;
        if (viewer) {
                TAILQ_REMOVE(&viewers->list, viewer, entry);
                TAILQ_INSERT_TAIL(&viewers->list, viewer, entry);
                work(viewer, now);
        }
        viewers->rest_usec = now + REST_PARTS * (thread_cpu_usec() - before_usec);
        schedule(viewers);
}

/* Events are sent at the next turn, whoever's it is. */
static void have_turn(struct viewers *viewers) {
        uint64_t now = now_usec();

        timer_arm(viewers->turn, viewers->rest_usec > now ? viewers->rest_usec - now : 0);
}

/* There may be events that had to wait. */
static void on_drained(void *userdata) {
        struct viewer *viewer = userdata;

        have_turn(viewer->viewers);
}

void viewers_wake(struct viewers *viewers) {
        struct viewer *viewer;

        if (TAILQ_EMPTY(&viewers->list))
                return;
        TAILQ_FOREACH (viewer, &viewers->list, entry)
                viewer->changed = true;
        have_turn(viewers);
}

/* ---- viewers come and go ---- */

static void viewer_free(struct viewer *viewer) {
        client_leave(viewer->client);
        for (size_t i = 0; i < LISTS; i++)
                delta_destroy(viewer->lists[i]);
        free(viewer->after_node);
        free(viewer);
}

static void on_closed(void *userdata) {
        struct viewer *viewer = userdata;

        TAILQ_REMOVE(&viewer->viewers->list, viewer, entry);
        viewer_free(viewer);
}

static const struct http_stream_ops stream_ops = { .drained = on_drained, .closed = on_closed };

struct http_stream *viewers_add(struct viewers *viewers, struct http *http, const struct viewer_wish *wish) {
        struct viewer *viewer = xcalloc(1, sizeof(*viewer));

        *viewer = (struct viewer) { .viewers = viewers, .since = wish->since, .end_usec = wish->end_usec };
        viewer->sink = (struct client_sink) { .reply = on_reply, .pending_bytes = pending_bytes, .userdata = viewer };
        viewer->client = client_create(viewers->rmd, wish->uid, USERS_PRIMARY_GROUP);
        viewer->client->sink = &viewer->sink;
        viewer->client->greeted = true;
        for (size_t i = 0; i < LISTS; i++)
                viewer->lists[i] = delta_create();
        viewer->stream = http_stream_begin(http, &stream_ops, viewer);
        if (!viewer->stream) {
                viewer_free(viewer);
                return NULL;
        }
        TAILQ_INSERT_HEAD(&viewers->list, viewer, entry);
        timer_arm(viewers->turn, 0);
        return viewer->stream;
}

struct viewers *viewers_create(struct rmd *rmd) {
        struct viewers *viewers = xcalloc(1, sizeof(*viewers));

        viewers->rmd = rmd;
        TAILQ_INIT(&viewers->list);
        viewers->turn = evtimer_new(rmd->base, on_turn, viewers);
        if (!viewers->turn)
                abort();
        return viewers;
}

void viewers_destroy(struct viewers *viewers) {
        if (!viewers)
                return;
        event_free(viewers->turn);
        free(viewers);
}
