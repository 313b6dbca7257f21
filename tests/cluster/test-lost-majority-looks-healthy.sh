#!/bin/bash
# Two of three voters die: rmctl status says that nothing can be changed, and not how many more may be lost.
# limit: 90
. "${BASH_SOURCE[0]%/*}/lib.sh"

voters() {
    on n3 rmctl status | sed -n 's/^Voters: *//p'
}
# of_status EXPRESSION: of the fields of rmctl status --json, which are in s.
of_status() {
    on n3 sh -c 'rmctl status --json | python3 -c "import json, sys; s = json.load(sys.stdin); print(eval(sys.argv[1]))" "$1"' sh "$1"
}
no_leader() {
    [[ $(of_status 's["leader"]') == "" ]]
}

cluster 3 --cores 2
asker=n3
must "there are no three voters" until_true 20 voters_up
same "how many may be lost, in JSON" "$(of_status 's["quorum"], s["may_lose"]')" "(2, 1)"

bed_do stop-rmd n1 --kill
bed_do stop-rmd n2 --kill
must "n3 still has a leader" until_true 10 no_leader
see "without a leader: $(voters)"
same "the voters" "$(voters | sed 's/.*; //')" "quorum 2, no leader: nothing can be changed"
same "how many may be lost, in JSON" "$(of_status 's["quorum"], s["may_lose"]')" "(2, None)"
on n3 rmctl status | grep '^Warning:' >"$work/warnings"
grep -q 'no leader can be reached' "$work/warnings" || fail "no warning says that there is no leader"
if grep -q 'voter' "$work/warnings"; then fail "it warns of voters: $(<"$work/warnings")"; fi

bed_do start-rmd n1
bed_do start-rmd n2
must "the nodes are not all back" until_true 20 all_joined
must "the voters are not all back" until_true 20 voters_up
same "how many may be lost, in JSON" "$(of_status 's["quorum"], s["may_lose"]')" "(2, 1)"
