#!/bin/bash
# A program that writes all of its memory again and again, faster than the network carries it, gets less processor time while its group moves, so
# that it stands still for a part of the time that its memory takes; then it is as fast as before, also where the move is given up. With
# last = freeze it is not slowed down.
# complete: unit tests of pace show who is slowed, and how much
# limit: 300
# load: 2
. "${BASH_SOURCE[0]%/*}/../lib.sh"
mib=32

# moved NODE: group 1; $freeze and $slowed in us.
moved() {
    migrate big 1 "$1" --wait --timeout 120 >"$work/migrate" 2>&1 || fail "to $1: $(<"$work/migrate")"
    q settled 60 >/dev/null || fail "not settled"
    read -r tracked _ _ freeze why < <(q way big 1)
    same "tracked${why:+ ($why)}" "$tracked" yes
    slowed=$(on n1 python3 -c 'import json, sys; print(json.loads(sys.argv[1])["moves"][-1]["slow_usec"])' "$(rmctl list-moves --json)")
    see "to $1: slowed down for $((slowed / 1000)) ms, frozen for $((freeze / 1000)) ms"
}

# limits: the limits of processor time that are left anywhere.
limits() {
    cat /sys/fs/cgroup/cpu*/rmd-capsules/*/cpu.cfs_quota_us 2>/dev/null
    for node in $(nodes); do
        on "$node" sh -c 'cat /run/controllers/cpu/*/rmd-capsules/*/cpu.cfs_quota_us; cat /sys/fs/cgroup/*/payload/cpu.max /sys/fs/cgroup/*/*/payload/cpu.max' 2>/dev/null
    done
}

cluster 3 --cores 2 --link 300mbit
for node in $(nodes); do give_controllers "$node"; done
start big n1 --group-size 1 -n 2 "$programs/memory" --mb=$mib --only-rank=1 --zero-percent=0 --dirty --stop-file="$(stop_file big)"
running big 60
[[ $(q where big 1) == n1 ]] || move big 1 n1
if ! v1_controllers | grep -qx cpu && ! on n1 grep -qw cpu /sys/fs/cgroup/cgroup.controllers; then
    moved n2
    same "slowed down" "$slowed" 0
    see "NOT SLOWED DOWN here: emulated nodes get no cpu controller on this machine"
    release big
    finish big 120
    ended_well big good
    exit 0
fi
for to in n2 n3 n1; do
    moved "$to"
    ((slowed > 0)) || fail "it was not slowed down"
    echo "$freeze" >>"$work/slow"
    same "limits that are left" "$(limits | grep -v -- -1 | grep -v max)" ''
done
on n1 rmctl events | grep -q 'moved from n3 to n1, slowed down for .* s, frozen for' || fail "no event tells that it was slowed down"

# Given up while it is slow, by the death of rm-mover, and of rmd with it.
# kill_when_slow NAME...: on n1.
kill_when_slow() {
    on n1 sh -c 'for i in $(seq 400); do
            if cat /run/controllers/cpu/*/rmd-capsules/*/cpu.cfs_quota_us /sys/fs/cgroup/*/payload/cpu.max /sys/fs/cgroup/*/*/payload/cpu.max 2>/dev/null | grep -q "^[1-9]"; then
                for name; do kill -KILL $(pidof "$name"); done
                exit 0
            fi
            sleep 0.05
        done
        exit 1' sh "$@"
}
no_limit() {
    [[ ! $(limits | grep -v -- -1 | grep -v max) ]]
}
for dies in rm-mover "rmd rm-mover"; do
    migrate big 1 n2 --timeout 60 >"$work/migrate" 2>&1 || fail "no move: $(<"$work/migrate")"
    # shellcheck disable=SC2086
    kill_when_slow $dies || fail "it is not slowed down"
    [[ $dies != rmd* ]] || give_controllers n1
    must "$dies killed: it stays slow" until_true 10 no_limit
    q settled 60 >/dev/null || fail "$dies killed: the move does not end"
    same "$dies killed: where it is" "$(q where big 1)" n1
    see "$dies killed while it was slow: it runs on n1, without a limit"
done

for node in $(nodes); do on "$node" sh -c "printf '\n[move]\nlast = freeze\n' >>/etc/rmd/rmd.conf"; done
give_controllers n1
moved n2
same "slowed down with last = freeze" "$slowed" 0
slow=$(sort -g "$work/slow" | head -n 1)
see "frozen for $((slow / 1000)) ms at best when slowed down, $((freeze / 1000)) ms when not"
((2 * slow < freeze)) || fail "no shorter freeze: $slow us when slowed down, $freeze us when not"
release big
finish big 120
ended_well big good
