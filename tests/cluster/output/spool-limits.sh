#!/bin/bash
# Jobs whose output nobody fetches fill neither the disk that holds the log nor what belongs to other users: their mpirun has to keep it, and
# writes on when some is fetched, with every byte.
# complete: output/much and output/unread have the main way
# limit: 180
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 1 --cores 4 --set job.spool_max=40M --set job.spool_reserve=24M
# shellcheck disable=SC2016 # the node's shell expands it
small_disk() {
    bed_do stop-rmd n1
    on n1 sh -c 'd=/var/lib/rmd; cp -a $d $d.copy; mount -t tmpfs -o size=100m tmpfs $d; cp -a $d.copy/. $d/; rm -r $d.copy'
    bed_do start-rmd n1
    must "n1 does not join again" until_true 20 all_joined
}
small_disk

free_mb() {
    on n1 df --output=avail -m /var/lib/rmd | tail -n 1
}
spool_mb() {
    on n1 du -sm --apparent-size /var/lib/rmd/spool | cut -f 1
}
# still SECONDS: so long no more comes.
still() {
    local before now
    for ((i = 0; i < 40; i++)); do
        before=$(spool_mb)
        sleep "$1"
        now=$(spool_mb)
        [[ $before != "$now" || $now -lt 10 ]] || return 0
    done
    return 1
}
# told TEXT: an event says that output waits, which takes until the jobs have started and written so much.
event_says() {
    rmctl events | grep -q "$1"
}
told() {
    until_true 40 event_says "$1" || fail "no event tells why it waits: $(rmctl events | tail -n 3)"
}
# detached USER NAME LINES: a rank that writes so many lines of 1000 letters.
detached() {
    as "$1" n1 rm-mpirun --job-name "$2" --detach -n 1 "$programs/flood" --lines="$3" --width=1000 --only=out >"$work/$2.sub" 2>&1 ||
        fail "$2: $(<"$work/$2.sub")"
}

detached alice a1 30000
detached alice a2 30000
told "output of alice"
must "alice's output does not come to rest" still 3
see "alice wants 60 MB kept: $(spool_mb) MB are, $(free_mb) MB are free"
(($(spool_mb) <= 52)) || fail "alice has $(spool_mb) MB, of 40"
see "$(rmctl events | grep 'output of alice' | tail -n 1)"
[[ "$(q job a1 state) $(q job a2 state)" == *RUNNING* ]] || fail "both have ended: $(q job a1 state), $(q job a2 state)"

# Another user is not touched by it, and the log has its room.
user=bob run bobs n1 -n 1 "$programs/flood" --lines=3000 --width=1000 --only=out
same "bob's exit code" "$rc" 0
must "bob's output" whole "$work/bobs.out" out 1 1000
detached bob b1 35000
detached bob b2 35000
told "up to .job. spool_reserve"
must "bob's output does not come to rest" still 3
see "and bob 70 MB: $(spool_mb) MB are kept, $(free_mb) MB are free"
(($(free_mb) >= 24 && $(free_mb) <= 40)) || fail "the log has $(free_mb) MB left, of 24 that are reserved"
must "nothing can be changed" rmctl drain-node n1 --reason disk >/dev/null
must "nothing can be changed" rmctl resume-node n1 >/dev/null

for name in a1 a2 b1 b2; do
    user=alice
    [[ $name == a* ]] || user=bob
    as "$user" n1 rmctl attach-job "$(job $name)" >"$work/$name.out" 2>"$work/$name.err"
    same "$name's exit code" "$?" 0
    must "$name's output" whole "$work/$name.out" out 1 1000
done
bed_do stop-rmd n1
on n1 umount -l /var/lib/rmd
bed_do start-rmd n1
