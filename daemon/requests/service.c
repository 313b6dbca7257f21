#include "daemon/requests/service.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/frame.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/config/config.h"
#include "daemon/job/outputs.h"
#include "daemon/requests/limits.h"
#include "daemon/requests/requests.h"
#include "daemon/wire/listener.h"

#define CLIENTS_MAX 1000U
#define PROTOCOL_VERSION 1U

struct service {
        struct rmd *rmd;
        struct listener *listener;
        struct conn_gate gate;
        struct event *wake;
        struct client *clients;
        unsigned n_clients;
};

static void client_gone(struct service *service, struct client *client) {
        for (struct client **p = &service->clients; *p; p = &(*p)->next)
                if (*p == client) {
                        *p = client->next;
                        service->n_clients--;
                        break;
                }
        front_leave(client);
        client_leave(client);
}

static void hello(struct client *client, const Rm__LocalRequest *request) {
        Rm__HelloReply hello = RM__HELLO_REPLY__INIT;
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;

        if (request->hello->version != PROTOCOL_VERSION) {
                client_error(client, request->id, -EPROTONOSUPPORT,
                             "rmd speaks version %u of the protocol, not %u: install the same version of both", PROTOCOL_VERSION,
                             request->hello->version);
                return;
        }
        client->greeted = true;
        conn_trust(client->conn);
        hello.version = PROTOCOL_VERSION;
        hello.node = client->rmd->config->node_name;
        hello.cluster = client->rmd->config->cluster_name;
        hello.rmd_version = (char *) RM_VERSION;
        hello.uid = client->uid;
        hello.admin = client->admin;
        reply.body_case = RM__LOCAL_REPLY__BODY_HELLO;
        reply.hello = &hello;
        client_reply(client, request->id, &reply);
}

static bool take_limits(struct client *client, const Rm__LocalRequest *request) {
        struct ucred creds = { 0 };

        if (conn_peer_creds(client->conn, &creds) == 0 && limits_take(request->submit_job->spec, creds.pid) == 0)
                return true;
        client_error(client, request->id, -ESRCH, "submit: the limits of process %d cannot be read", (int) creds.pid);
        return false;
}

static void on_message(struct conn *conn, ProtobufCMessage *message, void *userdata) {
        struct client *client = userdata;
        const Rm__LocalRequest *request = (const Rm__LocalRequest *) message;

        if (request->body_case == RM__LOCAL_REQUEST__BODY_HELLO) {
                hello(client, request);
        } else if (!client->greeted) {
                log_warn("%s sent a request before its hello: closed", conn_name(conn));
                client_gone(client->rmd->service, client);
                conn_destroy(conn);
        } else {
                if (request->body_case == RM__LOCAL_REQUEST__BODY_SUBMIT_JOB && request->submit_job->spec &&
                    !take_limits(client, request))
                        return;
                request_dispatch(client, request);
        }
}

static void on_close(struct conn *conn, int code, const char *reason, void *userdata) {
        struct client *client = userdata;

        client_gone(client->rmd->service, client);
}

static void on_drained(struct conn *conn, void *userdata) {
        front_drained(userdata);
}

static const struct conn_ops conn_ops = { .on_message = on_message, .on_drained = on_drained, .on_close = on_close };

static void on_accept(void *userdata, int fd, const char *name) {
        struct service *service = userdata;
        struct conn_config config = {
                .magic = FRAME_MAGIC_LOCAL,
                .max_bytes = FRAME_MAX_LOCAL_BYTES,
                .type = &rm__local_request__descriptor,
                .gate = &service->gate,
        };
        struct client *client;
        struct ucred creds;
        struct conn *conn = NULL;
        socklen_t size = sizeof(creds);

        if (service->n_clients >= CLIENTS_MAX || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &creds, &size) < 0) {
                log_warn("%s refused: %u clients are connected", name, service->n_clients);
                (void) close(fd);
                return;
        }
        client = client_create(service->rmd, creds.uid, creds.gid);
        if (conn_create(service->rmd->base, fd, &config, &conn_ops, client, &conn) < 0) {
                client_leave(client);
                return;
        }
        client->conn = conn;
        client->next = service->clients;
        service->clients = client;
        service->n_clients++;
}

static void on_wake(evutil_socket_t fd, short what, void *arg) {
        struct service *service = arg;

        front_state_changed(service->rmd, service->clients);
        events_publish(service->rmd, service->clients);
}

int service_create(struct rmd *rmd, struct service **ret, struct rm_error *err) {
        struct service *service = xcalloc(1, sizeof(*service));
        int r;

        service->rmd = rmd;
        service->gate.waiting_max = 64;
        service->wake = event_new(rmd->base, -1, 0, on_wake, service);
        r = listener_create_unix(rmd->base, rmd->config->socket_path, 0666, on_accept, service, &service->listener, err);
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
        while (service->clients) {
                struct client *client = service->clients;
                struct conn *conn = client->conn;

                client_gone(service, client);
                conn_destroy(conn);
        }
        event_free(service->wake);
        free(service);
}

void service_wake(struct service *service) {
        if (service)
                event_active(service->wake, EV_TIMEOUT, 0);
}

void service_carried_request(struct rmd *rmd, struct client *client, const Rm__LocalRequest *request) {
        request_dispatch(client, request);
}

void service_carried_gone(struct rmd *rmd, struct client *client) {
        outputs_detach(rmd->outputs, client);
}
