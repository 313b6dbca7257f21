#include "rtlib/ft/spare.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "rtlib/ft/ft.h"
#include "rtlib/ft/meet.h"
#include "rtlib/ft/members.h"
#include "rtlib/ft/program_socket.h"
#include "rtlib/ft/watch.h"

#define SCAN_NSEC 5000000L /* a rank is replaced by so much later, for some thousandths of a core */

/* All have done so, or none: MPI_Finalize waits for all processes. */
static void leave(void) {
        ft.ended = true;
        if (ft.losses.count == 0) {
                watch_call("MPI_Finalize");
                (void) mpi.Finalize();
                watch_call(NULL);
        }
        program_socket_finish();
        (void) fflush(NULL);
        _exit(0);
}

static bool is_to_end(void) {
        int there = 0, nothing;
        MPI_Status status;

        /* The probe also makes Open MPI take in its messages. After a loss it wants to be told that
         * this is known. */
        if (mpi.Iprobe(MPI_ANY_SOURCE, TAG_END, ft.meeting, &there, &status) != MPI_SUCCESS) {
                (void) mpi.Comm_failure_ack(ft.meeting);
                return false;
        }
        if (!there)
                return false;
        return mpi.Recv(&nothing, 0, mpi.byte, status.MPI_SOURCE, TAG_END, ft.meeting, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

void spare_wait(void) {
        const struct timespec pause = { .tv_nsec = SCAN_NSEC };

        for (;;) {
                members_update(ft.losses.count);
                if (members_has((uint32_t) ft.rank))
                        break;
                if (is_to_end())
                        leave();
                (void) nanosleep(&pause, NULL);
        }
        ft.respawned = ft.joining = true;
        ft.world->rank = members_rank(ft.rank);
        ft.world->since[ft.world->rank] = COMM_FRESH;
        ft_repair();
}

void spare_scan(void) {
        if (ft.respawned && ft.world->since[ft.world->rank] == COMM_FRESH && is_to_end())
                leave();
}

bool rmrt_ft_is_respawned(void) {
        return ft.respawned;
}

/* Ends a process by a message that is done when it was received: this process may end at once, and
 * data that MPI has not sent by then is lost. */
static void end_one(int process) {
        MPI_Request request;
        int done = 0;

        if (mpi.Issend(&done, 0, mpi.byte, process, TAG_END, ft.meeting, &request) != MPI_SUCCESS)
                return;
        for (unsigned turns = 0; !done; wait_pause(&turns))
                if (mpi.Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS ||
                    losses_has(&ft.losses, (uint32_t) process, ft.losses.count))
                        return;
}

void spare_end_others(void) {
        members_update(ft.repaired);
        for (int i = ft.ranks; i < ft.size; i++)
                if (members_rank(i) < 0 && !losses_has(&ft.losses, (uint32_t) i, ft.losses.count))
                        end_one(i);
}
