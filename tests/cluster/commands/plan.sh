#!/bin/bash
# rmctl plan shows what would be done, why, and what each policy's plan costs; it does nothing, whoever asks for whatever policy.
# limit: 90
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# Jobs, where they are, what has moved, and all that a policy sees but memory, which changes by itself.
state_of_all() {
    rmctl list-jobs --all --json
    rmctl list-moves --json
    rmctl snapshot >"$work/snapshot.json"
    on n1 python3 -c 'import json, sys
def kept(v):
    if isinstance(v, dict):
        return {k: kept(w) for k, w in v.items() if "memory" not in k}
    return [kept(w) for w in v] if isinstance(v, list) else v
print(json.dumps(kept(json.loads(sys.argv[1])), indent=1))' "$(<"$work/snapshot.json")"
}

# said EXPRESSION: what python makes of it, `plan` being the answer.
said() {
    on n1 python3 -c 'import json, sys; plan = json.loads(sys.argv[1]); print(eval(sys.argv[2]))' "$(<"$work/plan.json")" "$1"
}

# A move is to pay, however long it took, and every policy has the time to answer.
cluster 2 --cores 2 --set "sched.horizon = 1d" --set "sched.traffic_interval = 0" --set "sched.budget = 10s"
start live n1 --group-size 1 -n 2 "$programs/spin" --stop-file="$(stop_file live)"
running live
start waiting n1 -n 4 "$programs/ordered" --iterations=5
must "it does not wait" q state waiting PENDING 30 >/dev/null
# Of moves that a policy wants and that are worth nothing it says so.
rmctl plan --policy spread >"$work/plan"
grep -qE "Would do: +nothing" "$work/plan" || fail "plan --policy spread would do something: $(<"$work/plan")"
see "plan --policy spread: $(grep -E "Runs: " "$work/plan")"
grep -qE "Runs: +$(job live): 1 of its groups stays: another node is worth less to it than the move costs" "$work/plan" ||
    fail "plan --policy spread does not say why: $(<"$work/plan")"
# Where somebody wants it: the scheduler would rather have both groups on one node, and leaves them for a minute.
together=$(q where live 1)
apart=$(a_node_but "$together")
move_on_request() {
    moved=$EPOCHREALTIME
    move live 1 "$apart"
    must "it does not come to rest" q settled 10 >/dev/null
    state_of_all >"$work/before-plan"
}
unchanged() {
    state_of_all >"$work/after-plan"
    diff "$work/before-plan" "$work/after-plan" || fail "a plan has changed something"
}
# Before a plan the group is moved there once more, where that minute is nearly over.
on_request() {
    if (($(msec_since "$moved") >= 40000)); then
        unchanged
        move live 1 "$together"
        move_on_request
    fi
}
move_on_request

# Without traffic treematch has no reason to move anything.
while IFS='|' read -r policy does; do
    on_request
    # shellcheck disable=SC2086 # none or two arguments
    on n2 rmctl plan ${policy:+--policy $policy} >"$work/plan" 2>&1 || fail "plan $policy: $(<"$work/plan")"
    grep -qE "$does" "$work/plan" || fail "plan $policy does not say '$does': $(<"$work/plan")"
    for text in "Waits: .*for 2 more cores" "POLICY +COST" greedy distrib treematch fewest-nodes; do
        grep -qE "$text" "$work/plan" || fail "plan $policy does not say '$text': $(<"$work/plan")"
    done
    see "plan${policy:+ --policy $policy}: $(grep -E "$does" "$work/plan")"
done <<END
|move +$(job live) .*a better place.*not now: the job was moved on request
distrib|move +$(job live) .*a better place.*not now: the job was moved on request
fewest-nodes|move +$(job live) .*a better place.*not now: the job was moved on request
treematch|Would do: +nothing
END
on_request
rmctl plan --policy distrib --json >"$work/plan.json" || fail "plan --json: $(head -c 300 "$work/plan.json")"
see "$(said '[(a["policy"], a.get("cost")) for a in plan["alternatives"]]')"
same "its version" "$(said 'plan["version"]')" 1
same "its policy" "$(said 'plan["policy"]')" distrib
same "its action" "$(said '[[a["action"], a["job"], a["need"]] for a in plan["actions"]]')" "[['move', '$(job live)', False]]"
[[ $(said '[a["held"] for a in plan["actions"]]') == *"moved on request"* ]] || fail "what holds the move: $(said 'plan["actions"]')"
same "who waits" "$(said '[n["job"] for n in plan["notes"] if n["waits"]]')" "['$(job waiting)']"
same "the cheapest is the one that proves it" \
    "$(said 'min(a["cost"] for a in plan["alternatives"]) == plan["cost"] and plan["proven"]')" True
if rmctl plan --policy nobody >"$work/nobody" 2>&1; then fail "a policy that does not exist makes plans"; fi
grep -q "nobody" "$work/nobody" || fail "it does not say which policy: $(<"$work/nobody")"
see "one that is not there: $(<"$work/nobody")"

unchanged
release live
finish live
finish waiting
ended_well waiting hash
