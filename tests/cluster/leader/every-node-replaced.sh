#!/bin/bash
# The node that began the cluster is removed for good, a new one comes in its place, and then every other one is replaced by a new one of its name: a job runs
# through all of it, also when the node of its front end is replaced.
# complete: the simulation replaces voters
# limit: 360
. "${BASH_SOURCE[0]%/*}/../lib.sh"

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

# clean NODE: nothing of a cluster is on its disk. It asks two nodes that are there.
clean() {
    # shellcheck disable=SC2016 # the node's shell expands it
    on "$1" sh -c 'rm -rf /var/lib/rmd && mkdir -m 700 /var/lib/rmd && sed -i "s/^peers = .*/peers = $1 $2/" /etc/rmd/rmd.conf' \
        sh "$(address_beside "$1" n2 n5)" "$(address_beside "$1" n3 n4)"
}
address_beside() {
    if [[ $2 == "$1" ]]; then echo "10.77.0.${3#n}"; else echo "10.77.0.${2#n}"; fi
}

has_nodes() {
    [[ $(on "$asker" rmctl list-nodes --no-header | cut -d ' ' -f 1 | paste -sd ' ') == "$1" ]]
}

cluster 6 --cores 2
asker=n5
# n6 comes later, as one that nobody knows.
must "n6 cannot be drained" on n5 rmctl drain-node n6 --wait --timeout 60 >/dev/null
must "n6 cannot be removed" on n5 rmctl remove-node n6 >/dev/null
must "rmd runs on n6" until_true 10 removed n6
clean n6
node_count=5
must "there are no three voters" until_true 20 voters_up
start live n5 -n 4 --group-size 2 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=30000
running live

# With ranks it is not removed.
victim=$(q place live | cut -d ' ' -f 2 | head -n 1)
if on n5 rmctl remove-node "$victim" >"$work/busy" 2>&1; then fail "$victim is removed under a job"; fi
grep -q "drain it first (rmctl drain-node $victim)" "$work/busy" || fail "$(<"$work/busy")"

# replaced NODE BY: it is removed, and BY, where that has another name, is new; else another machine with its name.
replaced() {
    local node=$1 by=$2 begun
    on "$asker" rmctl drain-node "$node" --wait --timeout 60 >/dev/null || fail "$node cannot be drained"
    must "$node cannot be removed" on "$asker" rmctl remove-node "$node" >"$work/removed"
    same "what rmctl says" "$(<"$work/removed")" "$node removed"
    must "rmd runs on $node" until_true 10 removed "$node"
    if [[ $node == n1 ]]; then
        must "the voters are not right" until_true 20 three_without n1
        must "n1 is still among the nodes" until_true 5 has_nodes "n2 n3 n4 n5"
        on "$asker" rmctl show-node n1 >"$work/gone" 2>&1 && fail "n1 is still known"
    fi
    if [[ $by == "$node" ]]; then clean "$node"; else bed_do power-off "$node"; fi
    begun=$EPOCHREALTIME
    bed_do start-rmd "$by"
    must "the new $by does not join" back "$by" "$begun"
    must "not all are there" until_true 20 all_joined
    same "the job" "$(q job live state | sed 's/MIGRATING\|FOLDED/RUNNING/')" RUNNING
}

nodes() {
    printf 'n%d\n' 2 3 4 5 6
}
replaced n1 n6
asker=n6
for node in n2 n3 n4 n5; do replaced "$node" "$node"; done
same "the nodes" "$(on n6 rmctl list-nodes --no-header | cut -d ' ' -f 1 | paste -sd ' ')" "n2 n3 n4 n5 n6"
must "the voters are not right in the end" until_true 20 three_without n1
release live
finish live
ended_well live hash
same_as_undisturbed live 4 --group-size 2
