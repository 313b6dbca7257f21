#!/bin/bash
# More nodes than a machine's table of neighbours has room for if each is connected to each: they join, and all that goes between two
# nodes that do not lead works as between any: output and input, moves, what one asks the other, and its loss.
# complete: the simulation has large clusters
# limit: 240
# load: 2
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 36 --cores 1 --set cluster.node_timeout=4s
see "$(tail -n 1 "$work/up.err")"
same "nodes that are up" "$(q up)" 36

# connections NODE: to and from other nodes' rmd.
connections() {
    on "$1" ss --no-header --tcp --numeric state established '( sport = :7700 or dport = :7700 )' | wc -l
}
only_to_the_leader() {
    local node
    for node in "$@"; do (($(connections "$node") == 1)) || return 1; done
}
# Those through which they have joined are not needed any more after half a minute; voters stay connected to each other.
must "followers are connected to others than the leader" until_true 45 only_to_the_leader n4 n17 n36
same "what the last node shows of the first" "$(on n36 rmctl list-nodes --no-header | grep -c ' IDLE ')" 36

start live n36 --group-size 1 -n 3 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=50000
running live
move live -1 n31
move live 0 n32
move live 0 n33
move live 1 n34
see "the head is on $(q where live -1), groups on $(q where live 0) and $(q where live 1), the front end on n36"
# The nodes that nothing is on any more, and nothing is asked of, need no connection.
must "n32 does not end its connections" until_true 60 only_to_the_leader n32
# Nor has one that had nothing to do with it, once those of the beginning are idle.
must "n17, which had nothing to do with it, has $(connections n17) connections" until_true 60 only_to_the_leader n17
(($(connections n31) >= 4)) || fail "n31, with the head, has only $(connections n31) connections"
# Who waits for a node hears of the end of its rmd, however long nothing was said.
bed_do restart-rmd n33 --kill
bed_do restart-rmd n31 --kill
must "not all are back" until_true 20 all_joined
as alice n17 rmctl show-job "$(job live)" >"$work/shown" || fail "show-job on n17: $(cat "$work/shown")"
move live 1 n17
release live
finish live
ended_well live hash
same_as_undisturbed live 3 --group-size 1

# Between nodes that have not spoken for long, and of a job that is cancelled from a third one.
start mute n29 --group-size 1 -n 2 "$programs/spin" --seconds=300
running mute
move mute -1 n28
must "cancel-job on n27" as alice n27 rmctl cancel-job "$(job mute)" >"$work/cancel"
finish mute 30
((rc != 0)) || fail "a job that was cancelled ends with 0"

down() {
    rmctl list-nodes --no-header | grep -qE "^ *$1 +DOWN"
}
begun=$EPOCHREALTIME
bed_do power-off n30
must "the loss of n30 is not found" until_true 30 down n30
see "the loss of n30 found after $(msec_since "$begun") ms"
bed_do power-on n30
must "n30 does not come back" until_true 30 all_joined
