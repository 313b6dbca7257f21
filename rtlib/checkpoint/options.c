#include "rtlib/checkpoint/options.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "rtlib/checkpoint/manifest.h"

#define DIRECTORY_DEFAULT "rmrt-checkpoints"
/* With these a restart reads at most eight files of each rank, and what is kept is at most twice
 * eight increments. */
#define FULL_EVERY_DEFAULT 8
#define KEEP_DEFAULT 2
#define ZSTD_LEVEL_MAX 19

static int number_read(const char *name, int64_t from, int64_t to, int64_t otherwise, int64_t *ret, struct rm_error *err) {
        const char *text = getenv(name);

        *ret = otherwise;
        if (text && *text && parse_i64(text, from, to, ret) < 0)
                return error_set(err, -EINVAL, "%s: '%s' is no number from %lld to %lld", name, text, (long long) from,
                                 (long long) to);
        return 0;
}

static int block_read(enum options_blocks *ret_blocks, uint32_t *ret_bytes, struct rm_error *err) {
        const char *text = getenv("RMRT_BLOCK");
        uint64_t bytes = PORTABLE_BLOCK_BYTES;

        *ret_blocks = OPTIONS_BLOCKS_FIXED;
        if (text && strcmp(text, "adaptive") == 0)
                *ret_blocks = OPTIONS_BLOCKS_ADAPTIVE;
        else if (text && strcmp(text, "auto") == 0)
                *ret_blocks = OPTIONS_BLOCKS_AUTO;
        else if (text && *text &&
                 (parse_bytes(text, &bytes) < 0 || bytes < PORTABLE_BLOCK_MIN_BYTES || bytes > PORTABLE_BLOCK_MAX_BYTES))
                return error_set(err, -EINVAL, "RMRT_BLOCK: '%s' is no size from 512 to 16M, nor adaptive or auto", text);
        *ret_bytes = (uint32_t) bytes;
        return 0;
}

static int directory_read(const char *directory, char *ret, struct rm_error *err) {
        const char *path = directory ? directory : getenv("RMRT_DIR");
        cleanup_free char *here = NULL;
        int n;

        if (!path || !*path)
                path = DIRECTORY_DEFAULT;
        if (*path != '/') {
                here = getcwd(NULL, 0);
                if (!here)
                        return error_sys(err, -errno, "the working directory");
        }
        n = snprintf(ret, OPTIONS_PATH_BYTES, "%s%s%s", here ? here : "", here ? "/" : "", path);
        return n >= OPTIONS_PATH_BYTES ? error_sys(err, -ENAMETOOLONG, "the folder of checkpoints") : 0;
}

int options_read(const char *directory, struct options *ret, struct rm_error *err) {
        int64_t keep = 0, full_every = 0, level = 0;
        int r = directory_read(directory, ret->directory, err);

        if (r == 0)
                r = number_read("RMRT_KEEP", 1, 1000000, KEEP_DEFAULT, &keep, err);
        if (r == 0)
                r = number_read("RMRT_FULL_EVERY", 1, 1000, FULL_EVERY_DEFAULT, &full_every, err);
        if (r == 0)
                r = number_read("RMRT_ZSTD", 0, ZSTD_LEVEL_MAX, 0, &level, err);
        if (r == 0)
                r = block_read(&ret->blocks, &ret->block_bytes, err);
        ret->keep = (uint32_t) keep;
        ret->full_every = (uint32_t) full_every;
        ret->zstd_level = (int32_t) level;
        return r;
}
