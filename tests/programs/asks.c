/* Compares the results of calls about communicators that need no other rank, before and after a
 * rank of them was lost; or one call that does not go on then.
 *
 * usage: asks [CALL]: rank 1 dies. Without CALL the lowest rank says "asks: all as before"; with
 *         it, all that are left make that call. Exit 3: a result is wrong. */
#include <mpi.h>
#include <signal.h>

#include "common.h"

static int rank, size, key;
static MPI_Comm cart, graph, copy;

static void wrong(const char *what, long is) {
        fprintf(stderr, "rank %d: %s: %ld\n", rank, what, is);
        MPI_Abort(MPI_COMM_WORLD, 3);
}

static void must(bool ok, const char *what, long is) {
        if (!ok)
                wrong(what, is);
}

static void make(void) {
        int dims[2] = { 2, size / 2 }, periods[2] = { 1, 0 }, index[64], edges[128];

        MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart);
        /* A ring. */
        for (int i = 0; i < size; i++) {
                index[i] = 2 * (i + 1);
                edges[2 * i] = (i + size - 1) % size;
                edges[2 * i + 1] = (i + 1) % size;
        }
        MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &graph);
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
        MPI_Comm_set_attr(copy, key, &size);
        MPI_Comm_set_name(copy, "a copy");
}

static void ask_of_cart(void) {
        int n = 0, dims[2] = { 0 }, periods[2] = { 0 }, own[2] = { -1, -1 }, at[2], r = -1, from = -9, to = -9, kind = 0;

        MPI_Topo_test(cart, &kind);
        must(kind == MPI_CART, "MPI_Topo_test", kind);
        MPI_Cartdim_get(cart, &n);
        must(n == 2, "MPI_Cartdim_get", n);
        MPI_Cart_get(cart, 2, dims, periods, own);
        must(dims[0] == 2 && dims[1] == size / 2 && periods[0] && !periods[1], "MPI_Cart_get", dims[1]);
        for (int i = 0; i < size; i++) {
                MPI_Cart_coords(cart, i, 2, at);
                must(at[0] == i / (size / 2) && at[1] == i % (size / 2), "MPI_Cart_coords", i);
                MPI_Cart_rank(cart, at, &r);
                must(r == i, "MPI_Cart_rank", r);
        }
        MPI_Cart_shift(cart, 1, 1, &from, &to);
        must(to == (own[1] + 1 < dims[1] ? rank + 1 : MPI_PROC_NULL), "MPI_Cart_shift", to);
        must(from == (own[1] > 0 ? rank - 1 : MPI_PROC_NULL), "MPI_Cart_shift", from);
}

static void ask_of_graph(void) {
        int n = 0, m = 0, neighbours[2] = { -1, -1 };

        MPI_Graphdims_get(graph, &n, &m);
        must(n == size && m == 2 * size, "MPI_Graphdims_get", m);
        MPI_Graph_neighbors_count(graph, rank, &n);
        MPI_Graph_neighbors(graph, rank, 2, neighbours);
        must(n == 2 && neighbours[1] == (rank + 1) % size, "MPI_Graph_neighbors", neighbours[1]);
}

static void ask_of_groups(void) {
        MPI_Group world, of_copy, first;
        int n = 0, r = -1, all[64], same[64], kind = 0, zero = 0;

        MPI_Comm_group(MPI_COMM_WORLD, &world);
        MPI_Comm_group(copy, &of_copy);
        MPI_Group_size(of_copy, &n);
        MPI_Group_rank(of_copy, &r);
        must(n == size && r == rank, "MPI_Group_size", n);
        for (int i = 0; i < size; i++)
                all[i] = size - 1 - i;
        MPI_Group_translate_ranks(world, size, all, of_copy, same);
        for (int i = 0; i < size; i++)
                must(same[i] == all[i], "MPI_Group_translate_ranks", same[i]);
        MPI_Group_compare(world, of_copy, &kind);
        must(kind == MPI_IDENT, "MPI_Group_compare", kind);
        MPI_Group_incl(world, 1, &zero, &first);
        MPI_Group_size(first, &n);
        must(n == 1, "MPI_Group_incl", n);
        MPI_Group_free(&world);
        MPI_Group_free(&of_copy);
        MPI_Group_free(&first);
}

static void ask_of_comms(void) {
        char name[MPI_MAX_OBJECT_NAME] = "", text[MPI_MAX_ERROR_STRING] = "";
        int n = 0, r = -1, set = 0, kind = 0, length = 0, class = 0, *value = NULL, *bound = NULL;

        MPI_Comm_size(copy, &n);
        MPI_Comm_rank(copy, &r);
        must(n == size && r == rank, "MPI_Comm_size", n);
        MPI_Comm_compare(MPI_COMM_WORLD, copy, &kind);
        must(kind == MPI_CONGRUENT, "MPI_Comm_compare", kind);
        MPI_Comm_compare(copy, copy, &kind);
        must(kind == MPI_IDENT, "MPI_Comm_compare", kind);
        MPI_Comm_test_inter(copy, &n);
        must(n == 0, "MPI_Comm_test_inter", n);
        MPI_Comm_get_attr(copy, key, (void *) &value, &set);
        must(set && value == &size, "MPI_Comm_get_attr", set);
        MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, (void *) &bound, &set);
        must(set && *bound >= 32767, "MPI_TAG_UB", set);
        MPI_Comm_get_name(copy, name, &length);
        must(strcmp(name, "a copy") == 0, "MPI_Comm_get_name", length);
        MPI_Error_class(MPI_ERR_RANK, &class);
        MPI_Error_string(MPI_ERR_RANK, text, &length);
        must(class == MPI_ERR_RANK && length > 0, "MPI_Error_class", class);
        MPI_Topo_test(copy, &kind);
        must(kind == MPI_UNDEFINED, "MPI_Topo_test", kind);
}

static void ask(void) {
        long packed[4], mine = rank, is = -1;
        int position = 0, n = 0;

        ask_of_cart();
        ask_of_graph();
        ask_of_groups();
        ask_of_comms();
        MPI_Pack_size(1, MPI_LONG, copy, &n);
        MPI_Pack(&mine, 1, MPI_LONG, packed, (int) sizeof(packed), &position, copy);
        position = 0;
        MPI_Unpack(packed, n, &position, &is, 1, MPI_LONG, copy);
        must(is == rank, "MPI_Unpack", is);
}

static void call(const char *name, MPI_Win window) {
        int in[64] = { 0 }, out[64], keep[2] = { 1, 0 }, root = 1;
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Comm comm;
        MPI_File file;

        if (strcmp(name, "MPI_Neighbor_alltoall") == 0)
                MPI_Neighbor_alltoall(in, 1, MPI_INT, out, 1, MPI_INT, cart);
        else if (strcmp(name, "MPI_Ineighbor_allgather") == 0)
                MPI_Ineighbor_allgather(in, 1, MPI_INT, out, 1, MPI_INT, graph, &request);
        else if (strcmp(name, "MPI_Comm_idup") == 0)
                MPI_Comm_idup(copy, &comm, &request);
        else if (strcmp(name, "MPI_Allreduce_init") == 0)
                MPI_Allreduce_init(in, out, 1, MPI_INT, MPI_SUM, copy, MPI_INFO_NULL, &request);
        else if (strcmp(name, "MPI_Intercomm_create") == 0)
                MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, rank ? 0 : size - 1, 3, &comm);
        else if (strcmp(name, "MPI_Cart_sub") == 0)
                MPI_Cart_sub(cart, keep, &comm);
        else if (strcmp(name, "MPI_Graph_create") == 0)
                MPI_Graph_create(graph, 1, &in[1], in, 0, &comm);
        else if (strcmp(name, "MPI_Win_lock") == 0)
                MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        else if (strcmp(name, "MPI_Win_lock_all") == 0)
                MPI_Win_lock_all(0, window);
        else if (strcmp(name, "MPI_Win_allocate_shared") == 0)
                MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, copy, in, &window);
        else if (strcmp(name, "MPI_Ibcast") == 0)
                MPI_Ibcast(in, 1, MPI_INT, root, copy, &request);
        else if (strcmp(name, "MPI_File_write_shared") == 0) {
                MPI_File_open(copy, "asks.data", MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                              &file);
                MPI_File_write_shared(file, in, 1, MPI_INT, MPI_STATUS_IGNORE);
        } else
                wrong(name, 0);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
        int one = 1, sum = 0, memory = 0;
        MPI_Win window;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        if (size < 4 || size > 60 || size % 2)
                MPI_Abort(MPI_COMM_WORLD, 2);
        make();
        MPI_Win_create(&memory, sizeof(memory), sizeof(memory), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        ask();
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1)
                (void) raise(SIGKILL);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, cart);
        must(sum == size - 1, "MPI_Allreduce on a topology", sum);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, graph);
        must(sum == size - 1, "MPI_Allreduce on a graph", sum);
        ask();
        if (argc > 1)
                call(argv[1], window);
        MPI_Win_free(&window);
        if (rank == 0)
                printf(argc > 1 ? "asks: went on\n" : "asks: all as before\n");
        MPI_Finalize();
        return 0;
}
