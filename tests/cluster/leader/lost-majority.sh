#!/bin/bash
# Two of three voters die: rmctl status says that nothing can be changed, and not how many more may be lost. rm-mpirun says what it waits for, once, if the
# job cannot start or its end cannot be recorded, and nothing while the job runs.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

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

# says NAME TEXT: its rm-mpirun has said so in one line.
says() {
    (($(grep -c "^rm-mpirun: .*$2" "$work/$1.err") == 1))
}

cluster 3 --cores 2
asker=n3
on n3 sh -c 'printf "n1:0\nn2:0\nn3:2\n" >/home/alice/n3.nodes'
for name in runs ends; do
    start $name n3 --availability /home/alice/n3.nodes -n 1 "$programs/spin" --stop-file="$(stop_file $name)"
    running $name
    [[ $(q where $name -1) == n3 ]] || move $name -1 n3
done
start waits n3 -n 64 "$programs/spin" --seconds=60
must "it does not wait" q state waits PENDING 10 >/dev/null
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

release ends
must "rm-mpirun of the job that waits says nothing" until_true 25 says waits 'is PENDING, but no leader can be reached'
must "rm-mpirun of the job that has ended says nothing" until_true 25 says ends 'has ended, but no leader can be reached'
see "$(tail -n 1 "$work/waits.err"); $(tail -n 1 "$work/ends.err")"

bed_do start-rmd n1
bed_do start-rmd n2
must "the nodes are not all back" until_true 20 all_joined
must "the voters are not all back" until_true 20 voters_up
same "how many may be lost, in JSON" "$(of_status 's["quorum"], s["may_lose"]')" "(2, 1)"
must "rm-mpirun of the job that waits does not say that there is a leader" until_true 10 says waits 'there is a leader again'
finish ends
same "the exit code of what ended without a leader" "$rc" 0
must "its rm-mpirun does not say that there is a leader" says ends 'there is a leader again'
must "the job that waits says it again" says waits 'no leader'
on n3 rmctl cancel-job "$(job waits)" >/dev/null
finish waits
release runs
finish runs
same "the exit code of what ran" "$rc" 0
if grep '^rm-mpirun' "$work/runs.err" >"$work/said"; then fail "rm-mpirun of the job that runs: $(<"$work/said")"; fi
