#include "daemon/job/fence.h"

#include "daemon/cluster/state.h"

bool fence_applies(const Rm__JobSpec *spec) {
        return spec->on_node_loss == STATE_LOSS_RESTART;
}

enum fence_action fence_due(const struct fence_view *view) {
        if (!view->can_fence)
                return FENCE_REFUSE;
        if (!view->synced || !view->belongs || view->lease_usec == view->told_usec)
                return FENCE_NOTHING;
        /* What was for ever ends when the node no longer keeps the only log. */
        return view->lease_usec > view->told_usec || view->told_usec == UINT64_MAX ? FENCE_RENEW : FENCE_NOTHING;
}
