#include "rtlib/ft/layout.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/util.h"
#include "rtlib/ft/data.h"

static void add(struct layout *l, size_t *space, int64_t at, uint64_t bytes) {
        struct run *last = l->n > 0 ? &l->runs[l->n - 1] : NULL;

        l->bytes += bytes;
        if (last && last->at + (int64_t) last->bytes == at) {
                last->bytes += bytes;
                return;
        }
        if (l->n == *space) {
                *space = *space > 0 ? *space * 2 : 8;
                l->runs = xrealloc(l->runs, *space * sizeof(*l->runs));
        }
        l->runs[l->n++] = (struct run) { at, bytes };
}

/* MPI packs bytes that say where they are, a digit of the place at a time. */
static int64_t *places_of_bytes(MPI_Datatype type, size_t bytes) {
        ptrdiff_t first;
        size_t span = data_span(1, type, &first);
        unsigned char *memory = xcalloc(span + 1, 1), *packed = xcalloc(bytes + 1, 1);
        int64_t *places = xcalloc(bytes + 1, sizeof(*places));

        for (unsigned shift = 0; shift == 0 || span >> shift > 0; shift += 8) {
                for (size_t i = 0; i < span; i++)
                        memory[i] = (unsigned char) (i >> shift);
                data_pack(memory - first, 1, type, packed);
                for (size_t i = 0; i < bytes; i++)
                        places[i] |= (int64_t) packed[i] << shift;
        }
        for (size_t i = 0; i < bytes; i++)
                places[i] += first;
        free(memory);
        free(packed);
        return places;
}

static bool is_named(MPI_Datatype type) {
        int integers, addresses, types, combiner;

        return mpi.Type_get_envelope(type, &integers, &addresses, &types, &combiner) == MPI_SUCCESS &&
               combiner == MPI_COMBINER_NAMED;
}

void layout_init(struct layout *l, int count, MPI_Datatype type) {
        size_t bytes = data_bytes(1, type), extent = data_extent(type), space = 0;
        int64_t *places;

        *l = (struct layout) { 0 };
        if (count <= 0 || bytes == 0)
                return;
        if (bytes == extent && is_named(type)) {
                add(l, &space, 0, (uint64_t) count * bytes);
                return;
        }
        places = places_of_bytes(type, bytes);
        for (int i = 0; i < count; i++)
                for (size_t j = 0; j < bytes; j++)
                        add(l, &space, (int64_t) extent * i + places[j], 1);
        free(places);
}

void layout_finish(struct layout *l) {
        free(l->runs);
        *l = (struct layout) { 0 };
}

static MPI_Datatype first_part(MPI_Datatype type) {
        int n_integers, n_addresses, n_types, combiner, *integers;
        MPI_Aint *addresses;
        MPI_Datatype *types, first = mpi.datatype_null;

        if (mpi.Type_get_envelope(type, &n_integers, &n_addresses, &n_types, &combiner) != MPI_SUCCESS || n_types < 1)
                return first;
        integers = xcalloc((size_t) n_integers + 1, sizeof(*integers));
        addresses = xcalloc((size_t) n_addresses + 1, sizeof(*addresses));
        types = xcalloc((size_t) n_types, sizeof(MPI_Datatype));
        if (mpi.Type_get_contents(type, n_integers, n_addresses, n_types, integers, addresses, types) == MPI_SUCCESS)
                first = types[0];
        for (int i = 1; i < n_types; i++)
                if (types[i] && types[i] != first && !is_named(types[i]))
                        (void) mpi.Type_free(&types[i]);
        free(integers);
        free(addresses);
        free(types);
        return first;
}

MPI_Datatype layout_basic_type(MPI_Datatype type) {
        MPI_Datatype part = type;

        while (part != mpi.datatype_null && !is_named(part)) {
                MPI_Datatype inner = first_part(part);

                if (part != type)
                        (void) mpi.Type_free(&part);
                part = inner;
        }
        return part;
}
