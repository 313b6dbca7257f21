#!/bin/bash
# A user who may run a job opens no file of root on another node by a symlink that stands where a directory of his was: neither one
# that was there before the move, nor one that a process of his beside the job puts there while it goes on.
# limit: 120
. "${BASH_SOURCE[0]%/*}/lib.sh"

kept() {
    release "$1"
    finish "$1"
    grep 'gained' "$work/$1.out" && fail "$1: the user has what is root's"
    ended_well "$1" 'kept to itself'
}

cluster 2 --cores 4
# As large and as open to others as what it is to become.
twin='d=$1 && mkdir "$d" && truncate -s "$(stat -c %s /etc/shadow)" "$d/shadow" && chmod 640 "$d/shadow"'
as alice n1 sh -c "$twin" twin /var/tmp/d || fail "no twin on n1"
as alice n2 ln -s /etc /var/tmp/d || fail "no symlink on n2"
start before n1 --group-size 1 -n 1 "$programs/trespass" --hold=/var/tmp/d/shadow --stop-file="$(stop_file before)"
running before
migrate before 0 n2 --mode stop --wait --timeout 30 >"$work/migrate" 2>&1 && fail "it was moved"
see "$(<"$work/migrate")"
same "where the group is" "$(q where before 0)" n1
same "the job" "$(q job before state)" RUNNING
kept before

as alice n1 sh -c "$twin && ln -s /etc /home/alice/other" twin /home/alice/d || fail "no twin in /home"
start beside n1 --group-size 1 -n 1 "$programs/trespass" --hold=/home/alice/d/shadow --stop-file="$(stop_file beside)"
running beside
as alice n1 "$programs/intruder" swap /home/alice/d /home/alice/other 20 >"$work/swap" 2>&1 &
for ((i = 0; i < $(thorough 20 5); i++)); do
    migrate beside 0 "$(a_node_but "$(q where beside 0)")" --mode stop --wait --timeout 30 >"$work/migrate" 2>&1
    sed 's/^/  /' "$work/migrate"
done
kept beside
wait $!
see "$(<"$work/swap")"
for n in n1 n2; do on "$n" rm -rf /var/tmp/d; done
