/* MPI_Comm_create_from_group() agrees on a communicator's index by a group of PMIx, which all
 * members construct together and then take down together: each waits indefinitely if one of them
 * dies meanwhile. So a repair does not wait for the one once it hears of a loss, and leaves the
 * other out: each has a name of its own. These are the calls of libpmix that libmpi makes; in all
 * else they are passed on. */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

#include "common/util.h"
#include "rtlib/ft/ft.h"

enum { PMIX_SUCCESS = 0, PMIX_ERROR = -1, PMIX_ERR_NOT_SUPPORTED = -47 };

typedef void answer_fn(int status, void *results, size_t n, void *data, void (*release)(void *), void *release_data);
typedef int construct_fn(const char *name, const void *procs, size_t n_procs, const void *info, size_t n_info, void **ret,
                         size_t *ret_n);
typedef int construct_nb_fn(const char *name, const void *procs, size_t n_procs, const void *info, size_t n_info, answer_fn *answer,
                            void *data);
typedef int destruct_fn(const char *name, const void *info, size_t n_info);

__attribute__((visibility("default"))) construct_fn PMIx_Group_construct;
__attribute__((visibility("default"))) destruct_fn PMIx_Group_destruct;

struct answer {
        _Atomic bool there;
        int status;
        void *results;
        size_t n;
};

/* The callback runs in a thread of libpmix. The results are not released: they go on to the
 * caller. */
static void on_answer(int status, void *results, size_t n, void *data, void (*release)(void *), void *release_data) {
        struct answer *answer = data;

        answer->status = status;
        answer->results = results;
        answer->n = n;
        answer->there = true;
}

/* An answer that comes later is written to memory that is not read any more. */
static int construct(construct_nb_fn *begin, const char *name, const void *procs, size_t n_procs, const void *info, size_t n_info,
                     void **ret, size_t *ret_n) {
        const struct timespec pause = { .tv_nsec = 100000 };
        struct answer *answer = xcalloc(1, sizeof(*answer));
        int status = begin(name, procs, n_procs, info, n_info, on_answer, answer);

        if (status != PMIX_SUCCESS) {
                free(answer);
                return status;
        }
        while (!answer->there) {
                if (ft.losses.count != ft.in_hand)
                        return PMIX_ERROR;
                (void) nanosleep(&pause, NULL);
        }
        *ret = answer->results;
        *ret_n = answer->n;
        status = answer->status;
        free(answer);
        return status;
}

int PMIx_Group_construct(const char *name, const void *procs, size_t n_procs, const void *info, size_t n_info, void **ret,
                         size_t *ret_n) {
        construct_fn *real = (construct_fn *) dlsym(RTLD_NEXT, "PMIx_Group_construct");
        construct_nb_fn *begin = (construct_nb_fn *) dlsym(RTLD_NEXT, "PMIx_Group_construct_nb");

        if (begin && blocked_is_unnamed())
                return construct(begin, name, procs, n_procs, info, n_info, ret, ret_n);
        return real ? real(name, procs, n_procs, info, n_info, ret, ret_n) : PMIX_ERR_NOT_SUPPORTED;
}

int PMIx_Group_destruct(const char *name, const void *info, size_t n_info) {
        destruct_fn *real = (destruct_fn *) dlsym(RTLD_NEXT, "PMIx_Group_destruct");

        if (blocked_is_unnamed())
                return PMIX_SUCCESS;
        return real ? real(name, info, n_info) : PMIX_ERR_NOT_SUPPORTED;
}
