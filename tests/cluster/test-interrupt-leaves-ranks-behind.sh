#!/bin/bash
# Ctrl-C and TERM end the whole job, with the exit code of mpirun; ranks may catch the signal; two Ctrl-C end one that ignores it.
# limit: 120
. "${BASH_SOURCE[0]%/*}/lib.sh"

front() {
    on n1 "$programs/front" "$@"
}
no_ranks() {
    local node
    for node in $(nodes); do [[ $(on "$node" "$programs/count" spin) == 0 ]] || return 1; done
}

# plain SIGNAL ARG...: the exit code of mpirun itself.
plain() {
    as alice n1 bash -c 'mpirun --oversubscribe -n 3 --mca btl self,sm "${@:2}" >/tmp/plain.out 2>&1 &
        until grep -q running /tmp/plain.out; do sleep 0.1; done
        kill -"$1" $!
        wait $!
        echo $?; rm /tmp/plain.out' bash "$@"
}

cluster 2 --cores 2
for signal in INT TERM; do
    want=$(plain "$signal" "$programs/spin" --seconds=20)
    start "$signal" n1 --group-size 2 -n 3 "$programs/spin" --seconds=60
    running "$signal"
    begun=$EPOCHREALTIME
    front "$signal" "$signal" >/dev/null
    finish "$signal" 20
    see "SIG$signal: rm-mpirun $rc, mpirun $want, after $(msec_since "$begun") ms, job $(q job "$signal" state)"
    same "exit code after SIG$signal" "$rc" "$want"
    must "ranks after SIG$signal" until_true 10 no_ranks
done

start stubborn n1 --group-size 2 -n 3 "$programs/spin" --seconds=60 --ignore
running stubborn
front stubborn INT >/dev/null
sleep 1
front stubborn INT >/dev/null 2>&1
finish stubborn 30
see "ranks that ignore it: exit code $rc"
((rc != 0)) || fail "exit code 0 after Ctrl-C"
must "ranks that ignore SIGINT are left" until_true 15 no_ranks

start waiting n1 -n 64 "$programs/spin" --seconds=60
must "it does not wait" q state waiting PENDING 10 >/dev/null
front waiting INT >/dev/null
finish waiting 20
see "a job that still waits: exit code $rc, $(q job waiting state)"
same "its state" "$(q job waiting state)" CANCELLED
