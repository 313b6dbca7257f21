#!/bin/bash
# The leader is lost just when a move is in a certain state: killed, without power, cut off, or it stands still; elsewhere, or on the very node whose
# state it is; or its disk is full. In each state (in a quick run some): one copy of the capsule goes on, on one node, and the job's result is right.
# complete: the simulation loses the leader in each state of a move
# limit: 1500
# load: 2
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# "STATE WAY": a leader elsewhere; "STATE kill-here": the one whose state it is leads. The last rows are those with a full disk, for which the voters get
# small ones.
states="source.prepare source.precopy source.freeze source.cut source.transfer source.restore source.release
    destination.prepare destination.transfer destination.restore destination.commit destination.open destination.fill"
all=$(for state in $states; do printf '%s\n' "$state kill" "$state stop" "$state off" "$state cut" "$state kill-here"; done
    for state in $states; do echo "$state full"; done)
some="source.freeze kill
source.restore stop
source.release kill
destination.restore off
destination.commit stop
destination.commit off
destination.open kill
destination.fill kill
source.restore cut
source.transfer kill-here
destination.commit kill-here
destination.commit full"
rows=${RM_TEST_ROWS:-$(thorough "$all" "$some")}

# up NODE: its rmd runs, with faults from a file that is empty but for the one that is to come.
up() {
    rmd_runs "$1" || start_rmd_with_faults "$1"
}

lose() {
    case $1 in
    kill) bed_do stop-rmd "$2" --kill ;;
    stop) on "$2" sh -c 'kill -STOP "$(cat /run/testbed-rmd.pid)"' ;;
    off) bed_do power-off "$2" ;;
    cut) bed_do cut "$2" ;;
    full) on "$2" sh -c 'cd /var/lib/rmd && dd if=/dev/zero bs=64k >>fill; dd if=/dev/zero bs=512 >>fill' 2>/dev/null ;;
    esac >/dev/null
}
find_again() {
    case $1 in
    stop) on "$2" sh -c 'kill -CONT "$(cat /run/testbed-rmd.pid)"' ;;
    off)
        bed_do power-on "$2"
        bed_do stop-rmd "$2"
        up "$2"
        ;;
    cut) bed_do heal "$2" ;;
    full) on "$2" rm /var/lib/rmd/fill ;;
    *) up "$2" ;;
    esac >/dev/null
}

next=
another_leads() {
    next=$(on "$asker" rmctl status | sed -n 's/^Leader: *//p') && [[ $next == n* && $next != "$1" ]]
}

# on_disk mount|umount: the voters' state is on small disks, or where it was before.
disks=''
on_disk() {
    local node begun=$EPOCHREALTIME
    [[ $disks != "$1" ]] || return 0
    disks=$1
    for node in $voters; do bed_do stop-rmd "$node"; done
    for node in $voters; do
        # shellcheck disable=SC2016 # the node's shell expands it
        on "$node" sh -ec 'd=/var/lib/rmd; cp -a $d $d.copy
            if [ $1 = mount ]; then mount -t tmpfs -o size=32m tmpfs $d; else umount -l $d; find $d -mindepth 1 -delete; fi
            cp -a $d.copy/. $d/; rm -r $d.copy' sh "$1" || fail "no disk on $node"
        up "$node"
    done
    for node in $voters; do must "$node is not back" back "$node" "$begun"; done
    must "not all voters are back" until_true 60 voters_up
}

# A job with so large an environment that a full disk has no room for it: who leads lets another one lead for it, at most once a minute.
submit_large() {
    # shellcheck disable=SC2016 # the node's shell expands it
    as alice n5 bash -c 'x=$EPOCHREALTIME$(head -c 100000 /dev/zero | tr "\0" x); A=$x B=$x C=$x D=$x E=$x F=$x; export A B C D E F; exec rm-mpirun -n 1 true'
}

# held NODE ROLE STATE: a move is now there.
held() {
    on "$1" grep -q "fault point move\.$2\.$3: held\$" /var/log/rmd.log
}

# Ranks of the job that run, over all nodes: "NODE NODE".
ranks_at() {
    local node n
    for node in $(nodes); do
        for ((n = $(on "$node" "$programs/count" ordered); n > 0; n--)); do printf '%s ' "$node"; done
    done
}
where_they_belong() {
    [[ $(ranks_at) == "$(for group in 0 1; do q where moved $group; done | sort | paste -sd ' ') " ]]
}

cluster 5 --cores 4
asker=n5
voters_are_first
voters="n1 n2 n3"
begun=$EPOCHREALTIME
for node in $(nodes); do
    bed_do stop-rmd "$node"
    up "$node"
done
for node in $(nodes); do must "$node is not back" back "$node" "$begun"; done
must "not all are back" until_true 30 all_joined
must "not all voters are back" until_true 30 voters_up
start moved n5 -n 2 --group-size 1 "$programs/ordered" --stop-file="$(stop_file moved)" --pause-usec=20000
running moved
for group in -1 1; do
    [[ $(q where moved $group) == n5 ]] || move moved $group n5
done

bad=0 handed_over=0
printf '  %-20s %-10s %-18s %-9s %s\n' state leader move result seconds
while read -r state way <&3; do
    [[ $way != full ]] || on_disk mount
    begun=$EPOCHREALTIME
    leader=$(q leader)
    here=$(q where moved 0)
    # Who leads may lose its power: then nothing of the job is to be there.
    from=n4 to=n5
    if [[ $way == kill-here ]]; then
        if [[ $state == source.* ]]; then from=$leader; else to=$leader; fi
    elif [[ $here == n5 ]]; then
        from=n5 to=n4
    fi
    [[ $here == "$from" ]] || move moved 0 "$from"
    same "who leads" "$(q leader)" "$leader"
    side=$from
    [[ $state == source.* ]] || side=$to
    on "$side" truncate -s 0 /var/log/rmd.log
    action=hold
    [[ $way != kill-here ]] || action=kill
    on "$side" sh -c "echo move.$state:$action >/run/rmd/fault"
    must "no move" migrate moved 0 "$to" >"$work/migrate" 2>&1
    if [[ $way == kill-here ]]; then
        must "$state: rmd on $side was not killed" until_true 20 eval "! rmd_runs $side"
    else
        must "$state: no move comes there on $side" until_true 20 held "$side" "${state%.*}" "${state#*.}"
        lose "$way" "$leader"
        if [[ $way == full ]]; then
            submit_large >"$work/large" 2>&1 || grep -q 'disk is full' "$work/large" || fail "$state $way: a job is not taken: $(<"$work/large")"
            [[ $(q leader) == "$leader" ]] || handed_over=$((handed_over + 1))
        fi
        on "$side" rm /run/rmd/fault
    fi
    # With a full disk it may lead on, or let another one lead.
    if [[ $way == full ]]; then
        must "$state $way: the move does not end" q settled 60 >"$work/settled" 2>&1
    else
        must "$state $way: nobody leads after $leader" until_true 30 another_leads "$leader"
    fi
    find_again "${way%-here}" "$leader"
    since=$begun
    [[ $way != stop && $way != cut && $way != full ]] || since=0
    must "$state $way: $leader is not back" back "$leader" "$since"
    must "$state $way: not all are back" until_true 60 all_joined
    must "$state $way: not all voters are back" until_true 60 voters_up
    verdict=right
    q settled 60 >"$work/settled" 2>&1 || verdict="not settled: $(<"$work/settled")"
    until_true 10 where_they_belong || verdict="ranks run on $(ranks_at), not on $(q place moved | paste -sd ',')"
    [[ $(q job moved state) == RUNNING ]] || verdict="the job is $(q job moved state)"
    [[ $verdict == right ]] || bad=1
    printf '  %-20s %-10s %-18s %-9s %s\n' "$state" "$way" "$(q moves moved | tail -n 1 | cut -d ' ' -f 3-5)" "$verdict" "$(($(msec_since "$begun") / 1000))"
done 3<<<"$rows"
((bad == 0)) || fail "see the table"
if [[ $disks ]]; then
    ((handed_over > 0)) || fail "nobody with a full disk has let another one lead"
    see "$handed_over times one with a full disk has let another one lead"
    on_disk umount
fi
for node in $(nodes); do on "$node" rm -f /run/rmd/fault; done
release moved
finish moved
ended_well moved hash
same_as_undisturbed moved 2 --group-size 1
