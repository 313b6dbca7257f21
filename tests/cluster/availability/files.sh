#!/bin/bash
# The availability files of the cluster and of one job are followed when they can be meant, and left alone otherwise.
# limit: 180
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 4

# A file that cannot be meant changes nothing, and says file and line in status and log.
scenario "a bad file"
file=/home/rmd/availability

usable() {
    local n
    for n in $(nodes); do q node "$n" usable_cores; done | paste -sd ' '
}
write() {
    on n1 sh -c 'printf "$1" >"$2.new" && mv "$2.new" "$2"' sh "$1" "$file"
}
takes_effect() {
    write "$2"
    until_true 20 eval "[[ \$(usable) == '$3' ]]" || fail "$1: usable cores are $(usable), not $3"
    see "$1: usable $(usable)"
}
# refused WHAT CONTENT PATTERN: PATTERN is what status must say.
refused() {
    local before
    before=$(usable)
    write "$2"
    until_true 20 eval "rmctl status | grep -qE -- '$3'" || fail "$1: status does not say '$3': $(rmctl status | grep -i avail)"
    same "$1: usable cores" "$(usable)" "$before"
    see "$1: $(rmctl status | grep -E -m 1 -- "$3" | sed 's/^ *//')"
}
takes_effect "a good file" 'n1:2\nn2:0 # maintenance\n\n# all of n3\n' '2 0 4'
refused "garbage" '\001\002\377 what\n' 'availability:1'
refused "half a line" 'n1:1\nn2' 'availability:2'
refused "an unknown host" 'n1:1\nn9:1\n' 'availability:2.*n9'
refused "a negative number" 'n1:-1\n' 'availability:1'
refused "a huge number" 'n1:99999999999999999999\n' 'availability:1'
refused "no number" 'n1:\n' 'availability:1'
refused "more than a number" 'n1:2x\n' 'availability:1'
refused "a host named twice" 'n1:1\nn2:1\nn1:3\n' 'availability:3'
takes_effect "CRLF" 'n1:3\r\nn2:1\r\n' '3 1 4'
takes_effect "no newline at the end" 'n1:1\nn2:3' '1 3 4'
takes_effect "more than there is" 'n1:1000\n' '4 4 4'
takes_effect "an empty file names nobody" '' '4 4 4'
takes_effect "once more" 'n1:2\n' '2 4 4'
on n1 rm "$file"
sleep 1.5
same "a missing file: usable cores" "$(usable)" '2 4 4'
until_true 20 eval 'rmctl status | grep -qiE "availability.*(no such|missing|not there)"' || fail "a missing file is not told: $(rmctl status)"
see "a missing file: usable $(usable)"
takes_effect "back again" 'n1:1\nn3:1\n' '1 4 1'
grep -q 'availability:3' <(bed_do logs "$(q leader)") || fail "the leader's log does not name the line"

# --availability FILE of one job moves that job and no other; the job of somebody else, and a bad file, are left alone.
scenario "the file of one job"
as alice n1 sh -c 'printf "n1:2\nn2:2\nn3:0\n" >mine'
start other n2 --group-size 2 -n 2 "$programs/spin" --stop-file="$(stop_file other)"
running other
start live n1 --availability mine --group-size 2 -n 4 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=50000
running live
see "n1:2 n2:2 n3:0: $(q place live | tr '\n' ' ')"
q place live | grep -v '^-1' | grep -q n3 && fail "it is on n3"
# A user with many such files must not use up what the kernel lets root watch. The leader watches, and has a second descriptor while it reads a file.
watching() {
    on "$1" sh -c 'read -r pid </run/testbed-rmd.pid && find "/proc/$pid/fd" -lname "anon_inode:inotify" | wc -l'
}
leader=$(q leader)
until_true 10 eval '(($(watching "$leader") == 1))' || fail "inotify instances of rmd on $leader: $(watching "$leader"), not 1"
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
until_true 20 eval 'rmctl events | grep -q "mine:2"' || fail "the bad line is not told"
same "its place after a bad line" "$(q place live)" "$before"
release live
finish live
ended_well live hash
release other
finish other

# A job that has ended, and goes on from its checkpoint, follows its file again.
scenario "the file of a job that goes on"
as alice n1 sh -c 'printf "n1:2\nn2:0\nn3:0\n" >mine'
start back n1 --availability mine --checkpoint 1h -n 2 "$programs/ordered" --stop-file="$(stop_file back)" --pause-usec=50000
running back
as alice n1 rmctl checkpoint-job "$(job back)" --timeout 60 >"$work/said" 2>&1 || fail "no checkpoint: $(<"$work/said")"
must "cancel-job" as alice n1 rmctl cancel-job "$(job back)" >/dev/null
finish back 60
must "restart-job" as alice n1 rmctl restart-job "$(job back)" >/dev/null
must "it does not run again: $(q job back reason)" q state back RUNNING 40 >/dev/null
as alice n1 sh -c 'printf "n1:0\nn2:2\nn3:0\n" >mine'
until_true 30 eval '! q place back | grep -v "^-1" | grep -q n1' || fail "it stays on n1: its file is not followed any more"
see "n1:0 n2:2 n3:0: $(q place back | tr '\n' ' ')"
release back
must "it does not end well: $(<"$work/said")" as alice n1 rmctl attach-job "$(job back)" >"$work/said" 2>&1
