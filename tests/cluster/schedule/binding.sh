#!/bin/bash
# Ranks run on the cores that treematch chose for them, each on its own, also after moves, and if they stray as they begin; folded ones of whose traffic
# nothing is known, and those of policies without an opinion, on any. Folded ones that talk to each other share a core.
# limit: 180
. "${BASH_SOURCE[0]%/*}/../lib.sh"

[[ $(nproc) -ge 2 ]] || { see "this machine has one core" && exit 0; }
cluster 2 --cores 2 --set "sched.traffic_interval = 1s"

# cores NODE: where each rank may run, one word for each, sorted.
cores() {
    on "$1" sh -c 'for p in $(pgrep -x spin); do sed -n "s/^Cpus_allowed_list:\t//p" /proc/$p/status 2>/dev/null; done' | sort | paste -sd ' '
}

# What nothing is bound to: all that rmd itself may use.
all=$(on n1 sh -c 'sed -n "s/^Cpus_allowed_list:\t//p" /proc/$(cat /run/testbed-rmd.pid)/status')

apart() {
    local a b
    read -r a b < <(cores "$1")
    [[ $a && $b && $a != "$b" && $a != "$all" && $b != "$all" ]]
}

free_on() {
    [[ -n $(cores "$1") ]] && ! cores "$1" | tr ' ' '\n' | grep -qvx -- "$all"
}

# stray NODE: all that run there are freed, as what is forked while its group is bound would be. All go to their own cores again.
stray() {
    on "$1" sh -c 'for p in $(pgrep -x spin); do taskset -apc "'"$all"'" "$p"; done' >/dev/null
}

# bound NODE SECONDS: ranks there come to be apart.
bound() {
    until_true "$2" apart "$1" || fail "ranks on $1 share a core: $(cores "$1")"
}

start plain n1 --policy distrib --group-size 1 -n 4 "$programs/spin" --stop-file="$(stop_file plain)"
running plain
see "distrib: on n1 $(cores n1), on n2 $(cores n2)"
must "distrib has no opinion, but ranks are bound" free_on n1
release plain
finish plain

start live n1 --policy treematch --group-size 1 -n 4 "$programs/spin" --stop-file="$(stop_file live)"
running live
bound n1 10
stray n1
bound n1 10
bound n2 10
see "treematch: on n1 $(cores n1), on n2 $(cores n2)"

must "the drain" rmctl drain-node n2 --reason cores --wait --timeout 60 >/dev/null
until_true 10 free_on n1 || fail "folded ranks are bound: $(cores n1)"
see "n2 drained: on n1 $(cores n1)"
must "resume-node" rmctl resume-node n2 >/dev/null
bound n1 60
bound n2 30
see "and back: on n1 $(cores n1), on n2 $(cores n2)"
bed_do restart-rmd n2 --kill
must "all are not back" until_true 20 all_joined
must "a restarted rmd lets go: $(cores n2)" apart n2
rmctl show-job "$(job live)" | awk '/^GROUP/ { on = 1 } on { print "  " $0 }'
grep -q '"cores"' <(rmctl show-job "$(job live)" --json) || fail "show-job does not tell the cores"
release live
finish live
ended_well live spin

# sharing: which ranks have the same cores, "0,1 2,3", and how many cores each has.
sharing() {
    # shellcheck disable=SC2016 # the node's shell expands it
    on n1 sh -c 'for p in $(pgrep -x pairs); do
            echo "$(tr "\0" "\n" </proc/$p/environ | sed -n "s/^OMPI_COMM_WORLD_RANK=//p")" "$(sed -n "s/^Cpus_allowed_list:\t//p" /proc/$p/status)"
        done' 2>/dev/null | sort | awk '{ with[$2] = with[$2] (with[$2] == "" ? "" : ",") $1 } END { for (c in with) print with[c], "on", c }' | sort | paste -sd ' '
}
share() {
    [[ $(sharing) =~ ^$1\ on\ [0-9]+\ $2\ on\ [0-9]+$ ]]
}
shift_file=/home/alice/shift
start folded n1 --policy treematch --group-size 1 -n 4 "$programs/pairs" --stop-file="$(stop_file folded)" --shift-file=$shift_file
running folded
must "the drain" rmctl drain-node n2 --reason cores --wait --timeout 60 >/dev/null
must "ranks that talk share no core: $(sharing)" until_true 40 share 0,1 2,3
see "folded: $(sharing)"
on n1 touch $shift_file
must "that they talk to others now changes nothing: $(sharing)" until_true 60 share 0,3 1,2
see "when they talk to others: $(sharing)"
release folded
finish folded
ended_well folded "all whole"
