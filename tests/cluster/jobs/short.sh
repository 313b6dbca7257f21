#!/bin/bash
# Fifty short jobs (in a quick run 15) one after another and ten at once: none lost, nothing left, rmd's memory and descriptors flat.
# limit: 240
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# "KB DESCRIPTORS" of rmd on NODE; its own memory, for pages of libraries come and go
weight() {
    on "$1" sh -c 'pid=$(cat /run/testbed-rmd.pid); awk "/^RssAnon/ { printf \"%d \", \$2 }" /proc/$pid/status; ls /proc/$pid/fd | wc -l'
}

one_by_one() {
    # All in one shell of alice's, as a user's script would.
    as alice n1 bash -c 'for ((i = $1; i < $2; i++)); do
            out=$(rm-mpirun --job-name s$i -n 2 "$3" --iterations=10 2>&1) || { echo "job $i: exit $?: $out"; exit 1; }
            [[ $out == *hash* ]] || { echo "job $i: $out"; exit 1; }
        done' bash "$1" "$2" "$programs/ordered" || fail "a short job failed"
}

many=$(thorough 50 15)
cluster 3 --cores 4
one_by_one 0 5
must "nothing is left after 5" until_true 15 nothing_left
for n in $(nodes); do first[${n#n}]=$(weight "$n"); done
begun=$EPOCHREALTIME
one_by_one 5 $((5 + many))
see "$many jobs in $(($(msec_since "$begun") / 1000)) s"
begun=$EPOCHREALTIME
for ((i = 0; i < 10; i++)); do
    start "t$i" "n$((i % 3 + 1))" -n 2 "$programs/ordered" --iterations=50
done
for ((i = 0; i < 10; i++)); do
    finish "t$i" 60
    ended_well "t$i" hash
done
see "10 at once on 12 cores in $(msec_since "$begun") ms"
same "different results" "$(sed -n 's/.*\(hash [0-9a-f]*\).*/\1/p' "$work"/t?.out | sort -u | wc -l)" 1
must "nothing is left" until_true 15 nothing_left
for n in $(nodes); do
    before=${first[${n#n}]}
    after=$(weight "$n")
    see "rmd on $n: $before -> $after (memory in kB, descriptors)"
    # What the table of ended jobs holds is allowed: some 10 kB a job.
    ((${after% *} <= ${before% *} + 1500)) || fail "rmd's memory on $n grows"
    ((${after#* } <= ${before#* } + 3)) || fail "rmd's descriptors on $n grow"
done
same "jobs that are known to have completed" "$(q jobs COMPLETED | wc -l)" $((15 + many))
