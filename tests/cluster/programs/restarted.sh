#!/bin/bash
# Debian's hpcc, NetPIPE, ScaLAPACK tests and mpi4py, unmodified, saved every two seconds, lose nodes at any instant: their verdicts are those of runs that are left alone.
# In a quick run two of them, drawn anew each time.
# RM_TEST_ROUNDS: how often, in place of the usual number. RM_TEST_ONLY: which of them alone ("hpcc"), then long enough to lose several nodes.
# RM_TEST_SECONDS: that a program may take, in place of 250.
# packages: thirdparty
# limit: 600
# load: 2
. "${BASH_SOURCE[0]%/*}/../lib.sh"
scalapack=/usr/lib/x86_64-linux-gnu/scalapack/openmpi-tests
mapfile -t drawn < <(shuf -e -n "$(thorough 4 2)" hpcc scalapack mpi4py netpipe)
# The shortest begins last.
for kind in hpcc scalapack mpi4py netpipe; do
    [[ " ${RM_TEST_ONLY:-${drawn[*]}} " != *" $kind "* ]] || programs_run+=("$kind")
done
see "of them: ${programs_run[*]}"
saved_too=()
hpcc_size=$(thorough 600 400)
[[ ! ${RM_TEST_ONLY:-} ]] || hpcc_size=1600

# begin KIND NAME: each long enough to be saved a few times.
begin() {
    local kind=$1 name=$2 dir=/home/alice/$2
    local common=(--availability /home/alice/nodes --wdir "$dir" -x "LD_PRELOAD=$programs/polite.so" "${saved_too[@]}")
    as alice n1 mkdir -p "$dir"
    case $kind in
    hpcc)
        bed_do exec n1 --user alice -- sh -c "cat >$dir/hpccinf.txt" < <(sed -e "s/^1500 /$hpcc_size /" -e 's/^80 /8 /' "$tests_dir/data/hpcc/hpccinf.txt")
        start "$name" n1 "${common[@]}" --group-size 2 -n 8 hpcc
        ;;
    netpipe) start "$name" n1 "${common[@]}" --group-size 1 -n 2 NPopenmpi -i -n 600 -u 131072 ;;
    scalapack)
        # All sizes and blocks that it names: longer than as it comes. Larger ones where it is to be restarted for sure.
        bed_do exec n1 --user alice -- sh -c "sed -e 's/^4\\(.*problems sizes\\)/8\\1/' -e 's/^4\\(.*of NB\\)/6\\1/' -e 's/^$(thorough '2 5 10 15 13 20 30 50' -)/50 60 70 80 90 100 110 120/' $scalapack/INV.dat >$dir/INV.dat"
        start "$name" n1 "${common[@]}" --group-size 1 -n 4 "$scalapack/xdinv"
        ;;
    mpi4py) start "$name" n1 "${common[@]}" --group-size 1 -n 3 python3 "$programs/mpi4py-rounds" "$(thorough 1500 800)" ;;
    esac
}

# verdicts KIND NAME: what does not depend on time.
verdicts() {
    case $1 in
    hpcc) as alice n1 grep -E 'Ax-b|PASSED|FAILED|^(Success|HPL_(N|NB|RnormI|Anorm1|AnormI|Xnorm1|XnormI|BnormI))=' "$2/hpccoutf.txt" | grep -vE '^(WALL|CPU)' ;;
    netpipe) sed -nE 's/.*[0-9]+: +([0-9]+) bytes +[0-9]+ times.*/\1/p' "$work/$2.out" "$work/$2.err" | sort -n ;;
    # With times in it, it is printed again from the checkpoint on, which rm-mpirun says; its own count of tests is not.
    scalapack) awk '/^WALL/ { verdict = $2 " " $3 " " $4 " " $5 " " $NF; if (!seen[verdict]++) print verdict } /tests (completed|skipped)/' "$work/$2.out" ;;
    mpi4py) grep '^mpi4py: ' "$work/$2.out" ;;
    esac
}

runs() {
    [[ $(q job "$1" state) =~ RUNNING|FOLDED|CHECKPOINTING|MIGRATING ]]
}
is_over() {
    local state
    state=$(q job "$1" state)
    [[ $state && ! $state =~ PENDING|STARTING|RUNNING|FOLDED|CHECKPOINTING|MIGRATING|RECOVERING ]]
}
saved_or_over() {
    is_over "$1" || rmctl list-checkpoints --no-header "$(job "$1")" | grep -q ' DONE '
}
settled() {
    local kind
    for kind in "${programs_run[@]}"; do
        runs "$kind$round" || is_over "$kind$round" || return 1
    done
}

cluster 4 --cores 6 --set cluster.node_timeout=2s
must "there are no three voters" until_true 30 voters_up
until_true 20 as alice n1 rm-mpirun --checkpoint 1h -n 1 true 2>"$work/level" || fail "no job may be saved: $(<"$work/level")"
# n1 has the front ends, and nothing else.
on n1 sh -c 'printf "n1:0\nn2:6\nn3:6\nn4:6\n" >/home/alice/nodes'
for kind in "${programs_run[@]}"; do begin "$kind" "$kind-still"; done
for kind in "${programs_run[@]}"; do
    finish "$kind-still" "${RM_TEST_SECONDS:-200}"
    same "$kind: its exit code" "$rc" 0
    verdicts "$kind" "$kind-still" >"$work/$kind.still"
    [[ -s $work/$kind.still ]] || fail "$kind has no verdicts: $(tail -n 3 "$work/$kind-still.out")"
done

saved_too=(--on-node-loss fold --restarts 100 --checkpoint 2s)
declare -A restarts=()
for ((round = 0; round < ${RM_TEST_ROUNDS:-$(thorough 10 1)}; round++)); do
    for kind in "${programs_run[@]}"; do
        begin "$kind" "$kind$round"
        must "$kind$round: no checkpoint" until_true 60 saved_or_over "$kind$round"
    done
    first=$(q where "${programs_run[-1]}$round" 0)
    for victim in "$first" $(thorough "$(shuf -e n2 n3 n4 | grep -vx "$first" | paste -sd ' ')" ''); do
        sleep "$((RANDOM % 2)).$((RANDOM % 10))"
        bed_do power-off "$victim"
        begun=$EPOCHREALTIME
        sleep 6
        must "not all go on after $victim was lost: $(rmctl list-jobs | tail -n 5)" until_true 90 settled
        bed_do power-on "$victim"
        must "$victim does not join" back "$victim" "$begun"
        must "not all are back" until_true 30 all_joined
        must "not all voters are back" until_true 30 voters_up
    done
    for kind in "${programs_run[@]}"; do
        finish "$kind$round" "${RM_TEST_SECONDS:-250}"
        same "$kind$round: its exit code" "$rc" 0
        verdicts "$kind" "$kind$round" >"$work/$kind.now"
        cmp -s "$work/$kind.still" "$work/$kind.now" || fail "$kind$round has other verdicts: $(diff "$work/$kind.still" "$work/$kind.now" | head -n 4 | tr '\n' '|')"
        restarts[$kind]=$((${restarts[$kind]:-0} + $(q job "$kind$round" attempt) - 1))
        grep -q 'differs' "$work/$kind$round.err" && see "$kind$round: $(grep -m 1 differs "$work/$kind$round.err")"
    done
done
for kind in "${programs_run[@]}"; do see "$kind: $(wc -l <"$work/$kind.still") lines of verdicts are the same, after ${restarts[$kind]} restarts in $round runs"; done
thorough || programs_run=("${programs_run[-1]}")
for kind in "${programs_run[@]}"; do ((${restarts[$kind]} > 0)) || fail "$kind was never restarted: longer runs"; done
