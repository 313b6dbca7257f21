#!/bin/bash
# What one user submits by hand, past rm-mpirun, neither stops other users' jobs, nor takes what they need, nor writes lines of its own into the log.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# bob ARG...: what a client of bob's own gets for an answer.
bob() {
    as bob n1 "$programs/raw" "$@" 2>&1
}

# refused PATTERN ARG...
refused() {
    local pattern=$1 said
    shift
    said=$(bob "$@")
    [[ $said == error* ]] || fail "bob: raw $*: '$said', and it should be refused"
    grep -qE "$pattern" <<<"$said" || fail "bob: raw $*: '$said' does not say '$pattern'"
    see "$(cut -c 1-110 <<<"$said")"
}

# alice_runs NAME: a job of another user still starts and ends.
alice_runs() {
    run "$1" n2 --time 1m -n 2 "$programs/ordered" --iterations=3
    ended_well "$1" hash
}

cluster 2 --cores 2 --set job.max_jobs_per_user=30 --set job.max_ranks_per_user=2000
# More ranks than there are cores, so that what is let in waits.
waits=11:64

see "numbers that no policy can be shown"
refused 'time' submit "$waits" 16:9223372036854775807
refused 'time' submit "$waits" 16:18446744073709551615
refused 'priority' submit "$waits" 14:2147483647
refused 'priority' submit "$waits" 14:-1
refused 'priority' submit "$waits" 14:1001
refused 'ranks' submit 11:4294967295
refused 'umask' submit "$waits" 9:4096
refused 'on-node-loss' submit "$waits" 17:7
refused 'spares' submit "$waits" 22:4294967295
alice_runs numbers

see "names that forge lines of the log"
refused 'name' submit "$waits" '1=x\n2026-01-01T00:00:00.000 rmd[31] error: FORGED'
refused 'name' submit "$waits" '1=\x1b[31mFORGED'
refused 'policy' submit "$waits" '13=../FORGED\n'
refused 'availability' submit '15=/home/bob/a\nrmd[31] error: FORGED'
# The reason of a wait says what is in the file; whoever wrote it, it is one line.
as bob n1 sh -c 'printf "n1\033[31mFORGED:1\n" >colours'
[[ $(bob submit 11:64 15=/home/bob/colours) == ok* ]] || fail "a good job with a bad file is refused"
until_true 10 eval 'bed_do logs n1 | grep -q colours' || fail "the log does not tell of a bad file"
for node in n1 n2; do
    bed_do logs $node | grep -qE '^[^0-9]|^.{0,50}error: FORGED' && fail "$node: a line of the log is bob's"
    bed_do logs $node | grep -q $'\033' && fail "$node: the log has control characters"
done

see "who submitted, and where"
id=$(bob submit "$waits" 1=origin 2:0 3:0 5=root 20=n9)
same "the user" "$(q job origin spec.user)" bob
same "the user's number" "$(q job origin spec.uid)" "$(as bob n1 id -u)"
same "the node of submission" "$(q job origin spec.submit_node)" n1
see "another user's job is as unknown as one that is not there"
number=${id#ok }
# signal-job cancel-job migrate-job attach-job output-ack job-input
for request in '14 2:15' '15 2:15' '20 2:0 3=n1' '12' '27 4:1' '13 3=x'; do
    # shellcheck disable=SC2086
    foreign=$(as alice n1 "$programs/raw" $request "1:$number" 2>&1)
    # shellcheck disable=SC2086
    missing=$(as alice n1 "$programs/raw" $request 1:999999 2>&1)
    same "request $request on a foreign job" "${foreign//$number/N}" "${missing//999999/N}"
done
refused 'signal' 14 "1:$number" 2:4294967295
refused 'signal' 15 "1:$number" 2:4294967295

see "a group larger than any node, in a job no larger than the cluster"
[[ $(bob submit 1=wide 11:4 12:4 14:1000) == ok* ]] || fail "a wide job is refused"
alice_runs wide

see "a group size for all jobs, and a job with fewer ranks"
run small n2 --group-size 3 -n 2 "$programs/ordered" --iterations=3
ended_well small hash
as alice n1 env RM_GROUP_SIZE=2 rm-mpirun -n 1 "$programs/ordered" --iterations=3 >"$work/variable.out" 2>"$work/variable.err"
rc=$?
ended_well variable hash

see "more ranks than all policies together can be shown"
# As an administrator, who is not limited: 300 times 65536.
on n1 "$programs/raw" -n 300 submit 1=huge 11:65536 12:65536 14:1000000 >"$work/huge" || fail "huge jobs: $(cat "$work/huge")"
alice_runs ranks
until_true 10 eval 'rmctl list-jobs | grep -q "left out of scheduling"' || fail "list-jobs does not say what is left out"
see "$(rmctl list-jobs | grep -m 1 'left out')"
must "rmctl status" rmctl status >"$work/status"
grep -q "top level\|more than .* ranks in all" "$work/status" && fail "a policy was shown too much: $(cat "$work/status")"

see "all places in the table of jobs"
refused 'max_ranks_per_user' submit 11:2000
refused 'max_jobs_per_user' -n 40 submit "$waits"
same "jobs of bob's" "$(rmctl list-jobs | grep -c ' bob ')" 30
alice_runs places
