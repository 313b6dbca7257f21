#!/bin/bash
# A program that says where it has no messages on their way (rmrt_checkpoint_here) is saved there, all of its ranks at the same place, and goes on from there. One rank that never comes costs the limit, and
# no checkpoint. If rmd is lost meanwhile, nobody waits for it.
# complete: checkpoint/faults saves, and a program with places is one that is saved
# limit: 300
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 2 --set checkpoint.place_wait=6s

bed_do copy "$repo_dir/tests/programs/places.c" n1:/home/alice/places.c
bed_do copy "$repo_dir/tests/programs/common.h" n1:/home/alice/common.h
bed_do exec n1 --user alice -- sh -c 'mpicc -std=gnu17 -O2 -Wall -Wextra -o places places.c $(pkg-config --cflags --libs rmrt)' >"$work/cc" 2>&1 ||
    fail "a user cannot build it: $(head -n 5 "$work/cc")"

# begin NAME ARG...: a group for each of four ranks.
begin() {
    start "$1" n1 --group-size 1 --checkpoint 1h --on-node-loss restart -n 4 ./places --stop-file="$(stop_file "$1")" "${@:2}"
    running "$1"
    sleep 3 # rmd hears who has places within two seconds
}
# pause NAME: for how long it stood still in its last checkpoint, in ms.
pause() {
    rmctl show-job --json "$(job "$1")" | python3 -c 'import json, sys
print(int(json.load(sys.stdin)["jobs"][0]["checkpoints"][-1]["pause_usec"]) // 1000)'
}
# stop_and_go NAME TIMES
stop_and_go() {
    local k
    for ((k = 1; k <= $2; k++)); do
        must "checkpoint-job --stop of $1" as alice n1 rmctl checkpoint-job --stop "$(job "$1")" >/dev/null
        must "$1 is not held" q state "$1" PENDING 30 >/dev/null
        see "$1: stood still for $(pause "$1") ms"
        sleep 5 # what it knows it by
        must "restart-job of $1" as alice n1 rmctl restart-job "$(job "$1")" >/dev/null
        must "$1 does not go on" q state "$1" RUNNING 60 >/dev/null
        sleep 2
    done
}
# stops NAME: "PLACED ELSEWHERE" of each rank.
stops() {
    sed -n 's/^rank [0-9]*: stopped \([0-9]*\) times at its place, \([0-9]*\) elsewhere; all is right.*/\1 \2/p' "$work/$1.out"
}

# --- at their places, all at the same ---

times=$(thorough 20 3)
begin with
stop_and_go with "$times"
release with
finish with
same "the exit code of with" "$rc" 0
see "$(sort "$work/with.out" | grep '^rank' | tr '\n' '|')"
same "stops of all ranks that were not at their places" "$(stops with | awk '{ placed += $1; other += $2 } END { print placed, other }')" "$((4 * times)) 0"
same "different iterations in which ranks were saved" "$(sed -n 's/.*; iterations \(.*\) of .*/\1/p' "$work/with.out" | sort -u | wc -l)" 1

# Without a word from it, it is saved as it is.
begin without --without
stop_and_go without 1
release without
finish without
same "the exit code of without" "$rc" 0
see "$(sort "$work/without.out" | grep '^rank' | tr '\n' '|')"
(($(stops without | awk '{ other += $2 } END { print other }') > 0)) || fail "a program without places is saved where it has nothing on its way: this test shows nothing"

# --- a rank that does not come ---

begin late --late=2
begin=$EPOCHREALTIME
must "a checkpoint of a job with a rank that does not come" as alice n1 rmctl checkpoint-job "$(job late)" >"$work/late.saved"
msec=$(msec_since "$begin")
see "with a rank that does not come it takes $msec ms"
((msec >= 6000)) || fail "it was not waited for"

# --- rmd is lost while ranks wait ---

as alice n1 rmctl checkpoint-job "$(job late)" >"$work/lost.saved" 2>&1 &
asked=$!
sleep 2
node=$(q where late 0)
begin=$EPOCHREALTIME
bed_do restart-rmd "$node"
must "$node is not back" back "$node" "$begin"
wait "$asked"
see "with rmd lost: $(tail -n 1 "$work/lost.saved")"
sleep 1
release late
finish late
same "the exit code of late" "$rc" 0
grep -q 'all is right' "$work/late.out" || fail "late: $(<"$work/late.out")"
