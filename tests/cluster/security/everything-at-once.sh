#!/bin/bash
# Users do at once, on three nodes, all that is known to hold up others: they ask, submit and cancel without end, connect to rmd's socket, to the peers' port and to
# movers' ports without a word, write nonsense for rm-agent, and have a job with thousands of descriptors saved again and again. Meanwhile root's rmctl is
# answered within a second, the moves of another user's job all arrive, and rmd, PID 1 of capsules and the logs stay small.
# complete: each of them has a test of its own
# load: 2
# limit: 200
. "${BASH_SOURCE[0]%/*}/../lib.sh"

seconds=$(thorough 60 12)
# What rmd-cluster(7) promises of local users' clients; what a capsule's PID 1 may have; and lines: a burst of each kind, and then some each second.
rmd_kb=$((192 << 10)) init_kb=$((16 << 10)) most_lines=$((3000 + 20 * seconds))

cluster 3 --cores 4
until_true 20 as alice n1 rm-mpirun --checkpoint 1h -n 1 true 2>"$work/level" || fail "no job may be saved: $(<"$work/level")"
start live n1 --group-size 1 -n 2 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=20000
running live
user=bob
start many n2 --checkpoint 1h -n 1 python3 -c 'import os, resource, sys, time
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
for _ in range(15000):
    os.dup(0)
print("many: running", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)' "$(stop_file many)"
running many 40
start litter n3 -n 1 "$programs/litter" "$seconds"
stop_many=$(stop_file many)
user=alice
for n in $(nodes); do
    before[${n#n}]=$(memory_of "$n" VmRSS) lines[${n#n}]=$(bed_do logs "$n" | wc -l)
done

saves_many() {
    until [[ -e $work/enough ]]; do
        as bob n2 rmctl checkpoint-job "$(job many)" --timeout 60 >>"$work/saved" 2>&1 || true
    done
}
saves_many &
saver=$!
for n in $(nodes); do
    as bob "$n" "$programs/badclient" movers "$seconds" >"$work/movers.$n" 2>&1 &
    attacks+=($!)
    as bob "$n" "$programs/badclient" silent 200 "$seconds" >"$work/silent.$n" 2>&1 &
    attacks+=($!)
done
# By alice, since bob has no connection left for it.
as alice n1 "$programs/askwithoutend" 8 "$seconds" use >"$work/use" 2>&1 &
attacks+=($!)
as alice n2 "$programs/askwithoutend" 8 "$seconds" churn >"$work/churn" 2>&1 &
attacks+=($!)
as bob n3 "$programs/badclient" strangers 10.77.0.1 "$seconds" >"$work/strangers" 2>&1 &
attacks+=($!)
on n1 "$programs/hostile" /run/rmd/rmd.sock "$seconds" 20000 50 >"$work/hostile" 2>&1 &
attacks+=($!)
asks_root n1 "$seconds"

began=$EPOCHREALTIME moves=0
while (($(msec_since "$began") < seconds * 1000 || moves < 2)); do
    to=$(a_node_but "$(q where live 1)")
    migrate live 1 "$to" --wait --timeout 60 >"$work/migrate" 2>&1 || fail "move $moves to $to: $(<"$work/migrate")"
    must "move $moves to $to is not over" q arrived live 1 "$to" 60 >/dev/null
    moves=$((moves + 1))
done
wait "${asking[@]}"
wait "${attacks[@]}"
touch "$work/enough"
wait "$saver"
see "$moves moves; alice was answered $(tail -n 1 "$work/use") times, $(tail -n 1 "$work/churn") jobs of hers came and went, bob asked for $(wc -l <"$work/saved") checkpoints"
(($(tail -n 1 "$work/use") > 100 && $(tail -n 1 "$work/churn") > 10)) || fail "she was closed: $(tail -n 1 "$work/use"), $(tail -n 1 "$work/churn")"
same "moves of live that were done" "$(q moves live | grep -c ' DONE ')" "$moves"
answered 1000
for n in $(nodes); do
    grown=$(($(memory_of "$n" VmHWM) - before[${n#n}]))
    said=$(($(bed_do logs "$n" | wc -l) - lines[${n#n}]))
    largest=$(on "$n" sh -c 'for p in $(pgrep -x rm-capsule); do sed -n "s/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p" "/proc/$p/status"; done' | sort -n | tail -n 1)
    see "$n: rmd has grown by $grown kB, $said lines in its log, the largest PID 1 of a capsule has ${largest:-0} kB"
    ((grown <= rmd_kb)) || fail "rmd on $n has grown by $grown kB"
    ((said <= most_lines)) || fail "the log of $n has $said lines more"
    ((${largest:-0} <= init_kb)) || fail "PID 1 of a capsule on $n has $largest kB"
done
on n1 touch "$stop_many"
finish many 60
finish litter 60
release live
finish live
ended_well live hash
same_as_undisturbed live 2 --group-size 1
