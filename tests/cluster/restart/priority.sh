#!/bin/bash
# A job that is to start again, and for which there is no room until its node is back, waits before all others of its priority, says for
# what, and gets its standard input from the beginning.
# limit: 150
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 2 --set cluster.node_timeout=2s
until_true 20 as alice n1 rm-mpirun --on-node-loss restart -n 1 true 2>"$work/level.err" || fail "no job may restart: $(cat "$work/level.err")"

# It is older than fed, but may use no core until that runs.
cores=/home/alice/rival.cores
on n1 sh -c "printf 'n1:0\\nn2:0\\n' >$cores"
start rival n1 --availability "$cores" --group-size 2 -n 4 "$programs/ordered" --iterations=50
must "rival does not wait" q state rival PENDING 10 >/dev/null

# Its input stays open: what it has had when it loses its node is not all.
mkfifo "$work/feed"
bed_do exec n1 --user alice -- rm-mpirun --job-name fed --on-node-loss restart --group-size 2 -n 4 "$programs/input" \
    <"$work/feed" >"$work/fed.out" 2>"$work/fed.err" &
front_pid[fed]=$!
(
    seq 1 20000
    until [[ -e $work/more || ! -d $work ]]; do sleep 0.2; done
    seq 20001 30000
) >"$work/feed" &
must "fed does not run" q state fed RUNNING 20 >/dev/null
sleep 1
on n1 sh -c "printf 'n1:2\\nn2:2\\n' >$cores"
rival_could() {
    [[ $(q job rival reason) =~ 'are free' ]]
}
must "rival waits for something else: $(q job rival reason)" until_true 15 rival_could
[[ $(q where fed -1) == n1 ]] || move fed -1 n1
# Cut off, it still has its part of the first attempt when it gets that of the second.
bed_do cut n2
must "fed does not wait to start again" q state fed PENDING 30 >/dev/null
sleep 1.5
reason=$(q job fed reason)
see "no room: $reason"
[[ $reason =~ ^'attempt 2 of 4 (node n2 is down): ' ]] || fail "the reason does not say what was lost and which attempt it is"
same "its state" "$(q job fed state)" PENDING
same "rival" "$(q job rival state)" PENDING
same "processes of the first attempt on n2" "$(on n2 pgrep -cx input)" 2
on n2 sh -c 'while [ ! -e /tmp/enough ]; do pgrep -cx input; sleep 0.02; done; rm /tmp/enough' >"$work/counts" &
must "processes on n2 are not counted" until_true 10 grep -qx 2 "$work/counts"
bed_do heal n2
must "n2 does not come back" until_true 30 all_joined
must "fed does not start again" q state fed RUNNING 30 >/dev/null
same "rival, which has waited for longer" "$(q job rival state)" PENDING
must "the first attempt on n2 has not ended before the second began" until_true 20 grep -qx 0 "$work/counts"
on n2 touch /tmp/enough
same "processes on n2 at any time, at most" "$(sort -nu "$work/counts" | tail -n 1)" 2
touch "$work/more"
finish fed
see "$(grep '^rm-mpirun' "$work/fed.err" | tr '\n' '|')"
ended_well fed bytes
want=$(seq 1 30000 | wc -c)
grep -q "input: $want bytes" "$work/fed.out" || fail "its input: $(cat "$work/fed.out"), not $want bytes"
finish rival
ended_well rival hash
inventory_all >"$work/before"
