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

# Output for a disk that is full is told to be lost, or comes when there is space again before the job has ended.
scenario "a full disk"
same "the exit code" "$(as alice n1 sh -c 'rm-mpirun -n 1 echo hello >/dev/full 2>err; echo $?')" 1
as alice n1 cat err >"$work/full.err"
see "$(<"$work/full.err")"
grep -q '^rm-mpirun: standard output cannot be written: No space left on device' "$work/full.err" || fail "it does not say why"
must "no small disk" on n1 mount -t tmpfs -o size=64k,mode=1777 none /mnt
on n1 sh -c 'head -c 60k /dev/zero >/mnt/filler'
# shellcheck disable=SC2016 # the job's shell expands it
as alice n1 sh -c 'rm-mpirun --job-name full -n 1 sh -c "seq 2000; : >written; until [ -e full.stop ]; do sleep 0.05; done; echo end" >/mnt/out; echo $? >code' &
writer=$!
must "the job does not write" until_true 20 on n1 test -e /home/alice/written
must "the disk is not full" until_true 10 eval '[[ $(on n1 stat -c %s /mnt/out) == 4096 ]]'
on n1 rm /mnt/filler
release full
wait "$writer"
same "the exit code when there is space again" "$(as alice n1 cat code)" 0
same "lines on the disk that was full" "$(on n1 sh -c '{ seq 2000; echo end; } | cmp - /mnt/out && echo same')" same
on n1 umount /mnt
