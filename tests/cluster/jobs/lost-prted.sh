#!/bin/bash
# mpirun ends with 0 when it has lost one of its daemons. A job that lost one has failed all the same: with an exit code, and why.
# limit: 180
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# member NAME WORD first|last: the pid of a process of group 1, from the capsule's root on.
member() {
    on n2 "$programs/members" "$(job "$1")" 1 | grep " $2\$" | if [[ $3 == first ]]; then head -n 1; else tail -n 1; fi | cut -d ' ' -f 1
}

# begin NAME: a rank on each node.
begin() {
    start "$1" n1 --group-size 1 -n 2 "$programs/spin" --seconds=60
    running "$1"
    [[ $(q where "$1" 1) == n2 ]] || move "$1" 1 n2
}

# failed NAME WHY: as the front end and as rmctl say. Now and then mpirun notices, and has an exit code of its own.
failed() {
    finish "$1" 40
    see "$1: exit code $rc, $(q job "$1" state), $(q job "$1" exit_code): $(q job "$1" reason)"
    ((rc != 0)) || fail "$1 ended with 0"
    same "its exit code in show-job" "$(q job "$1" exit_code)" "$rc"
    [[ $(q job "$1" state) =~ ^(FAILED|NODE_FAIL)$ ]] || fail "$1 has $(q job "$1" state)"
    [[ $(q job "$1" reason) =~ $2 ]] || fail "no reason for the end of $1, but '$(q job "$1" reason)'"
    grep -qE "^rm-mpirun: job [0-9]+ .*$2" "$work/$1.err" || fail "rm-mpirun does not say why $1 ended: $(tail -n 3 "$work/$1.err")"
}

cluster 2 --cores 2

begin shell
on n2 kill -9 "$(member shell sh first)"
failed shell "the MPI daemon of group 1 on n2 was killed by signal 9"

begin daemon
on n2 kill -9 "$(member daemon prted last)"
failed daemon "the MPI daemon of group 1 on n2 (was killed|ended with exit code)"

# The same while nobody there looks.
begin unseen
pid=$(member unseen sh first)
bed_do stop-rmd n2 --kill
on n2 kill -9 "$pid"
sleep 1
bed_do start-rmd n2
failed unseen "the MPI daemon of group 1 on n2 was killed by signal 9"

# With the whole capsule.
begin capsule
on n2 kill -9 "$(member capsule rm-capsule first)"
failed capsule "is lost"
