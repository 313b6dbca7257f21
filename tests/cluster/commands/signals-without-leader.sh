#!/bin/bash
# SIGINT and SIGTERM end rm-mpirun and rmctl whatever becomes of the cluster: no leader, an rmd that hangs, a job whose node does not answer.
# limit: 150
. "${BASH_SOURCE[0]%/*}/../lib.sh"

declare -A number=([INT]=2 [TERM]=15)

# ends MSEC NAME...: the rm-mpirun NAME-SIGNAL on n2 get their signals, and end by them within so long.
ends() {
    local msec=$1 name signal took
    local -A sent=()
    shift
    for name; do
        for signal in INT TERM; do
            on n2 "$programs/front" "$name-$signal" "$signal" >/dev/null
            sent[$name-$signal]=$EPOCHREALTIME
        done
    done
    for name; do
        for signal in INT TERM; do
            finish "$name-$signal" $((msec / 1000 + 10))
            took=$(msec_since "${sent[$name-$signal]}")
            see "$name-$signal: exit code $rc after $took ms: $(tail -n 1 "$work/$name-$signal.err")"
            in_time "$took" "$msec" || fail "$name-$signal needed $took ms"
            same "exit code of $name-$signal" "$rc" $((128 + number[$signal]))
        done
    done
}

# interrupt NAME ARG...: rmctl ARG... on n2 in the background, that gets SIGINT after 1.5 s. interrupted NAME MSEC: how it ended, so long after that at most.
declare -A interrupt_pid
interrupt() {
    local name=$1
    shift
    on n2 env --default-signal=INT sh -c 'begun=$(date +%s%3N)
        timeout --preserve-status -k 30 -s INT 1.5 rmctl "$@"
        echo "$? $(($(date +%s%3N) - begun))"' sh "$@" >"$work/$name.out" 2>"$work/$name.err" &
    interrupt_pid[$name]=$!
}
interrupted() {
    local name=$1 code took
    wait "${interrupt_pid[$name]}"
    read -r code took <<<"$(tail -n 1 "$work/$name.out")"
    see "rmctl, $name: exit code $code after $took ms: $(tail -n 1 "$work/$name.err")"
    same "exit code of rmctl, $name" "$code" 130
    in_time $((took - 1500)) "$2" || fail "rmctl, $name needed $took ms"
}

cluster 3 --cores 2 --set cluster.voters=1
for node in n2 n3; do
    on n1 sh -c 'printf "n1:0\nn2:0\nn3:0\n" | sed "s/^$1:0/$1:2/" >"/home/alice/$1.nodes"' sh $node
done
for job in far-INT far-TERM; do
    start $job n2 --availability /home/alice/n3.nodes -n 1 "$programs/spin"
    running $job
    [[ $(q where $job -1) == n3 ]] || move $job -1 n3
done
start near n2 --availability /home/alice/n2.nodes -n 1 "$programs/spin" --stop-file="$(stop_file near)"
running near
[[ $(q where near -1) == n2 ]] || move near -1 n2
for job in waiting-INT waiting-TERM left; do
    start $job n2 -n 64 "$programs/spin" --seconds=60
    must "it does not wait" q state $job PENDING 10 >/dev/null
done
near=$(job near) left=$(job left)
bed_do stop-rmd n1 --kill
asker=n2
until_true 20 eval 'on n2 rmctl status | grep -q "no leader can be reached"' || fail "rmctl status does not say that there is no leader"

start submitted-INT n2 -n 1 "$programs/spin" --seconds=60
start submitted-TERM n2 -n 1 "$programs/spin" --seconds=60
start refused n2 -n 1 "$programs/spin" --seconds=60
for job in submitted-INT submitted-TERM refused; do until_true 10 on n2 "$programs/front" $job >/dev/null; done
interrupt drain-node drain-node n3 --wait
interrupt cancel-job cancel-job "$left"
interrupt watch attach-job --watch "$left"
interrupt attach-waiting attach-job "$left"
interrupt attach-running attach-job "$near"
sleep 1
ends 3000 submitted
interrupted drain-node 3000
interrupted cancel-job 3000
interrupted watch 3000
bed_do cut n3
ends 22000 waiting far
bed_do heal n3
interrupted attach-waiting 22000
interrupted attach-running 22000
finish refused 10
same "exit code of what could not be submitted" "$rc" 1
grep -q 'no leader can be reached' "$work/refused.err" || fail "what could not be submitted: $(<"$work/refused.err")"
see "not submitted: $(<"$work/refused.err")"

on n2 pkill -STOP -x rmd
start stopped-INT n2 -n 1 "$programs/spin" --seconds=60
start stopped-TERM n2 -n 1 "$programs/spin" --seconds=60
for job in stopped-INT stopped-TERM; do until_true 10 on n2 "$programs/front" $job >/dev/null; done
sleep 1
ends 3000 stopped
on n2 pkill -CONT -x rmd

# With a leader again, what rm-mpirun left is there to be ended.
bed_do start-rmd n1
asker=n1
must "the nodes are not all back" until_true 20 all_joined
for job in far-INT far-TERM; do
    same "job $job that was left" "$(q job $job state)" RUNNING
    on n2 rmctl cancel-job "$(q job $job id)" >/dev/null
    must "it does not end" q state $job CANCELLED 20 >/dev/null
    as alice n2 rmctl attach-job --no-input "$(q job $job id)" >/dev/null 2>&1 # takes its output, so that nothing is kept
done
for job in waiting-INT waiting-TERM left; do on n2 rmctl cancel-job "$(q job $job id)" >/dev/null; done
finish left
release near
finish near
