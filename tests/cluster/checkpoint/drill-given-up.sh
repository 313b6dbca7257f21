#!/bin/bash
# While copies of a job are tried, a node of it is lost, a node is to be empty soon, and its time limit is near: the drill is given up and says why, the job is recovered, leaves, or is saved as without it. A job that
# has a named pipe is not tried, and reads from it what it has written, once. In the end each result is the same to the last bit, and nothing of a drill is left anywhere.
# complete: checkpoint/drill has the main way
# limit: 400
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 4 --cores 2 --set cluster.node_timeout=3s
all_rmds_with_faults
must "there are no three voters" until_true 30 voters_up
until_true 20 as alice n1 rm-mpirun --checkpoint 1h -n 1 true 2>"$work/level" || fail "no job may be saved: $(<"$work/level")"

# hold_drill NAME NODE: one that stays where it restores the copies there.
hold_drill() {
    on "$2" sh -c 'echo move.drill.restore:hold >/run/rmd/fault'
    as alice n1 rmctl drill "$(job "$1")" --timeout 120 >"$work/drill" 2>&1 &
    drilling=$!
    until_true 60 copy_on "$2" || fail "$1: no copy is made on $2: $(<"$work/drill")"
}
copy_on() {
    on "$1" ls /run/rmd/capsules | grep -q '\.i[0-9]\{19,\}$'
}
# given_up NAME WORDS: in one line, with exit status 1.
given_up() {
    local status=0
    must "$1: the drill goes on: $(rmctl events | tail -n 5)" until_true 100 gone $drilling
    wait $drilling || status=$?
    see "$1: $(<"$work/drill")"
    same "$1: exit status of the drill" $status 1
    grep -q "was given up: $2" "$work/drill" || fail "$1: unclear: $(<"$work/drill")"
    same "$1: lines of the drill" "$(wc -l <"$work/drill")" 1
}
# What there is of drills: copies, their files, what was stored of them.
drilled() {
    local node number id
    id=$(job "$1") number=$(q job "$1" drill.id)
    for node in $(nodes); do
        on "$node" sh -c 'find /run/rmd /var/lib/rmd/spool /var/lib/rmd/checkpoints -maxdepth 2 -name "*.i[0-9]*" 2>/dev/null | grep -E "i[0-9]{19}"
            find "/var/lib/rmd/checkpoints/$1" -name "manifest-$2" 2>/dev/null; grep -oE "j[0-9.a-z-]*[.]i[0-9]{19}" /proc/mounts' sh "$id" "$number" | sed "s/^/$node: /"
    done
}
nothing_drilled() {
    [[ ! $(drilled "$1") ]]
}
attempt() {
    [[ $(q job "$1" attempt) == "$2" && $(q job "$1" state) =~ RUNNING|FOLDED ]]
}

start live n1 --on-node-loss restart --checkpoint 1h --group-size 1 -n 4 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=20000
running live 60
rmctl checkpoint-job "$(job live)" --timeout 60 >"$work/said" 2>&1 || fail "it is not saved: $(<"$work/said")"

# A node of the job is lost.
side=$(q place live | awk '$1 >= 0 && $2 != "n1" { print $2; exit }')
hold_drill live "$side"
bed_do power-off "$side"
lost=$EPOCHREALTIME
given_up live "a node of the job is down\|the job starts again\|the job has ended, or starts again"
must "live is not recovered: $(q job live state)" until_true 60 attempt live 2
bed_do power-on "$side"
must "$side does not join" back "$side" "$lost"
bed_do stop-rmd "$side"
start_rmd_with_faults "$side"
must "not all joined again" until_true 30 all_joined
must "of the drill is left: $(drilled live)" until_true 30 nothing_drilled live

# It must leave a node soon. It may have left before the leader looks: so its moves wait until the drill has ended.
side=$(q place live | awk '$1 >= 0 && $2 != "n1" { print $2; exit }')
hold_drill live "$side"
on "$side" sh -c 'echo move.source.prepare:hold >>/run/rmd/fault'
began=$EPOCHREALTIME
must "drain-node" rmctl drain-node "$side" --deadline 15s >/dev/null
given_up live "the job is to be saved before it has to leave"
took=$(msec_since "$began")
((took < 15000)) || fail "it was given up at the deadline only, after $took ms"
on "$side" sed -i /move.source/d /run/rmd/fault
must "$side is not empty: $(q place live | paste -sd ' ')" q nodestate "$side" DRAINED 40 >/dev/null
see "$side is empty after $(msec_since "$began") ms; live is $(q job live state), attempt $(q job live attempt)"
must "resume-node" rmctl resume-node "$side" >/dev/null
on "$side" rm -f /run/rmd/fault
must "of the drill is left: $(drilled live)" until_true 30 nothing_drilled live
must "live does not run" q state live RUNNING,FOLDED 60 >/dev/null
sleep 1
release live
finish live 90
ended_well live hash

# Its time limit is near.
start short n1 --checkpoint 1h --time 60s --checkpoint-at-limit --group-size 1 -n 2 "$programs/ordered" --stop-file="$(stop_file short)" --pause-usec=20000
running short 40
side=$(q place short | awk '$1 >= 0 { print $2; exit }')
hold_drill short "$side"
given_up short "the job is to be saved before it has to leave"
saved_at_limit() {
    rmctl events | grep -q "job $(job short) .*saved as checkpoint\|saved as checkpoint $(job short)[.]"
}
must "short is not saved: $(rmctl events | tail -n 5)" until_true 40 saved_at_limit
must "short does not go on" until_true 60 attempt short 2
on "$side" rm -f /run/rmd/fault
must "of the drill is left: $(drilled short)" until_true 30 nothing_drilled short
release short
finish short 90
ended_well short hash
same_as_undisturbed live 4 --group-size 1
same_as_undisturbed short 2 --group-size 1

# What is in a named pipe stays there once.
bed_do exec n1 -- sh -c 'cat >/home/alice/rank.sh' <<'EOF'
python3 -c 'import os, sys, time
path = "/home/alice/pipe"
os.mkfifo(path)
fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
os.write(fd, b"once")
open("/home/alice/written", "w").close()
while not os.path.exists(sys.argv[1]):
    time.sleep(0.1)
print("read:", os.read(fd, 1000).decode(), flush=True)' "$2" &
"$1/ordered" --stop-file="$2" --pause-usec=20000
code=$?
wait
exit $code
EOF
start pipes n1 --checkpoint 1h -n 1 sh /home/alice/rank.sh "$programs" "$(stop_file pipes)"
running pipes 40
must "nothing is in the pipe" until_true 20 on n1 test -e /home/alice/written
status=0
as alice n1 rmctl drill "$(job pipes)" --timeout 90 >"$work/drill" 2>&1 || status=$?
see "$(grep -m 1 pipe "$work/drill")"
same "exit status with a named pipe ($(<"$work/drill"))" $status 1
grep -qE '^ *0 .*the job uses the named pipe /home/alice/pipe while it runs, so this cannot be rehearsed' "$work/drill" || fail "the pipe is not named: $(<"$work/drill")"
must "of the drill is left: $(drilled pipes)" until_true 30 nothing_drilled pipes
release pipes
finish pipes 60
ended_well pipes hash
same "what was in the pipe" "$(grep -o 'read: .*' "$work/pipes.out")" "read: once"
same_as_undisturbed pipes 1
on n1 rm -f /home/alice/pipe /home/alice/written /home/alice/rank.sh
