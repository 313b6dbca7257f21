/* Waiting for requests of the program. */
#include <stdlib.h>

#include "common/util.h"
#include "rtlib/ft/ft.h"
#include "rtlib/ft/watch.h"

/* A request that ended with its peer, or did not begin: as a message that has nothing in it. */
static void empty(MPI_Status *status) {
        if (status != MPI_STATUS_IGNORE)
                status_set_empty(status, status->MPI_SOURCE, status->MPI_TAG);
}

static int wait_one(MPI_Request *request, MPI_Status *status) {
        bool lost;
        int rc = wait_request(request, status, &lost);

        if (UNLIKELY(lost))
                empty(status);
        return rc;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status) {
        int rc;

        if (!ft.on || ft.ended)
                return REAL(Wait)(request, status);
        rc = wait_one(request, status);
        return rc == MPI_SUCCESS ? rc : error_raise(NULL, rc);
}
FT_WRAPS(Wait);

int MPI_Waitall(int n, MPI_Request *requests, MPI_Status *statuses) {
        int rc = MPI_SUCCESS;

        if (!ft.on || ft.ended)
                return REAL(Waitall)(n, requests, statuses);
        for (int i = 0; i < n; i++) {
                int r = wait_one(&requests[i], statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i]);

                if (statuses != MPI_STATUSES_IGNORE)
                        statuses[i].MPI_ERROR = r;
                if (r != MPI_SUCCESS)
                        rc = MPI_ERR_IN_STATUS;
        }
        return rc == MPI_SUCCESS ? rc : error_raise(NULL, rc);
}
FT_WRAPS(Waitall);

/* Handles the result of a test of one or more requests: what to do about it, and the result that
 * the program sees. */
static int tested(int rc, int *done, MPI_Status *status) {
        if (rc != MPI_SUCCESS && error_is_pending(rc)) {
                ft_acknowledge();
                *done = 0;
                rc = MPI_SUCCESS;
        } else if (rc != MPI_SUCCESS && error_is_loss(rc)) {
                if (ft.losses.count == 0)
                        ft_await_loss();
                ft_refuse_uncovered();
                *done = 1;
                empty(status);
                rc = MPI_SUCCESS;
        }
        ft_keep_up();
        return rc;
}

int MPI_Test(MPI_Request *request, int *done, MPI_Status *status) {
        int rc = REAL(Test)(request, done, status);

        if (!ft.on || ft.ended)
                return rc;
        rc = tested(rc, done, status);
        return rc == MPI_SUCCESS ? rc : error_raise(NULL, rc);
}
FT_WRAPS(Test);

int MPI_Testany(int n, MPI_Request *requests, int *index, int *done, MPI_Status *status) {
        int rc = REAL(Testany)(n, requests, index, done, status);

        if (!ft.on || ft.ended)
                return rc;
        rc = tested(rc, done, status);
        return rc == MPI_SUCCESS ? rc : error_raise(NULL, rc);
}
FT_WRAPS(Testany);

int MPI_Waitany(int n, MPI_Request *requests, int *index, MPI_Status *status) {
        int done = 0, rc = MPI_SUCCESS;

        if (!ft.on || ft.ended)
                return REAL(Waitany)(n, requests, index, status);
        watch_enter(NULL);
        while (!done && rc == MPI_SUCCESS)
                rc = tested(mpi.Testany(n, requests, index, &done, status), &done, status);
        watch_leave();
        return rc == MPI_SUCCESS ? rc : error_raise(NULL, rc);
}
FT_WRAPS(Waitany);

/* Each that ended is in the list, with the error of its own. Returns what is left as an error;
 * those that wait for any rank and go on are taken out. */
static int sort_out(int *n, int *indices, MPI_Status *statuses) {
        int kept = 0, rc = MPI_SUCCESS;

        for (int i = 0; i < *n; i++) {
                int r = statuses[i].MPI_ERROR, done = 1;

                r = tested(r, &done, &statuses[i]);
                if (!done)
                        continue;
                if (r != MPI_SUCCESS)
                        rc = MPI_ERR_IN_STATUS;
                indices[kept] = indices[i];
                statuses[kept++] = statuses[i];
        }
        *n = kept;
        return rc;
}

static int test_some(int n, MPI_Request *requests, int *ret_n, int *indices, MPI_Status *statuses) {
        MPI_Status *own = statuses == MPI_STATUSES_IGNORE ? xcalloc((size_t) n + 1, sizeof(*own)) : statuses;
        int rc = mpi.Testsome(n, requests, ret_n, indices, own);

        if (rc == MPI_ERR_IN_STATUS)
                rc = sort_out(ret_n, indices, own);
        ft_keep_up();
        if (own != statuses)
                free(own);
        return rc;
}

int MPI_Testsome(int n, MPI_Request *requests, int *ret_n, int *indices, MPI_Status *statuses) {
        int rc;

        if (!ft.on || ft.ended)
                return REAL(Testsome)(n, requests, ret_n, indices, statuses);
        rc = test_some(n, requests, ret_n, indices, statuses);
        return rc == MPI_SUCCESS ? rc : error_raise(NULL, rc);
}
FT_WRAPS(Testsome);

int MPI_Waitsome(int n, MPI_Request *requests, int *ret_n, int *indices, MPI_Status *statuses) {
        int rc;

        if (!ft.on || ft.ended)
                return REAL(Waitsome)(n, requests, ret_n, indices, statuses);
        watch_enter(NULL);
        do
                rc = test_some(n, requests, ret_n, indices, statuses);
        while (rc == MPI_SUCCESS && *ret_n == 0);
        watch_leave();
        return rc == MPI_SUCCESS ? rc : error_raise(NULL, rc);
}
FT_WRAPS(Waitsome);

int MPI_Testall(int n, MPI_Request *requests, int *done, MPI_Status *statuses) {
        int rc = REAL(Testall)(n, requests, done, statuses);

        if (!ft.on || ft.ended)
                return rc;
        ft_keep_up();
        if (rc == MPI_SUCCESS)
                return rc;
        /* Requests that have ended are gone from the list; the program asks again for the
         * others. */
        ft_acknowledge();
        *done = 1;
        for (int i = 0; i < n; i++) {
                MPI_Status *status = statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
                int one = 1,
                    r = requests[i] == mpi.request_null ? MPI_SUCCESS : tested(mpi.Test(&requests[i], &one, status), &one, status);

                if (r != MPI_SUCCESS)
                        return error_raise(NULL, r);
                *done = *done && one;
        }
        return MPI_SUCCESS;
}
FT_WRAPS(Testall);

int MPI_Start(MPI_Request *request) {
        int rc = REAL(Start)(request);

        if (!ft.on || rc == MPI_SUCCESS)
                return rc;
        return error_is_loss(rc) ? MPI_SUCCESS : error_raise(NULL, rc);
}
FT_WRAPS(Start);

int MPI_Startall(int n, MPI_Request *requests) {
        if (!ft.on)
                return REAL(Startall)(n, requests);
        for (int i = 0; i < n; i++) {
                int rc = MPI_Start(&requests[i]);

                if (rc != MPI_SUCCESS)
                        return rc;
        }
        return MPI_SUCCESS;
}
FT_WRAPS(Startall);
