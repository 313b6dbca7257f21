#!/bin/bash
# A job gets the resource limits of the process that submits it, not those of another that has its number now.
# limit: 60
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 1 --cores 2
said=$(on n1 "$programs/badclient" lend 1000 15000) || fail "the trial does not work: $said"
see "a job by a process whose number root has now: $said"
if [[ $said == [0-9]* ]]; then
    until_true 20 eval '[[ $(q job raw state) == COMPLETED ]]'
    on n1 timeout 10 rmctl attach-job --watch "$said" >"$work/said" 2>&1
    fail "it ran with another's limits: $(grep -m 1 nofile "$work/said")"
fi
[[ $said == *"has ended"* ]] || fail "refused, but without the reason"
# The ordinary way: the limits of the login.
start own n1 -n 1 "$programs/surroundings"
finish own
same "its exit code" "$rc" 0
want=$(as alice n1 sh -c 'ulimit -n')
same "its open files" "$(sed -n 's/.*nofile=\([0-9]*\):.*/\1/p' "$work/own.out")" "$want"
