#!/bin/bash
# Debian's hpcc, unmodified: HPL's verdicts and residues are the same with no move and with 20 moves (in a quick run 6).
# limit: 360
. "${BASH_SOURCE[0]%/*}/lib.sh"
RANDOM=${RM_TEST_SEED:-7}
wanted=$(thorough 20 6)
# Its ranks poll while they wait; in a quick run they sleep instead, so that all other tests get on. What else hpcc does than HPL
# grows with the largest problem and would take minutes then: so several small problems there.
how=() input=()
thorough || how=(-x "LD_PRELOAD=$programs/polite.so")
thorough || input=(-e 's/^1 *# of NBs/3 # of NBs/' -e 's/^80 *NBs/16 40 80 NBs/' -e 's/^1500 /700 /' -e 's/^1 *# of broad/2 # of broad/'
    -e 's/^1 *BCASTs/1 3 BCASTs/')

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
hpl moved
must "hpcc does not run" q state moved RUNNING 20
# Those count that were asked for, and those that follow because a node has become too full.
arrived() {
    q moves moved | grep -c ' DONE '
}
while (($(arrived) < wanted)) && [[ $(q job moved state) =~ RUNNING|MIGRATING|FOLDED ]]; do
    group=$((RANDOM % 5 - 1))
    # It may be on its way already, or the job over: then the next look tells.
    migrate moved "$group" "$(a_node_but "$(q where moved "$group")")" --wait --timeout 60 >"$work/migrate" 2>&1 || sleep 0.3
done
see "$(arrived) moves"
(($(arrived) >= wanted)) || fail "hpcc was over after $(arrived) moves: make it longer"
finish moved 250
same "hpcc's exit code" "$rc" 0
see "moved: $(as alice n1 grep -E '^(Success|HPL_time|MPIRandomAccess_time)=' moved/hpccoutf.txt | tr '\n' ' ')"
residues still >"$work/a"
residues moved >"$work/b"
same "Success" "$(grep ^Success "$work/b")" Success=1
grep -q FAILED "$work/b" && fail "HPL says FAILED: $(grep FAILED "$work/b")"
must "residues differ: $(diff "$work/a" "$work/b" | head -n 4)" cmp -s "$work/a" "$work/b"
see "$(grep -c . "$work/a") verdict lines are identical"
