#!/bin/bash
# Debian's hpcc, unmodified: HPL's verdicts and residues are the same with no move and with 20 moves (in a quick run 6).
# complete: move/results shows it with a program whose every bit is known
# limit: 360
. "${BASH_SOURCE[0]%/*}/../lib.sh"
RANDOM=${RM_TEST_SEED:-7}
wanted=$(thorough 20 6)

cluster 4 --cores 2
hpl still 2
finish still 200
same "hpcc's exit code" "$rc" 0
see "undisturbed: $(as alice n1 grep -E '^(Success|HPL_time|MPIRandomAccess_time)=' still/hpccoutf.txt | tr '\n' ' ')"
hpl_residues still >"$work/still"

# Those count that were asked for, and those that follow because a node has become too full.
arrived() {
    q moves "$1" | grep -c ' DONE '
}

# moved NAME: runs it and moves it about; the result is that of the job that was left alone.
moved() {
    local name=$1 group
    hpl "$name" 2
    must "hpcc does not run" q state "$name" RUNNING 20 >/dev/null
    while ((sum + $(arrived "$name") < wanted)) && [[ $(q job "$name" state) =~ RUNNING|MIGRATING|FOLDED ]]; do
        group=$((RANDOM % 5 - 1))
        # It may be on its way already, or the job over: then the next look tells.
        migrate "$name" "$group" "$(a_node_but "$(q where "$name" "$group")")" --wait --timeout 60 >"$work/migrate" 2>&1 || sleep 0.3
    done
    finish "$name" 250
    same "hpcc's exit code" "$rc" 0
    sum=$((sum + $(arrived "$name")))
    see "$(arrived "$name") moves: $(as alice n1 grep -E '^(Success|HPL_time|MPIRandomAccess_time)=' "$name/hpccoutf.txt" | tr '\n' ' ')"
    hpl_residues "$name" >"$work/$name"
    same "Success" "$(grep ^Success "$work/$name")" Success=1
    grep -q FAILED "$work/$name" && fail "HPL says FAILED: $(grep FAILED "$work/$name")"
    must "residues differ: $(diff "$work/still" "$work/$name" | tr '\n' '|')" cmp -s "$work/still" "$work/$name"
    see "$(grep -c . "$work/still") verdict lines are identical"
}

# A fast machine may be through before all moves are.
sum=0
for ((i = 0; i < 3 && sum < wanted; i++)); do moved "moved$i"; done
((sum >= wanted)) || fail "hpcc was over three times before $wanted moves: make it longer"
