#include "bench/rtlib/written.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/util.h"

enum { REGIONS = 1024 };

static void need(bool condition, const char *what) {
        if (condition)
                return;
        perror(what);
        exit(1);
}

void written_begin(struct written *w, size_t bytes) {
        *w = (struct written) { .uffd = -1, .pagemap = -1 };
        w->bytes = (bytes + WRITTEN_PAGE_BYTES - 1) / WRITTEN_PAGE_BYTES * WRITTEN_PAGE_BYTES;
        w->memory = mmap(NULL, w->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        need(w->memory != MAP_FAILED && madvise(w->memory, w->bytes, MADV_NOHUGEPAGE) == 0, "memory");
        w->pages = xcalloc(w->bytes / WRITTEN_PAGE_BYTES, 1);
}

void written_protect(struct written *w) {
        struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED };
        struct uffdio_register range = { .range = { .start = (uintptr_t) w->memory, .len = w->bytes },
                                         .mode = UFFDIO_REGISTER_MODE_WP };

        w->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
        w->uffd = (int) syscall(SYS_userfaultfd, UFFD_USER_MODE_ONLY | O_CLOEXEC);
        need(w->pagemap >= 0 && w->uffd >= 0 && ioctl(w->uffd, UFFDIO_API, &api) == 0 &&
                     ioctl(w->uffd, UFFDIO_REGISTER, &range) == 0,
             "write protection");
        written_take(w);
}

void written_take(struct written *w) {
        struct page_region regions[REGIONS];
        struct pm_scan_arg scan = { .size = sizeof(scan),
                                    .flags = PM_SCAN_WP_MATCHING | PM_SCAN_CHECK_WPASYNC,
                                    .start = (uintptr_t) w->memory,
                                    .end = (uintptr_t) w->memory + w->bytes,
                                    .vec = (uintptr_t) regions,
                                    .vec_len = REGIONS,
                                    .category_mask = PAGE_IS_WRITTEN,
                                    .return_mask = PAGE_IS_WRITTEN };

        memset(w->pages, 0, w->bytes / WRITTEN_PAGE_BYTES);
        for (; scan.start < scan.end; scan.start = scan.walk_end) {
                int n = ioctl(w->pagemap, PAGEMAP_SCAN, &scan);

                need(n >= 0, "PAGEMAP_SCAN");
                for (int i = 0; i < n; i++)
                        memset(w->pages + (regions[i].start - (uintptr_t) w->memory) / WRITTEN_PAGE_BYTES, 1,
                               (regions[i].end - regions[i].start) / WRITTEN_PAGE_BYTES);
        }
}

void written_end(struct written *w) {
        cleanup_close_fd(&w->uffd);
        cleanup_close_fd(&w->pagemap);
        (void) munmap(w->memory, w->bytes);
        free(w->pages);
}
