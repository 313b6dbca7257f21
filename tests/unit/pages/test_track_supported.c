/* Whether a kernel can track written pages is found out by trying. The ioctl of this program stands
 * for kernels that differ in what they say of a page that mremap(2) has moved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/fs.h>
#include <linux/userfaultfd.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/pages/track.h"

enum kernel {
        KERNEL_ITSELF, /* that of this machine */
        KERNEL_ONLY_REGISTERED, /* "written" is said of registered mappings only */
        KERNEL_KEEPS, /* a moved page stays protected, whatever is registered anew */
        KERNEL_FORGETS, /* likewise, and unregistered mappings are written */
        KERNEL_WITHOUT, /* it has no PAGEMAP_SCAN */
};

enum { REGISTERED_MAX = 8 };

/* The kernel of the child that tries, which inherits it empty. */
static enum kernel kernel;
static struct uffdio_range registered[REGISTERED_MAX];
static size_t n_registered;

static bool is_registered(uint64_t start) {
        for (size_t i = 0; i < n_registered; i++)
                if (start >= registered[i].start && start < registered[i].start + registered[i].len)
                        return true;
        return false;
}

/* The first mapping that was registered is where the page came from. */
static bool is_moved(uint64_t start) {
        return n_registered > 0 && start != registered[0].start;
}

static int scan(int fd, struct pm_scan_arg *argument) {
        bool written = argument->category_mask & PAGE_IS_WRITTEN;

        if (kernel == KERNEL_WITHOUT) {
                errno = ENOTTY;
                return -1;
        }
        if (kernel == KERNEL_ONLY_REGISTERED && written && !is_registered(argument->start))
                return 0;
        if (kernel == KERNEL_KEEPS && written && is_moved(argument->start))
                return 0;
        if (kernel == KERNEL_FORGETS && written && is_moved(argument->start))
                return is_registered(argument->start) ? 0 : 1;
        return (int) syscall(SYS_ioctl, fd, PAGEMAP_SCAN, argument);
}

/* The function is in place of libc's. */
int ioctl(int fd, unsigned long request, ...) {
        va_list ap;
        void *argument;
        int r;

        va_start(ap, request);
        argument = va_arg(ap, void *);
        va_end(ap);
        if (request == PAGEMAP_SCAN)
                return scan(fd, argument);
        r = (int) syscall(SYS_ioctl, fd, request, argument);
        if (r == 0 && request == UFFDIO_REGISTER && n_registered < REGISTERED_MAX)
                registered[n_registered++] = ((const struct uffdio_register *) argument)->range;
        return r;
}

static void supported_by(enum kernel which, int expected) {
        struct rm_error err = { 0 };
        int r;

        kernel = which;
        r = track_supported(&err);
        if (r != expected)
                fail_msg("kernel %d: %d (%s), not %d", (int) which, r, error_text(&err), expected);
        if (expected == -EOPNOTSUPP)
                assert_non_null(strstr(error_text(&err), "cannot track written pages"));
}

static void test_kernels(void **state) {
        (void) state;
        supported_by(KERNEL_ITSELF, 0);
        supported_by(KERNEL_ONLY_REGISTERED, 0);
        supported_by(KERNEL_KEEPS, -EOPNOTSUPP);
        supported_by(KERNEL_FORGETS, -EOPNOTSUPP);
        supported_by(KERNEL_WITHOUT, -EOPNOTSUPP);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_kernels) };

        return cmocka_run_group_tests_name("pages-track-supported", tests, NULL, NULL);
}
