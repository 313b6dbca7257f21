#!/bin/bash
# The node that began the cluster is a voter no more, and dies before it has a copy of the state: alone, it does not begin another cluster, and
# is back in its own as soon as the others are there.
# limit: 90
. "${BASH_SOURCE[0]%/*}/../lib.sh"

retired() {
    ! on n1 test -e /var/lib/rmd/voter
}

cluster 4 --cores 2
must "there are no three voters" until_true 20 eval 'on n4 rmctl status | grep -q "quorum 2, 1 may be lost"'
on n4 rmctl drain-node n1 --reason test >/dev/null || fail "n1 cannot be drained"
must "n1 keeps the log" until_true 20 retired
for n in $(nodes); do bed_do stop-rmd "$n" --kill; done
on n1 rm -f /var/lib/rmd/state
bed_do start-rmd n1
# It asks the others for 3 s before it begins one.
until_true 6 eval '[[ $(bed_do logs n1) == *"begins cluster"*"begins cluster"* ]]' && fail "n1 has begun a second cluster: $(bed_do logs n1 | tail -n 3)"
see "n1 alone: $(on n1 timeout 5 rmctl status 2>&1 | head -n 1)"
for n in n2 n3 n4; do bed_do start-rmd "$n"; done
must "not all joined again" until_true 20 all_joined
same "the nodes" "$(on n1 rmctl list-nodes --no-header | cut -d ' ' -f 1 | paste -sd ' ')" "n1 n2 n3 n4"
must "n1 is not drained any more" q nodestate n1 DRAINED 10 >/dev/null
