#!/bin/bash
# A file that is open without a name is made anew at the destination: not where a symlink of the user leads, in no moment, and
# without losing the job.
# limit: 90
. "${BASH_SOURCE[0]%/*}/lib.sh"

cluster 2 --cores 4
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
