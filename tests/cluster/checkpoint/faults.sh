#!/bin/bash
# Every fault point of a checkpoint x {fail, kill rmd} (in a quick run one of the two, in turns): the job runs on as the same attempt, the next one is made, and then
# nothing of the failed one is left. Every fault point of a restart: the job goes on from a checkpoint all the same. Its result is right.
# limit: 600
. "${BASH_SOURCE[0]%/*}/../lib.sh"
points=${RM_TEST_POINTS:-prepare precopy copied freeze cut held dump store}
restarts=${RM_TEST_RESTARTS-prepare transfer restore}

arm() {
    local node
    for node in $(nodes); do
        rmd_runs "$node" || start_rmd_with_faults "$node"
    done
    until_true 30 all_joined || fail "$1: not all joined again"
    until_true 30 voters_up || fail "$1: not all voters are back"
}
attempt_runs() {
    [[ $(q job live attempt) == "$1" && $(q job live state) =~ RUNNING|FOLDED ]]
}
# ranks_run SINCE: each rank has run since then: `pulse` beside it says so.
ranks_run() {
    (($(on n1 find /home/alice -name "live.*" -newermt "@$1" | wc -l) >= 3))
}
# Those on another node than NODE.
others_run() {
    local group file
    for group in $(q place live | awk -v node="$1" '$1 >= 0 && $2 != node { print $1 }'); do
        file=$(on n1 find /home/alice -name "live.$group" -newermt '1 second ago')
        [[ $file ]] || return 1
    done
}
# Files of stores that make up that checkpoint, or belong to one that was never whole. (A pack of one that was whole may be needed by the next.)
left() {
    local node
    for node in $(nodes); do
        on "$node" find /var/lib/rmd/checkpoints -name "manifest-$1" -printf "$node:%P\n" -o -name 'new-manifest-*' -printf "$node:%P\n"
        # shellcheck disable=SC2016 # all of it is the node's shell's
        on "$node" sh -c 'for store in /var/lib/rmd/checkpoints/*/*; do
            last=$(ls "$store" | sed -n "s/^manifest-//p" | sort -n | tail -n 1)
            for pack in $(ls "$store" | sed -n "s/^pack-//p"); do [ "$pack" -le "${last:-0}" ] || echo "$0:$store/pack-$pack"; done
        done' "$node"
    done
}
none_left() {
    [[ ! $(left "$1") ]]
}
next_checkpoint() {
    rmctl checkpoint-job "$(job live)" --timeout 60 >"$work/next" 2>&1
}
met() {
    [[ ! $(on "$1" cat /run/rmd/fault 2>/dev/null | tr -d ' \n') ]]
}

# Long enough for a killed rmd to be back: a node that is down is another test's.
cluster 3 --cores 2 --set cluster.node_timeout=20s
for n in $(nodes); do bed_do stop-rmd "$n"; done
arm "at the start"
until_true 20 as alice n1 rm-mpirun --checkpoint 1h -n 1 true 2>"$work/level.err" || fail "no job may be saved: $(cat "$work/level.err")"
start live n1 --on-node-loss restart --restarts 100 --checkpoint 1h --group-size 1 -n 3 sh -c \
    "$programs/pulse /home/alice/live.\$OMPI_COMM_WORLD_RANK </dev/null >/dev/null 2>&1 & exec $programs/ordered --stop-file=$(stop_file live) --pause-usec=20000"
running live 40
until_true 60 next_checkpoint || fail "no first checkpoint: $(<"$work/next")"

bad=0 turn=0 turns=(fail kill)
printf '  %-20s %-5s %-8s %s\n' "fault point" what seconds result
for point in $points; do
    turn=$((1 - turn))
    for what in $(thorough "fail kill" "${turns[turn]}"); do
        # A kill of the front end's rmd, or of who leads, is others' test; the node must have a group.
        side=$(q place live | cut -d ' ' -f 2 | sort -u | grep -vx -e n1 -e "$(q leader)" | head -n 1)
        [[ $side ]] || side=$(q place live | cut -d ' ' -f 2 | sort -u | grep -vx n1 | head -n 1)
        attempt=$(q job live attempt)
        on "$side" sh -c "echo move.checkpoint.$point:$what >/run/rmd/fault"
        begun=$EPOCHREALTIME
        verdict='the next one is made'
        rmctl checkpoint-job "$(job live)" --timeout 60 >"$work/failed" 2>&1 &
        pid=$!
        if [[ $what == kill ]]; then
            until_true 10 eval "! rmd_runs $side" || { verdict="rmd was not killed" bad=1; }
            # Before that rmd is back, the others run on.
            until_true 10 others_run "$side" || { verdict="ranks of other nodes stand still" bad=1; }
            arm "$point:$what"
        fi
        # An rmd that is killed before the group stands still may begin it again, if none of the others has come to the barrier yet.
        wait "$pid" && [[ ! $point:$what =~ ^(prepare|precopy|copied):kill ]] && { verdict="it is made" bad=1; }
        met "$side" || { verdict="the fault was never met" bad=1; }
        until_true 20 attempt_runs "$attempt" || { verdict="the job is disturbed: attempt $(q job live attempt), $(q job live state)" bad=1; }
        until_true 20 ranks_run "$EPOCHREALTIME" || { verdict="ranks stand still" bad=1; }
        until_true 60 next_checkpoint || { verdict="no next one: $(<"$work/next")" bad=1; }
        failed=$(sed -n 's/.*checkpoint [0-9]*\.\([0-9]*\) has failed.*/\1/p' "$work/failed")
        [[ ! $failed ]] || until_true 30 none_left "$failed" || { verdict="left: $(left "$failed" | tr '\n' ' ')" bad=1; }
        printf '  %-20s %-5s %-8s %s (%s)\n' "checkpoint.$point" "$what" "$(($(msec_since "$begun") / 1000))" "$verdict" "$(tail -n 1 "$work/failed")"
    done
done

for point in $restarts; do
    turn=$((1 - turn))
    for what in $(thorough "fail kill" "${turns[turn]}"); do
        until_true 60 next_checkpoint || fail "no other checkpoint: $(<"$work/next")"
        begun=$EPOCHREALTIME
        attempt=$(q job live attempt)
        rmctl checkpoint-job "$(job live)" --stop --timeout 60 >"$work/next" 2>&1 || fail "it does not stop: $(<"$work/next")"
        side=$(nodes | grep -vx -e n1 -e "$(q leader)" | head -n 1)
        on "$side" sh -c "echo move.restart.$point:$what >/run/rmd/fault"
        must "it is not to go on" rmctl restart-job "$(job live)"
        verdict='goes on'
        until_true 20 met "$side" || { verdict="the fault was never met" bad=1; }
        [[ $what != kill ]] || until_true 10 eval "! rmd_runs $side" || { verdict="rmd was not killed" bad=1; }
        arm "$point:$what"
        q state live RUNNING,FOLDED 60 >/dev/null || { verdict="it does not run again: $(q job live state), $(q job live reason)" bad=1; }
        until_true 60 ranks_run "$EPOCHREALTIME" || { verdict="its ranks stand still" bad=1; }
        (($(q job live restored_from) > 0)) || { verdict="it began anew" bad=1; }
        printf '  %-20s %-5s %-8s %s (attempt %s after %s)\n' "restart.$point" "$what" "$(($(msec_since "$begun") / 1000))" "$verdict" "$(q job live attempt)" "$attempt"
    done
done
((bad == 0)) || fail "see above"
for n in $(nodes); do on "$n" rm -f /run/rmd/fault; done
release live
finish live 60
ended_well live hash
same_as_undisturbed live 3 --group-size 1
on n1 sh -c 'rm -f /home/alice/live.*'
