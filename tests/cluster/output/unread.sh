#!/bin/bash
# Output that nobody reads keeps no job from its end.
# limit: 180
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 1 --cores 2

# `rm-mpirun ... | head` comes to its end, as `yes | head` does: the job is cancelled when its output has lost its reader.
scenario "a reader that leaves"
no_ranks() {
    [[ $(on n1 "$programs/count" yes) == 0 ]]
}
# Not as fast as yes(1) writes: on a busy machine mpirun then takes what ranks write for minutes before it passes any of it on.
as alice n1 sh -c 'printf "#!/bin/sh\nwhile echo y; do sleep 0.02; done\n" >yes && chmod +x yes' || fail "no program"
begun=$EPOCHREALTIME
as alice n1 timeout 60 bash -c 'rm-mpirun --job-name unread -n 2 ./yes 2>err | head -n 3; echo "code ${PIPESTATUS[0]}"' >"$work/unread.out"
as alice n1 cat err >"$work/unread.err"
see "after $(msec_since "$begun") ms: $(tr '\n' ' ' <"$work/unread.out"), $(q job unread state): $(tail -n 1 "$work/unread.err")"
same "what came" "$(tr '\n' ' ' <"$work/unread.out")" "y y y code 141 "
same "its state" "$(q job unread state)" CANCELLED
grep -q '^rm-mpirun: standard output was closed (SIGPIPE)' "$work/unread.err" || fail "it does not say why"
must "ranks are left" until_true 10 no_ranks

# A front end whose output nobody reads is interrupted: its job ends, however much output waits.
scenario "a front end that is interrupted"
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
