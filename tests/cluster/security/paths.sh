#!/bin/bash
# A user who moves what his paths lead to, while his job is moved, opens and makes nothing that is not his.
# limit: 210
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 4

# A file that is open without a name is made anew at the destination: not where a symlink of the user leads, in no moment, and
# without losing the job.
scenario "files without a name"
as alice n1 mkdir /var/tmp/g || fail "no folder"
as alice n2 ln -s /etc /var/tmp/g || fail "no symlink"
start ghost n1 --group-size 1 -n 1 "$programs/trespass" --ghost=/var/tmp/g/pwned --stop-file="$(stop_file ghost)"
running ghost
on n2 "$programs/intruder" watch /etc pwned 8 >"$work/watch" 2>&1 &
watcher=$!
until_true 10 grep -q watches "$work/watch" || fail "nothing watches /etc"
for ((i = 0; i < $(thorough 10 3); i++)); do
    migrate ghost 0 n2 --mode stop --wait --timeout 30 >"$work/migrate" 2>&1
    see "$(<"$work/migrate")"
done
wait "$watcher"
grep 'saw' "$work/watch" && fail "files of the user's making appear in /etc"
[[ ! $(on n2 find /etc -name 'pwned*') ]] || fail "files of the user's making stay in /etc"
same "the job" "$(q job ghost state)" RUNNING
release ghost
finish ghost
ended_well ghost 'kept to itself'
for n in n1 n2; do on "$n" rm -rf /var/tmp/g; done

# A user who may run a job opens no file of root on another node by a symlink that stands where a directory of his was: neither one
# that was there before the move, nor one that a process of his beside the job puts there while it goes on.
scenario "symlinks in place of directories"
kept() {
    release "$1"
    finish "$1"
    grep 'gained' "$work/$1.out" && fail "$1: the user has what is root's"
    ended_well "$1" 'kept to itself'
}
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
