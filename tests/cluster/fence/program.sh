#!/bin/bash
# Where a fence is configured, a job that has lost a node starts again only after the fence's program has succeeded: not while it fails, nor while
# it hangs. The job says what it waits for; if its node comes back first it goes on; and an administrator can say that the node is lost.
# limit: 240
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 4 --set cluster.node_timeout=2s --set cluster.lease=3s --set cluster.voters=1 --set fence.plugin=program --set fence.program=/home/rmd/fence \
    --set fence.timeout=3s --set fence.retry=1s
# A line in fence.log for each run: when it ends, or hangs; how; and its arguments.
cat >"$work/fence" <<'EOF'
#!/bin/sh
how=$(cat /home/rmd/how)
echo "$(date +%s%6N) $how $# $1 $RM_FENCE_ADDRESS $RM_FENCE_TRY" >>/home/rmd/fence.log
case $how in
works) exit 0 ;;
fails) echo "the controller of $1 does not answer" >&2; exit 1 ;;
hangs) sleep 3600 ;;
esac
EOF
chmod 755 "$work/fence"
bed_do copy "$work/fence" n1:/home/rmd
on n1 touch /home/rmd/fence.log
# Not before all nodes know of restarts.
until_true 20 as alice n1 rm-mpirun --on-node-loss restart -n 1 true 2>"$work/level.err" || fail "no job may restart: $(cat "$work/level.err")"
on n1 sh -c 'printf "n1:2\nn2:2\nn3:2\n" >/home/alice/two'
start live n1 --on-node-loss restart --restarts 9 --availability /home/alice/two --group-size 2 -n 4 \
    sh -c "exec $programs/ticks --file=/home/alice/live.\$RM_ATTEMPT --stop-file=$(stop_file live)"

runs() {
    [[ $(grep -sc 'ticks: running' "$work/live.out") == "$1" ]]
}
fence() {
    on n1 sh -c 'echo "$1" >/home/rmd/how' sh "$1"
}
# fences HOW: how many runs there were of the kind.
fences() {
    on n1 sh -c 'grep -c " $1 " /home/rmd/fence.log' sh "$1"
}
many_fences() {
    (($(fences "$1") >= $2))
}
reason() {
    on n1 rmctl show-job "$(job live)" | sed -n 's/^Reason *//p'
}
tells() {
    reason | grep -q "$1"
}
victim=''
# lose HOW: a node of its groups, which is not the leader.
lose() {
    victim=$(q place live | grep -v '^-1 ' | grep -v ' n1$' | head -n 1 | cut -d ' ' -f 2)
    [[ $victim ]] || fail "all on n1: $(q place live)"
    bed_do "$1" "$victim"
}
back() {
    bed_do "$1" "$victim"
    must "$victim is not back" until_true 30 all_joined
}
# after_fence K: attempt K runs, and began after the last fence that works.
after_fence() {
    local fenced begun
    until_true 40 runs "$1" || fail "attempt $1 does not run: $(reason)"
    fenced=$(on n1 sh -c 'grep " works " /home/rmd/fence.log' | tail -n 1 | cut -d ' ' -f 1)
    begun=$(on n1 sh -c 'for f in "$1".*; do sed -n 2p "$f"; done' sh "/home/alice/live.$1" | sed 's/^0*//' | sort -n | head -n 1)
    see "attempt $1 began $(((begun - fenced) / 1000)) ms after the fence"
    ((begun > fenced)) || fail "attempt $1 began before the fence"
}

fence fails
must "it does not run" until_true 30 runs 1
lose power-off
until_true 40 many_fences fails 3 ||
    fail "the fence is not run again after a failure: $(q job live state), $(reason); $(rmctl events | grep fence)"
see "$(on n1 rmctl list-jobs --no-header | head -n 1)"
until_true 10 tells "starts again when node $victim is fenced: plugin 'program' failed (try .*the controller of $victim does not answer" || fail "it does not say why it waits: $(reason)"
same "its state" "$(q job live state)" RECOVERING
runs 1 || fail "it runs again, and the fence has failed"
on n1 rmctl show-node "$victim" | grep -q '^Fence.*does not answer' || fail "show-node does not tell: $(on n1 rmctl show-node "$victim")"
fence works
after_fence 2
rmctl events | grep -q "node-fenced .*node $victim" || fail "no event tells it: $(rmctl events | tail -n 5)"
see "$(rmctl events | grep node-fence | head -n 2)"
back power-on
same "what the fence was run for" "$(on n1 sh -c 'grep works /home/rmd/fence.log' | cut -d ' ' -f 3-4)" "1 $victim"

# It hangs, and is killed; then the node is back.
fence hangs
lose cut
until_true 40 tells 'killed after 3.0 s' || fail "the hung fence is not killed: $(reason)"
runs 2 || fail "it runs again, and the fence has hung"
# The leader's rmd is killed while the program runs, which ends with it.
must "it is not run again" until_true 20 many_fences hangs 2
before=$(fences hangs)
leader=$(q leader)
bed_do stop-rmd "$leader" --kill
no_program() {
    ! on "$leader" pgrep -f /home/rmd/fence >/dev/null
}
must "the program runs on" until_true 20 no_program
bed_do start-rmd "$leader"
must "the next leader does not run it" until_true 30 many_fences hangs $((before + 1))
back heal
q state live RUNNING 20 >/dev/null || fail "the job does not go on: $(reason)"
must "the program runs on" until_true 10 no_program
runs 2 || fail "it has started again, and its node is back"
see "$victim is back before the fence has worked: attempt $(q job live attempt) goes on"
must "no fence is told of any more" until_true 20 eval '! rmctl show-node $victim | grep -q ^Fence'

# Somebody has pulled the plug.
fence fails
rmctl confirm-lost "$victim" 2>"$work/refused" && fail "$victim is up, and is taken for lost"
grep -q "not DOWN" "$work/refused" || fail "confirm-lost: $(cat "$work/refused")"
as alice n1 rmctl confirm-lost "$victim" >/dev/null 2>&1 && fail "a user may say that a node is lost"
lose power-off
until_true 40 tells 'does not answer' || fail "it does not wait: $(reason)"
must "confirm-lost is refused" rmctl confirm-lost "$victim" >"$work/confirmed"
until_true 40 runs 3 || fail "attempt 3 does not run: $(reason)"
see "$(rmctl events | grep 'says root')"
back power-on
release live
finish live
ended_well live 'all 4 ranks are there: yes'
# What a node lost with its power is no leftover, and it has a new boot's processes.
inventory_all >"$work/before"
