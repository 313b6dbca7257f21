#!/bin/bash
# The cluster's key is changed node by node, as rmd(8) says, under a job that runs and is moved between every two steps. Afterwards a node
# that has only the old key is refused, with the reason.
# limit: 180
. "${BASH_SOURCE[0]%/*}/lib.sh"

old=/etc/rmd/cluster.key
new=/etc/rmd/new.key

# keys NODE FIRST [SECOND]: a new start of its rmd with these.
keys() {
    on "$1" sed -i -e '/^second_key_file/d' -e "s|^key_file = .*|key_file = $2${3:+\nsecond_key_file = $3}|" /etc/rmd/rmd.conf
    bed_do restart-rmd "$1" || fail "$1: rmd does not start with the keys $2 $3"
}

# together WHAT: all nodes have found each other, and a group of the job moves to the other node.
together() {
    local from
    must "$1: not all nodes are connected" until_true 20 all_joined
    from=$(q where live 1)
    move live 1 "$(a_node_but "$from")"
    see "$1: moved from $from to $(q where live 1)"
}

second_key_told() {
    on "$1" rmctl status | grep -q 'a second key is accepted'
}

cluster 2 --cores 4
text=$(head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n')
for n in n1 n2; do on "$n" sh -c 'umask 077; echo "$1" >"$2"' sh "$text" "$new"; done
start live n1 --group-size 1 -n 2 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=30000
must "the job does not run" q state live RUNNING 20 >/dev/null
together "before"
for n in n1 n2; do keys "$n" "$old" "$new" && together "$n accepts the new key"; done
second_key_told n1 || fail "rmctl status does not tell of the second key"
for n in n2 n1; do keys "$n" "$new" "$old" && together "$n connects with the new key"; done
for n in n1 n2; do keys "$n" "$new" && together "$n has forgotten the old key"; done
if second_key_told n1; then fail "rmctl status still tells of a second key"; fi
see "$(q moves live | grep -c DONE) moves, $(q moves live | grep -c ABORTED) given up"
release live
finish live
ended_well live hash

keys n2 "$old"
until_true 20 on n1 grep -q 'has another key than this node' /var/log/rmd.log || fail "n1 does not say why it refuses n2"
see "$(on n1 grep 'has another key than this node' /var/log/rmd.log | tail -n 1 | sed 's/.*: it is/it is/')"
until_true 20 on n1 sh -c "rmctl list-nodes --no-header | grep -q '^ *n2 .*DOWN'" || fail "n2 is not shut out: $(rmctl list-nodes | tr '\n' '|')"
keys n2 "$new"
must "n2 is not back" until_true 20 all_joined
