#!/bin/bash
# The network falls apart into a majority and a minority, or carries only one direction of a node's traffic, with jobs on both sides; it heals
# before a lease ends, or after. Never do two copies of a rank run, in whatever attempt; results and output are as undisturbed, or a job that may
# starts again and says so.
# complete: the simulation has partitions, and fence/cut-node and fence/two-attempts what becomes of a job
# limit: 400
# load: 2
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 6 --cores 4
voters_are_first
# Not before all nodes know of restarts.
until_true 20 as alice n1 rm-mpirun --on-node-loss restart -n 1 true 2>"$work/level.err" || fail "no job may restart: $(cat "$work/level.err")"

begin_live() {
    start_looked_at live n1 restart 4 2 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=20000
}
# One after the other: one that has lost a node for too long has failed.
fixed=0
begin_fixed() {
    fixed=$((fixed + 1))
    start_looked_at "fixed$fixed" n1 abort 2 1 "$programs/flood" --stop-file="$(stop_file "fixed$fixed")" --pause-usec=20000
    must "fixed$fixed does not run" until_true 40 pulses "fixed$fixed" 1 2
}
begin_live
must "live does not run" until_true 40 pulses live 1 4
begin_fixed

# A node with ranks of both jobs, or at least of live.
victim() {
    local node
    for node in n4 n5 n6; do
        ranks_at "$node" live && ranks_at "$node" "fixed$fixed" && echo "$node" && return
    done
    q place live | tail -n 1 | cut -d ' ' -f 2
}
ranks_at() {
    q place "$2" | grep -v '^-1 ' | grep -q " $1\$"
}

# one_of NODE... -- NODE...: the first of these that is none of those.
one_of() {
    local node
    while [[ $1 != -- ]]; do
        node=$1
        shift
        [[ " ${*#*-- } " == *" $node "* ]] || { echo "$node" && return; }
    done
}

# submit WHAT NODE: a small job, in the background.
submit() {
    bed_do exec "$2" --user alice -- rm-mpirun --job-name "$1" -n 1 sh -c "echo $1 >>/home/alice/small" </dev/null >"$work/$1.out" 2>"$work/$1.err" &
    front_pid[$1]=$!
}
submitted() {
    finish "$1" 90
    same "the exit code of submitting $1: $(<"$work/$1.err")" "$rc" 0
    must "$1 has not run" until_true 30 has_run "$1"
}
has_run() {
    on n1 grep -sqx "$1" /home/alice/small
}
# Cut off for so long that it was refused, or accepted, or sent to a leader that was cut off with it.
submitted_or_refused() {
    finish "$1" 90
    if ((rc == 0)); then
        must "$1 has not run" until_true 30 has_run "$1"
    elif ! grep -q 'it may be done or not' "$work/$1.err"; then
        grep -q 'no leader can be reached' "$work/$1.err" || fail "why $1 is refused: $(<"$work/$1.err")"
        refused+=("$1")
    fi
}
refused=()

# phase HOW HEAL NODE...: the nodes are cut off as HOW says; until a while before their leases end (short), until live runs again (long),
# until the other job has failed (longest), or, if it is one who leads without ranks, until another one leads and longer than a lease (led).
k=0 lease_msec=5000
leads_instead() {
    local leader
    leader=$(q leader) && [[ $leader == n* && $leader != "$1" ]]
}
phase() {
    local how=$1 heal=$2 attempt begun cut_msec away_msec state
    shift 2
    k=$((k + 1))
    attempt=$(q job live attempt)
    asker=$(one_of n1 n2 n3 -- "$@")
    begun=$EPOCHREALTIME
    if [[ $how == split ]]; then must "no split" bed_do split "$@"; else must "no cut" bed_do cut "--$how" "$1"; fi
    submit "far$k" "$1"
    case $heal in
    short) sleep 1.5 ;;
    long) must "$how $*: attempt $((attempt + 1)) does not run" until_true 60 pulses live $((attempt + 1)) 4 ;;
    led)
        must "$how $*: nobody else leads" until_true 20 leads_instead "$1"
        until_true 20 eval "((\$(msec_since $begun) > $((lease_msec + 1500))))"
        ;;
    longest) must "$how $*: fixed$fixed has not failed" q state "fixed$fixed" NODE_FAIL 60 >/dev/null ;;
    esac
    # Once it is known which nodes are lost, a job is not placed there.
    submit "near$k" "$asker"
    [[ $heal == short ]] || submitted "near$k"
    bed_do heal "$@"
    cut_msec=$(msec_since "$begun")
    must "$how $*: not all are back" until_true 60 all_joined
    away_msec=$(msec_since "$begun")
    must "$how $*: not all voters are back" until_true 60 voters_up
    must "$how $*: live does not run" q state live RUNNING 60 >/dev/null
    [[ $heal != short ]] || submitted "near$k"
    if ((away_msec < 8000)); then submitted "far$k"; else submitted_or_refused "far$k"; fi
    one_copy live
    one_copy "fixed$fixed"
    state=$(q job "fixed$fixed" state)
    see "$how $* for $cut_msec ms: live in attempt $(q job live attempt), fixed$fixed $state"
    # Longer than that may have been too long for a lease, if the machine is slow.
    if ((cut_msec < 3000)) || [[ $heal == led ]]; then
        same "the attempt after the cut" "$(q job live attempt)" "$attempt"
        same "the other job after the cut" "$state" RUNNING
    fi
    [[ $state == RUNNING ]] || end_fixed NODE_FAIL
}

# end_fixed STATE
end_fixed() {
    local name=fixed$fixed
    [[ $1 == NODE_FAIL ]] || release "$name"
    finish "$name" 60
    same "the state of $name" "$(q job "$name" state)" "$1"
    if [[ $1 == COMPLETED ]]; then
        same "its exit code" "$rc" 0
        must "standard output of $name" whole "$work/$name.out" out 2
        must "standard error of $name" whole "$work/$name.err" err 2
    else
        ((rc != 0)) || fail "exit code 0 of a job that has lost a node"
        grep -q "^rm-mpirun: .*node n[0-9] " "$work/$name.err" || fail "it does not say which node was lost: $(tail -n 3 "$work/$name.err")"
        begin_fixed
    fi
}

# The one who leads, and with it a node with ranks: it has to give up the lead. Then a voter that does not lead.
phase split short "$(q leader)" "$(victim)"
phase split long "$(q leader)" "$(victim)"
phase split longest "$(one_of n3 n2 n1 -- "$(q leader)")" "$(victim)"
phase from long "$(victim)"
if thorough; then
    phase to long "$(victim)"
    phase from short "$(victim)"
    phase to short "$(victim)"
fi
phase to short "$(q leader)"
phase from short "$(q leader)"
phase from led "$(q leader)"
if thorough; then phase to led "$(q leader)"; fi

same "jobs that were submitted meanwhile" "$(on n1 sort /home/alice/small | uniq -c | awk '{ print $1 }' | sort -u)" 1
for name in "${refused[@]}"; do
    if has_run "$name"; then fail "$name was refused, and has run"; fi
done
see "refused on the side without a leader: ${refused[*]-}"
end_fixed COMPLETED
release live
finish live
ended_well live hash
told_of_restarts live
one_copy live
see "$(<"$work/copies")"
same_as_undisturbed live 4 --group-size 2
