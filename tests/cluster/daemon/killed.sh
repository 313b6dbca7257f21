#!/bin/bash
# rmd killed with -9 at any time, on one node after the other, on all at once, and while a group moves: the job goes on, its
# output is whole and its result right. No group stands still while its lease lasts, though the leader is another one.
# limit: 150
. "${BASH_SOURCE[0]%/*}/../lib.sh"
RANDOM=${RM_TEST_SEED:-3}

cluster 3 --cores 4 --set cluster.lease=1m
# leased: as the group's PID 1 has written; the newest copy of each.
leased() {
    local n
    for n in $(nodes); do
        on "$n" sh -c 'grep -qs "this node has a lease" /run/rmd/capsules/*/log' && return 0
    done
    return 1
}
not_fenced() {
    local n
    for n in $(nodes); do
        ! on "$n" sh -c 'grep -s "the lease of this node has ended" /run/rmd/capsules/*/log' || fail "$1: a group on $n was fenced"
    done
}
start live n1 --on-node-loss restart --group-size 2 -n 6 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=50000
start flood n2 --group-size 1 -n 2 "$programs/flood" --stop-file="$(stop_file flood)" --pause-usec=20000
running live
must "no group has a lease" until_true 20 leased
for n in $(nodes); do
    # The host gets another name meanwhile. The node keeps its own, since jobs have something there.
    if on "$n" sh -c 'ls /run/rmd/capsules | grep -q "^j"'; then on "$n" sh -c 'printf renamed >/proc/sys/kernel/hostname'; fi
    began=$EPOCHREALTIME
    bed_do restart-rmd "$n" --kill
    must "$n is not back under its name" back "$n" "$began"
    must "$n does not join again" until_true 20 all_joined
    on "$n" sh -c 'printf %s "$1" >/proc/sys/kernel/hostname' sh "$n"
    see "rmd on $n killed and back; jobs: $(q job live state) $(q job flood state)"
done
for n in $(nodes); do bed_do stop-rmd "$n" --kill; done
sleep 1
for n in $(nodes); do bed_do start-rmd "$n"; done
must "they do not join again" until_true 20 all_joined
not_fenced "rmd killed"
see "all killed, a second without any; jobs: $(q job live state) $(q job flood state)"
for ((i = 0; i < $(thorough 4 2); i++)); do
    group=$((RANDOM % 3))
    from=$(q where live "$group")
    to=$(a_node_but "$from")
    migrate live "$group" "$to" >/dev/null 2>&1
    sleep "0.$((RANDOM % 8))"
    side=$from
    ((RANDOM % 2)) || side=$to
    bed_do restart-rmd "$side" --kill
    must "$side does not join again" until_true 20 all_joined
    must "the move does not end" q settled 60 >/dev/null
    see "killed during a move of group $group $from -> $to, on $side: $(q moves live | tail -n 1 | cut -d ' ' -f 5)"
done
flood_ends_whole
same "attempts of the job that may start again" "$(q job live attempt)" 1
release live
finish live
ended_well live hash
same_as_undisturbed live 6 --group-size 2
