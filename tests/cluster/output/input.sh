#!/bin/bash
# Standard input arrives whole: from a file, a slow pipe, none, more than the program reads, while groups and head move, and when some of it is sent
# again behind what mpirun has not read yet.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# feed NAME ARG...: rm-mpirun with our own stdin.
feed() {
    local name=$1
    shift
    bed_do exec n1 --user alice -- rm-mpirun --job-name "$name" "$@" >"$work/$name.out" 2>"$work/$name.err"
}

cluster 3 --cores 2
head -c 5000000 /dev/urandom >"$work/data"
bed_do copy "$work/data" n1:/home/alice/data
want=$(as alice n1 sh -c 'mpirun -n 2 --oversubscribe --mca btl self,sm "$1" </home/alice/data 2>/dev/null' sh "$programs/input" | sed 's/.*hash //')
feed file -n 2 "$programs/input" <"$work/data"
same "from a file" "$(<"$work/file.out")" "input: 5000000 bytes hash $want"
see "from a file: $(<"$work/file.out")"
feed none -n 2 "$programs/input" </dev/null
same "none" "$(<"$work/none.out")" "input: 0 bytes hash cbf29ce484222325"
timeout 60 bash -c 'head -c 3000000 /dev/zero' | { feed ignored -n 2 "$programs/input" --ignore || true; }
same "not read" "$(<"$work/ignored.out")" "input: 0 bytes hash cbf29ce484222325"
see "a program that does not read its input ends all the same"

# Slowly, with moves of the group that reads it and of the head that brings it.
{
    for ((i = 0; i < 50; i++)); do
        dd bs=100000 skip="$i" count=1 if="$work/data" status=none
        until_true 10 test -e "$work/go" || exit 1
        sleep 0.1
        # The last piece only when all moves are done.
        ((i != 48)) || until_true 60 test -e "$work/moved" || exit 1
    done
} | feed slow --group-size 1 -n 2 "$programs/input" &
feeder=$!
touch "$work/go"
must "job slow does not run" q state slow RUNNING 20 >/dev/null
for group in 0 -1 -1 0 -1 -1; do
    move slow "$group" "$(a_node_but "$(q where slow "$group")")"
done
touch "$work/moved"
wait "$feeder"
see "with moves: $(<"$work/slow.out")"
same "slowly, with moves" "$(<"$work/slow.out")" "input: 5000000 bytes hash $want"

# What an rmd that is started again gets once more must not look like the end of the input.
{
    until_true 60 test -e "$work/stopped" && head -c 200000 "$work/data"
    until_true 60 test -e "$work/repeated" && tail -c +200001 "$work/data"
} | feed again --group-size 1 -n 2 "$programs/input" &
feeder=$!
must "job again does not run" q state again RUNNING 20 >/dev/null
[[ $(q where again -1) != n1 ]] || move again -1 n2
head=$(q where again -1)
must "mpirun of job again is not there" on "$head" pkill -STOP -x prterun
touch "$work/stopped"
sleep 1
bed_do restart-rmd "$head" --kill
must "all are not back" until_true 20 all_joined
sleep 1
must "mpirun of job again is not there" on "$head" pkill -CONT -x prterun
touch "$work/repeated"
wait "$feeder"
same "what was sent again" "$(<"$work/again.out")" "input: 5000000 bytes hash $want"
