#!/bin/bash
# A user neither sees nor touches what belongs to another; an administrator may; jobs of both run at once, each as its owner.
# limit: 90
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 4
start hers n1 --group-size 1 -n 2 "$programs/spin" --stop-file="$(stop_file hers)" --secret-argument
running hers
user=bob
start his n2 --group-size 1 -n 2 "$programs/surroundings" HOME USER
finish his
same "bob's exit code" "$rc" 0
same "bob's ranks run as" "$(grep -c 'uid=1001' "$work/his.out")" 4
user=alice
number=$(job hers)
for node in n1 n2; do
    for command in "attach-job $number" "cancel-job $number" "migrate-job $number --group 0 --to n2"; do
        # shellcheck disable=SC2086 # several arguments
        as bob "$node" timeout 20 rmctl $command >"$work/refused" 2>&1
        status=$?
        ((status == 1)) || fail "bob on $node: $command: exit $status: $(<"$work/refused")"
        see "bob on $node: $command: $(head -n 1 "$work/refused")"
    done
done
as bob n1 rmctl drain-node n2 --reason mine >"$work/refused" 2>&1 && fail "bob may drain a node"
see "bob: drain-node: $(head -n 1 "$work/refused")"
for command in "show-job $number" "list-jobs --all" "show-job $number --json" "list-jobs --json" "snapshot" "events"; do
    # shellcheck disable=SC2086 # several arguments
    as bob n2 rmctl $command >"$work/seen" 2>&1
    grep -qE 'secret-argument|hers|spin' "$work/seen" && fail "bob sees what is alice's in $command: $(grep -m 1 -E 'secret-argument|hers|spin' "$work/seen")"
done
see "bob sees neither name nor arguments"
# From inside his own node, as himself.
as bob n1 sh -c 'ls /run/rmd/capsules /var/lib/rmd /var/lib/rmd/spool' >"$work/files" 2>/dev/null
[[ ! -s $work/files ]] || fail "bob can list: $(<"$work/files")"
pid=$(on n1 pgrep -o -x spin)
[[ ! $pid ]] || as bob n1 sh -c "kill $pid" 2>/dev/null && [[ $pid ]] && fail "bob can kill it"
same "the job, after all this" "$(q job hers state)" RUNNING
must "root may cancel it" rmctl cancel-job "$number" >/dev/null
finish hers 20
same "its state" "$(q job hers state)" CANCELLED
start own n1 -n 1 "$programs/spin"
running own
must "its owner may cancel it, from another node" as alice n2 rmctl cancel-job "$(job own)" >/dev/null
finish own 20
see "cancelled by its owner: exit code $rc, $(q job own state)"
same "its state" "$(q job own state)" CANCELLED
