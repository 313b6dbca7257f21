/* The requests of ranks to each other until a fence go as messages, and are carried out at their
 * targets. */
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "rtlib/ft/collective.h"
#include "rtlib/ft/data.h"
#include "rtlib/ft/deferred.h"
#include "rtlib/ft/ft.h"
#include "rtlib/ft/layout.h"
#include "rtlib/ft/window.h"

#define UNIT 64 /* bytes that counts in messages are of, since MPI counts by int */

struct result {
        struct result *next;
        void *data;
        int count;
        MPI_Datatype type;
        size_t bytes;
};

/* Followed by its runs and its data. */
struct head {
        uint32_t kind;
        uint32_t runs;
        int32_t op, type; /* as Fortran knows them, which is the same in all processes for those of MPI */
        int64_t at; /* in units of the target */
        uint64_t bytes;
};

static size_t rounded(size_t bytes, size_t to) {
        return (bytes + to - 1) / to * to;
}

static void *append(struct requests *r, size_t bytes) {
        size_t start = r->bytes;

        r->bytes += rounded(bytes, sizeof(uint64_t));
        if (r->bytes > r->space) {
                r->space = r->bytes * 2;
                r->data = xrealloc(r->data, r->space);
        }
        memset(r->data + start, 0, r->bytes - start);
        return r->data + start;
}

static void await_result(struct requests *to, const struct request *r, size_t bytes) {
        struct result *result = xcalloc(1, sizeof(*result));

        *result = (struct result) { NULL, r->out, r->out_count, r->out_type, bytes };
        if (to->last)
                to->last->next = result;
        else
                to->first = result;
        to->last = result;
        to->reply_bytes += rounded(bytes, sizeof(uint64_t));
        deferred_hold();
}

static bool has_result(enum request_kind kind) {
        return kind == REQUEST_GET || kind == REQUEST_GET_ACCUMULATE || kind == REQUEST_COMPARE_AND_SWAP;
}

static void write_request(struct requests *to, const struct request *r, const struct layout *l, MPI_Datatype basic) {
        size_t bytes = r->kind == REQUEST_GET ? 0 : l->bytes;
        struct head *head = append(to, sizeof(*head));

        *head = (struct head) { (uint32_t) r->kind, (uint32_t) l->n, 0, 0, r->at, bytes };
        if (basic) {
                head->op = r->op ? mpi.Op_c2f(r->op) : 0;
                head->type = mpi.Type_c2f(basic);
        }
        memcpy(append(to, l->n * sizeof(*l->runs)), l->runs, l->n * sizeof(*l->runs));
        if (bytes > 0)
                data_pack(r->in, r->in_count, r->in_type, append(to, bytes));
        if (r->kind == REQUEST_COMPARE_AND_SWAP)
                data_pack(r->compare, r->in_count, r->in_type, append(to, bytes));
}

int window_request(struct window *w, const struct request *r) {
        bool reduces = r->kind == REQUEST_ACCUMULATE || r->kind == REQUEST_GET_ACCUMULATE;
        MPI_Datatype basic = NULL;
        struct layout layout;
        struct requests *to;

        if (r->to == MPI_PROC_NULL)
                return MPI_SUCCESS;
        if (r->to < 0 || r->to >= w->ranks)
                return MPI_ERR_RANK;
        if (w->place[r->to] < 0)
                return MPI_SUCCESS;
        if (reduces && (basic = layout_basic_type(r->type)) == mpi.datatype_null)
                return MPI_ERR_TYPE;
        layout_init(&layout, r->count, r->type);
        if (r->kind != REQUEST_GET && data_bytes(r->in_count, r->in_type) != layout.bytes) {
                layout_finish(&layout);
                return MPI_ERR_COUNT;
        }
        if (layout.n > UINT32_MAX)
                ft_give_up("more than %u pieces of memory in one call on a window", UINT32_MAX);
        (void) pthread_mutex_lock(&w->lock);
        to = &w->to[w->place[r->to]];
        write_request(to, r, &layout, basic);
        if (has_result(r->kind))
                await_result(to, r, layout.bytes);
        (void) pthread_mutex_unlock(&w->lock);
        layout_finish(&layout);
        return MPI_SUCCESS;
}

/* ---- at the target ---- */

struct reader {
        const unsigned char *data;
        size_t bytes;
};

static const void *next(struct reader *r, size_t bytes) {
        const void *ret = r->data;

        bytes = rounded(bytes, sizeof(uint64_t));
        if (bytes > r->bytes)
                ft_give_up("what was asked of a window is not whole");
        r->data += bytes;
        r->bytes -= bytes;
        return ret;
}

static char *place(const struct window *w, const struct head *h, const struct run *run) {
        int64_t at = h->at * w->unit + run->at;

        if (!w->dynamic && (at < 0 || (uint64_t) at + run->bytes > (uint64_t) w->bytes))
                ft_give_up("another rank reaches beyond a window of %lld bytes: %llu bytes from %lld on", (long long) w->bytes,
                           (unsigned long long) run->bytes, (long long) at);
        return w->base + at;
}

static void read_memory(const struct window *w, const struct head *h, const struct run *runs, unsigned char *ret) {
        for (uint32_t i = 0; i < h->runs; i++) {
                memcpy(ret, place(w, h, &runs[i]), runs[i].bytes);
                ret += runs[i].bytes;
        }
}

static void write_memory(const struct window *w, const struct head *h, const struct run *runs, const unsigned char *data) {
        for (uint32_t i = 0; i < h->runs; i++) {
                memcpy(place(w, h, &runs[i]), data, runs[i].bytes);
                data += runs[i].bytes;
        }
}

static void combine(const struct head *h, const unsigned char *in, unsigned char *inout) {
        MPI_Datatype type = mpi.Type_f2c(h->type);
        MPI_Op op = mpi.Op_f2c(h->op);
        int size = 0;

        (void) mpi.Type_size(type, &size);
        if (op == mpi.op_no_op || size <= 0)
                return;
        if (op == mpi.op_replace)
                memcpy(inout, in, h->bytes);
        else
                (void) mpi.Reduce_local(in, inout, (int) (h->bytes / (size_t) size), type, op);
}

static size_t bytes_of_runs(const struct head *h, const struct run *runs) {
        size_t bytes = 0;

        for (uint32_t i = 0; i < h->runs; i++)
                bytes += runs[i].bytes;
        return bytes;
}

/* `*reply`: moved on behind what is said back. */
static void answer(struct window *w, const struct head *h, struct reader *r, unsigned char **reply) {
        const struct run *runs = next(r, h->runs * sizeof(*runs));
        size_t bytes = bytes_of_runs(h, runs);
        const unsigned char *in = h->kind == REQUEST_GET ? NULL : next(r, bytes),
                            *compare = h->kind == REQUEST_COMPARE_AND_SWAP ? next(r, bytes) : NULL;
        unsigned char *memory = xcalloc(bytes + 1, 1);

        if (h->kind != REQUEST_PUT)
                read_memory(w, h, runs, memory);
        if (has_result(h->kind)) {
                memcpy(*reply, memory, bytes);
                *reply += rounded(bytes, sizeof(uint64_t));
        }
        if (h->kind == REQUEST_ACCUMULATE || h->kind == REQUEST_GET_ACCUMULATE) {
                combine(h, in, memory);
                write_memory(w, h, runs, memory);
        } else if (h->kind == REQUEST_PUT || (compare && memcmp(memory, compare, bytes) == 0))
                write_memory(w, h, runs, in);
        free(memory);
}

static void answer_all(struct window *w, struct reader r, unsigned char *reply) {
        while (r.bytes >= sizeof(struct head)) {
                const struct head *h = next(&r, sizeof(*h));

                if (h->kind == REQUEST_END)
                        break;
                answer(w, h, &r, &reply);
        }
}

/* ---- messages ---- */

struct message {
        unsigned char *data; /* in the order of ranks */
        int *counts, *firsts; /* by rank, in units */
};

/* `counts`: taken over. */
static struct message message_create(int *counts, int ranks) {
        struct message m = { .counts = counts, .firsts = xcalloc((size_t) ranks, sizeof(int)) };
        size_t units = 0;

        for (int i = 0; i < ranks; i++) {
                m.firsts[i] = (int) units;
                units += (size_t) m.counts[i];
        }
        if (units > INT32_MAX)
                ft_give_up("more than %d bytes between two fences", INT32_MAX);
        m.data = xcalloc(units + 1, UNIT);
        return m;
}

static void message_finish(struct message *m) {
        free(m->data);
        free(m->counts);
        free(m->firsts);
}

static unsigned char *part(const struct message *m, int rank) {
        return m->data + (size_t) m->firsts[rank] * UNIT;
}

static int units(size_t bytes) {
        return (int) (rounded(bytes, UNIT) / UNIT);
}

static int exchange(struct window *w, const char *call, const struct message *out, const struct message *in) {
        struct op o = { .kind = OP_ALLTOALLV, .name = call, .root = -1 };
        MPI_Datatype type;
        int rc = mpi.Type_contiguous(UNIT, mpi.byte, &type);

        if (rc == MPI_SUCCESS)
                rc = mpi.Type_commit(&type);
        if (rc != MPI_SUCCESS)
                return rc;
        o.send = out->data;
        o.send_counts = out->counts;
        o.send_firsts = out->firsts;
        o.recv = in->data;
        o.recv_counts = in->counts;
        o.recv_firsts = in->firsts;
        o.send_type = o.recv_type = type;
        rc = collective(w->comm, &o);
        (void) mpi.Type_free(&type);
        return rc;
}

/* How much each rank asks of each, and how much it is to be given back: in units. */
static int exchange_counts(struct window *w, const char *call, int *out, int *in) {
        const struct op o = { .kind = OP_ALLTOALL,
                              .name = call,
                              .send = out,
                              .send_count = 2 * (int) sizeof(int),
                              .send_type = mpi.byte,
                              .recv = in,
                              .recv_count = 2 * (int) sizeof(int),
                              .recv_type = mpi.byte,
                              .root = -1 };

        return collective(w->comm, &o);
}

static int *every_second(const int *pairs, int first, int ranks) {
        int *ret = xcalloc((size_t) ranks, sizeof(*ret));

        for (int i = 0; i < ranks; i++)
                ret[i] = pairs[2 * i + first];
        return ret;
}

/* The data of a rank that was lost meanwhile may be there only in part. */
static bool is_whole(const struct window *w, int from) {
        return w->comm->now[from] >= 0;
}

static void take_results(struct window *w, const struct message *replies) {
        for (int from = 0; from < w->comm->size; from++) {
                const unsigned char *reply = part(replies, from);

                for (const struct result *r = w->to[from].first; r && is_whole(w, from); r = r->next) {
                        data_unpack(reply, r->bytes, r->data, r->count, r->type);
                        reply += rounded(r->bytes, sizeof(uint64_t));
                }
        }
}

static int exchange_all(struct window *w, const char *call, const int *out, const int *in, bool replies) {
        int n = w->comm->size, rc;
        struct message asked = message_create(every_second(out, 0, n), n), received = message_create(every_second(in, 0, n), n);
        struct message said = message_create(every_second(in, 1, n), n), results = message_create(every_second(out, 1, n), n);

        for (int i = 0; i < n; i++)
                if (w->to[i].bytes > 0)
                        memcpy(part(&asked, i), w->to[i].data, w->to[i].bytes);
        rc = exchange(w, call, &asked, &received);
        for (int i = 0; rc == MPI_SUCCESS && i < n; i++)
                if (is_whole(w, i))
                        answer_all(w, (struct reader) { part(&received, i), (size_t) received.counts[i] * UNIT }, part(&said, i));
        if (rc == MPI_SUCCESS && replies)
                rc = exchange(w, call, &said, &results);
        if (rc == MPI_SUCCESS && replies)
                take_results(w, &results);
        message_finish(&asked);
        message_finish(&received);
        message_finish(&said);
        message_finish(&results);
        return rc;
}

/* Does any rank ask anything, and anything that has a result? */
static int scan_who_asks(struct window *w, const char *call, int ret[2]) {
        int own[2] = { 0 };
        struct op o = { .kind = OP_ALLREDUCE, .name = call, .send = own, .recv = ret, .recv_count = 2, .root = -1 };

        o.recv_type = mpi.int_type;
        o.op = mpi.op_max;
        for (int i = 0; i < w->comm->size; i++) {
                own[0] |= w->to[i].bytes > 0;
                own[1] |= w->to[i].first != NULL;
        }
        return collective(w->comm, &o);
}

void requests_finish(struct requests *r) {
        while (r->first) {
                struct result *result = r->first;

                r->first = result->next;
                free(result);
                deferred_release();
        }
        free(r->data);
        *r = (struct requests) { 0 };
}

int window_exchange(struct window *w, const char *call) {
        int asks[2] = { 0 }, n = w->comm->size, rc = scan_who_asks(w, call, asks);
        int *out = xcalloc((size_t) n * 2, sizeof(*out)), *in = xcalloc((size_t) n * 2, sizeof(*in));

        for (int i = 0; i < n; i++) {
                out[2 * i] = units(w->to[i].bytes);
                out[2 * i + 1] = units(w->to[i].reply_bytes);
        }
        if (rc == MPI_SUCCESS && asks[0])
                rc = exchange_counts(w, call, out, in);
        if (rc == MPI_SUCCESS && asks[0])
                rc = exchange_all(w, call, out, in, asks[1]);
        for (int i = 0; i < n; i++)
                requests_finish(&w->to[i]);
        free(out);
        free(in);
        return rc;
}
