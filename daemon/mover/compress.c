#include "daemon/mover/compress.h"

#include "common/util.h"
#include "daemon/mover/choice.h"

/* Less is not worth it, whatever the codec. */
#define PAYLOAD_LEAST_BYTES 512U
/* The size of the samples that codecs are tried on: long enough that they find repetitions. */
#define SAMPLE_BYTES (64U << 10)
#define SAMPLE_LEAST_BYTES (4U << 10)

struct compress {
        struct image_encoder encoder;
        struct image_coder *coder;
        struct link *link;
        bool by_choice;
        enum image_codec fixed; /* when it is not */
        struct choice choice;
        struct link_figures figures; /* at the last chunk */
        uint64_t chunk_nsec;         /* thread_nsec() at its end; 0: there was none */
        uint64_t samples;
        uint8_t sample[SAMPLE_BYTES]; /* what a codec makes of one; of no use */
};

/* Encodes, and notes what that cost. */
static size_t encode_by(struct compress *c, enum image_codec codec, const void *in, size_t size_bytes, void *out,
                        size_t space_bytes) {
        uint64_t start_usec = now_usec();
        uint64_t start_nsec = thread_nsec();
        size_t n = image_encode(c->coder, codec, in, size_bytes, out, space_bytes);

        choice_encoded(&c->choice, codec, size_bytes, n, thread_nsec() - start_nsec, (now_usec() - start_usec) * 1000U);
        return n;
}

/* Compares all codecs on a part of the payload: each time on another part. */
static void sample(struct compress *c, const uint8_t *in, size_t size_bytes) {
        size_t n = size_bytes < SAMPLE_BYTES ? size_bytes : SAMPLE_BYTES;
        size_t places = size_bytes / n;
        const uint8_t *from = in + c->samples++ % places * n;
        uint64_t start_usec = now_usec();

        for (enum image_codec codec = IMAGE_CODEC_LZ4; codec < (enum image_codec) IMAGE_CODECS; codec++)
                /* The first time its tables have to be made. */
                if (c->samples == 1 && (c->choice.codecs & IMAGE_CODEC_BIT(codec)))
                        (void) image_encode(c->coder, codec, from, n, c->sample, n - 1);
        for (enum image_codec codec = IMAGE_CODEC_LZ4; codec < (enum image_codec) IMAGE_CODECS; codec++)
                if (c->choice.codecs & IMAGE_CODEC_BIT(codec))
                        (void) encode_by(c, codec, from, n, c->sample, n - 1);
        choice_sampled(&c->choice, now_usec() - start_usec, now_usec());
}

/* Since the last chunk: it was sealed and sent, and this one was read. */
static void measure(struct compress *c, size_t size_bytes) {
        struct link_figures now = link_figures(c->link);
        const struct link_figures *before = &c->figures;
        uint64_t nsec = c->chunk_nsec > 0 ? thread_nsec() - c->chunk_nsec : 0;
        struct choice_work work = {
                .payload_bytes = size_bytes,
                .sent_bytes = now.sent_bytes - before->sent_bytes,
                .send_nsec = now.send_nsec - before->send_nsec,
                .send_wall_nsec = now.send_wall_nsec - before->send_wall_nsec,
                .busy_bytes = now.busy_bytes - before->busy_bytes,
                .busy_usec = now.busy_usec - before->busy_usec,
                .idle_bytes = now.idle_bytes - before->idle_bytes,
        };

        work.read_nsec = nsec > work.send_nsec ? nsec - work.send_nsec : 0;
        choice_add(&c->choice, &work, now_usec());
        c->figures = now;
}

static enum image_codec choose(struct compress *c, const void *in, size_t size_bytes) {
        measure(c, size_bytes);
        if (size_bytes >= SAMPLE_LEAST_BYTES && choice_sample_due(&c->choice, now_usec()))
                sample(c, in, size_bytes);
        return choice_best(&c->choice);
}

static enum image_codec encode(void *ctx, const void *in, size_t size_bytes, void *out, size_t *ret_size_bytes) {
        struct compress *c = ctx;
        enum image_codec codec;
        size_t n = 0;

        if (size_bytes < PAYLOAD_LEAST_BYTES)
                return IMAGE_CODEC_NONE;
        codec = c->by_choice ? choose(c, in, size_bytes) : c->fixed;
        if (codec != IMAGE_CODEC_NONE)
                n = encode_by(c, codec, in, size_bytes, out, size_bytes - 1);
        if (c->by_choice)
                c->chunk_nsec = thread_nsec();
        *ret_size_bytes = n;
        return n > 0 ? codec : IMAGE_CODEC_NONE;
}

struct compress *compress_create(struct link *link, Rm__MoverCodec requested) {
        static const enum image_codec codecs[] = {
                [RM__MOVER_CODEC__MOVER_CODEC_LZ4] = IMAGE_CODEC_LZ4, [RM__MOVER_CODEC__MOVER_CODEC_ZSTD] = IMAGE_CODEC_ZSTD
        };
        uint32_t known = link_peer_codecs(link) & IMAGE_CODECS_KNOWN;
        struct compress *c = xcalloc(1, sizeof(*c));

        c->link = link;
        c->coder = image_coder_create();
        c->by_choice = requested == RM__MOVER_CODEC__MOVER_CODEC_AUTO && known != 0;
        if ((size_t) requested < ARRAY_SIZE(codecs) && (known & IMAGE_CODEC_BIT(codecs[requested])))
                c->fixed = codecs[requested];
        if (c->by_choice || c->fixed != IMAGE_CODEC_NONE)
                c->encoder = (struct image_encoder) { .ctx = c, .encode = encode };
        choice_init(&c->choice, known);
        return c;
}

void compress_destroy(struct compress *c) {
        if (!c)
                return;
        if (c->by_choice)
                choice_log(&c->choice);
        image_coder_destroy(c->coder);
        free(c);
}

const struct image_encoder *compress_encoder(const struct compress *c) {
        return c->encoder.encode ? &c->encoder : NULL;
}

void compress_limit(struct compress *c, uint64_t bytes_per_sec) {
        c->choice.limit_bytes_per_sec = (double) bytes_per_sec;
}
