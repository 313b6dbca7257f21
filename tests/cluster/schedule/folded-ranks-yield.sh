#!/bin/bash
# Two ranks have a core each until the availability file takes one away: ranks in two groups, one of which moves, and both in one group. The one that
# waits then leaves the core to the other: it uses less than half of the processor time for a line that the same job uses when it polls. The
# library by which they do so moves with them, says nothing, changes no result, and keeps out of a job that says itself how it waits.
# polls
# limit: 200
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 2
# As systemd does it: ranks of different capsules are then in one scheduling group.
for n in n1 n2; do give_controllers "$n"; done

# allow N1 N2: so many cores of each may be used.
allow() {
    on n1 sh -c 'printf "n1:%d\nn2:%d\n" "$@" >/home/rmd/availability' sh "$@"
}
# marks NAME: the lines that it has said so far.
marks() {
    grep -c ': running' "$work/$1.out"
}
# all_marks NAME N
all_marks() {
    (($(marks "$1") >= $2))
}
# used NAME: processor time for a line, in us, from the next thing that it says to the third after it. It says it every second, or less often.
used() {
    local begun
    begun=$(($(marks "$1") + 1))
    until_true 60 all_marks "$1" $((begun + 2)) || fail "job $1 has stopped: $(tail -n 2 "$work/$1.out" "$work/$1.err")"
    sed -n "${begun}p;$((begun + 2))p" <(grep ': running' "$work/$1.out") |
        awk '{ for (i = 1; i < NF; i++) { if ($i == "lines") l[NR] = $(i + 1); if ($i == "used") u[NR] = $(i + 1) } }
            END { printf "%.1f\n", (u[2] - u[1]) / (l[2] - l[1]) }'
}
# yielding NODE: how many ranks there have rm-yield, and find it under its name.
yielding() {
    # shellcheck disable=SC2016 # the node's shell expands it
    on "$1" sh -c 'for p in $(pgrep -x wavefront); do grep -q "r-xp.* /run/rmd-yield.so$" /proc/$p/maps && cmp -s /usr/libexec/rmd/rm-yield.so /proc/$p/root/run/rmd-yield.so && echo $p; done' | wc -l
}

# folded NAME SIZE: a job of groups of SIZE is folded, and has two cores again; $of_folded is what it uses for a line meanwhile.
folded() {
    local name=$1 size=$2 begin=(1 1) end=(1 1)
    ((size == 1)) || { begin=(2 0) && end=(0 2); }
    allow "${begin[@]}"
    start "$name" n1 --group-size "$size" -n 2 "$programs/wavefront" --sweeps=1 --lines=1 --stop-file="$(stop_file "$name")"
    running "$name"
    allow 1 0
    must "$name is not folded" q state "$name" FOLDED 30 >/dev/null
    of_folded=$(used "$name")
    same "what show-job says" "$(rmctl show-job "$(job "$name")" | sed -n 's/^Folded: *//p')" '2 ranks on 1 core of n1: 2.0 times as long'
    allow "${end[@]}"
    must "$name does not get its cores back" q state "$name" RUNNING 60 >/dev/null
    # A copy that has moved away is one more until it is removed.
    must "$name does not settle" q settled 60 >/dev/null
    ranks_yielding=$(($(yielding n1) + $(yielding n2)))
    see "$name: $(q place "$name" | paste -sd ' '), moves: $(moves_of "$name")"
    release "$name"
    finish "$name"
    ended_well "$name" hash
    # rm-mpirun also tells of a job that took a while to be placed.
    same "what rm-mpirun and the linker say" "$(grep -vE '^rm-mpirun: job [0-9]+ (waits|starts)' "$work/$name.err")" ''
}

for size in $(thorough "1 2" $((1 + RANDOM % 2))); do
    settings=(OMPI_MCA_mpi_yield_when_idle=0)
    folded "polls$size" "$size"
    same "ranks of a job that polls with rm-yield" "$ranks_yielding" 0
    of_polls=$of_folded
    settings=()
    folded "yields$size" "$size"
    same "ranks with rm-yield" "$ranks_yielding" 2
    see "groups of $size, folded: $of_folded us of processor time for a line, $of_polls when they poll"
    # Each line waits for the other rank: it costs one that polls what is left of its time slice, and one that yields an eighth, at most, of the
    # time that others compute on the core meanwhile, who also end the time slices of one that polls early.
    awk -v a="$of_folded" -v b="$of_polls" 'BEGIN { exit !(a > 0 && a < b / 2) }' ||
        fail "a line takes $of_folded us of processor time, and $of_polls when they poll"
done

allow 2 2
hash=$(hash_of "yields$size")
sweeps=$(sed -n 's/.* sweeps \([0-9]*\) .*/\1/p' "$work/yields$size.out")
start alone n1 --group-size 2 -n 2 "$programs/wavefront" --lines=1 --sweeps="$sweeps"
finish alone 120
ended_well alone hash
same "the result of $sweeps sweeps" "$hash" "$(hash_of alone)"

# said SETTING: what the program says of its environment; rm-mpirun itself may tell that the job waits. It is its environment that counts.
said() {
    bed_do exec n1 --user alice -- env "$1" rm-mpirun -n 1 sh -c 'echo "$OMPI_MCA_mpi_yield_when_idle, $LD_PRELOAD"' </dev/null 2>"$work/said.err" ||
        cat "$work/said.err"
}
same "a job that polls" "$(said OMPI_MCA_mpi_yield_when_idle=0)" "0, "
same "a job that yields by itself" "$(said OMPI_MCA_mpi_yield_when_idle=1)" "1, "
same "a job with a library of its own" "$(said LD_PRELOAD=libc.so.6)" "1, libc.so.6:/run/rmd-yield.so"
