#include <sched.h>
#include <time.h>

#include "rtlib/ft/ft.h"
#include "rtlib/ft/watch.h"

void wait_pause(unsigned *turns) {
        const struct timespec brief = { .tv_nsec = 100000 }, longer = { .tv_nsec = 1000000 }, longest = { .tv_nsec = 10000000 };
        unsigned n = (*turns)++;

        if (n < 100)
                (void) sched_yield();
        else if (n < 200)
                (void) nanosleep(&brief, NULL);
        else
                (void) nanosleep(n < 2000 ? &longer : &longest, NULL);
}

void status_set_empty(MPI_Status *status, int source, int tag) {
        if (status == MPI_STATUS_IGNORE)
                return;
        *status = (MPI_Status) { .MPI_SOURCE = source, .MPI_TAG = tag, .MPI_ERROR = MPI_SUCCESS };
        (void) mpi.Status_set_elements(status, mpi.byte, 0);
}

static int run(MPI_Request *request, MPI_Status *status, bool *ret_lost) {
        int done = 0, rc;

        *ret_lost = false;
        for (;;) {
                rc = mpi.Test(request, &done, status);
                if (rc == MPI_SUCCESS && done)
                        return MPI_SUCCESS;
                if (UNLIKELY(rc != MPI_SUCCESS)) {
                        if (error_is_pending(rc))
                                ft_acknowledge();
                        else if (error_is_loss(rc))
                                break;
                        else
                                return rc;
                }
                ft_keep_up();
        }
        if (ft.losses.count == 0)
                ft_await_loss();
        ft_refuse_uncovered();
        *ret_lost = true;
        return MPI_SUCCESS;
}

int wait_request(MPI_Request *request, MPI_Status *status, bool *ret_lost) {
        int rc;

        watch_enter(NULL);
        rc = run(request, status, ret_lost);
        watch_leave();
        return rc;
}
