#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "fuse_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/util.h"

enum { DEVICE_MINOR = 229, REQUEST_BYTES = FUSE_MIN_READ_BUFFER, FILE_BYTES = 1 << 20 };

/* The file is the root of what is mounted. */
bool fuse_file_begin(struct fuse_file *f, const char *dir) {
        cleanup_free char *device = xasprintf("%s/fuse", dir);
        cleanup_free char *options = NULL;

        *f = (struct fuse_file) { .path = xasprintf("%s/file", dir) };
        assert_int_equal(mknod(device, S_IFCHR | 0600, makedev(10, DEVICE_MINOR)), 0);
        f->fd = open(device, O_RDWR | O_CLOEXEC);
        if (f->fd < 0) {
                free(f->path);
                return false;
        }
        options = xasprintf("fd=%d,rootmode=100644,user_id=0,group_id=0", f->fd);
        assert_int_equal(write_file_atomic(f->path, "", 0, 0600, false), 0);
        assert_int_equal(mount("test", f->path, "fuse", 0, options), 0);
        return true;
}

void fuse_file_end(struct fuse_file *f) {
        assert_int_equal(umount2(f->path, MNT_DETACH), 0);
        (void) close(f->fd);
        free(f->path);
}

void fuse_file_abort(const char *dir) {
        cleanup_free char *path = xasprintf("%s/file", dir);

        (void) umount2(path, MNT_FORCE | MNT_DETACH);
}

static void answer(const struct fuse_file *f, uint64_t id, int error, const void *data, size_t size_bytes) {
        uint8_t message[sizeof(struct fuse_out_header) + FILE_BYTES];
        const struct fuse_out_header header = { .len = (uint32_t) (sizeof(header) + size_bytes), .error = -error, .unique = id };

        memcpy(message, &header, sizeof(header));
        if (size_bytes > 0)
                memcpy(message + sizeof(header), data, size_bytes);
        assert_int_equal(write(f->fd, message, header.len), header.len);
}

static void answer_by_kind(const struct fuse_file *f, const struct fuse_in_header *in) {
        const struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096 };
        const struct fuse_open_out opened = { .open_flags = FOPEN_DIRECT_IO | FOPEN_NOFLUSH };
        const struct fuse_attr_out attributes = { .attr = { .ino = 1, .mode = S_IFREG | 0644, .nlink = 1, .size = FILE_BYTES } };

        switch (in->opcode) {
        case FUSE_INIT:
                answer(f, in->unique, 0, &init, sizeof(init));
                break;
        case FUSE_OPEN:
                answer(f, in->unique, 0, &opened, sizeof(opened));
                break;
        case FUSE_GETATTR:
                answer(f, in->unique, 0, &attributes, sizeof(attributes));
                break;
        case FUSE_FORGET:
        case FUSE_INTERRUPT:
                break;
        default:
                answer(f, in->unique, ENOSYS, NULL, 0);
        }
}

void fuse_file_await(struct fuse_file *f, uint32_t opcode) {
        union {
                struct fuse_in_header header;
                uint8_t bytes[REQUEST_BYTES];
        } request;

        for (;;) {
                assert_true(read(f->fd, &request, sizeof(request)) >= (ssize_t) sizeof(request.header));
                f->read_id = request.header.unique;
                if (request.header.opcode == opcode)
                        return;
                answer_by_kind(f, &request.header);
        }
}

void fuse_file_answer(const struct fuse_file *f, uint8_t value, size_t size_bytes) {
        cleanup_free uint8_t *data = xcalloc(1, size_bytes);

        memset(data, value, size_bytes);
        answer(f, f->read_id, 0, data, size_bytes);
}

void fuse_file_await_read(struct fuse_file *f) {
        fuse_file_await(f, FUSE_READ);
}

void fuse_file_fail(const struct fuse_file *f, int error) {
        answer(f, f->read_id, error, NULL, 0);
}
