#include "daemon/mover/exchange.h"

#include <string.h>

#include "common/util.h"
#include "daemon/mover/store_stream.h"
#include "daemon/mover/user_link.h"
#include "daemon/store/directory.h"

#define VERIFIED_BYTES (UINT64_C(1) << 20) /* store_verify() calls at least so often */

void exchange_init(struct exchange *e, struct control *control) {
        *e = (struct exchange) { .control = control, .fd = -1, .start_usec = now_usec() };
        e->chunk = xrealloc(NULL, EXCHANGE_CHUNK_BYTES);
}

void exchange_finish(struct exchange *e) {
        seal_destroy(e->seal);
        rm__export_head__free_unpacked(e->head, NULL);
        cleanup_close_fd(&e->fd);
        free(e->chunk);
}

int exchange_prepare(struct exchange *e, Rm__MoverCommand__BodyCase body, struct rm_error *err) {
        bool export = body == RM__MOVER_COMMAND__BODY_EXPORT_CHECKPOINT;
        int r = control_wait_setup(e->control, body, err);

        if (r < 0)
                return r;
        e->setup = export ? e->control->setup->export_checkpoint : e->control->setup->import_checkpoint;
        e->pace.bytes_per_sec = e->setup->bytes_per_sec;
        return e->setup->store ? 0 : error_set(err, -EPROTO, "no store, from rmd");
}

int exchange_meet(struct exchange *e, struct rm_error *err) {
        cleanup_close int listen_fd = -1;
        int r = user_link_listen(e->setup->socket, e->setup->client_uid, &listen_fd, err);

        if (r < 0)
                return r;
        control_send_listening(e->control, 0);
        return user_link_accept(e->control, listen_fd, e->setup->client_uid, &e->fd, err);
}

/* ---- the seal ---- */

static int on_write(void *ctx, const void *data, size_t size_bytes, struct rm_error *err) {
        struct exchange *e = ctx;

        return user_link_write(e->control, e->fd, data, size_bytes, err);
}

static int on_read(void *ctx, void *data, size_t size_bytes, size_t *ret_bytes, struct rm_error *err) {
        struct exchange *e = ctx;

        return user_link_read(e->control, e->fd, data, size_bytes, ret_bytes, err);
}

static int key_add(struct seal_keys *keys, const char *file, struct rm_error *err) {
        int r = *file ? tls_key_read(file, keys->keys[keys->n], err) : 0;

        keys->n += r == 0 && *file;
        return r;
}

static int keys_read(const Rm__MoverExchange *setup, struct seal_keys *ret, struct rm_error *err) {
        int r;

        *ret = (struct seal_keys) { .cluster = setup->store->cluster, .any_cluster = *setup->key_file != 0 };
        if (*setup->key_file)
                return key_add(ret, setup->key_file, err);
        r = key_add(ret, setup->store->key_file, err);
        return r < 0 ? r : key_add(ret, setup->store->second_key_file, err);
}

static int seal_begin(struct exchange *e,
                      int (*begin)(const struct seal_keys *, const struct seal_io *, struct seal **, struct rm_error *),
                      struct rm_error *err) {
        const struct seal_io io = { on_write, on_read, e };
        struct seal_keys keys;
        int r = keys_read(e->setup, &keys, err);

        if (r == 0)
                r = begin(&keys, &io, &e->seal, err);
        explicit_bzero(&keys, sizeof(keys));
        return r;
}

int exchange_seal_create(struct exchange *e, struct rm_error *err) {
        return seal_begin(e, seal_create, err);
}

int exchange_seal_open(struct exchange *e, struct rm_error *err) {
        return seal_begin(e, seal_open, err);
}

int exchange_store_open(const struct exchange *e, int32_t capsule, struct store **ret, struct rm_error *err) {
        cleanup_free char *dir = directory_of_capsule(e->setup->store->dir, capsule);
        Rm__MoverStore where = *e->setup->store;

        where.dir = dir;
        where.job = e->head->job->id;
        where.uid = e->head->job->spec->uid;
        where.capsule = capsule;
        return store_stream_open(&where, ret, err);
}

/* ---- progress ---- */

/* While something is read here, nothing else tells. One that has only sent all is not gone. */
static int check_program(const struct exchange *e, struct rm_error *err) {
        struct pollfd p = { .fd = e->fd };

        return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR)) ? error_set(err, -EPIPE, "the program has gone") : 0;
}

int exchange_step(struct exchange *e, uint64_t bytes, const char *what, struct rm_error *err) {
        uint64_t wait_usec;
        int r = control_check(e->control, err);

        if (r == 0)
                r = check_program(e, err);
        e->done_bytes += bytes;
        control_send_progress(e->control, e->done_bytes, 0, now_usec() - e->start_usec, what);
        while (r == 0 && (wait_usec = pace_wait_usec(&e->pace, e->done_bytes, now_usec())) > 0) {
                struct pollfd control_fd;

                r = control_poll(e->control, &control_fd, 1, (int) (wait_usec / 1000 + 1), err);
                r = r < 0 ? r : 0;
        }
        return r;
}

int exchange_on_verified(void *ctx, const char *what, struct rm_error *err) {
        return exchange_step(ctx, VERIFIED_BYTES, what, err);
}
