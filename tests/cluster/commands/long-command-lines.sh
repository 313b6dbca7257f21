#!/bin/bash
# Jobs with command lines of 900 kB, more together than one answer holds: all are listed, cut and marked; one alone is shown too.
# limit: 90
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 2
for ((i = 0; i < 6; i++)); do
    last=$(as alice n2 "$programs/badclient" job 7 128000) || fail "a job cannot be submitted: $last"
done
see "the last of six jobs: $last"
[[ $last == [0-9]* ]] || fail "job refused: $last"
for node in n1 n2; do
    on "$node" timeout 10 rmctl list-jobs >"$work/list" 2>&1 || fail "list-jobs on $node: exit $?: $(head -n 1 "$work/list")"
    same "jobs listed on $node" "$(grep -c raw "$work/list")" 6
    on "$node" timeout 10 rmctl list-jobs --json >"$work/json" 2>&1 || fail "list-jobs --json on $node: $(head -c 200 "$work/json")"
    same "marked as cut on $node" "$(grep -c '"argv_cut": true' "$work/json")" 6
    (($(stat -c %s "$work/json") < 100000)) || fail "list-jobs --json is $(stat -c %s "$work/json") bytes long"
done
on n1 timeout 10 rmctl show-job "$last" --json >"$work/json" 2>&1 || fail "show-job: exit $?: $(head -c 200 "$work/json")"
grep -q '"argv_cut": true' "$work/json" || fail "show-job does not tell that the command line is cut"
as alice n2 timeout 10 rmctl show-job 1 2 3 4 5 6 >"$work/all" 2>&1 || fail "show-job of all: exit $?: $(head -c 200 "$work/all")"
same "jobs shown at once" "$(grep -c '^Job:' "$work/all")" 6
# More jobs than a page, each with something to it.
see "listed everywhere, cut; shown alone"
as alice n2 sh -c "for i in \$(seq 60); do $programs/badclient job 3 5000 || exit; done" >/dev/null || fail "jobs cannot be submitted"
on n2 timeout 10 rmctl list-jobs --json >"$work/json" 2>&1 || fail "list-jobs of 66: $(head -c 200 "$work/json")"
same "jobs listed of 66" "$(grep -c '"token"' "$work/json")" 66
same "each once" "$(sed -n 's/^      "id": //p' "$work/json" | sort -u | wc -l)" 66
see "66 jobs listed, each once"
# shellcheck disable=SC2046 # several jobs
on n1 rmctl cancel-job $(seq 1 66) >/dev/null || fail "they cannot be cancelled"
