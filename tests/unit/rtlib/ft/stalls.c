/* Preloaded after librmrt-ft: process 2 stands still in each repair; with STALLS_DIES, it dies in MPI_Init. With STALLS_FORGETS no process knows its number. */
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
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

int PMPI_Comm_create_from_group(MPI_Group group, const char *tag, MPI_Info info, MPI_Errhandler handler, MPI_Comm *ret) {
        make_fn *make = (make_fn *) dlsym(RTLD_NEXT, __func__);

        while (is_chosen())
                (void) pause();
        return make(group, tag, info, handler, ret);
}
