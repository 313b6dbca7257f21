/* Reads CRIU's image files, entry by entry and field by field, without a copy. They come from
 * memory that a user controls. Pure. */
#ifndef RM_DAEMON_CRIU_IMAGES_FIELDS_H
#define RM_DAEMON_CRIU_IMAGES_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The head of each image has so many bytes, and names its kind by a magic number; fields are
 * encoded as protobuf has it. */
enum {
        CRIU_VARINT_BYTES = 10,
        CRIU_WIRE_VARINT = 0, /* in the lowest bits of a field's key */
        CRIU_WIRE_BYTES = 2,
        CRIU_IMAGE_MAGIC_BYTES = 8,
        CRIU_IMAGE_MAGIC_CORE = 0x55053847,
        CRIU_IMAGE_MAGIC_FILES = 0x56303138,
        CRIU_IMAGE_MAGIC_GHOST = 0x52583605,
        CRIU_IMAGE_MAGIC_MM = 0x57492820,
        CRIU_IMAGE_MAGIC_REMAP = 0x59133954,
};

/* The part of a message that has not been read yet. */
struct criu_cursor {
        uint8_t *at;
        uint8_t *end;
};

/* A field of a protobuf message: its number, and either a varint or bytes. */
struct criu_field {
        uint64_t number;
        uint8_t *key; /* where it begins */
        uint8_t *varint; /* where its value is; NULL: bytes */
        size_t varint_bytes;
        uint64_t value;
        struct criu_cursor bytes;
};

/* False: this is no image of that kind. `ret` has its entries. */
bool criu_image_open(uint8_t *image, size_t size_bytes, uint32_t magic, struct criu_cursor *ret);
/* False: there is none any more, or it goes beyond the end of the file; then not all of the file
 * has been read. */
bool criu_next_entry(struct criu_cursor *c, struct criu_cursor *ret);

/* False: at the end, or at a field that is of no such kind, as CRIU's messages here have none, or
 * is damaged; then not all of the message has been read. */
bool criu_next_field(struct criu_cursor *c, struct criu_field *ret);
/* Writes a varint, of at most CRIU_VARINT_BYTES, to `to`; returns where it ends. */
uint8_t *criu_put_varint(uint8_t *to, uint64_t value);

/* These write a message again, and return where it ends: without the fields of a number, or with
 * what `put` makes of those of a number, which are messages themselves. What follows `to` needs
 * room for CRIU_VARINT_BYTES more than what is written. */
typedef uint8_t *(*criu_put_fn)(uint8_t *to, struct criu_cursor inner, const void *arg);
uint8_t *criu_put_without(uint8_t *to, struct criu_cursor message, unsigned number);
uint8_t *criu_put_with(uint8_t *to, struct criu_cursor message, unsigned number, criu_put_fn put, const void *arg);
/* Does the same with the first entry of an image. Returns the size in bytes of what is in `ret`; 0:
 * the image is of another kind, or has none. */
size_t criu_put_image(uint8_t *ret, uint8_t *image, size_t size_bytes, uint32_t magic, unsigned number, criu_put_fn put,
                      const void *arg);
static inline bool criu_all_read(const struct criu_cursor *c) {
        return c->at == c->end;
}

#endif
