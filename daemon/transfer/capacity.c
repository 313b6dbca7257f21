#include "daemon/transfer/capacity.h"

#include <inttypes.h>
#include <sys/statvfs.h>

#include "daemon/node/memory_use.h"

void capacity_here(const char *images_dir, struct capacity_free *ret) {
        struct statvfs st;

        *ret = (struct capacity_free) { .memory_bytes = memory_use_available(), .images_bytes = UINT64_MAX };
        if (statvfs(images_dir, &st) == 0)
                ret->images_bytes = (uint64_t) st.f_bavail * st.f_frsize;
}

int capacity_check(const struct capacity_need *need, const struct capacity_free *free, struct rm_error *err) {
        uint64_t memory_bytes = memory_use_of_move(need->memory_bytes, need->files_bytes, need->pages);
        uint64_t images_bytes = need->ahead ? memory_bytes : need->memory_bytes;

        if (images_bytes > free->images_bytes)
                return error_set(err, -ENOSPC,
                                 "no room for an image of %" PRIu64 " MB in the image directory (%" PRIu64 " MB are free)",
                                 images_bytes / 1000000, free->images_bytes / 1000000);
        if (memory_bytes > free->memory_bytes)
                return error_set(err, -ENOSPC,
                                 "not enough memory: %" PRIu64 " MB are needed during the move, %" PRIu64 " MB are free",
                                 memory_bytes / 1000000, free->memory_bytes / 1000000);
        return 0;
}

/* So that small groups are not refused for what any program takes when it begins to compute. */
#define GRANT_MIN_BYTES (UINT64_C(1) << 30)

uint64_t capacity_grant(const struct capacity_need *need, const struct capacity_free *free, uint64_t limit_bytes,
                        uint64_t reserve_bytes) {
        uint64_t needed = memory_use_of_move(need->memory_bytes, need->files_bytes, need->pages);
        uint64_t wish = 2 * memory_use_of_move(need->memory_bytes, need->files_bytes, false) + GRANT_MIN_BYTES;
        uint64_t most = free->memory_bytes > reserve_bytes ? free->memory_bytes - reserve_bytes : 0;

        if (limit_bytes > UINT64_MAX / 2)
                wish = UINT64_MAX;
        else if (wish < 2 * limit_bytes)
                wish = 2 * limit_bytes;
        if (free->memory_bytes == UINT64_MAX)
                most = UINT64_MAX;
        if (wish > most)
                wish = most;
        if (wish < needed)
                wish = needed;
        return wish == UINT64_MAX ? 0 : wish;
}
