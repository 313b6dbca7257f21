#include "daemon/client/proxies.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/client/users.h"
#include "daemon/cluster/cluster.h"

/* Users' requests that wait on the way to one node: what the log and moves send there has to have room as well. */
#define PENDING_MAX_BYTES (16U << 20)

struct channel {
        uint32_t id;
        char *node;
        uid_t uid;
        gid_t gid;
        struct user user;
        bool identified; /* user is set, and not sent yet */
        proxy_reply_fn on_reply;
        void *userdata;
        struct channel *next;
};

struct proxies {
        struct rmd *rmd;
        proxy_request_fn on_request;
        proxy_gone_fn on_gone;
        uint32_t last_id;
        struct channel *channels; /* opened here */
        struct client *clients;   /* carried here */
};

struct proxies *proxies_create(struct rmd *rmd, proxy_request_fn on_request, proxy_gone_fn on_gone) {
        struct proxies *proxies = xcalloc(1, sizeof(*proxies));

        proxies->rmd = rmd;
        proxies->on_request = on_request;
        proxies->on_gone = on_gone;
        /* Ids of a restarted daemon must not meet those of its predecessor. */
        proxies->last_id = (uint32_t) now_real_usec();
        return proxies;
}

static void channel_free(struct channel *channel) {
        free(channel->user.groups);
        free(channel->node);
        free(channel);
}

void proxies_destroy(struct proxies *proxies) {
        if (!proxies)
                return;
        while (proxies->channels) {
                struct channel *channel = proxies->channels;

                proxies->channels = channel->next;
                channel_free(channel);
        }
        while (proxies->clients) {
                struct client *client = proxies->clients;

                proxies->clients = client->next;
                client_leave(client);
        }
        free(proxies);
}

static struct channel *find_channel(struct proxies *proxies, uint32_t id) {
        for (struct channel *c = proxies->channels; c; c = c->next)
                if (c->id == id)
                        return c;
        return NULL;
}

static struct channel *unlink_channel(struct proxies *proxies, uint32_t id) {
        for (struct channel **p = &proxies->channels; *p; p = &(*p)->next)
                if ((*p)->id == id) {
                        struct channel *channel = *p;

                        *p = channel->next;
                        return channel;
                }
        return NULL;
}

static void keep_user(struct channel *channel, const struct client *client) {
        struct user *user = &channel->user;

        channel->uid = client->uid;
        channel->gid = client->gid;
        channel->identified = client->identified;
        memcpy(user->name, client->user, sizeof(user->name));
        user->admin = client->admin;
        user->groups = xcalloc(client->n_groups, sizeof(gid_t));
        user->n_groups = client->n_groups;
        if (user->n_groups > 0)
                memcpy(user->groups, client->groups, user->n_groups * sizeof(gid_t));
}

uint32_t proxies_open(struct proxies *proxies, const char *node, const struct client *client, proxy_reply_fn on_reply,
                      void *userdata) {
        struct channel *channel = xcalloc(1, sizeof(*channel));

        do
                channel->id = ++proxies->last_id;
        while (channel->id == 0 || find_channel(proxies, channel->id));
        channel->node = xstrdup(node);
        keep_user(channel, client);
        channel->on_reply = on_reply;
        channel->userdata = userdata;
        channel->next = proxies->channels;
        proxies->channels = channel;
        return channel->id;
}

int proxies_send(struct proxies *proxies, uint32_t id, const Rm__LocalRequest *request) {
        struct channel *channel = find_channel(proxies, id);
        Rm__ProxyRequest proxied = RM__PROXY_REQUEST__INIT;
        Rm__PeerMessage message = RM__PEER_MESSAGE__INIT;

        int r;

        if (!channel)
                return -ENOTCONN;
        if (channel->uid != 0 && cluster_pending_bytes(proxies->rmd->cluster, channel->node) > PENDING_MAX_BYTES)
                return -EBUSY;
        proxied.channel = id;
        proxied.uid = channel->uid;
        proxied.gid = channel->gid;
        proxied.request = (Rm__LocalRequest *) request;
        proxied.identified = channel->identified;
        if (channel->identified) {
                proxied.user = channel->user.name;
                proxied.admin = channel->user.admin;
                proxied.groups = channel->user.groups;
                proxied.n_groups = channel->user.n_groups;
        }
        message.body_case = RM__PEER_MESSAGE__BODY_PROXY_REQUEST;
        message.proxy_request = &proxied;
        r = cluster_send(proxies->rmd->cluster, channel->node, &message);
        if (r == 0)
                channel->identified = false;
        return r;
}

void proxies_close(struct proxies *proxies, uint32_t id) {
        struct channel *channel = unlink_channel(proxies, id);
        Rm__ProxyClose closed = RM__PROXY_CLOSE__INIT;
        Rm__PeerMessage message = RM__PEER_MESSAGE__INIT;

        if (!channel)
                return;
        closed.channel = id;
        message.body_case = RM__PEER_MESSAGE__BODY_PROXY_CLOSE;
        message.proxy_close = &closed;
        (void) cluster_send(proxies->rmd->cluster, channel->node, &message);
        channel_free(channel);
}

static struct client *find_client(struct proxies *proxies, const char *node, uint32_t channel) {
        for (struct client *c = proxies->clients; c; c = c->next)
                if (c->channel == channel && strcmp(c->node, node) == 0)
                        return c;
        return NULL;
}

static void drop_client(struct proxies *proxies, struct client *client) {
        for (struct client **p = &proxies->clients; *p; p = &(*p)->next)
                if (*p == client) {
                        *p = client->next;
                        break;
                }
        proxies->on_gone(proxies->rmd, client);
        client_leave(client);
}

/* As the node says where the client is: the user data base is not asked here, where that would have to wait. */
static void identify(struct client *client, const Rm__ProxyRequest *in) {
        struct user user = { .admin = in->admin, .groups = in->groups, .n_groups = in->n_groups };

        if (!in->identified || !in->user[0])
                return;
        (void) snprintf(user.name, sizeof(user.name), "%s", in->user);
        client_identify(client, &user);
}

static void on_request(struct proxies *proxies, const char *node, const Rm__ProxyRequest *in) {
        struct client *client = find_client(proxies, node, in->channel);

        if (!in->request)
                return;
        if (!client) {
                client = client_create(proxies->rmd, in->uid, in->gid);
                identify(client, in);
                client->node = xstrdup(node);
                client->channel = in->channel;
                client->greeted = true;
                client->next = proxies->clients;
                proxies->clients = client;
        }
        proxies->on_request(proxies->rmd, client, in->request);
}

static void on_reply(struct proxies *proxies, const char *node, const Rm__ProxyReply *in) {
        struct channel *channel = find_channel(proxies, in->channel);

        if (channel && in->reply && strcmp(channel->node, node) == 0)
                channel->on_reply(channel->userdata, channel->id, in->reply);
}

bool proxies_on_message(struct proxies *proxies, const char *node, const Rm__PeerMessage *message) {
        struct client *client;

        switch (message->body_case) {
        case RM__PEER_MESSAGE__BODY_PROXY_REQUEST:
                on_request(proxies, node, message->proxy_request);
                return true;
        case RM__PEER_MESSAGE__BODY_PROXY_REPLY:
                on_reply(proxies, node, message->proxy_reply);
                return true;
        case RM__PEER_MESSAGE__BODY_PROXY_CLOSE:
                client = find_client(proxies, node, message->proxy_close->channel);
                if (client)
                        drop_client(proxies, client);
                return true;
        default:
                return false;
        }
}

void proxies_keep(struct proxies *proxies) {
        for (const struct channel *c = proxies->channels; c; c = c->next)
                cluster_keep(proxies->rmd->cluster, c->node);
        for (const struct client *c = proxies->clients; c; c = c->next)
                cluster_keep(proxies->rmd->cluster, c->node);
}

void proxies_on_peer(struct proxies *proxies, const char *node, bool connected) {
        bool again = !connected;

        while (again) {
                again = false;
                for (struct channel *c = proxies->channels; c; c = c->next)
                        if (strcmp(c->node, node) == 0) {
                                struct channel *gone = unlink_channel(proxies, c->id);

                                gone->on_reply(gone->userdata, gone->id, NULL);
                                channel_free(gone);
                                again = true;
                                break;
                        }
        }
        again = !connected;
        while (again) {
                again = false;
                for (struct client *c = proxies->clients; c; c = c->next)
                        if (strcmp(c->node, node) == 0) {
                                drop_client(proxies, c);
                                again = true;
                                break;
                        }
        }
}
