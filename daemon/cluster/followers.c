/* The leader's followers. Each has a place in the log. Commands after it, or the whole state where
 * the last commands do not reach back that far, are sent as fast as the connection takes them,
 * never much ahead of that. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The usual one has fall-throughs that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/cluster/leading_internal.h"
#include "daemon/peers/parts.h"
#include "daemon/peers/peer_message.h"

/* Queued to one follower at most, and one part or command beyond it: what a slow link of 100 Mbit/s
 * carries in a tenth of a second, so that a heartbeat behind it is in time. More goes when this has
 * drained. */
#define WINDOW_BYTES ((size_t) 1 << 20)
/* A follower for whom even a whole state was too old when it had come gets the next one later each
 * time. */
#define AGAIN_USEC UINT64_C(1000000)
#define AGAIN_MAX_USEC UINT64_C(60000000)

/* A state, packed once for all followers that need it at the same time. */
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
        bool reported; /* that it has all */
        LIST_ENTRY(follower) entry;
        UT_hash_handle hh;
};

struct followers {
        struct leading *leading;
        struct image *image; /* the last one made, while it is used */
        LIST_HEAD(, follower) list;
        struct follower *by_name; /* the same */
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

        HASH_FIND_STR(fs->by_name, node, follower);
        return follower;
}

static void follower_free(struct followers *fs, struct follower *follower) {
        LIST_REMOVE(follower, entry);
        HASH_DEL(fs->by_name, follower);
        image_release(fs, follower->image);
        free(follower->name);
        free(follower);
}

static int send_to(struct followers *fs, const char *node, const Rm__PeerMessage *message) {
        return fs->leading->transport_ops->send(fs->leading->transport, node, message);
}

static size_t pending_bytes(const struct followers *fs, const struct follower *follower) {
        return fs->leading->transport_ops->pending_bytes(fs->leading->transport, follower->name);
}

/* ---- the whole state ---- */

static struct image *image_get(struct followers *fs) {
        const Rm__State *state = leading_state(fs->leading);
        size_t size_bytes;

        if (fs->image && feed_covers(fs->leading->feed, fs->image->index)) {
                fs->image->users++;
                return fs->image;
        }
        size_bytes = rm__state__get_packed_size(state);
        if (size_bytes > STATE_MAX_BYTES)
                return NULL;
        fs->image = xcalloc(1, sizeof(*fs->image));
        fs->image->users = 1;
        fs->image->index = state->index;
        fs->image->size_bytes = size_bytes;
        fs->image->data = xcalloc(1, size_bytes);
        (void) rm__state__pack(state, fs->image->data);
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
        follower->reported = false;
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
        const struct image *image = follower->image;
        size_t size_bytes = image->size_bytes - follower->sent_bytes;
        Rm__InstallPart part = RM__INSTALL_PART__INIT;
        int r;

        if (size_bytes > PART_BYTES)
                size_bytes = PART_BYTES;
        part.log = fs->leading->log_id;
        part.index = image->index;
        part.total_bytes = image->size_bytes;
        part.offset = follower->sent_bytes;
        part.data.data = image->data + follower->sent_bytes;
        part.data.len = size_bytes;
        r = send_to(fs, follower->name, &PEER_MESSAGE(&part));
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
        Rm__Append append = RM__APPEND__INIT;
        int r;

        append.index = index;
        append.after = follower->index;
        append.command = (Rm__Command *) command;
        r = send_to(fs, follower->name, &PEER_MESSAGE(&append));
        if (r == 0)
                follower->index = index;
        return r;
}

static int send_next(struct followers *fs, struct follower *follower) {
        uint64_t index = 0;
        Rm__Command *command = feed_next(fs->leading->feed, follower->index, &index);
        int r;

        follower->behind = !command;
        if (!command)
                return 0;
        r = send_append(fs, follower, index, command);
        rm__command__free_unpacked(command, NULL);
        return r;
}

static int send_followed(struct followers *fs, const char *node) {
        Rm__Followed followed = RM__FOLLOWED__INIT;

        followed.index = leading_state(fs->leading)->index;
        followed.log = fs->leading->log_id;
        return send_to(fs, node, &PEER_MESSAGE(&followed));
}

/* ---- as fast as it goes ---- */

/* Sends a message, or the beginning of an install. 0: done; -EALREADY: there is nothing to send;
 * -EAGAIN: later; others: it cannot be sent. */
static int send_one(struct followers *fs, struct follower *follower) {
        if (follower->image)
                return send_part(fs, follower);
        if (follower->behind || !feed_covers(fs->leading->feed, follower->index))
                return install_begin(fs, follower);
        if (follower->index != leading_state(fs->leading)->index)
                return send_next(fs, follower);
        follower->installs = 0;
        if (follower->reported)
                return -EALREADY;
        follower->reported = true;
        return send_followed(fs, follower->name);
}

/* A follower that misses one command must begin again: it goes without until it asks again over its
 * next connection. */
static void follower_failed(struct followers *fs, struct follower *follower, int code) {
        cleanup_free char *name = xstrdup(follower->name);

        log_warn("node %s cannot follow: %s", name, strerror(-code));
        follower_free(fs, follower);
        fs->leading->transport_ops->reset(fs->leading->transport, name, "sending failed; follower reset");
}

static void pump(struct followers *fs, struct follower *follower) {
        int r = 0;

        while (r == 0 && pending_bytes(fs, follower) < WINDOW_BYTES)
                r = send_one(fs, follower);
        if (r < 0 && r != -EALREADY && r != -EAGAIN)
                follower_failed(fs, follower, r);
}

/* ---- what happens ---- */

void followers_serve(struct followers *fs, const char *node, const Rm__Follow *follow) {
        struct follower *follower = follower_find(fs, node);
        uint64_t log = fs->leading->log_id;

        if (follow->voter) {
                if (follower)
                        follower_free(fs, follower);
                /* A lost connection is reported by another callback, so the result is not used. */
                (void) send_followed(fs, node);
                return;
        }
        if (!follower) {
                follower = xcalloc(1, sizeof(*follower));
                follower->name = xstrdup(node);
                LIST_INSERT_HEAD(&fs->list, follower, entry);
                HASH_ADD_KEYPTR(hh, fs->by_name, follower->name, strlen(follower->name), follower);
        }
        image_release(fs, take_ptr(follower->image));
        follower->reported = false;
        follower->index = follow->index;
        follower->behind = follow->log != log || follow->index > leading_state(fs->leading)->index;
        pump(fs, follower);
}

void followers_applied(struct followers *fs, uint64_t before, uint64_t index, const Rm__Command *command) {
        struct follower *follower, *next;
        int r;

        for (follower = LIST_FIRST(&fs->list); follower; follower = next) {
                next = LIST_NEXT(follower, entry);
                /* The others come to it in their time. */
                if (follower->image || follower->index != before || !follower->reported ||
                    pending_bytes(fs, follower) >= WINDOW_BYTES)
                        continue;
                r = send_append(fs, follower, index, command);
                if (r < 0) {
                        follower_failed(fs, follower, r);
                        next = LIST_FIRST(&fs->list); /* a follower that has it already is not at `before` any more */
                }
        }
}

void followers_drained(struct followers *fs, const char *node) {
        struct follower *follower = follower_find(fs, node);

        if (follower)
                pump(fs, follower);
}

void followers_heartbeat(struct followers *fs) {
        struct follower *follower, *next;

        for (follower = LIST_FIRST(&fs->list); follower; follower = next) {
                next = LIST_NEXT(follower, entry);
                if (follower->next_install_usec != 0 && !follower->reported)
                        pump(fs, follower);
        }
}

void followers_lost(struct followers *fs, const char *node) {
        struct follower *follower = follower_find(fs, node);

        if (follower)
                follower_free(fs, follower);
}

struct followers *followers_create(struct leading *leading) {
        struct followers *fs = xcalloc(1, sizeof(*fs));

        fs->leading = leading;
        LIST_INIT(&fs->list);
        return fs;
}

void followers_destroy(struct followers *fs) {
        while (!LIST_EMPTY(&fs->list))
                follower_free(fs, LIST_FIRST(&fs->list));
        free(fs);
}
