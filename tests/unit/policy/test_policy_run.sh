#!/bin/sh
# rm-policy-run on saved snapshots: what it prints, and how it fails. Arguments: rm-policy-run, rm-policy-host, policies, data.
set -u
run=$1 host=$2 policies=$3 data=$4

call() {
        "$run" --policy-host "$host" --policy-dir "$policies" "$@" 2>&1
}

# shellcheck source=SCRIPTDIR/../check.sh
. "${0%/*}/../check.sh"

golden=$(grep -v '^time' "$data/two-nodes.plan")
plan=$(call "$data/two-nodes.json" | grep -v '^time')
[ "$plan" = "$golden" ] || {
        echo "FAILED picture: $plan"
        failed=1
}
check json 0 '"placement":[{"job":"j1","node":"n2","ranks":8},{"job":"j2","node":"n1","ranks":7}],"waiting":["j3"],"traffic":{' \
        --json --policy greedy "$data/two-nodes.json"
check proven 0 '"cost":152,"bound":152,"proven":true' --json --time 5 - < "$data/two-nodes.json"
check running 0 '"placement":[{"job":"1","node":"n2","ranks":4},{"job":"3","node":"n3","ranks":2}],"waiting":["2"]' --json "$data/running.json"
check 'no file' 1 'rm-policy-run: /nowhere: No such file or directory' /nowhere
check 'no policy' 1 'has neither nix.so nor nix.mod' --policy nix "$data/two-nodes.json"
check 'not a snapshot' 1 'snapshot: not valid JSON' "$0"
check 'no argument' 2 'which snapshot?'
check 'bad time' 2 "'soon' is no number" --time soon "$data/two-nodes.json"
exit $failed
