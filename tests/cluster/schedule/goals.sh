#!/bin/bash
# When there are too few cores, groups that must find room come to the cores of a job that does more steps than its goal wants, and not to those of one
# that wants more than it does. A folded job goes back when its measured steps say that it gains by that, and stays when it is no slower where it is (Wang et al. 2012).
# So does a job with a core for each rank, from slower nodes to those that it had to leave.
# `rmctl plan` and `rmctl list-moves` say why.
# complete: unit tests of rounds show what goals change
# limit: 330
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 2
bed_do copy "$tests_dir/programs/paces.c" n1:/home/alice/paces.c
# shellcheck disable=SC2016 # the user's shell expands it
bed_do exec n1 --user alice -- sh -c 'cc -O2 -D_GNU_SOURCE -Wall -Wextra -o paces paces.c $(pkg-config --cflags --libs rmrt)' >"$work/cc" 2>&1 ||
    fail "a user cannot build it: $(head -n 5 "$work/cc")"

# paces NAME GROUP_SIZE HOW USEC STEPS GOAL: two ranks of it, each with a core.
paces() {
    start "$1" n1 --group-size "$2" -n 2 ./paces "$3" "$4" "$5" "$6" "$(stop_file "$1")"
    running "$1"
}
# planned NAME: what plan says of the job.
planned() {
    rmctl plan | sed -n "s/^Runs: *$(job "$1"): //p"
}
plan_says() {
    [[ $(planned "$1") =~ $2 ]]
}
allow() {
    on n1 sh -c 'printf "n1:%d\nn2:%d\nn3:%d\n" "$@" >/home/rmd/availability' sh "$@"
}

# By chance the first node would get what must find room, or each of them some.
paces behind 2 sleep 20000 1000000 1000
paces ahead 2 sleep 20000 1000000 10
paces third 1 sleep 20000 1000000 0
for name in behind ahead third; do see "$name is on $(q where $name 0)"; done
must "plan does not say that ahead is to fold first: $(planned ahead)" until_true 120 plan_says ahead \
    '^folds first: [0-9.]+ steps a second on its own cores, 10 wanted$'
same "what plan says of behind" "$(planned behind)" ""
see "plan: ahead $(planned ahead)"
leaving=$(q where third 0)
must "the drain" rmctl drain-node "$leaving" --reason going --wait --timeout 60 >/dev/null
for group in 0 1; do same "where group $group of third goes" "$(q where third $group)" "$(q where ahead 0)"; done
same "the state of ahead" "$(q job ahead state)" FOLDED
same "the state of behind" "$(q job behind state)" RUNNING
plan_says ahead '^folded; folds first: ' || fail "plan: $(planned ahead)"
# It stays so.
sleep 3
for group in 0 1; do same "where group $group of third is" "$(q where third $group)" "$(q where ahead 0)"; done
same "moves of ahead and behind" "$(q job ahead moves)$(q job behind moves)" 00
must "resume-node" rmctl resume-node "$leaving" >/dev/null
for name in behind ahead third; do
    release $name
    finish $name
    same "the exit code of $name" "$rc" 0
done

# Steps so long that it hardly counts when a busy machine wakes a rank some milliseconds late: 20 of them are the 5 % for which a job is not moved.
# folded NAME HOW: its two ranks share one core of n1, and what a step takes there and with a core for each is known. Then n2 has a core too.
folded() {
    allow 2 0 0
    paces "$1" 1 "$2" 400000 10000000 1
    must "of $1 no rate on its own cores is known: $(planned "$1")" until_true 120 plan_says "$1" 'on its own cores'
    allow 1 0 0
    must "$1 is not folded" q state "$1" FOLDED 30 >/dev/null
    must "of $1 no rate on shared cores is known: $(planned "$1")" until_true 120 plan_says "$1" ' on shared ones'
    see "$1: $(planned "$1")"
    allow 1 1 0
}

folded computes compute
must "computes does not go back" until_true 30 eval '[[ $(q where computes 0) != $(q where computes 1) ]]'
rmctl list-moves --job "$(job computes)" >"$work/moves"
grep -Eq "node 'n1' has 2 ranks on 1 cores; a step takes [0-9.]+ ms here and [0-9.]+ ms there, [0-9]+ are left" "$work/moves" ||
    fail "list-moves does not say why: $(<"$work/moves")"
see "$(tail -n 1 "$work/moves")"
release computes
finish computes

folded sleeps sleep
must "plan does not say why sleeps stays: $(planned sleeps)" until_true 20 plan_says sleeps \
    '^folded; stays: by its steps it gains too little by going back, which takes [0-9.]+ s; a step takes [0-9.]+ ms here and [0-9.]+ ms there, [0-9]+ are left'
see "plan: $(planned sleeps)"
sleep 2
same "where the groups of sleeps are" "$(q where sleeps 0)$(q where sleeps 1)" n1n1
same "its moves" "$(q job sleeps moves)" 0
release sleeps
finish sleeps

# --- nodes that are slower ---
done_steps() {
    rmctl show-job --json "$(job "$1")" | python3 -c 'import json, sys
print((json.load(sys.stdin)["jobs"][0].get("progress") or {}).get("done", 0))'
}
# goes_on NAME: for so many steps that its rate is measured where it is.
goes_on() {
    local until
    until=$(($(done_steps "$1") + 60))
    must "$1 does not go on" until_true 120 eval "((\$(done_steps $1) > $until))"
}
# The fast one is that of the leader, which hands over when it is drained: what it has measured is in the log.
fast=$(q leader)
slow=$([[ $fast == n2 ]] && echo n3 || echo n2)
only() {
    on n1 sh -c 'for n in n1 n2 n3; do case " $* " in *" $n "*) echo "$n:2" ;; *) echo "$n:0" ;; esac; done >/home/rmd/availability' sh "$@"
}
only "$fast"
paces home 2 node 400000 10000000 0
same "where home begins" "$(q where home 0)" "$fast"
on "$slow" touch /etc/slow
only "$fast" "$slow"
goes_on home
must "the drain" rmctl drain-node "$fast" --reason going --wait --timeout 60 >/dev/null
same "where home is" "$(q where home 0)" "$slow"
goes_on home
same "where home is while $fast is drained" "$(q where home 0)" "$slow"
[[ $(q leader) != "$fast" ]] || fail "$fast still leads"
must "resume-node" rmctl resume-node "$fast" >/dev/null
must "home does not go back: $(planned home)" until_true 30 eval '[[ $(q where home 0) == "$fast" ]]'
rmctl list-moves --job "$(job home)" >"$work/moves"
[[ $(tail -n 1 "$work/moves") =~ "a better place than '$slow'; a step takes "([0-9.]+)" ms here and "([0-9.]+)" ms there, "[0-9]+" are left" ]] ||
    fail "list-moves does not say why: $(<"$work/moves")"
see "$(tail -n 1 "$work/moves")"
# A step is dated where it was done, but what the last report takes on its way to the leader is part of the measured time: half a second of the 30
# that it remembers is 2 %.
awk -v here="${BASH_REMATCH[1]}" -v there="${BASH_REMATCH[2]}" 'BEGIN { exit !(here > 780 && here < 860 && there > 390 && there < 430) }' ||
    fail "a step takes 800 and 400 ms: $(tail -n 1 "$work/moves")"

# Who is sent to a slower node is wanted there.
goes_on home
must "it is not sent away" migrate home 0 "$slow" --wait --timeout 30 >/dev/null
goes_on home
same "where home was sent" "$(q where home 0)" "$slow"
release home
finish home
