#!/bin/bash
# While a group runs at its new node and most of its memory is still at the old one (last = postcopy), something is killed: the filler, rm-mover or rmd at either
# end, or the power of either node. Without rmd it goes on; otherwise its job starts again. No page is ever wrong.
# complete: post-copy is off by default, and has unit tests of its own
# limit: 400
. "${BASH_SOURCE[0]%/*}/../lib.sh"
mib=80

# The head and the front end stay on n1, which is left alone.
cluster 3 --cores 2 --link 200mbit --set cluster.node_timeout=2s --set move.last=postcopy
must "there are no three voters" until_true 30 voters_up

here() { q where big 1; }
goes_on() { [[ $(q job big state) == RUNNING && $(here) == n[123] ]] && on "$(here)" pgrep -x memory >/dev/null; }
undamaged() { ! grep -q 'is damaged' "$work/big.err" || fail "$1: $(grep 'is damaged' "$work/big.err")"; }
# post_copied: the last move is committed, and not all of its memory has come.
post_copied() {
    on n1 python3 -c 'import json, sys
m = json.loads(sys.argv[1])["moves"][-1]
sys.exit(not (m.get("later_bytes", 0) > 0 and m.get("fill_usec", 0) == 0))' "$(rmctl list-moves --json)"
}

started_again() { (($(q job big attempt) > attempt)); }

# moved_post_copied WHAT NODE: its memory comes no further until fillers go on: what follows has the time that it takes.
moved_post_copied() {
    migrate big 1 "$2" --wait --timeout 60 >"$work/migrate" 2>&1 || fail "$1: $(<"$work/migrate")"
    must "$1: no filler is at work" on "$2" pkill -STOP -x rm-uffd
    must "$1: it is not post-copied" post_copied
}
fillers_go_on() {
    on "$1" pkill -CONT -x rm-uffd || true
}

# do_kill WHAT NODE
do_kill() {
    case $1 in
    filler) on "$2" pkill -KILL -x rm-uffd ;;
    mover) on "$2" pkill -KILL -x rm-mover ;;
    rmd) bed_do stop-rmd "$2" --kill && bed_do start-rmd "$2" ;;
    restart) bed_do stop-rmd "$2" && bed_do start-rmd "$2" ;;
    power) bed_do power-off "$2" && sleep 3 && bed_do power-on "$2" ;;
    esac
}

start big n1 --on-node-loss restart --restarts 1000 --group-size 1 -n 2 "$programs/memory" --mb=$mib --only-rank=1 --zero-percent=0 --dirty --stop-file="$(stop_file big)"
running big 60
for kill in 'filler to' 'mover from' 'mover to' 'rmd from' 'rmd to' 'restart from' 'restart to' 'power from' 'power to'; do
    read -r what end <<<"$kill"
    must "$kill: it does not run" until_true 60 goes_on
    [[ $(here) == n[23] ]] || migrate big 1 n2 >"$work/migrate" 2>&1 || fail "$kill: $(<"$work/migrate")"
    q settled 60 >/dev/null || fail "$kill: not settled before"
    from=$(here)
    to=$([[ $from == n2 ]] && echo n3 || echo n2)
    attempt=$(q job big attempt)
    sleep 0.5
    moved_post_copied "$kill" "$to"
    # Without rmd it may as well have all by then; the others must not be late.
    [[ $what != r* ]] || fillers_go_on "$to"
    sleep "0.$((RANDOM % 10))"
    do_kill "$what" "${!end}" || fail "$kill: nothing to kill"
    fillers_go_on "$to"
    must "$kill: not all join again" until_true 40 all_joined
    if [[ $what == rmd || $what == restart ]]; then
        must "$kill: it does not settle" q settled 60 >/dev/null
        same "$kill: attempt" "$(q job big attempt)" "$attempt"
        same "$kill: where it is" "$(here)" "$to"
    else
        must "$kill: it does not start again: $(q job big state), $(q job big reason)" until_true 60 started_again
    fi
    must "$kill: it does not go on: $(q job big state), $(q job big reason)" until_true 60 goes_on
    undamaged "$kill"
    see "$what killed on ${!end}, from $from to $to: attempt $(q job big attempt)"
done

# The program ends, or the job is cancelled, while most of its memory is still to come: nothing is left at the source.
for how in ends cancelled; do
    [[ $(here) == n[23] ]] || migrate big 1 n2 >"$work/migrate" 2>&1 || fail "$how: $(<"$work/migrate")"
    q settled 60 >/dev/null || fail "$how: not settled before"
    to=$([[ $(here) == n2 ]] && echo n3 || echo n2)
    moved_post_copied "$how" "$to"
    if [[ $how == ends ]]; then
        release big
        fillers_go_on "$to"
        finish big 120
        ended_well big good
        undamaged "at the end"
        start big n1 --on-node-loss restart --group-size 1 -n 2 "$programs/memory" --mb=$mib --only-rank=1 --zero-percent=0 --dirty --stop-file=/none
        running big 60
    else
        on n1 rmctl cancel-job "$(job big)" >/dev/null || fail "it cannot be cancelled"
        finish big 60
        ((rc != 0)) || fail "it was not cancelled"
    fi
done
