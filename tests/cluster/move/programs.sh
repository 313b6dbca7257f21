#!/bin/bash
# What programs use beside MPI is after moves as it was before: files and who may read them, timers, threads, calls that wait.
# complete: move/results and memory/kinds move programs of each kind
# limit: 830
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 4

# What programs use beside MPI goes on after moves: shared memory, files in /tmp and /home, threads, pipes, a child process,
# timers, sleep, signals, epoll, locks.
scenario "shared memory, files, threads, pipes, timers"
start live n1 --group-size 2 -n 4 "$programs/touchall" all --stop-file="$(stop_file live)"
running live
for ((i = 0; i < $(thorough 4 2); i++)); do
    for group in 0 1; do
        move live "$group" "$(a_node_but "$(q where live "$group")")"
    done
done
see "$(q moves live | grep -c DONE) moves"
release live
finish live
see "$(tail -n 1 "$work/live.out")"
ended_well live good

# A file in the job's own /tmp or /dev/shm that one named user may read besides its owner, and not the group, is the same after moves,
# with all other attributes that users can give. What is too much to be carried keeps the group where it is, in plain words.
scenario "attributes of files"
start live n1 --group-size 1 -n 2 "$programs/attributes" /tmp /dev/shm --stop-file="$(stop_file live)"
running live
for ((i = 0; i < $(thorough 4 2); i++)); do
    for group in 0 1; do move live "$group" "$(a_node_but "$(q where live "$group")")"; done
done
see "$(q moves live | grep -c DONE) moves"
release live
finish live
see "$(tail -n 3 "$work/live.out" | tr '\n' '|')"
ended_well live ': 6 files, good$'

start full n1 --group-size 1 -n 2 "$programs/attributes" /tmp --tags=12 --stop-file="$(stop_file full)"
running full
from=$(q where full 0)
if migrate full 0 "$(a_node_but "$from")" --wait --timeout 30 >"$work/migrate" 2>&1; then fail "moved with 12 KiB of attributes of one file"; fi
see "$(tail -n 1 "$work/migrate")"
grep -q 'extended attributes' "$work/migrate" || fail "not in plain words: $(tail -n 3 "$work/migrate" | tr '\n' '|')"
same "where it is" "$(q where full 0)" "$from"
release full
finish full
ended_well full ': 3 files, good$'

# alarm(), setitimer(), timer_create() and timerfd without an interval go off after moves: once, and in time.
scenario "timers that go off once"
begun=$EPOCHREALTIME
start live n1 --group-size 1 -n 2 "$programs/alarms" --seconds=$((25 * slowness / 100)) --stop-file="$(stop_file live)"
running live
for ((i = 0; i < 2; i++)); do
    for group in 0 1; do
        move live "$group" "$(a_node_but "$(q where live "$group")")"
    done
done
in_time "$(msec_since "$begun")" 24000 || fail "the moves took so long that the timers went off before"
see "$(q moves live | grep -c DONE) moves after $(msec_since "$begun") ms"
until_true 40 eval '(($(grep -c fired "$work/live.out") == 2))' || see "not all have gone off"
# Once more after that, and nothing may come of it.
move live 0 "$(a_node_but "$(q where live 0)")"
sleep 1
release live
finish live
see "$(grep rank "$work/live.out" | grep -v fired)"
ended_well live ': good$'

# Files that are open without a name, or no longer under the one they were opened by, go with a move; one that is given up, at
# whatever point, leaves none of the helper links in the user's directories that CRIU makes for them.
scenario "files without a name"
no_links() {
    local left
    left=$(on n1 find /home -name 'link_remap*')
    [[ ! $left ]] || fail "$1: left in the user's directory: $left"
}
for n in $(nodes); do bed_do stop-rmd "$n" && start_rmd_with_faults "$n"; done
until_true 20 all_joined || fail "not all joined"
as alice n1 mkdir -p /home/alice/files || fail "no folder"
start live n1 --group-size 1 -n 2 "$programs/unlinked" /home/alice/files /tmp --stop-file="$(stop_file live)"
running live
for point in source.transfer source.restore destination.restore destination.commit; do
    from=$(q where live 1)
    to=$(a_node_but "$from")
    side=$from
    [[ $point == source.* ]] || side=$to
    on "$side" sh -c "echo move.$point:fail >/run/rmd/fault"
    migrate live 1 "$to" --wait --timeout 30 >"$work/migrate" 2>&1 && see "$point: moved all the same"
    q settled 60 >/dev/null || fail "$point: not settled"
    no_links "$point"
done
for n in $(nodes); do on "$n" rm -f /run/rmd/fault; done
for ((i = 0; i < 2; i++)); do
    for group in 0 1; do move live "$group" "$(a_node_but "$(q where live "$group")")"; done
    no_links "after a move"
done
see "$(q moves live | grep -c DONE) moves, $(q moves live | grep -c ABORTED) given up"
release live
finish live
see "$(tail -n 3 "$work/live.out" | tr '\n' '|')"
ended_well live ': good$'

# A system call that waits with a time limit goes on waiting after a move, after two in a row, and after one that was given up: without a signal
# none is interrupted. With tracked memory, which stops the threads when it begins, and without.
scenario "system calls that wait"
for node in $(nodes); do
    bed_do stop-rmd "$node"
    start_rmd_with_faults "$node"
done
until_true 20 all_joined || fail "not all have joined again"
passed() { on "$1" rmctl status | grep -q '^Page tracking: *yes'; }
for node in $(nodes); do must "$node does not track memory" until_true 20 passed "$node"; done
start waits n1 --group-size 1 -n 2 "$programs/waits" --seconds=2 --stop-file="$(stop_file waits)"
running waits
# there_and_on GROUP TRACKED: with failures before it, and at once to another node.
there_and_on() {
    local group=$1 from to point
    from=$(q where waits "$group")
    to=$(a_node_but "$from")
    # With nothing but tracking; after the dump; and with nothing but a freeze.
    for point in "$from source.freeze" "$to destination.restore" "$from source.transfer"; do
        on "${point% *}" sh -c "echo move.${point#* }:fail >/run/rmd/fault"
        ! migrate waits "$group" "$to" --wait --timeout 30 >"$work/said" 2>&1 || fail "$point did not fail"
    done
    move waits "$group" "$to"
    same "tracked" "$(q way waits "$group" | cut -d ' ' -f 1)" "$2"
    move waits "$group" "$(a_node_but "$to")"
}
for ((i = 0; i < $(thorough 6 3); i++)); do
    for group in 0 1; do there_and_on "$group" yes; done
done
for node in $(nodes); do
    on "$node" sh -c "printf '\n[move]\ntracking = no\n' >>/etc/rmd/rmd.conf"
    bed_do stop-rmd "$node"
    start_rmd_with_faults "$node"
done
until_true 20 all_joined || fail "not all have joined with tracking = no"
for group in 0 1; do there_and_on "$group" no; done
see "$(q moves waits | grep -c DONE) moves, $(q moves waits | grep -c ABORTED) given up, $(grep -c waited "$work/waits.out") calls"
for node in $(nodes); do on "$node" rm -f /run/rmd/fault; done
release waits
finish waits
see "$(grep -m 5 BAD "$work/waits.out")"
ended_well waits 'waits: good'
for name in poll ppoll select epoll_wait usleep nanosleep clock_nanosleep futex condition sigtimedwait semtimedop recv; do
    grep -q "waits: 0 $name waited" "$work/waits.out" || fail "no $name came to its end"
done

# A group that is moved away and back ten times (in a quick run three times), and what it costs its node in the end: nothing.
scenario "a group that moves away and back"
start live n1 --group-size 2 -n 4 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=50000
running live
home=$(q where live 1)
away=$(a_node_but "$home")
for ((i = 0; i < $(thorough 10 3); i++)); do
    move live 1 "$away"
    move live 1 "$home"
done
see "$(q moves live | grep -c DONE) moves between $home and $away, freeze times: $(q moves live | awk '{ printf "%.0f ", $6 / 1e3 }')ms"
release live
finish live
ended_well live hash
same_as_undisturbed live 4 --group-size 2
