#!/bin/bash
# A program in Fortran (mpi_f08) grows and shrinks: its result is the same to the last bit as with a fixed number of ranks, and as that of the same program in C. Arrays come to their ranks whole, however
# they are distributed; built with Open MPI and with MPICH.
# packages: thirdparty
# limit: 400
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 4 --set sched.resize_interval=0

# build WRAPPER OUTPUT SOURCE. Debian's wrappers want gfortran, and depend on a package that has it under the name of its version only.
build() {
    bed_do exec n1 --user alice -- sh -c 'export OMPI_FC=$(basename "$(ls /usr/bin/gfortran* | head -n 1)") && export MPICH_FC=$OMPI_FC MPICH_F90=$OMPI_FC && mkdir -p modules.'"$1 && cd modules.$1 &&
        $1"' -std=f2008 -O2 -Wall -Wextra -Werror -o ../'"$2"' $(pkg-config --variable=fsource rmrt) $(pkg-config --variable=fsource_resize rmrt) $(pkg-config --variable=fsource rmrt-checkpoint) ../'"$3"' \
            $(pkg-config --cflags --libs rmrt rmrt-checkpoint)' >"$work/fc" 2>&1 ||
        fail "a user cannot build $3 with $1: $(head -n 12 "$work/fc")"
}
plain() {
    bed_do exec n1 --user alice -- sh -c "export OMPI_MCA_btl=self,sm; exec timeout 100 $*" </dev/null 2>"$work/err" || fail "$*: $(tail -n 3 "$work/err")"
}

# --- arrays ---

cat >"$work/scatter.f90" <<'END'
program scatter
  use, intrinsic :: iso_c_binding, only: c_loc, c_null_ptr, c_ptr
  use, intrinsic :: iso_fortran_env, only: int64
  use mpi_f08
  use rmrt_resize
  implicit none
  type(rmrt_resize_event) :: event
  integer(int64), allocatable, target :: old(:, :), new(:, :)
  type(c_ptr) :: old_ptr, new_ptr
  type(MPI_Datatype) :: pair
  integer :: rank, size_all, n, k, all, ierror, bad
  integer, allocatable :: from(:), to(:)

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size_all)
  call MPI_Type_contiguous(2, MPI_INTEGER8, pair)
  call MPI_Type_commit(pair)
  allocate (from(0:size_all), to(0:size_all))
  bad = 0
  event%both = MPI_COMM_WORLD
  event%kind = RMRT_UNCHANGED
  call rmrt_redistribute(event, c_null_ptr, 0, c_null_ptr, 0, pair, ierror)
  if (ierror /= -22) bad = bad + 1
  event%kind = RMRT_RESIZED
  do n = 1, 100
    all = mod(n * 37, 500)
    call draw(n * 2, from)
    call draw(n * 2 + 1, to)
    allocate (old(2, from(rank):from(rank + 1) - 1), new(2, to(rank):to(rank + 1) - 1))
    do k = from(rank), from(rank + 1) - 1
      old(:, k) = [k, -k]
    end do
    old_ptr = c_null_ptr
    new_ptr = c_null_ptr
    if (size(old) > 0) old_ptr = c_loc(old(1, from(rank)))
    if (size(new) > 0) new_ptr = c_loc(new(1, to(rank)))
    call rmrt_redistribute(event, old_ptr, size(old, 2), new_ptr, size(new, 2), pair, ierror)
    if (ierror /= 0) bad = bad + 1
    do k = to(rank), to(rank + 1) - 1
      if (any(new(:, k) /= [k, -k])) bad = bad + 1
    end do
    call rmrt_redistribute(event, old_ptr, int(size(old, 2), int64), new_ptr, int(size(new, 2), int64) - 1, pair, ierror)
    if (ierror /= -22) bad = bad + 1
    deallocate (old, new)
  end do
  call MPI_Allreduce(MPI_IN_PLACE, bad, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (rank == 0) print '(i0, a, i0, a)', bad, ' wrong on ', size_all, ' ranks'
  call MPI_Finalize()

contains

  ! Where each rank begins: parts as large as they happen to be, also none.
  subroutine draw(seed, begins)
    integer, intent(in) :: seed
    integer, intent(out) :: begins(0:)
    integer :: i

    begins(0) = 0
    do i = 1, size_all - 1
      begins(i) = begins(i - 1) + (all - begins(i - 1)) * mod(mod(seed * i * 7919, 1009), 4) / 4
    end do
    begins(size_all) = all
  end subroutine

end program
END
bed_do copy "$work/scatter.f90" n1:/home/alice/scatter.f90
build mpifort.openmpi scatter scatter.f90
build mpifort.mpich scatter-mpich scatter.f90
for n in 1 3 5; do
    same "arrays of $n ranks" "$(plain mpirun.openmpi --oversubscribe --mca mpi_yield_when_idle 1 -n "$n" ./scatter)" "0 wrong on $n ranks"
done
same "arrays of 4 ranks of MPICH" "$(plain mpirun.mpich -n 4 ./scatter-mpich)" "0 wrong on 4 ranks"

# --- the whole program ---

bed_do copy "$repo_dir/examples/rtlib/stencil.c" n1:/home/alice/stencil.c
# So that a change always falls together with a look for the file that ends the program.
sed 's/stop_every = 50\b/stop_every = 1/' "$repo_dir/examples/rtlib/stencil.f90" >"$work/stencil.f90"
cmp -s "$repo_dir/examples/rtlib/stencil.f90" "$work/stencil.f90" && fail "stencil.f90 has another stop_every"
bed_do copy "$work/stencil.f90" n1:/home/alice/stencil.f90
bed_do exec n1 --user alice -- sh -c 'mpicc.openmpi -O2 -o stencil stencil.c $(pkg-config --cflags --libs rmrt rmrt-checkpoint) -lm' >"$work/cc" 2>&1 ||
    fail "a user cannot build it in C: $(head -n 5 "$work/cc")"
build mpifort.openmpi fstencil stencil.f90

# resize N: it has so many then.
resize() {
    local begun=$EPOCHREALTIME
    as alice n2 rmctl resize-job --timeout 60s "$(job grows)" "$1" >"$work/resize" 2>&1 || fail "it does not come to $1 ranks: $(<"$work/resize")"
    see "$1 ranks after $(msec_since "$begun") ms: $(rmctl show-job "$(job grows)" | grep '^Progress')"
}
asks() {
    grep -Eq ': *[0-9]+ of' < <(rmctl show-job "$(job grows)" | grep '^Progress')
}
start grows n1 -n 2 --max-ranks 6 --min-ranks 1 --group-size 1 ./fstencil 100000000 0 0 "$(stop_file grows)"
must "nothing is known of grows" until_true 40 asks
for n in 6 3 1 4; do
    resize $n
done
release grows
finish grows
same "the exit code" "$rc" 0
want=$(plain mpirun.openmpi -n 1 ./stencil "$(sed -n 's/^heat: .* after \([0-9]*\) steps$/\1/p' "$work/grows.out")" | grep heat)
see "on one rank: $want"
same "the result of 2, 6, 3, 1 and 4 ranks in Fortran" "$(grep heat "$work/grows.out")" "$want"
see "in Fortran, on 2, 6, 3, 1 and 4 ranks: $(grep heat "$work/grows.out")"
