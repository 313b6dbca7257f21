#!/bin/bash
# A job that grows and shrinks goes on from its checkpoint when a node is lost before, during or after a change, with what is parked, with ranks that come or go, or with mpirun on it: with as
# many active ranks as the checkpoint has. What was asked for is told how it ended, and the next change is made.
# limit: 420
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 4 --cores 4 --set cluster.node_timeout=3s --set sched.resize_interval=0
must "there are no three voters" until_true 30 voters_up
dawdle=/home/alice/dawdle

# checkpoint FIELD: of the newest of the job that is done; FIELD `id` or `active`.
checkpoint() {
    on "$asker" rmctl list-checkpoints --json "$(job grows)" | python3 -c 'import json, sys
c = max((c for c in json.load(sys.stdin)["checkpoints"] if c["state"] == "DONE"), key=lambda c: c["id"], default={"id": 0})
print(c["id"] if sys.argv[1] == "id" else c["resize"]["active"])' "$1"
}
saved_with() {
    [[ $(checkpoint id) != "$1" && $(checkpoint active) == "$2" ]]
}
goes_on() {
    [[ $(q job grows attempt) == "$1" && $(q job grows state) == RUNNING ]]
}
# No move begins while a checkpoint is being captured.
is_on() {
    [[ $(q where grows "$1") == "$2" ]] || { migrate grows "$1" "$2" --wait --timeout 30 >"$work/migrate" 2>&1 && [[ $(q where grows "$1") == "$2" ]]; }
}
begun() {
    [[ $(resize_field grows begun) == True ]]
}
ended_waiting() {
    [[ -s $work/waiting.rc ]]
}

start grows n1 --on-node-loss restart --restarts 100 --checkpoint 3s --group-size 2 -n 4 --max-ranks 8 --min-ranks 1 \
    "$programs/resizes" --stop-file="$(stop_file grows)" --dawdle-file=$dawdle
running grows
must "its program does not ask" until_true 30 listens grows

# lose WHEN FROM TO GROUP: the node of GROUP is lost before, during or after a change from FROM ranks to TO.
lose() {
    local when=$1 from=$2 to=$3 group=$4 before since want=$2
    local what="$from to $to ranks, group $group lost ${when}"
    has_ranks grows "$from" || resize grows "$from"
    until_true 60 is_on "$group" n4 || fail "$what: the group does not come to n4: $(tail -n 1 "$work/migrate")"
    must "$what: no checkpoint with $from ranks" until_true 60 saved_with "$(checkpoint id)" "$from"
    if [[ $when == during ]]; then
        on n1 touch $dawdle
        rm -f "$work/waiting.rc"
        { as alice n1 rmctl resize-job "$(job grows)" "$to" --timeout 100 >"$work/waiting" 2>&1; echo $? >"$work/waiting.rc"; } &
        until_true 40 begun || fail "$what: the change does not begin: $(<"$work/waiting")"
        same "$what: where the group is" "$(q where grows "$group")" n4
    elif [[ $when == after ]]; then
        resize grows "$to"
    fi
    before=$(q job grows attempt)
    since=$EPOCHREALTIME
    bed_do power-off n4
    until_true 90 goes_on $((before + 1)) || fail "$what: it does not go on: $(q job grows state), $(q job grows reason), $(rmctl events | tail -n 4)"
    see "$what: attempt $((before + 1)) after $(msec_since "$since") ms, $(rmctl events | grep "job-restarted .*job $(job grows) " | tail -n 1 | grep -o 'from checkpoint [0-9.]*')"
    on n1 rm -f $dawdle
    [[ $when != after ]] || want="($from|$to)" # it may have been saved once more
    [[ $(resize_field grows active) =~ ^$want$ ]] || fail "$what: it has $(resize_field grows active) active ranks, not $want"
    if [[ $when == during ]]; then
        must "$what: who asked for the change still waits" until_true 20 ended_waiting
        same "$what: the exit status of resize-job" "$(<"$work/waiting.rc")" 1
        grep -q "has $from active ranks: its program did not change" "$work/waiting" || fail "$what: resize-job says: $(<"$work/waiting")"
    fi
    must "$what: the program does not ask again" until_true 30 listens grows
    resize grows "$to"
    bed_do power-on n4
    must "$what: n4 does not join" back n4 "$since"
    must "not all are back" until_true 30 all_joined
    must "not all voters are back" until_true 30 voters_up
}
all='before 4 8 3
during 4 8 3
during 8 2 3
during 4 8 0
after 2 8 3
during 8 4 -1
during 2 6 -1
before 4 2 -1
after 8 2 0'
# In a quick run one of each kind, drawn.
some=$(for when in before during after; do grep "^$when" <<<"$all" | shuf -n 1; done)
# shellcheck disable=SC2086 # four words
while read -r row <&3; do lose $row; done 3<<<"$(thorough "$all" "$some")"

resize grows 5
release grows
finish grows 120
ended_well grows 'ends well after .* on 5 ranks$'
grep -q 'the sum of' "$work/grows.out" && fail "a sum was wrong"
see "$(tail -n 1 "$work/grows.out"), $(q job grows attempt) attempts"

stores_gone() {
    local node
    for node in $(nodes); do
        [[ ! $(on "$node" sh -c 'ls /var/lib/rmd/checkpoints /run/rmd/checkpoints') =~ [0-9] ]] || return 1
    done
}
must "stores are left" until_true 20 stores_gone
inventory_all >"$work/before"
