#!/bin/bash
# A group moves whatever others do meanwhile to the size of files that it has open: ranks of two groups add to one file, somebody writes a log that it reads, or makes a file
# shorter and longer again and again. All that was written is there, once. But it does not move to a node where its file's name means another one, which would be written to then.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 6
dir=/home/alice/growing
as alice n1 mkdir "$dir"
as alice n1 sh -c "seq 100 >$dir/changing; : >$dir/log"
# Others write all the time, not only between two looks of rmd.
as alice n1 sh -c "n=0; while [ ! -e $dir/end ]; do n=\$((n + 1)); echo line \$n >>$dir/log; truncate -s \$((n % 1000)) $dir/changing; done" &
writer=$!
# shellcheck disable=SC2016 # the job's shell expands it
start grows n1 --group-size 1 -n 2 sh -c 'exec 3>>'"$dir"'/records 4<>'"$dir"'/changing 5<'"$dir"'/log; echo run: running; n=0
    while [ ! -e '"$(stop_file grows)"' ]; do n=$((n + 1)); echo $OMPI_COMM_WORLD_RANK $n >&3; read -r word line <&5 && seen=$line; sleep 0.01; done
    echo "$OMPI_COMM_WORLD_RANK wrote $n, read line ${seen:-none}"; [ "$seen" ] && echo good'
running grows
for round in $(seq "$(thorough 8 3)"); do
    for mode in live stop; do
        to=$(a_node_but "$(q where grows 1)")
        migrate grows 1 "$to" --mode "$mode" --wait --timeout 40 >"$work/said" 2>&1 || fail "round $round, $mode: $(<"$work/said")"
    done
done
as alice n1 touch "$dir/end"
wait "$writer" || fail "who writes the log has failed"
release grows
finish grows
ended_well grows good
see "$(grep wrote "$work/grows.out" | paste -sd '|'), of $(as alice n1 tail -n 1 "$dir/log") lines"
same "who is done" "$(grep -c '^good' "$work/grows.out")" 2
for rank in 0 1; do
    as alice n1 awk -v rank="$rank" '$1 == rank && $2 != ++n { print; exit 1 }' "$dir/records" >"$work/wrong" || fail "a record of rank $rank is lost or twice: $(<"$work/wrong")"
    same "records of rank $rank" "$(as alice n1 grep -c "^$rank " "$dir/records")" "$(sed -n "s/^$rank wrote \([0-9]*\),.*/\1/p" "$work/grows.out")"
done

# Four ranks write one file by MPI-IO, and one reads the log of another program, while nodes are drained.
start mpiio n1 --group-size 1 -n 4 "$programs/mpiio" "$dir/blocks" --stop-file="$(stop_file mpiio)"
running mpiio
as alice n1 sh -c "rm -f $dir/end; while [ ! -e $dir/end ]; do n=\$((n + 1)); echo line \$n >>$dir/growing-log; done" &
writer=$!
# shellcheck disable=SC2016 # the job's shell expands it
start reader n2 -n 1 sh -c 'while [ ! -e '"$dir"'/growing-log ]; do :; done; exec 5<'"$dir"'/growing-log; echo run: running; while [ ! -e '"$(stop_file reader)"' ]; do
    read -r word line <&5 && { [ "$line" -eq $((seen + 1)) ] || { echo "after $seen comes $line"; exit 1; }; seen=$line; }; done; echo "$seen lines, good"'
running reader
for ((i = 0; i < $(thorough 8 2); i++)); do
    for node in n1 n2; do
        on "$node" rmctl drain-node "$node" --wait --timeout 60 >"$work/said" 2>&1 || fail "the drain of $node does not end: $(<"$work/said")"
        on "$node" rmctl resume-node "$node" >"$work/said" 2>&1 || fail "resume: $(<"$work/said")"
    done
done
as alice n1 touch "$dir/end"
wait "$writer"
for job in mpiio reader; do
    release "$job"
    finish "$job"
    see "$(tail -n 1 "$work/$job.out")"
done
ended_well mpiio 'of 4 ranks, all as written'
ended_well reader good
same "blocks of the file" "$(as alice n1 stat -c %s "$dir/blocks")" "$(($(sed -n 's/^mpiio: \([0-9]*\) blocks.*/\1/p' "$work/mpiio.out") * 4 * 4096))"

for node in n1 n2; do as alice "$node" sh -c 'seq 1000 >/var/tmp/out'; done
start apart n1 --group-size 1 -n 1 sh -c 'exec 3>>/var/tmp/out; echo run: running; while [ ! -e '"$(stop_file apart)"' ]; do echo more >&3; sleep 0.1; done; echo good'
running apart
from=$(q where apart 0)
to=$(a_node_but "$from")
for mode in live stop; do
    migrate apart 0 "$to" --mode "$mode" --wait --timeout 40 >"$work/said" 2>&1 && fail "$mode: it has moved to another file of that name"
    grep -q 'writes to /var/tmp/out, which is another file' "$work/said" || fail "$mode: why it does not move: $(<"$work/said")"
done
release apart
finish apart
ended_well apart good
same "the other file" "$(as alice "$to" sh -c 'seq 1000 | cmp - /var/tmp/out && echo same')" same
(($(as alice "$from" grep -c more /var/tmp/out) > 2)) || fail "it has not gone on where it was"
for node in n1 n2; do as alice "$node" rm /var/tmp/out; done

# Nor where something else has the name of one of its sockets, which would be removed. A name that the socket has lost is nobody's.
start named n1 --group-size 1 -n 1 python3 -u -c 'import os, socket, sys, time
bound, shared, lost = (socket.socket(socket.AF_UNIX) for i in range(3))
bound.bind("/var/tmp/bound")
shared.bind("/home/alice/shared")
lost.bind("/home/alice/lost")
os.unlink("/home/alice/lost")
open("/home/alice/lost", "w").write("kept")
print("run: running")
while not os.path.exists(sys.argv[1]): time.sleep(0.05)
print("good")' "$(stop_file named)"
running named
from=$(q where named 0)
to=$(a_node_but "$from")
as alice "$to" sh -c 'echo other >/var/tmp/bound'
for mode in live stop; do
    migrate named 0 "$to" --mode "$mode" --wait --timeout 40 >"$work/said" 2>&1 && fail "$mode: it has moved over a file of that name"
    grep -q '/var/tmp/bound: a file stands where the job had a socket' "$work/said" || fail "$mode: why it does not move: $(<"$work/said")"
    same "$mode: the file" "$(as alice "$to" cat /var/tmp/bound)" other
done
as alice "$to" rm /var/tmp/bound
move named 0 "$to"
must "its socket has no name on the other node" as alice "$to" test -S /var/tmp/bound
move named 0 "$from"
same "the file with a name that its socket has lost" "$(as alice n1 cat /home/alice/lost)" kept
release named
finish named
ended_well named good
for node in n1 n2; do as alice "$node" rm -f /var/tmp/bound; done
