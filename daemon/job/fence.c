#include "daemon/job/fence.h"

#include "daemon/state/state.h"

bool fence_applies(const Rm__JobSpec *spec) {
        return job_wants_restart(spec);
}

void fence_mac(uint64_t epoch, uint32_t address, uint8_t ret_mac[static 6]) {
        ret_mac[0] = (uint8_t) (0x02 ^ (epoch >> 8 & 0x3f) << 2);
        ret_mac[1] = (uint8_t) (0x72 ^ (epoch & 0xff));
        for (int i = 0; i < 4; i++)
                ret_mac[2 + i] = (uint8_t) (address >> (24 - 8 * i));
}

bool fence_due(const struct fence_view *view) {
        if (!view->synced || !view->belongs || view->lease_usec == view->reported_usec)
                return false;
        /* A lease that was told as endless ends when the node no longer keeps the only log. */
        return view->lease_usec > view->reported_usec || view->reported_usec == UINT64_MAX;
}
