#!/bin/bash
# A node loses its power while a group of a job that may start again moves from it or to it, before the commit of the move or after: the job goes on where a whole
# copy is left, else it starts again, once; never do two copies of a rank run, and its result is as undisturbed.
# complete: the simulation loses nodes in moves
# limit: 600
# load: 2
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# "LOST STATE RESTARTS": who loses its power when the move is held in that state, and how often the job then starts again, "any" if both may be. With
# "late" the move is held until then (it cannot go on before); else it may go on as soon as the power is off.
some="source source.transfer 1
destination destination.restore 0
source destination.commit 1 late
source source.release 0
destination destination.open 1"
all="$some
source source.prepare 1
source source.precopy 1
source source.freeze 1
source source.cut 1
source source.restore any
source destination.prepare 1
source destination.transfer any
source destination.restore any
source destination.commit any
source destination.open 0
destination source.prepare 0
destination source.freeze 0
destination source.transfer 0
destination source.restore any
destination source.release 1
destination source.release 1 late
destination destination.prepare 0
destination destination.transfer 0
destination destination.commit 0
destination destination.fill 1"
rows=${RM_TEST_ROWS:-$(thorough "$all" "$some")}

# With faults from a file that is empty but for the one that is to come.
start_again() {
    bed_do stop-rmd "$1"
    start_rmd_with_faults "$1"
    must "$1 is not back" back "$1" "$2"
}

held() {
    on "$1" grep -q "fault point move\.$2\.$3: held\$" /var/log/rmd.log
}

# runs K: all ranks of attempt K have run within the last second.
runs() {
    [[ $(on n1 find /home/alice -name "live.$1.[0-9]*" -newermt '1 second ago' | wc -l) == 4 ]]
}

# went_on RESTARTS: it runs again, in one of the attempts that may be.
went_on() {
    case $1 in
    any) runs "$attempt" || runs $((attempt + 1)) ;;
    *) runs $((attempt + $1)) ;;
    esac
}

cluster 6 --cores 4
voters_are_first
for node in n4 n5 n6; do start_again "$node" "$EPOCHREALTIME"; done
# Not before all nodes know of restarts.
until_true 20 as alice n1 rm-mpirun --on-node-loss restart -n 1 true 2>"$work/level.err" || fail "no job may restart: $(cat "$work/level.err")"
start_looked_at live n1 restart 4 2 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=20000
must "live does not run" until_true 40 pulses live 1 4

printf '  %-12s %-24s %-9s %-18s %s\n' lost state restarts move seconds
while read -r lost state restarts late <&3; do
    begun=$EPOCHREALTIME
    must "live does not run" q state live RUNNING 60 >/dev/null
    attempt=$(q job live attempt)
    from=$(q where live 1)
    stays=$(q where live 0)
    to=$(printf 'n4\nn5\nn6\n' | grep -vx -e "$from" -e "$stays")
    [[ $(q where live -1) == "$stays" ]] || move live -1 "$stays"
    side=$from victim=$from
    [[ $state == source.* ]] || side=$to
    [[ $lost == source ]] || victim=$to
    on "$side" truncate -s 0 /var/log/rmd.log
    on "$side" sh -c "echo move.$state:hold >/run/rmd/fault"
    migrate live 1 "$to" >"$work/migrate" 2>&1 || fail "no move: $(<"$work/migrate")"
    must "$state: no move comes there on $side" until_true 20 held "$side" "${state%.*}" "${state#*.}"
    off=$EPOCHREALTIME
    bed_do power-off "$victim"
    [[ $side == "$victim" || $late ]] || on "$side" rm /run/rmd/fault
    must "$lost $state: $victim is not DOWN" q nodestate "$victim" DOWN 30 >/dev/null
    until_true 60 went_on "$restarts" ||
        fail "$lost $state${late:+ $late}: the job does not go on: $(q job live state) in attempt $(q job live attempt) (it was in $attempt), $(q moves live | tail -n 1)"
    seconds=$(($(msec_since "$off") / 1000))
    [[ $side == "$victim" ]] || on "$side" rm -f /run/rmd/fault
    bed_do power-on "$victim"
    start_again "$victim" "$off"
    must "not all are back" until_true 30 all_joined
    q settled 60 >"$work/settled" 2>&1 || fail "$lost $state: the move does not end: $(<"$work/settled")"
    must "$lost $state: the job does not run" until_true 20 went_on "$restarts"
    one_copy live
    printf '  %-12s %-24s %-9s %-18s %s\n' "$lost" "$state${late:+ $late}" "$(($(q job live attempt) - attempt))" "$(q moves live | tail -n 1 | cut -d ' ' -f 3-5)" \
        "goes on after $seconds, in all $(($(msec_since "$begun") / 1000))"
done 3<<<"$rows"
for node in n4 n5 n6; do on "$node" rm -f /run/rmd/fault; done
release live
finish live
ended_well live hash
told_of_restarts live
one_copy live
see "$(paste -sd ';' "$work/copies")"
same_as_undisturbed live 4 --group-size 2
# What a node lost with its power is no leftover, and it has a new boot's processes.
inventory_all >"$work/before"
