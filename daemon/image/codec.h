/* Codecs of payloads: lz4 (its block format) and zstd (RFC 8878), each at its fastest regular
 * level. Pure. */
#ifndef RM_IMAGE_CODEC_H
#define RM_IMAGE_CODEC_H

#include <stddef.h>
#include <stdint.h>

/* The numbers are in the stream, in MoverWelcome and in MoverFigures. */
enum image_codec {
        IMAGE_CODEC_NONE = 0,
        IMAGE_CODEC_LZ4 = 1,
        IMAGE_CODEC_ZSTD = 2,
};
#define IMAGE_CODECS 3U
#define IMAGE_CODEC_BIT(codec) (1U << (codec))
/* The codecs that this version can decode, as a receiver names them. */
#define IMAGE_CODECS_KNOWN (IMAGE_CODEC_BIT(IMAGE_CODEC_LZ4) | IMAGE_CODEC_BIT(IMAGE_CODEC_ZSTD))

const char *image_codec_name(enum image_codec codec);

/* Working memory of codecs, for both directions; made as it is needed. */
struct image_coder;

struct image_coder *image_coder_create(void); /* never NULL */
void image_coder_destroy(struct image_coder *c); /* NULL ok */

/* Bytes in `out`, at most `space_bytes`; 0: it does not become that small. Sizes up to
 * IMAGE_PAYLOAD_MAX_BYTES; not for IMAGE_CODEC_NONE. */
size_t image_encode(struct image_coder *c, enum image_codec codec, const void *in, size_t size_bytes, void *out,
                    size_t space_bytes);

/* Exactly `out_bytes` into `out`, or -EBADMSG; -EPROTONOSUPPORT: no codec of this number. `in`
 * comes from outside: whatever is in it, nothing is written beyond `out_bytes`. Sizes up to
 * IMAGE_PAYLOAD_MAX_BYTES. */
int image_decode(struct image_coder *c, uint32_t codec, const void *in, size_t size_bytes, void *out, size_t out_bytes);

#endif
