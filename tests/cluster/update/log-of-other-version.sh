#!/bin/bash
# A log that another version of rmd wrote, or that is damaged, is taken for what it is not: rmd must refuse it and say what to do.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

dir=/var/lib/rmd
old=$tests_dir/data/state_dir-format-1

cluster 2 --cores 2
run_one() {
    start "$1" n1 -n 2 "$programs/ordered" --iterations=20
    finish "$1"
    ended_well "$1" hash
}

says() {
    [[ $(bed_do logs "$1" | tail -n 5) == *"$2"* ]]
}
rmd_is_gone() {
    ! rmd_runs "$1"
}

# rmd on n1 does not start; its log is shown, which says WORD.
refused() {
    local what=$1 word=$2 log
    bed_do start-rmd n1 >/dev/null 2>&1
    until_true 10 says n1 voter || fail "$what: the log does not say what to do: $(bed_do logs n1 | tail -n 5)"
    until_true 10 rmd_is_gone n1 || fail "$what: rmd runs with it"
    on n1 timeout 20 rmd >/dev/null 2>&1
    same "$what: exit status of rmd" $? 3
    log=$(bed_do logs n1 | tail -n 5)
    see "$what: $(grep -o 'cluster: .*' <<<"$log" | tail -n 1)"
    [[ $log == *"$word"* ]] || fail "$what: the log does not say '$word': $log"
}

# --- written before there were incarnations and causes of moves (by commit 8be08a0), with a job and a move in it ---
run_one before
bed_do stop-rmd n1
bed_do stop-rmd n2
on n1 rm -r "$dir/log" "$dir/voter"
must "the older log cannot be copied" bed_do copy "$old/voter" "$old/log" "n1:$dir"
must "the older copy cannot be copied" bed_do copy "$old/follower-state" "n2:$dir"
on n2 mv "$dir/follower-state" "$dir/state"
refused "a log of format 1" "it is of format 1"

# What the message says helps, also with the follower's copy of the old state.
on n1 rm "$dir/voter"
must "rmd does not start with an empty log" bed_do start-rmd n1
must "rmd does not start on n2" bed_do start-rmd n2
must "n2 does not join" q nodestate n2 IDLE 20 >/dev/null
[[ $(bed_do logs n2) == *"asking the leader"* ]] || fail "n2 does not say that its copy of the state is not used"
run_one after

# --- damaged: one bit of an entry ---
bed_do stop-rmd n1
# shellcheck disable=SC2016 # for the shell in the node
on n1 bash -c 'f=$(grep -la alice "$0"/log/0* | tail -n 1) && at=$(grep -obUa alice "$f" | head -n 1 | cut -d: -f1) &&
    printf A | dd of="$f" bs=1 seek="$at" conv=notrunc status=none' "$dir" ||
    fail "the log cannot be damaged"
refused "a damaged log" "corrupted"
on n1 rm "$dir/voter"
must "rmd does not start with an empty log" bed_do start-rmd n1
must "n2 does not join again" q nodestate n2 IDLE 20 >/dev/null
run_one again
