#include "daemon/image/writer.h"

#include <string.h>

#define XXH_STATIC_LINKING_ONLY /* for the state on the stack */
#include <xxhash.h>

#include "common/util.h"
#include "daemon/image/chunk.h"
#include "daemon/image/zero.h"

/* Runs of a chunk of data: at most one per block, and the unaligned ends. */
#define RUNS_MAX (IMAGE_PAYLOAD_MAX_BYTES / IMAGE_BLOCK_BYTES + 2U)
/* The largest size that runs add to the head of a data chunk: three bytes each and five for the
 * number of a block sent ahead, tags, lengths, checksum, codec. Less than a block: see
 * data_compact(). */
#define RUNS_HEAD_BYTES (RUNS_MAX * 8U + 64U)
_Static_assert(RUNS_HEAD_BYTES < IMAGE_BLOCK_BYTES, "the head of a chunk may grow into the first elided block only");

struct slot {
        bool open;
        struct image_object object; /* its strings are ours */
};

struct image_writer {
        const struct image_sink *sink;
        const struct image_delta *delta;
        const struct image_encoder *encoder;
        struct image_figures figures;
        struct slot slots[IMAGE_SLOTS_MAX];
        uint32_t slots_open;
        uint32_t slot_hint; /* none below is free */
        bool ended;

        uint8_t *area; /* lent by the sink while a buffer is out */
        uint8_t *buffer; /* where the caller reads to, in area */
        size_t buffer_bytes;
        uint8_t *coded; /* with an encoder: what it makes of a payload */
        size_t data_head_bytes;

        uint64_t runs[RUNS_MAX];
        size_t n_runs;
        uint64_t have_blocks[RUNS_MAX];
        size_t n_have_blocks;
        uint64_t have_next; /* the block that would go on the last run */
};

static int chunk_commit(struct image_writer *w, uint8_t *area, size_t size_bytes, struct rm_error *err) {
        image_chunk_seal(area, size_bytes, w->figures.chunks);
        w->figures.chunks++;
        w->figures.wire_bytes += size_bytes + IMAGE_CHECKSUM_BYTES;
        return w->sink->commit(w->sink->ctx, size_bytes + IMAGE_CHECKSUM_BYTES, err);
}

/* A chunk without payload. */
static int chunk_write(struct image_writer *w, const Rm__ImageChunk *chunk, struct rm_error *err) {
        size_t size_bytes = image_chunk_head_bytes(chunk);
        uint8_t *area;

        if (w->ended || w->buffer)
                return error_set(err, -EBUSY, "the image stream has ended, or a buffer is out");
        if (size_bytes > FRAME_HEADER_BYTES + IMAGE_HEADER_MAX_BYTES)
                return error_set(err, -EMSGSIZE, "the header of a chunk is too long");
        area = w->sink->reserve(w->sink->ctx, size_bytes + IMAGE_CHECKSUM_BYTES, err);
        if (!area)
                return err ? err->code : -EIO;
        image_chunk_head_write(chunk, area);
        return chunk_commit(w, area, size_bytes, err);
}

static int begin_write(struct image_writer *w, struct rm_error *err) {
        Rm__ImageBegin begin = RM__IMAGE_BEGIN__INIT;
        Rm__ImageChunk chunk = RM__IMAGE_CHUNK__INIT;

        begin.version = IMAGE_VERSION;
        begin.codec = IMAGE_CODEC_NONE;
        begin.has_block_bytes = true;
        begin.block_bytes = IMAGE_BLOCK_BYTES;
        chunk.body_case = RM__IMAGE_CHUNK__BODY_BEGIN;
        chunk.begin = &begin;
        return chunk_write(w, &chunk, err);
}

static size_t plain_data_head_bytes(void) {
        Rm__ImageData data = RM__IMAGE_DATA__INIT;
        Rm__ImageChunk chunk = RM__IMAGE_CHUNK__INIT;

        chunk.body_case = RM__IMAGE_CHUNK__BODY_DATA;
        chunk.data = &data;
        return image_chunk_head_bytes(&chunk);
}

int image_writer_create(const struct image_sink *sink, const struct image_delta *delta, const struct image_encoder *encoder,
                        struct image_writer **ret_writer, struct rm_error *err) {
        struct image_writer *w = xcalloc(1, sizeof(*w));
        int r;

        w->sink = sink;
        w->delta = delta && delta->peer_has ? delta : NULL;
        w->encoder = encoder;
        if (encoder)
                w->coded = xcalloc(1, IMAGE_PAYLOAD_MAX_BYTES);
        w->data_head_bytes = plain_data_head_bytes();
        r = begin_write(w, err);
        if (r < 0) {
                image_writer_destroy(w);
                return r;
        }
        *ret_writer = w;
        return 0;
}

static void slot_release(struct slot *s) {
        free((char *) s->object.role);
        free((char *) s->object.path);
        free((char *) s->object.target);
        *s = (struct slot) { 0 };
}

void image_writer_destroy(struct image_writer *w) {
        if (!w)
                return;
        for (size_t i = 0; i < IMAGE_SLOTS_MAX; i++)
                slot_release(&w->slots[i]);
        free(w->coded);
        free(w);
}

/* The lowest one: older receivers know fewer, and those are enough for what they understand. */
static uint32_t slot_take(struct image_writer *w, const struct image_object *object) {
        uint32_t i = w->slot_hint;

        while (w->slots[i].open)
                i++;
        w->slots[i].open = true;
        w->slots[i].object = *object;
        w->slots[i].object.role = xstrdup(object->role);
        w->slots[i].object.path = xstrdup(object->path);
        w->slots[i].object.target = xstrdup(object->target);
        w->slots[i].object.attributes = NULL; /* on the wire by now, and not needed again */
        w->slots[i].object.n_attributes = 0;
        w->slot_hint = i + 1;
        w->slots_open++;
        return i;
}

static char *string_or_null(const char *s) {
        return *s ? (char *) s : NULL;
}

/* Values stay the object's. */
static void attributes_put(const struct image_object *o, Rm__ImageAttribute *to, Rm__ImageAttribute **ret_list) {
        for (size_t i = 0; i < o->n_attributes; i++) {
                rm__image_attribute__init(&to[i]);
                to[i].name = (char *) o->attributes[i].name;
                to[i].value.data = (uint8_t *) o->attributes[i].value;
                to[i].value.len = o->attributes[i].value_bytes;
                ret_list[i] = &to[i];
        }
}

static int open_write(struct image_writer *w, const struct image_object *o, uint32_t slot, struct rm_error *err) {
        Rm__ImageOpen open = RM__IMAGE_OPEN__INIT;
        Rm__ImageChunk chunk = RM__IMAGE_CHUNK__INIT;
        cleanup_free Rm__ImageAttribute *attributes = xcalloc(o->n_attributes + 1, sizeof(*attributes));
        cleanup_free Rm__ImageAttribute **list = xcalloc(o->n_attributes + 1, sizeof(Rm__ImageAttribute *));

        open.slot = slot;
        open.kind = o->kind;
        open.role = string_or_null(o->role);
        open.path = string_or_null(o->path);
        open.target = string_or_null(o->target);
        open.has_mode = open.has_uid = open.has_gid = open.has_mtime_sec = open.has_mtime_nsec =
                o->kind != RM__IMAGE_KIND__IMAGE_KIND_CRIU;
        open.mode = o->mode;
        open.uid = o->uid;
        open.gid = o->gid;
        open.mtime_sec = o->mtime_sec;
        open.mtime_nsec = o->mtime_nsec;
        open.has_ahead = o->ahead > 0;
        open.ahead = o->ahead;
        attributes_put(o, attributes, list);
        open.attributes = list;
        open.n_attributes = o->n_attributes;
        chunk.body_case = RM__IMAGE_CHUNK__BODY_OPEN;
        chunk.open = &open;
        return chunk_write(w, &chunk, err);
}

int image_writer_open(struct image_writer *w, const struct image_object *object, uint32_t *ret_slot, struct rm_error *err) {
        bool has_data = image_kind_has_data(object->kind);
        uint32_t slot = 0;
        int r;

        r = image_object_check(object, err);
        if (r < 0)
                return r;
        if (w->figures.objects >= IMAGE_OBJECTS_MAX)
                return error_set(err, -EFBIG, "more than %u files and directories", IMAGE_OBJECTS_MAX);
        if (has_data && w->slots_open >= IMAGE_SLOTS_MAX)
                return error_set(err, -EMFILE, "more than %u files open at once", IMAGE_SLOTS_MAX);
        if (has_data)
                slot = slot_take(w, object);
        r = open_write(w, object, slot, err);
        if (r < 0)
                return r;
        w->figures.objects++;
        if (ret_slot)
                *ret_slot = slot;
        return 0;
}

void *image_writer_buffer(struct image_writer *w, size_t size_bytes, struct rm_error *err) {
        size_t space_bytes = w->data_head_bytes + size_bytes + RUNS_HEAD_BYTES + IMAGE_CHECKSUM_BYTES;

        if (w->ended || size_bytes > IMAGE_PAYLOAD_MAX_BYTES) {
                (void) error_set(err, -EINVAL, "no room in the image stream");
                return NULL;
        }
        w->area = w->sink->reserve(w->sink->ctx, space_bytes, err);
        if (!w->area)
                return NULL;
        w->buffer = w->area + w->data_head_bytes;
        w->buffer_bytes = size_bytes;
        return w->buffer;
}

static void run_add(struct image_writer *w, enum image_run_kind kind, uint64_t size_bytes) {
        uint64_t *last = w->n_runs > 0 ? &w->runs[w->n_runs - 1] : NULL;

        if (last && (*last & ((1U << IMAGE_RUN_KIND_BITS) - 1)) == (uint64_t) kind)
                *last += size_bytes << IMAGE_RUN_KIND_BITS;
        else
                w->runs[w->n_runs++] = size_bytes << IMAGE_RUN_KIND_BITS | kind;
}

/* Blocks that lie one after another at the receiver too make one run. */
static void run_add_have(struct image_writer *w, uint64_t number) {
        bool follows = w->n_runs > 0 && w->n_have_blocks > 0 && number == w->have_next &&
                       (w->runs[w->n_runs - 1] & ((1U << IMAGE_RUN_KIND_BITS) - 1)) == IMAGE_RUN_HAVE;

        if (follows) {
                w->runs[w->n_runs - 1] += (uint64_t) IMAGE_BLOCK_BYTES << IMAGE_RUN_KIND_BITS;
        } else {
                w->runs[w->n_runs++] = (uint64_t) IMAGE_BLOCK_BYTES << IMAGE_RUN_KIND_BITS | IMAGE_RUN_HAVE;
                w->have_blocks[w->n_have_blocks++] = number;
        }
        w->have_next = number + 1;
}

static enum image_run_kind block_kind(const struct image_writer *w, const struct slot *s, uint64_t offset, const uint8_t *block,
                                      size_t size_bytes, bool last, uint64_t *ret_number) {
        bool whole = size_bytes == IMAGE_BLOCK_BYTES && offset % IMAGE_BLOCK_BYTES == 0;

        if ((whole || last) && image_block_is_zero(block, size_bytes))
                return IMAGE_RUN_ZERO;
        if (whole && w->delta && s->object.kind != RM__IMAGE_KIND__IMAGE_KIND_BLOCKS && !image_kind_is_memory(s->object.kind) &&
            !image_object_replaces(&s->object) && w->delta->peer_has(w->delta->ctx, block, ret_number))
                return IMAGE_RUN_HAVE;
        return IMAGE_RUN_DATA;
}

/* Cuts the buffer into runs. Returns whether any block is to be fetched by the receiver, and the
 * checksum of those. */
static bool data_scan(struct image_writer *w, const struct slot *s, uint64_t offset, size_t size_bytes, uint64_t *ret_checksum) {
        XXH3_state_t have;
        bool any_have = false;

        w->n_runs = w->n_have_blocks = 0;
        for (size_t at = 0; at < size_bytes;) {
                size_t n = IMAGE_BLOCK_BYTES - (offset + at) % IMAGE_BLOCK_BYTES;
                enum image_run_kind kind;
                uint64_t number = 0;

                if (n > size_bytes - at)
                        n = size_bytes - at;
                kind = block_kind(w, s, offset + at, w->buffer + at, n, at + n == size_bytes, &number);
                if (kind == IMAGE_RUN_HAVE) {
                        if (!any_have)
                                (void) XXH3_64bits_reset(&have);
                        any_have = true;
                        (void) XXH3_64bits_update(&have, w->buffer + at, n);
                        run_add_have(w, number);
                } else
                        run_add(w, kind, n);
                at += n;
        }
        if (any_have)
                *ret_checksum = XXH3_64bits_digest(&have);
        return any_have;
}

static size_t runs_bytes(const struct image_writer *w, enum image_run_kind kind) {
        size_t sum = 0;

        for (size_t i = 0; i < w->n_runs; i++)
                if ((w->runs[i] & ((1U << IMAGE_RUN_KIND_BITS) - 1)) == (uint64_t) kind)
                        sum += (size_t) (w->runs[i] >> IMAGE_RUN_KIND_BITS);
        return sum;
}

/* Moves the data runs of the buffer together, to `out`. In place `out` may be a little to the right
 * of the buffer, by what the head has grown; that is less than a block, and whole blocks lie
 * between two data runs, so no run is overwritten before it is moved. */
static void data_compact(const struct image_writer *w, uint8_t *out) {
        const uint8_t *in = w->buffer;

        if (w->n_runs == 1 && out == in)
                return;
        for (size_t i = 0; i < w->n_runs; i++) {
                size_t n = (size_t) (w->runs[i] >> IMAGE_RUN_KIND_BITS);

                if ((w->runs[i] & ((1U << IMAGE_RUN_KIND_BITS) - 1)) == IMAGE_RUN_DATA) {
                        memmove(out, in, n);
                        out += n;
                }
                in += n;
        }
}

/* `payload` is where it lies in the area when it is stored as it is. What the encoder makes of it
 * comes behind the head, which has become longer by then: less than what was kept free for runs. */
static void data_encode(struct image_writer *w, Rm__ImageChunk *chunk, const uint8_t *payload) {
        size_t packed_bytes = chunk->payload_bytes;
        size_t coded_bytes = 0;
        enum image_codec codec = w->encoder->encode(w->encoder->ctx, payload, packed_bytes, w->coded, &coded_bytes);

        if (codec == IMAGE_CODEC_NONE)
                return;
        chunk->data->has_packed_bytes = chunk->data->has_codec = true;
        chunk->data->packed_bytes = (uint32_t) packed_bytes;
        chunk->data->codec = (uint32_t) codec;
        chunk->payload_bytes = (uint32_t) coded_bytes;
        memcpy(w->area + image_chunk_head_bytes(chunk), w->coded, coded_bytes);
        w->figures.coded_bytes[codec] += packed_bytes;
        w->figures.saved_bytes += packed_bytes - coded_bytes;
}

static int data_write(struct image_writer *w, Rm__ImageChunk *chunk, struct rm_error *err) {
        uint8_t *payload = w->area + image_chunk_head_bytes(chunk);

        data_compact(w, payload);
        chunk->payload_bytes = (uint32_t) runs_bytes(w, IMAGE_RUN_DATA);
        if (w->encoder && chunk->payload_bytes > 0)
                data_encode(w, chunk, payload);
        image_chunk_head_write(chunk, w->area);
        return chunk_commit(w, w->area, image_chunk_head_bytes(chunk) + chunk->payload_bytes, err);
}

static int range_check(const struct image_writer *w, uint32_t slot, uint64_t offset, uint64_t size_bytes, struct rm_error *err) {
        if (slot >= IMAGE_SLOTS_MAX || !w->slots[slot].open)
                return error_set(err, -EINVAL, "contents for a file that is not open");
        if (offset > IMAGE_OBJECT_MAX_BYTES || size_bytes > IMAGE_OBJECT_MAX_BYTES - offset)
                return error_set(err, -EFBIG, "'%s' is too large", w->slots[slot].object.path);
        if (w->slots[slot].object.kind == RM__IMAGE_KIND__IMAGE_KIND_PAGES &&
            (offset % IMAGE_BLOCK_BYTES || size_bytes % IMAGE_BLOCK_BYTES))
                return error_set(err, -EINVAL, "pages of process %s that are not whole", w->slots[slot].object.path);
        return 0;
}

int image_writer_data(struct image_writer *w, uint32_t slot, uint64_t offset, size_t size_bytes, struct rm_error *err) {
        Rm__ImageData data = RM__IMAGE_DATA__INIT;
        Rm__ImageChunk chunk = RM__IMAGE_CHUNK__INIT;
        uint64_t have_checksum = 0;
        int r;

        r = range_check(w, slot, offset, size_bytes, err);
        if (r == 0 && (!w->buffer || size_bytes > w->buffer_bytes))
                r = error_set(err, -EINVAL, "no buffer of %zu bytes is out", size_bytes);
        if (r == 0 && size_bytes > 0) {
                data.slot = slot;
                data.offset = offset;
                data.raw_bytes = size_bytes;
                data.has_have_checksum = data_scan(w, &w->slots[slot], offset, size_bytes, &have_checksum);
                data.have_checksum = have_checksum;
                if (w->n_runs > 1 || (w->runs[0] & ((1U << IMAGE_RUN_KIND_BITS) - 1)) != IMAGE_RUN_DATA) {
                        data.runs = w->runs;
                        data.n_runs = w->n_runs;
                        data.have_blocks = w->have_blocks;
                        data.n_have_blocks = w->n_have_blocks;
                }
                chunk.body_case = RM__IMAGE_CHUNK__BODY_DATA;
                chunk.data = &data;
                r = data_write(w, &chunk, err);
                w->figures.raw_bytes += size_bytes;
                w->figures.zero_bytes += runs_bytes(w, IMAGE_RUN_ZERO);
                w->figures.have_bytes += runs_bytes(w, IMAGE_RUN_HAVE);
        }
        w->area = NULL;
        w->buffer = NULL;
        return r;
}

int image_writer_zero(struct image_writer *w, uint32_t slot, uint64_t offset, uint64_t size_bytes, struct rm_error *err) {
        Rm__ImageData data = RM__IMAGE_DATA__INIT;
        Rm__ImageChunk chunk = RM__IMAGE_CHUNK__INIT;
        uint64_t run = size_bytes << IMAGE_RUN_KIND_BITS | IMAGE_RUN_ZERO;
        int r;

        r = range_check(w, slot, offset, size_bytes, err);
        if (r < 0 || size_bytes == 0)
                return r;
        data.slot = slot;
        data.offset = offset;
        data.raw_bytes = size_bytes;
        data.runs = &run;
        data.n_runs = 1;
        chunk.body_case = RM__IMAGE_CHUNK__BODY_DATA;
        chunk.data = &data;
        w->figures.raw_bytes += size_bytes;
        w->figures.zero_bytes += size_bytes;
        return chunk_write(w, &chunk, err);
}

int image_writer_close(struct image_writer *w, uint32_t slot, uint64_t size_bytes, struct rm_error *err) {
        Rm__ImageClose close = RM__IMAGE_CLOSE__INIT;
        Rm__ImageChunk chunk = RM__IMAGE_CHUNK__INIT;
        int r;

        r = range_check(w, slot, 0, size_bytes, err);
        if (r < 0)
                return r;
        close.slot = slot;
        close.size_bytes = size_bytes;
        chunk.body_case = RM__IMAGE_CHUNK__BODY_CLOSE;
        chunk.close = &close;
        r = chunk_write(w, &chunk, err);
        if (r < 0)
                return r;
        slot_release(&w->slots[slot]);
        w->slots_open--;
        if (slot < w->slot_hint)
                w->slot_hint = slot;
        return 0;
}

int image_writer_end(struct image_writer *w, struct rm_error *err) {
        Rm__ImageEnd end = RM__IMAGE_END__INIT;
        Rm__ImageChunk chunk = RM__IMAGE_CHUNK__INIT;
        int r;

        if (w->slots_open > 0)
                return error_set(err, -EBUSY, "%u files are incomplete", w->slots_open);
        end.chunks = w->figures.chunks;
        end.objects = w->figures.objects;
        end.raw_bytes = w->figures.raw_bytes;
        chunk.body_case = RM__IMAGE_CHUNK__BODY_END;
        chunk.end = &end;
        r = chunk_write(w, &chunk, err);
        if (r == 0)
                w->ended = true;
        return r;
}

const struct image_figures *image_writer_figures(const struct image_writer *w) {
        return &w->figures;
}
