#!/bin/bash
# A front end whose output nobody reads is interrupted: its job ends, however much output waits.
# limit: 90
. "${BASH_SOURCE[0]%/*}/lib.sh"

cluster 1 --cores 2
mkfifo "$work/unread"
sleep 60 <"$work/unread" &
reader=$!
bed_do exec n1 --user alice -- rm-mpirun --job-name slow -n 1 "$programs/flood" --stop-file=/home/alice/never --only=out \
    </dev/null >"$work/unread" 2>"$work/slow.err" &
front_pid[slow]=$!
must "the job does not run" q state slow RUNNING 30 >/dev/null
# Until the front end has taken what it takes, and rmd holds the rest for it.
sleep 5
on n1 pkill -INT -x rm-mpirun
until_true 20 eval '[[ $(q job slow state) != RUNNING ]]' || fail "the job cannot be interrupted: $(q job slow state)"
see "interrupted: $(q job slow state)"
kill "$reader"
finish slow 30
