#!/bin/bash
# rmd killed with -9 while jobs are being submitted, here or on the leader: each job runs exactly once, its front end gets the
# output, and nobody keeps that any longer.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# Each run leaves a line with its number in one file: a job that ran twice has two. Exit code 3: there was no rmd to begin with.
submit_some() {
    as alice n2 bash -c 'for ((i = 0; i < $1; i++)); do
            until rm-mpirun -n 1 sh -c "echo $i >>ran; echo said $i" >>said 2>>said.err; do
                status=$?
                ((status == 3)) || { echo "job $i: exit $status" >>failed && break; }
            done
        done' bash "$1"
}

cluster 2 --cores 4
count=$(thorough 30 8)
submit_some "$count" &
submitter=$!
begun=$EPOCHREALTIME
kills=0
until gone "$submitter"; do
    node=n$((kills % 2 + 1))
    bed_do restart-rmd "$node" --kill
    kills=$((kills + 1))
    # So that some of them get through without being disturbed, and some meet it at every stage.
    sleep "0.$((RANDOM % 5 + 1))"
done
wait "$submitter"
must "they do not join again" until_true 20 all_joined
see "$kills times rmd was killed while $count jobs were submitted, in $(msec_since "$begun") ms"
((kills > 2)) || fail "rmd was killed only $kills times"
[[ ! $(as alice n1 cat failed 2>/dev/null) ]] || fail "jobs failed: $(as alice n1 cat failed said.err | tail -n 12 | tr '\n' '|')"
same "runs" "$(as alice n1 sort -n ran | paste -sd ' ')" "$(seq -s ' ' 0 $((count - 1)))"
same "lines of output" "$(as alice n1 grep -c . said)" "$count"
see "front ends that submitted again: $(as alice n1 grep -c 'trying again' said.err)"
