#include "daemon/capsule/init/mend.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/log.h"
#include "common/util.h"

enum {
        MAGIC_BYTES = 8, /* of all images, and of this kind */
        FILES_MAGIC = 0x56303138,
        WIRE_VARINT = 0,
        WIRE_BYTES = 2,
        FILE_TIMERFD = 12, /* file_entry.tfd */
        TIMERFD_VALUE_SEC = 7,
        TIMERFD_VALUE_NSEC = 8,
        TIMERFD_INTERVAL_SEC = 9,
        TIMERFD_INTERVAL_NSEC = 10,
};

struct cursor {
        uint8_t *at;
        uint8_t *end;
};

/* One field of a protobuf message: its number, and either a varint or bytes. */
struct field {
        uint64_t number;
        uint8_t *varint; /* where it is; NULL: bytes */
        uint64_t value;
        struct cursor bytes;
};

static bool next_varint(struct cursor *c, uint64_t *ret) {
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

/* CRIU's messages here have no other kinds of fields; one that has ends the walk. */
static bool next_field(struct cursor *c, struct field *ret) {
        uint64_t key, length;

        if (c->at >= c->end || !next_varint(c, &key))
                return false;
        *ret = (struct field) { .number = key >> 3 };
        if ((key & 7) == WIRE_VARINT) {
                ret->varint = c->at;
                return next_varint(c, &ret->value);
        }
        if ((key & 7) != WIRE_BYTES || !next_varint(c, &length) || length > (size_t) (c->end - c->at))
                return false;
        ret->bytes = (struct cursor) { c->at, c->at + length };
        c->at += length;
        return true;
}

static bool mend_timerfd(struct cursor entry) {
        uint64_t left = 0;
        uint64_t interval = 0;
        uint8_t *nsec = NULL;
        struct field f;

        while (next_field(&entry, &f)) {
                if (f.number == TIMERFD_VALUE_SEC || f.number == TIMERFD_VALUE_NSEC)
                        left |= f.value;
                if (f.number == TIMERFD_VALUE_NSEC)
                        nsec = f.varint;
                if (f.number == TIMERFD_INTERVAL_SEC || f.number == TIMERFD_INTERVAL_NSEC)
                        interval |= f.value;
        }
        if (left != 0 || interval == 0 || !nsec || *nsec != 0)
                return false;
        *nsec = 1; /* as long as the 0 was */
        return true;
}

unsigned mend_timerfds(uint8_t *image, size_t size_bytes) {
        struct cursor c = { image, image + size_bytes };
        uint32_t magic, length;
        unsigned n = 0;

        if (size_bytes < MAGIC_BYTES)
                return 0;
        memcpy(&magic, image + sizeof(magic), sizeof(magic));
        if (magic != FILES_MAGIC)
                return 0;
        c.at += MAGIC_BYTES;
        while ((size_t) (c.end - c.at) >= sizeof(length)) {
                struct cursor entry;
                struct field f;

                memcpy(&length, c.at, sizeof(length));
                c.at += sizeof(length);
                if (length > (size_t) (c.end - c.at))
                        break;
                entry = (struct cursor) { c.at, c.at + length };
                c.at += length;
                while (next_field(&entry, &f))
                        if (f.number == FILE_TIMERFD && !f.varint)
                                n += mend_timerfd(f.bytes);
        }
        return n;
}

void mend_images(int images_fd) {
        cleanup_close int fd = openat(images_fd, "files.img", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        struct stat st;
        void *map;

        if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0)
                return;
        map = mmap(NULL, (size_t) st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED) {
                log_warn("cannot look through CRIU's images: %s", strerror(errno));
                return;
        }
        (void) mend_timerfds(map, (size_t) st.st_size);
        (void) munmap(map, (size_t) st.st_size);
}
