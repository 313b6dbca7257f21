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
#include "daemon/store/directory.h"
#include "daemon/wire/unknown.h"

#define FILE_LEAST_BYTES 4096U /* that it counts for, of the room that there is */

struct importer {
        struct exchange e;
        const Rm__MoverImport *setup;
        Rm__ExportRecord *head; /* NULL until it has come */
        struct export_stream *stream;
        uint64_t space_bytes; /* left */
        uint64_t files;
        uint64_t bytes;
        /* The capsule whose files come. */
        size_t part;
        int dir_fd; /* -1: none has come yet */
};

static int on_read(void *ctx, void *data, size_t size_bytes, struct rm_error *err) {
        struct importer *m = ctx;

        return user_link_read(m->e.control, m->e.fd, data, size_bytes, err);
}

static const Rm__Checkpoint *checkpoint_of(const struct importer *m) {
        return m->head->head->job->checkpoints[0];
}

static int damaged(struct rm_error *err) {
        return error_set(err, -EBADMSG, "the file is damaged");
}

/* ---- the head ---- */

/* Of another cluster the key is another one, too: its name says more. */
static int check_head_mac(struct importer *m, struct rm_error *err) {
        const char *cluster = m->head->head->cluster;
        int r = export_read_mac(m->stream, err);

        if (r == -EBADMSG && strcmp(cluster, m->setup->store->cluster) != 0) {
                r = error_set(err, -EACCES, "it was exported by cluster '%.64s', and not by this one, '%s'; or it is damaged",
                              cluster, m->setup->store->cluster);
                error_clean(err);
        }
        return r;
}

static int read_head(struct importer *m, struct rm_error *err) {
        int r = export_read_record(m->stream, &m->head, err);

        if (r < 0)
                return r;
        if (m->head->body_case != RM__EXPORT_RECORD__BODY_HEAD || !export_head_valid(m->head->head))
                return error_set(err, -EBADMSG, "this is no exported checkpoint, or it is damaged");
        r = check_head_mac(m, err);
        if (r == 0 && m->head->head->version != EXPORT_VERSION)
                r = error_set(err, -ENOTSUP, "it is of format %" PRIu32 ", and this rmd knows %u", m->head->head->version,
                              EXPORT_VERSION);
        return r;
}

/* rmd knows whose it may be, and whether there is room. */
static int ask_rmd(struct importer *m, struct rm_error *err) {
        cleanup_free uint8_t *packed = NULL;
        size_t n;

        unknown_drop(&m->head->head->base);
        n = rm__export_head__get_packed_size(m->head->head);
        packed = xrealloc(NULL, n + 1);
        (void) rm__export_head__pack(m->head->head, packed);
        control_send_importing(m->e.control, packed, n);
        while (!m->e.control->proceed) {
                struct pollfd fds[1];
                int r = control_poll(m->e.control, fds, 1, -1, err);

                if (r < 0)
                        return r;
        }
        m->space_bytes = m->e.control->proceed->proceed->space_bytes;
        return 0;
}

/* ---- the files ---- */

/* That of a pack of this checkpoint or an older one, or of its manifest, and exactly as they are written. */
static bool name_is_valid(const char *name, uint64_t checkpoint, bool *ret_manifest) {
        char again[DIRECTORY_NAME_BYTES];
        int64_t number = 0;

        directory_manifest_name(checkpoint, again);
        *ret_manifest = strcmp(name, again) == 0;
        if (*ret_manifest)
                return true;
        if (strncmp(name, "pack-", 5) != 0 || parse_i64(name + 5, 1, INT64_MAX, &number) < 0 || (uint64_t) number > checkpoint)
                return false;
        directory_pack_name((uint64_t) number, again);
        return strcmp(name, again) == 0;
}

static int take_room(struct importer *m, uint64_t size_bytes, struct rm_error *err) {
        uint64_t bytes = size_bytes < FILE_LEAST_BYTES ? FILE_LEAST_BYTES : size_bytes;

        if (bytes > m->space_bytes)
                return error_set(err, -EDQUOT, "there is no room for it among your checkpoints on this node; remove some");
        m->space_bytes -= bytes;
        return 0;
}

static int open_part(struct importer *m, struct rm_error *err) {
        cleanup_free char *dir = export_part_dir(m->setup->store->dir, checkpoint_of(m)->parts[m->part]->capsule);

        return m->dir_fd >= 0 ? 0 : directory_open(dir, &m->dir_fd, err);
}

static int close_part(struct importer *m, struct rm_error *err) {
        cleanup_close int fd = take_fd(&m->dir_fd);

        m->part++;
        return fsync(fd) < 0 ? error_sys(err, -errno, "sync") : 0;
}

static int contents(struct importer *m, int fd, const Rm__ExportFile *file, struct rm_error *err) {
        uint64_t left_bytes = file->size_bytes;
        int r = 0;

        while (left_bytes > 0 && r == 0) {
                size_t n = left_bytes < EXCHANGE_CHUNK_BYTES ? (size_t) left_bytes : EXCHANGE_CHUNK_BYTES;

                r = export_read_data(m->stream, m->e.chunk, n, err);
                if (r == 0 && (r = write_all(fd, m->e.chunk, n)) < 0)
                        (void) error_sys(err, r, "write %s", file->name);
                if (r == 0)
                        r = exchange_step(&m->e, n, file->name, err);
                left_bytes -= n;
        }
        if (r == 0 && fsync(fd) < 0)
                r = error_sys(err, -errno, "sync %s", file->name);
        return r;
}

static int one_file(struct importer *m, const Rm__ExportFile *file, struct rm_error *err) {
        const Rm__Checkpoint *checkpoint = checkpoint_of(m);
        cleanup_close int fd = -1;
        bool manifest = false;
        int r;

        if (m->part >= checkpoint->n_parts || file->capsule != checkpoint->parts[m->part]->capsule ||
            !name_is_valid(file->name, checkpoint->id, &manifest))
                return damaged(err);
        r = take_room(m, file->size_bytes, err);
        if (r == 0)
                r = open_part(m, err);
        if (r == 0)
                r = directory_file_create(m->dir_fd, file->name, &fd, err);
        if (r == 0)
                r = contents(m, fd, file, err);
        m->files++;
        m->bytes += file->size_bytes;
        return r == 0 && manifest ? close_part(m, err) : r;
}

static int check_end(struct importer *m, const Rm__ExportEnd *end, struct rm_error *err) {
        uint8_t byte;
        int r;

        if (end->files != m->files || end->bytes != m->bytes || m->part != checkpoint_of(m)->n_parts)
                return damaged(err);
        r = export_read_mac(m->stream, err);
        if (r < 0)
                return r;
        r = user_link_read(m->e.control, m->e.fd, &byte, 1, err);
        if (r == -ENODATA)
                return 0;
        return r < 0 ? r : error_set(err, -EBADMSG, "the file goes on behind its end");
}

static int read_files(struct importer *m, struct rm_error *err) {
        for (;;) {
                Rm__ExportRecord *record = NULL;
                bool end = false;
                int r = export_read_record(m->stream, &record, err);

                if (r < 0)
                        return r;
                if (record->body_case == RM__EXPORT_RECORD__BODY_FILE)
                        r = one_file(m, record->file, err);
                else if (record->body_case == RM__EXPORT_RECORD__BODY_END)
                        end = (r = check_end(m, record->end, err)) == 0;
                else
                        r = damaged(err);
                rm__export_record__free_unpacked(record, NULL);
                if (r < 0 || end)
                        return r;
        }
}

/* ---- is it good? ---- */

static int verify_part(struct importer *m, int32_t capsule, struct rm_error *err) {
        cleanup_free char *dir = export_part_dir(m->setup->store->dir, capsule);
        Rm__MoverStore where = *m->setup->store;
        struct store *store = NULL;
        int r;

        where.dir = dir;
        where.job = m->head->head->job->id;
        where.uid = m->head->head->job->spec->uid;
        where.capsule = capsule;
        r = store_stream_open(&where, &store, err);
        if (r == 0)
                r = store_verify(store, checkpoint_of(m)->id, exchange_on_verified, &m->e, err);
        store_close(store);
        return r;
}

/* ---- the whole ---- */

static int prepare(struct importer *m, struct rm_error *err) {
        const struct export_io io = { .read = on_read, .ctx = m };
        struct export_keys keys;
        int r;

        m->setup = m->e.control->setup->import_checkpoint;
        m->e.pace.bytes_per_sec = m->setup->bytes_per_sec;
        if (!m->setup->store)
                return error_set(err, -EPROTO, "no store, from rmd");
        r = exchange_keys(m->setup->store, &keys, err);
        if (r == 0)
                r = export_stream_create(&keys, &io, &m->stream, err);
        explicit_bzero(&keys, sizeof(keys));
        return r;
}

static int run(struct importer *m, struct rm_error *err) {
        int r = control_wait_setup(m->e.control, RM__MOVER_COMMAND__BODY_IMPORT_CHECKPOINT, err);
        struct priority priority = { 0 };

        if (r == 0)
                r = prepare(m, err);
        if (r == 0)
                r = exchange_meet(&m->e, m->setup->socket, m->setup->client_uid, err);
        if (r == 0)
                r = read_head(m, err);
        if (r == 0)
                r = ask_rmd(m, err);
        if (r < 0)
                return r;
        priority_lower(&priority);
        r = fault_point("mover.import.data", err);
        if (r == 0)
                r = read_files(m, err);
        for (size_t i = 0; r == 0 && i < checkpoint_of(m)->n_parts; i++)
                r = verify_part(m, checkpoint_of(m)->parts[i]->capsule, err);
        return r;
}

int mover_import(struct control *control) {
        struct importer m = { .dir_fd = -1 };
        struct rm_error err = { 0 };
        int r;

        exchange_init(&m.e, control);
        r = run(&m, &err);
        if (r < 0) {
                log_info("import: %s", error_text(&err));
                control_send_failed(control, &err, false, false);
        } else {
                control_send_imported(control, m.bytes);
        }
        export_stream_destroy(m.stream);
        if (m.head)
                rm__export_record__free_unpacked(m.head, NULL);
        cleanup_close_fd(&m.dir_fd);
        exchange_finish(&m.e);
        return r;
}
