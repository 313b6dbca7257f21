/* Linked into a test, its ioctl makes of this machine's kernel one that says of pages in registered
 * mappings only that they are written, as kernels do from 2026 on. */
#include <linux/fs.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int scan(int fd, struct pm_scan_arg *argument) {
        uint64_t asked = argument->return_mask;
        struct page_region *regions;
        int n;

        memcpy(&regions, &argument->vec, sizeof(argument->vec)); /* a pointer, as a number */
        if (argument->category_mask & PAGE_IS_WRITTEN)
                argument->category_mask |= PAGE_IS_WPALLOWED;
        if (asked & PAGE_IS_WRITTEN)
                argument->return_mask |= PAGE_IS_WPALLOWED;
        n = (int) syscall(SYS_ioctl, fd, PAGEMAP_SCAN, argument);
        for (int i = 0; i < n; i++) {
                if (!(regions[i].categories & PAGE_IS_WPALLOWED) && (asked & PAGE_IS_WRITTEN))
                        regions[i].categories &= ~(uint64_t) PAGE_IS_WRITTEN;
                regions[i].categories &= asked;
        }
        return n;
}

int ioctl(int fd, unsigned long request, ...) {
        va_list ap;
        void *argument;

        va_start(ap, request);
        argument = va_arg(ap, void *);
        va_end(ap);
        return request == PAGEMAP_SCAN ? scan(fd, argument) : (int) syscall(SYS_ioctl, fd, request, argument);
}
