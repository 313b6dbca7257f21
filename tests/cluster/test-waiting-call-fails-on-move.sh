#!/bin/bash
# A system call that waits with a time limit goes on waiting after a move, after two in a row, and after one that was given up: without a signal
# none is interrupted. With tracked memory, which stops the threads when it begins, and without.
# limit: 200
. "${BASH_SOURCE[0]%/*}/lib.sh"

cluster 3 --cores 4
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
