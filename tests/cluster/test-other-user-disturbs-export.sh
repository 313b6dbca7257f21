#!/bin/bash
# While the owner of a checkpoint exports it, and takes his time to connect, another user of the node connects to whatever the node shows him of that, thousands of times and with many
# connections at once. He gets no byte, the owner all of them and at once, and the log does not grow with each try.
# limit: 120
. "${BASH_SOURCE[0]%/*}/lib.sh"

cluster 2 --cores 2
until_true 20 as alice n1 rm-mpirun --checkpoint 1h -n 1 true 2>"$work/level" || fail "no job may be saved: $(<"$work/level")"
start live n1 --checkpoint 1h -n 2 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=5000
running live 60
id=$(job live)
as alice n1 rmctl checkpoint-job "$id" --timeout 60 >"$work/said" 2>&1 || fail "no checkpoint: $(<"$work/said")"
number=$(as alice n1 rmctl list-checkpoints --no-header "$id" | awk '/ DONE / { print $1 }' | tail -n 1)
must "undisturbed" as alice n2 rmctl export-checkpoint "$number" /home/alice/alone >/dev/null

before=$(bed_do logs n2 | wc -l)
as bob n2 "$programs/spy" 10 >"$work/spied" 2>&1 &
spy=$!
sleep 1
for late in 4 0; do
    as alice n2 timeout 30 "$programs/badclient" export "$id" "${number#*.}" $late /home/alice/late >"$work/late" 2>&1 ||
        fail "the owner does not get it beside another user: $(<"$work/late")"
    see "the owner, $late s later: $(<"$work/late")"
    grep -q '^all of it, after [0-2][.]' "$work/late" || fail "the owner does not get all of it at once: $(<"$work/late")"
    same "its size" "$(on n2 stat -c %s /home/alice/late)" "$(on n2 stat -c %s /home/alice/alone)"
done
wait "$spy" || fail "no other user: $(<"$work/spied")"
lines=$(($(bed_do logs n2 | wc -l) - before))
see "another user: $(<"$work/spied"); $lines lines in the log"
tried=$(sed -n 's/.* \([0-9]*\) tried.*/\1/p' "$work/spied")
((tried > 300)) || fail "too few tries to tell: $(<"$work/spied")"
grep -q ' 0 bytes$' "$work/spied" || fail "another user has got something: $(<"$work/spied")"
((lines < 20)) || fail "the log has $lines lines of it: $(bed_do logs n2 | tail -n 3)"
grep -q ' 0 let in' "$work/spied" || fail "another user may connect: $(<"$work/spied")"
same "sockets that are left" "$(on n2 ls -A /run/rmd/exchanges)" ""
must "the export is no good" as alice n2 sh -c 'mv late good && rm alone'
must "it cannot be cancelled" as alice n1 rmctl cancel-job "$id"
finish live 60
must "it cannot be removed" as alice n1 rmctl remove-checkpoint "$number"
must "what the owner has got is no good" as alice n2 rmctl import-checkpoint /home/alice/good >/dev/null
as alice n1 rm -f /home/alice/good
