/* Preloaded after librmrt-ft: process 2 stands still in each repair. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int make_fn(MPI_Group group, const char *tag, MPI_Info info, MPI_Errhandler handler, MPI_Comm *ret);

int PMPI_Comm_create_from_group(MPI_Group group, const char *tag, MPI_Info info, MPI_Errhandler handler, MPI_Comm *ret) {
        const char *process = getenv("OMPI_COMM_WORLD_RANK");
        make_fn *make = (make_fn *) dlsym(RTLD_NEXT, __func__);

        while (process && strcmp(process, "2") == 0)
                (void) pause();
        return make(group, tag, info, handler, ret);
}
