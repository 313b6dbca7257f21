#!/bin/bash
# Two jobs have half of the cores that they need. Since when each is folded, and how much slower that makes it, is shown for one that computes and for one
# that sleeps, and is the same when the leader was lost.
# limit: 100
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 2

# allow N1 N2 N3: so many cores of each may be used.
allow() {
    on n1 sh -c 'printf "n1:%d\nn2:%d\nn3:%d\n" "$@" >/home/rmd/availability' sh "$@"
}
# told NAME KEY: what show-job says.
told() {
    on "$asker" rmctl show-job "$(job "$1")" | sed -n "s/^$2: *//p"
}
# in_json NAME FIELD
in_json() {
    on "$asker" rmctl show-job "$(job "$1")" --json | sed -n "s/^ *\"$2\": \"*\([^\",]*\)\"*,*$/\1/p"
}
measured() {
    [[ $(told "$1" Slowdown) ]]
}
# slowdown NAME TEST: what was measured, and is as it should be; other processes of the machine can only make it larger.
slowdown() {
    must "nothing is measured of $1" until_true 20 measured "$1"
    see "$1: $(told "$1" Folded), $(told "$1" Slowdown)"
    awk -v s="$(in_json "$1" slowdown)" "BEGIN { exit !(s $2) }" || fail "$1: the slowdown is $(in_json "$1" slowdown), not $2"
}

allow 2 0 0
# shellcheck disable=SC2016 # the ranks' shell expands it
start computes n1 --group-size 2 -n 2 sh -c 'echo "computes: running"; until [ -e "$0" ]; do i=0; while [ $i -lt 99999 ]; do i=$((i + 1)); done; done' "$(stop_file computes)"
running computes
allow 0 2 0
must "the first job does not leave n1" until_true 30 eval '[[ $(q place computes) == *n2* ]]'
allow 2 2 0
start sleeps n1 --group-size 2 -n 2 "$programs/spin" --stop-file="$(stop_file sleeps)"
running sleeps
same "what is told of a job with a core for each rank" "$(told computes Folded)$(told computes 'Folded since')$(told computes Slowdown)" -

allow 1 1 0
for name in computes sleeps; do must "$name is not folded" q state $name FOLDED 30 >/dev/null; done
slowdown computes '>= 1.7'
slowdown sleeps '< 1.5'
since=$(in_json computes fold_since)
[[ $since == 20*Z ]] || fail "it does not say since when: '$since'"

leader=$(q leader)
bed_do stop-rmd "$leader" --kill
asker=n3
[[ $leader != n3 ]] || asker=n2
another_leads() {
    [[ $(q leader) == n* && $(q leader) != "$leader" ]]
}
must "nobody else leads" until_true 20 another_leads
bed_do start-rmd "$leader"
must "all are not back" until_true 20 all_joined
same "since when it is folded, after a change of leaders" "$(in_json computes fold_since)" "$since"
slowdown computes '>= 1.7'

allow 2 2 0
for name in computes sleeps; do must "$name does not get its cores back" q state $name RUNNING 30 >/dev/null; done
same "what is told of a job with a core for each rank again" "$(told computes Folded)$(told computes 'Folded since')$(told computes Slowdown)" -
for name in computes sleeps; do
    release $name
    finish $name
    ((rc == 0)) || fail "$name ended with $rc"
done
