/* Preloaded into `criu dump` when private memory travels apart from CRIU's images, so that the dump
 * takes no time for it: CRIU is told that what it would restore lazily has no pages, and gets the
 * flags of mappings without the figures that the kernel counts them with.
 *
 * Where anything is not as expected, CRIU gets the kernel's own answer. It then saves pages that
 * its lazy restore passes over, which costs time only. Without the file that PAGES_VARIABLE names,
 * nothing is changed. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/capsule/pages_preload/preload.h"
#include "daemon/pages/vmflags.h"

enum { LINK_MAX_BYTES = 64, PATH_MAX_BYTES = 256 };

/* Under the names by which CRIU calls libc. */
__attribute__((visibility("default"))) int answer_openat(int dir_fd, const char *path, int flags, ...) __asm__("openat64");
__attribute__((visibility("default"))) int answer_ioctl(int fd, unsigned long request, ...) __asm__("ioctl");

/* CRIU dumps one process after the other, in one thread. */
static struct {
        bool known;
        char kept_dir[PATH_MAX_BYTES]; /* "": nothing is changed */
        /* The process whose smaps was asked for last: its directory as /proc/self/fd names it. */
        char process[LINK_MAX_BYTES];
        dev_t device;
        struct vmflags_range *hidden;
        size_t n_hidden;
} preload;

/* ---- what is to be done ---- */

/* The directory with kept flags stands in a file, as it is decided after CRIU's start. */
static const char *kept_dir(void) {
        const char *path = getenv(PAGES_VARIABLE);
        int fd = path && !preload.known ? (int) syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
        ssize_t n = fd < 0 ? 0 : read(fd, preload.kept_dir, sizeof(preload.kept_dir) - 1);

        preload.known = true;
        if (fd >= 0) {
                (void) close(fd);
                preload.kept_dir[n > 0 ? n : 0] = '\0';
                preload.kept_dir[strcspn(preload.kept_dir, "\n")] = '\0';
        }
        return preload.kept_dir;
}

static int link_of(int fd, char ret[LINK_MAX_BYTES]) {
        char path[32];
        ssize_t n;

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        n = readlink(path, ret, LINK_MAX_BYTES);
        if (n <= 0 || n >= LINK_MAX_BYTES)
                return -ENAMETOOLONG;
        ret[n] = '\0';
        return 0;
}

/* ---- smaps ---- */

static char *read_text(int dir_fd, const char *path) {
        int fd = (int) syscall(SYS_openat, dir_fd, path, O_RDONLY | O_CLOEXEC);
        char *text = NULL;

        if (fd < 0)
                return NULL;
        if (vmflags_read_file(fd, &text, NULL) < 0)
                text = NULL;
        (void) close(fd);
        return text;
}

static const char *status_field(const char *status, const char *name) {
        const char *at = strstr(status, name);

        return at ? at + strlen(name) : "";
}

/* Reads the process's number in the capsule, which is the last of its pids, and how much memory it
 * has locked. */
static bool read_status(int proc_fd, unsigned *ret_pid, uint64_t *ret_locked_bytes) {
        char *status = read_text(proc_fd, "status");
        bool found = false;
        const char *at;
        int n;

        if (!status)
                return false;
        for (at = status_field(status, "\nNSpid:"); sscanf(at, " %u%n", ret_pid, &n) == 1 && *at != '\n'; at += n)
                found = true;
        if (sscanf(status_field(status, "\nVmLck:"), " %" SCNu64, ret_locked_bytes) != 1)
                found = false;
        *ret_locked_bytes *= 1024;
        free(status);
        return found;
}

/* Returns a text made from the flags that were kept, or NULL. */
static char *smaps_from_kept(int proc_fd) {
        char path[PATH_MAX_BYTES + 16], *kept, *maps, *text = NULL;
        uint64_t locked;
        unsigned pid;

        if (!read_status(proc_fd, &pid, &locked))
                return NULL;
        (void) snprintf(path, sizeof(path), "%s/%u", preload.kept_dir, pid);
        kept = read_text(AT_FDCWD, path);
        maps = kept ? read_text(proc_fd, "maps") : NULL;
        if (maps && vmflags_join(kept, maps, locked, &text) < 0)
                text = NULL;
        free(maps);
        free(kept);
        return text;
}

/* Returns the kernel's own text, or NULL. */
static char *smaps_from_kernel(int smaps_fd) {
        char *text = NULL;

        if (vmflags_read_file(smaps_fd, &text, NULL) < 0)
                return NULL;
        (void) vmflags_reduce(text);
        return text;
}

static int as_file(const char *text) {
        int fd = memfd_create("smaps", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
        size_t size = strlen(text), done = 0;
        ssize_t n = 1;

        while (fd >= 0 && done < size && n > 0) {
                n = write(fd, text + done, size - done);
                done += n > 0 ? (size_t) n : 0;
        }
        if (fd >= 0 && (done < size || lseek(fd, 0, SEEK_SET) != 0)) {
                (void) close(fd);
                return -1;
        }
        return fd;
}

static void hide(int proc_fd, struct vmflags_range *hidden, size_t n) {
        struct stat st;

        if (fstat(proc_fd, &st) < 0 || link_of(proc_fd, preload.process) < 0) {
                free(hidden);
                return;
        }
        preload.device = st.st_dev;
        preload.hidden = hidden;
        preload.n_hidden = n;
}

/* Answers CRIU's read of smaps; the text that CRIU gets also decides what is hidden. Returns the
 * descriptor that CRIU gets in place of `smaps_fd`, or -errno: then the dump must fail, as it could
 * not be restored. */
static int answer_smaps(int proc_fd, int smaps_fd) {
        struct vmflags_range *hidden = NULL;
        size_t n = 0;
        char *text = smaps_from_kept(proc_fd);
        int fd, r;

        if (!text)
                text = smaps_from_kernel(smaps_fd);
        r = text && *text ? vmflags_lazy(text, &hidden, &n) : -ENODATA;
        fd = r == 0 ? as_file(text) : -1;
        free(text);
        if (fd < 0) {
                free(hidden);
                return r == -EOPNOTSUPP ? r : lseek(smaps_fd, 0, SEEK_SET) == 0 ? smaps_fd : -EIO;
        }
        hide(proc_fd, hidden, n);
        return fd;
}

static void forget_process(void) {
        free(preload.hidden);
        preload.hidden = NULL;
        preload.n_hidden = 0;
}

int answer_openat(int dir_fd, const char *path, int flags, ...) {
        mode_t mode = 0;
        va_list list;
        int fd, answer;

        if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {
                va_start(list, flags);
                mode = va_arg(list, mode_t);
                va_end(list);
        }
        fd = (int) syscall(SYS_openat, dir_fd, path, flags, mode);
        if (fd < 0 || strcmp(path, "smaps") != 0)
                return fd;
        forget_process();
        if (*kept_dir() == '\0')
                return fd;
        answer = answer_smaps(dir_fd, fd);
        if (answer != fd)
                (void) close(fd);
        if (answer < 0)
                errno = -answer;
        return answer < 0 ? -1 : answer;
}

/* ---- pages ---- */

/* CRIU's question for what it is to save. It asks for other things too, as guard pages, and these
 * are not hidden. */
static bool is_for_contents(const struct pm_scan_arg *scan) {
        const uint64_t left_out = PAGE_IS_PFNZERO | PAGE_IS_FILE;

        return scan->size == sizeof(*scan) && scan->flags == 0 && scan->max_pages == 0 && scan->vec_len > 0 &&
               scan->category_mask == left_out && scan->category_inverted == left_out &&
               scan->category_anyof_mask == (PAGE_IS_PRESENT | PAGE_IS_SWAPPED);
}

static bool is_of_process(int fd) {
        char path[LINK_MAX_BYTES];
        size_t size = strlen(preload.process);
        struct stat st;

        return link_of(fd, path) == 0 && strncmp(path, preload.process, size) == 0 && strcmp(path + size, "/pagemap") == 0 &&
               fstat(fd, &st) == 0 && st.st_dev == preload.device;
}

/* The first range that ends behind `address`; n_hidden: none. */
static size_t first_behind(uint64_t address) {
        size_t low = 0, high = preload.n_hidden;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (preload.hidden[middle].end > address)
                        high = middle;
                else
                        low = middle + 1;
        }
        return low;
}

/* Asks the kernel for what lies between the hidden ranges. As it does itself, stops where the room
 * for answers ends. */
static int scan_others(int fd, struct pm_scan_arg *scan) {
        size_t i = first_behind(scan->start);
        uint64_t at = scan->start;
        int n = 0;

        while (at < scan->end && (uint64_t) n < scan->vec_len) {
                const struct vmflags_range *next = i < preload.n_hidden ? &preload.hidden[i] : NULL;
                struct pm_scan_arg part = *scan;
                int r;

                if (next && next->start <= at) {
                        at = next->end < scan->end ? next->end : scan->end;
                        i++;
                        continue;
                }
                part.start = at;
                part.end = next && next->start < scan->end ? next->start : scan->end;
                part.vec = scan->vec + (uint64_t) n * sizeof(struct page_region);
                part.vec_len = scan->vec_len - (uint64_t) n;
                r = (int) syscall(SYS_ioctl, fd, PAGEMAP_SCAN, &part);
                if (r < 0)
                        return r;
                n += r;
                at = part.walk_end;
                if (at < part.end)
                        break;
        }
        scan->walk_end = at;
        return n;
}

int answer_ioctl(int fd, unsigned long request, ...) {
        va_list list;
        void *argument;

        va_start(list, request);
        argument = va_arg(list, void *);
        va_end(list);
        if (request == PAGEMAP_SCAN && preload.n_hidden > 0 && is_for_contents(argument) && is_of_process(fd))
                return scan_others(fd, argument);
        return (int) syscall(SYS_ioctl, fd, request, argument);
}
