#!/bin/bash
# What cannot be done is refused at once with one line that names what is wrong, on every node; exit codes 0, 1, 2, 3.
# limit: 90
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# refused CODE PATTERN NODE CMD...
refused() {
    local code=$1 pattern=$2 node=$3 status
    shift 3
    on "$node" "$@" >"$work/out" 2>"$work/err"
    status=$?
    ((status == code)) || fail "$* on $node: exit $status, not $code: $(cat "$work/out" "$work/err" | head -n 3)"
    [[ ! -s $work/out ]] || fail "$*: says it on standard output: $(head -n 1 "$work/out")"
    grep -qE -- "$pattern" "$work/err" || fail "$*: does not say '$pattern': $(<"$work/err")"
    see "$*: $(head -n 1 "$work/err")"
}

cluster 3 --cores 2
start live n1 --group-size 2 -n 4 "$programs/spin" --stop-file="$(stop_file live)"
running live
number=$(job live)
for node in n1 n3; do
    refused 1 'n9.*n1' "$node" rmctl drain-node n9
    refused 1 n9 "$node" rmctl show-node n9
    refused 1 4711 "$node" rmctl show-job 4711
    refused 1 4711 "$node" rmctl cancel-job 4711
    refused 1 n9 "$node" rmctl migrate-job "$number" --group 0 --to n9
    refused 1 '7' "$node" rmctl migrate-job "$number" --group 7 --to n2
    refused 1 '' "$node" rmctl migrate-job "$number" --group 0 --to "$(q where live 0)"
    refused 1 '' "$node" rmctl resume-node n2
    refused 2 '' "$node" rmctl no-such-command
    refused 2 '' "$node" rmctl drain-node
    refused 2 '' "$node" rmctl list-jobs --no-such-option
    for event in job-end nosuch ''; do refused 2 "there is no event '$event'" "$node" rmctl events --wait "$event" --timeout 5; done
done
bed_do stop-rmd n3
refused 3 'rmd' n3 rmctl list-nodes
on n3 rm-mpirun -n 1 true >"$work/out" 2>"$work/err"
status=$?
((status != 0)) || fail "rm-mpirun without rmd ends with 0"
see "rm-mpirun without rmd: exit $status: $(head -n 1 "$work/err")"
# An rmd whose streams are closed opens its log and its sockets by other numbers: nothing that it says is written into them.
must "rmd does not start" on n3 sh -c 'cd / && { setsid /usr/bin/rmd --foreground <&- >&- 2>&- & echo $! >/run/testbed-rmd.pid; }'
must "n3 does not join" until_true 20 all_joined
same "streams of an rmd that was started without" "$(on n3 sh -c 'cd "/proc/$(cat /run/testbed-rmd.pid)/fd" && readlink 0 1 2' | paste -sd ' ')" \
    '/dev/null /dev/null /dev/null'
bed_do restart-rmd n3
must "n3 does not join again" until_true 20 all_joined
# rm-mpirun's own refusals, before anything is submitted.
refused 2 '' n1 rm-mpirun --group-size none -n 1 true
refused 2 '' n1 rm-mpirun
refused 2 'no program to run' n1 rm-mpirun -n 1 ''
refused 2 'no program to run' n1 rm-mpirun -n 1 true : -n 1 '' x
refused 2 'no program to run' n1 rm-mpirun -n 1 -- ''
refused 2 'loses output' n1 rm-mpirun --output dir=/home/alice/out -n 1 true
# In a job there is no rmd, and nobody who could start one.
for command in 'rm-mpirun -n 1 true' 'rmctl list-jobs' 'rmctl cancel-job 1'; do
    as alice n1 rm-mpirun -n 1 sh -c "$command; echo it ends with \$?" >"$work/out" 2>"$work/err"
    see "in a rank: $command: $(<"$work/out") $(head -n 1 "$work/err")"
    grep -q 'it ends with 3' "$work/out" || fail "'$command' in a rank: $(<"$work/out")"
    grep -q 'a job.s programs do not reach rmd' "$work/err" || fail "'$command' in a rank says: $(<"$work/err")"
done
# A message is one write(2), however long: those of several programs that share a terminal, or are ranks of a job, do not come into each other.
must "a message is written in pieces" as alice n1 python3 -c '
import socket, subprocess, sys
long = "x" * 150
for command in (["rmctl", "show-node", long], ["rmctl", long], ["rm-mpirun", "--group-size", long, "-n", "1", "true"],
                ["rm-mpirun", "-n", "1", long], ["rm-policy-run", "/" + long], ["rm-sim", "/" + long], ["rmd", "--config", "/" + long]):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    program = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs)
    theirs.close()
    written = list(iter(lambda: ours.recv(65536), b""))
    if program.wait() == 0 or not written or not all(w.endswith(b"\n") for w in written):
        sys.exit(f"{command}: exit {program.returncode}: {written}")
'
release live
finish live
