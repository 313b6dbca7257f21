#!/bin/bash
# A Python program with Debian's mpi4py: all that its ranks receive is the same with no move and with 10, and it ends.
# packages: thirdparty
# limit: 400
. "${BASH_SOURCE[0]%/*}/../lib.sh"
RANDOM=${RM_TEST_SEED:-7}
rounds=$(thorough 1000 350)

run_rounds() {
    start "$1" n1 --group-size 1 -n 3 -x "LD_PRELOAD=$programs/polite.so" python3 "$programs/mpi4py-rounds" $rounds
}
digest() {
    sed -n 's/^mpi4py: \([0-9a-f]\{64\}\)$/\1/p' "$work/$1.out"
}

cluster 3 --cores 3
run_rounds still
finish still 90
ended_well still '^mpi4py: [0-9a-f]*$'
run_rounds moved
running moved
keep_moving moved 10
finish moved 90
ended_well moved '^mpi4py: [0-9a-f]*$'
(($(moves_of moved) >= 3)) || fail "only $(moves_of moved) moves before it was over: more rounds"
same "the digest of $rounds rounds" "$(digest moved)" "$(digest still)"
see "$(moves_of moved) moves: the digests of $rounds rounds are identical"
# Short ones that end while they move.
for ((i = 0; i < $(thorough 10 3); i++)); do
    rounds=150
    run_rounds "short$i"
    running "short$i"
    keep_moving "short$i" 100
    finish "short$i" 40
    ended_well "short$i" '^mpi4py: [0-9a-f]*$'
done
short_moves=$(for ((k = 0; k < i; k++)); do moves_of "short$k"; done | paste -sd +)
((short_moves > 0)) || fail "none of the short ones has moved"
see "$i short ones have ended, after $short_moves moves"
