#!/bin/bash
# The front end killed: the job goes on; attach-job gets it back with the output that was missed, and its exit code.
# limit: 90
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 2
start live n1 --group-size 2 -n 3 "$programs/flood" --stop-file="$(stop_file live)" --pause-usec=20000
must "no output" until_true 20 test -s "$work/live.out"
sleep 1
on n1 "$programs/front" live KILL >/dev/null
finish live 10
see "the front end was killed after $(wc -l <"$work/live.out") lines, exit code $rc"
sleep 1
same "the job" "$(q job live state)" RUNNING
move live -1 "$(a_node_but "$(q where live -1)")"
number=$(job live)
# From another node, with all output from the beginning.
bed_do exec n3 --user alice -- rmctl attach-job "$number" </dev/null >"$work/attached.out" 2>"$work/attached.err" &
front_pid[attached]=$!
sleep 2
release live
finish attached 30
same "the exit code through attach-job" "$rc" 0
must "standard output" whole "$work/attached.out" out 3
must "standard error" whole "$work/attached.err" err 3

see "detached, and ended before anybody attaches"
as alice n1 rm-mpirun --job-name later --detach -n 2 "$programs/exitcodes" exit 1 9 >"$work/detach" 2>&1 || fail "--detach: $(<"$work/detach")"
must "it does not end" q state later FAILED 20 >/dev/null
number=$(job later)
as alice n2 rmctl attach-job "$number" >"$work/later.out" 2>"$work/later.err"
same "the exit code of a job that has ended" "$?" 9
start second n1 -n 1 "$programs/spin" --stop-file="$(stop_file second)"
running second
as alice n2 rmctl attach-job 999 >"$work/none" 2>&1 && fail "attach-job 999 is accepted"
see "no such job: $(<"$work/none")"
release second
finish second
