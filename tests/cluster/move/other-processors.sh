#!/bin/bash
# A program that has begun where the processor knows AVX-512 would be killed on a node without it: so it is not moved there, by nobody, nor started again there from a checkpoint; the reason says what is lacking.
# complete: the unit test leader-processors has the decisions
# limit: 150
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 2
# What the nodes know is written for them. n3 lacks one instruction set of n1 and n2, which have one that no processor has.
lacking=avx512_example
flags=$(grep -m 1 '^flags' /proc/cpuinfo)
printf '%s %s\n\n' "$flags" "$lacking" >"$work/more"
printf '%s\n\n' "$flags" >"$work/less"
for node in n1 n2 n3; do
    what=more
    [[ $node != n3 ]] || what=less
    bed_do copy "$work/$what" "$node:/run/cpuinfo"
    bed_do stop-rmd "$node"
    must "no other /proc/cpuinfo on $node" on "$node" mount --bind /run/cpuinfo /proc/cpuinfo
    bed_do start-rmd "$node"
done
must "the nodes do not come back" until_true 30 all_joined
two_know() {
    [[ $(rmctl list-nodes --json | python3 -c 'import json, sys
print(sum(sys.argv[1] in n.get("instruction_sets", "") for n in json.load(sys.stdin)["nodes"]))' "$lacking") == 2 ]]
}
must "not two nodes say that they have $lacking" until_true 30 two_know

says_why() {
    rmctl show-job "$(job "$1")" | grep -q "^Reason: .*${2-}.*node n3 lacks $lacking, which node n[12] has"
}
begin_on() {
    local others=(n1 n2 n3) node
    for node in "${others[@]}"; do [[ $node == "$2" ]] || must "the drain of $node" rmctl drain-node "$node" --reason test --wait --timeout 30 >/dev/null; done
    start "$1" "$2" --group-size 2 -n 2 "${@:3}" "$programs/ordered" --stop-file="$(stop_file "$1")"
    running "$1"
    for node in "${others[@]}"; do [[ $node == "$2" ]] || must "resume-node $node" rmctl resume-node "$node" >/dev/null; done
}

begin_on more n1
if migrate more 0 n3 --mode stop --wait --timeout 30 >"$work/said" 2>&1; then fail "it was moved to n3"; fi
grep -q "node 'n3' lacks instruction sets that node 'n1' has, and that programs there may use: $lacking" "$work/said" || fail "migrate-job says: $(<"$work/said")"
# Only n3 is left, and then n2 as well.
must "the drain of n2" rmctl drain-node n2 --reason test --wait --timeout 30 >/dev/null
if rmctl drain-node n1 --reason test --wait --timeout 3 >"$work/said" 2>&1; then fail "n1 is said to be drained"; fi
grep -q "no node that may be used has the instruction sets of n1: n3 lacks $lacking" "$work/said" || fail "drain-node does not say what keeps the group: $(<"$work/said")"
must "no reason: $(rmctl show-job "$(job more)" | grep Reason)" until_true 30 says_why more "stays on 'n1': no other node that may be used has the instruction sets"
same "where it is" "$(q where more 0)" n1
must "resume-node" rmctl resume-node n2 >/dev/null
must "it does not go to n2" q arrived more 0 n2 60
must "resume-node" rmctl resume-node n1 >/dev/null

# From a checkpoint.
must "checkpoint-job --stop" as alice n1 rmctl checkpoint-job --stop "$(job more)" >/dev/null
must "it is not held" q state more PENDING 30 >/dev/null
for node in n1 n2; do must "the drain of $node" rmctl drain-node "$node" --reason test --wait --timeout 30 >/dev/null; done
must "restart-job" as alice n1 rmctl restart-job "$(job more)" >/dev/null
must "no reason to wait: $(rmctl show-job "$(job more)" | grep Reason)" until_true 30 says_why more
same "its state" "$(q job more state)" PENDING
must "resume-node" rmctl resume-node n1 >/dev/null
must "it does not go on" q state more RUNNING 60 >/dev/null
same "where it goes on" "$(q where more 0)" n1
must "resume-node" rmctl resume-node n2 >/dev/null
release more
finish more
ended_well more 'ordered: ranks 2'

# What began on n3 goes anywhere.
begin_on less n3
move less 0 n1
must "moves do not end" q settled 60 >/dev/null
same "where its head is, which need not leave n3" "$(q where less -1)" n3
release less
finish less
ended_well less 'ordered: ranks 2'
for node in n1 n2 n3; do must "umount on $node" on "$node" umount /proc/cpuinfo; done
