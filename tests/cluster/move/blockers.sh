#!/bin/bash
# What no move can carry is refused at once and in words, the job goes on, show-job tells of it before anybody tries, and when it is gone the group moves.
# limit: 200
# load: 2
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# says KIND PATTERN [GROUP]
says() {
    rmctl show-job "$(job "$1")" >"$work/shown" && grep -qE "Cannot move.*group ${3:-0} on .*$2" "$work/shown"
}

# refused NAME GROUP PATTERN
refused() {
    local begun=$EPOCHREALTIME
    ! migrate "$1" "$2" "$(a_node_but "$(q where "$1" "$2")")" --mode stop --wait --timeout 30 >"$work/said" 2>&1 || fail "$1: group $2 moved"
    see "$(msec_since "$begun") ms: $(<"$work/said")"
    grep -qE "$3" "$work/said" || fail "$1: that does not say '$3'"
    in_time "$(msec_since "$begun")" 8000 || fail "$1: the refusal took $(msec_since "$begun") ms"
}

warned() {
    rmctl status >"$work/status" && grep -q "Warning: .*$1" "$work/status"
}

# blocked KIND PATTERN [ARG...]: rank 0 of an MPI program has it.
blocked() {
    start "$1" n1 --group-size 1 -n 2 "$programs/holds" "$1" --drop-file="/home/alice/$1.drop" --stop-file="$(stop_file "$1")" "${@:3}"
    running "$1"
    refused "$1" 0 "$2"
}

# then_moves KIND
then_moves() {
    on n1 touch "/home/alice/$1.drop"
    must "$1: does not let go" until_true 20 grep -q dropped "$work/$1.out"
    move "$1" 0 "$(a_node_but "$(q where "$1" 0)")"
    release "$1"
    finish "$1"
    ended_well "$1" 'holds: good'
}

# What the groups of one job have, and what is said of it. Behind "none": what can be seen only of processes that stand still, or by CRIU.
kinds=(
    'traced|is traced'
    'userns|namespace of its own'
    'vfork|vfork'
    'leader|runs on although its first thread has ended'
    'exitsig|was made by clone with another signal than SIGCHLD for its end .10.'
    'deadtimer|has a timer for a thread that has ended'
    'as|has no room left below a limit, .*RLIMIT_AS'
    'nofile|has no room left below a limit, .*RLIMIT_NOFILE'
    'many|20000 descriptors in a process'
    'thread|has /proc/[0-9]+/task/[0-9]+/stat open, a file of a thread'
    'task|has /proc/[0-9]+/stat open, a file of a thread'
    'signals|has no room left below a limit, .*RLIMIT_SIGPENDING'
    'ended|has /proc/[0-9]+/stat open, a file of a thread or of what has ended'
    'hungup|has a terminal open whose other end is closed'
    'ctty|has the terminal of its session open by the name /dev/tty'
    'oneway|sends datagrams to a Unix socket without a name that does not answer'
    'big|has a file of more than 1 GiB open that has no name any more'
    'pidfd|has a pidfd of process 1'
    'path|has a socket or FIFO open by its path only .O_PATH, /home/alice/fifo'
    'mode|has /home/alice/read-only open in a way that its mode does not allow its owner'
    'longfile|has a path of more than 4095 bytes .descriptor [0-9]+.'
    'longdir|has a path of more than 4095 bytes .cwd.'
    'nosearch|has a file open in, the directory /home/alice/nosearch, which its owner may not search'
    'noentry|is in, .* the directory /home/alice/noentry, which its owner may not search'
    'epoll|watches by epoll what it has closed and another process has open .descriptor [0-9]+.'
    'packets|uses a pipe in packet mode'
    'eventfd|uses an eventfd with EFD_SEMAPHORE'
    'secret|uses memfd_secret'
    'fanotify|uses fanotify'
    'perf|uses performance counters'
    'mptcp|has a socket of a protocol .*MPTCP'
    'md5|has a TCP socket whose data the kernel signs or encrypts .TCP-MD5.'
    'alg|has a socket of a protocol .*ALG'
    'vsock|has a socket of a protocol .*VSOCK'
    'unaccepted|has not accepted a connection .TCP port'
    'unaccepted6|has not accepted a connection .TCP port'
    'unsent|a connection was closed whose last data is not at its other end yet'
    'asked|has not accepted a connection .Unix socket'
    'given-up|has not accepted a connection .Unix socket'
    'outside|is connected to a process outside of its group by a Unix socket'
    'queued|has descriptors under way in a socket'
    'netlink|has not read what the kernel has sent to its netlink socket'
    'shm|System V shared memory'
    'mqueue|POSIX message queue'
    'none|'
    'perfmap|uses performance counters'
    'userfaultfd|uses userfaultfd'
    'clonevm|shares its memory with process [0-9]+ .clone with CLONE_VM'
    'apart|has a thread with descriptors of its own .unshare'
    'empty|has not read a message without data in a Unix socket'
    'urgent|has not read urgent data of a connection'
    'fs|shares its working directory with process [0-9]+ .clone with CLONE_FS'
    'shared|has a file of more than 1 GiB open that has no name any more ./home/alice/shared'
    'maps|has no room left below a limit, .*vm.max_map_count'
    'typed|has unread data in a terminal that edits, echoes or packs it'
    'events|has not read events of files that it watches'
    'passcred|has not read messages with credentials'
    'truncated|a Unix socket has an unread datagram that is longer than its receiver may send'
    'mapped|a file is mapped from a directory that its owner may not search'
    'corked|holds back a datagram'
)
has() {
    on n1 test -e "/home/alice/$1.$2"
}
all_are_shown() {
    local i
    unsaid=''
    rmctl show-job "$(job all)" >"$work/shown"
    for i in "${!kinds[@]}"; do
        [[ ${kinds[i]} != none* ]] || break
        [[ ${missing[$i]:-} ]] || grep -qE "Cannot move.*group $i on .*${kinds[i]#*|}" "$work/shown" || unsaid+="${kinds[i]%%|*} "
    done
    [[ ! $unsaid ]]
}
all_are_dropped() {
    local kind
    for kind in "${kinds[@]%%|*}"; do has "$kind" missing || has "$kind" dropped || return 1; done
}

cluster 2 --cores 60
on n1 sh -c 'socat UNIX-LISTEN:/home/alice/outside,fork,mode=777 EXEC:cat >/dev/null 2>&1 & echo $!' >"$work/socat"
must "no socket outside" until_true 10 on n1 test -S /home/alice/outside
start all n1 --group-size 1 -n "${#kinds[@]}" "$programs/uncarried" --dir=/home/alice --stop-file="$(stop_file all)" "${kinds[@]%%|*}"
running all 60
declare -A missing
for i in "${!kinds[@]}"; do ! has "${kinds[i]%%|*}" missing || missing[$i]=yes; done
((${#missing[@]} < 4)) || fail "this kernel lacks too many: ${!missing[*]}"
begun=$EPOCHREALTIME
until_true 12 all_are_shown || fail "show-job does not tell of '$unsaid' within ten seconds"
see "$(msec_since "$begun") ms: show-job tells of all"
for i in "${!kinds[@]}"; do
    [[ ${missing[$i]:-} || ${kinds[i]} == none* ]] || refused all "$i" "${kinds[i]#*|}"
done

# A drain that cannot end says so at once, and so does status; what only a freeze has found is shown as well.
! rmctl drain-node n1 --wait --timeout 5 >"$work/drain" 2>&1 || fail "the drain ended"
see "$(head -n 2 "$work/drain")"
grep -q 'drain-node: n1: group 0 of job .* is traced by .*not drained before this has changed' "$work/drain" || fail "the drain does not say why it cannot end: $(<"$work/drain")"
rmctl drain-node n1 --update >"$work/drain" 2>&1 || fail "the drain is refused"
grep -q 'drain-node: n1: group 0 of job .* is traced by' "$work/drain" || fail "a drain without --wait does not say why it cannot end: $(<"$work/drain")"
rmctl show-node n1 | grep -q 'Cannot move: *group 0 of job .* is traced by' || fail "show-node does not say that group 0 cannot move"
rmctl show-job "$(job all)" >"$work/shown"
for i in "${!kinds[@]}"; do
    [[ ${kinds[i]} != fs* && ${kinds[i]} != truncated* ]] || grep -qE "Was not moved.*group $i on n1.*${kinds[i]#*|}" "$work/shown" || fail "show-job does not say that group $i was not moved"
done
rmctl status >"$work/status"
grep -q 'Warning: .*groups could not be moved.*group 0 of job' "$work/status" || fail "status does not say that groups were not moved: $(<"$work/status")"

rmctl doctor n1 --all >"$work/doctor"
grep -q 'n1: warning: groups: group 0 of job .* is traced by' "$work/doctor" || fail "doctor does not tell of the groups: $(grep ': groups' "$work/doctor")"

# When the reasons are gone, the groups are tried again at once, though they have failed several times by then.
for kind in "${kinds[@]%%|*}"; do on n1 touch "/home/alice/$kind.drop"; done
must "not all let go" until_true 20 all_are_dropped
begun=$EPOCHREALTIME
must "not all move then" rmctl drain-node n1 --update --wait --timeout 90
see "$(msec_since "$begun") ms: n1 is drained"
! rmctl show-job "$(job all)" | grep -q 'Was not moved' || fail "show-job tells of refusals that are over"
same "groups on n2" "$(q place all | grep -c n2)" $((${#kinds[@]} + 1))
rmctl resume-node n1 >/dev/null
on n1 kill "$(<"$work/socat")"
release all
finish all
ended_well all 'uncarried: running'

# Of an MPI program, in one of two ranks.
on n1 install -m 4755 /bin/sleep "$programs/setuid-sleep"
blocked io_uring 'process [0-9]+ \(holds\) uses io_uring'
blocked program 'process [0-9]+ \(setuid-sleep\) runs as another user' --program="$programs/setuid-sleep"
must "show-job says nothing of io_uring" until_true 40 says io_uring 'uses io_uring'
must "show-job says nothing of the setuid program" until_true 40 says program 'another user'
# A checkpoint that was not made stands in status as well, as long as no later one is.
! rmctl checkpoint-job "$(job io_uring)" >"$work/said" 2>&1 || fail "what uses io_uring was saved"
must "status says nothing of the failed checkpoint" until_true 10 warned "the latest checkpoint of 1 job has failed: job $(job io_uring): .*uses io_uring"
for kind in io_uring program; do then_moves "$kind"; done

# A program of the node that was replaced, as by an update, while it runs.
for node in $(nodes); do on "$node" install "$programs/ordered" /usr/local/bin/installed; done
start replaced n1 --group-size 1 -n 2 /usr/local/bin/installed --stop-file="$(stop_file replaced)" --pause-usec=20000
running replaced
on "$(q where replaced 0)" install "$programs/ordered" /usr/local/bin/installed
refused replaced 0 'process [0-9]+ \(installed\) uses /usr/local/bin/installed, which was replaced'
must "show-job says nothing of the replaced program" until_true 40 says replaced 'was replaced'
release replaced
finish replaced
ended_well replaced hash
