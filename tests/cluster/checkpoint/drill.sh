#!/bin/bash
# A drill says what it takes to save and restore a job, and names what could not be restored; it changes nothing. The job's result, its files, checkpoints and capsules are as without it, and
# nothing is left, also if its client or an rmd is killed in the middle.
# complete: checkpoint/faults restores, and unit tests show the steps of a drill
# limit: 400
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# drill NAME: its exit code in drilled, what it says in $work/drill.
drill() {
    drilled=0
    as alice n2 rmctl drill "$(job "$1")" --timeout 120 >"$work/drill" 2>&1 || drilled=$?
}
# A result for each part, all of them good.
all_good() {
    same "$1: its exit code ($(<"$work/drill"))" "$drilled" 0
    same "$1: parts that are good" "$(grep -c ' good$' "$work/drill")" "$2"
    grep -qE "^job $(job "$1") can be saved and restored: pause [0-9.]+ s, " "$work/drill" || fail "$1: no verdict: $(<"$work/drill")"
    sed 's/^/    /' "$work/drill"
}
# What a drill must not change.
lasting() {
    local node number
    number=$(job "$1")
    q place "$1"
    q job "$1" attempt
    q job "$1" epoch
    on n1 rmctl list-checkpoints --no-header "$number" | sed 's/  *[0-9a-z]* ago//; s/just now//' | tr -s ' '
    for node in $(nodes); do
        on "$node" sh -c 'cd /run/rmd/capsules && ls -d "j$1".*; ls /run/rmd/checkpoints | grep -v ^save-; cd /var/lib/rmd/spool && ls -d "j$1".*; cd ../checkpoints && find "$1" | sort' sh "$number" 2>/dev/null |
            sed "s/^/$node: /"
    done
}
no_movers() {
    local node
    for node in $(nodes); do
        if on "$node" pgrep -x rm-mover >/dev/null; then return 1; fi
    done
}
as_before() {
    lasting "$1" >"$work/lasting" 2>&1 && cmp -s "$work/lasting" "$work/lasting-before"
}
unchanged() {
    until_true 20 as_before "$1" || fail "$1: changed: $(diff "$work/lasting-before" "$work/lasting" | head -n 20)"
}
# Of the drill that goes on: its capsule's incarnation is none that the state gives.
copy_on() {
    on "$1" ls /run/rmd/capsules | grep -q '\.i[0-9]\{19,\}$'
}
# Of what kind its eth0 is.
links_of_copy() {
    on "$1" sh -c 'for pid in $(pgrep -x rm-capsule); do
        tr "\0" " " <"/proc/$pid/cmdline" | grep -qE "[.]i[0-9]{19,} *\$" || continue
        nsenter -t "$pid" -n ip -d link show dev eth0 | grep -oE "macvlan|veth|bridge" | head -n 1
        break
    done'
}
linked_on() {
    [[ $(links_of_copy "$1") ]]
}
over() {
    [[ $(q job "$1" last_checkpoint) == $(q job "$1" drill.id 2>/dev/null) ]]
}

cluster 3 --cores 2 --set cluster.node_timeout=20s
all_rmds_with_faults
must "there are no three voters" until_true 30 voters_up
must "no job may be saved" until_true 20 as alice n1 rm-mpirun --checkpoint 1h -n 1 true

# Nothing but the drill has ever saved it.
start plain n1 --group-size 1 -n 3 "$programs/ordered" --stop-file="$(stop_file plain)" --pause-usec=20000
running plain 40
lasting plain >"$work/lasting-before" 2>&1
drill plain
all_good plain 4
unchanged plain
must "an rm-mover is left" until_true 20 no_movers
same "checkpoints of it" "$(on n1 rmctl list-checkpoints --no-header "$(job plain)" | wc -l)" 0

as bob n1 rmctl drill "$(job plain)" >"$work/bob" 2>&1 && fail "bob may drill alice's job"
grep -q 'no job' "$work/bob" || fail "unclear: $(<"$work/bob")"
see "another user: $(<"$work/bob")"
must "an administrator may not" rmctl drill "$(job plain)" --timeout 120 >"$work/drill"
rmctl drill 4711 >"$work/none" 2>&1 && fail "there is a job 4711"
see "no such job: $(<"$work/none")"

# The client is killed while the copies are restored; a second drill meanwhile is refused; then that node's rmd is killed.
side=$(q place plain | awk '$1 >= 0 && $2 != "n1" { print $2; exit }')
for what in client rmd; do
    on "$side" sh -c 'echo move.drill.restore:hold >/run/rmd/fault'
    as alice n2 rmctl drill "$(job plain)" >"$work/hung-up" 2>&1 &
    pid=$!
    must "no copy is made on $side" until_true 60 copy_on "$side"
    must "$what: the copy on $side has no link" until_true 20 linked_on "$side"
    same "$what: links that leave the copy on $side" "$(links_of_copy "$side")" veth
    as alice n1 rmctl drill "$(job plain)" >"$work/second" 2>&1 && fail "two drills at once"
    grep -q "a drill of job $(job plain) is being made already" "$work/second" || fail "unclear: $(<"$work/second")"
    if [[ $what == client ]]; then
        on n2 sh -c 'kill -KILL $(pgrep -x rmctl)' || fail "there is no client to kill"
        if wait "$pid"; then fail "the client was not killed"; fi
    else
        on "$side" sh -c 'rm /run/rmd/fault; read -r pid </run/testbed-rmd.pid && kill -KILL "$pid"'
        must "rmd on $side stays" until_true 10 eval '! rmd_runs $side'
        start_rmd_with_faults "$side"
    fi
    on "$side" rm -f /run/rmd/fault
    must "the drill does not come to its end without its $what" until_true 60 over plain
    [[ $what == client ]] || wait "$pid" || fail "the drill without its $what: $(<"$work/hung-up")"
    unchanged plain
    see "its $what killed in the middle: nothing is left; $(on n1 rmctl show-job "$(job plain)" | grep '^Drill')"
done
release plain
finish plain
ended_well plain hash
same_as_undisturbed plain 3 --group-size 1

# With checkpoints, and files that are written in place, which a restart would put back.
as alice n1 mkdir -p /home/alice/files
start saved n1 --on-node-loss restart --checkpoint 1h --checkpoint-files copy --group-size 1 -n 3 "$programs/records" --dir=/home/alice/files --iterations=20000 --stop-file="$(stop_file saved)" --pause-usec=20000 --ledger
must "saved does not run" q state saved RUNNING 30 >/dev/null
must "no file of it" until_true 30 on n1 test -s /home/alice/files/append.0
must "it is not saved" rmctl checkpoint-job "$(job saved)" --timeout 60 >"$work/checkpoint"
lasting saved >"$work/lasting-before" 2>&1
drill saved
all_good saved 4
unchanged saved
must "no checkpoint after a drill" rmctl checkpoint-job "$(job saved)" --timeout 60 >"$work/checkpoint"
must "that one is no good" rmctl verify-checkpoint "$(job saved).3" >"$work/verified"
release saved
finish saved
ended_well saved 'good$'

# A group with a file that it may not open again cannot be saved. The name of a socket stays with who runs.
bed_do exec n1 -- sh -c 'cat >/home/alice/rank.sh' <<'EOF'
exec 7>"/home/alice/closed.$OMPI_COMM_WORLD_RANK"
if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then
    chmod 0 /home/alice/closed.1
else
    python3 -c 'import os, socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind("/home/alice/closed.sock")
s.listen(5)
open("/home/alice/closed.listens", "w").close()
while not os.path.exists(sys.argv[1]):
    time.sleep(0.1)' "$2" </dev/null >/dev/null 2>&1 &
fi
exec "$1/ordered" --stop-file="$2" --pause-usec=20000
EOF
start closed n1 --group-size 1 -n 2 sh /home/alice/rank.sh "$programs" "$(stop_file closed)"
running closed 40
must "no socket" until_true 20 on n1 test -e /home/alice/closed.listens
lasting closed >"$work/lasting-before" 2>&1
drill closed
same "exit code of what cannot be saved ($(<"$work/drill"))" "$drilled" 1
grep -q '/home/alice/closed.1 open in a way that its mode does not allow its owner' "$work/drill" || fail "the file is not named: $(<"$work/drill")"
on n1 chmod 600 /home/alice/closed.1
drill closed
same "exit code of what cannot be restored ($(<"$work/drill"))" "$drilled" 1
grep -qE '^ *0 .*the job uses the socket /home/alice/closed.sock while it runs' "$work/drill" || fail "the socket is not named: $(<"$work/drill")"
grep -q 'but 1 of 3 parts were not restored' "$work/drill" || fail "no verdict: $(<"$work/drill")"
see "a socket:"
sed 's/^/    /' "$work/drill"
unchanged closed
must "the socket is not that of the job any more" as alice n1 python3 -c 'import socket
socket.socket(socket.AF_UNIX).connect("/home/alice/closed.sock")'
release closed
finish closed
ended_well closed hash
same_as_undisturbed closed 2 --group-size 1

# Where there is no room for two, the second is not made.
for n in $(nodes); do
    on "$n" sed -i -e '/^memory = /d' -e '/^\[node\]/a memory = 250M' /etc/rmd/rmd.conf
done
all_rmds_with_faults
start big n1 --group-size 1 -n 1 "$programs/memory" --mb=150 --stop-file="$(stop_file big)"
running big 40
drill big
same "exit code without room ($(<"$work/drill"))" "$drilled" 1
grep -qE '^ *0 .*not tried: a second copy needs [0-9]+ MB of memory, and [0-9]+ MB are free' "$work/drill" || fail "unclear: $(<"$work/drill")"
see "no room: $(grep -m 1 'not tried' "$work/drill")"
release big
finish big
ended_well big good
rmctl drill "$(job big)" >"$work/ended" 2>&1 && fail "a job that has ended can be drilled"
see "it has ended: $(<"$work/ended")"
on n1 sh -c 'rm -rf /home/alice/files /home/alice/closed.* /home/alice/rank.sh'
