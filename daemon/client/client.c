#include "daemon/client/client.h"

#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/cluster/cluster.h"
#include "daemon/config/config.h"

static bool in_group(const char *user, gid_t gid, const char *group) {
        struct group *entry = group[0] ? getgrnam(group) : NULL;

        if (!entry)
                return false;
        if (entry->gr_gid == gid)
                return true;
        for (char **member = entry->gr_mem; *member; member++)
                if (strcmp(*member, user) == 0)
                        return true;
        return false;
}

struct client *client_create(struct rmd *rmd, uid_t uid, gid_t gid) {
        struct client *client = xcalloc(1, sizeof(*client));
        struct passwd *entry = getpwuid(uid);

        client->rmd = rmd;
        client->refs = 1;
        client->uid = uid;
        client->gid = gid;
        if (entry)
                (void) snprintf(client->user, sizeof(client->user), "%s", entry->pw_name);
        else
                (void) snprintf(client->user, sizeof(client->user), "%u", (unsigned) uid);
        client->admin = uid == 0 || in_group(client->user, gid, rmd->config->admin_group);
        return client;
}

struct client *client_hold(struct client *client) {
        client->refs++;
        return client;
}

void client_release(struct client *client) {
        if (!client || --client->refs > 0)
                return;
        free(client->node);
        free(client);
}

void client_leave(struct client *client) {
        client->conn = NULL;
        free(client->node);
        client->node = NULL;
        client_release(client);
}

void client_reply(struct client *client, uint32_t request_id, Rm__LocalReply *reply) {
        reply->id = request_id;
        if (client->conn) {
                (void) conn_send(client->conn, &reply->base);
        } else if (client->node) {
                Rm__ProxyReply proxied = RM__PROXY_REPLY__INIT;
                Rm__PeerMessage message = RM__PEER_MESSAGE__INIT;

                proxied.channel = client->channel;
                proxied.reply = reply;
                message.body_case = RM__PEER_MESSAGE__BODY_PROXY_REPLY;
                message.proxy_reply = &proxied;
                (void) cluster_send(client->rmd->cluster, client->node, &message);
        }
}

void client_error(struct client *client, uint32_t request_id, int code, const char *fmt, ...) {
        Rm__Error error = RM__ERROR__INIT;
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;
        char text[RM_ERROR_TEXT_BYTES];
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        error.code = code < 0 ? -code : code;
        error.text = text;
        reply.body_case = RM__LOCAL_REPLY__BODY_ERROR;
        reply.error = &error;
        client_reply(client, request_id, &reply);
}

void client_ok(struct client *client, uint32_t request_id, uint64_t id, const char *text) {
        Rm__Ok ok = RM__OK__INIT;
        Rm__LocalReply reply = RM__LOCAL_REPLY__INIT;

        ok.id = id;
        ok.text = (char *) (text ? text : "");
        reply.body_case = RM__LOCAL_REPLY__BODY_OK;
        reply.ok = &ok;
        client_reply(client, request_id, &reply);
}

size_t client_pending_bytes(const struct client *client) {
        return client->conn ? conn_pending_bytes(client->conn) : 0;
}

bool client_may(const struct client *client, uid_t owner) {
        return client->admin || client->uid == owner;
}
