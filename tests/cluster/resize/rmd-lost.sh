#!/bin/bash
# A change of the number of ranks that has begun is done although rmd is killed on all nodes meanwhile, or the leader is lost: also when the program is ready while nobody hears it. No checkpoint is
# made of a half-made change: one that is asked for is refused in clear words, those by schedule come later.
# complete: resize/results and resize/node-loss have the main way and the worst fault
# limit: 360
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 4 --cores 4 --set cluster.node_timeout=60s --set sched.resize_interval=0
must "there are no three voters" until_true 30 voters_up
dawdle=/home/alice/dawdle

begun() {
    [[ $(resize_field grows begun) == True ]]
}
# begin N: a change to N ranks, which has begun and is not done before $dawdle is gone.
begin() {
    on n1 touch $dawdle
    as alice n1 rmctl resize-job "$(job grows)" "$1" --no-wait >"$work/resize" 2>&1 || fail "resize-job $1: $(<"$work/resize")"
    must "the change to $1 ranks does not begin" until_true 40 begun
}
# Another than n1, which has the front end, is $leader, with nothing of the job on it.
spare_leads() {
    leader=$(q leader) && [[ $leader ]] || return 1
    if [[ $leader == n1 ]]; then
        bed_do stop-rmd n1 --kill
        sleep 2
        bed_do start-rmd n1
        return 1
    fi
    on n1 sh -c 'echo "$1:0" >/home/alice/nodes' sh "$leader"
    until_true 20 eval '! q place grows | grep -q " $leader\$"' && q settled 20 >/dev/null && [[ $(q leader) == "$leader" ]]
}
done_with() {
    on n1 rm -f $dawdle
    until_true 60 has_ranks grows "$2" || fail "$1: it does not have $2 ranks: $(rmctl show-job "$(job grows)" | grep '^Active')"
    see "$1: $2 ranks"
}
newest() {
    on "$asker" rmctl list-checkpoints --no-header "$(job grows)" 2>/dev/null | awk '{ n = $1 } END { print n }'
}
another_checkpoint() {
    local now
    now=$(newest)
    [[ $now ]] && ((${now#*.} > ${1#*.}))
}

on n1 sh -c 'echo "n4:0" >/home/alice/nodes; chown alice /home/alice/nodes'
start grows n1 --availability /home/alice/nodes --on-node-loss restart --checkpoint 4s --group-size 2 -n 4 --max-ranks 8 --min-ranks 1 \
    "$programs/resizes" --stop-file="$(stop_file grows)" --dawdle-file=$dawdle
running grows
must "its program does not ask" until_true 30 listens grows
must "nothing is saved" until_true 60 another_checkpoint 0.0

# The rmd of mpirun's node is away when a checkpoint begins: that one is given up, and holds up nothing.
begins_anew() {
    local done_now
    done_now=$(on "$asker" rmctl list-checkpoints --no-header "$(job grows)" | awk '/ DONE / { n = $1 } END { print n }')
    [[ $done_now && ${done_now#*.} -gt ${late#*.} ]]
}
head=$(q where grows -1)
(($(q place grows | awk -v head="$head" '$2 != head' | wc -l) > 0)) || fail "all of it is on $head"
# One that is being stored would wait for that rmd, as long as its node is not taken for lost. The newest one is then $before.
newest_is_done() {
    local line
    line=$(on "$asker" rmctl list-checkpoints --no-header "$(job grows)" | tail -n 1)
    read -r before _ <<<"$line"
    [[ $line == *' DONE '* ]]
}
must "the checkpoint is not stored" until_true 60 newest_is_done
asker=n4
bed_do stop-rmd "$head" --kill
must "no checkpoint begins without $head" until_true 30 another_checkpoint "$before"
late=$(newest)
sleep 2
bed_do start-rmd "$head"
must "all are not back" until_true 40 all_joined
since=$EPOCHREALTIME
must "after checkpoint $late no other is made" until_true 40 begins_anew
see "without the rmd of mpirun's node: checkpoint $late was begun, another was made $(msec_since "$since") ms after it was back"
asker=n1

begin 8
before=$(newest)
status=0
as alice n1 rmctl checkpoint-job "$(job grows)" >"$work/refused" 2>&1 || status=$?
same "the exit status of checkpoint-job during a change" "$status" 1
grep -q 'changes to 8 ranks; try again in a moment' "$work/refused" || fail "checkpoint-job says: $(<"$work/refused")"
sleep 8
same "the newest checkpoint" "$(newest)" "$before"
done_with "a checkpoint was refused" 8
must "no checkpoint is made afterwards" until_true 60 another_checkpoint "$before"

for ranks in 2 8; do
    begin $ranks
    for node in $(nodes); do bed_do stop-rmd "$node" --kill; done
    if ((ranks == 8)); then
        on n1 rm -f $dawdle
        sleep 1 # the program says that it is done
    fi
    for node in $(nodes); do bed_do start-rmd "$node"; done
    must "all are not back" until_true 40 all_joined
    done_with "rmd was killed on all nodes" $ranks
done
for ranks in 4 8; do
    must "none but n1 leads, or the job does not leave it" until_true 90 spare_leads
    begin $ranks
    since=$EPOCHREALTIME
    bed_do power-off "$leader"
    done_with "the leader was lost" $ranks
    see "that took $(msec_since "$since") ms, with $leader off"
    bed_do power-on "$leader"
    must "$leader is not back" back "$leader" "$since"
    must "not all voters are back" until_true 30 voters_up
done
# At whatever instant.
for ((i = 0; i < $(thorough 12 3); i++)); do
    must "none but n1 leads, or the job does not leave it" until_true 90 spare_leads
    ranks=$((i % 2 ? 8 : 3))
    as alice n1 rmctl resize-job "$(job grows)" $ranks --no-wait >"$work/resize" 2>&1 || fail "resize-job $ranks: $(<"$work/resize")"
    sleep "0.0$((RANDOM % 10))"
    since=$EPOCHREALTIME
    bed_do power-off "$leader"
    done_with "the leader was lost at once" $ranks
    bed_do power-on "$leader"
    must "$leader is not back" back "$leader" "$since"
    must "not all voters are back" until_true 30 voters_up
done
same "attempts" "$(q job grows attempt)" 1
resize grows 5
release grows
finish grows
ended_well grows 'ends well after .* on 5 ranks$'
must "stores are left" until_true 20 eval '[[ ! $(for node in $(nodes); do on "$node" sh -c "ls /var/lib/rmd/checkpoints /run/rmd/checkpoints"; done) =~ [0-9] ]]'
inventory_all >"$work/before"
