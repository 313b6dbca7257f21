#!/bin/bash
# A group with much memory is moved again and again, and at some moment of each move, drawn by chance, something is killed: the filler, rm-mover, rmd or
# the group's PID 1 at either end, or the power of either node. The group goes on, at one end, with what it had; or what was killed ends it, and
# then the job starts again or ends as its contract says. No page is ever wrong.
# complete: move/faults and memory/rmd-killed-while-filling have the worst faults
# limit: 900
. "${BASH_SOURCE[0]%/*}/../lib.sh"
wanted=${RM_TEST_KILLS:-$(thorough 30 6)}
mib=$(thorough 1024 256)
seed=${RM_TEST_SEED:-$((EPOCHSECONDS % 30000))}
see "RM_TEST_SEED=$seed"
RANDOM=$seed

# The head and the front end stay on n1, which is left alone.
cluster 3 --cores 2 --set cluster.node_timeout=2s
must "there are no three voters" until_true 30 voters_up
jobs=0 big=''
begin() {
    jobs=$((jobs + 1))
    big=big$jobs
    start "$big" n1 --on-node-loss restart --restarts 1000 --group-size 1 -n 2 \
        "$programs/memory" --mb="$mib" --only-rank=1 --zero-percent=10 --dirty-percent=2 --stop-file="$(stop_file "$big")"
    running "$big" 60
}

here() { q where "$big" 1; }
goes_on() { [[ $(q job "$big" state) == RUNNING && $(here) == n[123] ]] && memory_is_on "$(here)"; }
memory_is_on() { on "$1" pgrep -x memory >/dev/null; }
undamaged() { ! grep -q 'is damaged' "$work/$big.err" || fail "$1: $(grep 'is damaged' "$work/$big.err")"; }

declare -A count=()
# do_kill WHAT NODE
do_kill() {
    case $1 in
    filler) on "$2" pkill -KILL -x rm-uffd ;;
    mover) on "$2" pkill -KILL -x rm-mover ;;
    rmd) bed_do stop-rmd "$2" --kill && bed_do start-rmd "$2" ;;
    init) on "$2" pkill -KILL -f "rm-capsule .*/j[0-9]*\.g1\." ;;
    power) bed_do power-off "$2" && sleep 3 && bed_do power-on "$2" ;;
    esac
}

# comes_to_rest TEXT: running again, or ended; then another one begins.
comes_to_rest() {
    local attempt=$2
    must "$1: not all join again" until_true 40 all_joined
    if until_true 60 goes_on || ! gone "${front_pid[$big]}"; then
        must "$1: it does not go on: $(q job "$big" state), $(q job "$big" reason)" until_true 30 goes_on
        must "$1: it does not settle" q settled 60 >/dev/null
        undamaged "$1"
        outcome=$([[ $(q job "$big" attempt) == "$attempt" ]] && echo "goes on" || echo "starts again")
        return
    fi
    finish "$big"
    undamaged "$1"
    ((rc != 0)) || fail "$1: exit code 0"
    outcome="ends"
    reason=$(q job "$big" reason)
    begin
}

begin
for ((i = 0; i < wanted; i++)); do
    [[ $(here) == n[23] ]] || move "$big" 1 n2
    q settled 60 >/dev/null || fail "kill $i: not settled before"
    from=$(here)
    to=$([[ $from == n2 ]] && echo n3 || echo n2)
    whats=(filler mover rmd init power) ends=("$from" "$to")
    what=${whats[i % 5]} node=${ends[RANDOM % 2]}
    attempt=$(q job "$big" attempt)
    migrate "$big" 1 "$to" >"$work/migrate" 2>&1 || fail "kill $i: $(<"$work/migrate")"
    msec=$((RANDOM % $(thorough 4000 1500)))
    sleep "$((msec / 1000)).$(printf %03d $((msec % 1000)))"
    reason=''
    do_kill "$what" "$node" || what="no $what"
    comes_to_rest "kill $i ($what on $node after $msec ms, from $from to $to)" "$attempt"
    count[$what: $outcome]=$((${count[$what: $outcome]:-0} + 1))
    [[ ! $reason ]] || see "$what killed on $node after $msec ms, from $from to $to: $reason"
done
for key in "${!count[@]}"; do see "${count[$key]} x $key"; done | sort -k 3
release "$big"
finish "$big" 120
ended_well "$big" good
undamaged "at the end"
see "$(grep -ho 'rank 1 good.*' "$work/$big.out")"
