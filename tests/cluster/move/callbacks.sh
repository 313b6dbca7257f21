#!/bin/bash
# A program that asks for it (rmrt_at) is told before and after its moves and checkpoints and after a restart, each once, in order and inside of rmrt_step. One that never comes by costs
# the limit, and moves all the same; one that lies at the door changes nothing for others.
# complete: unit tests of notices show the words
# limit: 330
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 4 --cores 2 --set cluster.node_timeout=2s --set move.callback_wait=4s
must "there are no three voters" until_true 30 voters_up

bed_do copy "$repo_dir/tests/programs/told.c" n1:/home/alice/told.c
bed_do copy "$repo_dir/tests/programs/common.h" n1:/home/alice/common.h
bed_do exec n1 --user alice -- sh -c 'mpicc -std=gnu17 -O2 -Wall -Wextra -o told told.c $(pkg-config --cflags --libs rmrt) -pthread' >"$work/cc" 2>&1 ||
    fail "a user cannot build it: $(head -n 5 "$work/cc")"

# words NAME: "RANK WORD" a line.
words() {
    sed -n 's/^rank \([0-9]*\): /\1 /p' "$work/$1.out" | sort -n
}
# is_told NAME RANK WORD
is_told() {
    same "what rank $2 of $1 was told" "$(words "$1" | sed -n "s/^$2 //p")" "$3"
}

# --- each once, in order ---

start told n1 --group-size 1 --checkpoint 1h --on-node-loss restart -n 2 ./told --stop-file="$(stop_file told)"
running told
move told 0 "$(a_node_but "$(q where told 0)")"
rmctl checkpoint-job "$(job told)" >"$work/saved" 2>&1 || fail "told is not saved: $(<"$work/saved")"
sleep 1
victim=$(q place told | awk '$2 != "n1" && $1 >= 0 { print $2; exit }')
[[ $victim ]] || victim=$(q where told 1)
bed_do power-off "$victim"
restarted() {
    [[ $(q job told attempt) == 2 && $(q job told state) =~ RUNNING|FOLDED ]]
}
must "told does not go on without $victim: $(q job told state)" until_true 60 restarted
bed_do power-on "$victim"
must "$victim is not back" until_true 60 all_joined
sleep 2
move told 1 "$(a_node_but "$(q where told 1)")"
sleep 1
release told
finish told
same "the exit code of told" "$rc" 0
see "$(words told | tr '\n' ' ')"
# What came after the checkpoint was captured, C, is gone with it.
is_told told 0 mMcr
is_told told 1 crmM

# --- a move at once ---

start quick n1 --group-size 2 -n 2 ./told --stop-file="$(stop_file quick)"
running quick
move quick 0 "$(a_node_but "$(q where quick 0)")"
sleep 1
release quick
finish quick
is_told quick 0 mM

# --- one that never comes by ---

start deaf n1 --group-size 1 -n 2 ./told --stop-file="$(stop_file deaf)" --deaf=1
running deaf
sleep 2
begin=$EPOCHREALTIME
move deaf 1 "$(a_node_but "$(q where deaf 1)")"
msec=$(msec_since "$begin")
see "a move of a group that does not answer takes $msec ms; stood still for $(q figures deaf | awk '{ print $2 }') us"
((msec >= 4000)) || fail "it was not waited for"
begin=$EPOCHREALTIME
move deaf 0 "$(a_node_but "$(q where deaf 0)")"
see "of one that answers $(msec_since "$begin") ms"
sleep 1
release deaf
finish deaf
same "the exit code of deaf" "$rc" 0
is_told deaf 0 mM
is_told deaf 1 M

# --- the same, before a drain's deadline ---

start hurried n1 --group-size 2 -n 2 ./told --stop-file="$(stop_file hurried)" --deaf=1
running hurried
sleep 1
node=$(q where hurried 0)
begin=$EPOCHREALTIME
must "drain-node" rmctl drain-node "$node" --deadline 3s --wait --timeout 60 >/dev/null
hurried=$(msec_since "$begin")
see "before a deadline in 3 s its node is empty after $hurried ms"
((hurried < msec)) || fail "it was waited for as without a deadline"
must "resume-node" rmctl resume-node "$node" >/dev/null
release hurried
finish hurried
same "the exit code of hurried" "$rc" 0

# --- rmd is lost between before and after ---

start orphan n1 --group-size 2 -n 2 ./told --stop-file="$(stop_file orphan)" --deaf=1
running orphan
sleep 2
node=$(q where orphan 0)
migrate orphan 0 "$(a_node_but "$node")" >"$work/orphan.move" 2>&1 || fail "no move: $(<"$work/orphan.move")"
must "rank 0 is not told" until_true 20 grep -q 'rank 0 is to be moved' "$work/orphan.out" # and rank 1 is waited for
begin=$EPOCHREALTIME
bed_do restart-rmd "$node"
must "$node is not back" back "$node" "$begin"
must "the move has no end" q settled 60 >/dev/null
sleep 1
release orphan
finish orphan
same "the exit code of orphan" "$rc" 0
see "orphan: $(words orphan | tr '\n' ' ')"
words orphan | grep -Eqx '0 (mM)+' || fail "rank 0 was not told that it is over: $(words orphan)"
words orphan | grep -Eqx '1 M+' || fail "rank 1: $(words orphan)"

# --- who lies at the door ---

start told2 n1 --group-size 1 -n 2 ./told --stop-file="$(stop_file told2)"
running told2
start knock n1 --group-size 2 -n 2 "$programs/knock" 120 "$(stop_file knock)"
sleep 3
begin=$EPOCHREALTIME
move told2 1 "$(a_node_but "$(q where told2 1)")"
see "a move of another job beside knock takes $(msec_since "$begin") ms"
begin=$EPOCHREALTIME
move knock 0 "$(a_node_but "$(q where knock 0)")"
see "and of knock itself $(msec_since "$begin") ms"
release knock
finish knock
same "the exit code of knock" "$rc" 0
see "$(tr '\n' ' ' <"$work/knock.out")"
must "the moves have no end" q settled 60 >/dev/null
sleep 1
release told2
finish told2
# Where knock has come to its node, a group of it makes room.
for rank in 0 1; do
    is_told told2 $rank "$(q moves told2 | awk -v group=$rank '$2 == group && $5 == "DONE" { printf "mM" }')"
done
for node in $(nodes); do
    on "$node" pgrep -x rmd >/dev/null || fail "rmd on $node has ended"
done
