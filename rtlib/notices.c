#include "rtlib/notices.h"

#include <stdatomic.h>

#include "rtlib/channel.h"
#include "rtlib/events.h"
#include "rtlib/resizing.h"

static atomic_flag taking = ATOMIC_FLAG_INIT;

static _Thread_local bool inside; /* in `taking` */

static void take(uint32_t rank) {
        struct events_pending pending = { 0 };
        Program__Notice *notice;

        while ((notice = channel_next())) {
                if (notice->body_case == PROGRAM__NOTICE__BODY_HAPPENS)
                        events_receive(&pending, notice);
                else if (notice->body_case == PROGRAM__NOTICE__BODY_RESIZE)
                        resizing_receive(notice->resize);
                program__notice__free_unpacked(notice, NULL);
        }
        events_settle(&pending, rank);
}

void notices_take(uint32_t rank) {
        if (atomic_flag_test_and_set(&taking))
                return;
        inside = true;
        take(rank);
        inside = false;
        atomic_flag_clear(&taking);
}

bool notices_inside(void) {
        return inside;
}
