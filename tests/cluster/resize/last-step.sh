#!/bin/bash
# A program whose last step begins when it has said that it can grow: the ranks that were woken for it, which it never calls, end with it. In C and in Fortran.
# complete: unit tests of librmrt and the simulation show it
# limit: 180
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 4 --set sched.resize_interval=0

# Rank 0 sees FILE.ask, and makes FILE.seen: then it asks no more until FILE.last is there, asks once, which begins the change that is wanted by then, and has a last step of 3 s.
cat >"$work/last.c" <<'END'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rm/rmrt_resize.h>

static int is_there(const char *file, const char *suffix) {
        char path[256];

        snprintf(path, sizeof(path), "%s.%s", file, suffix);
        return access(path, F_OK) == 0;
}

static void make(const char *file, const char *suffix) {
        char path[256];

        snprintf(path, sizeof(path), "%s.%s", file, suffix);
        if (open(path, O_CREAT | O_WRONLY, 0644) < 0)
                MPI_Abort(MPI_COMM_WORLD, 1);
}

/* False: the program has ended without this rank. */
static int resize(MPI_Comm *comm) {
        struct rmrt_resize event;

        do {
                if (rmrt_resize_point(*comm, comm, &event) < 0)
                        MPI_Abort(MPI_COMM_WORLD, 1);
        } while (event.kind != RMRT_ENDED && *comm == MPI_COMM_NULL);
        return event.kind != RMRT_ENDED;
}

int main(int argc, char **argv) {
        MPI_Comm comm = MPI_COMM_NULL;
        int rank, size, asked = 0, active;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        rmrt_init();
        active = resize(&comm);
        while (active && !asked) {
                asked = rank == 0 && is_there(argv[1], "ask");
                if (asked)
                        make(argv[1], "seen");
                MPI_Bcast(&asked, 1, MPI_INT, 0, comm);
                while (rank == 0 && asked && !is_there(argv[1], "last"))
                        usleep(10000);
                active = resize(&comm);
                usleep(10000);
        }
        if (active && MPI_Comm_size(comm, &size) == MPI_SUCCESS && rank == 0) {
                printf("the last step, on %d ranks\n", size);
                fflush(stdout);
                sleep(3);
        }
        rmrt_finalize();
        MPI_Finalize();
        return 0;
}
END
cat >"$work/flast.f90" <<'END'
program last
  use mpi_f08
  use rmrt
  use rmrt_resize
  implicit none

  type(MPI_Comm) :: comm
  character(len=200) :: file
  integer :: rank, ranks
  logical :: asked, active

  call get_command_argument(1, file)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call rmrt_init()
  comm = MPI_COMM_NULL
  asked = .false.
  call resize(active)
  do while (active .and. .not. asked)
    if (rank == 0) inquire (file=trim(file)//'.ask', exist=asked)
    call MPI_Bcast(asked, 1, MPI_LOGICAL, 0, comm)
    if (rank == 0 .and. asked) then
      call execute_command_line('touch '//trim(file)//'.seen')
      call await(trim(file)//'.last')
    end if
    call resize(active)
    call execute_command_line('sleep 0.01')
  end do
  if (active) then
    call MPI_Comm_size(comm, ranks)
    if (rank == 0) then
      print '(a, i0, a)', 'the last step, on ', ranks, ' ranks'
      flush (6)
      call execute_command_line('sleep 3')
    end if
  end if
  call rmrt_finalize()
  call MPI_Finalize()

contains

  subroutine await(path)
    character(len=*), intent(in) :: path
    logical :: there

    do
      inquire (file=path, exist=there)
      if (there) return
      call execute_command_line('sleep 0.01')
    end do
  end subroutine

  subroutine resize(active)
    logical, intent(out) :: active
    type(rmrt_resize_event) :: event
    type(MPI_Comm) :: next
    integer :: ierror

    do
      call rmrt_resize_point(comm, next, event, ierror)
      if (ierror < 0) call MPI_Abort(MPI_COMM_WORLD, 1)
      comm = next
      active = event%kind /= RMRT_ENDED
      if (.not. active .or. comm /= MPI_COMM_NULL) return
    end do
  end subroutine
end program
END

for source in last.c flast.f90; do bed_do copy "$work/$source" "n1:/home/alice/$source"; done
bed_do exec n1 --user alice -- sh -c 'export OMPI_FC=$(basename "$(ls /usr/bin/gfortran* | head -n 1)")
    mpicc -O2 -Wall -Wextra -Werror -o last last.c $(pkg-config --cflags --libs rmrt) &&
        mpifort.openmpi -O2 -o flast $(pkg-config --variable=fsource rmrt) $(pkg-config --variable=fsource_resize rmrt) flast.f90 $(pkg-config --cflags --libs rmrt)' >"$work/cc" 2>&1 ||
    fail "a user cannot build them: $(head -n 5 "$work/cc")"

in_last_step() {
    grep -q 'the last step' "$work/$1.out"
}
for name in last flast; do
    start "$name" n1 --group-size 2 -n 4 --max-ranks 8 "./$name" "/home/alice/$name"
    must "$name does not run" q state "$name" RUNNING 30 >/dev/null
    must "the program of $name does not ask" until_true 20 listens "$name"
    must "2 groups do not stand still" until_true 20 stands_still "$name" 2
    on n1 touch "/home/alice/$name.ask"
    must "rank 0 of $name asks on" until_true 20 on n1 test -e "/home/alice/$name.seen"
    as alice n1 rmctl resize-job --no-wait "$(job "$name")" 8 >"$work/resize" 2>&1 || fail "resize-job: $(<"$work/resize")"
    same "requested of $name" "$(resize_field "$name" requested)" 8
    sleep 1
    on n1 touch "/home/alice/$name.last"
    must "$name has no last step" until_true 10 in_last_step "$name"
    must "the ranks are not woken in the last step" until_true 3 stands_still "$name" 0
    finish "$name" 30
    same "$name: its exit code" "$rc" 0
    same "$name: what it says" "$(<"$work/$name.out")" "the last step, on 4 ranks"
    same "$name: its state" "$(q job "$name" state)" COMPLETED
done
