#!/bin/bash
# Ranks in reserve (--max-ranks) wait without holding a core: another job fits in beside them, what waits stands still, and drains, moves, a new rmd and a checkpoint
# leave it so. What cannot be asked for is refused in words that say why.
# complete: resize/node-loss and resize/results park ranks
# limit: 360
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 4 --set cluster.node_timeout=3s --set sched.resize_interval=0

# field NAME FIELD: of show-job's JSON.
field() {
    on "$asker" rmctl show-job --json "$(job "$1")" | python3 -c 'import json, sys
j = json.load(sys.stdin)["jobs"][0]
print(j.get(sys.argv[1], j.get("resize", {}).get(sys.argv[1], "")))' "$2"
}
# refused WHAT CODE PATTERN CMD...
refused() {
    local what=$1 code=$2 pattern=$3 status=0
    shift 3
    "$@" >"$work/refused" 2>&1 || status=$?
    same "the exit status of $what" "$status" "$code"
    grep -Eq -e "$pattern" "$work/refused" || fail "$what says: $(<"$work/refused")"
}
unwanted() {
    refused "$1" 2 "$2" bed_do exec n1 --user alice -- rm-mpirun "${@:3}" "$programs/resizes"
}

unwanted "fewer at most" '--max-ranks: the job begins with 4 ranks, so it cannot have 3 at most' --max-ranks 3 -n 4
unwanted "more at least" '--min-ranks: the job begins with 4 ranks, so it cannot have 5 at least' --max-ranks 8 --min-ranks 5 -n 4
unwanted "min without max" '--min-ranks: needs --max-ranks' --min-ranks 2 -n 4
unwanted "another mapping" '--max-ranks cannot be combined with --map-by' --max-ranks 8 --map-by node -n 4
unwanted "nonsense" "--max-ranks: 'many' is not a number of ranks" --max-ranks many -n 4

# 12 cores: 4 ranks hold some, and the 12 that wait hold none.
start wide n1 --group-size 2 -n 4 --max-ranks 16 --min-ranks 2 "$programs/resizes" --stop-file="$(stop_file wide)"
running wide
must "6 groups do not stand still but $(frozen wide)" until_true 30 stands_still wide 6
same "the active ranks" "$(field wide active_ranks) $(field wide parked_groups)" "4 6"
rmctl show-job "$(job wide)" >"$work/show"
grep -q '^Active ranks: *4 of 16, at least 2; 6 parked groups$' "$work/show" || fail "show-job says: $(<"$work/show")"
[[ $(rmctl list-jobs) == *" 4/16 "* ]] || fail "list-jobs says: $(rmctl list-jobs)"
must "a job of 8 ranks does not fit beside it" run beside n1 -n 8 "$programs/exitcodes" ok
same "its exit code" "$rc" 0
same "the state of wide" "$(q job wide state)" RUNNING

refused "a job that is not there" 1 'no job 99' rmctl resize-job 99 4
refused "too many" 1 'can have 2 to 16 active ranks, not 17' rmctl resize-job "$(job wide)" 17
refused "too few" 1 'can have 2 to 16 active ranks, not 1' rmctl resize-job "$(job wide)" 1
refused "no number" 2 'not a number of ranks' rmctl resize-job "$(job wide)" x
refused "another's job" 1 'job' as bob n1 rmctl resize-job "$(job wide)" 4
start plain n1 -n 1 "$programs/ordered" --stop-file="$(stop_file plain)"
running plain
refused "one without reserve" 1 'without --max-ranks' rmctl resize-job "$(job plain)" 1
release plain
finish plain
start deaf n1 --group-size 1 -n 1 --max-ranks 2 "$programs/ordered" --stop-file="$(stop_file deaf)"
running deaf
refused "a program that does not ask" 1 'has not asked for changes' rmctl resize-job "$(job deaf)" 2
told_awake() {
    rmctl events | grep "job $(job deaf) of alice: group 1 on n[123] is in reserve and runs" >"$work/awake"
}
must "nobody is told that a reserve runs" until_true 60 told_awake
same "how often that was told" "$(wc -l <"$work/awake")" 1
see "$(grep -o 'job .*' "$work/awake")"
release deaf
finish deaf

# They leave a node as others do, and stay parked; also when rmd is another, and twice.
group=$(q place wide | awk '$1 >= 2 && $2 != "n1" { print $1; exit }')
away=$(q where wide "$group")
must "the drain" rmctl drain-node "$away" --reason test --wait --timeout 60 >/dev/null
same "the state of $away" "$(q node "$away" state)" DRAINED
must "after the drain $(frozen wide) groups stand still" until_true 30 stands_still wide 6
see "$(q moves wide | grep -c DONE) groups have left $away"
must "resume-node" rmctl resume-node "$away" >/dev/null
move wide "$group" "$away"
must "after a move $(frozen wide) groups stand still" until_true 30 stands_still wide 6
for node in $(nodes); do
    bed_do stop-rmd "$node" --kill
    bed_do start-rmd "$node"
done
must "all are not back" until_true 30 all_joined
same "groups that stand still" "$(frozen wide)" 6
must "moves do not end" q settled 60 >/dev/null
must "a checkpoint" as alice n1 rmctl checkpoint-job "$(job wide)" >/dev/null
must "after a checkpoint $(frozen wide) groups stand still" until_true 30 stands_still wide 6
same "its moves" "$(field wide active_ranks)" 4
must "wide does not grow" as alice n1 rmctl resize-job "$(job wide)" 16 --timeout 60
must "wide does not shrink" as alice n1 rmctl resize-job "$(job wide)" 4 --timeout 60
must "after that $(frozen wide) groups stand still" until_true 30 stands_still wide 6
rmctl events | grep "job $(job wide) .* in reserve and runs" && fail "a reserve that waits is said to run"
release wide
finish wide
ended_well wide 'ends well'
see "$(tail -n 1 "$work/wide.out")"
