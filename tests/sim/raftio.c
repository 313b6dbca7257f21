#include "tests/sim/raftio.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/util.h"
#include "tests/sim/raftcode.h"

/* Of the disk. Records of the log and of snapshots have their index as number. */
enum { FILE_VOTE, FILE_LOG, FILE_SNAPSHOTS };

/* As raft_uv: so much is made ahead, and filled also on a full disk; beyond that writes wait, and are tried again. It is little, so that
 * a fault of a few seconds uses it up. */
#define AHEAD_BYTES (8U << 10)
#define DISK_RETRY_USEC 200000U
#define READ_USEC 500U

struct vote_record {
        uint64_t term, voted_for;
};

/* Something that raft has asked for and waits for. */
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
        TAILQ_ENTRY(request) entry;
};

struct raftio {
        struct raft_io io;
        struct host *host;
        struct disk *disk;
        raftio_send_fn send;
        void *userdata;
        raft_io_tick_cb tick;
        raft_io_recv_cb receive;
        uint64_t tick_usec;
        uint64_t next_index; /* of what is appended next */
        size_t ahead_bytes;
        bool retries; /* for room */
        bool killed;
        TAILQ_HEAD(, request) requests; /* in their order */
};

static struct raftio *rio_of(struct raft_io *io) {
        return io->impl;
}

/* ---- term and vote ---- */

static struct vote_record read_vote(const struct raftio *rio) {
        struct vote_record vote = { 0 };
        size_t n;
        const void *data = disk_read(rio->disk, FILE_VOTE, 0, &n);

        if (data)
                memcpy(&vote, data, sizeof(vote));
        return vote;
}

/* The process waits for it, as that of raft_uv does. */
static int write_vote(struct raftio *rio, uint64_t term, uint64_t voted_for) {
        struct vote_record vote = { term, voted_for };

        if (rio->killed)
                return RAFT_CANCELED;
        disk_write(rio->disk, FILE_VOTE, 0, &vote, sizeof(vote));
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

static struct raft_snapshot *load_snapshot(const struct raftio *rio) {
        uint64_t first, last;
        size_t n;

        return disk_range(rio->disk, FILE_SNAPSHOTS, &first, &last)
                       ? snapshot_unpack(disk_read(rio->disk, FILE_SNAPSHOTS, last, &n))
                       : NULL;
}

static uint64_t term_at(const struct raftio *rio, uint64_t index) {
        uint64_t term = 0;
        size_t n;
        const void *data = disk_read(rio->disk, FILE_LOG, index, &n);

        if (data)
                memcpy(&term, data, sizeof(term));
        return term;
}

/* A snapshot that another server sent replaces a log that does not go on from it; power may have been lost in between. */
static void drop_log_beside(struct raftio *rio, const struct raft_snapshot *snapshot) {
        uint64_t first, last;

        if (snapshot && disk_range(rio->disk, FILE_LOG, &first, &last) && first <= snapshot->index &&
            term_at(rio, snapshot->index) != snapshot->term)
                disk_remove(rio->disk, FILE_LOG, 0, UINT64_MAX);
}

static int load(struct raft_io *io, raft_term *term, raft_id *voted_for, struct raft_snapshot **ret_snapshot,
                raft_index *start_index, struct raft_entry *ret_entries[], size_t *n_entries) {
        struct raftio *rio = rio_of(io);
        struct vote_record vote = read_vote(rio);
        struct raft_snapshot *snapshot = load_snapshot(rio);
        uint64_t first = 1, last = 0;
        struct bytes *records;

        drop_log_beside(rio, snapshot);
        /* Raft takes for safe what it is given here, and the process before may have ended between write and sync. raft_uv does so too. */
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
        for (size_t i = 0; i < *n_entries; i++) {
                const void *data = disk_read(rio->disk, FILE_LOG, first + i, &records[i].n);

                if (!data)
                        abort();
                records[i].data = (uint8_t *) data; /* only read */
        }
        *ret_entries = entries_unpack(records, *n_entries);
        free(records);
        return 0;
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
        disk_write(rio->disk, FILE_LOG, 1, record.data, record.n);
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

/* On a good disk what is made ahead is made anew as fast as it is used. Snapshots have nothing made ahead. */
static bool take_room(struct raftio *rio, const struct request *request) {
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
        rio->io.capacity = (unsigned short) (rio->ahead_bytes / 1024);
}

static void append_done(void *userdata);
static void put_done(void *userdata);

static void request_write(struct request *request) {
        struct raftio *rio = request->rio;

        request->written = true;
        if (request->kind == REQUEST_TRUNCATE) {
                disk_remove(rio->disk, FILE_LOG, request->first, UINT64_MAX);
                request_end(request);
        } else if (request->kind == REQUEST_PUT) {
                disk_write(rio->disk, FILE_SNAPSHOTS, request->last, request->records[0].data, request->records[0].n);
                disk_sync(rio->disk, FILE_SNAPSHOTS, put_done, NULL, request);
        } else {
                for (size_t i = 0; i < request->n_records; i++)
                        disk_write(rio->disk, FILE_LOG, request->first + i, request->records[i].data, request->records[i].n);
                disk_sync(rio->disk, FILE_LOG, append_done, NULL, request);
        }
}

static void on_retry(void *userdata);

static void retry_soon(struct raftio *rio) {
        if (rio->retries)
                return;
        timeline_trace(host_timeline(rio->host), host_name(rio->host), "waits for room on its disk");
        host_after(rio->host, DISK_RETRY_USEC, on_retry, NULL, rio);
        rio->retries = true;
}

/* What changes the disk does so in the order in which it was asked for: one that waits for room holds up those behind it, unless it is a
 * snapshot of this voter's own, which is of what is in the log. */
static void write_requests(struct raftio *rio) {
        struct request *request = TAILQ_FIRST(&rio->requests), *next;

        for (; request; request = next) {
                next = TAILQ_NEXT(request, entry);
                if (request->written || request->kind == REQUEST_GET)
                        continue;
                if (!take_room(rio, request)) {
                        retry_soon(rio);
                        if (request->kind == REQUEST_PUT && request->trailing > 0)
                                continue;
                        return;
                }
                request_write(request);
        }
}

static void on_retry(void *userdata) {
        struct raftio *rio = userdata;

        rio->retries = false;
        write_requests(rio);
}

/* ---- appending ---- */

static void append_done(void *userdata) {
        struct request *request = userdata;
        struct raft_io_append *req = request->append;

        request_end(request);
        req->cb(req, 0);
}

static int append(struct raft_io *io, struct raft_io_append *req, const struct raft_entry entries[], unsigned n,
                  raft_io_append_cb cb) {
        struct raftio *rio = rio_of(io);
        struct request *request;

        if (rio->killed)
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

        if (rio->killed)
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

        if (rio->killed)
                return RAFT_CANCELED;
        timeline_trace(host_timeline(rio->host), host_name(rio->host), "%s snapshot of %llu^%llu",
                       trailing == 0 ? "installs the" : "makes a", snapshot->index, snapshot->term);
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

        request_end(request);
        get->cb(get, load_snapshot(rio), 0);
}

static int snapshot_get(struct raft_io *io, struct raft_io_snapshot_get *req, raft_io_snapshot_get_cb cb) {
        struct raftio *rio = rio_of(io);
        struct request *request;

        if (rio->killed)
                return RAFT_CANCELED;
        request = request_create(rio, REQUEST_GET);
        request->get = req;
        req->cb = cb;
        host_after(rio->host, READ_USEC, get_done, NULL, request);
        return 0;
}

/* ---- messages ---- */

/* libraft does not set the last index when it rejects what is of an older term: then it is an address, another one in each run. */
static void clear_unset(const struct raftio *rio, struct raft_message *message) {
        struct raft_append_entries_result *result = &message->append_entries_result;

        if (message->type == RAFT_APPEND_ENTRIES_RESULT && result->last_log_index >= rio->next_index)
                result->last_log_index = 0;
}

static void transmit(struct raftio *rio, struct raft_message message) {
        struct bytes packet = { 0 };
        char text[128];

        clear_unset(rio, &message);
        if (timeline_traced(host_timeline(rio->host))) {
                message_describe(&message, text, sizeof(text));
                timeline_trace(host_timeline(rio->host), host_name(rio->host), "-> %llu: %s", message.server_id, text);
        }
        message_pack(&message, &packet);
        rio->send(rio->userdata, (unsigned) message.server_id - 1, packet.data, packet.n);
        free(packet.data);
}

static int send_message(struct raft_io *io, struct raft_io_send *req, const struct raft_message *message, raft_io_send_cb cb) {
        struct raftio *rio = rio_of(io);

        if (!rio->killed)
                transmit(rio, *message);
        if (cb)
                cb(req, 0);
        return 0;
}

/* libraft 0.22.1 means to put off the installation of a snapshot while it makes one, and then uses the pointer that it has just cleared. So
 * such a message is lost; the leader sends it again. */
static bool puts_snapshot(const struct raftio *rio) {
        const struct request *request;

        TAILQ_FOREACH (request, &rio->requests, entry)
                if (request->kind == REQUEST_PUT)
                        return true;
        return false;
}

void raftio_receive(struct raftio *rio, unsigned from, const void *data, size_t size_bytes) {
        struct raft_message message;

        message_unpack(data, size_bytes, &message);
        message.server_id = from + 1;
        message.server_address = "server";
        update_capacity(rio);
        if (message.type == RAFT_INSTALL_SNAPSHOT && puts_snapshot(rio)) {
                raft_configuration_close(&message.install_snapshot.conf);
                raft_free(message.install_snapshot.data.base);
                return;
        }
        rio->receive(&rio->io, &message);
}

/* ---- time, begin and end ---- */

static void on_tick(void *userdata) {
        struct raftio *rio = userdata;

        host_after(rio->host, rio->tick_usec, on_tick, NULL, rio);
        update_capacity(rio);
        rio->tick(&rio->io);
}

static int start(struct raft_io *io, unsigned msecs, raft_io_tick_cb tick, raft_io_recv_cb receive) {
        struct raftio *rio = rio_of(io);

        rio->tick = tick;
        rio->receive = receive;
        rio->tick_usec = msecs * UINT64_C(1000);
        host_after(rio->host, rio->tick_usec, on_tick, NULL, rio);
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

/* When a snapshot cannot be got, libraft frees what it has not set: so it gets it, and what it then sends goes nowhere. */
static void cancel(struct request *request) {
        switch (request->kind) {
        case REQUEST_APPEND:
                request->append->cb(request->append, RAFT_CANCELED);
                break;
        case REQUEST_PUT:
                request->put->cb(request->put, RAFT_CANCELED);
                break;
        case REQUEST_GET:
                request->get->cb(request->get, load_snapshot(request->rio), 0);
                break;
        case REQUEST_TRUNCATE:
                break;
        }
        request_free(request);
}

static void close_io(struct raft_io *io, raft_io_close_cb cb) {
        struct raftio *rio = rio_of(io);

        while (!TAILQ_EMPTY(&rio->requests)) {
                struct request *request = TAILQ_FIRST(&rio->requests);

                TAILQ_REMOVE(&rio->requests, request, entry);
                cancel(request);
        }
        if (cb)
                cb(io);
}

void raftio_kill(struct raftio *rio) {
        rio->killed = true;
}

struct raftio *raftio_create(struct host *host, struct disk *disk, raftio_send_fn send, void *userdata) {
        struct raftio *rio = xcalloc(1, sizeof(*rio));

        rio->host = host;
        rio->disk = disk;
        rio->send = send;
        rio->userdata = userdata;
        rio->ahead_bytes = AHEAD_BYTES;
        TAILQ_INIT(&rio->requests);
        rio->io = (struct raft_io) { .version = 1,
                                     .impl = rio,
                                     .init = init,
                                     .close = close_io,
                                     .load = load,
                                     .start = start,
                                     .bootstrap = bootstrap,
                                     .recover = recover,
                                     .set_term = set_term,
                                     .set_vote = set_vote,
                                     .send = send_message,
                                     .append = append,
                                     .truncate = truncate_log,
                                     .snapshot_put = snapshot_put,
                                     .snapshot_get = snapshot_get,
                                     .time = get_time,
                                     .random = get_random };
        update_capacity(rio);
        return rio;
}

void raftio_destroy(struct raftio *rio) {
        free(rio);
}

struct raft_io *raftio_get(struct raftio *rio) {
        return &rio->io;
}
