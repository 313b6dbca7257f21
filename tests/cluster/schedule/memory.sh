#!/bin/bash
# Nodes offer memory as they offer cores: one that has too little of it gets no job and no group, though it has cores. A drain goes round it, moves
# what fits, and says what it cannot move; a job with --mem waits, says for what, and starts when there is room. A group needs more while it moves, but
# not twice its memory where that is tracked.
# complete: unit tests of plans show how memory limits them
# limit: 240
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# offer NODE SIZE [MOVE]: its rmd starts again with [node] memory = SIZE, and with MOVE in [move].
offer() {
    local before=$EPOCHREALTIME
    on "$1" sed -i -e '/^memory = /d' -e "/^\[node\]/a memory = $2" -e '/^tracking = /d' -e "\$a [move]\n${3:-}" /etc/rmd/rmd.conf
    must "rmd on $1 does not start again" bed_do restart-rmd "$1"
    must "rmd on $1 does not come back" back "$1" "$before"
}

# free_on NODE: MB that the leader counts as free there; nothing while it does not know.
free_on() {
    on "$(q leader)" rmctl snapshot | python3 -c '
import json, sys
node = next(n for n in json.load(sys.stdin)["nodes"] if n["name"] == sys.argv[1])
print(node["memory_free"] // 1000000 if "memory_free" in node else "")' "$1"
}

# free_within NODE FROM TO
free_within() {
    local megabytes
    megabytes=$(free_on "$1") && [[ $megabytes ]] && ((megabytes >= $2 && megabytes <= $3))
}

says() {
    [[ $(q job "$1" reason) == *$2* ]]
}

# drain_says TEXT: of n3, which is not drained before that has changed.
drain_says() {
    ! rmctl drain-node n3 --update --wait --timeout 5 >"$work/drain" 2>&1 || fail "n3 is drained"
    grep -q "drain-node: n3: $1.*not drained before this has changed" "$work/drain" || fail "the drain does not say '$1': $(<"$work/drain")"
    rmctl show-node n3 | grep -q "Cannot move: *$1" || fail "show-node does not say '$1'"
}

cluster 3 --cores 2 --set sched.resize_interval=0
offer n3 2G
offer n2 350M
offer n1 2G
must "not all nodes are up" until_true 30 eval '[[ $(q up) == 3 ]]'
must "the leader does not know of n2's memory" until_true 20 free_within n2 200 370
see "n1, n2, n3 offer 2G, 350M, 2G; free: $(free_on n1), $(free_on n2), $(free_on n3) MB"

# Both could go to n2 as far as cores count.
start wide n1 --group-size 2 --mem 300M/rank -n 4 "$programs/memory" --mb=100 --zero-percent=0 --pause-usec=20000 --stop-file="$(stop_file wide)"
running wide 60
places=$(q place wide | awk '$1 >= 0 { print $2 }' | sort | paste -sd ' ')
see "a job with --mem 300M/rank, groups of 2: on $places"
same "nodes of the job" "$places" "n1 n3"
must "n1 is not counted as taken" until_true 20 free_within n1 1000 1520

# 2 x 300 MB are promised on n1 and on n3: no room for 900 MB, and for 1700 MB nowhere before the other job has ended.
start more n1 --group-size 1 --mem 1700M -n 1 "$programs/memory" --mb=20 --pause-usec=20000 --stop-file="$(stop_file more)"
must "it does not wait for memory" until_true 20 says more 'waits for memory: 1782 MB needed for each group'
see "a job with --mem 1700M: $(q job more reason)"
start never n1 --group-size 1 --mem 9G -n 1 "$programs/memory" --mb=20 --pause-usec=20000 --stop-file="$(stop_file never)"
must "it is not told that it cannot fit" until_true 20 says never 'no usable node has more than'
see "a job with --mem 9G: $(q job never reason)"
on n1 rmctl cancel-job "$(job never)" >/dev/null || fail "cancel-job never"
finish never
release wide
release more
finish wide
ended_well wide good
running more 30
see "the other has ended: it runs on $(q where more 0)"
finish more
ended_well more good

# A group that takes 300 MB without having asked for it: 350M are too little for it, though n2 has cores. n3 has room.
start live n1 --group-size 1 -n 2 "$programs/memory" --mb=300 --only-rank=1 --zero-percent=0 --pause-usec=20000 --stop-file="$(stop_file live)"
running live 60
from=$(q where live 1)
[[ $from == n1 ]] || move live 1 n1
must "n1's group is not seen" until_true 20 free_within n1 900 1840
rmctl drain-node n1 --reason test >/dev/null || fail "drain-node n1"
must "n1 is not left" q capacity n1 60 0
must "not settled" q settled 60
same "the large group" "$(q where live 1)" n3
same "failed moves" "$(q moves live | grep -c ABORTED)" 0
see "n1 drained: the large group is on $(q where live 1), the small one on $(q where live 0), no move has failed"

# Now there is only n2 left for it.
must "n3's group is not seen" until_true 20 free_within n3 900 1840
[[ $(q where live 0) == n3 ]] || move live 0 n3
rmctl drain-node n3 --reason test >/dev/null || fail "drain-node n3"
must "it does not say why it stays" until_true 30 says live "stays on 'n3': no other node has the"
see "n3 drained as well: $(q job live reason)"
drain_says "group 1 of job $(job live): stays on 'n3': no other node has the"
must "the small group has not left" q arrived live 0 n2 30
same "the large group" "$(q where live 1)" n3
same "failed moves" "$(q moves live | grep -c ABORTED)" 0
# Twice its memory is 630 MB. One node that cannot track is enough for that to count.
offer n1 550M 'tracking = no'
must "n1's memory is not seen" until_true 40 free_within n1 350 580
rmctl resume-node n1 >/dev/null || fail "resume-node n1"
sleep 5
same "the large group, untracked" "$(q where live 1)" n3
offer n1 550M 'tracking = yes'
must "it does not go where there is room for it once" q arrived live 1 n1 60
same "failed moves" "$(q moves live | grep -c ABORTED)" 0
see "n1 resumed: the large group is on $(q where live 1), which has $(free_on n1) of 577 MB left"
release live
finish live
ended_well live good

# Parked groups, which no policy sees, have memory as well: one is on n1 with 550M, so 400M are free neither there nor on n2.
rmctl resume-node n3 >/dev/null || fail "resume-node n3"
start reserve n1 --group-size 1 --mem 400M/rank -n 1 --max-ranks 3 "$programs/resizes" --stop-file="$(stop_file reserve)"
running reserve 60
must "two groups are not parked" until_true 30 stands_still reserve 2
for group in 1 2; do [[ $(q where reserve "$group") == n3 ]] || move reserve "$group" n3; done
[[ $(q where reserve 0) == n1 ]] || move reserve 0 n1
rmctl drain-node n3 --reason test >/dev/null || fail "drain-node n3"
must "it does not say why its parked group stays" until_true 30 says reserve "stays on 'n3': no node that the job may use has the 419 MB"
drain_says "group 1 of job $(job reserve): stays on 'n3': no node that the job may use has the 419 MB of memory free that moving the parked group 1 needs"
see "n3 drained: $(grep -o 'stays on.*' "$work/drain" | head -n 1)"
release reserve
finish reserve
ended_well reserve 'ends well'
