#!/bin/bash
# A destination without room for the images: the move is given up, before or in the freeze, says why, and leaves nothing behind
# there; the job goes on at the source, comes to the right end, and can move when there is room again. Tracked memory needs room once; where there is no
# more, a group whose memory cannot be tracked stays.
# limit: 180
. "${BASH_SOURCE[0]%/*}/../lib.sh"

images=/run/rmd/moves

resize() {
    on n3 mount -o "remount,size=$1" $images || fail "cannot make $images $1 large"
}

# given_up WHAT REASON: the last move was aborted for it, and the group stays where it was.
given_up() {
    q settled 60 >/dev/null || fail "$1: not settled"
    [[ $(q moves live | tail -n 1) == *ABORTED* ]] || fail "$1: $(q moves live | tail -n 1)"
    same "$1: the group's node" "$(q where live 1)" n2
    on n1 rmctl list-moves >"$work/moves" && tail -n 1 "$work/moves" | grep -q "$2" || fail "$1: no reason: $(tail -n 1 "$work/moves")"
    on n1 rmctl events | tail -n 20 | grep -q "$2" || fail "$1: no event tells of it"
    see "$1: $(tail -n 1 "$work/moves" | sed 's/.*  //')"
    # rmd does not wait for the process that removes it.
    until_true 10 on n3 sh -c "[ ! \"\$(ls $images)\" ]" || fail "$1: left in $images: $(on n3 ls $images)"
    same "$1: ranks on n3" "$(on n3 "$programs/count" memory)" 0
}

# held: how often rmd on n2 has said that a state of a move is held.
held() {
    on n2 grep -c 'fault point .*: held' /var/log/rmd.log || true
}
# fill_up STATE ARG...: starts a move to n3, which has looked for room when it comes to this state, and takes that away then.
fill_up() {
    local before
    before=$(held)
    on n2 sh -c "echo move.source.$1:hold >/run/rmd/fault"
    migrate live 1 n3 "${@:2}" >"$work/migrate" 2>&1 || fail "migrate: $(<"$work/migrate")"
    until_true 30 eval '(($(held) > before))' || fail "the move does not come to $1"
    resize 16m
    on n2 rm /run/rmd/fault
}

cluster 3 --cores 2
bed_do stop-rmd n2
start_rmd_with_faults n2
must "n2 does not join again" until_true 20 all_joined
start live n1 --group-size 1 -n 2 "$programs/memory" --mb=300 --only-rank=1 --zero-percent=0 --stop-file="$(stop_file live)"
running live 60
[[ $(q where live 1) == n2 ]] || move live 1 n2

resize 64m
migrate live 1 n3 --wait >"$work/migrate" 2>&1 && fail "a full destination: the move is said to be done"
grep -q 'no room for an image' "$work/migrate" || fail "a full destination: $(<"$work/migrate")"
given_up "full before" 'no room for an image'

resize 90%
fill_up precopy
given_up "full while memory goes ahead" 'No space left on device'

resize 90%
fill_up transfer --mode stop
given_up "full in the freeze" 'No space left on device'

# Twice its memory is 630 MB. What cannot have one more descriptor can be neither tracked nor dumped, and is told so before anything is sent.
resize 450m
rank=$(on n2 sh -c 'grep -l "^VmRSS:.*[0-9]\{6\} kB" $(pgrep -x memory | sed "s|.*|/proc/&/status|") | cut -d / -f 3')
on n2 runuser -u alice -- prlimit --pid "$rank" --nofile=0: || fail "rank '$rank' cannot be limited"
migrate live 1 n3 --wait >"$work/migrate" 2>&1 && fail "not tracked: the move is said to be done"
given_up "not tracked" 'no room left below a limit.*RLIMIT_NOFILE'
on n2 runuser -u alice -- prlimit --pid "$rank" --nofile=1024: || fail "rank $rank does not get its limit back"
move live 1 n3
same "tracked" "$(q way live 1 | cut -d ' ' -f 1)" yes
see "room for its memory once: moved"
resize 90%
move live 1 n2
move live 1 n3
see "room again: moved"
release live
finish live
ended_well live good
