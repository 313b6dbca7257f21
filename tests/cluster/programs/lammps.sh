#!/bin/bash
# Debian's LAMMPS, unmodified: every digit of what it computes is the same with no move and with 10.
# packages: thirdparty
# limit: 300
. "${BASH_SOURCE[0]%/*}/../lib.sh"
RANDOM=${RM_TEST_SEED:-7}

melt() {
    as alice n1 mkdir -p "$1"
    start "$1" n1 --group-size 1 -n 3 --wdir "/home/alice/$1" -x "LD_PRELOAD=$programs/polite.so" lmp -in "$programs/in.melt" -log none
}

# thermo NAME: the lines that it prints as it computes, without times. final NAME: where all atoms are at the end.
thermo() {
    sed -n '/^ *Step /,/^Loop time/p' "$work/$1.out" | grep -v '^Loop time'
}
final() {
    as alice n1 cat "$1/final.dump"
}

cluster 3 --cores 3
bed_do copy "$tests_dir/data/lammps/in.melt" "n1:$programs/in.melt"
melt still
finish still 120
ended_well still '^Total wall time'
thermo still >"$work/still.thermo"
(($(wc -l <"$work/still.thermo") >= 20)) || fail "it has computed nothing"
# How many moves fit into a run depends on what else the machine does: several, until there were enough.
sum=0
for ((i = 0; i < 5 && sum < 5; i++)); do
    melt "moved$i"
    keep_moving "moved$i" 10
    finish "moved$i" 150
    ended_well "moved$i" '^Total wall time'
    thermo "moved$i" >"$work/moved.thermo"
    cmp -s "$work/still.thermo" "$work/moved.thermo" ||
        fail "other numbers: $(diff "$work/still.thermo" "$work/moved.thermo" | head -n 4 | tr '\n' '|')"
    same "the digest of the positions" "$(final "moved$i" | sha256sum)" "$(final still | sha256sum)"
    sum=$((sum + $(moves_of "moved$i")))
done
((sum >= 5)) || fail "only $sum moves in $i runs"
see "$sum moves in $i runs: $(wc -l <"$work/still.thermo") lines and the positions of $(($(final still | wc -l) - 9)) atoms are identical"
