#!/bin/bash
# A policy that is a text, for the cluster or for one job: after a bad edit, status and the log name file and line, and the text as it
# was goes on; a good edit counts from the next job on.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

policies=/home/rmd/policies
installed=${RMD_DESTDIR:-$("$repo_dir/tools/build" --path)}

# placed_by NAME POLICY [ARG...]: a job is, and ends well.
placed_by() {
    run "$1" n1 "${@:3}" --group-size 1 -n 2 "$programs/ordered" --iterations=5
    ended_well "$1" hash
    same "$1: placed by" "$(q job "$1" policy)" "$2"
    see "$1: by $(q job "$1" policy), on $(q place "$1" | grep -v '^-1' | tr '\n' ' ')"
}

nodes_of() {
    q place "$1" | grep -v '^-1' | cut -d ' ' -f 2 | sort -u | wc -l
}

cluster 2 --cores 2 --set "sched.policy_dir=$policies" --set "sched.policy = mine" --set sched.budget=20s
on n1 mkdir "$policies"
bed_do copy "$installed"/usr/lib/*/rmd/policies/{greedy,mathprog}.so "n1:$policies"
bed_do copy "$installed"/usr/lib/*/rmd/policies/{fewest-nodes,spread}.mod "n1:$policies"
on n1 cp "$policies/fewest-nodes.mod" "$policies/mine.mod"
placed_by good mine
same "nodes it is on" "$(nodes_of good)" 1
placed_by own spread --policy spread
same "nodes it is on, with a policy of its own" "$(nodes_of own)" 2

# In the file's line of that name a semicolon is missing.
line=$(on n1 awk '/^set JOBS;/ { print NR }' "$policies/mine.mod")
on n1 sed -i 's/^set JOBS;/set JOBS/' "$policies/mine.mod"
placed_by bad mine
same "nodes it is on after a bad edit" "$(nodes_of bad)" 1
rmctl status >"$work/status"
# The parser sees it where the next declaration begins.
grep -E "mine.mod:($line|$((line + 1))):" "$work/status" || fail "status does not name mine.mod:$line: $(<"$work/status")"
bed_do logs n1 | grep -E -m 1 "mine.mod:($line|$((line + 1))):.*last valid version" || fail "the log does not name it: $(bed_do logs n1 | tail -n 5)"

on n1 cp "$policies/spread.mod" "$policies/mine.mod"
placed_by better mine
same "nodes it is on after a good edit" "$(nodes_of better)" 2
grep -q "mine.mod" <(rmctl status) && fail "status still warns: $(rmctl status)"
see "after a good edit status is quiet again"
