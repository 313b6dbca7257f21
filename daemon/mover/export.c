#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fault.h"
#include "daemon/mover/exchange.h"
#include "daemon/mover/mover.h"
#include "daemon/mover/priority.h"

struct exporter {
        struct exchange e;
        int32_t capsule; /* whose files are sent */
        uint64_t sent_bytes;
};

/* ---- one file ---- */

static int announce(struct exporter *x, const char *name, uint64_t size_bytes, struct rm_error *err) {
        Rm__ExportFile file = RM__EXPORT_FILE__INIT;

        file.capsule = x->capsule;
        file.name = (char *) name;
        file.size_bytes = size_bytes;
        return export_write_message(x->e.seal, &file.base, err);
}

static int contents(struct exporter *x, int fd, const char *name, uint64_t size_bytes, struct rm_error *err) {
        int r = 0;

        while (size_bytes > 0 && r == 0) {
                size_t want = size_bytes < EXCHANGE_CHUNK_BYTES ? (size_t) size_bytes : EXCHANGE_CHUNK_BYTES;
                ssize_t n = read(fd, x->e.chunk, want);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? error_sys(err, -errno, "read %s", name) : error_set(err, -EBADMSG, "%s is cut off", name);
                size_bytes -= (uint64_t) n;
                x->sent_bytes += (uint64_t) n;
                r = seal_write(x->e.seal, x->e.chunk, (size_t) n, err);
                if (r == 0)
                        r = exchange_step(&x->e, (uint64_t) n, name, err);
        }
        return r;
}

/* The MAC of a manifest stays here. */
static int one_file(void *ctx, const char *name, int fd, bool manifest, struct rm_error *err) {
        struct exporter *x = ctx;
        uint64_t size_bytes;
        struct stat st;
        int r;

        if (fstat(fd, &st) < 0)
                return error_sys(err, -errno, "read %s", name);
        size_bytes = (uint64_t) st.st_size - (manifest ? STORE_MAC_BYTES : 0);
        r = announce(x, name, size_bytes, err);
        return r < 0 ? r : contents(x, fd, name, size_bytes, err);
}

/* ---- one capsule ---- */

/* Exports one part. An export may be kept for years, so it is verified first. While it is loaded
 * none of it is removed. */
static int one_part(struct exporter *x, int32_t capsule, struct rm_error *err) {
        uint64_t number = exchange_checkpoint(&x->e)->id;
        struct store *store = NULL;
        struct store_load *load = NULL;
        int r = exchange_store_open(&x->e, capsule, &store, err);

        x->capsule = capsule;
        if (r == 0)
                r = store_load_begin(store, number, &load, err);
        if (r == 0)
                r = store_verify(store, number, exchange_on_verified, &x->e, err);
        if (r == 0)
                r = store_each_file(store, number, one_file, x, err);
        if (r == -EBADMSG || r == -ENODATA)
                (void) (capsule < 0 ? error_prefix(err, "mpirun") : error_prefix(err, "group %" PRId32, capsule));
        store_load_end(load);
        store_close(store);
        return r;
}

/* ---- the whole ---- */

static int take_head(struct exchange *e, struct rm_error *err) {
        e->head = rm__export_head__unpack(NULL, e->setup->head.len, e->setup->head.data);
        return export_head_valid(e->head) ? 0 : error_set(err, -EPROTO, "no head, from rmd");
}

static int run(struct exporter *x, struct rm_error *err) {
        int r = exchange_prepare(&x->e, RM__MOVER_COMMAND__BODY_EXPORT_CHECKPOINT, err);
        struct priority priority = { 0 };

        if (r == 0)
                r = take_head(&x->e, err);
        if (r == 0)
                r = exchange_meet(&x->e, err);
        if (r < 0)
                return r;
        priority_lower(&priority);
        r = fault_wait("mover.export.data", err);
        if (r == 0)
                r = exchange_seal_create(&x->e, err);
        if (r == 0)
                r = export_write_message(x->e.seal, &x->e.head->base, err);
        for (size_t i = 0; r == 0 && i < exchange_checkpoint(&x->e)->n_parts; i++)
                r = one_part(x, exchange_checkpoint(&x->e)->parts[i]->capsule, err);
        return r < 0 ? r : seal_write_end(x->e.seal, err);
}

int mover_export(struct control *control) {
        Rm__MoverFigures figures = RM__MOVER_FIGURES__INIT;
        struct rm_error err = { 0 };
        struct exporter x = { 0 };
        int r;

        exchange_init(&x.e, control);
        r = run(&x, &err);
        if (r < 0) {
                control_send_failed(control, &err, false, false);
        } else {
                figures.raw_bytes = x.sent_bytes;
                control_send_sent(control, &figures);
        }
        exchange_finish(&x.e);
        return r;
}
