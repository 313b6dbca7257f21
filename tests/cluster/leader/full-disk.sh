#!/bin/bash
# The disk of the one who leads is full while there are other voters: jobs are submitted, attached to, write, move and end, nodes are drained and their
# cores edited, as if nothing had been; also when that node's rmd is killed meanwhile. With room again it comes back.
# limit: 180
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 5 --cores 4
asker=n5
voters_are_first

# edit CORES: what n5 has.
edit() {
    on n5 sh -c 'printf "n1:0\nn2:0\nn3:0\nn4:4\nn5:%d\n" "$1" >/home/rmd/availability' sh "$1"
    must "n5 has not $1 cores" until_true 30 has_cores "$1"
}
has_cores() {
    [[ $(q node n5 usable_cores) == "$1" ]]
}

# fill NODE: to the last byte, also where what was there has gone meanwhile.
fill() {
    on "$1" sh -c 'cd /var/lib/rmd && dd if=/dev/zero bs=64k >>fill; dd if=/dev/zero bs=512 >>fill' 2>/dev/null
}

# submit ARG...: a job with so large an environment that no rest of a disk takes it; another one each time, since a leader does not write again what it has on its disk.
submit() {
    # shellcheck disable=SC2016 # the node's shell expands it
    as alice n4 bash -c 'x=$EPOCHREALTIME$(head -c 100000 /dev/zero | tr "\0" x); A=$x B=$x C=$x D=$x E=$x F=$x; export A B C D E F; exec rm-mpirun "$@"' bash "$@"
}

# all_sorts K NODE: of every kind one, while that node's disk is full.
all_sorts() {
    local k=$1 number
    run "small$k" n4 -n 1 sh -c "echo $k >>/home/alice/done; exit 7"
    same "the exit code of small$k: $(tail -n 3 "$work/small$k.err")" "$rc" 7
    fill "$2"
    run "lines$k" n4 -n 1 seq 100000
    same "the output of lines$k" "$(md5sum <"$work/lines$k.out")" "$(seq 100000 | md5sum)"
    fill "$2"
    number=$(submit --detach -n 1 sh -c 'echo kept; sleep 1; exit 9' 2>"$work/kept") || fail "no job is accepted: $(<"$work/kept")"
    rc=0
    as alice n5 rmctl attach-job "$number" >"$work/attached" 2>"$work/kept" || rc=$?
    same "what attach-job shows and returns" "$(<"$work/attached") $rc" "kept 9"
    for what in drain-node resume-node; do
        must "$what is refused: $(<"$work/said")" on n4 rmctl $what n1 >"$work/said" 2>&1
    done
    edit 3
    edit 4
    move live 0 "$(printf 'n4\nn5\n' | grep -vx "$(q where live 0)")"
}

: >"$work/said"
for node in n1 n2 n3; do
    bed_do stop-rmd $node
    # shellcheck disable=SC2016 # the node's shell expands it
    on $node sh -c 'd=/var/lib/rmd; cp -a $d $d.copy; mount -t tmpfs -o size=32m tmpfs $d; cp -a $d.copy/. $d/; rm -r $d.copy'
    bed_do start-rmd $node
    must "$node does not join again" until_true 20 all_joined
    must "not all voters are back" until_true 40 voters_up
done
edit 4
start live n4 --group-size 1 -n 2 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=30000
running live
leader=$(q leader)
fill "$leader"
begun=$EPOCHREALTIME
all_sorts 1 "$leader"
see "disk of $leader full: all done in $(msec_since "$begun") ms; now $(q leader) leads"
bed_do stop-rmd "$leader" --kill
begun=$EPOCHREALTIME
all_sorts 2 "$leader"
see "rmd of $leader killed: all done in $(msec_since "$begun") ms; now $(q leader) leads"
on "$leader" rm /var/lib/rmd/fill
bed_do start-rmd "$leader"
must "$leader does not come back" until_true 30 all_joined
must "not all voters are back" until_true 60 voters_up
# The lead does not go round among those that have no room.
# The log gives back room now and then.
refused() {
    for node in n1 n2 n3; do fill $node; done
    ! submit -n 1 true >"$work/none" 2>&1
}
must "jobs are taken though nobody has room" until_true 30 refused
grep -q "disk is full, so that no job can be taken" "$work/none" || fail "why none is taken: $(<"$work/none")"
see "all disks full: $(<"$work/none")"
for node in n1 n2 n3; do on $node rm /var/lib/rmd/fill; done
must "with room again no job is taken: $(<"$work/none")" until_true 30 eval 'submit -n 1 true >"$work/none" 2>&1'
same "jobs that were run" "$(on n4 cat /home/alice/done | paste -sd ' ')" "1 2"
release live
finish live
ended_well live hash
on n5 rm /home/rmd/availability
same_as_undisturbed live 2 --group-size 1
for node in n1 n2 n3; do
    bed_do stop-rmd $node
    # What was below it is a log that has confirmed less than this one.
    # shellcheck disable=SC2016 # the node's shell expands it
    on $node sh -c 'd=/var/lib/rmd; cp -a $d $d.copy; umount -l $d; rm -r $d; mv $d.copy $d'
    bed_do start-rmd $node
    must "$node does not join again" until_true 30 all_joined
done
