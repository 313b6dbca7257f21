#include "daemon/capsule/init/criu/image_memory.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/criu_images/fields.h"

enum {
        MM_MAPPING = 14, /* mm_entry */
        MAPPING_BEGIN = 1, /* vma_entry */
        MAPPING_END = 2,
        MAPPING_FLAGS = 6,
};

/* The image may grow: one entry of each mapping may become two bytes longer, and its length one. */
size_t image_memory_bytes(size_t size_bytes) {
        return 2 * size_bytes + 2 * CRIU_VARINT_BYTES;
}

static bool is_large(uint64_t begin, uint64_t end, uint64_t flags, uint64_t most_bytes) {
        return (flags & MAP_PRIVATE) && (flags & MAP_ANONYMOUS) && !(flags & (MAP_GROWSDOWN | MAP_NORESERVE)) && end > begin &&
               end - begin > most_bytes;
}

static uint8_t *put_mapping(uint8_t *to, struct criu_cursor mapping, const void *arg) {
        uint64_t begin = 0, end = 0, flags = 0;
        struct criu_cursor c = mapping;
        struct criu_field f;

        while (criu_next_field(&c, &f)) {
                if (f.number == MAPPING_BEGIN)
                        begin = f.value;
                if (f.number == MAPPING_END)
                        end = f.value;
                if (f.number == MAPPING_FLAGS)
                        flags = f.value;
        }
        if (!is_large(begin, end, flags, *(const uint64_t *) arg)) {
                memcpy(to, mapping.at, (size_t) (mapping.end - mapping.at));
                return to + (mapping.end - mapping.at);
        }
        to = criu_put_without(to, mapping, MAPPING_FLAGS);
        return criu_put_varint(criu_put_varint(to, MAPPING_FLAGS << 3 | CRIU_WIRE_VARINT), flags | MAP_NORESERVE);
}

size_t image_memory_unreserve(uint8_t *image, size_t size_bytes, uint64_t most_bytes, uint8_t *ret) {
        return criu_put_image(ret, image, size_bytes, CRIU_IMAGE_MAGIC_MM, MM_MAPPING, put_mapping, &most_bytes);
}
