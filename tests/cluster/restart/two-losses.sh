#!/bin/bash
# Two nodes are lost at once, with each part of a checkpoint on three ([checkpoint] copies = 2) and five voters: the job goes on from its checkpoint, on what is left; and
# with the whole cluster powered off and on again.
# complete: the simulation loses nodes in pairs
# limit: 240
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 5 --cores 2 --set cluster.node_timeout=2s --set cluster.voters=5 --set checkpoint.copies=2
five_voters() {
    rmctl status | grep -q 'quorum 3, 2 may be lost'
}
saved() {
    rmctl list-checkpoints --no-header "$(job live)" 2>/dev/null | grep -q ' DONE '
}
attempt_runs() {
    [[ $(q job live attempt) -ge $1 && $(q job live state) =~ RUNNING|FOLDED ]]
}
must "there are no five voters: $(rmctl status)" until_true 60 five_voters
until_true 20 as alice n1 rm-mpirun --checkpoint 1h -n 1 true 2>"$work/level" || fail "no job may be saved: $(<"$work/level")"
start live n1 --on-node-loss fold --restarts 100 --checkpoint 2s --group-size 1 -n 8 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=20000
must "no checkpoint" until_true 40 saved

for ((round = 1; round <= $(thorough 6 2); round++)); do
    attempt=$(q job live attempt)
    read -r a b < <(printf 'n%d\n' 2 3 4 5 | shuf -n 2 | paste -sd ' ')
    on_them=$(q place live | grep -cE " ($a|$b)\$")
    sleep "$((RANDOM % 2)).$((RANDOM % 10))"
    bed_do power-off "$a" &
    bed_do power-off "$b"
    wait $!
    begun=$EPOCHREALTIME
    if ((on_them)); then
        must "live does not go on without $a and $b: $(q job live state), $(q job live reason), $(rmctl events | tail -n 6)" until_true 60 attempt_runs $((attempt + 1))
        from=$(q job live restored_from)
        ((from > 0)) || fail "live began anew"
        see "round $round: $a and $b off, with $on_them of its capsules: attempt $(q job live attempt) runs after $(msec_since "$begun") ms, from checkpoint $from"
    fi
    bed_do power-on "$a"
    bed_do power-on "$b"
    must "$a does not join" back "$a" "$begun"
    must "$b does not join" back "$b" "$begun"
    must "not all are back" until_true 30 all_joined
    must "there are no five voters again" until_true 60 five_voters
    must "live is not saved again" until_true 60 saved
done

# Everything at once. The front end is lost with its node, the job is not.
attempt=$(q job live attempt)
for n in $(nodes); do bed_do power-off "$n" & done
wait $(jobs -p | grep -vx "${front_pid[live]}")
for n in $(nodes); do bed_do power-on "$n"; done
must "the cluster does not come back" until_true 60 all_joined
must "live does not come back with it: $(q job live state), $(q job live reason)" until_true 90 attempt_runs $((attempt + 1))
(($(q job live restored_from) > 0)) || fail "live began anew"
see "all powered off and on: attempt $(q job live attempt), from checkpoint $(q job live restored_from)"
release live
until_true 60 q state live COMPLETED 1 >/dev/null || fail "live does not end: $(q job live state)"
as alice n1 timeout 30 rmctl attach-job "$(job live)" >"$work/attached" 2>&1 </dev/null || true
unset "front_pid[live]"
grep 'hash' "$work/attached" >>"$work/live.out"
same "how often live printed its result" "$(grep -c hash "$work/live.out")" 1
same_as_undisturbed live 8 --group-size 1
