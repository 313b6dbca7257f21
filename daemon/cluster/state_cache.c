#include "daemon/cluster/state_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/frame.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/util.h"
#include "daemon/state/state.h"
#include "proto/peer.pb-c.h"

#define CACHE_MAGIC 0x524d4632U
#define CACHE_MAX_BYTES ((uint32_t) STATE_MAX_BYTES + 64U) /* and the log's number */
#define CACHE_DELAY_USEC 2000000

struct state_cache {
        struct event *timer;
        char *path;
        const Rm__State *(*get)(void *userdata, uint64_t *ret_log);
        void *userdata;
        bool dirty;
        bool failed; /* and said so */
};

static void cache_write(struct state_cache *cache) {
        Rm__Install install = RM__INSTALL__INIT;
        cleanup_free uint8_t *data = NULL;
        size_t size_bytes = 0;
        int r;

        cache->dirty = false;
        install.state = (Rm__State *) cache->get(cache->userdata, &install.log);
        if (install.log == 0)
                return;
        data = frame_pack(CACHE_MAGIC, &install.base, &size_bytes);
        /* The copy is not forced to the disk: after a power failure an old copy, or none, does as
         * well. */
        r = write_file_atomic(cache->path, data, size_bytes, 0600, false);
        if (r < 0 && !cache->failed)
                log_warn("%s: cannot keep a copy of the state: %s", cache->path, strerror(-r));
        cache->failed = r < 0;
}

static void on_timer(evutil_socket_t fd, short what, void *userdata) {
        cache_write(userdata);
}

struct state_cache *state_cache_create(struct event_base *base, const char *path,
                                       const Rm__State *(*get)(void *userdata, uint64_t *ret_log), void *userdata) {
        struct state_cache *cache = xcalloc(1, sizeof(*cache));

        cache->path = xstrdup(path);
        cache->get = get;
        cache->userdata = userdata;
        cache->timer = evtimer_new(base, on_timer, cache);
        if (!cache->timer)
                abort();
        return cache;
}

void state_cache_destroy(struct state_cache *cache) {
        if (!cache)
                return;
        if (cache->dirty)
                cache_write(cache);
        event_free(cache->timer);
        free(cache->path);
        free(cache);
}

void state_cache_touch(struct state_cache *cache) {
        if (cache->dirty)
                return;
        cache->dirty = true;
        timer_arm(cache->timer, CACHE_DELAY_USEC);
}

int state_cache_load(const char *path, Rm__State **ret, uint64_t *ret_log) {
        cleanup_free char *data = NULL;
        size_t size_bytes = 0;
        uint32_t payload_bytes = 0;
        Rm__Install *install;
        int r = read_file(path, CACHE_MAX_BYTES, &data, &size_bytes);

        if (r < 0)
                return r;
        if (size_bytes < FRAME_HEADER_BYTES ||
            frame_header_read((const uint8_t *) data, CACHE_MAGIC, CACHE_MAX_BYTES, &payload_bytes) < 0 ||
            payload_bytes != size_bytes - FRAME_HEADER_BYTES)
                return -EBADMSG;
        install = rm__install__unpack(NULL, payload_bytes, (const uint8_t *) data + FRAME_HEADER_BYTES);
        if (!install || !install->state || install->log == 0) {
                if (install)
                        rm__install__free_unpacked(install, NULL);
                return -EBADMSG;
        }
        *ret = take_ptr(install->state);
        *ret_log = install->log;
        rm__install__free_unpacked(install, NULL);
        return 0;
}
