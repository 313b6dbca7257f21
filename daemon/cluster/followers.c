/* At the leader: those who follow. Each has a place in the log. What comes after it, or the whole state where the last commands do not reach
 * back that far, is sent as fast as the connection takes it, never much ahead of that. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/cluster/cluster_internal.h"
#include "daemon/cluster/parts.h"

#define FEED_ENTRIES 2048U
#define FEED_BYTES ((size_t) 4 << 20)
/* Queued to one follower at most, and one part or command beyond it: what a slow link of 100 Mbit/s carries in a tenth of a second, so that a
 * heartbeat behind it is in time. More goes when this has drained. */
#define WINDOW_BYTES ((size_t) 1 << 20)
/* A follower for whom even a whole state was too old when it had come gets the next one later each time. */
#define AGAIN_USEC UINT64_C(1000000)
#define AGAIN_MAX_USEC UINT64_C(60000000)

/* A state, packed once for all who need it at the same time. */
struct image {
        uint64_t index;
        uint8_t *data;
        size_t size_bytes;
        unsigned users;
};

struct follower {
        char *name;
        uint64_t index; /* it has, or was sent, all up to and with this one */
        struct image *image; /* it is being sent this; NULL: commands */
        size_t sent_bytes; /* of the image */
        unsigned installs;
        uint64_t next_install_usec;
        bool behind; /* what it has is of no use: the whole state is next */
        bool told; /* that it has all */
        LIST_ENTRY(follower) entry;
};

struct followers {
        struct cluster *cluster;
        struct feed *feed;
        struct image *image; /* the last one made, while it is used */
        LIST_HEAD(, follower) list;
};

static void image_release(struct followers *fs, struct image *image) {
        if (!image || --image->users > 0)
                return;
        if (fs->image == image)
                fs->image = NULL;
        free(image->data);
        free(image);
}

static struct follower *follower_find(const struct followers *fs, const char *node) {
        struct follower *follower;

        LIST_FOREACH (follower, &fs->list, entry)
                if (strcmp(follower->name, node) == 0)
                        return follower;
        return NULL;
}

static void follower_free(struct followers *fs, struct follower *follower) {
        LIST_REMOVE(follower, entry);
        image_release(fs, follower->image);
        free(follower->name);
        free(follower);
}

/* ---- the whole state ---- */

static struct image *image_get(struct followers *fs) {
        const struct cluster *c = fs->cluster;
        size_t size_bytes;

        if (fs->image && feed_covers(fs->feed, fs->image->index)) {
                fs->image->users++;
                return fs->image;
        }
        size_bytes = rm__state__get_packed_size(c->state);
        if (size_bytes > STATE_MAX_BYTES)
                return NULL;
        fs->image = xcalloc(1, sizeof(*fs->image));
        fs->image->users = 1;
        fs->image->index = c->state->index;
        fs->image->size_bytes = size_bytes;
        fs->image->data = xcalloc(1, size_bytes);
        (void) rm__state__pack(c->state, fs->image->data);
        return fs->image;
}

static uint64_t install_wait_usec(unsigned installs) {
        uint64_t wait = installs > 1 ? AGAIN_USEC << (installs < 8 ? installs - 2 : 6) : 0;

        return wait < AGAIN_MAX_USEC ? wait : AGAIN_MAX_USEC;
}

/* 0: there is something to send now. */
static int install_begin(struct followers *fs, struct follower *follower) {
        uint64_t now = now_usec();

        if (now < follower->next_install_usec)
                return -EAGAIN;
        follower->installs++;
        follower->next_install_usec = now + install_wait_usec(follower->installs + 1);
        follower->image = image_get(fs);
        follower->sent_bytes = 0;
        follower->told = false;
        if (!follower->image) {
                log_error("node %s cannot follow: the state is over %zu bytes; it shrinks as ended jobs are forgotten ([job] keep)",
                          follower->name, STATE_MAX_BYTES);
                follower->next_install_usec = now + AGAIN_MAX_USEC;
                return -EAGAIN;
        }
        follower->behind = false;
        if (follower->installs > 1)
                log_warn("node %s missed too much while the state was sent to it: once more, %zu bytes", follower->name,
                         follower->image->size_bytes);
        return 0;
}

static int send_part(struct followers *fs, struct follower *follower) {
        struct cluster *c = fs->cluster;
        const struct image *image = follower->image;
        size_t size_bytes = image->size_bytes - follower->sent_bytes;
        Rm__PeerMessage message = RM__PEER_MESSAGE__INIT;
        Rm__InstallPart part = RM__INSTALL_PART__INIT;
        int r;

        if (size_bytes > PART_BYTES)
                size_bytes = PART_BYTES;
        part.log = raftlog_id(c->log);
        part.index = image->index;
        part.total_bytes = image->size_bytes;
        part.offset = follower->sent_bytes;
        part.data.data = image->data + follower->sent_bytes;
        part.data.len = size_bytes;
        message.body_case = RM__PEER_MESSAGE__BODY_INSTALL_PART;
        message.install_part = &part;
        r = peers_send(c->peers, follower->name, &message);
        if (r < 0)
                return r;
        follower->sent_bytes += size_bytes;
        if (follower->sent_bytes == image->size_bytes) {
                follower->index = image->index;
                image_release(fs, take_ptr(follower->image));
        }
        return 0;
}

/* ---- commands ---- */

static int send_append(struct followers *fs, struct follower *follower, uint64_t index, const Rm__Command *command) {
        Rm__PeerMessage message = RM__PEER_MESSAGE__INIT;
        Rm__Append append = RM__APPEND__INIT;
        int r;

        append.index = index;
        append.after = follower->index;
        append.command = (Rm__Command *) command;
        message.body_case = RM__PEER_MESSAGE__BODY_APPEND;
        message.append = &append;
        r = peers_send(fs->cluster->peers, follower->name, &message);
        if (r == 0)
                follower->index = index;
        return r;
}

static int send_next(struct followers *fs, struct follower *follower) {
        uint64_t index = 0;
        Rm__Command *command = feed_next(fs->feed, follower->index, &index);
        int r;

        follower->behind = !command;
        if (!command)
                return 0;
        r = send_append(fs, follower, index, command);
        rm__command__free_unpacked(command, NULL);
        return r;
}

static int send_followed(struct followers *fs, struct follower *follower) {
        struct cluster *c = fs->cluster;
        Rm__PeerMessage message = RM__PEER_MESSAGE__INIT;
        Rm__Followed followed = RM__FOLLOWED__INIT;

        followed.index = c->state->index;
        followed.log = raftlog_id(c->log);
        message.body_case = RM__PEER_MESSAGE__BODY_FOLLOWED;
        message.followed = &followed;
        follower->told = true;
        return peers_send(c->peers, follower->name, &message);
}

/* ---- as fast as it goes ---- */

/* One message, or the beginning of an install. 0: done; -EALREADY: there is nothing to send; -EAGAIN: later; others: it cannot be sent. */
static int send_one(struct followers *fs, struct follower *follower) {
        if (follower->image)
                return send_part(fs, follower);
        if (follower->behind || !feed_covers(fs->feed, follower->index))
                return install_begin(fs, follower);
        if (follower->index != fs->cluster->state->index)
                return send_next(fs, follower);
        follower->installs = 0;
        return follower->told ? -EALREADY : send_followed(fs, follower);
}

/* A follower that misses one command must begin anew: it goes without until it asks again over its next connection. */
static void follower_failed(struct followers *fs, struct follower *follower, int code) {
        cleanup_free char *name = xstrdup(follower->name);

        log_warn("node %s cannot follow: %s", name, strerror(-code));
        follower_free(fs, follower);
        peers_reset(fs->cluster->peers, name, "sending failed; follower reset");
}

static void pump(struct followers *fs, struct follower *follower) {
        int r = 0;

        while (r == 0 && peers_pending_bytes(fs->cluster->peers, follower->name) < WINDOW_BYTES)
                r = send_one(fs, follower);
        if (r < 0 && r != -EALREADY && r != -EAGAIN)
                follower_failed(fs, follower, r);
}

/* ---- what happens ---- */

void followers_serve(struct followers *fs, const char *node, const Rm__Follow *follow) {
        struct follower *follower = follower_find(fs, node);
        uint64_t log = raftlog_id(fs->cluster->log);

        if (!follower) {
                follower = xcalloc(1, sizeof(*follower));
                follower->name = xstrdup(node);
                LIST_INSERT_HEAD(&fs->list, follower, entry);
        }
        image_release(fs, take_ptr(follower->image));
        follower->told = false;
        follower->index = follow->index;
        follower->behind = follow->log != log || follow->index > fs->cluster->state->index;
        pump(fs, follower);
}

void followers_applied(struct followers *fs, uint64_t before, uint64_t index, const Rm__Command *command) {
        struct follower *follower, *next;
        int r;

        feed_push(fs->feed, index, command);
        if (fs->cluster->replaying)
                return;
        for (follower = LIST_FIRST(&fs->list); follower; follower = next) {
                next = LIST_NEXT(follower, entry);
                /* The others come to it in their time. */
                if (follower->image || follower->index != before || !follower->told ||
                    peers_pending_bytes(fs->cluster->peers, follower->name) >= WINDOW_BYTES)
                        continue;
                r = send_append(fs, follower, index, command);
                if (r < 0) {
                        follower_failed(fs, follower, r);
                        next = LIST_FIRST(&fs->list); /* who has it already is not at `before` any more */
                }
        }
}

void followers_restored(struct followers *fs, uint64_t index) {
        feed_reset(fs->feed, index);
}

void followers_drained(struct followers *fs, const char *node) {
        struct follower *follower = follower_find(fs, node);

        if (follower)
                pump(fs, follower);
}

void followers_beat(struct followers *fs) {
        struct follower *follower, *next;

        for (follower = LIST_FIRST(&fs->list); follower; follower = next) {
                next = LIST_NEXT(follower, entry);
                if (follower->next_install_usec != 0 && !follower->told)
                        pump(fs, follower);
        }
}

void followers_lost(struct followers *fs, const char *node) {
        struct follower *follower = follower_find(fs, node);

        if (follower)
                follower_free(fs, follower);
}

struct followers *followers_create(struct cluster *c) {
        struct followers *fs = xcalloc(1, sizeof(*fs));

        fs->cluster = c;
        fs->feed = feed_create(FEED_ENTRIES, FEED_BYTES);
        LIST_INIT(&fs->list);
        return fs;
}

void followers_destroy(struct followers *fs) {
        if (!fs)
                return;
        while (!LIST_EMPTY(&fs->list))
                follower_free(fs, LIST_FIRST(&fs->list));
        feed_destroy(fs->feed);
        free(fs);
}
