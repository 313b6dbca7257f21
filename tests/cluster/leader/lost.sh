#!/bin/bash
# The leader is killed, stands still, is cut off or powered off, again and again, while jobs are submitted, attached to, start, move, write and end, nodes
# are drained and their cores edited: nobody notices. Each command is done once, no output is lost, results are those of jobs that were left alone.
# limit: 400
# load: 2
. "${BASH_SOURCE[0]%/*}/../lib.sh"
next=

rounds=$(thorough 20 5)
seed=${RM_TEST_SEED:-$RANDOM}
RANDOM=$seed
asker=n5

# lose WAY NODE; find WAY NODE: it is back.
lose() {
    case $1 in
    kill) bed_do stop-rmd "$2" --kill ;;
    term) bed_do stop-rmd "$2" ;;
    stop) on "$2" sh -c 'kill -STOP "$(cat /run/testbed-rmd.pid)"' ;;
    cut) bed_do cut "$2" ;;
    off) bed_do power-off "$2" ;;
    esac >/dev/null
}
find_again() {
    case $1 in
    kill | term) bed_do start-rmd "$2" ;;
    stop) on "$2" sh -c 'kill -CONT "$(cat /run/testbed-rmd.pid)"' ;;
    cut) bed_do heal "$2" ;;
    off) bed_do power-on "$2" ;;
    esac >/dev/null
}

# In the background until the file is there: each call one job, or one drain and its end. What failed is told. In a quick run they leave others room.
until_told() {
    thorough || wait_seconds 0.3
    [[ -e $work/enough ]]
}
submit_all() {
    local i=0 code
    until until_told; do
        i=$((i + 1))
        code=0
        as alice n5 rm-mpirun --job-name "small$i" -n 1 sh -c "echo $i >>/home/alice/done; exit 7" >>"$work/small" 2>&1 || code=$?
        [[ $code == 7 ]] || echo "job $i ended with $code" >>"$work/wrong"
        echo "$i" >"$work/submitted"
    done
}
drain_all() {
    local said
    until until_told; do
        for what in drain-node resume-node; do
            said=$(on n6 rmctl $what n7 2>&1) || echo "$what: $said" >>"$work/wrong"
        done
    done
}
# edit CORES: what n6 has of its 4, in a file that the leader reads.
edit() {
    on n5 sh -c 'printf "n1:0\nn2:0\nn3:0\nn4:4\nn5:4\nn6:%d\nn7:4\n" "$1" >/home/rmd/availability' sh "$1"
}
has_cores() {
    [[ $(q node n6 usable_cores) == "$1" ]]
}
edit_all() {
    local i=0 cores=4
    until until_told; do
        i=$((i + 1))
        cores=$((7 - cores))
        edit $cores
        until_true 40 has_cores $cores || echo "edit $i: n6 has $(q node n6 usable_cores) cores, not $cores" >>"$work/wrong"
        echo "$i" >"$work/edited"
    done
}
attach_all() {
    local i=0 number code
    until until_told; do
        i=$((i + 1))
        code=0
        number=$(as alice n6 rm-mpirun --detach --job-name "kept$i" -n 1 sh -c "echo begin $i; sleep 1; echo end $i; exit 9" 2>>"$work/kept") ||
            echo "job kept$i is not accepted: $(tail -n 1 "$work/kept")" >>"$work/wrong"
        as alice n5 rmctl attach-job "$number" >"$work/attached" 2>>"$work/kept" || code=$?
        [[ $code == 9 && $(<"$work/attached") == "begin $i"$'\n'"end $i" ]] ||
            echo "attach-job $number (kept$i): exit code $code, output '$(<"$work/attached")', $(tail -n 1 "$work/kept")" >>"$work/wrong"
        echo "$i" >"$work/kept-many"
    done
}

# tells_of NODE: the status says that this voter is down, and what may be lost now.
tells_of() {
    on n5 rmctl status >"$work/status"
    grep -q "^Voters: .*$1 (DOWN).*; quorum 2, 0 may be lost\$" "$work/status" &&
        grep -q '^Warning: *no other voter may be lost: then nothing can be changed$' "$work/status"
}

cluster 7 --cores 4
voters_are_first
# They may be powered off: no rank is there.
edit 4
must "the availability file is not in force" until_true 20 eval '[[ $(q node n1 usable_cores) == 0 ]]'
start flood n5 -n 2 --group-size 1 "$programs/flood" --stop-file="$(stop_file flood)" --pause-usec=20000
must "flood does not run" q state flood RUNNING 30 >/dev/null
start moved n5 -n 2 --group-size 1 "$programs/ordered" --stop-file="$(stop_file moved)" --pause-usec=20000
running moved
submit_all &
submitter=$!
drain_all &
drainer=$!
edit_all &
editor=$!
attach_all &
attacher=$!

ways=(kill stop cut off term)
for ((i = 0; i < rounds; i++)); do
    way=${ways[i % ${#ways[@]}]}
    leader=$(q leader)
    sleep "0.$((RANDOM % 1000))"
    begun=$EPOCHREALTIME
    lose "$way" "$leader"
    must "nobody leads after $leader ($way)" until_true 20 eval "next=\$(on n5 rmctl status | sed -n 's/^Leader: *//p') && [[ \$next == n* && \$next != $leader ]]"
    see "$way of $leader: $next leads after $(msec_since "$begun") ms"
    if [[ $way == off ]] && ((i < ${#ways[@]})); then
        until_true 20 tells_of "$leader" || fail "the status does not tell of $leader: $(grep -e ^Voters -e ^Warning "$work/status")"
        see "$(grep ^Voters "$work/status")"
    fi
    # A move that is begun under one leader ends under another.
    to=$(printf 'n4\nn5\nn6\n' | grep -vx "$(q where moved 0)" | shuf -n 1 --random-source=<(yes "$RANDOM"))
    on n5 rmctl migrate-job "$(job moved)" --group 0 --to "$to" >>"$work/migrate" 2>&1 || true
    find_again "$way" "$leader"
    # Who stood still or was cut off is the same rmd as before.
    [[ $way != stop && $way != cut ]] || begun=0
    must "$leader is not back" back "$leader" "$begun"
    must "not all are back" until_true 60 all_joined
    must "not all voters are back" until_true 40 voters_up
done
touch "$work/enough"
must "a job does not end" until_true 60 gone "$submitter"
must "a drain does not end" until_true 60 gone "$drainer"
must "an edit is not in force" until_true 60 gone "$editor"
must "attach-job does not end" until_true 60 gone "$attacher"
if [[ -s $work/wrong ]]; then fail "seed $seed: $(head -n 5 "$work/wrong")"; fi
n=$(<"$work/submitted")
see "seed $seed: $n jobs, $(<"$work/kept-many") attached to, $(<"$work/edited") edits, $(moves_of moved) moves, $(wc -c <"$work/flood.out") bytes of output"
same "jobs that were run" "$(on n5 sort -n /home/alice/done | paste -sd ' ')" "$(seq "$n" | paste -sd ' ')"
same "the nodes that are drained" "$(on n5 rmctl list-nodes --no-header | awk '$2 ~ /DRAIN/' | wc -l)" "$(on n5 rmctl list-nodes --no-header | awk '$1 == "n7" && $2 ~ /DRAIN/' | wc -l)"
flood_ends_whole
release moved
finish moved
ended_well moved hash
on n5 rm /home/rmd/availability
same_as_undisturbed moved 2 --group-size 1
