#!/bin/bash
# The cluster's key is changed node by node, as rmd-cluster(7) says, under a job that runs and is moved between every two steps. Afterwards a node
# that has only the old key is refused, with the reason. A checkpoint that was exported before comes back as long as the old key counts, and
# is good after that; then only root brings it back, with the old key, and nobody else may give a key.
# limit: 240
. "${BASH_SOURCE[0]%/*}/../lib.sh"

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

# refused WHAT PATTERN CMD...
refused() {
    if "${@:3}" >"$work/said" 2>&1; then fail "$1: it is believed"; fi
    see "$1: $(tail -n 1 "$work/said")"
    grep -q -- "$2" "$work/said" || fail "$1: it is refused for another reason: $(<"$work/said")"
}
# good NODE WHEN: what was imported there can be read.
good() {
    must "$2: it is no good on $1" on "$1" rmctl verify-checkpoint "$kept" >"$work/said"
    see "$2: $(tail -n 1 "$work/said")"
}

cluster 2 --cores 4
text=$(head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n')
for n in n1 n2; do on "$n" sh -c 'umask 077; echo "$1" >"$2"' sh "$text" "$new"; done
until_true 20 as alice n1 rm-mpirun --checkpoint 1h -n 1 true 2>"$work/level" || fail "no job may be saved: $(<"$work/level")"
start kept n1 --checkpoint 1h -n 1 "$programs/ordered" --stop-file="$(stop_file kept)" --pause-usec=30000
running kept 60
must "there is no checkpoint" as alice n1 rmctl checkpoint-job "$(job kept)" --timeout 60 >/dev/null
kept=$(job kept).1
on n2 cp "$new" /home/alice/key
on n2 chown alice /home/alice/key
refused "its owner gives a key for an export" 'only root' as alice n2 rmctl export-checkpoint "$kept" saved-own --key-file /home/alice/key
refused "its owner gives a key of root's" 'only root' as alice n2 rmctl export-checkpoint "$kept" saved-own --key-file "$new"
must "nothing is exported" as alice n2 rmctl export-checkpoint "$kept" saved >/dev/null
must "root cannot give a key" on n2 rmctl export-checkpoint "$kept" /root/saved-other --key-file "$new" >/dev/null
must "it cannot be cancelled" rmctl cancel-job "${kept%.*}"
finish kept
must "it cannot be removed" rmctl remove-checkpoint "$kept"
refused "exported with a key that no node has" 'sealed with the key [0-9a-f]* of cluster .* this node does not have' on n2 rmctl import-checkpoint /root/saved-other
refused "another key is given" 'is not the one in that file' on n2 rmctl import-checkpoint /root/saved-other --key-file "$old"
must "root cannot give its key" on n2 rmctl import-checkpoint /root/saved-other --key-file "$new" >/dev/null
good n2 "exported with another key"
must "it cannot be removed" rmctl remove-checkpoint "$kept"
start live n1 --group-size 1 -n 2 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=30000
must "the job does not run" q state live RUNNING 20 >/dev/null
together "before"
for n in n1 n2; do keys "$n" "$old" "$new" && together "$n accepts the new key"; done
second_key_told n1 || fail "rmctl status does not tell of the second key"
for n in n2 n1; do keys "$n" "$new" "$old" && together "$n connects with the new key"; done
must "the old key does not count any more" as alice n2 rmctl import-checkpoint saved >/dev/null
for n in n1 n2; do keys "$n" "$new" && together "$n has forgotten the old key"; done
if second_key_told n1; then fail "rmctl status still tells of a second key"; fi
see "$(q moves live | grep -c DONE) moves, $(q moves live | grep -c ABORTED) given up"
release live
finish live
ended_well live hash

good n2 "imported while the old key counted"
must "it cannot be removed" rmctl remove-checkpoint "$kept"
refused "the old key is forgotten" 'sealed with the key [0-9a-f]* of cluster .* this node does not have' as alice n2 rmctl import-checkpoint saved
known=$(on n2 sed -n "s/.*fingerprint of the cluster's key: \([0-9a-f]*\).*/\1/p" /var/log/rmd.log | head -n 1)
grep -q "${known:-unknown}" "$work/said" || fail "the log of rmd does not have that fingerprint: $(on n2 grep -a fingerprint /var/log/rmd.log | head -n 2)"
refused "its owner gives a key for an import" 'only root' as alice n2 rmctl import-checkpoint saved --key-file "$old"
must "root cannot import it with the old key" on n2 rmctl import-checkpoint /home/alice/saved --key-file "$old" >/dev/null
good n2 "imported with the old key"
must "it cannot go on" as alice n2 rmctl restart-job "$kept"
release kept
must "it does not end well" eval 'as alice n2 rmctl attach-job "${kept%.*}" 2>&1 </dev/null | grep -q hash'
on n2 rm -f /root/saved-other /home/alice/saved /home/alice/key

keys n2 "$old"
until_true 20 on n1 grep -q 'has another key than this node' /var/log/rmd.log || fail "n1 does not say why it refuses n2"
see "$(on n1 grep 'has another key than this node' /var/log/rmd.log | tail -n 1 | sed 's/.*: it is/it is/')"
until_true 20 on n1 sh -c "rmctl list-nodes --no-header | grep -q '^ *n2 .*DOWN'" || fail "n2 is not shut out: $(rmctl list-nodes | tr '\n' '|')"
keys n2 "$new"
must "n2 is not back" until_true 20 all_joined
