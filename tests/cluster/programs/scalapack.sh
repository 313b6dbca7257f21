#!/bin/bash
# Debian's own tests of ScaLAPACK, unmodified: the same verdicts with no move and with moves.
# packages: thirdparty
# limit: 300
. "${BASH_SOURCE[0]%/*}/../lib.sh"
RANDOM=${RM_TEST_SEED:-7}
installed=/usr/lib/x86_64-linux-gnu/scalapack/openmpi-tests

# Matrix inversion; it finds its input where it starts.
invert() {
    as alice n1 sh -c "mkdir -p $1 && cp -L $installed/INV.dat $1"
    start "$1" n1 --group-size 1 -n 4 --wdir "/home/alice/$1" -x "LD_PRELOAD=$programs/polite.so" "$installed/xdinv"
}

# verdicts NAME: each test's parameters and what came of it, without times and rates; and the counts at the end.
verdicts() {
    awk '/^WALL/ { print $2, $3, $4, $5, $NF } /tests (completed|skipped)/' "$work/$1.out"
}

cluster 3 --cores 4
invert still
finish still 120
ended_well still ' 0 tests completed and failed residual checks'
verdicts still >"$work/still.verdicts"
(($(grep -c PASSED "$work/still.verdicts") >= 100)) || fail "few verdicts: $(head -n 3 "$work/still.verdicts")"
# A run takes some ten seconds: several, until there were enough moves.
sum=0
for ((i = 0; i < 15 && sum < 6; i++)); do
    invert "moved$i"
    keep_moving "moved$i" 10
    finish "moved$i" 100
    ended_well "moved$i" ' 0 tests completed and failed residual checks'
    verdicts "moved$i" >"$work/moved.verdicts"
    cmp -s "$work/still.verdicts" "$work/moved.verdicts" ||
        fail "other verdicts: $(diff "$work/still.verdicts" "$work/moved.verdicts" | head -n 4 | tr '\n' '|')"
    sum=$((sum + $(moves_of "moved$i")))
done
((sum >= 3)) || fail "only $sum moves in $i runs"
see "$sum moves in $i runs: $(wc -l <"$work/still.verdicts") lines of verdicts are identical"
