#include "daemon/image/chunk.h"

#include <endian.h>
#include <string.h>

#include <xxhash.h>

size_t image_chunk_head_bytes(const Rm__ImageChunk *chunk) {
        return FRAME_HEADER_BYTES + rm__image_chunk__get_packed_size(chunk);
}

void image_chunk_head_write(const Rm__ImageChunk *chunk, uint8_t *out) {
        size_t header_bytes = rm__image_chunk__pack(chunk, out + FRAME_HEADER_BYTES);

        frame_header_write(out, FRAME_MAGIC_IMAGE, (uint32_t) header_bytes);
}

void image_chunk_seal(uint8_t *chunk, size_t size_bytes, uint64_t number) {
        uint64_t sum = htobe64(XXH3_64bits_withSeed(chunk, size_bytes, number));

        memcpy(chunk + size_bytes, &sum, sizeof(sum));
}

bool image_chunk_sealed(const uint8_t *chunk, size_t size_bytes, uint64_t number) {
        uint64_t sum = htobe64(XXH3_64bits_withSeed(chunk, size_bytes, number));

        return memcmp(chunk + size_bytes, &sum, sizeof(sum)) == 0;
}
