#!/bin/bash
# A job with --checkpoint goes on from its last checkpoint when a node of it is lost at any instant, with the head or the leader on it or not: its result is bit-identical,
# its output arrives once, and the files that it writes hold every line once. RM_TEST_ROUNDS: how many losses, in place of the usual number. It shares cores where there are too few (--on-node-loss fold), and nothing of it is left.
# limit: 600
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 4 --cores 2 --set cluster.node_timeout=2s
must "there are no three voters" until_true 30 voters_up
until_true 20 as alice n1 rm-mpirun --checkpoint 1h -n 1 true 2>"$work/level.err" || fail "no job may be saved: $(cat "$work/level.err")"

# checkpoints NAME: how many are done.
checkpoints() {
    on "$asker" rmctl list-checkpoints --no-header "$(job "$1")" 2>/dev/null | grep -c ' DONE '
}
saved() {
    (($(checkpoints "$1") > 0))
}
newest() {
    on "$asker" rmctl list-checkpoints --no-header "$(job "$1")" 2>/dev/null | awk '/ DONE / { n = $1 } END { print n }'
}
saved_again() {
    [[ $(newest "$1") != "$done_before" ]]
}
attempt() {
    [[ $(q job "$1" attempt) == "$2" && $(q job "$1" state) =~ RUNNING|FOLDED|CHECKPOINTING ]]
}
# No move begins while a checkpoint is being captured.
head_is_on() {
    [[ $(q where live -1) == "$1" ]] || { migrate live -1 "$1" --wait --timeout 20 >/dev/null 2>&1 && [[ $(q where live -1) == "$1" ]]; }
}
last_event() {
    rmctl events | grep -E "$1" | tail -n 1
}

rounds=${RM_TEST_ROUNDS:-$(thorough 6 2)}
as alice n1 mkdir -p /home/alice/records
start live n1 --on-node-loss fold --restarts 100 --checkpoint 2s --group-size 1 -n 6 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=20000
start records n1 --on-node-loss fold --restarts 100 --checkpoint 2s --group-size 2 -n 2 "$programs/records" --dir=/home/alice/records --iterations=$((1000 * rounds)) --pause-usec=20000
must "no checkpoint of live" until_true 40 saved live
must "no checkpoint of records" until_true 40 saved records

# n1 has the front ends.
for ((round = 1; round <= rounds; round++)); do
    before=$(q job live attempt)
    victim=n$((RANDOM % 3 + 2))
    case $round in
    1) must "mpirun does not come to $victim" until_true 30 head_is_on "$victim" ;;
    2) [[ $(q leader) == n1 ]] || victim=$(q leader) ;;
    esac
    sleep "$((RANDOM % 3)).$((RANDOM % 10))"
    must "groups move on and on" q settled 60 >/dev/null
    on_it=$(q place live | grep -c " $victim\$")
    bed_do power-off "$victim"
    begun=$EPOCHREALTIME
    if ((on_it)); then
        must "live does not go on after $victim was lost: $(q job live state), $(q job live reason), $(rmctl events | tail -n 6)" until_true 60 attempt live "$((before + 1))"
        last_event "job-restarted .*job $(job live) " | grep -q "from checkpoint" || fail "live began anew: $(last_event "job-restarted .*job $(job live) ")"
        see "round $round: $victim off, with $on_it of live's capsules$([[ $(q leader) ]] || true): attempt $((before + 1)) runs after $(msec_since "$begun") ms, $(last_event "job-restarted .*job $(job live) " | grep -o 'from checkpoint [0-9.]*')"
    fi
    done_before=$(newest live)
    bed_do power-on "$victim"
    must "$victim does not join" back "$victim" "$begun"
    must "not all are back" until_true 30 all_joined
    must "not all voters are back" until_true 30 voters_up
    must "live is not saved again after checkpoint $done_before: $(rmctl events | grep checkpoint | tail -n 5)" until_true 60 saved_again live
done

release live
finish live 120
ended_well live hash
same "how often live printed its result" "$(grep -c hash "$work/live.out")" 1
grep 'differs' "$work/live.err" && fail "output came another time, and not the same"
same_as_undisturbed live 6 --group-size 1
finish records 180
ended_well records 'good$'
see "$(q job records attempt) attempts of records: $(tail -n 1 "$work/records.out")"

stores_gone() {
    local node
    for node in $(nodes); do
        [[ ! $(on "$node" sh -c 'ls /var/lib/rmd/checkpoints /run/rmd/checkpoints') =~ [0-9] ]] || return 1
    done
}
must "stores are left: $(for n in $(nodes); do on "$n" sh -c 'ls -d /var/lib/rmd/checkpoints/* /run/rmd/checkpoints/*' 2>/dev/null; done | tr '\n' ' ')" until_true 20 stores_gone
inventory_all >"$work/before"
