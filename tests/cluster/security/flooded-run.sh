#!/bin/bash
# A program that writes nonsense, or asks for hosts that are none or with commands of 100 KiB, where rm-agent leaves its requests, as fast as it can,
# fills neither the log of its capsule, that of rmd, nor the node's /run or the memory of its capsule's PID 1; and mpirun's own requests are still heard.
# limit: 60
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 1 --cores 2
start litter n1 --group-size 1 -n 1 "$programs/litter" 4
until_true 20 on n1 sh -c 'ls /run/rmd/capsules/*.g0.i*/log' >/dev/null 2>&1
# The largest that its logs ever were, seen four times a second.
largest=0 memory_kb=0
until gone "${front_pid[litter]}"; do
    size=$(on n1 sh -c 'cat /run/rmd/capsules/j*/log 2>/dev/null | wc -c')
    ((size <= largest)) || largest=$size
    size=$(on n1 sh -c 'pid=$(pgrep -o -x -f ".*rm-capsule .*g0.i.*") && sed -n "s/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p" /proc/$pid/status')
    ((${size:-0} <= memory_kb)) || memory_kb=$size
    sleep 0.2
done
finish litter
ended_well litter 'requests'
lines=$(on n1 grep -c "asks for host" /var/log/rmd.log)
see "$(<"$work/litter.out"); the logs had at most $largest bytes, rmd's $lines lines about hosts; PID 1 had at most $memory_kb kB"
(($(sed 's/[^0-9]//g' "$work/litter.out") > 500)) || fail "too few to show anything"
((largest > 0)) || fail "nothing was refused"
((lines > 0 && lines <= 45)) || fail "rmd wrote $lines lines about hosts that are none"
((memory_kb > 0 && memory_kb < 16384)) || fail "PID 1 of the capsule had $memory_kb kB"
((largest < 8192)) || fail "the logs of the capsules grew to $largest bytes"
run after n1 --group-size 1 -n 2 true
same "the next job's exit code" "$rc" 0
