#!/bin/bash
# Debian's hpcc, unmodified: HPL's verdicts and residues are the same with no move and with 20 moves (in a quick run 6).
# complete: move/results shows it with a program whose every bit is known
# limit: 360
. "${BASH_SOURCE[0]%/*}/../lib.sh"
RANDOM=${RM_TEST_SEED:-7}
wanted=$(thorough 20 6)
# Its ranks poll while they wait; in a quick run they sleep instead, so that all other tests get on. What else hpcc does than HPL
# grows with the square of the problem and would take minutes then: so a small one, cut into small pieces.
how=() input=()
thorough || how=(-x "LD_PRELOAD=$programs/polite.so")
thorough || input=(-e 's/^1500 /500 /' -e 's/^80 /8 /')

# The lines that HPL computes from its solution: a single other bit shows.
residues() {
    as alice n1 grep -E 'Ax-b|PASSED|FAILED|^(Success|HPL_(N|NB|RnormI|Anorm1|AnormI|Xnorm1|XnormI|BnormI))=' "$1/hpccoutf.txt" |
        grep -vE '^(WALL|CPU)' | sort
}

prepare() {
    as alice n1 mkdir -p "$1"
    bed_do exec n1 --user alice -- sh -c "cat >$1/hpccinf.txt" < <(sed "${input[@]}" -e '' "$tests_dir/data/hpcc/hpccinf.txt")
}

hpl() {
    local name=$1
    prepare "/home/alice/$name"
    start "$name" n1 --group-size 2 -n 8 --wdir "/home/alice/$name" "${how[@]}" hpcc
}

cluster 4 --cores 2
hpl still
finish still 200
same "hpcc's exit code" "$rc" 0
see "undisturbed: $(as alice n1 grep -E '^(Success|HPL_time|MPIRandomAccess_time)=' still/hpccoutf.txt | tr '\n' ' ')"
residues still >"$work/still"

# Those count that were asked for, and those that follow because a node has become too full.
arrived() {
    q moves "$1" | grep -c ' DONE '
}

# moved NAME: runs it and moves it about; the result is that of the job that was left alone.
moved() {
    local name=$1 group
    hpl "$name"
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
    residues "$name" >"$work/$name"
    same "Success" "$(grep ^Success "$work/$name")" Success=1
    grep -q FAILED "$work/$name" && fail "HPL says FAILED: $(grep FAILED "$work/$name")"
    must "residues differ: $(diff "$work/still" "$work/$name" | tr '\n' '|')" cmp -s "$work/still" "$work/$name"
    see "$(grep -c . "$work/still") verdict lines are identical"
}

# A fast machine may be through before all moves are.
sum=0
for ((i = 0; i < 3 && sum < wanted; i++)); do moved "moved$i"; done
((sum >= wanted)) || fail "hpcc was over three times before $wanted moves: make it longer"
