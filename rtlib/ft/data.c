#include "rtlib/ft/data.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#define PLAIN_MAX 128 /* a power of two; MPI has fewer */

/* MPI's own types without holes: they are never freed, and so what is known of them holds. Entries
 * are only added. */
static struct {
        _Atomic(MPI_Datatype) type;
        size_t bytes;
} plain[PLAIN_MAX];
static atomic_flag adding = ATOMIC_FLAG_INIT;

static size_t first_place(MPI_Datatype type) {
        return (size_t) (((uintptr_t) type >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 57);
}

static size_t find_plain(MPI_Datatype type) {
        for (size_t i = first_place(type), n = 0; n < PLAIN_MAX; i = (i + 1) % PLAIN_MAX, n++) {
                MPI_Datatype there = atomic_load_explicit(&plain[i].type, memory_order_acquire);

                if (there == type)
                        return plain[i].bytes;
                if (!there)
                        return 0;
        }
        return 0;
}

static void add_plain(MPI_Datatype type, size_t bytes) {
        if (atomic_flag_test_and_set(&adding))
                return;
        for (size_t i = first_place(type), n = 0; n < PLAIN_MAX; i = (i + 1) % PLAIN_MAX, n++)
                if (plain[i].type == type || !plain[i].type) {
                        plain[i].bytes = bytes;
                        atomic_store_explicit(&plain[i].type, type, memory_order_release);
                        break;
                }
        atomic_flag_clear(&adding);
}

/* Bytes of one of them; 0: it has holes, or is the program's own. */
static size_t plain_bytes(MPI_Datatype type) {
        size_t bytes = find_plain(type);
        int integers, addresses, types, combiner, size;
        MPI_Aint lower, extent;

        if (bytes > 0)
                return bytes;
        if (mpi.Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS ||
            combiner != MPI_COMBINER_NAMED || mpi.Type_size(type, &size) != MPI_SUCCESS ||
            mpi.Type_get_extent(type, &lower, &extent) != MPI_SUCCESS || lower != 0 || extent != size || size <= 0)
                return 0;
        add_plain(type, (size_t) size);
        return (size_t) size;
}

size_t data_bytes(int count, MPI_Datatype type) {
        size_t bytes = plain_bytes(type);
        int size = 0;

        if (count <= 0)
                return 0;
        if (bytes > 0)
                return bytes * (size_t) count;
        (void) mpi.Type_size(type, &size);
        return (size_t) size * (size_t) count;
}

size_t data_extent(MPI_Datatype type) {
        size_t bytes = plain_bytes(type);
        MPI_Aint lower, extent = 0;

        if (bytes > 0)
                return bytes;
        (void) mpi.Type_get_extent(type, &lower, &extent);
        return (size_t) extent;
}

void data_pack(const void *data, int count, MPI_Datatype type, unsigned char *ret) {
        size_t bytes = data_bytes(count, type);
        int position = 0;

        if (bytes == 0)
                return;
        if (plain_bytes(type) > 0)
                memcpy(ret, data, bytes);
        else
                (void) mpi.Pack(data, count, type, ret, (int) bytes, &position, mpi.comm_self);
}

void data_unpack(const unsigned char *packed, size_t bytes, void *ret, int count, MPI_Datatype type) {
        int position = 0;

        if (bytes == 0 || count <= 0)
                return;
        if (plain_bytes(type) > 0)
                memcpy(ret, packed, bytes);
        else
                (void) mpi.Unpack(packed, (int) bytes, &position, ret, count, type, mpi.comm_self);
}

size_t data_span(int count, MPI_Datatype type, ptrdiff_t *ret_first) {
        size_t bytes = plain_bytes(type);
        MPI_Aint lower = 0, extent = 0, true_lower = 0, true_extent = 0;

        *ret_first = 0;
        if (count <= 0 || bytes > 0)
                return count <= 0 ? 0 : bytes * (size_t) count;
        (void) mpi.Type_get_extent(type, &lower, &extent);
        (void) mpi.Type_get_true_extent(type, &true_lower, &true_extent);
        *ret_first = true_lower;
        return (size_t) (extent * (count - 1) + true_extent);
}
