#!/bin/bash
# --availability FILE of one job moves that job and no other; the job of somebody else, and a bad file, are left alone.
. "${BASH_SOURCE[0]%/*}/lib.sh"

cluster 3 --cores 4
as alice n1 sh -c 'printf "n1:2\nn2:2\nn3:0\n" >mine'
start other n2 --group-size 2 -n 2 "$programs/spin" --stop-file="$(stop_file other)"
running other
start live n1 --availability mine --group-size 2 -n 4 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=50000
running live
see "n1:2 n2:2 n3:0: $(q place live | tr '\n' ' ')"
q place live | grep -v '^-1' | grep -q n3 && fail "it is on n3"
# A user with many such files must not use up what the kernel lets root watch.
watches=$(on n1 sh -c 'read -r pid </run/testbed-rmd.pid && find "/proc/$pid/fd" -lname "anon_inode:inotify" | wc -l')
same "files that rmd on n1 has the kernel watch" "$watches" 1
# Nor may capsules: root has 128 inotify instances by default, and a node with many cores has more capsules.
watches=$(on n1 sh -c 'find $(pgrep -f "^[^ ]*rm-capsule " | sed "s#.*#/proc/&/fd#") -lname "anon_inode:inotify" | wc -l')
same "inotify instances of the capsules on n1" "$watches" 0
on n1 sh -c 'pgrep -f "^[^ ]*rm-capsule " | wc -l' | grep -q '[1-9]' || fail "no capsule was looked at"
place_of_other=$(q place other)
as alice n1 sh -c 'printf "n1:0\nn2:2\nn3:2\n" >mine'
until_true 30 eval '! q place live | grep -v "^-1" | grep -q n1' || fail "it stays on n1"
must "it does not settle" q settled 30 >/dev/null
see "n1:0 n2:2 n3:2: $(q place live | tr '\n' ' ')"
same "the other job's place" "$(q place other)" "$place_of_other"
before=$(q place live)
as alice n1 sh -c 'printf "n2:0\nnowhere:2\n" >mine'
until_true 5 eval 'rmctl events | grep -q "mine:2"' || fail "the bad line is not told"
same "its place after a bad line" "$(q place live)" "$before"
release live
finish live
ended_well live hash
release other
finish other
