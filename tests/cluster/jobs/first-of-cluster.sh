#!/bin/bash
# Jobs that may be started again are submitted as soon as a cluster has begun, when most nodes have no lease yet: they run all the same, once.
# limit: 60
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 4
# As on the first day: the tests' own preparations take longer than the first lease.
for n in $(nodes); do
    bed_do stop-rmd "$n" --kill
    on "$n" sh -c 'rm -rf /var/lib/rmd/*'
done
for n in $(nodes); do bed_do start-rmd "$n"; done
must "the nodes do not join" until_true 20 all_joined
for n in $(nodes); do
    start "early-$n" "$n" --on-node-loss restart --group-size 1 -n 4 sh -c 'echo "ran $OMPI_COMM_WORLD_RANK"'
done
for n in $(nodes); do
    finish "early-$n" 30
    ended_well "early-$n" ran
    same "what job early-$n has printed" "$(sort "$work/early-$n.out" | tr '\n' ,)" "ran 0,ran 1,ran 2,ran 3,"
done
see "3 jobs that came before the lease have run"
