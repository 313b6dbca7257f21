/* Preloaded after librmrt-ft: process 2 stands still in each repair, for STALLS_MSEC if that is
 * there; with STALLS_DIES, it dies in MPI_Init. With STALLS_FORGETS no process knows its number.
 * With STALLS_ALONE an abort ends only who calls for it, and says how long after it was decided on:
 * after MPI_Initialized. */
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int init_fn(int *argc, char ***argv);
typedef int make_fn(MPI_Group group, const char *tag, MPI_Info info, MPI_Errhandler handler, MPI_Comm *ret);

static bool is_chosen(void) {
        const char *process = getenv("OMPI_COMM_WORLD_RANK");

        return process && strcmp(process, "2") == 0;
}

__attribute__((constructor)) static void begin(void) {
        if (getenv("STALLS_FORGETS"))
                (void) unsetenv("OMPI_COMM_WORLD_RANK");
}

int PMPI_Init(int *argc, char ***argv) {
        init_fn *init = (init_fn *) dlsym(RTLD_NEXT, __func__);

        if (is_chosen() && getenv("STALLS_DIES"))
                (void) raise(SIGKILL);
        return init(argc, argv);
}

static struct timespec asked;

int PMPI_Initialized(int *flag) {
        typedef int initialized_fn(int *flag);
        initialized_fn *initialized = (initialized_fn *) dlsym(RTLD_NEXT, __func__);

        (void) clock_gettime(CLOCK_MONOTONIC, &asked);
        return initialized(flag);
}

int PMPI_Abort(MPI_Comm comm, int code) {
        typedef int abort_fn(MPI_Comm comm, int code);
        abort_fn *abort_all = (abort_fn *) dlsym(RTLD_NEXT, __func__);

        if (getenv("STALLS_ALONE")) {
                struct timespec now;

                (void) clock_gettime(CLOCK_MONOTONIC, &now);
                (void) dprintf(STDERR_FILENO, "stalls: aborts after %ld ms\n",
                               (long) (now.tv_sec - asked.tv_sec) * 1000 + (now.tv_nsec - asked.tv_nsec) / 1000000);
                _exit(code);
        }
        return abort_all(comm, code);
}

int PMPI_Comm_create_from_group(MPI_Group group, const char *tag, MPI_Info info, MPI_Errhandler handler, MPI_Comm *ret) {
        make_fn *make = (make_fn *) dlsym(RTLD_NEXT, __func__);

        const char *msec = getenv("STALLS_MSEC");

        if (is_chosen() && msec)
                (void) usleep((useconds_t) atoi(msec) * 1000);
        while (is_chosen() && !msec)
                (void) pause();
        return make(group, tag, info, handler, ret);
}
