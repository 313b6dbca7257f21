#!/bin/bash
# A job's availability file lies on a file system that does not answer any more: the leader goes on, and the job says why it is not followed.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 2
on n1 mkdir /hung
bed_do exec n1 -- "$programs/hung" /hung </dev/null >"$work/hung.out" 2>&1 &
front_pid[hung]=$!
until_true 10 grep -qs running "$work/hung.out" || fail "no file system that hangs: $(cat "$work/hung.out")"
pid=$(on n1 pidof -s hung)
as alice n1 timeout 1 ls /hung/server/x 2>/dev/null
same "looking into it by hand" $? 124

# rm-mpirun would look at the file itself.
id=$(as alice n1 timeout 10 "$programs/raw" submit 1=waits 11:64 15=/hung/server/availability) || fail "not submitted: $id"
on n1 timeout 5 rmctl status >"$work/status" || fail "the leader does not answer"
until_true 15 eval 'bed_do logs n1 | grep -q "/hung/server/availability: its file system does not respond"' || fail "nothing is said of it"
see "$(bed_do logs n1 | grep -m 1 'does not answer')"
# Others', with a file of their own, and this user's.
as bob n1 sh -c 'echo "n1:1" >one'
user=bob run other n2 --availability /home/bob/one -n 1 "$programs/ordered" --iterations=3
ended_well other hash
run mine n2 -n 2 "$programs/ordered" --iterations=3
ended_well mine hash
all_joined || fail "n2 is lost"
must "rmd does not end while a path hangs" bed_do restart-rmd n1
until_true 10 all_joined || fail "n1 does not come back"
# It answers again: that it is gone.
on n1 kill "$pid"
until_true 10 gone "${front_pid[hung]}" || fail "hung does not end"
unset 'front_pid[hung]'
must "cancel-job" rmctl cancel-job "${id#ok }"
on n1 rmdir /hung
