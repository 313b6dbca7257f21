#!/bin/bash
# The disk under the leader's log is full: jobs run on, what cannot be kept is refused with a reason, jobs at once and small changes when
# nothing that was made ahead is left; rmd neither dies nor spoils its log. With room again all goes on, also after a restart.
# complete: leader/full-disk has the main way, and the simulation disks that are full
# limit: 240
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 2 --set cluster.voters=1
bed_do stop-rmd n1
# shellcheck disable=SC2016 # the node's shell expands it
on n1 sh -c 'd=/var/lib/rmd; cp -a $d $d.copy; mount -t tmpfs -o size=16m tmpfs $d; cp -a $d.copy/. $d/; rm -r $d.copy'
bed_do start-rmd n1
must "n1 does not join again" until_true 20 all_joined
must "n3 cannot be drained" rmctl drain-node n3 --reason spare
start live n2 --group-size 1 -n 2 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=30000
running live
on n1 sh -c 'dd if=/dev/zero of=/var/lib/rmd/fill bs=64k 2>/dev/null'

# submit BYTES: a job with an environment of six times so much.
submit() {
    # shellcheck disable=SC2016 # the node's shell expands it
    as alice n2 bash -c 'x=$(head -c "$1" /dev/zero | tr "\0" x); A=$x B=$x C=$x D=$x E=$x F=$x; export A B C D E F
        exec rm-mpirun -n 2 --detach true' bash "$1"
}
if submit 100000 >"$work/large" 2>&1; then fail "a large job is taken: $(<"$work/large")"; fi
grep -q "disk is full" "$work/large" || fail "why it is not taken: $(<"$work/large")"
see "a large job: $(<"$work/large")"

if submit 1000 >"$work/small" 2>&1; then fail "a small job is taken: $(<"$work/small")"; fi
grep -q "disk is full" "$work/small" || fail "why a small job is not taken: $(<"$work/small")"
must "status does not say that no jobs are taken" until_true 20 eval 'rmctl status | grep -q "is full: running jobs go on, no new ones are taken"'

# Small changes until nothing is left.
# shellcheck disable=SC2016 # the node's shell expands it
on n1 bash -c 'change() {
        for ((i = 0; i < 3000; i++)); do said=$(rmctl drain-node n3 --update --reason "$1 $i $2" 2>&1) || break; done
        echo "after $i small changes: $said"
    }
    for k in 1 2 3 4; do change "$k" "$1" & done; wait' bash "$(printf 'x%.0s' {1..240})" >"$work/change"
see "$(<"$work/change")"
grep -q "disk is full" "$work/change" || fail "small changes are not refused, or for another reason: $(<"$work/change")"
must "status does not say so" until_true 20 eval 'rmctl status | grep -q "is full: running jobs go on, nothing can be changed"'
same "the job" "$(q job live state)" RUNNING
see "$(on n1 grep -c "disk is full" /var/log/rmd.log) lines of the log say so"
(($(on n1 grep -c "disk is full" /var/log/rmd.log) < 5)) || fail "the log is filled with it"

on n1 rm /var/lib/rmd/fill
must "with room again nothing can be changed" until_true 30 eval 'submit 4000 >"$work/small" 2>&1'
must "a large job is refused though there is room" submit 100000 >"$work/large" 2>&1
bed_do restart-rmd n1 --kill
must "n1 does not come back" until_true 20 all_joined
see "there is room, and rmd was killed: jobs $(q job live state)"
release live
finish live
ended_well live hash
same_as_undisturbed live 2 --group-size 1
# Output that nobody has fetched stays.
as alice n2 bash -c 'for j in $(rmctl list-jobs --all --no-header | awk "\$2 == \"true\" { print \$1 }"); do rmctl attach-job $j; done' >/dev/null 2>&1
no_output_left() {
    [[ ! $(on n2 ls /var/lib/rmd/spool) ]]
}
must "output is left that was fetched" until_true 10 no_output_left
bed_do stop-rmd n1
on n1 umount -l /var/lib/rmd
bed_do start-rmd n1
