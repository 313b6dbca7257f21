#include "daemon/client/client.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/message_body.h"
#include "common/text.h"
#include "common/util.h"
#include "daemon/client/account.h"
#include "daemon/client/users.h"
#include "daemon/cluster/cluster.h"
#include "daemon/peers/peer_message.h"

struct client *client_create(struct rmd *rmd, uid_t uid, gid_t gid) {
        struct client *client = xcalloc(1, sizeof(*client));

        client->rmd = rmd;
        client->refs = 1;
        client->uid = uid;
        client->gid = gid;
        if (uid == 0)
                (void) snprintf(client->user, sizeof(client->user), "root");
        else
                (void) snprintf(client->user, sizeof(client->user), "%u", (unsigned) uid);
        client->admin = uid == 0;
        return client;
}

void client_identify(struct client *client, const struct user *user) {
        (void) snprintf(client->user, sizeof(client->user), "%s", user->name);
        client->admin = client->uid == 0 || user->admin;
        free(client->groups);
        client->groups = xcalloc(user->n_groups, sizeof(gid_t));
        client->n_groups = user->n_groups;
        if (user->n_groups > 0)
                memcpy(client->groups, user->groups, user->n_groups * sizeof(gid_t));
        client->identified = true;
}

struct client *client_hold(struct client *client) {
        client->refs++;
        account_open(client->account, client->way);
        return client;
}

static void client_unref(struct client *client) {
        if (--client->refs > 0)
                return;
        free(client->groups);
        free(client->limits);
        free(client->limits_error);
        free(client->node);
        free(client);
}

void client_release(struct client *client) {
        if (!client)
                return;
        account_close(client->account, client->way);
        client_unref(client);
}

void client_leave(struct client *client) {
        client->conn = NULL;
        client->sink = NULL;
        free(client->node);
        client->node = NULL;
        client_unref(client);
}

/* 0, or a negative errno; -ENOTCONN when it has gone. */
static int send_reply(struct client *client, Rm__LocalReply *reply) {
        Rm__ForwardReply forwarded = RM__FORWARD_REPLY__INIT;

        if (client->sink) {
                client->sink->reply(client->sink->userdata, reply);
                return 0;
        }
        if (client->conn)
                return conn_send(client->conn, &reply->base);
        if (!client->node)
                return -ENOTCONN;
        forwarded.channel = client->channel;
        forwarded.reply = reply;
        return cluster_send(client->rmd->cluster, client->node, &PEER_MESSAGE(&forwarded));
}

void client_reply(struct client *client, uint32_t request_id, Rm__LocalReply *reply) {
        int r;

        reply->id = request_id;
        r = send_reply(client, reply);
        /* An error always fits. */
        if (r == -EMSGSIZE && reply->body_case != RM__LOCAL_REPLY__BODY_ERROR)
                client_error(client, request_id, r,
                             "the answer has %zu bytes, more than fit into one message: ask for less at a time",
                             protobuf_c_message_get_packed_size(&reply->base));
        else if (r == -ENOBUFS && client->conn)
                conn_fail(client->conn, r, "it does not read its replies");
        else if (r < 0 && r != -ENOTCONN)
                log_warn("%s: an answer for uid %u is lost: %s", client->conn ? conn_name(client->conn) : client->node,
                         (unsigned) client->uid, strerror(-r));
}

void client_answer(struct client *client, uint32_t request_id, const ProtobufCMessage *body) {
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;

        message_set_body(&reply.base, body);
        client_reply(client, request_id, &reply);
}

void client_error(struct client *client, uint32_t request_id, int code, const char *fmt, ...) {
        Rm__Error error = RM__ERROR__INIT;
        char text[RM_ERROR_TEXT_BYTES];
        va_list ap;

        va_start(ap, fmt);
        (void) text_format_va(text, sizeof(text), fmt, ap);
        va_end(ap);
        error.code = code < 0 ? -code : code;
        error.text = text;
        client_answer(client, request_id, &error.base);
}

void client_ok(struct client *client, uint32_t request_id, uint64_t id, const char *text) {
        Rm__Ok ok = RM__OK__INIT;

        ok.id = id;
        ok.text = (char *) (text ? text : "");
        client_answer(client, request_id, &ok.base);
}

bool client_is_local(const struct client *client) {
        return client->conn || client->sink;
}

size_t client_pending_bytes(const struct client *client) {
        if (client->sink)
                return client->sink->pending_bytes(client->sink->userdata);
        return client->conn ? conn_pending_bytes(client->conn) : 0;
}

bool client_may(const struct client *client, uid_t owner) {
        return client->admin || client->uid == owner;
}
