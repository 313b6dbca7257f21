#!/bin/bash
# Moves and a drain that are asked for while mpirun has not started the ranks of a group yet, since it takes its time: all of them
# wait for the ranks, and the group can be moved as any other afterwards.
# limit: 90
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# left NAME NODE
left() {
    [[ $(q where "$1" 0) != "$2" ]]
}

cluster 3 --cores 2 --set sched.move_timeout=10s
# Jobs with this in their PATH have an mpirun that begins after 4 s.
for node in n1 n2 n3; do
    as alice $node mkdir -p late
    on $node sh -c 'printf "#!/bin/sh\nsleep 4\nexec /usr/bin/mpirun \"\$@\"\n" >/home/alice/late/mpirun && chmod 755 /home/alice/late/mpirun'
done
settings=(PATH=/home/alice/late:/usr/bin:/bin)
for name in asked checkpointed drained; do
    start $name n1 --checkpoint 1h --group-size 2 -n 2 "$programs/ordered" --stop-file="$(stop_file $name)" --pause-usec=20000
    must "$name does not run" q state $name RUNNING 20 >/dev/null
    from=$(q where $name 0)
    other=$(nodes | grep -vx "$from" | head -n 1)
    case $name in
    asked) migrate $name 0 "$other" --wait --timeout 30 >"$work/early" 2>&1 || fail "no move: $(cat "$work/early")" ;;
    checkpointed) on n1 rmctl checkpoint-job "$(job $name)" --timeout 30 >"$work/early" 2>&1 || fail "no checkpoint: $(cat "$work/early")" ;;
    drained) on n1 rmctl drain-node "$from" >"$work/early" 2>&1 ;;
    esac
    see "$name, before its ranks are there: $(tr '\n' ' ' <"$work/early" | cut -c 1-150)"
    running $name
    if [[ $name == drained ]]; then
        until_true 30 left $name "$from" || fail "$name is still on $from: $(q moves $name | tail -n 2 | tr '\n' '|')"
        on n1 rmctl resume-node "$from" >/dev/null
    else
        now=$(q where $name 0)
        to=$(nodes | grep -vx "$now" | head -n 1)
        move $name 0 "$to"
    fi
    release $name
    finish $name
    ended_well $name hash
done
