#!/bin/bash
# In a job with --on-rank-loss continue:critical=RANKS --spare-ranks N a critical rank that is killed is replaced: each in turn, several at once, one that has replaced another, one that is about to. The
# result is then that of a run without losses, and the exit code 0. Others are not replaced. Without a spare rank left the job has failed, and says why; and what is no list is refused.
# limit: 500
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 6
until_true 20 as alice n1 rm-mpirun --on-rank-loss continue -n 1 true 2>"$work/level" || fail "no job may go on without ranks: $(<"$work/level")"

# refused WHAT PATTERN STATUS OPTION...
refused() {
    local status=0
    as alice n1 rm-mpirun "${@:4}" true >"$work/refused" 2>&1 || status=$?
    same "the exit status of $1" "$status" "$3"
    grep -Eq -e "$2" "$work/refused" || fail "$1 says: $(<"$work/refused")"
}
refused "a rank that there is not" "there is no rank 9: the program has 8" 1 --on-rank-loss continue:critical=9 --spare-ranks 2 -n 8
refused "half a range" "'5-' is not a list of ranks" 1 --on-rank-loss continue:critical=5- -n 8
refused "no numbers" "'x' is not a list of ranks" 1 --on-rank-loss continue:critical=x -n 8
refused "no list" "is not abort or continue" 2 --on-rank-loss continue:critical= -n 8
refused "spare ranks for nobody" "needs --on-rank-loss continue:critical=RANKS" 2 --on-rank-loss continue --spare-ranks 1 -n 8
refused "one that grows" "cannot be combined with --max-ranks" 2 --on-rank-loss continue:critical=0 --spare-ranks 1 --max-ranks 9 -n 8

steps=400 total=0
for ((step = 0; step < steps; step++)); do total=$((total + 36000 + 8 * (step % 7))); done

# begin NAME CRITICAL SPARES [PROCESS STEP]...: 8 ranks, with steps of $usec
usec=200 loss=restart
begin() {
    start "$1" n1 --group-size 2 -n 8 --on-node-loss $loss --on-rank-loss "continue:critical=$2" --spare-ranks "$3" "$programs/replaced" "$steps" "$usec" "${@:4}"
}
# goes_on NAME LEFT SAYS: all 8, or so many, come to the right end.
goes_on() {
    local name=$1 left=$2
    finish "$name" 90
    same "$name: its exit code" "$rc" 0
    if ((left == 8)); then
        grep -q "^replaced $steps 8 $total\$" "$work/$name.out" || fail "$name says: $(tail -n 3 "$work/$name.out" "$work/$name.err")"
    else
        grep -q "^replaced $steps $left " "$work/$name.out" || fail "$name says: $(tail -n 3 "$work/$name.out" "$work/$name.err")"
    fi
    same "$name: how often it says so" "$(grep -c '^replaced' "$work/$name.out")" 1
    [[ ! $3 ]] || grep -q "$3" "$work/$name.err" || fail "$name: rm-mpirun says: $(<"$work/$name.err")"
}

rmd_has_lost() {
    grep -q "job $1 has lost rank $2:" < <(rmctl events)
}

begin none 0,5-7 2
goes_on none 8 ''
# Of the others that are critical and of those that are not, drawn ones.
for rank in $(thorough "$(seq -s ' ' 0 7)" "0 $((5 + RANDOM % 3)) $((1 + RANDOM % 4))"); do
    begin "one$rank" 0,5-7 2 "$rank" 150
    case $rank in
    0 | 5 | 6 | 7)
        goes_on "one$rank" 8 "^rm-mpirun: rank $rank (8 replaces it) was lost: job [0-9]* goes on with 8 of 8\$"
        grep -q "^rank $rank of 8 begins anew" "$work/one$rank.out" || fail "rank $rank does not begin anew: $(<"$work/one$rank.out")"
        ;;
    *) goes_on "one$rank" 7 "^rm-mpirun: rank $rank was lost: job [0-9]* goes on with 7 of 8\$" ;;
    esac
done
begin turn 0,5-7 4 0 50 5 120 6 190 7 260
goes_on turn 8 'goes on with 8 of 8'
begin both 0,5-7 4 5 150 6 150
goes_on both 8 'goes on with 8 of 8'
begin mixed 0,5-7 2 2 150 6 150
goes_on mixed 7 'goes on with 7 of 8'
# rm-mpirun tells of two losses in one line if it hears of both at once, as "held" does at its end.
twice='ranks\? \(.* \)\?8 (was rank 0, 9 replaces it) .*lost'
begin again 0,5-7 2 0 100 8 200
goes_on again 8 "$twice"
usec=10000
begin held 0,5-7 2 0 100 8 200
must "held does not run" until_true 60 grep -q '^running' "$work/held.out"
on n1 pkill -STOP -x rm-mpirun
must "rank 8 is not lost" until_true 60 rmd_has_lost "$(job held)" 8
on n1 pkill -CONT -x rm-mpirun
usec=200
goes_on held 8 "$twice"
begin about 0,5-7 2 0 100 8 -1
goes_on about 8 'goes on with 8 of 8'
# Killed from outside, as the spare one must be that waits.
usec=30000
begin unused 0,5-7 2 --last-file=/home/alice/unused.last
must "unused does not run" until_true 60 grep -q '^running' "$work/unused.out"
kill_processes replaced "$(job unused)" 8
must "nobody hears of the spare rank" until_true 20 grep -q 'rank 8' "$work/unused.err"
kill_processes replaced "$(job unused)" 5
must "nobody hears of rank 5" until_true 20 grep -q '(9 replaces it)' "$work/unused.err"
on n1 touch /home/alice/unused.last
usec=200
goes_on unused 8 '(9 replaces it)'

# The example of the guide, as its user builds it: each rank is killed once, and no step is missed. Here it does not begin the last step before all have been.
sed 's|^        while (mine.step < steps) {$|&\n                while (rank == 0 \&\& mine.step == steps - 1 \&\& access("sums.last", F_OK) < 0)\n                        usleep(10000);|' \
    "$repo_dir/examples/rtlib/replaced.c" >"$work/sums.c"
grep -q sums.last "$work/sums.c" || fail "the loop of the example is another one"
bed_do copy "$work/sums.c" n1:/home/alice/sums.c
bed_do exec n1 --user alice -- sh -c 'mpicc -O2 -Wall -Wextra -Werror -o sums sums.c $(pkg-config --cflags --libs rmrt)' >"$work/cc" 2>&1 || fail "a user cannot build it: $(head -n 5 "$work/cc")"
start sums n1 --group-size 2 --on-rank-loss continue:critical=0-3 --spare-ranks 4 -n 4 ./sums 3000
steps_known() {
    grep -Eq ': *[0-9]+ of' < <(rmctl show-job "$(job sums)" | grep '^Progress')
}
must "nothing is known of sums" until_true 60 steps_known
for rank in 0 1 2 3; do
    kill_processes sums "$(job sums)" "$rank"
    must "nobody hears of rank $rank" until_true 20 grep -q "rank $rank ([0-9]* replaces it) was lost" "$work/sums.err"
done
on n1 touch /home/alice/sums.last
finish sums 120
same "the exit code of sums" "$rc" 0
total=0
for ((step = 0; step < 3000; step++)); do total=$((total + 10 * (step % 7))); done
same "the sum of four ranks that were all replaced" "$(<"$work/sums.out")" "total $total after 3000 steps of 4 ranks"

# What ends when none is left, and how it is shown.
loss=abort
begin bare 0,5-7 0 6 150
finish bare 60
((rc > 0)) || fail "a job without a critical rank ends with 0"
grep -q 'critical rank 6 was lost, and no spare rank is left' "$work/bare.err" || fail "it does not say so: $(<"$work/bare.err")"
same "its state" "$(q job bare state)" FAILED
begin used 0,5-7 1 6 100 8 200
finish used 60
((rc > 0)) || fail "a job without a critical rank ends with 0, though it was replaced once"
grep -q 'critical rank 6 was lost, and no spare rank is left' "$work/used.err" || fail "it does not say so: $(<"$work/used.err")"
rmctl show-job "$(job used)" | grep -q '^Critical ranks: *0,5-7 (1 spare' || fail "show-job says: $(rmctl show-job "$(job used)")"
