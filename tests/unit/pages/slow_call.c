#include "slow_call.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "child.h"
#include "common/util.h"
#include "daemon/pages/maps.h"
#include "programs.h"

enum { PAGE = PAGES_PAGE_BYTES };

struct call {
        struct target target;
        char *from;
};

static void *call_writev(void *ctx) {
        struct call *call = ctx;
        struct iovec here = { .iov_base = call->from, .iov_len = PAGE };
        struct iovec there = { .iov_base = call->target.there, .iov_len = PAGE };

        child_assert(process_vm_writev(call->target.pid, &here, 1, &there, 1, 0) == PAGE);
        return NULL;
}

void write_what_is_missing(int link) {
        int uffd = (int) syscall(SYS_userfaultfd, O_CLOEXEC);
        struct uffdio_api api = { .api = UFFD_API };
        struct uffdio_register registration = { .mode = UFFDIO_REGISTER_MODE_MISSING };
        struct uffdio_copy copy = { .len = PAGE };
        /* The page is not of its private memory, which is to be tracked. */
        struct call call = { .from = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) };
        char *contents = map_area(1);
        struct uffd_msg message;
        pthread_t thread;

        memset(contents, 9, PAGE);
        copy.src = (uint64_t) (uintptr_t) contents;
        copy.dst = registration.range.start = (uint64_t) (uintptr_t) call.from;
        registration.range.len = PAGE;
        child_assert(uffd >= 0 && call.from != MAP_FAILED && ioctl(uffd, UFFDIO_API, &api) == 0 &&
                     ioctl(uffd, UFFDIO_REGISTER, &registration) == 0);
        child_ready(link);
        child_assert(read_all(link, &call.target, sizeof(call.target)) == 0);
        child_assert(pthread_create(&thread, NULL, call_writev, &call) == 0);
        child_assert(read(uffd, &message, sizeof(message)) == sizeof(message) && message.event == UFFD_EVENT_PAGEFAULT);
        child_ready(link);
        child_wait(link);
        child_assert(ioctl(uffd, UFFDIO_COPY, &copy) == 0 && pthread_join(thread, NULL) == 0);
        child_ready(link);
        for (;;)
                (void) pause();
}
