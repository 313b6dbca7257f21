#!/bin/bash
# A move that is refused while the destination still makes its copy, over and over: no copy is left.
# limit: 90
. "${BASH_SOURCE[0]%/*}/lib.sh"

cluster 2 --cores 8
start holds n1 --group-size 1 -n 2 "$programs/holds" io_uring --drop-file=/home/alice/drop --stop-file="$(stop_file holds)"
running holds
to=$(a_node_but "$(q where holds 0)")
for ((i = 0; i < $(thorough 200 60); i++)); do
    migrate holds 0 "$to" --mode stop >/dev/null 2>&1 || true
done
same "where the group is" "$(q where holds 0)" "$(a_node_but "$to")"
copies() {
    on "$to" sh -c 'ls /run/rmd/capsules | grep -c j1.g0'
}
no_copies() {
    [[ $(copies) == 0 ]]
}
must "copies are left: $(copies)" until_true 10 no_copies
see "$(q moves holds | wc -l) moves were refused"
on n1 touch /home/alice/drop
release holds
finish holds
ended_well holds good
