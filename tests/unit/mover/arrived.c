#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "arrived.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/pages/page_store.h"
#include "daemon/pages/track.h"

enum { PAGE = PAGES_PAGE_BYTES };

struct comparison {
        struct track *track;
        struct page_store *store;
        uint64_t present;
        uint64_t wrong;
};

/* Tells what a page is that is wrong: its mapping, and where it differs. */
static void report_wrong(const struct comparison *c, uint64_t at, const uint8_t *ours, const uint8_t *theirs) {
        size_t first = 0, n = 0;

        for (size_t i = PAGE; i-- > 0;)
                if (ours[i] != theirs[i]) {
                        first = i;
                        n++;
                }
        print_message("page %#llx (%s in the store) differs in %zu bytes from %zu on: %02x %02x is %02x %02x\n",
                      (unsigned long long) at, page_store_has(c->store, at) ? "is" : "is not", n, first, theirs[first],
                      theirs[(first + 1) % PAGE], ours[first], ours[(first + 1) % PAGE]);
}

static int compare_run(void *ctx, uint64_t start, uint64_t end, enum map_kind kind) {
        struct comparison *c = ctx;
        uint8_t theirs[PAGE], ours[PAGE];

        (void) kind;
        for (uint64_t at = start; at < end; at += PAGE) {
                memset(ours, 0, sizeof(ours));
                assert_int_equal(track_read(c->track, at, theirs, PAGE), PAGE);
                if (page_store_has(c->store, at))
                        assert_int_equal(page_store_read(c->store, at, ours, PAGE), 0);
                if (memcmp(ours, theirs, PAGE) != 0 && c->wrong++ == 0)
                        report_wrong(c, at, ours, theirs);
                c->present++;
        }
        return 0;
}

char *arrived(const struct bed *b, pid_t pid) {
        return xasprintf("%s/pages/%d", b->out, (int) pid);
}

void compare(const struct bed *b, pid_t pid) {
        cleanup_free char *path = arrived(b, pid);
        cleanup_close int pidfd = (int) syscall(SYS_pidfd_open, pid, 0);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        struct comparison c = { 0 };
        struct rm_error err = { 0 };

        assert_true(fd >= 0);
        assert_int_equal(page_store_adopt(fd, &c.store), 0);
        assert_int_equal(track_open(pidfd, 1U << MAP_KIND_LAZY, &c.track, &err), 0);
        if (track_present(c.track, compare_run, &c, &err) < 0)
                fail_msg("%s", err.text);
        if (c.wrong > 0)
                fail_msg("%llu of %llu pages are wrong", (unsigned long long) c.wrong, (unsigned long long) c.present);
        assert_true(c.present > 10);
        assert_true(page_store_bytes(c.store) <= c.present * PAGE && page_store_bytes(c.store) > 0);
        track_end(c.track);
        page_store_destroy(c.store);
}
