#include "tests/sim/raftio.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <raft/uv.h>

#include "common/util.h"
#include "tests/sim/raftcode.h"
#include "tests/sim/storage.h"

/* As raft_uv: so much is made ahead, and filled also on a full disk; beyond that writes wait, and
 * are tried again. It is little, so that a fault of a few seconds uses it up. */
#define AHEAD_BYTES (8U << 10)
/* The reserve of the disk in KiB. Space that rmd's own proposals leave counts as so much more:
 * DISK_RESERVE_KIB of raftlog.c less half of AHEAD_BYTES. */
#define RESERVE_KIB 60U
#define DISK_RETRY_USEC 200000U
#define READ_USEC 500U

struct vote_record {
        uint64_t term, voted_for;
};

/* A request of raft that it waits for. */
struct request {
        struct raftio *rio;
        enum { REQUEST_APPEND, REQUEST_TRUNCATE, REQUEST_PUT, REQUEST_GET } kind;
        union {
                struct raft_io_append *append;
                struct raft_io_snapshot_put *put;
                struct raft_io_snapshot_get *get;
        };
        uint64_t first, last; /* what is appended; the first to be cut off; the last in the snapshot */
        struct bytes *records;
        size_t n_records, size_bytes;
        unsigned trailing;
        bool written; /* to be synced */
        bool awaited; /* the disk, or a timer, has it */
        TAILQ_ENTRY(request) entry;
};

struct raftio {
        struct raft_io *io; /* the log's */
        struct host *host;
        struct disk *disk;
        uint64_t next_index; /* of what is appended next */
        size_t ahead_bytes;
        bool retries;
        TAILQ_HEAD(, request) requests; /* in their order */
};

/* Operations of a killed process, which does not see their end. */
static bool is_killed(const struct raftio *rio) {
        return host_state(rio->host) == HOST_DEAD;
}

static struct raftio *rio_of(struct raft_io *io) {
        return io->impl;
}

/* ---- term and vote ---- */

static struct vote_record read_vote(const struct raftio *rio) {
        struct vote_record vote = { 0 };
        size_t n;
        const void *data = storage_get(rio->host, FILE_VOTE, 0, &n);

        if (data)
                memcpy(&vote, data, sizeof(vote));
        return vote;
}

/* The process waits for it, as that of raft_uv does. */
static int write_vote(struct raftio *rio, uint64_t term, uint64_t voted_for) {
        struct vote_record vote = { term, voted_for };

        if (is_killed(rio))
                return RAFT_CANCELED;
        /* libraft goes on all the same, with entries in its memory that it never writes. */
        if (disk_broken(rio->disk))
                return RAFT_IOERR;
        storage_put(rio->host, FILE_VOTE, 0, &vote, sizeof(vote));
        disk_sync_now(rio->disk, FILE_VOTE);
        return 0;
}

static int set_term(struct raft_io *io, raft_term term) {
        return write_vote(rio_of(io), term, 0);
}

static int set_vote(struct raft_io *io, raft_id id) {
        return write_vote(rio_of(io), read_vote(rio_of(io)).term, id);
}

/* ---- loading ---- */

static void free_snapshot(struct raft_snapshot *snapshot) {
        raft_configuration_close(&snapshot->configuration);
        for (unsigned i = 0; i < snapshot->n_bufs; i++)
                raft_free(snapshot->bufs[i].base);
        raft_free(snapshot->bufs);
        raft_free(snapshot);
}

static struct raft_snapshot *load_snapshot(const struct raftio *rio) {
        uint64_t first, last;
        const void *data = NULL;
        size_t n;

        if (disk_range(rio->disk, FILE_SNAPSHOTS, &first, &last))
                data = storage_get(rio->host, FILE_SNAPSHOTS, last, &n);
        return data ? snapshot_unpack(data) : NULL;
}

static uint64_t term_at(const struct raftio *rio, uint64_t index) {
        uint64_t term = 0;
        size_t n;
        const void *data = storage_get(rio->host, FILE_LOG, index, &n);

        if (data)
                memcpy(&term, data, sizeof(term));
        return term;
}

/* A snapshot that another server sent replaces a log that does not go on from it; power may have
 * been lost in between. */
static void drop_log_beside(struct raftio *rio, const struct raft_snapshot *snapshot) {
        uint64_t first, last;

        if (snapshot && disk_range(rio->disk, FILE_LOG, &first, &last) && first <= snapshot->index &&
            term_at(rio, snapshot->index) != snapshot->term)
                disk_remove(rio->disk, FILE_LOG, 0, UINT64_MAX);
}

/* Checks that the log is whole: every entry is there as it was written, and none follows one of a
 * later term, which would be left of a log that was cut off. */
static int read_log(struct raftio *rio, uint64_t first, struct bytes *records, size_t n) {
        uint64_t before = 0;

        for (size_t i = 0; i < n; i++) {
                uint64_t term = term_at(rio, first + i);

                records[i].data = (uint8_t *) storage_get(rio->host, FILE_LOG, first + i, &records[i].n); /* only read */
                if (!records[i].data || term < before)
                        return RAFT_CORRUPT;
                before = term;
        }
        return 0;
}

static int load(struct raft_io *io, raft_term *term, raft_id *voted_for, struct raft_snapshot **ret_snapshot,
                raft_index *start_index, struct raft_entry *ret_entries[], size_t *n_entries) {
        struct raftio *rio = rio_of(io);
        struct vote_record vote = read_vote(rio);
        struct raft_snapshot *snapshot = load_snapshot(rio);
        uint64_t first = 1, last = 0;
        struct bytes *records;
        int r;

        drop_log_beside(rio, snapshot);
        /* Raft takes for safe what it is given here, and the process before may have ended between
         * write and sync. raft_uv does so too. */
        disk_sync_now(rio->disk, FILE_LOG);
        disk_sync_now(rio->disk, FILE_SNAPSHOTS);
        *term = vote.term;
        *voted_for = vote.voted_for;
        *ret_snapshot = snapshot;
        if (!disk_range(rio->disk, FILE_LOG, &first, &last)) {
                first = snapshot ? snapshot->index + 1 : 1;
                last = first - 1;
        }
        *start_index = first;
        *n_entries = last + 1 - first;
        rio->next_index = last + 1;
        records = xcalloc(*n_entries + 1, sizeof(*records));
        r = read_log(rio, first, records, *n_entries);
        if (r == 0 && storage_damaged(rio->host))
                r = RAFT_CORRUPT;
        if (r == 0)
                *ret_entries = entries_unpack(records, *n_entries);
        else if (snapshot)
                free_snapshot(snapshot);
        free(records);
        return r;
}

static int bootstrap(struct raft_io *io, const struct raft_configuration *configuration) {
        struct raftio *rio = rio_of(io);
        struct raft_entry entry = { .term = 1, .type = RAFT_CHANGE };
        struct bytes record = { 0 };

        if (read_vote(rio).term > 0)
                return RAFT_CANTBOOTSTRAP;
        if (raft_configuration_encode(configuration, &entry.buf) != 0)
                abort();
        entry_pack(&entry, &record);
        storage_put(rio->host, FILE_LOG, 1, record.data, record.n);
        disk_sync_now(rio->disk, FILE_LOG);
        free(record.data);
        raft_free(entry.buf.base);
        return write_vote(rio, 1, 0);
}

static int recover(struct raft_io *io, const struct raft_configuration *configuration) {
        return RAFT_INVALID; /* never called */
}

/* ---- requests ---- */

static struct request *request_create(struct raftio *rio, int kind) {
        struct request *request = xcalloc(1, sizeof(*request));

        request->rio = rio;
        request->kind = kind;
        TAILQ_INSERT_TAIL(&rio->requests, request, entry);
        return request;
}

static void request_free(struct request *request) {
        for (size_t i = 0; i < request->n_records; i++)
                free(request->records[i].data);
        free(request->records);
        free(request);
}

static void request_end(struct request *request) {
        TAILQ_REMOVE(&request->rio->requests, request, entry);
        request_free(request);
}

/* The log was closed meanwhile. */
static bool is_late(struct request *request) {
        request->awaited = false;
        if (request->rio)
                return false;
        request_free(request);
        return true;
}

/* raft_uv tries a write again that has failed. On a good disk what is made ahead is made anew as
 * fast as it is used. Snapshots have nothing made ahead. */
static bool take_space(struct raftio *rio, const struct request *request) {
        if (disk_broken(rio->disk))
                return false;
        if (!disk_full(rio->disk)) {
                rio->ahead_bytes = AHEAD_BYTES;
                return true;
        }
        if (request->kind == REQUEST_PUT || rio->ahead_bytes < request->size_bytes)
                return false;
        rio->ahead_bytes -= request->size_bytes;
        return true;
}

static void update_capacity(struct raftio *rio) {
        if (!disk_full(rio->disk))
                rio->ahead_bytes = AHEAD_BYTES;
        rio->io->capacity = (unsigned short) (rio->ahead_bytes / 1024 + RESERVE_KIB);
}

static void append_done(void *userdata);
static void put_done(void *userdata);

static void write_entries(struct request *request, size_t n) {
        for (size_t i = 0; i < n; i++)
                storage_put(request->rio->host, FILE_LOG, request->first + i, request->records[i].data, request->records[i].n);
}

static void request_write(struct request *request) {
        struct raftio *rio = request->rio;

        request->written = true;
        if (request->kind == REQUEST_TRUNCATE) {
                disk_remove(rio->disk, FILE_LOG, request->first, UINT64_MAX);
                request_end(request);
        } else if (request->kind == REQUEST_PUT) {
                storage_put(rio->host, FILE_SNAPSHOTS, request->last, request->records[0].data, request->records[0].n);
                request->awaited = true;
                disk_sync(rio->disk, FILE_SNAPSHOTS, put_done, NULL, request);
        } else {
                write_entries(request, request->n_records);
                request->awaited = true;
                disk_sync(rio->disk, FILE_LOG, append_done, NULL, request);
        }
}

static void on_retry(void *userdata);

static void retry_soon(struct raftio *rio) {
        if (rio->retries)
                return;
        timeline_trace(host_timeline(rio->host), host_name(rio->host), "waits for its disk");
        host_after(rio->host, DISK_RETRY_USEC, on_retry, NULL, rio->host);
        rio->retries = true;
}

/* Requests that change the disk do so in the order in which they were made: one that waits holds up
 * those behind it, unless it is a snapshot of this voter's own, which is of entries in the log. */
static void write_requests(struct raftio *rio) {
        struct request *request = TAILQ_FIRST(&rio->requests), *next;

        for (; request; request = next) {
                next = TAILQ_NEXT(request, entry);
                if (request->written || request->kind == REQUEST_GET)
                        continue;
                if (!take_space(rio, request)) {
                        retry_soon(rio);
                        if (request->kind == REQUEST_PUT && request->trailing > 0)
                                continue;
                        return;
                }
                request_write(request);
        }
}

static void on_retry(void *userdata) {
        struct raftio *rio = storage_log(userdata);

        if (!rio)
                return;
        rio->retries = false;
        write_requests(rio);
}

/* ---- appending ---- */

static void append_done(void *userdata) {
        struct request *request = userdata;
        struct raft_io_append *req = request->append;

        if (is_late(request))
                return;
        request_end(request);
        req->cb(req, 0);
}

static int append(struct raft_io *io, struct raft_io_append *req, const struct raft_entry entries[], unsigned n,
                  raft_io_append_cb cb) {
        struct raftio *rio = rio_of(io);
        struct request *request;

        if (is_killed(rio))
                return RAFT_CANCELED;
        request = request_create(rio, REQUEST_APPEND);
        request->append = req;
        req->cb = cb;
        request->first = rio->next_index;
        request->last = rio->next_index + n - 1;
        request->n_records = n;
        request->records = xcalloc(n, sizeof(*request->records));
        for (unsigned i = 0; i < n; i++) {
                entry_pack(&entries[i], &request->records[i]);
                request->size_bytes += request->records[i].n;
        }
        rio->next_index += n;
        write_requests(rio);
        return 0;
}

static int truncate_log(struct raft_io *io, raft_index index) {
        struct raftio *rio = rio_of(io);

        if (is_killed(rio))
                return RAFT_CANCELED;
        request_create(rio, REQUEST_TRUNCATE)->first = index;
        rio->next_index = index;
        write_requests(rio);
        return 0;
}

/* ---- snapshots ---- */

static void put_done(void *userdata) {
        struct request *request = userdata;
        struct raftio *rio = request->rio;
        struct raft_io_snapshot_put *put = request->put;
        uint64_t index = request->last;

        if (is_late(request))
                return;
        /* Only now is the snapshot safe, and what it stands for may go. */
        if (request->trailing == 0)
                disk_remove(rio->disk, FILE_LOG, 0, UINT64_MAX);
        else if (index > request->trailing)
                disk_remove(rio->disk, FILE_LOG, 0, index - request->trailing);
        disk_remove(rio->disk, FILE_SNAPSHOTS, 0, index - 1);
        request_end(request);
        put->cb(put, 0);
}

static int snapshot_put(struct raft_io *io, unsigned trailing, struct raft_io_snapshot_put *req,
                        const struct raft_snapshot *snapshot, raft_io_snapshot_put_cb cb) {
        struct raftio *rio = rio_of(io);
        struct request *request;

        if (is_killed(rio))
                return RAFT_CANCELED;
        timeline_trace(host_timeline(rio->host), host_name(rio->host), "%s snapshot of %llu^%llu with %u servers as of %llu",
                       trailing == 0 ? "installs the" : "makes a", snapshot->index, snapshot->term, snapshot->configuration.n,
                       snapshot->configuration_index);
        request = request_create(rio, REQUEST_PUT);
        request->put = req;
        req->cb = cb;
        request->last = snapshot->index;
        request->trailing = trailing;
        request->n_records = 1;
        request->records = xcalloc(1, sizeof(*request->records));
        snapshot_pack(snapshot, &request->records[0]);
        if (trailing == 0)
                rio->next_index = snapshot->index + 1;
        write_requests(rio);
        return 0;
}

static void get_done(void *userdata) {
        struct request *request = userdata;
        struct raftio *rio = request->rio;
        struct raft_io_snapshot_get *get = request->get;

        if (is_late(request))
                return;
        request_end(request);
        get->cb(get, load_snapshot(rio), 0);
}

static int snapshot_get(struct raft_io *io, struct raft_io_snapshot_get *req, raft_io_snapshot_get_cb cb) {
        struct raftio *rio = rio_of(io);
        struct request *request;

        if (is_killed(rio))
                return RAFT_CANCELED;
        request = request_create(rio, REQUEST_GET);
        request->get = req;
        req->cb = cb;
        request->awaited = true;
        host_after(rio->host, READ_USEC, get_done, NULL, request);
        return 0;
}

/* ---- time, begin and end ---- */

/* raftlog_members.c has the network and the clock. */
static int start(struct raft_io *io, unsigned msecs, raft_io_tick_cb tick, raft_io_recv_cb receive) {
        return 0;
}

static raft_time get_time(struct raft_io *io) {
        return host_monotonic_usec(rio_of(io)->host) / 1000;
}

static int get_random(struct raft_io *io, int min, int max) {
        return (int) timeline_between(host_timeline(rio_of(io)->host), (uint64_t) min, (uint64_t) max);
}

static int init(struct raft_io *io, raft_id id, const char *address) {
        return 0;
}

/* When a snapshot cannot be got, libraft frees what it has not set: so it gets it, and what it then
 * sends goes nowhere. */
static void cancel(struct raftio *rio, struct request *request) {
        switch (request->kind) {
        case REQUEST_APPEND:
                request->append->cb(request->append, RAFT_CANCELED);
                break;
        case REQUEST_PUT:
                request->put->cb(request->put, RAFT_CANCELED);
                break;
        case REQUEST_GET:
                request->get->cb(request->get, load_snapshot(rio), 0);
                break;
        case REQUEST_TRUNCATE:
                break;
        }
        request->rio = NULL;
        if (!request->awaited || is_killed(rio))
                request_free(request);
}

static void close_io(struct raft_io *io, raft_io_close_cb cb) {
        struct raftio *rio = rio_of(io);

        while (!TAILQ_EMPTY(&rio->requests)) {
                struct request *request = TAILQ_FIRST(&rio->requests);

                TAILQ_REMOVE(&rio->requests, request, entry);
                cancel(rio, request);
        }
        if (cb)
                cb(io);
}

int raft_uv_init(struct raft_io *io, struct uv_loop_s *loop, const char *dir, struct raft_uv_transport *transport) {
        struct raftio *rio = xcalloc(1, sizeof(*rio));

        rio->io = io;
        rio->host = host_current();
        rio->disk = host_part(rio->host, HOST_DISK);
        TAILQ_INIT(&rio->requests);
        storage_set_log(rio->host, rio);
        *io = (struct raft_io) { .version = 1,
                                 .impl = rio,
                                 .init = init,
                                 .close = close_io,
                                 .load = load,
                                 .start = start,
                                 .bootstrap = bootstrap,
                                 .recover = recover,
                                 .set_term = set_term,
                                 .set_vote = set_vote,
                                 .append = append,
                                 .truncate = truncate_log,
                                 .snapshot_put = snapshot_put,
                                 .snapshot_get = snapshot_get,
                                 .time = get_time,
                                 .random = get_random };
        update_capacity(rio);
        return 0;
}

void raft_uv_close(struct raft_io *io) {
        struct raftio *rio = rio_of(io);

        storage_set_log(rio->host, NULL);
        free(rio);
}

void raft_uv_set_segment_size(struct raft_io *io, size_t size) {
}

void raft_uv_set_auto_recovery(struct raft_io *io, bool flag) {
}

/* ---- for the world ---- */

void raftio_scan(struct host *host) {
        if (storage_log(host))
                update_capacity(storage_log(host));
}
