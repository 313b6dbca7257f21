#include "daemon/mover/chunk_queue.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>

#include "common/util.h"

/* A chunk lies in one of them: so large that little is left over at the end. The kernel gives only
 * what is used. */
#define BLOCK_BYTES (16U << 20)

struct block {
        TAILQ_ENTRY(block) link;
        size_t used_bytes;
        size_t read_bytes; /* of these */
        uint8_t *data;
};

struct chunk_queue {
        struct image_sink sink;
        struct image_source source;
        int (*added)(void *ctx, struct rm_error *err);
        void *ctx;
        uint64_t bytes;
        TAILQ_HEAD(block_list, block) blocks;
};

static int block_add(struct chunk_queue *q, struct rm_error *err) {
        void *data = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        struct block *block;

        if (data == MAP_FAILED)
                return error_sys(err, -errno, "memory for what is to be stored");
        block = xcalloc(1, sizeof(*block));
        block->data = data;
        TAILQ_INSERT_TAIL(&q->blocks, block, link);
        return 0;
}

static void first_remove(struct chunk_queue *q) {
        struct block *block = TAILQ_FIRST(&q->blocks);

        TAILQ_REMOVE(&q->blocks, block, link);
        (void) munmap(block->data, BLOCK_BYTES);
        free(block);
}

static uint8_t *queue_reserve(void *ctx, size_t size_bytes, struct rm_error *err) {
        struct chunk_queue *q = ctx;
        struct block *last = TAILQ_LAST(&q->blocks, block_list);

        if (last && last->read_bytes == last->used_bytes)
                last->read_bytes = last->used_bytes = 0;
        if ((!last || size_bytes > BLOCK_BYTES - last->used_bytes) && block_add(q, err) < 0)
                return NULL;
        last = TAILQ_LAST(&q->blocks, block_list);
        return last->data + last->used_bytes;
}

static int queue_commit(void *ctx, size_t size_bytes, struct rm_error *err) {
        struct chunk_queue *q = ctx;

        TAILQ_LAST(&q->blocks, block_list)->used_bytes += size_bytes;
        q->bytes += size_bytes;
        return q->added(q->ctx, err);
}

static int queue_read(void *ctx, void *ret_data, size_t size_bytes, struct rm_error *err) {
        struct chunk_queue *q = ctx;
        uint8_t *to = ret_data;

        if (size_bytes > q->bytes)
                return error_set(err, -ENODATA, "there is no chunk in memory");
        while (size_bytes > 0) {
                struct block *first = TAILQ_FIRST(&q->blocks);
                size_t n = first->used_bytes - first->read_bytes;

                n = n < size_bytes ? n : size_bytes;
                memcpy(to, first->data + first->read_bytes, n);
                first->read_bytes += n;
                q->bytes -= n;
                to += n;
                size_bytes -= n;
                /* The last one stays: memory of it may be lent. */
                if (first->read_bytes == first->used_bytes && TAILQ_NEXT(first, link))
                        first_remove(q);
        }
        return 0;
}

struct chunk_queue *chunk_queue_create(int (*added)(void *ctx, struct rm_error *err), void *ctx) {
        struct chunk_queue *q = xcalloc(1, sizeof(*q));

        q->sink = (struct image_sink) { .ctx = q, .reserve = queue_reserve, .commit = queue_commit };
        q->source = (struct image_source) { .ctx = q, .read = queue_read };
        q->added = added;
        q->ctx = ctx;
        TAILQ_INIT(&q->blocks);
        return q;
}

void chunk_queue_destroy(struct chunk_queue *q) {
        if (!q)
                return;
        while (!TAILQ_EMPTY(&q->blocks))
                first_remove(q);
        free(q);
}

const struct image_sink *chunk_queue_sink(struct chunk_queue *q) {
        return &q->sink;
}

const struct image_source *chunk_queue_source(struct chunk_queue *q) {
        return &q->source;
}

uint64_t chunk_queue_bytes(const struct chunk_queue *q) {
        return q->bytes;
}
