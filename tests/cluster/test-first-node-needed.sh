#!/bin/bash
# The node that began the cluster is removed for good, then every other one is replaced by a new one: a job runs through all of it.
# limit: 240
. "${BASH_SOURCE[0]%/*}/lib.sh"


# three_without NODE: there are three voters, all up, and it is none of them.
three_without() {
    local text
    text=$(on "$asker" rmctl status | sed -n 's/^Voters: *//p')
    see "without $1: $text"
    [[ $text != *"$1"* && $text == *"; quorum 2, 1 may be lost" ]]
}

removed() {
    ! rmd_runs "$1"
}

cluster 5 --cores 2
asker=n5
must "there are no three voters" until_true 20 eval 'on n5 rmctl status | grep -q "quorum 2, 1 may be lost"'
start live n5 -n 4 --group-size 2 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=30000
running live

# With ranks it is not removed.
victim=$(q place live | cut -d ' ' -f 2 | head -n 1)
if on n5 rmctl remove-node "$victim" >"$work/busy" 2>&1; then fail "$victim is removed under a job"; fi
grep -q "drain it first (rmctl drain-node $victim)" "$work/busy" || fail "$(<"$work/busy")"

for node in n1 n2 n3 n4; do
    on n5 rmctl drain-node "$node" --wait --timeout 60 >/dev/null || fail "$node cannot be drained"
    must "$node cannot be removed" on n5 rmctl remove-node "$node" >"$work/removed"
    same "what rmctl says" "$(<"$work/removed")" "$node removed"
    must "rmd runs on $node" until_true 10 removed "$node"
    if [[ $node == n1 ]]; then
        must "the voters are not right" until_true 20 three_without n1
        same "the nodes" "$(on n5 rmctl list-nodes --no-header | cut -d ' ' -f 1 | paste -sd ' ')" "n2 n3 n4 n5"
        on n5 rmctl show-node n1 >"$work/gone" 2>&1 && fail "n1 is still known"
    fi
    # Another machine comes under its name: nothing of the one before is on its disk.
    on "$node" sh -c 'rm -rf /var/lib/rmd && mkdir -m 700 /var/lib/rmd && sed -i "s/^bootstrap = yes/peers = 10.77.0.5 10.77.0.2/" /etc/rmd/rmd.conf'
    bed_do start-rmd "$node"
    must "the new $node does not join" until_true 20 all_joined
    same "the job" "$(q job live state | sed 's/MIGRATING\|FOLDED/RUNNING/')" RUNNING
done
must "there are no three voters in the end" until_true 20 eval 'on n5 rmctl status | grep -q "quorum 2, 1 may be lost"'
release live
finish live
ended_well live hash
same_as_undisturbed live 4 --group-size 2
