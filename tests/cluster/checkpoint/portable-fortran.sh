#!/bin/bash
# A program in Fortran saves its arrays, and goes on from there with other numbers of ranks, with a result that is the same to the last bit as without; from what the same program in C has
# saved, and the other way round; built with Open MPI and with MPICH; with communicators of the module mpi_f08 and of mpi.
# packages: thirdparty
# limit: 200
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 1 --cores 4

# build WRAPPER OUTPUT SOURCE. Debian's wrappers want gfortran, and depend on a package that has it under the name of its version only.
build() {
    bed_do exec n1 --user alice -- sh -c 'export OMPI_FC=$(basename "$(ls /usr/bin/gfortran* | head -n 1)") && export MPICH_FC=$OMPI_FC MPICH_F90=$OMPI_FC && mkdir -p modules.'"$1 && cd modules.$1 &&
        $1"' -std=f2008 -O2 -Wall -Wextra -Werror -o ../'"$2"' $(pkg-config --variable=fsource rmrt) $(pkg-config --variable=fsource_resize rmrt) $(pkg-config --variable=fsource rmrt-checkpoint) ../'"$3"' \
            $(pkg-config --cflags --libs rmrt rmrt-checkpoint)' >"$work/fc" 2>&1 ||
        fail "a user cannot build $3 with $1: $(head -n 12 "$work/fc")"
}
# plain COMMAND...: by a plain mpirun; the output is in $out.
plain() {
    out=$(bed_do exec n1 --user alice -- sh -c "export OMPI_MCA_btl=self,sm; exec timeout 100 env $*" </dev/null 2>"$work/err") ||
        fail "$*: $(tail -n 3 "$work/err") $out"
}
heat() {
    grep heat <<<"$out"
}
went_on_after() {
    grep -qx "goes on after $1 steps" <<<"$out" || fail "it does not go on after $1 steps: $out"
}

bed_do copy "$repo_dir/examples/rtlib/stencil.c" n1:/home/alice/stencil.c
bed_do copy "$repo_dir/examples/rtlib/stencil.f90" n1:/home/alice/stencil.f90
bed_do exec n1 --user alice -- sh -c 'mpicc.openmpi -O2 -o stencil stencil.c $(pkg-config --cflags --libs rmrt rmrt-checkpoint) -lm' >"$work/cc" 2>&1 ||
    fail "a user cannot build it in C: $(head -n 5 "$work/cc")"
build mpifort.openmpi fstencil stencil.f90
build mpifort.mpich fstencil-mpich stencil.f90

openmpi="mpirun.openmpi --oversubscribe"
plain "$openmpi -n 2 ./fstencil 3000"
want=$(heat)
plain "$openmpi -n 6 ./fstencil 1000 0 300"
plain "$openmpi -n 4 ./fstencil 1500 0 200"
went_on_after 1000
plain "$openmpi -n 3 ./stencil 2000 0 500"
went_on_after 1500
plain "mpirun.mpich -n 5 ./fstencil-mpich 2500 0 500"
went_on_after 2000
plain "$openmpi -n 4 ./fstencil 3000 0 1000"
went_on_after 2500
same "the result on 6, 4, 3 (in C), 5 (MPICH) and 4 ranks" "$(heat)" "$want"
see "$want on 6, 4, 3 (in C), 5 (MPICH) and 4 ranks"

# Under rmd, without a change.
as alice n1 rm -rf rmrt-checkpoints
plain "$openmpi -n 6 ./fstencil 1000 0 1000"
run managed n1 -n 4 ./fstencil 3000 0 700
ended_well managed heat
grep -q 'goes on after 1000 steps' "$work/managed.out" || fail "under rmd it begins anew"
same "the result under rmd" "$(grep heat "$work/managed.out")" "$want"

# A flipped bit is told, and an older one is restored.
as alice n1 sh -c 'rm -rf rmrt-checkpoints; OMPI_MCA_btl=self,sm mpirun.openmpi --oversubscribe -n 3 ./fstencil 1000 0 500' >"$work/out" 2>&1 || fail "$(<"$work/out")"
as alice n1 sh -c 'printf "\001" | dd of=rmrt-checkpoints/rmrt-2.rank-1 bs=1 seek=5000 conv=notrunc status=none'
plain "$openmpi -n 4 ./fstencil 3000 0 3000"
went_on_after 500
grep -q "^stencil: .*checkpoint 2: rank 1: block 0 of array 'plate' is damaged" "$work/err" || fail "the program does not learn of it: $(<"$work/err")"
same "the result from before the damage" "$(heat)" "$want"

# All types, with the integers of module mpi; and what is refused.
bed_do exec n1 --user alice -- sh -c 'cat >types.f90' <<'END'
program types
  use, intrinsic :: iso_c_binding, only: c_loc, c_null_ptr
  use, intrinsic :: iso_fortran_env, only: int64, real32, real64
  use mpi
  use rmrt_checkpoint
  implicit none
  integer, target :: i(3)
  integer(int64), target :: l(3)
  real(real32), target :: r(3)
  complex(real64), target :: z(3), w(4, 3)
  logical, target :: b(3)
  character(len=2), target :: t(3)
  integer :: rank, ierror, restored, k, pair, row, gaps

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call rmrt_set_directory('types.saved', ierror)
  call must('folder', ierror, 0)
  call rmrt_register('i', c_loc(i), 3, MPI_INTEGER, RMRT_BLOCK, ierror)
  call must('i', ierror, 0)
  call rmrt_register('l', c_loc(l), 3_int64, MPI_INTEGER8, RMRT_PRIVATE, ierror)
  call must('l', ierror, 0)
  call rmrt_register('r', c_loc(r), 3, MPI_REAL, RMRT_BLOCK, ierror)
  call must('r', ierror, 0)
  call rmrt_register('z', c_loc(z), 3_int64, MPI_DOUBLE_COMPLEX, RMRT_BLOCK, ierror)
  call must('z', ierror, 0)
  call rmrt_register('b', c_loc(b), 3, MPI_LOGICAL, RMRT_BLOCK, ierror)
  call must('b', ierror, 0)
  call rmrt_register('t', c_loc(t), 6, MPI_CHARACTER, RMRT_BLOCK, ierror)
  call must('t', ierror, 0)
  call MPI_Type_contiguous(2, MPI_DOUBLE_COMPLEX, pair, ierror)
  call MPI_Type_contiguous(2, pair, row, ierror)
  call rmrt_register('w', c_loc(w), 3, row, RMRT_BLOCK, ierror)
  call must('w', ierror, 0)
  call MPI_Type_vector(2, 1, 2, MPI_DOUBLE_COMPLEX, gaps, ierror)
  call rmrt_register('gaps', c_loc(w), 3, gaps, RMRT_BLOCK, ierror)
  call must('gaps', ierror, -95)
  call MPI_Type_contiguous(2, MPI_2INTEGER, gaps, ierror)
  call rmrt_register('pairs of pairs', c_loc(i), 1, gaps, RMRT_BLOCK, ierror)
  call must('pairs of pairs', ierror, -95)
  call rmrt_register('pairs', c_loc(i), 1, MPI_2INTEGER, RMRT_BLOCK, ierror)
  call must('pairs', ierror, -95)
  call rmrt_register('null', c_loc(i), 1, MPI_DATATYPE_NULL, RMRT_BLOCK, ierror)
  call must('null', ierror, -95)
  call rmrt_register('less than none', c_loc(i), -1, MPI_INTEGER, RMRT_BLOCK, ierror)
  call must('less than none', ierror, -27)
  call rmrt_register('nowhere', c_null_ptr, 1, MPI_INTEGER, RMRT_BLOCK, ierror)
  call must('nowhere', ierror, -22)
  if (rmrt_checkpoint_error() /= "array 'nowhere' has no address") stop 3
  call rmrt_unregister('nowhere', ierror)
  call must('nowhere again', ierror, -2)
  i = 0
  l = 0
  r = 0
  z = 0
  w = 0
  b = .false.
  t = ''
  if (command_argument_count() == 0) then
    do k = 1, 3
      i(k) = 3 * rank + k
      l(k) = -i(k) * 10_int64**12
      r(k) = i(k) / 7.0
      z(k) = cmplx(i(k), -i(k), real64) / 3
      w(:, k) = z(k) * [1, 2, 3, 4]
      b(k) = mod(i(k), 2) == 0
      t(k) = char(96 + i(k))//'!'
    end do
    call rmrt_save(MPI_COMM_WORLD, ierror)
    call must('save', ierror, 0)
  else
    call rmrt_restore(MPI_COMM_WORLD, restored, ierror)
    call must('restore', ierror, 0)
    call must('restored', restored, RMRT_RESTORED_ALL)
  end if
  do k = 1, 3
    print '(i0, 1x, i0, 1x, z8.8, 10(1x, z16.16), 1x, l1, 1x, a)', i(k), l(k), r(k), z(k), w(:, k), b(k), t(k)
  end do
  call MPI_Finalize(ierror)

contains

  subroutine must(what, is, wanted)
    character(*), intent(in) :: what
    integer, intent(in) :: is, wanted

    if (is == wanted) return
    print '(2a, i0, 2a)', what, ': ', is, ', ', rmrt_checkpoint_error()
    stop 4
  end subroutine
end program
END
build mpifort.openmpi types types.f90
build mpifort.mpich types-mpich types.f90
plain "$openmpi -n 3 ./types"
types=$(sort <<<"$out")
plain "mpirun.mpich -n 3 ./types-mpich restore"
same "all types, saved by Open MPI and restored by MPICH" "$(sort <<<"$out")" "$types"
grep -q '^9 -9000000000000 .* F i!$' <<<"$types" || fail "$types"
as alice n1 rmctl show-portable types.saved 1 >"$work/show" || fail "show: $(<"$work/show")"
grep -Eq '^z +2 x float64 +block +9 ' "$work/show" || fail "show: $(<"$work/show")"
grep -Eq '^w +8 x float64 +block +9 ' "$work/show" || fail "show: $(<"$work/show")"
see "$(grep '^[zw]' "$work/show" | tr '\n' '|')"
