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

static uint8_t *put_bytes(uint8_t *to, const uint8_t *begin, const uint8_t *end) {
        memcpy(to, begin, (size_t) (end - begin));
        return to + (end - begin);
}

/* The bytes of the message lie behind `to` already, with room for its number and length before
 * them. */
static uint8_t *put_message(uint8_t *to, unsigned number, const uint8_t *begin, const uint8_t *end) {
        uint8_t *at = criu_put_varint(criu_put_varint(to, (uint64_t) number << 3 | CRIU_WIRE_BYTES), (uint64_t) (end - begin));

        memmove(at, begin, (size_t) (end - begin));
        return at + (end - begin);
}

uint8_t *criu_put_without(uint8_t *to, struct criu_cursor message, unsigned number) {
        struct criu_field f;

        while (criu_next_field(&message, &f))
                if (f.number != number)
                        to = put_bytes(to, f.key, message.at);
        return to;
}

uint8_t *criu_put_with(uint8_t *to, struct criu_cursor message, unsigned number, criu_put_fn put, const void *arg) {
        struct criu_field f;

        while (criu_next_field(&message, &f)) {
                uint8_t *inner = to + CRIU_VARINT_BYTES;

                if (f.number == number && !f.varint)
                        to = put_message(to, number, inner, put(inner, f.bytes, arg));
                else
                        to = put_bytes(to, f.key, message.at);
        }
        return to;
}

size_t criu_put_image(uint8_t *ret, uint8_t *image, size_t size_bytes, uint32_t magic, unsigned number, criu_put_fn put,
                      const void *arg) {
        uint8_t *begin = ret + CRIU_IMAGE_MAGIC_BYTES + sizeof(uint32_t);
        struct criu_cursor entries, entry;
        uint32_t length;

        if (!criu_image_open(image, size_bytes, magic, &entries) || !criu_next_entry(&entries, &entry))
                return 0;
        length = (uint32_t) (criu_put_with(begin, entry, number, put, arg) - begin);
        memcpy(ret, image, CRIU_IMAGE_MAGIC_BYTES);
        memcpy(ret + CRIU_IMAGE_MAGIC_BYTES, &length, sizeof(length));
        return CRIU_IMAGE_MAGIC_BYTES + sizeof(length) + length;
}
