#!/bin/bash
# A job with --on-rank-loss continue goes on when ranks of it are killed: all others hear which ones, once and in one order, also with rmd killed in between, after moves of what is left, and from a
# checkpoint. Its exit code is 0 only if all that live say that they have finished. Without the option it ends, as ever.
# limit: 420
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 4 --set cluster.node_timeout=3s
# Where rmd was built without Open MPI, any library does: the program here needs none.
for node in $(nodes); do
    on "$node" sh -c 'cd /usr/libexec/rmd && { [ -e librmrt-ft.so ] || cp rm-yield.so librmrt-ft.so; }'
done

declare -A id_of

# begin NAME 'ARG...' OPTION...: 8 ranks in groups of 2, that are heard.
begin() {
    local name=$1
    shift
    start "$name" n1 --group-size 2 -n 8 --on-rank-loss continue "${@:2}" "$programs/mortal" --stop-file="$(stop_file "$name")" $1
    running "$name"
    id_of[$name]=$(job "$name")
    must "not all ranks of $name are heard" until_true 20 says "$name" 8 'is heard'
}
# says NAME N PATTERN: so many lines do.
says() {
    (($(grep -Ec "$3" "$work/$1.out") == $2))
}
# lose NAME RANK...: kill them.
lose() {
    kill_processes mortal "${id_of[$1]}" "${@:2}"
}
lost_field() {
    on "$asker" rmctl show-job --json "$(job "$1")" | python3 -c 'import json, sys
print(*json.load(sys.stdin)["jobs"][0].get("rank_losses", {}).get("lost", []))'
}
has_lost() {
    [[ $(lost_field "$1") == "$2" ]]
}
# refused WHAT PATTERN OPTION...
refused() {
    local status=0
    as alice n1 rm-mpirun "${@:3}" "$programs/mortal" >"$work/refused" 2>&1 || status=$?
    same "the exit status of $1" "$status" 2
    grep -Eq -e "$2" "$work/refused" || fail "$1 says: $(<"$work/refused")"
}

refused "nonsense" "--on-rank-loss: 'perhaps' is not abort or continue" --on-rank-loss perhaps -n 2
refused "one that grows" "cannot be combined with --max-ranks" --on-rank-loss continue --max-ranks 4 -n 2
refused "several programs" "--on-rank-loss continue is for one program" --on-rank-loss continue -n 1 true : -n 1
refused "another mapping" "--on-rank-loss continue cannot be combined with --map-by" --on-rank-loss continue --map-by node -n 2

begin often ''
same "the ranks lost at first" "$(lost_field often)" ''
since=$EPOCHREALTIME
lose often 5
must "the 7 others do not hear of rank 5" until_true 10 says often 7 'knows of 1 lost: 5$'
see "killed and known to all after $(msec_since "$since") ms at most"
must "rm-mpirun does not say so" until_true 20 grep -q '^rm-mpirun: rank 5 was lost: job [0-9]* goes on with 7 of 8$' "$work/often.err"
rmctl show-job "$(job often)" | grep -q '^Lost ranks: *1 of 8: 5$' || fail "show-job says: $(rmctl show-job "$(job often)")"
rmctl events | grep -q "job $(job often) has lost rank 5: 7 of 8 are left" || fail "no event tells of it"
# One that is killed while no rmd runs, and one with mpirun beside it that has moved.
for node in $(nodes); do bed_do stop-rmd "$node" --kill; done
lose often 2
for node in $(nodes); do bed_do start-rmd "$node"; done
must "all are not back" until_true 30 all_joined
must "the 6 others do not hear of rank 2" until_true 30 says often 6 'knows of 2 lost: 5 2$'
for group in -1 2 0; do
    move often $group "$(a_node_but "$(q where often $group)")"
done
same "the lost ranks after moves" "$(lost_field often)" '5 2'
# killed NAME RANK N PATTERN: kills the rank, wherever a move has put its group by now, and tells whether N lines match the pattern.
killed() {
    lose "$1" "$2"
    says "$1" "$3" "$4"
}
must "the 5 others do not hear of rank 4, whose group has moved" until_true 30 killed often 4 5 'knows of 3 lost: 5 2 4$'
for ((i = 0; i < 4; i++)); do
    q move often 3 "$(a_node_but "$(q where often 3)")" >"$work/move" 2>&1 &
    pid=$!
    ((i)) || lose often 7
    # The first move is aborted if the rank ends while it is dumped. If the rank ends later at the source, its copy lives on.
    wait "$pid" || { ((i == 0)) && grep -q 'was aborted' "$work/move"; } || fail "a move of group 3: $(<"$work/move")"
done
must "the others do not hear of rank 7" until_true 30 killed often 7 4 'knows of 4 lost: 5 2 4 7$'
release often
finish often
ended_well often 'rank 0 ends'
same "its state" "$(q job often state)" COMPLETED
same "what is told more than once" "$(sort "$work/often.out" | uniq -d | grep 'knows')" ''

# From a checkpoint, with the list that it had, and who dies after that follows.
begin saved '' --on-node-loss restart
lose saved 1
must "rank 1 is not lost" until_true 10 has_lost saved 1
must "not all know it" until_true 10 says saved 7 'knows of 1 lost: 1$'
must "checkpoint-job --stop" as alice n1 rmctl checkpoint-job --stop "$(job saved)" >/dev/null
must "it is not held" q state saved PENDING 30 >/dev/null
must "restart-job" as alice n1 rmctl restart-job "$(job saved)" >/dev/null
must "it does not run again" q state saved RUNNING 60 >/dev/null
same "the lost ranks after the restart" "$(lost_field saved)" 1
lose saved 6
must "the others do not hear of rank 6" until_true 20 says saved 6 'knows of 2 lost: 1 6$'
release saved
finish saved
ended_well saved 'rank 0 ends'

# Who ends without having finished is lost too; with the job's end it was all.
begin quitting '--quitter=3'
release quitting
finish quitting
ended_well quitting 'rank 3 ends'
must "rank 3 is not lost" has_lost quitting 3

begin all ''
lose all 0 1 2 3 4 5 6 7
finish all
((rc > 0)) || fail "the exit code of a job that has lost all ranks is 0"
grep -q 'all of its ranks were lost' "$work/all.err" || fail "it does not say so: $(<"$work/all.err")"
same "its state" "$(q job all state)" FAILED

# With an mpirun that does not notice.
begin stuck ''
for node in $(nodes); do on "$node" pkill -STOP -x prterun; done
lose stuck 0 1 2 3 4 5 6 7
finish stuck 60
((rc > 0)) || fail "the exit code of a job that has lost all ranks, and whose mpirun hangs, is 0"
same "its reason" "$(q job stuck reason)" 'all of its ranks were lost, and mpirun did not end'

# What rmd ends itself has lost nothing.
begin cancelled ''
must "cancel-job" rmctl cancel-job "$(job cancelled)" >/dev/null
finish cancelled
same "the state of one that is cancelled" "$(q job cancelled state)" CANCELLED
same "its lost ranks" "$(lost_field cancelled)" ''
if grep -q 'lost' "$work/cancelled.err"; then fail "it says: $(<"$work/cancelled.err")"; fi

# Of no program that speaks nothing is expected.
start silent n1 -n 4 --on-rank-loss continue "$programs/mortal" --silent --stop-file="$(stop_file silent)"
running silent
release silent
finish silent
ended_well silent 'rank 0 ends'

# A rank that lies does no harm to others, and is survived.
start lying n1 --group-size 2 -n 8 --on-rank-loss continue "$programs/mortal" --liar=0 --stop-file="$(stop_file lying)"
running lying
must "no rank of other groups is heard" until_true 20 says lying 6 'rank [2-7] is heard'
same "what was lost by lies" "$(lost_field lying)" ''
release lying
finish lying

# Without the option.
start fragile n1 --group-size 2 -n 8 "$programs/mortal" --stop-file="$(stop_file fragile)"
running fragile
id_of[fragile]=$(job fragile)
lose fragile 5
finish fragile
((rc > 0)) || fail "a job without the option survives"
for node in $(nodes); do rmd_runs "$node" || fail "rmd on $node has ended"; done
