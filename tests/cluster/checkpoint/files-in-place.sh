#!/bin/bash
# A job that adds to sums in files, by pwrite(2) and through a mapping, has right ones after its nodes were lost: with --checkpoint-files copy they go back with it.
# complete: unit tests show what a rollback does to files
# limit: 300
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 4 --cores 2 --set cluster.node_timeout=2s
must "there are no three voters" until_true 30 voters_up
must "no job may be saved" until_true 20 as alice n1 rm-mpirun --checkpoint 1h -n 1 true

newest() {
    on "$asker" rmctl list-checkpoints --no-header "$(job "$1")" 2>/dev/null | awk '/ DONE / { n = $1 } END { print n }'
}
saved_after() {
    [[ $(newest "$1") && $(newest "$1") != "$2" ]]
}
runs_again() {
    [[ $(q job sums attempt) == "$1" && $(q job sums state) == RUNNING ]]
}
is_back() {
    [[ $(q node "$1" state) =~ IDLE|MIXED|ALLOCATED ]]
}
# The last line that a rank has written, as of all nodes' shared file system.
iteration() {
    on "$asker" tail -n 1 /home/alice/sums/append.0 | cut -d ' ' -f 2
}
beyond() {
    (($(iteration) > $1))
}

as alice n1 mkdir -p /home/alice/sums
as alice n1 rm-mpirun --checkpoint-files copy -n 1 true 2>"$work/refused" && fail "copies without checkpoints are accepted"
grep -q "'copy' needs --checkpoint" "$work/refused" || fail "unclear: $(<"$work/refused")"
start sums n1 --on-node-loss restart --checkpoint 5s --checkpoint-files copy --group-size 1 -n 4 "$programs/records" --dir=/home/alice/sums --iterations=20000 --stop-file="$(stop_file sums)" --pause-usec=20000 --ledger
for round in 1 2; do
    before=$(newest sums)
    must "no checkpoint of sums in round $round" until_true 60 saved_after sums "$before"
    at=$(iteration)
    must "it does not go on" until_true 30 beyond $((at + 100)) # which goes back
    attempt=$(q job sums attempt)
    victim=$(q place sums | grep -v '^-1 ' | cut -d ' ' -f 2 | grep -v "^$asker$" | head -n 1)
    [[ $victim ]] || fail "no node to lose: $(q place sums | paste -sd ' ')"
    [[ $round == 1 ]] || as alice "$asker" rm /home/alice/sums/map.0 # made anew
    bed_do power-off "$victim" >/dev/null
    must "sums does not run again in round $round" until_true 60 runs_again $((attempt + 1))
    see "$victim lost at iteration $at and 100 more; it goes on from $(iteration)"
    bed_do power-on "$victim" >/dev/null
    must "$victim is not back" until_true 60 is_back "$victim"
done
on "$asker" rmctl events --no-header 2>/dev/null | grep -F "sums" | grep 'perhaps not as they were' && fail "files are in doubt"
at=$(iteration)
must "it does not go on in the end" until_true 30 beyond $((at + 100))
release sums
finish sums
ended_well sums 'good$'
see "$(tail -n 1 "$work/sums.out")"
