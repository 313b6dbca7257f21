#include "daemon/requests/service.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/frame.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/util.h"
#include "common/version.h"
#include "daemon/client/account.h"
#include "daemon/client/request_head.h"
#include "daemon/client/users.h"
#include "daemon/config/config.h"
#include "daemon/job/outputs.h"
#include "daemon/requests/attachment.h"
#include "daemon/requests/limits.h"
#include "daemon/requests/requests.h"
#include "daemon/requests/waiting.h"
#include "daemon/wire/listener.h"

#define PROTOCOL_VERSION 1U
/* A user's client connects and says hello in one go. Root's may be stopped in between by a
 * debugger. */
#define SILENT_USEC UINT64_C(2000000)
#define ROOT_SILENT_USEC UINT64_C(30000000)
/* The largest request is 1 MiB and comes from this machine. */
#define REQUEST_USEC UINT64_C(30000000)
/* A job of 1 MiB has at most 12,288 words; that is 1.5 MiB, unpacked. Only what is made to be large
 * is more. */
#define DECODED_MAX_BYTES (8U << 20)
/* A client that has not read so much of its answers is answered nothing more. */
#define UNREAD_MAX_BYTES (256U << 10)
/* Users' requests at a time, before others have the loop, if what they take of the processor
 * (client/account.h) has not ended it before. */
#define TURN_USEC UINT64_C(5000)
/* Beside the socket for all, with a queue of its own: the 1,025th client to connect waits outside
 * of it. */
#define ROOT_SOCKET_SUFFIX ".root"

struct service {
        struct rmd *rmd;
        struct listener *listener;
        struct listener *root_listener;
        struct accounts *accounts;
        struct users *users;
        struct policy_host *policy_host;
        struct waiting *waiting;
        struct event *wake;
        struct event *turn;
        struct event *over;
        struct log_rate refusals;
        struct log_rate nonsense; /* bytes that are no request */
        struct log_rate events; /* of nodes, and of root's jobs */
        struct client_list clients;
};

/* Removes the client from this service; its connection is closed by the caller. */
static void client_gone(struct service *service, struct client *client) {
        TAILQ_REMOVE(&service->clients, client, all);
        attachment_leave(client);
        account_leave(client);
        client_leave(client);
}

/* With a last word, if there is one to be sent. */
static void drop(struct client *client) {
        struct conn *conn = client->conn;

        client_gone(client->rmd->service, client);
        conn_close_now(conn);
}

/* ---- requests ---- */

/* When it says hello, not for a job only, so that the time is short in which the process can become
 * another program. */
static void learn_limits(struct client *client) {
        struct rm_error err = { 0 };
        struct ucred creds;
        int r = conn_peer_creds(client->conn, &creds);

        if (r < 0)
                (void) error_sys(&err, r, "cannot determine the client's user");
        else
                r = limits_of_peer(conn_fd(client->conn), &creds, &client->limits, &err);
        if (r < 0)
                client->limits_error = xstrdup(error_text(&err));
}

/* The client has said hello: it may no longer be closed in favour of others. False: its user has
 * too many clients already. */
static bool take_in(struct client *client) {
        if (!client->silent)
                return true;
        conn_trust(client->conn);
        if (account_resync(client)) {
                learn_limits(client);
                return true;
        }
        log_limited(&client->rmd->service->refusals, LOG_WARNING, "%s: refused, its user has %u connections already",
                    conn_name(client->conn), account_known_max(client->account));
        client_error(client, client->head_id, -EUSERS,
                     "uid %u has %u connections to rmd on this node already, and may not have more", (unsigned) client->uid,
                     account_known_max(client->account));
        drop(client);
        return false;
}

static void hello(struct client *client, const Rm__LocalRequest *request) {
        Rm__HelloReply hello = RM__HELLO_REPLY__INIT;
        const struct user *user = NULL;

        if (request->hello->version != PROTOCOL_VERSION) {
                client_error(client, request->id, -EPROTONOSUPPORT,
                             "rmd speaks version %u of the protocol, not %u: install the same version of both", PROTOCOL_VERSION,
                             request->hello->version);
                return;
        }
        client->greeted = true;
        if (users_find(client->rmd->service->users, client->uid, client->gid, &user) == 0)
                client_identify(client, user);
        hello.version = PROTOCOL_VERSION;
        hello.node = client->rmd->config->node_name;
        hello.cluster = client->rmd->config->cluster_name;
        hello.rmd_version = (char *) RM_VERSION;
        hello.uid = client->uid;
        hello.admin = client->admin;
        client_answer(client, request->id, &hello.base);
}

static bool take_limits(struct client *client, const Rm__LocalRequest *request) {
        if (client->limits)
                limits_set(request->submit_job->spec, client->limits);
        else
                client_error(client, request->id, -EPERM, "submit: %s", client->limits_error);
        return client->limits;
}

/* A job gets the groups of the user who submits it. A client may have been connected for long, and
 * is asked for again, as at a login. */
static void dispatch(struct client *client, const Rm__LocalRequest *request, struct patience patience) {
        const struct user *user = NULL;
        int r = 0;

        if (request->body_case == RM__LOCAL_REQUEST__BODY_SUBMIT_JOB)
                r = users_find(client->rmd->service->users, client->uid, client->gid, &user);
        if (r == -EAGAIN) {
                waiting_add(client->rmd->service->waiting, client, request, patience);
                return;
        }
        if (user)
                client_identify(client, user);
        client->identified = client->identified && r == 0;
        request_dispatch(client, request, patience);
}

static void on_message(struct conn *conn, ProtobufCMessage *message, void *userdata) {
        struct client *client = userdata;
        const Rm__LocalRequest *request = (const Rm__LocalRequest *) message;

        if (!take_in(client))
                return;
        if (request->body_case == RM__LOCAL_REQUEST__BODY_HELLO) {
                hello(client, request);
        } else if (!client->greeted) {
                log_limited(&client->rmd->service->nonsense, LOG_WARNING, "%s sent a request before its hello: closed",
                            conn_name(conn));
                drop(client);
        } else {
                if (request->body_case == RM__LOCAL_REQUEST__BODY_SUBMIT_JOB && request->submit_job->spec &&
                    !take_limits(client, request))
                        return;
                dispatch(client, request, waiting_begin());
        }
}

static int on_header(struct conn *conn, const uint8_t *head_bytes, size_t n, uint32_t payload_bytes, void *userdata) {
        struct client *client = userdata;
        struct request_head head = request_head_read(head_bytes, n);
        uint32_t max_bytes = request_head_max_bytes(&head, client->greeted);

        client->head_id = head.id;
        if (payload_bytes <= max_bytes)
                return 0;
        log_limited(&client->rmd->service->nonsense, LOG_WARNING,
                    "%s: a request of %u bytes, at most %u are allowed; connection closed", conn_name(conn), payload_bytes,
                    max_bytes);
        client_error(client, head.id, -EMSGSIZE, "the request has %u bytes, at most %u are allowed", payload_bytes, max_bytes);
        drop(client);
        return -EMSGSIZE;
}

/* ---- whose turn it is ---- */

/* The user must be known before a request is answered; and answers must be read before there are
 * more. But a front end whose output waits for a slow reader may still cancel its job. */
static void queue_request(struct client *client) {
        const struct user *user;

        client->waits_for_user =
                !client->greeted && users_find(client->rmd->service->users, client->uid, client->gid, &user) == -EAGAIN;
        client->held = !client->attachment && client_pending_bytes(client) > UNREAD_MAX_BYTES;
        if (!client->waits_for_user && !client->held)
                account_ready(client);
}

static void on_frame(struct conn *conn, void *userdata) {
        struct client *client = userdata;

        if (take_in(client))
                queue_request(client);
}

static void on_drained(struct conn *conn, void *userdata) {
        struct client *client = userdata;

        attachment_drained(client);
        events_drained(client);
        if (client->held)
                queue_request(client);
}

/* The processor time of this thread, without that of other processes. */
static uint64_t work_usec(void) {
        struct timespec spent;

        (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
        return (uint64_t) spent.tv_sec * 1000000U + (uint64_t) spent.tv_nsec / 1000U;
}

/* The client may leave during this call. */
static void serve(struct client *client) {
        Rm__LocalRequest *request;

        if (client->way == ACCOUNT_LOCAL) {
                conn_receive(client->conn);
                return;
        }
        request = account_take_request(client);
        (void) client_hold(client);
        request_dispatch(client, request, waiting_begin());
        client_release(client);
        rm__local_request__free_unpacked(request, NULL);
}

static void on_turn(evutil_socket_t fd, short what, void *arg) {
        struct service *service = arg;
        uint64_t now = now_usec();
        uint64_t end_usec = now + TURN_USEC, wait_usec = 0;
        struct client *client;

        while (now < end_usec && (client = accounts_next(service->accounts, now, &wait_usec))) {
                struct account *account = client->account;
                enum account_way way = client->way;
                uint64_t before_usec = work_usec();

                serve(client);
                now = now_usec();
                account_charge_request(account, way, now, work_usec() - before_usec);
        }
        /* A timer also when it is at once, so that the loop looks at everything else first. */
        if (wait_usec != UINT64_MAX)
                timer_arm(service->turn, wait_usec);
}

static void on_users(void *userdata) {
        struct service *service = userdata;
        struct client *client;

        TAILQ_FOREACH (client, &service->clients, all)
                if (client->waits_for_user)
                        queue_request(client);
        waiting_wake(service->waiting);
}

/* ---- connections ---- */

static void on_over(evutil_socket_t fd, short what, void *arg) {
        struct service *service = arg;
        struct client *client;

        while ((client = accounts_heaviest(service->accounts))) {
                log_limited(&service->refusals, LOG_WARNING,
                            "%s: closed, it holds %zu bytes of this daemon's memory, too much is held", conn_name(client->conn),
                            conn_held_bytes(client->conn));
                drop(client);
        }
}

static void on_close(struct conn *conn, int code, const char *reason, void *userdata) {
        struct client *client = userdata;

        client_gone(client->rmd->service, client);
}

/* Root's requests are handled as they come, users' in turn. */
static const struct conn_ops root_ops = {
        .on_header = on_header,
        .on_message = on_message,
        .on_drained = on_drained,
        .on_close = on_close,
};
static const struct conn_ops user_ops = {
        .on_header = on_header,
        .on_frame = on_frame,
        .on_message = on_message,
        .on_drained = on_drained,
        .on_close = on_close,
};

/* A place for one more of this user's, if need be another's. */
static struct account *make_space(struct service *service, uid_t uid, const char *name) {
        struct account *account = NULL;
        struct client *victim = NULL;

        if (!accounts_admit(service->accounts, uid, now_usec(), &account, &victim)) {
                log_limited(&service->refusals, LOG_WARNING,
                            "%s: refused, its user or all users together have as many connections as they may", name);
                return NULL;
        }
        if (victim) {
                log_limited(&service->refusals, LOG_WARNING, "%s: closed to make room for %s", conn_name(victim->conn), name);
                drop(victim);
        }
        return account;
}

static void on_accept(void *userdata, int fd, const char *name) {
        struct service *service = userdata;
        struct conn_config config = {
                .magic = FRAME_MAGIC_LOCAL,
                .max_bytes = FRAME_MAX_LOCAL_BYTES,
                .type = &rm__local_request__descriptor,
                .name = name,
                .log = &service->nonsense,
                .frame_usec = REQUEST_USEC,
                .decoded_max_bytes = DECODED_MAX_BYTES,
        };
        struct account *account = NULL;
        struct client *client;
        struct ucred creds;
        socklen_t size = sizeof(creds);

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &creds, &size) == 0)
                account = make_space(service, creds.uid, name);
        if (!account) {
                (void) close(fd);
                return;
        }
        config.meter = &account->meter;
        config.trust_usec = creds.uid == 0 ? ROOT_SILENT_USEC : SILENT_USEC;
        client = client_create(service->rmd, creds.uid, creds.gid);
        if (conn_create(service->rmd->base, fd, &config, creds.uid == 0 ? &root_ops : &user_ops, client, &client->conn) < 0) {
                client_leave(client);
                return;
        }
        account_join(account, client, now_usec());
        TAILQ_INSERT_TAIL(&service->clients, client, all);
}

/* ---- the whole ---- */

static void on_wake(evutil_socket_t fd, short what, void *arg) {
        struct service *service = arg;
        struct client *client;

        waiting_wake(service->waiting);
        TAILQ_FOREACH (client, &service->clients, all) {
                attachment_state_changed(client);
                events_publish(client);
        }
}

/* Lines about events: a user may cause so many at once, and then so many a second; 5 are 40 MB a
 * day. */
static const struct rate_limit event_lines = { .usec_each = 200000, .burst = 1000 };

static void log_event(struct service *service, const Rm__Event *event) {
        const Rm__Job *job = state_job(cluster_state(service->rmd->cluster), event->job);
        struct log_rate *lines = job && job->spec->uid != 0 ? accounts_lines(service->accounts, job->spec->uid) : &service->events;

        log_rated(lines, &event_lines, LOG_INFO, "%s", event->text);
}

void service_applied(struct service *service, const Rm__Command *command, const struct state_result *result) {
        uint32_t uid;

        if (!service)
                return;
        if (state_command_user(cluster_state(service->rmd->cluster), command, &uid) && uid != 0)
                accounts_charge_change(service->accounts, uid, now_usec());
        for (size_t i = 0; i < result->n_events; i++)
                log_event(service, result->events[i]);
}

struct policy_host *service_policy_host(struct service *service) {
        return service->policy_host;
}

struct waiting *service_waiting(struct service *service) {
        return service->waiting;
}

struct users *service_users(struct service *service) {
        return service->users;
}

int service_create(struct rmd *rmd, struct service **ret, struct rm_error *err) {
        struct service *service = xcalloc(1, sizeof(*service));
        cleanup_free char *root_path = xasprintf("%s" ROOT_SOCKET_SUFFIX, rmd->config->socket_path);
        const struct user *root = NULL;
        int r;

        service->rmd = rmd;
        TAILQ_INIT(&service->clients);
        service->wake = event_new(rmd->base, -1, 0, on_wake, service);
        service->turn = evtimer_new(rmd->base, on_turn, service);
        service->over = event_new(rmd->base, -1, 0, on_over, service);
        if (!service->wake || !service->turn || !service->over)
                abort();
        service->policy_host = policy_host_create(rmd->base, &(struct policy_host_config) { .directory = rmd->config->policy_dir });
        service->waiting = waiting_create(rmd->base, dispatch);
        service->accounts = accounts_create(service->turn, service->over);
        service->users = users_create(rmd->base, rmd->config->admin_group, on_users, service);
        (void) users_find(service->users, 0, 0, &root); /* root never waits for it */
        r = listener_create_unix(rmd->base, rmd->config->socket_path, 0666, on_accept, service, &service->listener, err);
        if (r == 0)
                r = listener_create_unix(rmd->base, root_path, 0600, on_accept, service, &service->root_listener, err);
        if (r < 0) {
                service_destroy(service);
                return r;
        }
        *ret = service;
        return 0;
}

void service_destroy(struct service *service) {
        if (!service)
                return;
        listener_destroy(service->listener);
        listener_destroy(service->root_listener);
        waiting_destroy(service->waiting);
        while (!TAILQ_EMPTY(&service->clients)) {
                struct client *client = TAILQ_FIRST(&service->clients);
                struct conn *conn = client->conn;

                client_gone(service, client);
                conn_destroy(conn);
        }
        users_destroy(service->users);
        policy_host_destroy(service->policy_host);
        accounts_destroy(service->accounts);
        event_free(service->wake);
        event_free(service->turn);
        event_free(service->over);
        free(service);
}

void service_wake(struct service *service) {
        if (service)
                event_active(service->wake, EV_TIMEOUT, 0);
}

void service_forwarded_request(struct rmd *rmd, struct client *client, const Rm__LocalRequest *request) {
        if (client->uid == 0) {
                request_dispatch(client, request, waiting_begin());
                return;
        }
        if (!client->account)
                account_join_forwarded(rmd->service->accounts, client,
                                       request->body_case == RM__LOCAL_REQUEST__BODY_ATTACH_JOB ? ACCOUNT_ATTACHED
                                                                                                : ACCOUNT_FORWARDED);
        if (account_put_request(client, request) < 0)
                client_error(client, request->id, -EDQUOT,
                             "too many requests of uid %u, or of all users, wait at node %s: try again later",
                             (unsigned) client->uid, cluster_self(rmd->cluster));
}

void service_forwarded_gone(struct rmd *rmd, struct client *client) {
        outputs_detach(rmd->outputs, client);
}
