#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"
#include "daemon/mover/exchange.h"
#include "daemon/mover/fault.h"
#include "daemon/mover/mover.h"
#include "daemon/mover/priority.h"
#include "daemon/mover/store_stream.h"
#include "daemon/mover/user_link.h"

struct exporter {
        struct exchange e;
        const Rm__MoverExport *setup;
        Rm__ExportHead *head;
        struct export_stream *stream;
        uint64_t sent_bytes;
        uint64_t files;
};

static int on_write(void *ctx, const void *data, size_t size_bytes, struct rm_error *err) {
        struct exporter *x = ctx;

        return user_link_write(x->e.control, x->e.fd, data, size_bytes, err);
}

/* ---- one file ---- */

static int record_file(struct exporter *x, int32_t capsule, const char *name, uint64_t size_bytes, struct rm_error *err) {
        Rm__ExportRecord record = RM__EXPORT_RECORD__INIT;
        Rm__ExportFile file = RM__EXPORT_FILE__INIT;

        file.capsule = capsule;
        file.name = (char *) name;
        file.size_bytes = size_bytes;
        record.body_case = RM__EXPORT_RECORD__BODY_FILE;
        record.file = &file;
        return export_write_record(x->stream, &record, err);
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
                r = export_write_data(x->stream, x->e.chunk, (size_t) n, err);
                if (r == 0)
                        r = exchange_step(&x->e, (uint64_t) n, name, err);
        }
        return r;
}

static int one_file(struct exporter *x, int dir_fd, int32_t capsule, const char *name, struct rm_error *err) {
        cleanup_close int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        struct stat st;
        int r;

        if (fd < 0 || fstat(fd, &st) < 0)
                return error_sys(err, -errno, "open %s", name);
        x->files++;
        r = record_file(x, capsule, name, (uint64_t) st.st_size, err);
        return r < 0 ? r : contents(x, fd, name, (uint64_t) st.st_size, err);
}

/* ---- one capsule ---- */

static int all_files(struct exporter *x, struct store *store, const char *dir, int32_t capsule, struct rm_error *err) {
        cleanup_close int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        char **names = NULL;
        int r;

        if (dir_fd < 0)
                return error_sys(err, -errno, "open %s", dir);
        r = store_files(store, x->head->job->checkpoints[0]->id, &names, err);
        for (size_t i = 0; r == 0 && names[i]; i++)
                r = one_file(x, dir_fd, capsule, names[i], err);
        for (size_t i = 0; names && names[i]; i++)
                free(names[i]);
        free(names);
        return r;
}

/* What is kept for years is looked at before it is. While it is loaded nothing of it is removed. */
static int one_part(struct exporter *x, int32_t capsule, struct rm_error *err) {
        cleanup_free char *dir = export_part_dir(x->setup->store->dir, capsule);
        Rm__MoverStore where = *x->setup->store;
        uint64_t number = x->head->job->checkpoints[0]->id;
        struct store *store = NULL;
        struct store_load *load = NULL;
        int r;

        where.dir = dir;
        where.capsule = capsule;
        r = store_stream_open(&where, &store, err);
        if (r == 0)
                r = store_load_begin(store, number, &load, err);
        if (r == 0)
                r = store_verify(store, number, exchange_on_verified, &x->e, err);
        if (r == 0)
                r = all_files(x, store, dir, capsule, err);
        if (r == -EBADMSG || r == -ENODATA)
                (void) (capsule < 0 ? error_prefix(err, "mpirun") : error_prefix(err, "group %" PRId32, capsule));
        store_load_end(load);
        store_close(store);
        return r;
}

/* ---- the whole ---- */

static int prepare(struct exporter *x, struct rm_error *err) {
        struct export_keys keys;
        const struct export_io io = { .write = on_write, .ctx = x };
        int r;

        x->setup = x->e.control->setup->export_checkpoint;
        x->e.pace.bytes_per_sec = x->setup->bytes_per_sec;
        x->head = rm__export_head__unpack(NULL, x->setup->head.len, x->setup->head.data);
        if (!x->setup->store || !export_head_valid(x->head))
                return error_set(err, -EPROTO, "no store or no head, from rmd");
        r = exchange_keys(x->setup->store, &keys, err);
        if (r == 0)
                r = export_stream_create(&keys, &io, &x->stream, err);
        explicit_bzero(&keys, sizeof(keys));
        return r;
}

static int send_head(struct exporter *x, struct rm_error *err) {
        Rm__ExportRecord record = RM__EXPORT_RECORD__INIT;
        int r;

        record.body_case = RM__EXPORT_RECORD__BODY_HEAD;
        record.head = x->head;
        r = export_write_record(x->stream, &record, err);
        return r < 0 ? r : export_write_mac(x->stream, err);
}

static int send_end(struct exporter *x, struct rm_error *err) {
        Rm__ExportRecord record = RM__EXPORT_RECORD__INIT;
        Rm__ExportEnd end = RM__EXPORT_END__INIT;
        int r;

        end.files = x->files;
        end.bytes = x->sent_bytes;
        record.body_case = RM__EXPORT_RECORD__BODY_END;
        record.end = &end;
        r = export_write_record(x->stream, &record, err);
        return r < 0 ? r : export_write_mac(x->stream, err);
}

static int run(struct exporter *x, struct rm_error *err) {
        int r = control_wait_setup(x->e.control, RM__MOVER_COMMAND__BODY_EXPORT_CHECKPOINT, err);
        struct priority priority = { 0 };

        if (r == 0)
                r = prepare(x, err);
        if (r == 0)
                r = exchange_meet(&x->e, x->setup->socket, x->setup->client_uid, err);
        if (r < 0)
                return r;
        priority_lower(&priority);
        r = fault_point("mover.export.data", err);
        if (r == 0)
                r = send_head(x, err);
        for (size_t i = 0; r == 0 && i < x->head->job->checkpoints[0]->n_parts; i++)
                r = one_part(x, x->head->job->checkpoints[0]->parts[i]->capsule, err);
        return r < 0 ? r : send_end(x, err);
}

int mover_export(struct control *control) {
        Rm__MoverFigures figures = RM__MOVER_FIGURES__INIT;
        struct rm_error err = { 0 };
        struct exporter x = { 0 };
        int r;

        exchange_init(&x.e, control);
        r = run(&x, &err);
        if (r < 0) {
                log_error("export: %s", error_text(&err));
                control_send_failed(control, &err, false, false);
        } else {
                figures.raw_bytes = x.sent_bytes;
                control_send_sent(control, &figures);
        }
        export_stream_destroy(x.stream);
        if (x.head)
                rm__export_head__free_unpacked(x.head, NULL);
        exchange_finish(&x.e);
        return r;
}
