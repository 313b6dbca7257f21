#!/bin/bash
# Debian's NetPIPE, unmodified, as it checks each byte that it has sent: the same sizes are good with no move and with 6.
# complete: move/results shows it with a program whose every bit is known
# limit: 240
. "${BASH_SOURCE[0]%/*}/../lib.sh"
RANDOM=${RM_TEST_SEED:-7}

netpipe() {
    as alice n1 mkdir -p "$1"
    start "$1" n1 --group-size 1 -n 2 --wdir "/home/alice/$1" -x "LD_PRELOAD=$programs/polite.so" NPopenmpi -i -n "$(thorough 1500 500)" -u 131072
}
# sizes NAME: what it says of each size.
sizes() {
    sed -nE 's/.*[0-9]+: +([0-9]+) bytes +[0-9]+ times.*/\1/p' "$work/$1.out" "$work/$1.err" | sort -n
}

cluster 2 --cores 2
netpipe still
finish still 100
ended_well still .
netpipe moved
keep_moving moved 6
finish moved 120
same "the exit code" "$rc" 0
same "the sizes" "$(sizes moved | tr '\n' ' ')" "$(sizes still | tr '\n' ' ')"
(($(moves_of moved) >= 3)) || fail "only $(moves_of moved) moves before it was over: more repetitions"
(($(sizes still | wc -l) > 20)) || fail "few sizes: $(tail -n 3 "$work/still.err")"
see "$(moves_of moved) moves: $(sizes still | wc -l) sizes are good"
