/* System calls that the freeze has interrupted, as an image has them and as they go on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "common/util.h"
#include "daemon/capsule/init/criu/image_fixup.h"
#include "tests/unit/capsule/criu/image_writer.h"

struct registers {
        uint64_t r10, ax, dx, si, di, orig_ax, ip;
};

/* Makes the image of a thread: what matters of it, in the order and with the numbers that CRIU
 * uses. */
static struct message make_image(const struct registers *r, uint64_t blocked, int pending) {
        struct message regs = { 0 }, info = { 0 }, thread = { 0 }, core = { 0 }, image = begin_image(0x55053847);
        struct message siginfo = { 0 }, entry = { 0 }, queue = { 0 };

        put_number(&regs, 8, r->r10);
        put_number(&regs, 11, r->ax);
        put_number(&regs, 13, r->dx);
        put_number(&regs, 14, r->si);
        put_number(&regs, 15, r->di);
        put_number(&regs, 16, r->orig_ax);
        put_number(&regs, 17, r->ip);
        put_number(&info, 1, 0x7fff00001234);
        put_message(&info, 2, &regs);
        put_number(&thread, 6, blocked);
        if (pending) {
                siginfo.size = 128;
                memcpy(siginfo.bytes, &pending, sizeof(pending));
                put_message(&entry, 1, &siginfo);
                put_message(&queue, 1, &entry);
                put_message(&thread, 9, &queue);
        }
        put_number(&core, 1, 1);
        put_message(&core, 2, &info);
        put_message(&core, 5, &thread);
        put_entry(&image, &core);
        return image;
}

static uint64_t read_varint(const uint8_t **p) {
        uint64_t value = 0;
        unsigned shift = 0;

        do
                value |= (uint64_t) (**p & 0x7f) << shift;
        while (shift += 7, *(*p)++ & 0x80);
        return value;
}

/* In the order of `struct registers`, found by the only message in a message that there is. */
static struct registers read_image(const struct message *image) {
        const uint8_t *p = image->bytes + 12 + 2;
        uint64_t values[7];

        for (int depth = 0; depth < 2; depth++) {
                (void) read_varint(&p); /* key and length */
                (void) read_varint(&p);
                if (depth == 0) {
                        (void) read_varint(&p);
                        (void) read_varint(&p);
                }
        }
        for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
                (void) read_varint(&p);
                values[i] = read_varint(&p);
        }
        return (struct registers) { values[0], values[1], values[2], values[3], values[4], values[5], values[6] };
}

static const struct registers interrupted = { .ax = (uint64_t) -EINTR,
                                              .di = 0x7ffe00001000,
                                              .si = 1,
                                              .dx = 1000,
                                              .ip = 0x7f0000001002 };

static bool mended(struct registers r, uint64_t blocked, int pending, long again, struct registers *ret) {
        struct message image = make_image(&r, blocked, pending);
        bool was = image_fixup_call(image.bytes, image.size, again);

        *ret = read_image(&image);
        return was;
}

static void test_calls(void **state) {
        struct registers r = interrupted;
        struct registers after;

        (void) state;
        r.orig_ax = SYS_poll;
        assert_true(mended(r, 0, 0, -1, &after));
        assert_int_equal(after.ax, SYS_poll);
        assert_int_equal(after.ip, r.ip - 2);
        assert_int_equal(after.di, r.di);
        /* A signal that nobody blocks is to interrupt it. */
        assert_false(mended(r, 0, SIGUSR1, -1, &after));
        assert_int_equal(after.ax, (uint64_t) -EINTR);
        assert_true(mended(r, UINT64_C(1) << (SIGUSR1 - 1), SIGUSR1, -1, &after));
        /* This call is one that the kernel had begun again. */
        r.orig_ax = SYS_restart_syscall;
        assert_false(mended(r, 0, 0, -1, &after));
        assert_true(mended(r, 0, 0, SYS_futex, &after));
        assert_int_equal(after.ax, SYS_futex);
        /* These did not end by being interrupted, or are no such calls. */
        r.orig_ax = SYS_close;
        assert_false(mended(r, 0, 0, -1, &after));
        r.orig_ax = (uint64_t) -1;
        assert_false(mended(r, 0, 0, -1, &after));
        r.orig_ax = SYS_poll;
        r.ax = 0;
        assert_false(mended(r, 0, 0, -1, &after));
}

static void test_sleeps(void **state) {
        struct registers r = interrupted;
        struct registers after;

        (void) state;
        r.orig_ax = SYS_nanosleep;
        r.si = 0x7ffe00002000; /* where what is left was written */
        assert_true(mended(r, 0, 0, -1, &after));
        assert_int_equal(after.di, r.si);
        r.si = 0;
        assert_true(mended(r, 0, 0, -1, &after));
        assert_int_equal(after.di, r.di);
        r.orig_ax = SYS_clock_nanosleep;
        r.dx = 0x7ffe00001000;
        r.r10 = 0x7ffe00003000;
        assert_true(mended(r, 0, 0, -1, &after));
        assert_int_equal(after.dx, r.r10);
        r.dx = 0x1000; /* no room for the other in the image: all of it again */
        assert_true(mended(r, 0, 0, -1, &after));
        assert_int_equal(after.dx, 0x1000);
}

/* Cut short anywhere, or with any byte changed, it is mended or left alone, but nothing outside is
 * touched. */
static void test_damaged_calls(void **state) {
        struct registers r = interrupted;
        struct message image;

        (void) state;
        r.orig_ax = SYS_poll;
        image = make_image(&r, 0, SIGUSR1);
        for (size_t n = 0; n < image.size; n++) {
                uint8_t *copy = malloc(n + 1); /* its end is watched by the sanitizer */

                assert_non_null(copy);
                memcpy(copy, image.bytes, n);
                assert_false(image_fixup_call(copy, n, -1));
                free(copy);
        }
        for (size_t n = 0; n < image.size; n++) {
                struct message copy = image;

                for (unsigned value = 0; value < 256; value++) {
                        copy.bytes[n] = (uint8_t) value;
                        (void) image_fixup_call(copy.bytes, copy.size, -1);
                }
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_calls),
                cmocka_unit_test(test_sleeps),
                cmocka_unit_test(test_damaged_calls),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
