#include "daemon/cluster/following.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/unknown.h"
#include "common/util.h"
#include "daemon/cluster/state_cache.h"
#include "daemon/peers/parts.h"
#include "daemon/peers/peer_message.h"
#include "daemon/state/state.h"

/* A follower to whom nothing of what it lacks came for so long asks again; one to whom it came
 * broken, later each time. */
#define STALLED_USEC UINT64_C(30000000)
#define ASK_AGAIN_USEC UINT64_C(1000000)
#define ASK_AGAIN_MAX_USEC UINT64_C(60000000)

struct following {
        struct following_ops ops;
        void *userdata;
        char *cluster;
        char *leader;
        bool voter; /* it keeps the log */
        bool synced;
        bool failed;
        bool reported; /* voter: the leader has said how far it must have come */
        uint64_t must_index; /* and that is this */
        struct state_cache *cache; /* NULL: voter */
        uint64_t log_id; /* that the state is of; 0 = of none */
        struct parts install; /* of a state on its way */
        uint64_t install_log;
        uint64_t install_index;
        uint64_t ask_usec; /* when to ask again; 0: the answer is on its way */
        uint64_t progress_usec; /* when something of it came last */
        unsigned ask_failures;
};

static const Rm__State *state_of(const struct following *f) {
        return f->ops.get_state(f->userdata);
}

static void fail(struct following *f, const struct rm_error *why) {
        f->failed = true;
        f->synced = false;
        f->ops.on_failed(f->userdata, why);
}

/* ---- asking ---- */

static void ask(struct following *f) {
        Rm__Follow follow = RM__FOLLOW__INIT;

        parts_reset(&f->install);
        f->reported = false;
        f->ask_usec = 0;
        f->progress_usec = now_usec();
        follow.index = state_of(f)->index;
        follow.log = f->log_id;
        follow.voter = f->voter;
        follow.number = f->ops.get_number(f->userdata);
        (void) f->ops.send(f->userdata, &PEER_MESSAGE(&follow));
}

/* The data that came is not the data that was requested: following_heartbeat() asks again, so that
 * neither side is busy with a fault that stays. */
static void ask_later(struct following *f, const char *why) {
        uint64_t wait = ASK_AGAIN_USEC << (f->ask_failures < 6 ? f->ask_failures : 6);

        if (wait > ASK_AGAIN_MAX_USEC)
                wait = ASK_AGAIN_MAX_USEC;
        log_warn("the state that node %s sends is of no use: %s; asking for it again in %" PRIu64 " s", f->leader, why,
                 wait / 1000000U);
        parts_reset(&f->install);
        f->synced = false;
        f->ask_failures++;
        f->ask_usec = now_usec() + wait;
}

void following_heartbeat(struct following *f) {
        uint64_t now = now_usec();

        if (!f->leader || f->synced || f->failed)
                return;
        if (f->ask_usec == 0 && now - f->progress_usec > STALLED_USEC)
                ask_later(f, "nothing comes");
        else if (f->ask_usec != 0 && now >= f->ask_usec)
                ask(f);
}

/* Data that was on its way when the state was requested again is passed over. */
static bool asked(const struct following *f) {
        return f->ask_usec == 0 && !f->failed;
}

/* ---- the whole state ---- */

static Rm__State *unpack_state(const struct following *f) {
        Rm__State *state = rm__state__unpack(NULL, f->install.received_bytes, f->install.data);

        if (!state)
                return NULL;
        unknown_drop(&state->base);
        if (strcmp(state->cluster, f->cluster) == 0 && state->index == f->install_index)
                return state;
        rm__state__free_unpacked(state, NULL);
        return NULL;
}

static void take_install(struct following *f) {
        Rm__State *state = unpack_state(f);
        struct rm_error err = { 0 };

        parts_reset(&f->install);
        if (state && state_understands_state(state, &err) < 0) {
                rm__state__free_unpacked(state, NULL);
                (void) error_prefix(&err, "the state that node %s sends", f->leader);
                fail(f, &err);
                return;
        }
        if (!state) {
                ask_later(f, "it is not a state of this cluster");
                return;
        }
        if (f->log_id != 0 && f->install_log != f->log_id)
                log_warn("the leader has another log than the one this node knew: all that was known is replaced");
        f->ops.replace(f->userdata, state);
        f->log_id = f->install_log;
        state_cache_touch(f->cache);
        f->ops.on_installed(f->userdata);
}

static void take_install_part(struct following *f, const Rm__InstallPart *part) {
        bool first = part->offset == 0;
        int r = -EPROTO;

        if (!asked(f) || (!first && f->install.received_bytes == 0))
                return;
        if (first) {
                f->install_log = part->log;
                f->install_index = part->index;
        }
        if (part->log != 0 && part->log == f->install_log && part->index == f->install_index)
                r = parts_add(&f->install, part->total_bytes, part->offset, part->data.data, part->data.len, STATE_MAX_BYTES);
        f->progress_usec = now_usec();
        if (r < 0)
                ask_later(f, r == -EMSGSIZE ? "it is too long" : "a part is missing or does not fit");
        else if (r > 0)
                take_install(f);
}

/* ---- commands ---- */

static void take_append(struct following *f, const Rm__Append *append) {
        Rm__Command nothing = RM__COMMAND__INIT;
        struct rm_error err = { 0 };

        if (!asked(f) || append->index <= state_of(f)->index)
                return;
        if (append->after != state_of(f)->index) {
                ask_later(f, "commands are missing");
                return;
        }
        f->progress_usec = now_usec();
        state_cache_touch(f->cache);
        if (f->ops.apply(f->userdata, append->index, append->command ? append->command : &nothing, &err) < 0) {
                (void) error_prefix(&err, "entry %" PRIu64 " of the log of node %s", append->index, f->leader);
                fail(f, &err);
        }
}

/* ---- that it is all ---- */

static void become_synced(struct following *f) {
        f->synced = true;
        f->ask_failures = 0;
        log_info("following node %s, at entry %" PRIu64, f->leader, state_of(f)->index);
        /* The callback is for modules that wait to act until the state is certain. */
        f->ops.on_installed(f->userdata);
}

void following_applied(struct following *f) {
        f->progress_usec = now_usec();
        if (f->reported && !f->synced && !f->failed && state_of(f)->index >= f->must_index)
                become_synced(f);
}

static void take_followed(struct following *f, const Rm__Followed *followed) {
        if (f->synced || f->failed)
                return;
        if (!f->voter) {
                if (followed->index == state_of(f)->index && followed->log == f->log_id)
                        become_synced(f);
                return;
        }
        if (followed->log != f->log_id) {
                ask_later(f, "it is of another log than the one that this node keeps");
                return;
        }
        f->reported = true;
        f->must_index = followed->index;
        following_applied(f);
}

void following_take(struct following *f, const Rm__PeerMessage *message) {
        if (message->body_case == RM__PEER_MESSAGE__BODY_FOLLOWED)
                take_followed(f, message->followed);
        else if (!f->voter && message->body_case == RM__PEER_MESSAGE__BODY_INSTALL_PART)
                take_install_part(f, message->install_part);
        else if (!f->voter && message->body_case == RM__PEER_MESSAGE__BODY_APPEND)
                take_append(f, message->append);
}

void following_set_leader(struct following *f, const char *leader) {
        free(f->leader);
        f->leader = xstrdup(leader);
        f->synced = false;
        f->reported = false;
        parts_reset(&f->install);
        if (leader && !f->failed)
                ask(f);
}

uint64_t following_log_id(const struct following *f) {
        return f->log_id;
}

bool following_synced(const struct following *f) {
        return f->synced;
}

/* ---- create and destroy ---- */

static const Rm__State *get_cached(void *userdata, uint64_t *ret_log) {
        const struct following *f = userdata;

        *ret_log = f->log_id;
        return state_of(f);
}

static void load_cache(struct following *f, const char *path) {
        Rm__State *state = NULL;
        struct rm_error err = { 0 };
        uint64_t log_id = 0;
        int r;

        r = state_cache_load(path, &state, &log_id);
        if (r == 0)
                r = state_understands_state(state, &err);
        if (r == 0 && strcmp(state->cluster, f->cluster) == 0) {
                f->ops.replace(f->userdata, take_ptr(state));
                f->log_id = log_id;
        } else if (r < 0 && r != -ENOENT) {
                log_warn("%s: the cached state is unusable (%s); asking the leader for all", path, strerror(-r));
        }
        if (state)
                rm__state__free_unpacked(state, NULL);
}

static void open_cache(struct following *f, const struct following_config *config) {
        f->log_id = config->state_log_id;
        if (f->log_id == 0)
                load_cache(f, config->cache_path);
        f->cache = state_cache_create(config->base, config->cache_path, get_cached, f);
        if (config->state_log_id != 0)
                state_cache_touch(f->cache);
}

struct following *following_create(const struct following_config *config, const struct following_ops *ops, void *userdata) {
        struct following *f = xcalloc(1, sizeof(*f));

        f->ops = *ops;
        f->userdata = userdata;
        f->cluster = xstrdup(config->cluster);
        f->voter = config->log_id != 0;
        f->log_id = config->log_id;
        if (!f->voter)
                open_cache(f, config);
        return f;
}

void following_destroy(struct following *f) {
        if (!f)
                return;
        state_cache_destroy(f->cache);
        parts_reset(&f->install);
        free(f->cluster);
        free(f->leader);
        free(f);
}
