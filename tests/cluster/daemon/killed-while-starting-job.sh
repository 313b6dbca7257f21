#!/bin/bash
# rmd killed with -9 while it makes the capsules of a job that is to start: what it leaves is made again, and the job runs.
# limit: 60
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 2
on n2 pkill -STOP -x rmd
start late n1 --group-size 1 -n 4 "$programs/ordered" --iterations=20
must "job late is not placed" q state late STARTING 10 >/dev/null
bed_do stop-rmd n2 --kill
# As far as it may have come: a directory, and nothing in it yet.
on n2 mkdir -p /run/rmd/capsules/j1.g{0.i2,1.i3,2.i4,3.i5}
bed_do start-rmd n2
finish late
ended_well late hash
see "$(bed_do logs n2 | grep -c 'was only partly created') capsules were made again on n2"
[[ $(bed_do logs n2) == *"was only partly created"* ]] || fail "nothing had to be made again"
