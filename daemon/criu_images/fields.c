#include "daemon/criu_images/fields.h"

#include <string.h>

static bool next_varint(struct criu_cursor *c, uint64_t *ret) {
        uint64_t value = 0;

        for (unsigned shift = 0; shift < 64 && c->at < c->end; shift += 7) {
                uint8_t byte = *c->at++;

                value |= (uint64_t) (byte & 0x7f) << shift;
                if (!(byte & 0x80)) {
                        *ret = value;
                        return true;
                }
        }
        return false;
}

static bool take_field(struct criu_cursor *c, struct criu_field *ret) {
        uint64_t key, length;

        *ret = (struct criu_field) { .key = c->at };
        if (!next_varint(c, &key))
                return false;
        ret->number = key >> 3;
        if ((key & 7) == CRIU_WIRE_VARINT) {
                ret->varint = c->at;
                if (!next_varint(c, &ret->value))
                        return false;
                ret->varint_bytes = (size_t) (c->at - ret->varint);
                return true;
        }
        if ((key & 7) != CRIU_WIRE_BYTES || !next_varint(c, &length) || length > (size_t) (c->end - c->at))
                return false;
        ret->bytes = (struct criu_cursor) { c->at, c->at + length };
        c->at += length;
        return true;
}

bool criu_next_field(struct criu_cursor *c, struct criu_field *ret) {
        struct criu_cursor next = *c;

        if (!take_field(&next, ret))
                return false;
        *c = next;
        return true;
}

uint8_t *criu_put_varint(uint8_t *to, uint64_t value) {
        do
                *to++ = (uint8_t) ((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        while (value >>= 7);
        return to;
}

bool criu_next_entry(struct criu_cursor *c, struct criu_cursor *ret) {
        uint32_t length;

        if ((size_t) (c->end - c->at) < sizeof(length))
                return false;
        memcpy(&length, c->at, sizeof(length));
        if (length > (size_t) (c->end - c->at) - sizeof(length))
                return false;
        ret->at = c->at + sizeof(length);
        ret->end = c->at = ret->at + length;
        return true;
}

bool criu_image_open(uint8_t *image, size_t size_bytes, uint32_t magic, struct criu_cursor *ret) {
        uint32_t found;

        if (size_bytes < CRIU_IMAGE_MAGIC_BYTES)
                return false;
        memcpy(&found, image + sizeof(found), sizeof(found));
        *ret = (struct criu_cursor) { image + CRIU_IMAGE_MAGIC_BYTES, image + size_bytes };
        return found == magic;
}
