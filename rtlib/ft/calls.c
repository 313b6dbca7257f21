#include "rtlib/ft/calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct mpi mpi;

/* A program may have brought libmpi in itself, for itself alone, as Python does. */
static void *find(const char *name) {
        static void *libmpi;
        void *symbol = dlsym(RTLD_NEXT, name);

        if (symbol)
                return symbol;
        if (!libmpi)
                libmpi = dlopen("libmpi.so.40", RTLD_LAZY | RTLD_NOLOAD);
        return libmpi ? dlsym(libmpi, name) : NULL;
}

static void *checked(void *symbol, const char *name) {
        if (!symbol) {
                (void) fprintf(stderr, "librmrt-ft: there is no %s in this program's MPI; Open MPI 5 is needed\n", name);
                abort();
        }
        return symbol;
}

static void *need(const char *name) {
        return checked(find(name), name);
}

/* The linker may have put a variable of libmpi into the program, from where libmpi takes it,
 * too. */
static void *variable(const char *name) {
        void *symbol = dlsym(RTLD_DEFAULT, name);

        return checked(symbol ? symbol : find(name), name);
}

static void resolve(void) {
#define FT_CALL(name) mpi.name = need("PMPI_" #name);
#include "rtlib/ft/names.inc"
#undef FT_CALL
        mpi.Comm_revoke = find("PMPIX_Comm_revoke");
        mpi.Comm_failure_ack = find("PMPIX_Comm_failure_ack");
        mpi.Comm_is_revoked = find("PMPIX_Comm_is_revoked");
        mpi.Comm_get_failed = find("PMPIX_Comm_get_failed");
        mpi.progress_register = find("opal_progress_register");
        mpi.failed = find("ompi_group_all_failed_procs");
        mpi.comm_world = variable("ompi_mpi_comm_world");
        mpi.comm_self = variable("ompi_mpi_comm_self");
        mpi.comm_null = variable("ompi_mpi_comm_null");
        mpi.byte = variable("ompi_mpi_byte");
        mpi.uint64 = variable("ompi_mpi_uint64_t");
        mpi.int_type = variable("ompi_mpi_int");
        mpi.op_max = variable("ompi_mpi_op_max");
        mpi.datatype_null = variable("ompi_mpi_datatype_null");
        mpi.op_null = variable("ompi_mpi_op_null");
        mpi.op_replace = variable("ompi_mpi_op_replace");
        mpi.op_no_op = variable("ompi_mpi_op_no_op");
        mpi.win_null = variable("ompi_mpi_win_null");
        mpi.file_null = variable("ompi_mpi_file_null");
        mpi.errors_return = variable("ompi_mpi_errors_return");
        mpi.errors_fatal = variable("ompi_mpi_errors_are_fatal");
        mpi.request_null = variable("ompi_request_null");
        mpi.info_null = variable("ompi_mpi_info_null");
        mpi.message_no_proc = variable("ompi_message_no_proc");
        mpi.ready = true;
}

void mpi_resolve(void) {
        static pthread_once_t once = PTHREAD_ONCE_INIT;

        (void) pthread_once(&once, resolve);
}
