#!/bin/bash
# What rmd starts does not inherit its own standing when memory is short: a capsule's PID 1 goes before rmd and after what runs in it; that, CRIU
# and rm-mover stand as any process. Here rmd gets another value than its unit's, since some machines let nobody lower it.
# limit: 60
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 2
# scores NODE NAME: of all processes of that name.
scores() {
    # shellcheck disable=SC2016 # the node's shell expands it
    on "$1" sh -c 'for p in $(pgrep -x "$1"); do cat /proc/$p/oom_score_adj; done 2>/dev/null' sh "$2" | sort -u | paste -sd ' '
}
all_rmds_with_faults
for node in n1 n2; do
    # shellcheck disable=SC2016 # the node's shell expands it
    on "$node" sh -c 'echo 300 >/proc/$(cat /run/testbed-rmd.pid)/oom_score_adj'
    same "rmd on $node" "$(scores $node rmd)" 300
done
pid1=-500
# Without the privilege to go below what it was given: as near as may be.
on n1 sh -c 'echo -500 >/proc/self/oom_score_adj' 2>/dev/null || pid1=0

start live n1 --group-size 1 -n 1 "$programs/memory" --mb=200 --zero-percent=0 --stop-file="$(stop_file live)"
running live 30
at=$(q where live 0)
see "rmd 300, rm-capsule $(scores "$at" rm-capsule) (this machine lets it have $pid1), ranks $(scores "$at" memory)"
same "rm-capsule" "$(scores "$at" rm-capsule)" $pid1
same "ranks" "$(scores "$at" memory)" 0
to=$(a_node_but "$at")
# Until the fault point is gone rm-mover is there, and CRIU waits in the capsule to dump it.
on "$at" sh -c 'echo move.source.precopy:hold >/run/rmd/fault'
migrate live 0 "$to" >/dev/null || fail "the move is refused"
at_work() {
    [[ $(scores "$at" rm-mover) && $(scores "$at" criu) ]]
}
until_true 30 at_work || fail "rm-mover or CRIU was not seen at work: '$(scores "$at" rm-mover)', '$(scores "$at" criu)'"
seen="rm-mover $(scores "$at" rm-mover)"$'\n'"criu $(scores "$at" criu)"$'\n'
on "$at" rm /run/rmd/fault
for ((i = 0; i < 100; i++)); do
    for name in criu rm-mover; do
        score=$(scores "$at" $name)
        [[ ! $score ]] || seen+="$name $score"$'\n'
    done
    [[ $(q where live 0) != "$to" ]] || break
done
must "it does not arrive" q arrived live 0 "$to" 30
see "during the move: $(sort <<<"$seen" | uniq -c | tr -s ' \n' ' ')"
if grep -qv ' 0$' <(sed '/^$/d' <<<"$seen"); then fail "a helper stands otherwise"; fi
same "ranks where they arrived" "$(scores "$to" memory)" 0
release live
finish live
ended_well live good
