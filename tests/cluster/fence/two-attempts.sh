#!/bin/bash
# A node with ranks of a job that may start again is cut off, or its rmd stands still: nothing of the attempt runs there any more when the next one
# begins, nor when the node is back.
# limit: 150
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 4 --set cluster.node_timeout=4s --set cluster.lease=3s
must "there are no three voters" until_true 30 voters_up
# Not before all nodes know of restarts.
until_true 20 as alice n1 rm-mpirun --on-node-loss restart -n 1 true 2>"$work/level.err" || fail "no job may restart: $(cat "$work/level.err")"
# Two nodes at least, and the third as well when one is lost.
on n1 sh -c 'printf "n1:2\nn2:2\nn3:2\n" >/home/alice/two'
start live n1 --on-node-loss restart --availability /home/alice/two --group-size 2 -n 4 \
    sh -c "exec $programs/ticks --file=/home/alice/live.\$RM_ATTEMPT --stop-file=$(stop_file live)"

# lines K N: of the files of attempt K the line N, sorted: 1 is when each rank has run last, 2 when it began.
lines() {
    on n1 sh -c 'for f in "$1".*; do sed -n "$2p" "$f"; done' sh "/home/alice/live.$1" "$2" | sed 's/^0*//' | sort -n
}

runs() {
    (($(grep -c 'ticks: running' "$work/live.out") == $1))
}

old_gone() {
    ! on "$victim" pgrep -f "$programs/ticks --file=/home/alice/live\.$1 " >/dev/null
}

attempt=1
must "it does not run" until_true 30 runs 1
for way in cut stop; do
    victim=$(q place live | grep -v '^-1 ' | grep -v ' n1$' | head -n 1 | cut -d ' ' -f 2)
    [[ $victim ]] || fail "all on n1: $(q place live)"
    begun=$EPOCHREALTIME
    if [[ $way == cut ]]; then bed_do cut "$victim"; else on "$victim" sh -c 'kill -STOP "$(cat /run/testbed-rmd.pid)"'; fi
    must "attempt $((attempt + 1)) does not run" until_true 40 runs $((attempt + 1))
    ended=$(lines $attempt 1 | tail -n 1)
    next=$(lines $((attempt + 1)) 2 | head -n 1)
    see "$way of $victim: attempt $attempt ran on for $(((ended - ${begun/[.,]/}) / 1000)) ms, attempt $((attempt + 1)) began after $(((next - ${begun/[.,]/}) / 1000)) ms"
    ((ended < next)) || fail "attempt $attempt ran for $(((ended - next) / 1000)) ms while attempt $((attempt + 1)) did"
    if old_gone $attempt; then fail "nothing of attempt $attempt is on $victim: this shows nothing"; fi
    if [[ $way == cut ]]; then bed_do heal "$victim"; else on "$victim" sh -c 'kill -CONT "$(cat /run/testbed-rmd.pid)"'; fi
    must "$victim is not back" until_true 30 all_joined
    must "attempt $attempt stays on $victim" until_true 20 old_gone $attempt
    same "when attempt $attempt ran last" "$(lines $attempt 1 | tail -n 1)" "$ended"
    attempt=$((attempt + 1))
done
release live
finish live
ended_well live 'all 4 ranks are there: yes'
