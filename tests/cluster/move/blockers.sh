#!/bin/bash
# What no move can carry is refused at once and in words, the job goes on, show-job tells of it before anybody tries, and when it is gone the group moves.
# limit: 200
# load: 2
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# says KIND PATTERN
says() {
    rmctl show-job "$(job "$1")" >"$work/shown" && grep -qE "Cannot move.*group 0 on .*$2" "$work/shown"
}

# refused KIND PATTERN [ARG...]
refused() {
    local kind=$1 pattern=$2 begun
    shift 2
    start "$kind" n1 --group-size 1 -n 2 "$programs/holds" "$kind" --drop-file="/home/alice/$kind.drop" \
        --stop-file="$(stop_file "$kind")" "$@"
    running "$kind"
    begun=$EPOCHREALTIME
    ! migrate "$kind" 0 "$(a_node_but "$(q where "$kind" 0)")" --mode stop --wait --timeout 30 >"$work/said" 2>&1 ||
        fail "$kind: the group moved"
    see "$(msec_since "$begun") ms: $(<"$work/said")"
    grep -qE "$pattern" "$work/said" || fail "$kind: that does not say '$pattern'"
    in_time "$(msec_since "$begun")" 8000 || fail "$kind: the refusal took $(msec_since "$begun") ms"
}

# then_moves KIND
then_moves() {
    local kind=$1
    on n1 touch "/home/alice/$kind.drop"
    must "$kind: does not let go" until_true 20 grep -q dropped "$work/$kind.out"
    move "$kind" 0 "$(a_node_but "$(q where "$kind" 0)")"
    release "$kind"
    finish "$kind"
    ended_well "$kind" 'holds: good'
}

cluster 2 --cores 32
on n1 install -m 4755 /bin/sleep "$programs/setuid-sleep"
refused io_uring 'process [0-9]+ \(holds\) uses io_uring'
refused program 'process [0-9]+ \(setuid-sleep\) runs as another user' --program="$programs/setuid-sleep"
must "show-job says nothing of io_uring" until_true 40 says io_uring 'uses io_uring'
see "$(grep 'Cannot move' "$work/shown")"
must "show-job says nothing of the setuid program" until_true 40 says program 'another user'
see "$(grep 'Cannot move' "$work/shown")"
refused eventfd 'uses an eventfd with EFD_SEMAPHORE'
refused shm 'System V shared memory'
refused mqueue 'POSIX message queue'
refused userfaultfd 'uses userfaultfd'
refused secret 'uses memfd_secret'
refused userns 'namespace of its own'
refused traced 'is traced'
refused vfork 'process [0-9]+ \(holds\) shares its memory with process [0-9]+, which runs no program of its own yet'
refused clonevm 'shares its memory with process [0-9]+ \(clone with CLONE_VM\)'
for kind in io_uring program eventfd shm mqueue userfaultfd userns traced vfork clonevm; do
    then_moves "$kind"
done
for kind in secret; do
    release "$kind"
    finish "$kind"
    ended_well "$kind" 'holds: good'
done

# A program of the node that was replaced, as by an update, while it runs.
for node in $(nodes); do on "$node" install "$programs/ordered" /usr/local/bin/installed; done
start replaced n1 --group-size 1 -n 2 /usr/local/bin/installed --stop-file="$(stop_file replaced)" --pause-usec=20000
running replaced
on "$(q where replaced 0)" install "$programs/ordered" /usr/local/bin/installed
! migrate replaced 0 "$(a_node_but "$(q where replaced 0)")" --mode stop --wait --timeout 30 >"$work/said" 2>&1 ||
    fail "a group whose program was replaced has moved"
see "$(<"$work/said")"
grep -qE 'process [0-9]+ \(installed\) uses /usr/local/bin/installed, which was replaced' "$work/said" ||
    fail "that does not say which file was replaced"
must "show-job says nothing of the replaced program" until_true 40 says replaced 'was replaced'
release replaced
finish replaced
ended_well replaced hash
