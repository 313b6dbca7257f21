#include "daemon/client/forwarding.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "daemon/client/account.h"
#include "daemon/client/users.h"
#include "daemon/cluster/cluster.h"
#include "daemon/peers/peer_message.h"

/* Users' requests that wait on the way to one node: what the log and moves send there has to have
 * room as well. */
#define PENDING_MAX_BYTES (16U << 20)

struct channel {
        uint32_t id;
        char *node;
        uid_t uid;
        gid_t gid;
        struct user user;
        bool identified; /* user is set, and not sent yet */
        forward_reply_fn on_reply;
        void *userdata;
        struct channel *next;
};

struct forwarding {
        struct rmd *rmd;
        forward_request_fn on_request;
        forward_gone_fn on_gone;
        uint32_t last_id;
        struct channel *channels; /* opened here */
        struct client *clients;   /* carried here */
};

struct forwarding *forwarding_create(struct rmd *rmd, forward_request_fn on_request, forward_gone_fn on_gone) {
        struct forwarding *forwarding = xcalloc(1, sizeof(*forwarding));

        forwarding->rmd = rmd;
        forwarding->on_request = on_request;
        forwarding->on_gone = on_gone;
        /* Ids of a restarted daemon must not meet those of its predecessor. */
        forwarding->last_id = (uint32_t) now_real_usec();
        return forwarding;
}

static void channel_free(struct channel *channel) {
        free(channel->user.groups);
        free(channel->node);
        free(channel);
}

void forwarding_destroy(struct forwarding *forwarding) {
        if (!forwarding)
                return;
        while (forwarding->channels) {
                struct channel *channel = forwarding->channels;

                forwarding->channels = channel->next;
                channel_free(channel);
        }
        while (forwarding->clients) {
                struct client *client = forwarding->clients;

                forwarding->clients = client->next;
                account_leave(client);
                client_leave(client);
        }
        free(forwarding);
}

static struct channel *find_channel(struct forwarding *forwarding, uint32_t id) {
        for (struct channel *c = forwarding->channels; c; c = c->next)
                if (c->id == id)
                        return c;
        return NULL;
}

static struct channel *unlink_channel(struct forwarding *forwarding, uint32_t id) {
        for (struct channel **p = &forwarding->channels; *p; p = &(*p)->next)
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

uint32_t forwarding_open(struct forwarding *forwarding, const char *node, const struct client *client, forward_reply_fn on_reply,
                         void *userdata) {
        struct channel *channel = xcalloc(1, sizeof(*channel));

        do
                channel->id = ++forwarding->last_id;
        while (channel->id == 0 || find_channel(forwarding, channel->id));
        channel->node = xstrdup(node);
        keep_user(channel, client);
        channel->on_reply = on_reply;
        channel->userdata = userdata;
        channel->next = forwarding->channels;
        forwarding->channels = channel;
        return channel->id;
}

int forwarding_send(struct forwarding *forwarding, uint32_t id, const Rm__LocalRequest *request) {
        struct channel *channel = find_channel(forwarding, id);
        Rm__ForwardRequest forwarded = RM__FORWARD_REQUEST__INIT;

        int r;

        if (!channel)
                return -ENOTCONN;
        if (channel->uid != 0 && cluster_pending_bytes(forwarding->rmd->cluster, channel->node) > PENDING_MAX_BYTES)
                return -EBUSY;
        forwarded.channel = id;
        forwarded.uid = channel->uid;
        forwarded.gid = channel->gid;
        forwarded.request = (Rm__LocalRequest *) request;
        forwarded.identified = channel->identified;
        if (channel->identified) {
                forwarded.user = channel->user.name;
                forwarded.admin = channel->user.admin;
                forwarded.groups = channel->user.groups;
                forwarded.n_groups = channel->user.n_groups;
        }
        r = cluster_send(forwarding->rmd->cluster, channel->node, &PEER_MESSAGE(&forwarded));
        if (r == 0)
                channel->identified = false;
        return r;
}

void forwarding_close(struct forwarding *forwarding, uint32_t id) {
        struct channel *channel = unlink_channel(forwarding, id);
        Rm__ForwardClose closed = RM__FORWARD_CLOSE__INIT;

        if (!channel)
                return;
        closed.channel = id;
        (void) cluster_send(forwarding->rmd->cluster, channel->node, &PEER_MESSAGE(&closed));
        channel_free(channel);
}

static struct client *find_client(struct forwarding *forwarding, const char *node, uint32_t channel) {
        for (struct client *c = forwarding->clients; c; c = c->next)
                if (c->channel == channel && strcmp(c->node, node) == 0)
                        return c;
        return NULL;
}

static void drop_client(struct forwarding *forwarding, struct client *client) {
        for (struct client **p = &forwarding->clients; *p; p = &(*p)->next)
                if (*p == client) {
                        *p = client->next;
                        break;
                }
        forwarding->on_gone(forwarding->rmd, client);
        account_leave(client);
        client_leave(client);
}

/* Identifies the client by the message of its node: the user data base is not asked here, where
 * that would have to wait. */
static void identify(struct client *client, const Rm__ForwardRequest *in) {
        struct user user = { .admin = in->admin, .groups = in->groups, .n_groups = in->n_groups };

        if (!in->identified || !in->user[0])
                return;
        (void) snprintf(user.name, sizeof(user.name), "%s", in->user);
        client_identify(client, &user);
}

static void on_request(struct forwarding *forwarding, const char *node, const Rm__ForwardRequest *in) {
        struct client *client = find_client(forwarding, node, in->channel);

        if (!in->request)
                return;
        if (!client) {
                client = client_create(forwarding->rmd, in->uid, in->gid);
                identify(client, in);
                client->node = xstrdup(node);
                client->channel = in->channel;
                client->greeted = true;
                client->next = forwarding->clients;
                forwarding->clients = client;
        }
        forwarding->on_request(forwarding->rmd, client, in->request);
}

static void on_reply(struct forwarding *forwarding, const char *node, const Rm__ForwardReply *in) {
        struct channel *channel = find_channel(forwarding, in->channel);

        if (channel && in->reply && strcmp(channel->node, node) == 0)
                channel->on_reply(channel->userdata, channel->id, in->reply);
}

bool forwarding_on_message(struct forwarding *forwarding, const char *node, const Rm__PeerMessage *message) {
        struct client *client;

        switch (message->body_case) {
        case RM__PEER_MESSAGE__BODY_FORWARD_REQUEST:
                on_request(forwarding, node, message->forward_request);
                return true;
        case RM__PEER_MESSAGE__BODY_FORWARD_REPLY:
                on_reply(forwarding, node, message->forward_reply);
                return true;
        case RM__PEER_MESSAGE__BODY_FORWARD_CLOSE:
                client = find_client(forwarding, node, message->forward_close->channel);
                if (client)
                        drop_client(forwarding, client);
                return true;
        default:
                return false;
        }
}

void forwarding_keep(struct forwarding *forwarding) {
        for (const struct channel *c = forwarding->channels; c; c = c->next)
                cluster_keep(forwarding->rmd->cluster, c->node);
        for (const struct client *c = forwarding->clients; c; c = c->next)
                cluster_keep(forwarding->rmd->cluster, c->node);
}

void forwarding_on_peer(struct forwarding *forwarding, const char *node, bool connected) {
        bool again = !connected;

        while (again) {
                again = false;
                for (struct channel *c = forwarding->channels; c; c = c->next)
                        if (strcmp(c->node, node) == 0) {
                                struct channel *gone = unlink_channel(forwarding, c->id);

                                gone->on_reply(gone->userdata, gone->id, NULL);
                                channel_free(gone);
                                again = true;
                                break;
                        }
        }
        again = !connected;
        while (again) {
                again = false;
                for (struct client *c = forwarding->clients; c; c = c->next)
                        if (strcmp(c->node, node) == 0) {
                                drop_client(forwarding, c);
                                again = true;
                                break;
                        }
        }
}
