#!/bin/bash
# The links of a node with ranks and of the leader fail and come back every few hundred milliseconds, for 20 s, while a group is to move over them
# and jobs are submitted. Never do two copies of a rank run; then all goes on: results and output are as undisturbed, or a job that may starts again.
# complete: the simulation has links that come and go
# limit: 240
# load: 2
. "${BASH_SOURCE[0]%/*}/../lib.sh"

seconds=20
cluster 6 --cores 4
asker=n1
must "there are no three voters" until_true 30 voters_up
# Not before all nodes know of restarts.
until_true 20 as alice n1 rm-mpirun --on-node-loss restart -n 1 true 2>"$work/level.err" || fail "no job may restart: $(cat "$work/level.err")"
start_looked_at live n1 restart 4 2 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=20000
start_looked_at fixed n1 abort 2 1 "$programs/flood" --stop-file="$(stop_file fixed)" --pause-usec=20000
must "live does not run" until_true 40 pulses live 1 4
must "fixed does not run" until_true 40 pulses fixed 1 2
victim=$(q place fixed | grep -v '^-1 ' | tail -n 1 | cut -d ' ' -f 2)
leader=$(q leader)
see "flapping: $victim with ranks, $leader who leads; live: $(q place live | paste -sd ','), fixed: $(q place fixed | paste -sd ',')"

submit_all() {
    local i=0 code
    until [[ -e $work/enough ]]; do
        i=$((i + 1))
        code=0
        as alice "n$((i % 2 + 1))" rm-mpirun --job-name "small$i" -n 1 sh -c "echo $i >>/home/alice/small" >>"$work/small" 2>&1 || code=$?
        ((code == 0)) || echo "job $i: exit code $code: $(tail -n 1 "$work/small")" >>"$work/wrong"
        echo "$i" >"$work/submitted"
    done
}
move_all() {
    local to
    until [[ -e $work/enough ]]; do
        for to in n4 n5 n6; do
            on "$asker" rmctl migrate-job "$1" --group "$((RANDOM % 2))" --to "$to" >>"$work/migrate" 2>&1 || true
            sleep 0.5
        done
    done
}
number=$(job fixed)
submit_all &
submitter=$!
move_all "$number" &
mover=$!
flap "$victim" $seconds &
flapper=$!
flap "$leader" $seconds
must "the links do not come to rest" until_true 60 gone "$flapper"
touch "$work/enough"
must "not all are back" until_true 60 all_joined
must "not all voters are back" until_true 60 voters_up
must "a job cannot be submitted" until_true 90 gone "$submitter"
must "a move cannot be asked for" until_true 60 gone "$mover"
if [[ -s $work/wrong ]]; then fail "$(head -n 5 "$work/wrong")"; fi
must "moves do not end" q settled 90 2>"$work/settled"
n=$(<"$work/submitted")
same "jobs that were run" "$(on n1 sort -n /home/alice/small | paste -sd ' ')" "$(seq "$n" | paste -sd ' ')"
must "live does not run" q state live RUNNING 60 >/dev/null
one_copy live
see "live: $(paste -sd ';' "$work/copies")"
one_copy fixed
see "fixed: $(paste -sd ';' "$work/copies"), $(moves_of fixed) moves arrived of $(q moves fixed | wc -l); $n jobs submitted"
release fixed
finish fixed
same "fixed's exit code" "$rc" 0
must "standard output" whole "$work/fixed.out" out 2
must "standard error" whole "$work/fixed.err" err 2
release live
finish live
ended_well live hash
told_of_restarts live
one_copy live
one_copy fixed
same_as_undisturbed live 4 --group-size 2
