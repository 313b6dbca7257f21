#!/bin/sh
# treematch through the real rm-policy-run. Arguments: rm-policy-run, rm-plugin-host, policies.
set -u
run=$1 host=$2 policies=$3
failed=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# snapshot NAME PARAMS JOB: two nodes of two packages with two cores each
snapshot() {
        cat >"$work/$1.json" <<END
{"version":1,"params":{$2},"nodes":[
{"name":"n1","cores":4,"penalty":1,"topology":"package:2 core:2"},
{"name":"n2","cores":4,"penalty":1,"topology":"package:2 core:2"}],"jobs":[{"name":"j1","ranks":8,"priority":1,$3}]}
END
}

# check NAME EXPECTED-TEXT ARGUMENTS..: the text must be a part of what is printed
check() {
        name=$1 text=$2
        shift 2
        out=$("$run" --policy-host "$host" --policy-dir "$policies" --policy treematch "$@" 2>&1) || {
                echo "FAILED $name: '$out'"
                failed=1
        }
        case "$out" in
        *"$text"*) ;;
        *)
                echo "FAILED $name: '$out' does not contain '$text'"
                failed=1
                ;;
        esac
}

pairs='"traffic":[[0,4,100],[1,5,100],[2,6,100],[3,7,100]]'
placed='"move_cost":5,"placed":[{"node":"n1","ranks":4},{"node":"n2","ranks":4}]'
snapshot silent '' '"group_size":1'
snapshot fresh '' "$pairs"
snapshot groups '' "\"group_size\":4,$pairs"
snapshot still '' "$pairs,$placed"
snapshot budget '"move_budget":4' "$pairs,$placed"
check silent '"mapping":{"j1":[[0,"n1",0],[1,"n1",1],[2,"n1",2],[3,"n1",3],[4,"n2",0],[5,"n2",1],[6,"n2",2],[7,"n2",3]]}' \
        --json "$work/silent.json"
check 'silent, for people' 'by slot, no traffic is known' "$work/silent.json"
check fresh '"traffic":{"hop_bytes":800,"inter_node_bytes":0,"by_slot":{"hop_bytes":2400,"inter_node_bytes":400}}' --json "$work/fresh.json"
check 'fresh, for people' 'traffic  bytes times hops 800, by slot 2400 (33.3%)
         bytes between nodes 0, by slot 400 (0.0%)' "$work/fresh.json"
check 'fresh, its cores' 'NODE, AND THE RANKS ON ITS CORES
n1  A2 A6 | A0 A4
n2  A1 A5 | A3 A7
' "$work/fresh.json"
check groups '"placement":[{"job":"j1","node":"n1","ranks":4},{"job":"j1","node":"n2","ranks":4}]' --json "$work/groups.json"
check still '"cost":28,' --json "$work/still.json"
check budget '"cost":48,' --json "$work/budget.json"
check 'the budget is worth it' '"traffic":{"hop_bytes":800,"inter_node_bytes":0,' --json "$work/budget.json"
exit $failed
