#!/bin/bash
# --time ends a job that takes longer, with TIMEOUT; options from the environment hold, and a flag beats them.
# limit: 60
. "${BASH_SOURCE[0]%/*}/lib.sh"

cluster 2 --cores 2
begun=$EPOCHREALTIME
run long n1 --time 3 -n 2 "$programs/spin" --seconds=50
see "--time 3: exit code $rc after $(msec_since "$begun") ms, $(q job long state): $(tail -n 1 "$work/long.err")"
same "its state" "$(q job long state)" TIMEOUT
((rc != 0)) || fail "exit code 0"
as alice n1 env RM_GROUP_SIZE=1 RM_JOB_NAME=from-environment rm-mpirun -n 2 "$programs/surroundings" >"$work/env.out" 2>"$work/env.err" ||
    fail "RM_GROUP_SIZE=1: $(<"$work/env.err")"
same "groups by RM_GROUP_SIZE=1" "$(grep hostname "$work/env.out" | cut -d = -f 2 | sort -u | wc -l)" 2
same "the name by RM_JOB_NAME" "$(q job from-environment state)" COMPLETED
as alice n1 env RM_GROUP_SIZE=1 rm-mpirun --group-size 2 -n 2 "$programs/surroundings" >"$work/flag.out" 2>"$work/env.err"
same "groups when a flag says 2" "$(grep hostname "$work/flag.out" | cut -d = -f 2 | sort -u | wc -l)" 1
