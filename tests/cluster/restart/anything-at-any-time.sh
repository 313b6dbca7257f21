#!/bin/bash
# Whatever comes at whatever time, drawn by chance: daemons killed, one or several, with an old copy of the state or none; moves that
# somebody asks for; edits of the availability file; drains. Two jobs go on, with whole output and the right result.
# complete: the simulation draws such histories
# limit: 400
. "${BASH_SOURCE[0]%/*}/../lib.sh"
seed=${RM_TEST_SEED:-$((EPOCHSECONDS % 100000))}
see "RM_TEST_SEED=$seed"
availability=/home/rmd/availability

cluster 4 --cores 3
start live n2 --group-size 1 -n 4 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=30000
start flood n3 --group-size 1 -n 2 "$programs/flood" --stop-file="$(stop_file flood)" --pause-usec=20000
running live
must "job flood does not run" q state flood RUNNING 20 >/dev/null

# What is to come, a line each: how long to wait before, and what.
on n1 python3 -c 'import random, sys
dice = random.Random(int(sys.argv[1]))
nodes = ["n1", "n2", "n3", "n4"]
for _ in range(int(sys.argv[2])):
    what = dice.choice(["kill", "kill", "move", "move", "available", "drain"])
    if what == "kill":
        victims = dice.sample(nodes, dice.choice([1, 1, 1, 2, 4]))
        args = [dice.choice(["", "", "forget"]) or "remember", dice.choice([0, 0, 0.3, 1]), *victims]
    elif what == "move":
        args = [dice.choice(["live", "flood"]), dice.choice([-1, 0, 1]), dice.choice(nodes)]
    elif what == "available":
        cores = [dice.choice([0, 1, 2, 3, 3]) for _ in nodes]
        cores[dice.randrange(4)] = 3
        args = ["%s:%d" % pair for pair in zip(nodes, cores)]
    else:
        args = [dice.choice(nodes)]
    print(dice.choice([0, 0.1, 0.3, 0.7, 1.5]), what, *args)' "$seed" "$(thorough 60 12)" >"$work/plan"

# do_kill remember|forget SECONDS NODE...: what they keep of the state is forgotten, but for the log.
do_kill() {
    local memory=$1 pause=$2 n
    shift 2
    for n in "$@"; do bed_do stop-rmd "$n" --kill; done
    [[ $memory == remember ]] || for n in "$@"; do [[ $n == n1 ]] || on "$n" rm -f /var/lib/rmd/state; done
    sleep "$pause"
    for n in "$@"; do bed_do start-rmd "$n"; done
}

# Refused as often as not: it is there, it moves, the node is drained, nobody leads.
do_move() {
    migrate "$1" "$2" "$3" >/dev/null 2>&1
}

do_available() {
    # shellcheck disable=SC2016 # the node's shell expands it
    on n1 sh -c 'f=$1; shift; printf "%s\n" "$@" >$f.new && mv $f.new $f' sh "$availability" "$@"
}

do_drain() {
    rmctl drain-node "$1" --reason chance >/dev/null 2>&1 || rmctl resume-node "$1" >/dev/null 2>&1
}

while read -r pause what args <&7; do
    sleep "$pause"
    see "$(printf '%3d s  %s %s' $SECONDS "$what" "$args")"
    # shellcheck disable=SC2086 # words
    do_$what $args
    for name in live flood; do
        ! gone "${front_pid[$name]}" || fail "job $name has ended: $(tail -n 3 "$work/$name.err" | tr '\n' '|')"
    done
done 7<"$work/plan"
must "not all joined again" until_true 30 all_joined
for n in $(nodes); do rmctl resume-node "$n" >/dev/null 2>&1; done
do_available n1:3
must "it does not come to rest" q settled 60 >/dev/null
see "moves: $(q moves | awk '{ n[$5]++ } END { for (s in n) printf "%d %s ", n[s], s }')jobs: $(q job live state) $(q job flood state)"
flood_ends_whole
release live
finish live
ended_well live hash
same_as_undisturbed live 4 --group-size 1
