/* Writes messages and images as CRIU does, for the tests of what rmd does to them. */
#ifndef RM_TESTS_UNIT_CAPSULE_CRIU_IMAGE_WRITER_H
#define RM_TESTS_UNIT_CAPSULE_CRIU_IMAGE_WRITER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "daemon/criu_images/fields.h"

/* A message of CRIU's, or an image. */
struct message {
        uint8_t bytes[1024];
        size_t size;
};

static inline void put(struct message *m, uint64_t value) {
        m->size = (size_t) (criu_put_varint(m->bytes + m->size, value) - m->bytes);
}

static inline void put_number(struct message *m, unsigned number, uint64_t value) {
        put(m, (uint64_t) number << 3);
        put(m, value);
}

static inline void put_bytes(struct message *m, unsigned number, const void *bytes, size_t size) {
        put(m, (uint64_t) number << 3 | CRIU_WIRE_BYTES);
        put(m, size);
        memcpy(m->bytes + m->size, bytes, size);
        m->size += size;
}

static inline void put_message(struct message *m, unsigned number, const struct message *inner) {
        put_bytes(m, number, inner->bytes, inner->size);
}

static inline struct message begin_image(uint32_t magic) {
        const uint32_t magics[] = { 0x54564319, magic };
        struct message image = { .size = sizeof(magics) };

        memcpy(image.bytes, magics, sizeof(magics));
        return image;
}

static inline void put_entry(struct message *image, const struct message *entry) {
        uint32_t size = (uint32_t) entry->size;

        memcpy(image->bytes + image->size, &size, sizeof(size));
        memcpy(image->bytes + image->size + sizeof(size), entry->bytes, entry->size);
        image->size += sizeof(size) + entry->size;
}

#endif
