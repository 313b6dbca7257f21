#!/bin/bash
# rmd killed with -9 before it has kept a copy of a state that knows the job, as happens to jobs that are only just running: it knows
# nothing of its capsules until it hears the leader. The job, its head and its front end on that node, goes on.
# limit: 90
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 2
start live n2 --group-size 1 -n 2 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=50000
start flood n2 --group-size 1 -n 2 "$programs/flood" --stop-file="$(stop_file flood)" --pause-usec=20000
running live
must "job flood does not run" q state flood RUNNING 20 >/dev/null
for name in live flood; do see "$name: $(q place $name | tr '\n' ' ')"; done
for ((i = 0; i < $(thorough 4 2); i++)); do
    for n in n2 n3; do
        bed_do stop-rmd $n --kill
        on $n sh -c 'rm -f /var/lib/rmd/state'
        bed_do start-rmd $n
        must "$n does not join again" until_true 20 all_joined
        sleep 0.5
        same "jobs, when rmd on $n was killed" "$(q job live state) $(q job flood state)" "RUNNING RUNNING"
    done
done
flood_ends_whole
release live
finish live
ended_well live hash
same_as_undisturbed live 2 --group-size 1
