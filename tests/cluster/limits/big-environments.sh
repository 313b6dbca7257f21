#!/bin/bash
# A user submits many jobs with environments of 960 kB each. A node whose rmd then restarts must be back in the cluster within seconds, and neither
# rmd may fill its memory, or its disk, with what was sent.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

count=77
cluster 2 --cores 2
must "the nodes cannot be drained" on n1 rmctl drain-node n1 n2 --reason "so that jobs wait"

# rss NODE: of its rmd, in MiB.
rss() {
    # shellcheck disable=SC2016 # the node's shell expands it
    on "$1" sh -c 'read -r pid </run/testbed-rmd.pid; awk "/^VmRSS/ { print int(\$2 / 1024) }" /proc/$pid/status'
}
# A node without a copy of the state has it again when its own rmd shows all jobs.
knows_all() {
    (($(on "$1" rmctl list-jobs --no-header 2>/dev/null | wc -l) == count - refused))
}

see "before: rmd has $(rss n1) MiB on n1, $(rss n2) MiB on n2"
as alice n1 bash -c 'x=$(head -c 120000 /dev/zero | tr "\0" x); export B=$x C=$x D=$x E=$x F=$x G=$x H=$x
    for ((i = 0; i < $1; i++)); do A=$i$x rm-mpirun --job-name "big$i" -n 1 --detach true || echo refused; done' bash "$count" >"$work/submitted" 2>&1
refused=$(grep -c '^refused' "$work/submitted")
see "$((count - refused)) jobs of 960 kB wait, $refused were refused: $(grep -v '^refused' "$work/submitted" | sort | uniq -c | sort -n | tail -n 1)"
see "with them: rmd has $(rss n1) MiB on n1, $(rss n2) MiB on n2"

begun=$EPOCHREALTIME
bed_do stop-rmd n2
# It has missed more than the last commands.
on n2 rm -f /var/lib/rmd/state
bed_do start-rmd n2 >/dev/null 2>&1
must "n2 does not have the state within 15 s: it connected $(on n1 grep -c 'n2: connection lost' /var/log/rmd.log) times" until_true 15 knows_all n2
must "n2 is not in the cluster" until_true 15 all_joined
see "n2 was back after $(msec_since "$begun") ms; rmd has $(rss n1) MiB on n1, $(rss n2) MiB on n2"
(($(on n1 grep -c 'n2: connection lost' /var/log/rmd.log) < 4)) || fail "n2 had to connect again and again"
(($(rss n1) < 100 && $(rss n2) < 100)) || fail "rmd holds what the user sent: $(rss n1) MiB on n1, $(rss n2) MiB on n2"

kept=$(on n1 du -sk /var/lib/rmd | cut -f 1)
see "n1 keeps $kept KiB on its disk"
((kept < 60000)) || fail "n1 keeps $kept KiB on its disk"

as alice n1 sh -c 'for j in $(rmctl list-jobs --no-header | awk "{ print \$1 }"); do rmctl cancel-job $j; done' >/dev/null 2>&1
rmctl resume-node n1 n2
run after n2 -n 2 "$programs/ordered" --iterations=20
ended_well after hash
