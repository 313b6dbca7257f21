#!/bin/bash
# A user of the node that a group moves to connects to the port of its mover, without end and without a word: the mover that is waited for gets in all the same, and the log does not
# grow with each stranger.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 4
start live n1 --group-size 1 -n 2 "$programs/ordered" --stop-file="$(stop_file live)"
running live
before=$(($(bed_do logs n1 | wc -l) + $(bed_do logs n2 | wc -l)))
for n in n1 n2; do
    as bob $n "$programs/badclient" movers 300 /home/bob/strangers.stop >"$work/strangers.$n" 2>&1 &
    floods+=($!)
done
moves=$(thorough 40 8)
for ((i = 0; i < moves; i++)); do
    to=$(a_node_but "$(q where live 1)")
    migrate live 1 "$to" --wait --timeout 60 >"$work/migrate" 2>&1 || fail "move $i to $to: $(<"$work/migrate")"
    must "move $i to $to is not over" q arrived live 1 "$to" 60 >/dev/null
done
on n1 touch /home/bob/strangers.stop
wait "${floods[@]}"
strangers=$(cat "$work"/strangers.* | awk '{ n += $1 } END { print n }')
lines=$(($(bed_do logs n1 | wc -l) + $(bed_do logs n2 | wc -l) - before))
see "$moves moves beside $strangers strangers: $(q moves live | grep -c ' DONE ') done, $lines lines in the logs"
((strangers > 1000)) || fail "too few strangers to tell: $(cat "$work"/strangers.*)"
((lines < moves * 40)) || fail "the logs have $lines lines: $(bed_do logs n2 | tail -n 3)"
release live
finish live
ended_well live hash
