#include "daemon/image/reader.h"

#include <string.h>

#include <xxhash.h>

#include "common/util.h"
#include "daemon/image/chunk.h"

struct slot {
        bool open;
        Rm__ImageKind kind;
        void *handle;
};

struct image_reader {
        const struct image_source *source;
        const struct image_target *target;
        const struct image_delta *delta;
        struct image_figures figures;
        struct slot slots[IMAGE_SLOTS_MAX];
        uint32_t slots_open;
        bool begun;
        bool ended;

        uint8_t *chunk;   /* one chunk, as it came */
        struct image_coder *coder;
        uint8_t *decoded; /* of the chunks with a codec: its output */
        uint8_t *have;    /* with a delta: the blocks of one chunk that were here */
};

int image_reader_create(const struct image_source *source, const struct image_target *target, const struct image_delta *delta,
                        struct image_reader **ret_reader, struct rm_error *err) {
        struct image_reader *r = xcalloc(1, sizeof(*r));

        r->source = source;
        r->target = target;
        r->delta = delta && delta->fetch ? delta : NULL;
        r->chunk = xcalloc(1, IMAGE_CHUNK_MAX_BYTES);
        r->coder = image_coder_create();
        r->decoded = xcalloc(1, IMAGE_PAYLOAD_MAX_BYTES);
        if (r->delta)
                r->have = xcalloc(1, IMAGE_PAYLOAD_MAX_BYTES);
        *ret_reader = r;
        return 0;
}

static void slot_release(struct image_reader *r, struct slot *s) {
        *s = (struct slot) { 0 };
        r->slots_open--;
}

void image_reader_destroy(struct image_reader *r) {
        if (!r)
                return;
        for (size_t i = 0; i < IMAGE_SLOTS_MAX; i++)
                if (r->slots[i].open) {
                        r->target->drop(r->target->ctx, r->slots[i].handle);
                        slot_release(r, &r->slots[i]);
                }
        free(r->chunk);
        free(r->decoded);
        image_coder_destroy(r->coder);
        free(r->have);
        free(r);
}

static int bad(struct rm_error *err, const char *what) {
        return error_set(err, -EBADMSG, "the image stream is damaged: %s", what);
}

static int source_read(struct image_reader *r, void *ret_data, size_t size_bytes, struct rm_error *err) {
        int k = r->source->read(r->source->ctx, ret_data, size_bytes, err);

        if (k == -ENODATA)
                return error_set(err, -EPIPE, "the image stream ended before its end mark");
        return k;
}

/* Reads one chunk and verifies it. */
static int chunk_read(struct image_reader *r, Rm__ImageChunk **ret_chunk, const uint8_t **ret_payload, struct rm_error *err) {
        uint32_t header_bytes = 0;
        size_t size_bytes;
        Rm__ImageChunk *chunk;
        int k;

        k = source_read(r, r->chunk, FRAME_HEADER_BYTES, err);
        if (k < 0)
                return k;
        if (frame_header_read(r->chunk, FRAME_MAGIC_IMAGE, IMAGE_HEADER_MAX_BYTES, &header_bytes) < 0)
                return bad(err, "not the start of a chunk");
        size_bytes = FRAME_HEADER_BYTES + header_bytes;
        k = source_read(r, r->chunk + FRAME_HEADER_BYTES, header_bytes, err);
        if (k < 0)
                return k;
        chunk = rm__image_chunk__unpack(NULL, header_bytes, r->chunk + FRAME_HEADER_BYTES);
        if (!chunk)
                return bad(err, "not the header of a chunk");
        if (chunk->payload_bytes > IMAGE_PAYLOAD_MAX_BYTES)
                k = bad(err, "a chunk that is too long");
        else
                k = source_read(r, r->chunk + size_bytes, chunk->payload_bytes + IMAGE_CHECKSUM_BYTES, err);
        if (k == 0 && !image_chunk_sealed(r->chunk, size_bytes + chunk->payload_bytes, r->figures.chunks))
                k = bad(err, "a checksum does not match");
        if (k < 0) {
                rm__image_chunk__free_unpacked(chunk, NULL);
                return k;
        }
        r->figures.chunks++;
        r->figures.wire_bytes += size_bytes + chunk->payload_bytes + IMAGE_CHECKSUM_BYTES;
        *ret_payload = r->chunk + size_bytes;
        *ret_chunk = chunk;
        return 0;
}

static int begin_apply(struct image_reader *r, const Rm__ImageBegin *m, struct rm_error *err) {
        if (r->begun)
                return bad(err, "it begins twice");
        if (m->version != IMAGE_VERSION)
                return error_set(err, -EPROTONOSUPPORT, "the image stream is of version %u, expected %u", m->version,
                                 IMAGE_VERSION);
        if (m->codec != IMAGE_CODEC_NONE)
                return error_set(err, -EPROTONOSUPPORT, "the image stream has codec %u for all chunks, expected 0", m->codec);
        if (m->block_bytes != IMAGE_BLOCK_BYTES)
                return error_set(err, -EPROTONOSUPPORT, "the image stream has blocks of %u bytes, expected %u", m->block_bytes,
                                 IMAGE_BLOCK_BYTES);
        r->begun = true;
        return 0;
}

static const char *string_or_empty(const char *s) {
        return s ? s : "";
}

static void slot_fill(struct image_reader *r, struct slot *s, Rm__ImageKind kind, void *handle) {
        s->open = true;
        s->kind = kind;
        s->handle = handle;
        r->slots_open++;
}

/* Names and values stay the message's. */
static struct image_attribute *attributes_of(const Rm__ImageOpen *m) {
        struct image_attribute *list = xcalloc(m->n_attributes + 1, sizeof(*list));

        for (size_t i = 0; i < m->n_attributes; i++)
                list[i] = (struct image_attribute) { .name = m->attributes[i]->name,
                                                     .value = m->attributes[i]->value.data,
                                                     .value_bytes = m->attributes[i]->value.len };
        return list;
}

static int open_apply(struct image_reader *r, const Rm__ImageOpen *m, struct rm_error *err) {
        cleanup_free struct image_attribute *attributes = attributes_of(m);
        struct image_object o = {
                .kind = m->kind,
                .role = string_or_empty(m->role),
                .path = string_or_empty(m->path),
                .target = string_or_empty(m->target),
                .mode = m->mode,
                .uid = m->uid,
                .gid = m->gid,
                .mtime_sec = m->mtime_sec,
                .mtime_nsec = m->mtime_nsec,
                .ahead = m->ahead,
                .attributes = attributes,
                .n_attributes = m->n_attributes,
        };
        bool has_data = image_kind_has_data(o.kind);
        void *handle = NULL;
        int k;

        k = image_object_check(&o, err);
        if (k < 0)
                return k;
        if (r->figures.objects >= IMAGE_OBJECTS_MAX)
                return error_set(err, -EFBIG, "more than %u files and directories", IMAGE_OBJECTS_MAX);
        if (has_data && (m->slot >= IMAGE_SLOTS_MAX || r->slots[m->slot].open))
                return bad(err, "a slot that cannot be opened");
        k = r->target->open(r->target->ctx, &o, &handle, err);
        if (k < 0)
                return k;
        r->figures.objects++;
        if (has_data)
                slot_fill(r, &r->slots[m->slot], o.kind, handle);
        return 0;
}

/* The sums over the runs of a data chunk. */
struct runs {
        uint64_t packed_bytes;
        uint64_t zero_bytes;
        uint64_t have_bytes;
        size_t have_runs;
};

static enum image_run_kind run_kind(uint64_t run) {
        return (enum image_run_kind)(run & ((1U << IMAGE_RUN_KIND_BITS) - 1));
}

static int runs_check(const Rm__ImageData *m, struct runs *ret_runs, struct rm_error *err) {
        struct runs sum = { 0 };
        uint64_t at = m->offset;

        if (m->offset > IMAGE_OBJECT_MAX_BYTES || m->raw_bytes > IMAGE_OBJECT_MAX_BYTES - m->offset)
                return bad(err, "bytes beyond the largest file");
        for (size_t i = 0; i < m->n_runs; i++) {
                uint64_t n = m->runs[i] >> IMAGE_RUN_KIND_BITS;

                if (n == 0 || n > m->offset + m->raw_bytes - at)
                        return bad(err, "runs that do not fit");
                switch (run_kind(m->runs[i])) {
                case IMAGE_RUN_DATA:
                        sum.packed_bytes += n;
                        break;
                case IMAGE_RUN_ZERO:
                        sum.zero_bytes += n;
                        break;
                case IMAGE_RUN_HAVE:
                        if (n % IMAGE_BLOCK_BYTES || at % IMAGE_BLOCK_BYTES)
                                return bad(err, "a delta that is not of whole blocks");
                        sum.have_bytes += n;
                        sum.have_runs++;
                        break;
                default:
                        return bad(err, "a run of an unknown kind");
                }
                at += n;
        }
        if (m->n_runs == 0)
                sum.packed_bytes = m->raw_bytes;
        else if (at != m->offset + m->raw_bytes)
                return bad(err, "runs that do not fill their chunk");
        if (sum.packed_bytes > IMAGE_PAYLOAD_MAX_BYTES || sum.have_bytes > IMAGE_PAYLOAD_MAX_BYTES)
                return bad(err, "a chunk with too much in it");
        if (m->n_have_blocks != sum.have_runs)
                return bad(err, "a delta without the numbers of its blocks");
        *ret_runs = sum;
        return 0;
}

/* Checks a chunk of a process's memory: it has whole pages, and none that was pre-copied. */
static int memory_check(const Rm__ImageData *m, Rm__ImageKind kind, const struct runs *runs, struct rm_error *err) {
        bool whole = m->offset % IMAGE_BLOCK_BYTES == 0 && m->raw_bytes % IMAGE_BLOCK_BYTES == 0;

        if (!image_kind_is_memory(kind))
                return 0;
        if (runs->have_bytes > 0)
                return bad(err, "memory from pre-copied blocks");
        if (image_kind_is_runs(kind)) {
                if (runs->zero_bytes > 0 || m->offset + m->raw_bytes > IMAGE_PRESENT_MAX_BYTES)
                        return bad(err, "a list of pages without end");
                return 0;
        }
        for (size_t i = 0; i < m->n_runs; i++)
                whole = whole && (m->runs[i] >> IMAGE_RUN_KIND_BITS) % IMAGE_BLOCK_BYTES == 0;
        return whole ? 0 : bad(err, "pages that are not whole");
}

static int payload_decode(struct image_reader *r, const Rm__ImageChunk *chunk, const struct runs *runs, const uint8_t **payload,
                          struct rm_error *err) {
        const Rm__ImageData *m = chunk->data;
        int k;

        if (!m->has_packed_bytes && !m->has_codec)
                return chunk->payload_bytes == runs->packed_bytes ? 0 : bad(err, "runs and payload differ");
        if (!m->has_packed_bytes || !m->has_codec || m->packed_bytes != runs->packed_bytes ||
            chunk->payload_bytes >= m->packed_bytes)
                return bad(err, "runs and payload differ");
        k = image_decode(r->coder, m->codec, *payload, chunk->payload_bytes, r->decoded, m->packed_bytes);
        if (k == -EPROTONOSUPPORT)
                return error_set(err, k, "the image stream needs codec %u, which this version does not know", m->codec);
        if (k < 0)
                return error_sys(err, k, "decode what codec %s has made", image_codec_name((enum image_codec) m->codec));
        r->figures.coded_bytes[m->codec] += m->packed_bytes;
        r->figures.saved_bytes += m->packed_bytes - chunk->payload_bytes;
        *payload = r->decoded;
        return 0;
}

/* All blocks of the chunk that are here already, verified before any of them is used. */
static int have_fetch(struct image_reader *r, const Rm__ImageData *m, const struct runs *runs, struct rm_error *err) {
        const uint64_t *number = m->have_blocks;
        uint8_t *out = r->have;

        if (runs->have_bytes == 0)
                return 0;
        if (!r->delta || !m->has_have_checksum)
                return bad(err, "a delta without pre-copied blocks");
        for (size_t i = 0; i < m->n_runs; i++) {
                size_t size_bytes = (size_t) (m->runs[i] >> IMAGE_RUN_KIND_BITS);
                int k;

                if (run_kind(m->runs[i]) != IMAGE_RUN_HAVE)
                        continue;
                if (*number >= IMAGE_BLOCKS_MAX)
                        return bad(err, "an invalid block number");
                k = r->delta->fetch(r->delta->ctx, *number++, size_bytes / IMAGE_BLOCK_BYTES, out);
                if (k < 0)
                        return error_sys(err, k, "a pre-copied block");
                out += size_bytes;
        }
        if (XXH3_64bits(r->have, (size_t) runs->have_bytes) != m->have_checksum)
                return bad(err, "a pre-copied block has other contents");
        return 0;
}

/* The sources of the runs of a chunk, as far as they have come. */
struct supply {
        const uint8_t *payload;
        const uint8_t *have;
        const uint64_t *have_block;
};

static int run_deliver(struct image_reader *r, const struct slot *s, enum image_run_kind kind, uint64_t offset, uint64_t size_bytes,
                       struct supply *from, struct rm_error *err) {
        const struct image_target *t = r->target;
        int k;

        if (kind == IMAGE_RUN_ZERO)
                return t->zero ? t->zero(t->ctx, s->handle, offset, size_bytes, err) : 0;
        k = t->data(t->ctx, s->handle, offset, kind == IMAGE_RUN_HAVE ? from->have : from->payload, (size_t) size_bytes, err);
        if (kind == IMAGE_RUN_DATA) {
                from->payload += size_bytes;
                return k;
        }
        if (k == 0 && r->delta->used)
                r->delta->used(r->delta->ctx, *from->have_block, size_bytes / IMAGE_BLOCK_BYTES, s->handle, offset);
        from->have += size_bytes;
        from->have_block++;
        return k;
}

static int data_apply(struct image_reader *r, const Rm__ImageChunk *chunk, const uint8_t *payload, struct rm_error *err) {
        const Rm__ImageData *m = chunk->data;
        uint64_t plain = m->raw_bytes << IMAGE_RUN_KIND_BITS | IMAGE_RUN_DATA;
        const uint64_t *list = m->n_runs > 0 ? m->runs : &plain;
        size_t n = m->n_runs > 0 ? m->n_runs : 1;
        struct supply supply;
        uint64_t at = m->offset;
        struct runs runs = { 0 };
        struct slot *s;
        int k;

        if (m->slot >= IMAGE_SLOTS_MAX || !r->slots[m->slot].open)
                return bad(err, "contents for a file that is not open");
        s = &r->slots[m->slot];
        k = runs_check(m, &runs, err);
        if (k == 0)
                k = memory_check(m, s->kind, &runs, err);
        if (k == 0)
                k = payload_decode(r, chunk, &runs, &payload, err);
        if (k == 0)
                k = have_fetch(r, m, &runs, err);
        supply = (struct supply) { payload, r->have, m->have_blocks };
        for (size_t i = 0; k == 0 && i < n; i++) {
                uint64_t size_bytes = list[i] >> IMAGE_RUN_KIND_BITS;

                if (size_bytes > 0)
                        k = run_deliver(r, s, run_kind(list[i]), at, size_bytes, &supply, err);
                at += size_bytes;
        }
        r->figures.raw_bytes += m->raw_bytes;
        r->figures.zero_bytes += runs.zero_bytes;
        r->figures.have_bytes += runs.have_bytes;
        return k;
}

static int close_apply(struct image_reader *r, const Rm__ImageClose *m, struct rm_error *err) {
        struct slot *s;
        void *handle;

        if (m->slot >= IMAGE_SLOTS_MAX || !r->slots[m->slot].open)
                return bad(err, "a close of a file that is not open");
        if (m->size_bytes > IMAGE_OBJECT_MAX_BYTES)
                return bad(err, "a file that is too large");
        s = &r->slots[m->slot];
        handle = s->handle;
        slot_release(r, s);
        return r->target->close(r->target->ctx, handle, m->size_bytes, err);
}

static int end_apply(struct image_reader *r, const Rm__ImageEnd *m, struct rm_error *err) {
        if (r->slots_open > 0)
                return bad(err, "it ends with open files");
        if (m->chunks != r->figures.chunks - 1 || m->objects != r->figures.objects || m->raw_bytes != r->figures.raw_bytes)
                return bad(err, "its totals do not match");
        if (r->target->end)
                r->target->end(r->target->ctx);
        r->ended = true;
        return 0;
}

static int chunk_apply(struct image_reader *r, const Rm__ImageChunk *chunk, const uint8_t *payload, struct rm_error *err) {
        if (!r->begun && chunk->body_case != RM__IMAGE_CHUNK__BODY_BEGIN)
                return bad(err, "the first chunk is missing");
        if (chunk->payload_bytes > 0 && chunk->body_case != RM__IMAGE_CHUNK__BODY_DATA)
                return bad(err, "an unexpected payload");
        switch (chunk->body_case) {
        case RM__IMAGE_CHUNK__BODY_BEGIN:
                return begin_apply(r, chunk->begin, err);
        case RM__IMAGE_CHUNK__BODY_OPEN:
                return open_apply(r, chunk->open, err);
        case RM__IMAGE_CHUNK__BODY_DATA:
                return data_apply(r, chunk, payload, err);
        case RM__IMAGE_CHUNK__BODY_CLOSE:
                return close_apply(r, chunk->close, err);
        case RM__IMAGE_CHUNK__BODY_END:
                return end_apply(r, chunk->end, err);
        default:
                return bad(err, "a chunk of an unknown kind");
        }
}

int image_reader_step(struct image_reader *r, struct rm_error *err) {
        Rm__ImageChunk *chunk = NULL;
        const uint8_t *payload = NULL;
        int k;

        if (r->ended)
                return error_set(err, -EINVAL, "the image stream has ended");
        k = chunk_read(r, &chunk, &payload, err);
        if (k < 0)
                return k;
        k = chunk_apply(r, chunk, payload, err);
        rm__image_chunk__free_unpacked(chunk, NULL);
        if (k < 0)
                return k;
        return r->ended ? 0 : 1;
}

int image_reader_run(struct image_reader *r, struct rm_error *err) {
        int k;

        do
                k = image_reader_step(r, err);
        while (k > 0);
        return k;
}

const struct image_figures *image_reader_figures(const struct image_reader *r) {
        return &r->figures;
}
