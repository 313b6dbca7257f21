#include <unistd.h>

#include "common/fault.h"
#include "common/unknown.h"
#include "common/util.h"
#include "daemon/mover/exchange.h"
#include "daemon/mover/mover.h"
#include "daemon/mover/priority.h"
#include "daemon/store/directory.h"

#define FILE_LEAST_BYTES 4096U /* that it counts for, of the room that there is */

struct importer {
        struct exchange e;
        uint64_t space_bytes; /* left */
        uint64_t bytes;
        /* The capsule whose files come. */
        size_t part;
        int dir_fd; /* -1: none has come yet */
};

static int damaged(struct rm_error *err) {
        return error_set(err, -EBADMSG, "the file is damaged");
}

/* ---- the head ---- */

static int read_head(struct exchange *e, struct rm_error *err) {
        int r = exchange_seal_open(e, err);

        if (r == 0)
                r = export_read_message(e->seal, &rm__export_head__descriptor, (ProtobufCMessage **) &e->head, err);
        return r == 0 && !export_head_valid(e->head) ? damaged(err) : r;
}

/* rmd knows whose it may be, and whether there is room. */
static int ask_rmd(struct importer *m, struct rm_error *err) {
        cleanup_free uint8_t *packed = NULL;
        size_t n;

        unknown_drop(&m->e.head->base);
        n = rm__export_head__get_packed_size(m->e.head);
        packed = xrealloc(NULL, n + 1);
        (void) rm__export_head__pack(m->e.head, packed);
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

static int take_space(struct importer *m, uint64_t size_bytes, struct rm_error *err) {
        uint64_t bytes = size_bytes < FILE_LEAST_BYTES ? FILE_LEAST_BYTES : size_bytes;

        if (bytes > m->space_bytes)
                return error_set(err, -EDQUOT, "there is no room for it among your checkpoints on this node; remove some");
        m->space_bytes -= bytes;
        return 0;
}

static int open_part(struct importer *m, struct rm_error *err) {
        cleanup_free char *dir = directory_of_capsule(m->e.setup->store->dir, exchange_checkpoint(&m->e)->parts[m->part]->capsule);

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

                r = seal_read(m->e.seal, m->e.chunk, n, err);
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
        const Rm__Checkpoint *checkpoint = exchange_checkpoint(&m->e);
        cleanup_close int fd = -1;
        int r;

        if (file->capsule != checkpoint->parts[m->part]->capsule || !directory_name_valid(file->name, checkpoint->id))
                return damaged(err);
        r = take_space(m, file->size_bytes, err);
        if (r == 0)
                r = open_part(m, err);
        if (r == 0)
                r = directory_file_create(m->dir_fd, file->name, &fd, err);
        if (r == 0)
                r = contents(m, fd, file, err);
        m->bytes += file->size_bytes;
        return r == 0 && directory_manifest_number(file->name) > 0 ? close_part(m, err) : r;
}

/* A capsule's last file is its manifest, and the last capsule's ends all of it. */
static int read_files(struct importer *m, struct rm_error *err) {
        int r = 0;

        while (r == 0 && m->part < exchange_checkpoint(&m->e)->n_parts) {
                Rm__ExportFile *file = NULL;

                r = export_read_message(m->e.seal, &rm__export_file__descriptor, (ProtobufCMessage **) &file, err);
                if (r < 0)
                        break;
                r = one_file(m, file, err);
                rm__export_file__free_unpacked(file, NULL);
        }
        return r < 0 ? r : seal_read_end(m->e.seal, err);
}

/* ---- is it good? ---- */

static int verify_part(struct importer *m, int32_t capsule, struct rm_error *err) {
        uint64_t number = exchange_checkpoint(&m->e)->id;
        struct store *store = NULL;
        int r = exchange_store_open(&m->e, capsule, &store, err);

        if (r == 0)
                r = store_sign(store, number, err);
        if (r == 0)
                r = store_verify(store, number, exchange_on_verified, &m->e, err);
        store_close(store);
        return r;
}

/* ---- the whole ---- */

static int run(struct importer *m, struct rm_error *err) {
        int r = exchange_prepare(&m->e, RM__MOVER_COMMAND__BODY_IMPORT_CHECKPOINT, err);
        struct priority priority = { 0 };

        if (r == 0)
                r = exchange_meet(&m->e, err);
        if (r == 0)
                r = read_head(&m->e, err);
        if (r == 0)
                r = ask_rmd(m, err);
        if (r < 0)
                return r;
        priority_lower(&priority);
        r = fault_wait("mover.import.data", err);
        if (r == 0)
                r = read_files(m, err);
        for (size_t i = 0; r == 0 && i < exchange_checkpoint(&m->e)->n_parts; i++)
                r = verify_part(m, exchange_checkpoint(&m->e)->parts[i]->capsule, err);
        return r;
}

int mover_import(struct control *control) {
        struct importer m = { .dir_fd = -1 };
        struct rm_error err = { 0 };
        int r;

        exchange_init(&m.e, control);
        r = run(&m, &err);
        if (r < 0) {
                control_send_failed(control, &err, false, false);
        } else {
                control_send_imported(control, m.bytes);
        }
        cleanup_close_fd(&m.dir_fd);
        exchange_finish(&m.e);
        return r;
}
