#!/bin/bash
# A job that waits gains priority with each round in which others are served, until those that come later with more of it wait for it; as soon as it
# is placed it has none of that left. What it has gained is not lost with the leader.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# What show-job says of its priority.
priority() {
    on n2 rmctl show-job "$(job "$1")" | sed -n 's/^Policy: *//p'
}

# small N: a job of two ranks, more urgent than the big one, comes and goes.
small() {
    run "small$1" n2 --priority 5 --group-size 1 -n 2 "$programs/ordered" --iterations=5
    ended_well "small$1" hash
}

n1_is_idle() {
    [[ $(q node n1 usable_cores) == 0 ]]
}
another_leads() {
    local next
    next=$(q leader) && [[ $next && $next != n1 ]]
}

cluster 3 --cores 2 --set "sched.age_weight = 2" --set sched.budget=20s
asker=n2
printf 'n1:0\nn2:2\nn3:2\n' | bed_do exec n2 -- tee /home/rmd/availability >/dev/null
must "the availability file is not in force" until_true 20 n1_is_idle
must "there are no three voters" until_true 20 voters_up
same "the leader" "$(q leader)" n1
start first n2 --group-size 1 -n 2 "$programs/spin" --stop-file="$(stop_file first)"
running first
start big n2 --priority 1 --group-size 1 -n 4 "$programs/spin" --stop-file="$(stop_file big)"
must "the big one does not wait" q state big PENDING 10 >/dev/null
same "before any round is lost" "$(priority big)" "default, priority 1"
small 1
small 2
see "after two urgent ones: $(priority big)"
same "rounds lost" "$(priority big)" "default, priority 1, 2 rounds lost"
bed_do stop-rmd n1 --kill
must "nobody leads after n1" until_true 20 another_leads
see "$(q leader) leads: $(priority big)"
same "rounds lost, when another node leads" "$(priority big)" "default, priority 1, 2 rounds lost"
bed_do start-rmd n1
must "n1 is not back" until_true 20 all_joined
# 1 + 2 * 2 is as much as 5, and it was first.
start late n2 --priority 5 --group-size 1 -n 2 "$programs/ordered" --iterations=5
must "the late one does not wait" q state late PENDING 10 >/dev/null
waits_behind() {
    [[ $(q job "$1" reason) == *"behind job '$(job "$2")'"* ]]
}
until_true 10 waits_behind late big || fail "the late one waits for something else: $(q job late reason)"
see "the third: $(q job late reason)"
release first
finish first
running big
same "once it runs" "$(priority big)" "distrib, priority 1"
release big
finish big
finish late
ended_well late hash
