/* The rm-movers of checkpoints: those that make them into a store of their node (save), send them
 * to where a capsule comes back, or to a node that is to have a copy (load), and read them again
 * (verify). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "tests/sim/fakemover_internal.h"
#include "tests/sim/fakestore.h"
#include "tests/sim/files.h"

#define STORE_MAX_USEC 300000U
#define VERIFY_MAX_USEC 1500000U
#define SYNC_SCAN_USEC 10000U
#define FAIL_STORE 10U /* of a thousand */

static struct disk *disk_of(const struct mover *mover) {
        return host_part(mover->host, HOST_DISK);
}

static const char *dir_of(const struct mover *mover) {
        return mover->store.dir;
}

/* ---- what it asks of the disk ---- */

struct synced {
        struct movers *movers;
        uint64_t number;
        void (*fn)(struct mover *mover);
};

static void on_synced(void *userdata) {
        struct synced *synced = userdata;
        struct mover *mover = fakemover_find(synced->movers, synced->number);

        if (mover && mover->stage == STAGE_STORE)
                synced->fn(mover);
        free(synced);
}

static void sync_store(struct mover *mover, void (*fn)(struct mover *mover)) {
        struct synced *synced = xcalloc(1, sizeof(*synced));

        *synced = (struct synced) { mover->movers, mover->number, fn };
        files_sync(mover->host, on_synced, free, synced);
}

/* Removes files that no manifest needs, unless another mover reads the store. */
static void sweep(const struct mover *mover) {
        const struct mover *other;

        LIST_FOREACH (other, &mover->movers->list, entry)
                if (other != mover && other->host == mover->host && other->role == ROLE_LOAD && other->store.dir &&
                    strcmp(other->store.dir, mover->store.dir) == 0)
                        return;
        fakestore_sweep(mover->host, dir_of(mover));
}

static void report(struct mover *mover, Rm__MoverEvent__BodyCase kind, void *body) {
        Rm__MoverEvent event = RM__MOVER_EVENT__INIT;

        event.body_case = kind;
        event.ready = body; /* as any of them */
        fakemover_report(mover, &event);
}

static void end(struct mover *mover) {
        mover->stage = STAGE_RECEIVED;
        fakemover_report(mover, NULL);
}

static bool has_disk(struct mover *mover, bool writes) {
        if (disk_broken(disk_of(mover)))
                fakemover_fail(mover, -EIO, "the disk has errors", false);
        else if (writes && disk_full(disk_of(mover)))
                fakemover_fail(mover, -ENOSPC, "the disk is full", false);
        return mover->stage != STAGE_FAILED;
}

/* ---- save ---- */

static void save_begin(struct mover *mover) {
        Rm__MoverReady ready = RM__MOVER_READY__INIT;

        if (!has_disk(mover, false))
                return;
        sweep(mover);
        mover->stage = STAGE_READY;
        report(mover, RM__MOVER_EVENT__BODY_READY, &ready);
}

static bool is_kept(const Rm__MoverPrecopy *precopy, uint64_t checkpoint) {
        for (size_t i = 0; i < precopy->n_keep; i++)
                if (precopy->keep[i] == checkpoint)
                        return true;
        return false;
}

static void save_precopy(struct mover *mover, const Rm__MoverPrecopy *precopy) {
        size_t n;
        cleanup_free uint64_t *numbers = fakestore_list(mover->host, dir_of(mover), &n);

        if (mover->stage != STAGE_READY || mover->store.under_way) {
                fakemover_fail(mover, -EPROTO, "another checkpoint is under way", false);
                return;
        }
        for (size_t i = 0; i < n && precopy->n_keep > 0; i++)
                if (!is_kept(precopy, numbers[i]))
                        fakestore_remove(mover->host, dir_of(mover), numbers[i]);
        sweep(mover);
        mover->store.under_way = true;
        mover->store.checkpoint = precopy->checkpoint;
        mover->pages = precopy->pages && !fakemover_chance(mover, UNTRACKED);
        mover->rounds = 1 + (unsigned) fakemover_draw(mover, ROUNDS_MAX);
        fakemover_step_after(mover, fakemover_draw(mover, ROUND_MAX_USEC));
}

static void save_round(struct mover *mover) {
        Rm__MoverProgress progress = RM__MOVER_PROGRESS__INIT;

        if (fakemover_chance(mover, FAIL_PRECOPY)) {
                fakemover_fail(mover, -EIO, "it has failed", false);
        } else if (--mover->rounds == 0) {
                fakemover_report_figures(mover, RM__MOVER_EVENT__BODY_PRECOPIED);
        } else {
                report(mover, RM__MOVER_EVENT__BODY_PROGRESS, &progress);
                fakemover_step_after(mover, fakemover_draw(mover, ROUND_MAX_USEC));
        }
}

static void save_captured(struct mover *mover) {
        Rm__MoverCaptured captured = RM__MOVER_CAPTURED__INIT;

        if (fakemover_chance(mover, FAIL_TRANSFER) || !mover->saved) {
                fakemover_fail(mover, -EIO, "it has failed", false);
                return;
        }
        mover->stage = STAGE_STORE;
        report(mover, RM__MOVER_EVENT__BODY_CAPTURED, &captured);
        fakemover_step_after(mover, fakemover_draw(mover, STORE_MAX_USEC));
}

static void save_stored(struct mover *mover) {
        Rm__MoverStored stored = RM__MOVER_STORED__INIT;

        if (!has_disk(mover, false))
                return;
        stored.raw_bytes = 1000000;
        stored.stored_bytes = 100000;
        stored.store_usec = 1000;
        stored.checkpoint = mover->store.checkpoint;
        mover->store.under_way = false;
        mover->stage = STAGE_READY;
        free(take_ptr(mover->saved));
        report(mover, RM__MOVER_EVENT__BODY_STORED, &stored);
        if (mover->store.released)
                end(mover);
}

static void save_manifest(struct mover *mover) {
        if (!has_disk(mover, true))
                return;
        fakestore_put_manifest(mover->host, dir_of(mover), mover->saved);
        sync_store(mover, save_stored);
}

static void save_store(struct mover *mover) {
        if (!has_disk(mover, true))
                return;
        if (fakemover_chance(mover, FAIL_STORE)) {
                fakemover_fail(mover, -EIO, "it has failed", false);
                return;
        }
        mover->saved->checkpoint = mover->store.checkpoint;
        fakestore_put_pack(mover->host, dir_of(mover), mover->store.checkpoint);
        sync_store(mover, save_manifest);
}

/* The mover is released, but still stores the captured data. */
static void save_release(struct mover *mover) {
        Rm__MoverReleased released = RM__MOVER_RELEASED__INIT;

        if (mover->store.under_way && mover->stage != STAGE_STORE) {
                fakemover_fail(mover, -ECANCELED, "released before all was captured", false);
                return;
        }
        mover->store.released = true;
        report(mover, RM__MOVER_EVENT__BODY_RELEASED, &released);
        if (!mover->store.under_way)
                end(mover);
}

/* ---- load ---- */

static void load_begin(struct mover *mover) {
        static uint8_t saved_state[] = { 1 };
        Rm__MoverLoading loading = RM__MOVER_LOADING__INIT;
        struct saved saved;
        int r;

        if (!has_disk(mover, false))
                return;
        r = fakestore_load(mover->host, dir_of(mover), mover->store.checkpoint, false, &saved);
        if (r < 0) {
                fakemover_fail(mover, r, r == -ENOENT ? "no such checkpoint" : "it is damaged", false);
                return;
        }
        mover->saved = xcalloc(1, sizeof(*mover->saved));
        *mover->saved = saved;
        loading.saved_state = (ProtobufCBinaryData) { sizeof(saved_state), saved_state };
        report(mover, RM__MOVER_EVENT__BODY_LOADING, &loading);
        mover->stage = STAGE_CONNECT;
        fakemover_step_after(mover, fakemover_draw(mover, MESSAGE_MAX_USEC));
}

static void load_connect(struct mover *mover) {
        struct mover *peer = fakemover_peer(mover);

        if (!fakemover_has_peer(mover, peer, SILENCE_MAX_USEC))
                return;
        mover->stage = STAGE_SEND;
        peer->stage = STAGE_READY;
        peer->since_usec = mover->since_usec;
        fakemover_step_after(mover, fakemover_draw(mover, TRANSFER_MAX_USEC));
}

/* NULL: it does not want it. */
static const char *path_for(const struct mover *mover, const char *role) {
        for (size_t i = 0; i < mover->n_files; i++)
                if (strcmp(mover->files[i].role, role) == 0)
                        return mover->files[i].path;
        return NULL;
}

/* Sends the first files of the checkpoint, or the others. False: there are no more. */
static bool send_files(struct mover *mover, struct mover *peer, bool first) {
        size_t n, n_data;
        char **names = fakestore_files(mover->host, dir_of(mover), mover->store.checkpoint, &n);
        bool good = true;

        for (size_t i = first ? 0 : n / 2; i < (first ? n / 2 : n); i++) {
                cleanup_free char *from = xasprintf("%s/%s", dir_of(mover), names[i]);
                const char *to = path_for(peer, names[i]);
                const void *data = files_read(mover->host, from, false, &n_data);
                cleanup_free uint8_t *copy = NULL;

                if (names_have(mover->have, mover->n_have, names[i]))
                        continue;
                good = good && data && to;
                if (!good)
                        continue;
                copy = xcalloc(1, n_data + 1);
                memcpy(copy, data, n_data);
                files_write(peer->host, to, copy, n_data);
        }
        files_list_free(names, n);
        return good;
}

static void load_send(struct mover *mover) {
        struct mover *peer = fakemover_peer(mover);

        if (!fakemover_has_peer(mover, peer, SILENCE_MAX_USEC))
                return;
        if (fakemover_chance(mover, FAIL_TRANSFER) || (mover->store.files_only && !send_files(mover, peer, true))) {
                fakemover_fail(mover, -EIO, "it has failed", false);
                return;
        }
        mover->stage = STAGE_SENT;
        fakemover_report_figures(mover, RM__MOVER_EVENT__BODY_SENT);
        fakemover_step_after(mover, fakemover_draw(mover, MESSAGE_MAX_USEC));
}

static void received(struct mover *peer) {
        peer->stage = STAGE_RECEIVED;
        fakemover_report_figures(peer, RM__MOVER_EVENT__BODY_RECEIVED);
        fakemover_report(peer, NULL);
}

static void fail_both(struct mover *mover, struct mover *peer, int code, const char *text) {
        fakemover_fail(peer, code, text, false);
        fakemover_fail(mover, code, text, true);
}

static void load_arrives(struct mover *mover, struct mover *peer) {
        if (fakemover_chance(mover, FAIL_VERIFY)) {
                fail_both(mover, peer, -EBADMSG, "a checksum is wrong");
        } else if (!mover->store.files_only) {
                peer->saved = xcalloc(1, sizeof(*peer->saved));
                *peer->saved = *mover->saved;
                received(peer);
        } else if (disk_broken(disk_of(peer)) || disk_full(disk_of(peer))) {
                fail_both(mover, peer, -ENOSPC, "the disk takes nothing");
        } else if (!send_files(mover, peer, false)) {
                fakemover_fail(mover, -EIO, "it has failed", false);
        } else {
                peer->stage = STAGE_STORE;
                sync_store(peer, received);
        }
}

static void load_sent(struct mover *mover) {
        struct mover *peer = fakemover_peer(mover);

        if (!fakemover_has_peer(mover, peer, SILENCE_MAX_USEC))
                return;
        if (peer->stage == STAGE_READY)
                load_arrives(mover, peer);
        if (peer->stage == STAGE_RECEIVED) {
                mover->stage = STAGE_RECEIVED;
                fakemover_report_figures(mover, RM__MOVER_EVENT__BODY_ACKNOWLEDGED);
                fakemover_report(mover, NULL);
        } else if (mover->stage != STAGE_FAILED) {
                fakemover_step_after(mover, SYNC_SCAN_USEC);
        }
}

/* ---- verify ---- */

static void verify_begin(struct mover *mover) {
        if (!has_disk(mover, false))
                return;
        sweep(mover);
        mover->store.numbers = fakestore_list(mover->host, dir_of(mover), &mover->store.n_numbers);
        mover->stage = STAGE_STORE;
        fakemover_step_after(mover, fakemover_draw(mover, VERIFY_MAX_USEC));
}

static void verify_end(struct mover *mover) {
        const size_t n = mover->store.n_numbers;
        cleanup_free Rm__MoverVerdict *verdicts = xcalloc(n + 1, sizeof(*verdicts));
        cleanup_free Rm__MoverVerdict **list = xcalloc(n + 1, sizeof(*list));
        Rm__MoverVerified verified = RM__MOVER_VERIFIED__INIT;

        if (!has_disk(mover, false))
                return;
        verified.verdicts = list;
        for (size_t i = 0; i < n; i++) {
                Rm__MoverVerdict *verdict = &verdicts[verified.n_verdicts];
                int r = fakestore_load(mover->host, dir_of(mover), mover->store.numbers[i], false, NULL);

                if (r == -ENOENT)
                        continue; /* it went meanwhile */
                rm__mover_verdict__init(verdict);
                verdict->checkpoint = mover->store.numbers[i];
                verdict->code = r;
                verdict->text = (char *) (r < 0 ? "it is damaged" : "");
                list[verified.n_verdicts++] = verdict;
                if (r < 0)
                        fakestore_remove(mover->host, dir_of(mover), mover->store.numbers[i]);
        }
        sweep(mover);
        report(mover, RM__MOVER_EVENT__BODY_VERIFIED, &verified);
        end(mover);
}

/* ---- all of them ---- */

void fakesaver_step(struct mover *mover) {
        static void (*const steps[][STAGE_FAILED])(struct mover *) = {
                [ROLE_SAVE] = { [STAGE_BEGIN] = save_begin,
                                [STAGE_READY] = save_round,
                                [STAGE_SEND] = save_captured,
                                [STAGE_STORE] = save_store },
                [ROLE_LOAD] = { [STAGE_BEGIN] = load_begin,
                                [STAGE_CONNECT] = load_connect,
                                [STAGE_SEND] = load_send,
                                [STAGE_SENT] = load_sent },
                [ROLE_VERIFY] = { [STAGE_BEGIN] = verify_begin, [STAGE_STORE] = verify_end },
        };

        if (steps[mover->role][mover->stage])
                steps[mover->role][mover->stage](mover);
}

static void set_store(struct mover *mover, const Rm__MoverStore *store) {
        mover->store.dir = xstrdup(store->dir);
}

static void load_take(struct mover *mover, const Rm__MoverLoad *load) {
        set_store(mover, load->store);
        mover->store.checkpoint = load->checkpoint;
        mover->store.files_only = load->files_only;
        mover->have = xcalloc(load->n_have + 1, sizeof(*mover->have));
        for (; mover->n_have < load->n_have; mover->n_have++)
                mover->have[mover->n_have] = xstrdup(load->have[mover->n_have]);
        fakemover_take(mover, &load->token, "");
}

bool fakesaver_command(struct mover *mover, const Rm__MoverCommand *command) {
        if (mover->role == ROLE_LOAD && command->body_case == RM__MOVER_COMMAND__BODY_LOAD) {
                load_take(mover, command->load);
                return true;
        }
        if (mover->role == ROLE_VERIFY && command->body_case == RM__MOVER_COMMAND__BODY_VERIFY) {
                set_store(mover, command->verify->store);
                fakemover_step_after(mover, fakemover_draw(mover, START_MAX_USEC));
                return true;
        }
        if (mover->role != ROLE_SAVE)
                return false;
        switch (command->body_case) {
        case RM__MOVER_COMMAND__BODY_SAVE:
                set_store(mover, command->save->store);
                mover->dir = xstrdup(command->save->images_dir);
                fakemover_step_after(mover, fakemover_draw(mover, START_MAX_USEC));
                return true;
        case RM__MOVER_COMMAND__BODY_PRECOPY:
                save_precopy(mover, command->precopy);
                return true;
        case RM__MOVER_COMMAND__BODY_RELEASE:
                save_release(mover);
                return true;
        default:
                return false; /* START and DUMP_DONE are as for a move */
        }
}

void fakesaver_receive(struct mover *mover, const Rm__MoverReceive *receive) {
        mover->files = xcalloc(receive->n_files + 1, sizeof(*mover->files));
        for (; mover->n_files < receive->n_files; mover->n_files++)
                mover->files[mover->n_files] = (struct arriving) { xstrdup(receive->files[mover->n_files]->role),
                                                                   xstrdup(receive->files[mover->n_files]->path) };
}

void fakesaver_finish(struct mover *mover) {
        for (size_t i = 0; i < mover->n_files; i++) {
                free(mover->files[i].role);
                free(mover->files[i].path);
        }
        for (size_t i = 0; i < mover->n_have; i++)
                free(mover->have[i]);
        free(mover->files);
        free(mover->have);
        free(mover->saved);
        free(mover->store.dir);
        free(mover->store.numbers);
}
