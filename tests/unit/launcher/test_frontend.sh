#!/bin/bash
# rm-mpirun and rmctl as people use them, against fake-rmd, which runs programs right here.
#   test_frontend.sh RM-MPIRUN RMCTL FAKE-RMD
# shellcheck disable=SC2016,SC2086 # programs for other shells; verbs with arguments
set -u
mpirun=$1 rmctl=$2 fake=$3
dir=$(mktemp -d)
export RM_SOCKET=$dir/rmd.sock RM_CONFIG=$dir/none
failures=0 daemon=
trap 'stop; rm -rf "$dir"' EXIT

start() {
        "$fake" "$RM_SOCKET" "$@" 2>>"$dir/log" &
        daemon=$!
        for _ in {1..100}; do [ -S "$RM_SOCKET" ] && return; sleep 0.02; done
        echo "fake-rmd does not start"; exit 1
}
stop() {
        [ -n "$daemon" ] && kill "$daemon" 2>/dev/null && wait "$daemon" 2>/dev/null
        daemon=
}
# is NAME GOT WANT
is() {
        if [ "$2" == "$3" ]; then echo "ok   $1"; else
                echo "FAIL $1"; echo "  got:  ${2:0:300}"; echo "  want: ${3:0:300}"; failures=$((failures + 1))
        fi
}
# has NAME TEXT PART
has() { case $2 in *"$3"*) echo "ok   $1" ;; *) is "$1" "$2" "...$3..." ;; esac }
# Run, and give stdout, stderr and exit code in $out $err $code
run() { "$@" >"$dir/out" 2>"$dir/err"; code=$?; out=$(<"$dir/out"); err=$(<"$dir/err"); }
# until_says FILE TEXT
until_says() { for _ in {1..400}; do grep -qF "$2" "$1" && return; sleep 0.05; done; is "'$2' comes" "$(<"$1")" "$2"; }
# Start in the background with default signals, as a shell with job control would; goes on when the job says "ready".
background() {
        : >"$dir/out"; : >"$dir/err"
        setsid -w env --default-signal "$@" <&0 >"$dir/out" 2>"$dir/err" &
        waiter=$!
        until_says "${say_where:-$dir/out}" "${say_what:-ready}"
        front=$(pgrep -P $waiter || echo $waiter)
}
collect() { wait "$waiter"; code=$?; out=$(<"$dir/out"); err=$(<"$dir/err"); }

run "$mpirun" -n 1 true; is "no daemon: exit code" $code 3; has "no daemon: says so" "$err" "rmd is not running on this node ($RM_SOCKET)"
run "$rmctl" plan extra; is "too many arguments" "$err" "rmctl: plan: unexpected argument 'extra': rmctl plan"
run "$rmctl" status; is "no daemon: rmctl" $code 3
run "$mpirun" -n x a; is "usage: exit code" $code 2; is "usage: one line" "$(wc -l <"$dir/err")" 1

start --lose 2 --away 300
run "$mpirun" -n 1 sh -c "echo once >>$dir/runs; echo ran"; is "rmd dies before it answers: output and code" "$out/$code" ran/0
is "rmd dies before it answers: one job" "$(<"$dir/runs")/$(grep -c '^submit: name' "$dir/log")/$(grep -c again "$dir/log")" once/1/2
is "rmd dies before it answers: said once" "$(grep -c 'trying again' "$dir/err")" 1
stop
start --lose-done 2 --away 300
run "$mpirun" -n 1 sh -c 'echo all; echo of it >&2'; is "rmd dies before it knows that the output is taken: output and code" "$out/$err/$code" "all/of it/0"
is "rmd dies before it knows that the output is taken: it is told until it does" "$(grep -c '^output-done: job 7, 4 and 6 bytes' "$dir/log")" 3
stop
start --lose 1 --away 60000
say_where=$dir/err say_what='trying again' background "$mpirun" -n 1 true; kill -INT "$front"; collect
is "interrupted while rmd is away: exit code" $code 130; has "interrupted while rmd is away: says so" "$err" "interrupted before rmd answered: the job may start all the same"
stop

start
run "$mpirun" -n 2 sh -c 'echo out; echo err >&2; exit 7'; is "streams and code" "$out/$err/$code" "out/err/7"
run "$mpirun" -n 1 sh -c 'kill -SEGV $$'; is "death by a signal" $code 139
run "$mpirun" -n 1 printf '%s ' -n 3 --policy; is "the program's arguments are its own" "$out" "-n 3 --policy "
seq 1 300000 >"$dir/in"
run "$mpirun" -n 1 md5sum <"$dir/in"; is "input from a file" "$out" "$(md5sum <"$dir/in")"
is "input from a pipe" "$(seq 1 300000 | "$mpirun" -n 1 md5sum)" "$(md5sum <"$dir/in")"
run "$mpirun" -n 1 cat </dev/null; is "no input" "$out/$code" "/0"
run "$mpirun" -n 1 cat <&-; is "closed input" "$out/$code" "/0"
run timeout 20 "$mpirun" -n 1 true <"$dir/in"; is "input nobody reads" $code 0
is "a reader that goes" "$({ timeout 20 "$mpirun" -n 1 sh -c 'i=1; while :; do echo $i; i=$((i + 1)); sleep 0.1; done' 2>"$dir/err"; echo $? >"$dir/code"; } | head -1)" 1
is "a reader that goes: the job ends" "$(<"$dir/code")" 141
has "a reader that goes: says so" "$(<"$dir/err")" "standard output was closed (SIGPIPE): job"
is "a reader of errors that goes: the job goes on" "$({ "$mpirun" -n 1 sh -c 'for i in 1 2 3; do echo $i >&2; sleep 0.1; done; echo end' 2>&1 >"$dir/out"; echo $? >"$dir/code"; } | head -1)$(<"$dir/out")/$(<"$dir/code")" "1end/0"
run "$mpirun" --detach -n 1 sh -c 'echo later; exit 5'; job=$out; has "detach: a number" "$job" "1"
sleep 0.3; run "$rmctl" attach-job "$job" </dev/null; is "attach: output missed and exit code" "$out/$code" "later/5"

background "$mpirun" -n 1 sh -c 'trap "echo int; exit 3" INT; echo ready; sleep 20 & wait'; kill -INT "$front"; collect; is "SIGINT reaches the job" "${out/$'\n'/ }/$code" "ready int/3"
background "$mpirun" -n 1 sh -c 'trap "echo term; exit 4" TERM; echo ready; sleep 20 & wait'; kill -TERM "$front"; collect; is "SIGTERM reaches the job" "${out/$'\n'/ }/$code" "ready term/4"
background "$mpirun" -n 1 sh -c 'trap "echo int" INT; echo ready; sleep 20; sleep 20'; kill -INT "$front"; until_says "$dir/out" int; kill -INT "$front"; collect; is "a second SIGINT kills" $code 137
background "$mpirun" -n 1 sh -c 'echo ready; until [ -e '"$dir"'/continued ]; do sleep 0.1; done; echo done'; kill -TSTP "$front"
until_says "/proc/$front/status" "State:	T"; state=$(cut -d' ' -f3 <"/proc/$front/stat"); kill -CONT "$front"; : >"$dir/continued"; collect
is "stopped and continued" "$state/${out/$'\n'/ }/$code" "T/ready done/0"
background "$mpirun" -n 1 sh -c 'echo ready; sleep 0.5; echo done'; kill -KILL "$front"; collect
job=$("$rmctl" list-jobs --all --no-header | awk 'END { print $1 }'); run "$rmctl" attach-job "$job" </dev/null; is "a killed front end leaves the job" "${out/$'\n'/ }/$code" "ready done/0"

background "$mpirun" -n 1 sh -c 'echo ready; seq 1 200000; sleep 0.5; seq 200001 300000; sleep 1.2; cat; echo end >&2' <"$dir/in"; kill -USR1 "$daemon"; collect
is "rmd restarts: output" "$(sed -n 2,300001p "$dir/out" | md5sum)" "$(md5sum <"$dir/in")"
is "rmd restarts: input" "$(tail -n +300002 "$dir/out" | md5sum)" "$(md5sum <"$dir/in")"; is "rmd restarts: silently" "$err/$code" "end/0"
stop

start --cut 400001
run timeout 100 "$mpirun" -n 1 tee /dev/stderr <"$dir/in"
is "cut connections: output" "$(md5sum <"$dir/out")" "$(md5sum <"$dir/in")"; is "cut connections: error output" "$(md5sum <"$dir/err")" "$(md5sum <"$dir/in")"
stop

start --go-back 1500000,700000,99999999
run timeout 60 "$mpirun" -n 1 sh -c 'cat; echo end >&2' <"$dir/in"
is "a job goes back to a checkpoint: output comes once" "$(md5sum <"$dir/out")" "$(md5sum <"$dir/in")"
is "a job goes back to a checkpoint: exit code and one line" "$code/$err" "0/rm-mpirun: job 7: node n3 is down: goes on from checkpoint 7.3
end"
has "a job goes back to a checkpoint: it is attached there" "$(grep -a attach: "$dir/log" | tail -1)" "attempt 2 from 700000"
stop
start --go-back 1500000,700000,1000000
run timeout 60 "$mpirun" -n 1 sh -c 'cat; echo end >&2' <"$dir/in"
{ echo -n '!'; tail -c +1000002 "$dir/in"; } >"$dir/again"
is "output that differs: from there on it comes again" "$(tail -c "$(stat -c %s "$dir/again")" "$dir/out" | md5sum)" "$(md5sum <"$dir/again")"
is "output that differs: what came before stays" "$(head -c -"$(stat -c %s "$dir/again")" "$dir/out" | cmp - "$dir/in" 2>&1 | grep -c differ)" 0
has "output that differs: is told" "$err" "rm-mpirun: job 7: output differs from byte 1000000 of stdout on: what follows is of attempt 2, which went on from checkpoint 7.3"
stop

start --pending 4000
run "$mpirun" -n 1 echo x; is "waiting is told" "$err" "rm-mpirun: job 7 waits: needs 8 cores, 4 are free
rm-mpirun: job 7 waits: needs 8 cores, 6 are free
rm-mpirun: job 7 starts on n[1-4]"; is "waiting ends" "$out/$code" "x/0"
run "$mpirun" --wait 1 -n 1 echo x; is "waiting is given up" "$out/$code" "/1"
say_where=$dir/err say_what=waits background "$mpirun" -n 1 echo x; kill -INT "$front"; collect; is "interrupted while waiting" "$out/$code" "/130"
stop

start --refuse "no policy 'x' (known: distrib greedy)"
run "$mpirun" --policy x -n 1 echo; is "refused" "$err/$code" "rm-mpirun: no policy 'x' (known: distrib greedy)/1"
stop

start
run "$rmctl" drain-node 'n[2-3]' --reason hot --wait; is "drain-node --wait" "$out/$code" "n[2-3] drained/0"
run "$rmctl" drain-node n2; is "drained twice" $code 1; has "drained twice: says so" "$err" "drained already"
run "$rmctl" drain-node n9; is "unknown node" "$code" 1; has "unknown node: which, and what there is" "$err" "no node 'n9' (known: n[1-6])"
run "$rmctl" resume-node n2,n3; is "resume-node" "$out/$code" "n[2-3] resumed/0"
run "$rmctl" drain-node n4 --wait --timeout 0; is "drain-node --timeout 0" $code 2
run "$rmctl" drain-node n6 --wait --timeout 300ms; is "drain-node --timeout" $code 1; has "drain-node --timeout: says so" "$err" "not drained"
run timeout 10 "$rmctl" drain-node 'n[2-3]' --reason lost --wait; is "drain-node --wait of nodes that go down" $code 1
has "drain-node --wait of nodes that go down: says so" "$err" "n[2-3] cannot be waited for (DOWN"
run "$rmctl" resume-node n2,n3
for time in 0 0s -5s soon 5x ''; do run "$rmctl" drain-node n1 --deadline "$time"; is "drain-node --deadline '$time'" "$code/$(wc -l <"$dir/err")" 2/1; done
has "drain-node --deadline: what is wrong" "$err" "--deadline: '' is not a time"
run "$rmctl" drain-node n1 --deadline 5h; is "drain-node --deadline" "$out/$code" "n1 draining/0"
run "$rmctl" list-nodes n1; has "list-nodes: deadline" "$out" "(root, deadline in 4h 59m)"
run "$rmctl" show-node n1; has "show-node: deadline" "$out" "in 4h 59m (20"
run "$rmctl" list-nodes n1 --json; has "list-nodes --json: deadline" "$out" '"drain_deadline": "20'
run "$rmctl" resume-node n1
run "$rmctl" list-nodes n1 --json; has "list-nodes --json: no deadline" "$out" '"drain_deadline": null'
for words in 'n1' 'n1 broken --reason x' 'n1 warn' 'n1 critical' 'warn' 'n1 warn --reason' 'n1 ok --source'; do
        run "$rmctl" report-health $words; is "report-health $words" "$code/$(wc -l <"$dir/err")" 2/1
done
run "$rmctl" report-health n1 hot --reason x; has "report-health: what is wrong" "$err" "ok, warn, failing or critical, not 'hot'"
run "$rmctl" report-health n1 warn; has "report-health: no reason" "$err" "say with --reason why it is warn"
run "$rmctl" report-health n[1-2] failing --reason "fan 2 stands still"; is "report-health" "$out/$code" "n[1-2] failing/0"
run "$rmctl" list-nodes n1; has "list-nodes: condition" "$out" "failing: fan 2 stands still (report, root)"; has "list-nodes: state" "$out" "FAILING"
run "$rmctl" report-health n2 warn --reason 70C --source hwmon --json; has "report-health --json" "$out" '"reported": ['
run "$rmctl" show-node n2; has "show-node: condition" "$out" "warn: 70C (hwmon, root), since 1m"
run "$rmctl" list-nodes n1 --json; has "list-nodes --json: condition" "$out" '"condition": "FAILING"'; has "list-nodes --json: since" "$out" '"since": "20'
run "$rmctl" report-health n1,n2 ok; is "report-health ok" "$out/$code" "n[1-2] ok/0"
run "$rmctl" list-nodes n1 --json; has "list-nodes --json: all is well" "$out" '"conditions": []'
run "$rmctl" drian-node n2; is "misspelt: exit code" $code 2; has "misspelt: a guess" "$err" "'drain-node'"
for verb in list-nodes list-jobs list-checkpoints list-moves list-policies events status snapshot plan 'show-node n1' 'show-job 3'; do
        run "$rmctl" $verb --json; is "$verb --json" $code 0
        has "$verb --json: version" "$out" '"version": 1'
        run "$rmctl" $verb; is "$verb" "$code" 0
done
run "$rmctl" list-moves; has "list-moves: what the codec saved" "$out" "zstd 3.0x"; is "list-moves: no phases" "$(grep -c RESTORE <<<"$out")" 0
is "list-moves: columns before the reason" "$(awk 'NR == 1 { print index($0, "REASON") <= 104 }' <<<"$out")" 1
run "$rmctl" list-moves --wide
has "list-moves: what was written last" "$out" "1.1 MiB"
has "list-moves: when all memory was there" "$out" "0.631 s"
has "list-moves: what a move waits for" "$out" "have not yet arrived"
run "$rmctl" show-job 3; has "show-job: why memory was not tracked" "$out" "Not tracked:     group 1: a process is traced"
run "$rmctl" checkpoint-job 3; is "checkpoint-job" "$out/$err/$code" "checkpoint 3.2: pause 0.120 s, 3.0 GiB, 200 MiB stored in 2.100 s, on n[1-2]//0"
run "$rmctl" checkpoint-job 3 --no-wait; is "checkpoint-job --no-wait" "$out/$code" "checkpoint 3.2 begun/0"
run "$rmctl" checkpoint-job 3 --stop; is "checkpoint-job: failed" "$err/$code" "rmctl: checkpoint-job: checkpoint 3.3 has failed: n2: no space left/1"
run "$rmctl" checkpoint-job 3 --json; has "checkpoint-job --json" "$out" '"pause_usec": 120000'; has "checkpoint-job --json: state" "$out" '"state": "DONE"'
run "$rmctl" checkpoint-job 4; is "checkpoint-job: refused" "$err/$code" "rmctl: checkpoint-job: the job does not run/1"
run "$rmctl" checkpoint-job 3 --wait --no-wait; is "checkpoint-job: both" "$code" 2
run "$rmctl" list-checkpoints 3 --no-header; is "list-checkpoints" "$(tr -s ' ' <<<"$out")" "3.2 hpcc DONE interval 1m ago 0.120 s 3.0 GiB 200 MiB n[1-2]"
run "$rmctl" list-checkpoints --json; has "list-checkpoints --json" "$out" '"job": 3'; has "list-checkpoints --json: cause" "$out" '"cause": "INTERVAL"'
for job in 3 3.2; do run "$rmctl" restart-job $job; is "restart-job $job" "$out$err/$code" "/0"; done
run "$rmctl" restart-job 3.9; is "restart-job: unknown" "$err/$code" "rmctl: restart-job: job 3 has no checkpoint 9 (it has: 2)/1"
for job in x 3. .2 3.0 3.x 0; do run "$rmctl" restart-job "$job"; is "restart-job '$job'" "$code" 2; done
run "$rmctl" remove-checkpoint 3.2 --json; has "remove-checkpoint --json" "$out" '"removed": "3.2"'
run "$rmctl" remove-checkpoint 3; is "remove-checkpoint: of which number" "$code" 2
run "$rmctl" show-job 3; for line in "Checkpoints:     1" "Interval:        auto, now 5m 00s" "Last:            3.2, 1m ago" "Expected loss:   2m 30s" "Restored from:   3.1" "Last error:      n2: no space left"; do
        has "show-job: $line" "$out" "$line"
done
ln -s "$(realpath "$rmctl")" "$dir/rm-checkpoint"
run "$dir/rm-checkpoint" list 3; has "rm-checkpoint list" "$out" "3.2"; run "$dir/rm-checkpoint" remove 3.2; is "rm-checkpoint remove" "$code" 0
run "$rmctl" show-node n2; has "show-node: what the leader knows" "$out" "Free memory:     5.0 GiB"
run "$rmctl" list-nodes --json; is "list-nodes: nodes whose free memory is known" "$(grep -c '"memory_free_bytes": 5368709120' <<<"$out")" 1
run "$rmctl" list-nodes --no-header; is "--no-header" "$(head -1 "$dir/out" | cut -c1-2)" n1
run timeout 5 "$rmctl" events --wait node-drained --timeout 3s; is "events --wait" "$code/$(wc -l <"$dir/out")" 0/1
run timeout 5 "$rmctl" events --wait topology --timeout 300ms; is "events --wait in vain" "$code" 1
run "$rmctl" help; for verb in $("$rmctl" help --names); do has "help names $verb" "$out" "  $verb "; done

echo; [ $failures -eq 0 ] || echo "$failures failed"
exit $((failures > 0))
