#!/bin/bash
# Spare ranks (--spare-ranks), and parked ones beside active ones (--max-ranks), hold no core until one of them replaces a rank, or the job grows: another job can use it; one that has become a rank gets one where there is one; and
# groups of nothing but spare ranks leave drained nodes, come back with a checkpoint, and count for max_capsules_per_core.
# limit: 200
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 2 --set job.max_capsules_per_core=3 --set sched.resize_interval=0
until_true 20 as alice n1 rm-mpirun --on-rank-loss continue -n 1 true 2>"$work/level" || fail "no job may go on without ranks: $(<"$work/level")"

# cores_are WHAT TOTAL: so many cores of all nodes are held, as list-nodes says.
held() {
    rmctl list-nodes --json | python3 -c 'import json, sys; print(sum(n["ranks"] for n in json.load(sys.stdin)["nodes"]))'
}
holds() {
    [[ $(held) == "$1" ]]
}
cores_are() {
    must "$1: $(held) cores are held, not $2" until_true 30 holds "$2"
}
lose() {
    kill_processes replaced "$(job "$1")" "$2"
    must "process $2 is not replaced: $(<"$work/$1.err")" until_true 30 grep -Eq "rank $2 .*replaces it.* was lost" "$work/$1.err"
}
# begin NAME RANKS SPARES ARG...
begin() {
    start "$1" n1 --group-size 2 -n "$2" --on-rank-loss "continue:critical=0-$(($2 - 1))" --spare-ranks "$3" "${@:4}" "$programs/replaced" 100 30000 --last-file="/home/alice/$1.last"
    must "$1 does not run: $(rmctl list-jobs)" until_true 60 grep -q '^running' "$work/$1.out"
}
ends() {
    on n1 touch "/home/alice/$1.last"
    finish "$1" 100
    same "$1: its exit code" "$rc" 0
}
folded() {
    [[ $(q job "$1" state) == "$2" ]]
}
any_folded() {
    folded grows FOLDED || folded beside FOLDED
}

# Six cores: four ranks, four spare ones, and two ranks of another job.
begin calm 4 4
cores_are "four ranks and four spare ones" 4
start beside n1 --group-size 2 -n 2 "$programs/ordered" --stop-file="$(stop_file beside)"
running beside
cores_are "with another job beside it" 6
rmctl show-job "$(job calm)" >"$work/show"
grep -q '^Critical ranks: *0-3 (4 spare; 2 parked groups)$' "$work/show" || fail "show-job says: $(<"$work/show")"

# A spare rank is there at once, without a core; it has one as soon as that is free.
lose calm 1
cores_are "a spare rank has become a rank" 7
must "no ranks share cores: $(rmctl list-jobs)" until_true 30 folded calm FOLDED
release beside
finish beside
must "its ranks share cores though there are some: $(rmctl list-jobs)" until_true 60 folded calm RUNNING
cores_are "it has cores of its own" 5
ends calm

# A group has ranks of the program and spare ones: only the former have cores. One of nothing but spare ones leaves a node that is drained.
begin mixed 3 3
cores_are "three ranks and a spare one in their group" 3
node=$(q where mixed 2)
must "the drain" rmctl drain-node "$node" --reason test --wait --timeout 60 >/dev/null
[[ $(q where mixed 2) != "$node" ]] || fail "the spare group has not left $node"
must "resume-node" rmctl resume-node "$node" >/dev/null
cores_are "after a drain" 3
lose mixed 0
cores_are "the spare rank of a group of both kinds has replaced one" 4
must "checkpoint-job --stop" as alice n1 rmctl checkpoint-job --stop "$(job mixed)" >/dev/null
must "it is not held" q state mixed PENDING 30 >/dev/null
must "restart-job" as alice n1 rmctl restart-job "$(job mixed)" >/dev/null
must "it does not run again" q state mixed RUNNING 60 >/dev/null
cores_are "after a restart, one of the spare ranks is a rank" 4
ends mixed

# Ranks that wait for their job to grow hold none either, beside one that computes. One that is to compute has one as soon as there is one.
start grows n1 --group-size 2 -n 3 --max-ranks 4 "$programs/resizes" --stop-file="$(stop_file grows)"
running grows
cores_are "three active ranks and a parked one in their group" 3
start beside n1 --group-size 1 -n 3 "$programs/ordered" --stop-file="$(stop_file beside)"
running beside
cores_are "with another job beside it" 6
same "the state of grows" "$(q job grows state)" RUNNING
must "the program of grows does not ask" until_true 30 listens grows
must "resize-job" rmctl resize-job "$(job grows)" 4 --timeout 60 >/dev/null
cores_are "the fourth rank computes" 7
must "no ranks share cores: $(rmctl list-jobs)" until_true 30 any_folded
release beside
finish beside
must "its ranks share cores though there are some: $(rmctl list-jobs)" until_true 60 folded grows RUNNING
cores_are "it has cores of its own" 4
must "resize-job" rmctl resize-job "$(job grows)" 3 --timeout 60 >/dev/null
cores_are "the fourth rank is parked again" 3
release grows
finish grows
same "grows: its exit code" "$rc" 0

# They are capsules of root's all the same.
status=0
as alice n1 rm-mpirun --group-size 1 -n 2 --on-rank-loss continue:critical=0 --spare-ranks 20 true >"$work/refused" 2>&1 || status=$?
same "the exit status with too many spare groups" "$status" 1
grep -q -e '--spare-ranks: 22 ranks in groups of 1 are 23 capsules with the head, and all nodes together may have 18' "$work/refused" || fail "too many spare groups: $(<"$work/refused")"
cores_are "nothing runs" 0
