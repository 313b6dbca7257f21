/* Portable checkpoints for programs of MPI (see rm/rmrt_checkpoint.h). All of this is compiled into
 * the program, by its own MPI: so there is one library for all MPIs. */
#ifndef RM_RMRT_MPI_H
#define RM_RMRT_MPI_H

#include <errno.h>
#include <limits.h>
#include <mpi.h>

#include <rm/rmrt_checkpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Looks for the type in a list, whose sizes are those of this MPI and this processor. 1: found;
 * 0: not. */
static inline int rmrt_mpi_named(MPI_Datatype type, struct rmrt_type *ret) {
        const struct {
                MPI_Datatype type;
                enum rmrt_kind kind;
                uint32_t units;
        } list[] = {
                { MPI_CHAR, RMRT_BYTES, 1 },
                { MPI_BYTE, RMRT_BYTES, 1 },
                { MPI_SIGNED_CHAR, RMRT_INTEGER, 1 },
                { MPI_SHORT, RMRT_INTEGER, 1 },
                { MPI_INT, RMRT_INTEGER, 1 },
                { MPI_LONG, RMRT_INTEGER, 1 },
                { MPI_LONG_LONG, RMRT_INTEGER, 1 },
                { MPI_INT8_T, RMRT_INTEGER, 1 },
                { MPI_INT16_T, RMRT_INTEGER, 1 },
                { MPI_INT32_T, RMRT_INTEGER, 1 },
                { MPI_INT64_T, RMRT_INTEGER, 1 },
                { MPI_AINT, RMRT_INTEGER, 1 },
                { MPI_OFFSET, RMRT_INTEGER, 1 },
                { MPI_COUNT, RMRT_INTEGER, 1 },
                { MPI_UNSIGNED_CHAR, RMRT_UNSIGNED, 1 },
                { MPI_UNSIGNED_SHORT, RMRT_UNSIGNED, 1 },
                { MPI_UNSIGNED, RMRT_UNSIGNED, 1 },
                { MPI_UNSIGNED_LONG, RMRT_UNSIGNED, 1 },
                { MPI_UNSIGNED_LONG_LONG, RMRT_UNSIGNED, 1 },
                { MPI_UINT8_T, RMRT_UNSIGNED, 1 },
                { MPI_UINT16_T, RMRT_UNSIGNED, 1 },
                { MPI_UINT32_T, RMRT_UNSIGNED, 1 },
                { MPI_UINT64_T, RMRT_UNSIGNED, 1 },
                { MPI_FLOAT, RMRT_FLOAT, 1 },
                { MPI_DOUBLE, RMRT_FLOAT, 1 },
                { MPI_LONG_DOUBLE, RMRT_LONG_DOUBLE, 1 },
                { MPI_C_BOOL, RMRT_LOGICAL, 1 },
                { MPI_C_FLOAT_COMPLEX, RMRT_FLOAT, 2 },
                { MPI_C_DOUBLE_COMPLEX, RMRT_FLOAT, 2 },
                { MPI_CHARACTER, RMRT_BYTES, 1 },
                { MPI_INTEGER, RMRT_INTEGER, 1 },
                { MPI_REAL, RMRT_FLOAT, 1 },
                { MPI_DOUBLE_PRECISION, RMRT_FLOAT, 1 },
                { MPI_COMPLEX, RMRT_FLOAT, 2 },
                { MPI_DOUBLE_COMPLEX, RMRT_FLOAT, 2 },
                { MPI_LOGICAL, RMRT_LOGICAL, 1 },
        };
        int bytes;

        for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
                /* An MPI without Fortran has none of its types. */
                if (list[i].type == MPI_DATATYPE_NULL || type != list[i].type)
                        continue;
                if (MPI_Type_size(type, &bytes) != MPI_SUCCESS || bytes <= 0)
                        return 0;
                ret->kind = list[i].kind;
                ret->units = list[i].units;
                ret->unit_bytes = (uint32_t) bytes / list[i].units;
                return 1;
        }
        return 0;
}

/* A named type, a copy of one, or some in a row. -ENOTSUP: any other. */
static inline int rmrt_mpi_type(MPI_Datatype type, struct rmrt_type *ret) {
        int n_integers, n_addresses, n_types, combiner, integers[1], r;
        MPI_Aint addresses[1];
        MPI_Datatype inner;

        if (type == MPI_DATATYPE_NULL || MPI_Type_get_envelope(type, &n_integers, &n_addresses, &n_types, &combiner) != MPI_SUCCESS)
                return -EINVAL;
        if (combiner == MPI_COMBINER_NAMED)
                return rmrt_mpi_named(type, ret) ? 0 : -ENOTSUP;
        if ((combiner != MPI_COMBINER_DUP && combiner != MPI_COMBINER_CONTIGUOUS) || n_integers > 1 || n_addresses > 0 ||
            n_types != 1)
                return -ENOTSUP;
        integers[0] = 1;
        if (MPI_Type_get_contents(type, n_integers, n_addresses, n_types, integers, addresses, &inner) != MPI_SUCCESS)
                return -EINVAL;
        r = rmrt_mpi_type(inner, ret);
        if (r == 0 && (integers[0] <= 0 || (uint64_t) ret->units * (uint64_t) integers[0] > INT32_MAX))
                r = -ENOTSUP;
        else if (r == 0)
                ret->units *= (uint32_t) integers[0];
        /* Only types that are not named are ours to free. */
        if (MPI_Type_get_envelope(inner, &n_integers, &n_addresses, &n_types, &combiner) == MPI_SUCCESS &&
            combiner != MPI_COMBINER_NAMED)
                (void) MPI_Type_free(&inner);
        return r;
}

/* The calls of `struct rmrt_ranks` by MPI. -EFBIG: more than INT_MAX bytes; -EIO: a call of MPI
 * failed. */
static inline int rmrt_mpi_broadcast(void *ctx, void *data, size_t bytes, int root) {
        if (bytes > INT_MAX)
                return -EFBIG;
        return MPI_Bcast(data, (int) bytes, MPI_BYTE, root, *(MPI_Comm *) ctx) == MPI_SUCCESS ? 0 : -EIO;
}

static inline int rmrt_mpi_gather(void *ctx, const void *mine, void *all, size_t bytes) {
        if (bytes > INT_MAX)
                return -EFBIG;
        return MPI_Allgather((void *) mine, (int) bytes, MPI_BYTE, all, (int) bytes, MPI_BYTE, *(MPI_Comm *) ctx) == MPI_SUCCESS
                       ? 0
                       : -EIO;
}

/* The ranks of `comm`, which must outlive them. -EINVAL: it is no communicator. */
static inline int rmrt_mpi_ranks(MPI_Comm *comm, struct rmrt_ranks *ret) {
        ret->ctx = comm;
        ret->broadcast = rmrt_mpi_broadcast;
        ret->gather = rmrt_mpi_gather;
        if (MPI_Comm_rank(*comm, &ret->rank) != MPI_SUCCESS || MPI_Comm_size(*comm, &ret->size) != MPI_SUCCESS)
                return -EINVAL;
        return 0;
}

/* As rmrt_register_typed(). -ENOTSUP: the type is neither one that MPI names, nor a row of these
 * (MPI_Type_contiguous()). */
static inline int rmrt_register(const char *name, void *ptr, size_t count, MPI_Datatype type, enum rmrt_distribution distribution) {
        struct rmrt_type known = { RMRT_BYTES, 0, 0 }; /* is refused, with a text */

        if (rmrt_mpi_type(type, &known) < 0)
                known.units = 0;
        return rmrt_register_typed(name, ptr, count, &known, distribution);
}

/* As rmrt_save_by(): collective over `comm`, on which no other call may run meanwhile. The same
 * errors. */
static inline int rmrt_save(MPI_Comm comm) {
        struct rmrt_ranks ranks;
        int r = rmrt_mpi_ranks(&comm, &ranks);

        return r < 0 ? r : rmrt_save_by(&ranks);
}

/* As rmrt_restore_by(): collective over `comm`. The same results and errors. */
static inline int rmrt_restore(MPI_Comm comm) {
        struct rmrt_ranks ranks;
        int r = rmrt_mpi_ranks(&comm, &ranks);

        return r < 0 ? r : rmrt_restore_by(&ranks);
}

#ifdef __cplusplus
}
#endif

#endif
