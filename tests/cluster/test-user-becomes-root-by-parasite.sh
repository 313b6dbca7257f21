#!/bin/bash
# While a group is dumped, CRIU keeps what it has found out of each process in memory of that process, and another process of the
# same user may write there. Whatever it writes, what is restored is the user, without capabilities, and the job goes on.
# limit: 120
. "${BASH_SOURCE[0]%/*}/lib.sh"

cluster 2 --cores 4
written=0
for what in uids capabilities; do
    start "$what" n1 --group-size 1 -n 1 "$programs/trespass" --stop-file="$(stop_file "$what")"
    running "$what"
    for ((i = 0; i < $(thorough 10 3); i++)); do
        from=$(q where "$what" 0)
        as alice "$from" "$programs/intruder" tamper trespass "$what" 4 >"$work/tamper" 2>&1 &
        intruder=$!
        until_true 10 grep -q watches "$work/tamper" || fail "nothing tampers"
        migrate "$what" 0 "$(a_node_but "$from")" --mode stop --wait --timeout 30 >"$work/migrate" 2>&1
        see "$what: $(<"$work/migrate")"
        wait "$intruder"
        see "$what: $(tail -n 1 "$work/tamper")"
        grep -q 'wrote 0 times' "$work/tamper" || written=$((written + 1))
    done
    same "job $what" "$(q job "$what" state)" RUNNING
    release "$what"
    finish "$what"
    grep 'gained' "$work/$what.out" && fail "$what: the user has become more than a user"
    ended_well "$what" 'kept to itself'
done
((written > 0)) || fail "nothing was ever overwritten: the test has not tried anything"
