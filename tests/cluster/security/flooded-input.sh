#!/bin/bash
# Clients that send input for a job without end and without waiting for an answer hold up nobody whose messages go the same way: the leader's answers to
# root on the job's node come as before, over a link of 100 Mbit/s.
# limit: 60
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# asked SECONDS: the median of what root's questions to the leader take from n2, in ms. rmctl list-nodes goes on without the leader's answer after 1000 ms.
asked() {
    on n2 "$programs/probe" "$1" rmctl list-nodes >"$work/answers"
    ! grep -qvE ' (0|slept) ' "$work/answers" || fail "root was refused: $(grep -vE ' (0|slept) ' "$work/answers" | head -n 1)"
    awk '$2 != "slept" { print $1 }' "$work/answers" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

cluster 2 --cores 2 --link 100mbit
until_true 20 as alice n2 rm-mpirun -n 1 true
same "the leader" "$(q leader)" n1
start reads n2 -n 2 "$programs/ordered" --stop-file="$(stop_file reads)" --pause-usec=50000
running reads
[[ $(q where reads -1) == n2 ]] || move reads -1 n2
quiet=$(asked 2)
as alice n1 "$programs/askwithoutend" 4 8 input "$(job reads)" >"$work/flood" &
flood=$!
sleep 2
flooded=$(asked 4)
wait "$flood" || fail "a client of alice's was closed"
see "the median of root's answers of the leader: $quiet ms, beside four clients that send input without end: $flooded ms"
((flooded < 1000)) || fail "the leader's answers to root come after $flooded ms, or not"
release reads
finish reads
ended_well reads hash
