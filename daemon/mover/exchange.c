#include "daemon/mover/exchange.h"

#include <string.h>

#include "common/util.h"
#include "daemon/mover/user_link.h"
#include "daemon/wire/tls.h"

#define VERIFIED_BYTES (UINT64_C(1) << 20) /* store_verify() calls at least so often */

_Static_assert(EXPORT_KEY_BYTES == TLS_KEY_BYTES, "keys of one size");

void exchange_init(struct exchange *e, struct control *control) {
        *e = (struct exchange) { .control = control, .fd = -1, .start_usec = now_usec() };
        e->chunk = xrealloc(NULL, EXCHANGE_CHUNK_BYTES);
}

void exchange_finish(struct exchange *e) {
        cleanup_close_fd(&e->fd);
        free(e->chunk);
}

int exchange_keys(const Rm__MoverStore *store, struct export_keys *ret, struct rm_error *err) {
        int r;

        memset(ret, 0, sizeof(*ret));
        r = tls_export_key(store->cluster, store->key_file, ret->key, err);
        ret->has_second = r == 0 && *store->second_key_file;
        if (ret->has_second)
                r = tls_export_key(store->cluster, store->second_key_file, ret->second, err);
        return r;
}

int exchange_meet(struct exchange *e, const char *socket, uint32_t uid, struct rm_error *err) {
        cleanup_close int listen_fd = -1;
        int r = user_link_listen(socket, uid, &listen_fd, err);

        if (r < 0)
                return r;
        control_send_listening(e->control, 0);
        return user_link_accept(e->control, listen_fd, uid, &e->fd, err);
}

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
