#include <errno.h>
#include <stdlib.h>

#include "common/util.h"
#include "rtlib/checkpoint/collective.h"

/* The state of this process, which is one rank. */
static struct {
        struct arrays arrays;
        struct saved saved;
        char *directory; /* NULL: as the environment says */
        struct rm_error err;
} own;

int rmrt_register_typed(const char *name, void *ptr, size_t count, const struct rmrt_type *type,
                        enum rmrt_distribution distribution) {
        const struct array array = { (char *) name, ptr, count, *type, distribution };

        error_clear(&own.err);
        return arrays_register(&own.arrays, &array, &own.err);
}

int rmrt_unregister(const char *name) {
        error_clear(&own.err);
        return arrays_unregister(&own.arrays, name);
}

int rmrt_set_directory(const char *path) {
        error_clear(&own.err);
        free(own.directory);
        own.directory = xstrdup(path);
        return 0;
}

static int ranks_check(const struct rmrt_ranks *ranks) {
        error_clear(&own.err);
        if (ranks->size < 1 || ranks->rank < 0 || ranks->rank >= ranks->size || (unsigned) ranks->size > PORTABLE_RANKS_MAX)
                return error_set(&own.err, -EINVAL, "rank %d of %d", ranks->rank, ranks->size);
        return 0;
}

int rmrt_save_by(const struct rmrt_ranks *ranks) {
        int r = ranks_check(ranks);

        return r == 0 ? checkpoint_save(ranks, &own.arrays, own.directory, &own.saved, &own.err) : r;
}

int rmrt_restore_by(const struct rmrt_ranks *ranks) {
        int r = ranks_check(ranks);

        return r == 0 ? checkpoint_restore(ranks, &own.arrays, own.directory, &own.err) : r;
}

const char *rmrt_checkpoint_error(void) {
        return own.err.text;
}
