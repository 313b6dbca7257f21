#!/bin/bash
# A group that moves, or is saved, while an rmd that was started a moment ago still finds out whether memory can be tracked, stands still no longer
# than one later: the move waits for the answer. One with --mode stop does not.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

program=/usr/libexec/rmd/rm-pages-test
cluster 2 --cores 2
for node in n1 n2; do
    # shellcheck disable=SC2016 # the node's shell expands it
    on "$node" sh -c 'mv "$1" "$1.late" && printf "#!/bin/sh\nsleep 6\nexec %s.late \"\$@\"\n" "$1" >"$1" && chmod 755 "$1"' sh $program
done
# started NODE: its rmd, which does not know it yet.
started() {
    bed_do restart-rmd "$1"
    must "$1 does not join again" until_true 20 all_joined
    on "$1" rmctl status | grep -q '^Page tracking: *no: the test of it that rmd makes at its start still runs' || fail "$1 knows it already"
}
start live n1 --group-size 1 -n 1 "$programs/memory" --mb=64 --zero-percent=0 --dirty-percent=1 --stop-file="$(stop_file live)"
running live
at=$(q where live 0) to=$(a_node_but "$(q where live 0)")

started "$at"
move live 0 "$to"
same "tracked by the source" "$(q way live 0 | cut -d ' ' -f 1)" yes
started "$at"
move live 0 "$at"
same "tracked for the destination" "$(q way live 0 | cut -d ' ' -f 1)" yes
see "frozen for $(q figures live | cut -d ' ' -f 2) us"
started "$at"
rmctl checkpoint-job "$(job live)" >"$work/saved" 2>&1 || fail "it is not saved: $(<"$work/saved")"
see "saved: $(<"$work/saved")"
on "$at" rmctl status | grep -q '^Page tracking: *yes' || fail "the checkpoint has not waited for the answer"
started "$at"
migrate live 0 "$to" --mode stop --wait --timeout 60 >"$work/migrate" 2>&1 || fail "--mode stop: $(<"$work/migrate")"
on "$at" rmctl status | grep -q '^Page tracking: *no' || fail "a move that reads nothing ahead has waited"
q settled 60 >/dev/null || fail "not settled"

# Where a busy machine has kept the test from its end, it is made again, and moves do not wait for that.
# shellcheck disable=SC2016 # the node's shell expands it
on "$at" sh -c 'printf "#!/bin/sh\nif [ ! -e /run/late ]; then touch /run/late; echo too busy; exit 3; fi\nexec %s.late \"\$@\"\n" "$1" >"$1"' sh $program
bed_do restart-rmd "$at"
says() { on "$at" rmctl status | grep -q "^Page tracking: *$1"; }
must "$at does not say why it cannot track" until_true 20 says 'no: too busy'
move live 0 "$at"
must "$at does not try again" until_true 40 says yes
move live 0 "$to"
same "tracked when it was tried again" "$(q way live 0 | cut -d ' ' -f 1)" yes
release live
finish live
ended_well live good
