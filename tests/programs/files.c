/* MPI-IO: a file that all ranks write and read, by each kind of call, while some are lost on the
 * way. What is of a living rank is where it belongs.
 *
 * usage: files ROUNDS SEED [LOST STEP]... with FILES_NAME in the environment: loses.h. Says "files:
 *         N ranks". Exit 3: a result is wrong. */
#include "loses.h"

#define COUNT 4

static const char *name;

static void must(int rc, const char *what) {
        if (rc != MPI_SUCCESS)
                wrong(what, rank, rc);
}

static void check_whole(MPI_File file, const char *what, long salt) {
        for (int from = 0; from < size; from++) {
                long is[COUNT] = { 0 };

                must(MPI_File_read_at(file, (MPI_Offset) from * COUNT * (MPI_Offset) sizeof(long), is, COUNT, MPI_LONG,
                                      MPI_STATUS_IGNORE),
                     "read_at");
                for (int i = 0; lives[from] && i < COUNT; i++)
                        if (is[i] != part(from, 1) + salt)
                                wrong(what, from, is[i]);
        }
}

static void with_offsets(MPI_File file) {
        long mine[COUNT], back[COUNT];
        MPI_Offset at = (MPI_Offset) rank * COUNT * (MPI_Offset) sizeof(long);
        MPI_Status status;
        MPI_Request request;
        int n;

        fill(mine, COUNT, part(rank, 1));
        next_step();
        must(MPI_File_write_at_all(file, at, mine, COUNT, MPI_LONG, &status), "write_at_all");
        MPI_Get_count(&status, MPI_LONG, &n);
        if (n != COUNT)
                wrong("count of write_at_all", rank, n);
        next_step();
        must(MPI_File_sync(file), "sync");
        MPI_Barrier(MPI_COMM_WORLD);
        must(MPI_File_read_at_all(file, at, back, COUNT, MPI_LONG, &status), "read_at_all");
        check_whole(file, "write_at_all", 0);
        MPI_Barrier(MPI_COMM_WORLD);
        fill(mine, COUNT, part(rank, 1) + 7);
        next_step();
        must(MPI_File_iwrite_at(file, at, mine, COUNT, MPI_LONG, &request), "iwrite_at");
        MPI_Wait(&request, &status);
        must(MPI_File_write_at_all_begin(file, at, mine, COUNT, MPI_LONG), "write_at_all_begin");
        must(MPI_File_write_at_all_end(file, mine, &status), "write_at_all_end");
        MPI_Barrier(MPI_COMM_WORLD);
        check_whole(file, "iwrite_at", 7);
        MPI_Barrier(MPI_COMM_WORLD);
}

static void with_view(MPI_File file) {
        long mine[COUNT], back[COUNT] = { 0 };
        MPI_Datatype every;
        MPI_Status status;

        fill(mine, COUNT, part(rank, 3));
        MPI_Type_vector(COUNT, 1, size, MPI_LONG, &every);
        MPI_Type_commit(&every);
        next_step();
        must(MPI_File_set_view(file, (MPI_Offset) rank * (MPI_Offset) sizeof(long), MPI_LONG, every, "native", MPI_INFO_NULL),
             "set_view");
        MPI_Type_free(&every);
        must(MPI_File_write_all(file, mine, COUNT, MPI_LONG, &status), "write_all");
        next_step();
        must(MPI_File_seek(file, 0, MPI_SEEK_SET), "seek");
        must(MPI_File_read_all(file, back, COUNT, MPI_LONG, &status), "read_all");
        if (back[0] != part(rank, 3) || back[COUNT - 1] != part(rank, 3))
                wrong("read_all", rank, back[0]);
        MPI_Barrier(MPI_COMM_WORLD);
        must(MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "native", MPI_INFO_NULL), "set_view back");
        for (int i = 0; i < COUNT; i++)
                for (int from = 0; from < size; from++) {
                        long is = 0;

                        must(MPI_File_read(file, &is, 1, MPI_LONG, MPI_STATUS_IGNORE), "read");
                        if (lives[from] && is != part(from, 3))
                                wrong("write_all through a view", from, is);
                }
        MPI_Barrier(MPI_COMM_WORLD);
}

/* Parts of different length, one after the other: each that lives is whole, wherever it is. */
static void in_order(MPI_File file) {
        int n = rank % 3 + 1, found[64] = { 0 };
        long mine[3], is;
        MPI_Offset end_of_all;

        fill(mine, n, part(rank, 5));
        next_step();
        must(MPI_File_set_size(file, 0), "set_size");
        must(MPI_File_seek_shared(file, 0, MPI_SEEK_SET), "seek_shared");
        must(MPI_File_write_ordered(file, mine, n, MPI_LONG, MPI_STATUS_IGNORE), "write_ordered");
        next_step();
        MPI_Barrier(MPI_COMM_WORLD);
        must(MPI_File_get_position_shared(file, &end_of_all), "get_position_shared");
        for (MPI_Offset at = 0; at < end_of_all; at++) {
                must(MPI_File_read_at(file, at, &is, 1, MPI_LONG, MPI_STATUS_IGNORE), "read_at");
                for (int from = 0; from < size; from++)
                        found[from] += is == part(from, 5);
        }
        for (int from = 0; from < size; from++)
                if (lives[from] && found[from] != from % 3 + 1)
                        wrong("write_ordered", from, found[from]);
        MPI_Barrier(MPI_COMM_WORLD);
        /* A file that has the size already is not changed. */
        for (int i = 0; i < 2; i++)
                must(MPI_File_preallocate(file, (MPI_Offset) size * COUNT * (MPI_Offset) sizeof(long)), "preallocate");
}

int main(int argc, char **argv) {
        int rounds = argc > 1 ? atoi(argv[1]) : 10;

        name = getenv("FILES_NAME");
        if (!name)
                name = "files.data";
        begin(argc, argv);
        for (int round = 0; round < rounds; round++) {
                int mode = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE, is;
                MPI_Offset bytes;
                MPI_File file;

                scan_living(true);
                barrier_without_dying();
                must(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file), "open");
                must(MPI_File_get_amode(file, &is), "get_amode");
                if (is != mode)
                        wrong("get_amode", rank, is);
                with_offsets(file);
                with_view(file);
                in_order(file);
                barrier_without_dying();
                must(MPI_File_get_size(file, &bytes), "get_size");
                if (bytes != (MPI_Offset) size * COUNT * (MPI_Offset) sizeof(long))
                        wrong("get_size", rank, bytes);
                must(MPI_File_close(&file), "close");
                if (access(name, F_OK) == 0)
                        wrong("a file that is to be deleted", rank, 1);
                if (MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file) == MPI_SUCCESS)
                        wrong("open of what is not there", rank, 0);
        }
        return end("files");
}
