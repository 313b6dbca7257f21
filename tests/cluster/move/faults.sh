#!/bin/bash
# Every fault point x {fail, kill rmd} (in a quick run most points and one of the two, in turns): the job goes on wherever one whole
# copy survives, and its result is right.
# limit: 300
. "${BASH_SOURCE[0]%/*}/../lib.sh"
points="source.prepare source.precopy source.freeze source.cut source.transfer source.restore source.release
    destination.prepare destination.transfer destination.restore destination.commit destination.open destination.fill"
some="source.precopy source.freeze source.transfer source.restore source.release destination.transfer destination.commit
    destination.open destination.fill"
points=${RM_TEST_POINTS:-$(thorough "$points" "$some")}

# Both rmds with faults from a file, which is empty but for the one that is to come.
arm() {
    local node
    for node in $(nodes); do
        rmd_runs "$node" || start_rmd_with_faults "$node"
    done
    until_true 20 all_joined || fail "$1: not all joined again"
}

# What became of a move that was disturbed: its state, and that of the capsule.
ranks_running() {
    local node sum=0
    for node in $(nodes); do sum=$((sum + $(on "$node" "$programs/count" ordered))); done
    echo "$sum"
}

cluster 3 --cores 2
for n in $(nodes); do bed_do stop-rmd "$n"; done
arm "at the start"
printf '  %-22s %-5s %-10s %-8s %-9s %s\n' "fault point" what move "seconds" result ''
bad=0
turns=(fail kill) turn=0
for point in $points; do
    turn=$((1 - turn))
    for what in $(thorough "fail kill" "${turns[turn]}"); do
        name=${point//./-}-$what
        start "$name" n1 --group-size 1 -n 2 "$programs/ordered" --stop-file="$(stop_file "$name")" --pause-usec=30000
        running "$name"
        from=$(q where "$name" 1)
        # Never the leader's node for a kill: another test loses the leader.
        to=$(nodes | grep -vx "$from" | tail -n 1)
        side=$from
        [[ $point == source.* ]] || side=$to
        on "$side" sh -c "echo move.$point:$what >/run/rmd/fault"
        begun=$EPOCHREALTIME
        asker=$(nodes | grep -vx "$side" | head -n 1)
        migrate "$name" 1 "$to" >"$work/migrate" 2>&1
        sleep 1
        if [[ $what == kill ]]; then
            until_true 10 eval "! rmd_runs $side" || { see "$point:$what: rmd was not killed" && bad=1; }
            start_rmd_with_faults "$side"
            until_true 20 all_joined || fail "$point:$what: not all joined again"
        fi
        q settled 60 >"$work/settled" 2>&1 || { see "$point:$what: $(<"$work/settled")" && bad=1; }
        state=$(q moves "$name" | tail -n 1 | cut -d ' ' -f 5)
        verdict=ended
        release "$name"
        finish "$name" 60
        ((rc == 0)) || verdict="exit $rc"
        [[ $(hash_of "$name") ]] || verdict="no result"
        echo "$(iterations_of "$name") $(hash_of "$name") $name" >>"$work/results"
        [[ $verdict == ended ]] || bad=1
        left=$(on "$side" cat /run/rmd/fault 2>/dev/null | tr -d ' \n')
        [[ ! $left ]] || { verdict+=", the fault was never met" && bad=1; }
        printf '  %-22s %-5s %-10s %-8s %-9s\n' "$point" "$what" "${state:-none}" "$(($(msec_since "$begun") / 1000))" "$verdict"
        asker=n1
    done
done
for n in $(nodes); do on "$n" rm -f /run/rmd/fault; done
# One job that is left alone tells what the hash is after every number of iterations.
longest=$(sort -n "$work/results" | tail -n 1 | cut -d ' ' -f 1)
run reference n1 --group-size 1 -n 2 "$programs/ordered" --iterations="$longest" --each
ended_well reference hash
sed -n 's/.*iterations \([0-9]*\) hash \([0-9a-f]*\).*/\1 \2/p' "$work/reference.out" | sort >"$work/right"
while read -r iterations hash name; do
    grep -qx "$iterations $hash" "$work/right" || { see "$name: WRONG: hash $hash after $iterations iterations" && bad=1; }
done <"$work/results"
see "$(wc -l <"$work/results") results compared with those of a job that nobody disturbed"
same "ranks left over" "$(ranks_running)" 0
((bad == 0)) || fail "see the table"
