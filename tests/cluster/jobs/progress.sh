#!/bin/bash
# A program that tells how far it is (librmrt) is shown with its progress, rate and end in list-jobs and show-job: also after moves, a restart of rmd and of the leader, the loss of a node.
# It is built as a user builds it, in C and in Fortran, and runs the same under a plain mpirun. Who writes nonsense at the door harms nobody.
# complete: unit tests of progress show what is counted and told
# limit: 330
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 4 --cores 2 --set cluster.node_timeout=2s
must "there are no three voters" until_true 30 voters_up

# progress NAME FIELD: as rmctl's JSON says; empty: nothing.
progress() {
    on "$asker" rmctl show-job --json "$(job "$1")" | python3 -c 'import json, sys
p = json.load(sys.stdin)["jobs"][0].get("progress") or {}
print(p.get(sys.argv[1], ""))' "$2"
}
knows() {
    local done
    done=$(progress "$1" done)
    [[ $done ]] && ((done > ${2:-0}))
}
# goes_on NAME WHAT: after WHAT more steps become known.
goes_on() {
    local before
    before=$(progress "$1" done)
    must "after $2 no progress of $1 is shown" until_true 30 knows "$1" "${before:-0}"
    see "after $2: $(rmctl show-job "$(job "$1")" | grep '^Progress')"
}

bed_do copy "$repo_dir/examples/rtlib/stencil.c" n1:/home/alice/stencil.c
bed_do exec n1 --user alice -- sh -c 'mpicc -O2 -Wall -Wextra -o stencil stencil.c $(pkg-config --cflags --libs rmrt rmrt-checkpoint) -lm' >"$work/cc" 2>&1 ||
    fail "a user cannot build it: $(head -n 5 "$work/cc")"
bed_do exec n1 --user alice -- sh -c 'OMPI_MCA_btl=self,sm mpirun --oversubscribe -n 2 ./stencil 2000' </dev/null >"$work/plain.out" 2>&1 || fail "under mpirun: $(tail -n 3 "$work/plain.out")"
see "mpirun: $(tail -n 1 "$work/plain.out")"

run short n1 -n 2 ./stencil 2000
ended_well short heat
same "the result under rmd and without" "$(grep heat "$work/short.out")" "$(grep heat "$work/plain.out")"

# In Fortran. Debian's mpifort wants gfortran, and depends on a package that has it under the name of its version only.
bed_do copy "$repo_dir/examples/rtlib/stencil.f90" n1:/home/alice/stencil.f90
bed_do exec n1 --user alice -- sh -c 'fc=$(basename "$(ls /usr/bin/gfortran* | head -n 1)")
    OMPI_FC=$fc mpifort -std=f2008 -O2 -Wall -Wextra -Werror -o fstencil $(pkg-config --variable=fsource rmrt) $(pkg-config --variable=fsource_resize rmrt) $(pkg-config --variable=fsource rmrt-checkpoint) stencil.f90 \
        $(pkg-config --cflags --libs rmrt rmrt-checkpoint)' >"$work/fc" 2>&1 ||
    fail "a user cannot build it in Fortran: $(head -n 5 "$work/fc")"
bed_do exec n1 --user alice -- sh -c 'OMPI_MCA_btl=self,sm mpirun --oversubscribe -n 2 ./fstencil 2000' </dev/null >"$work/fplain.out" 2>&1 || fail "in Fortran under mpirun: $(tail -n 3 "$work/fplain.out")"
same "the result in Fortran and in C" "$(grep heat "$work/fplain.out")" "$(grep heat "$work/plain.out")"
bed_do exec n1 --user alice -- sh -c 'cat >check.f90; OMPI_FC=$(basename "$(ls /usr/bin/gfortran* | head -n 1)") \
    mpifort -std=f2008 -Wall -Werror -o check $(pkg-config --variable=fsource rmrt) check.f90 $(pkg-config --cflags --libs rmrt) && ./check' >"$work/check" 2>&1 <<'END' || fail "what the module checks: $(head -n 5 "$work/check")"
module callbacks
  use, intrinsic :: iso_c_binding, only: c_associated, c_int, c_ptr
contains
  subroutine told(event, data) bind(c)
    integer(c_int), value :: event
    type(c_ptr), value :: data
    if (event == 0 .or. c_associated(data)) stop 10
  end subroutine
end module
program check
  use, intrinsic :: iso_c_binding, only: c_int, c_loc, c_sizeof
  use callbacks
  use rmrt
  real, allocatable, target :: scratch(:)
  integer :: e
  call rmrt_init(e)
  if (e /= 0 .or. rmrt_is_managed()) stop 1
  call rmrt_step(5, 5, e)
  if (e /= 0) stop 2
  call rmrt_step(6, 5, e)
  if (e >= 0) stop 3
  call rmrt_step(-1, 5, e)
  if (e >= 0) stop 4
  call rmrt_goal(2d0, 1d0, e)
  if (e >= 0) stop 5
  call rmrt_at(rmrt_after_move, told, ierror=e)
  if (e /= 0) stop 6
  call rmrt_at(99_c_int, told, ierror=e)
  if (e >= 0) stop 7
  allocate (scratch(100000))
  call rmrt_exclude(c_loc(scratch), c_sizeof(scratch), e)
  if (e /= 0) stop 8
  call rmrt_include(c_loc(scratch), c_sizeof(scratch), e)
  if (e /= 0) stop 9
  call rmrt_finalize()
end program
END
run fshort n1 -n 3 ./fstencil 2000
ended_well fshort heat
same "the result in Fortran under rmd, and in C" "$(grep heat "$work/fshort.out")" "$(grep heat "$work/plain.out")"
start fortran n1 -n 3 ./fstencil 2000000 7
must "nothing is known of fortran" until_true 40 knows fortran 10
same "how many steps there are in Fortran" "$(progress fortran total)" 2000000
same "its goal" "$(progress fortran goal_min)" 7.0
see "Fortran: $(rmctl show-job "$(job fortran)" | grep '^Progress')"
rmctl cancel-job "$(job fortran)"
finish fortran

start long n1 "${paced[@]}" --group-size 1 --checkpoint 1h --on-node-loss restart -n 4 ./stencil 2000000 10
start silent n1 -n 1 "$programs/ordered" --stop-file="$(stop_file silent)" --pause-usec=20000
must "nothing is known of long" until_true 40 knows long 10
# A rate takes two reports of each.
all_tell() {
    [[ $(progress long ranks) == 4 ]] && rmctl show-job "$(job long)" >"$work/show" &&
        grep -Eq '^Progress: +[0-9]+ of 2000000 steps \([0-9]+ %\), [0-9.e+]+ a second, [0-9dhms ]+ left' "$work/show"
}
until_true 30 all_tell || fail "$(progress long ranks) ranks tell it; show-job: $(grep -m 1 Progress "$work/show")"
same "how many steps there are" "$(progress long total)" 2000000
grep -Eq '^Goal: +at least 10 steps a second' "$work/show" || fail "show-job has no goal: $(<"$work/show")"
see "$(grep Progress "$work/show")"
rmctl list-jobs >"$work/list"
grep -Eq ' long .* [0-9]+ %' "$work/list" || fail "list-jobs: $(<"$work/list")"
same "progress of a job that tells none" "$(progress silent done)" ''
release silent
finish silent

# Another user sees nothing of it.
as bob n1 sh -c "rmctl list-jobs; rmctl show-job $(job long)" >"$work/bob" 2>&1
grep -Eq ' [0-9]+ %|Progress:' "$work/bob" && fail "bob sees how far alice's job is: $(<"$work/bob")"

for group in 0 3; do
    to=$(a_node_but "$(q where long "$group")")
    move long "$group" "$to"
    goes_on long "a move of group $group to $to"
done
bed_do restart-rmd n2
goes_on long "a restart of rmd on n2"
leader=$(q leader)
bed_do restart-rmd "$leader"
goes_on long "a restart of the leader, $leader"

# It goes back to its checkpoint, and from there on.
rmctl checkpoint-job "$(job long)" >"$work/saved" 2>&1 || fail "long is not saved: $(<"$work/saved")"
victim=$(q place long | awk '$2 != "n1" { print $2; exit }')
bed_do power-off "$victim"
restarted() {
    [[ $(q job long attempt) == 2 && $(q job long state) =~ RUNNING|FOLDED ]]
}
must "long does not go on without $victim: $(q job long state)" until_true 60 restarted
goes_on long "a restart from a checkpoint"
bed_do power-on "$victim"

# What knocks at the door does not disturb others in the same job's capsules, nor those beside it.
start knock n1 --group-size 2 -n 2 "$programs/knock" 8
goes_on long "knocking began"
finish knock
same "the exit code of knock" "$rc" 0
see "$(tr '\n' ' ' <"$work/knock.out")"
goes_on long "knocking"
for node in $(nodes); do
    on "$node" pgrep -x rmd >/dev/null || fail "rmd on $node has ended"
done

rmctl cancel-job "$(job long)"
finish long
