#!/bin/bash
# While a group is dumped, CRIU keeps what it has found out of each process in memory of that process, and another process of the
# same user may write there. Whatever it writes, what is restored is the user, without capabilities and securebits, and the job goes on.
# limit: 200
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# A CRIU whose restorer has failed waits for ever: it is given five seconds.
cluster 2 --cores 4 --set sched.move_timeout=5s
moves=$(thorough 10 4)
# A unit test shows the same for securebits.
for what in uids capabilities $(thorough securebits ''); do
    start "$what" n1 --group-size 1 -n 1 "$programs/trespass" --seconds=100 --stop-file="$(stop_file "$what")"
    running "$what"
    # He has no such priority; it makes what he needs luck for happen in each run.
    on n1 chrt --fifo 1 setpriv --reuid alice --regid alice --init-groups "$programs/intruder" tamper trespass "$what" $((moves * 3)) \
        >"$work/tamper" 2>&1 &
    intruder=$!
    until_true 10 grep -q watches "$work/tamper" || fail "nothing tampers"
    for ((i = 0; i < moves; i++)); do
        # What it does on the way to n2 counts; from there it comes back undisturbed.
        for to in n2 n1; do
            [[ $(q where "$what" 0) != "$to" ]] || continue
            migrate "$what" 0 "$to" --mode stop --wait --timeout 40 >"$work/migrate" 2>&1 &&
                q arrived "$what" 0 "$to" 60 >"$work/migrate" 2>&1 || see "$what: $(<"$work/migrate")"
        done
    done
    must "job $what does not run" q state "$what" RUNNING 60 >/dev/null
    wait "$intruder"
    see "$what: $(tail -n 1 "$work/tamper")"
    grep -q 'wrote 0 times' "$work/tamper" && fail "nothing was overwritten: the test has not tried anything"
    release "$what"
    finish "$what"
    grep 'gained' "$work/$what.out" && fail "$what: the user has become more than a user"
    ended_well "$what" 'kept to itself'
done
