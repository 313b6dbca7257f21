#!/bin/bash
# /tmp, /run and /dev/shm are a job's own. A job that was started in a directory below them, or with a program there, says so; and
# whatever else mpirun cannot be started for reaches its user.
# limit: 90
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# refused WHAT DIRECTORY PROGRAM: rm-mpirun says so itself.
refused() {
    local status=0
    as alice n1 sh -c "cd '$2' && exec rm-mpirun -n 1 '$3' ok" >"$work/$1.out" 2>"$work/$1.err" || status=$?
    see "$1: exit code $status: $(head -n 1 "$work/$1.err")"
    same "the exit code of $1" "$status" 2
    grep -q "^rm-mpirun: the job cannot run .*every job has a .* of its own.*your home" "$work/$1.err" || fail "$1 is not explained"
}

cluster 1 --cores 2
as alice n1 sh -c "mkdir /tmp/x /dev/shm/x && cp $programs/exitcodes /tmp/x && ln -s /tmp/x/exitcodes link"
refused directory /tmp/x ./exitcodes
refused shared-memory /dev/shm/x "$programs/exitcodes"
refused program /home/alice /tmp/x/exitcodes
refused link /home/alice ./link

# A directory that only rmd finds missing: it is gone before the job starts.
as alice n1 mkdir gone
rmctl drain-node n1 --reason test --wait >/dev/null
bed_do exec n1 --user alice -- sh -c "cd gone && exec rm-mpirun --job-name gone -n 1 $programs/exitcodes ok" \
    </dev/null >"$work/gone.out" 2>"$work/gone.err" &
front_pid[gone]=$!
must "it does not wait" q state gone PENDING 10 >/dev/null
on n1 rmdir /home/alice/gone
rmctl resume-node n1 >/dev/null
finish gone 30
see "gone: exit code $rc: $(tail -n 1 "$work/gone.err")"
((rc != 0)) || fail "it ended with 0"
grep -q "^rm-mpirun: job .*cannot start mpirun: .*working directory /home/alice/gone cannot be entered" "$work/gone.err" ||
    fail "no reason on standard error: $(<"$work/gone.err")"
[[ $(q job gone reason) == *'cannot be entered'* ]] || fail "no reason in show-job: $(q job gone reason)"
as alice n1 rm -r /tmp/x /dev/shm/x link
