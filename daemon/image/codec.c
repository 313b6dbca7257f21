#include "daemon/image/codec.h"

#include <errno.h>

#include <lz4.h>
#include <zstd.h>

#include "common/util.h"

/* Higher levels take several times as long for some per cent; lower ones are what lz4 is. */
#define ZSTD_LEVEL 1

struct image_coder {
        ZSTD_CCtx *zstd_encoder;
        ZSTD_DCtx *zstd_decoder;
};

const char *image_codec_name(enum image_codec codec) {
        static const char *const names[] = { [IMAGE_CODEC_NONE] = "none", [IMAGE_CODEC_LZ4] = "lz4", [IMAGE_CODEC_ZSTD] = "zstd" };

        return (size_t) codec < ARRAY_SIZE(names) ? names[codec] : "?";
}

struct image_coder *image_coder_create(void) {
        return xcalloc(1, sizeof(struct image_coder));
}

void image_coder_destroy(struct image_coder *c) {
        if (!c)
                return;
        (void) ZSTD_freeCCtx(c->zstd_encoder);
        (void) ZSTD_freeDCtx(c->zstd_decoder);
        free(c);
}

static size_t zstd_encode(struct image_coder *c, const void *in, size_t size_bytes, void *out, size_t space_bytes) {
        size_t n;

        if (!c->zstd_encoder)
                c->zstd_encoder = ZSTD_createCCtx();
        if (!c->zstd_encoder)
                return 0;
        n = ZSTD_compressCCtx(c->zstd_encoder, out, space_bytes, in, size_bytes, ZSTD_LEVEL);
        return ZSTD_isError(n) ? 0 : n;
}

size_t image_encode(struct image_coder *c, enum image_codec codec, const void *in, size_t size_bytes, void *out,
                    size_t space_bytes) {
        int n;

        if (codec == IMAGE_CODEC_ZSTD)
                return zstd_encode(c, in, size_bytes, out, space_bytes);
        n = LZ4_compress_default(in, out, (int) size_bytes, (int) space_bytes);
        return n > 0 ? (size_t) n : 0;
}

/* The input must be one frame that announces exactly that size: its decoder needs no memory for a
 * window then, whatever the frame asks for. */
static int zstd_decode(struct image_coder *c, const void *in, size_t size_bytes, void *out, size_t out_bytes) {
        if (ZSTD_getFrameContentSize(in, size_bytes) != out_bytes || ZSTD_findFrameCompressedSize(in, size_bytes) != size_bytes)
                return -EBADMSG;
        if (!c->zstd_decoder)
                c->zstd_decoder = ZSTD_createDCtx();
        if (!c->zstd_decoder)
                return -ENOMEM;
        return ZSTD_decompressDCtx(c->zstd_decoder, out, out_bytes, in, size_bytes) == out_bytes ? 0 : -EBADMSG;
}

int image_decode(struct image_coder *c, uint32_t codec, const void *in, size_t size_bytes, void *out, size_t out_bytes) {
        int n;

        switch (codec) {
        case IMAGE_CODEC_LZ4:
                n = LZ4_decompress_safe(in, out, (int) size_bytes, (int) out_bytes);
                return n >= 0 && (size_t) n == out_bytes ? 0 : -EBADMSG;
        case IMAGE_CODEC_ZSTD:
                return zstd_decode(c, in, size_bytes, out, out_bytes);
        default:
                return -EPROTONOSUPPORT;
        }
}
