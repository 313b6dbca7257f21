#include "rtlib/regions.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rm/rmrt.h"

struct region {
        char *start, *end; /* as given */
};

static struct {
        pthread_mutex_t lock;
        struct region all[RMRT_REGIONS_MAX];
        _Atomic size_t n;
} regions = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Whole pages only: what else is in those at the edges stays. False: there are none. */
static bool whole_pages(const struct region *region, struct region *ret) {
        uintptr_t page = (uintptr_t) sysconf(_SC_PAGESIZE);

        if ((size_t) (region->end - region->start) < page)
                return false;
        ret->start = region->start + (page - (uintptr_t) region->start % page) % page;
        ret->end = region->end - (uintptr_t) region->end % page;
        return ret->start < ret->end;
}

/* Private memory without a file: of what is in one, or shared with others, dropping pages would do
 * something else. Lines are by address. */
static bool is_private(const struct region *pages) {
        FILE *f = fopen("/proc/self/maps", "re");
        uintptr_t at = (uintptr_t) pages->start, pages_end = (uintptr_t) pages->end;
        char line[8192];

        while (f && at < pages_end && fgets(line, sizeof(line), f)) {
                uintptr_t start, end, inode;
                char access[5];

                if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*x %*x:%*x %" SCNuPTR, &start, &end, access, &inode) != 4 ||
                    end <= at)
                        continue;
                if (start > at || access[3] != 'p' || inode != 0)
                        break;
                at = end;
        }
        if (f)
                (void) fclose(f);
        return at >= pages_end;
}

static int add(const struct region *region) {
        size_t n;
        int r = 0;

        (void) pthread_mutex_lock(&regions.lock);
        n = regions.n;
        for (size_t i = 0; i < n && r == 0; i++)
                if (region->start < regions.all[i].end && regions.all[i].start < region->end)
                        r = -EEXIST;
        if (r == 0 && n == RMRT_REGIONS_MAX)
                r = -ENOSPC;
        if (r == 0) {
                regions.all[n] = *region;
                regions.n = n + 1;
        }
        (void) pthread_mutex_unlock(&regions.lock);
        return r;
}

int regions_exclude(void *memory, size_t bytes) {
        struct region region, pages;

        if (!memory || bytes == 0 || bytes > UINTPTR_MAX - (uintptr_t) memory)
                return -EINVAL;
        region = (struct region) { memory, (char *) memory + bytes };
        if (whole_pages(&region, &pages) && !is_private(&pages))
                return -EOPNOTSUPP;
        return add(&region);
}

int regions_include(const void *memory, size_t bytes) {
        int r = -ENOENT;

        (void) pthread_mutex_lock(&regions.lock);
        for (size_t i = 0; i < regions.n && r < 0; i++) {
                if (regions.all[i].start != memory || (size_t) (regions.all[i].end - regions.all[i].start) != bytes)
                        continue;
                regions.all[i] = regions.all[regions.n - 1];
                regions.n--;
                r = 0;
        }
        (void) pthread_mutex_unlock(&regions.lock);
        return r;
}

bool regions_any(void) {
        return atomic_load_explicit(&regions.n, memory_order_relaxed) > 0;
}

/* Memory that cannot be dropped (it is locked) is carried. */
void regions_drop(void) {
        int error = errno;

        (void) pthread_mutex_lock(&regions.lock);
        for (size_t i = 0; i < regions.n; i++) {
                struct region pages;

                if (whole_pages(&regions.all[i], &pages))
                        (void) madvise(pages.start, (size_t) (pages.end - pages.start), MADV_DONTNEED);
        }
        (void) pthread_mutex_unlock(&regions.lock);
        errno = error;
}
