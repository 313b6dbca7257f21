#include "rtlib/checkpoint/agreement.h"

#include <string.h>

#include "common/util.h"

static int lost(struct rm_error *err, int r) {
        return error_sys(err, AGREEMENT_LOST, "the ranks cannot speak with each other (%s)", strerror(-r));
}

int agree_broadcast(const struct rmrt_ranks *ranks, void *data, size_t bytes, struct rm_error *err) {
        int r = ranks->broadcast(ranks->ctx, data, bytes, 0);

        return r < 0 ? lost(err, r) : 0;
}

int agree_gather(const struct rmrt_ranks *ranks, const void *mine, void *all, size_t bytes, struct rm_error *err) {
        int r = ranks->gather(ranks->ctx, mine, all, bytes);

        return r < 0 ? lost(err, r) : 0;
}

int agree(const struct rmrt_ranks *ranks, int r, struct rm_error *err) {
        cleanup_free int *all = xcalloc((size_t) ranks->size, sizeof(*all));
        int bad = 0, code = agree_gather(ranks, &r, all, sizeof(r), err);

        if (code < 0)
                return code;
        while (bad < ranks->size && all[bad] == 0)
                bad++;
        if (bad == ranks->size)
                return 0;
        if (bad == ranks->rank && ranks->size > 1)
                (void) error_prefix(err, "on rank %d", bad);
        code = ranks->broadcast(ranks->ctx, err->text, sizeof(err->text), bad);
        err->text[sizeof(err->text) - 1] = 0;
        err->code = all[bad];
        return code < 0 ? lost(err, code) : all[bad];
}
