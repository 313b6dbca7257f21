#!/bin/bash
# Ctrl-C, or the end of a session, in the middle of an export or an import of a checkpoint: no file is there under the name that was to be written, and no half of one under another; nothing is
# imported, and no node keeps anything that had come; the command says so in a line, and has ended by that signal. What was there before is as good as it was.
# limit: 200
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 2 --cores 2 --set checkpoint.rate=1500K
until_true 20 as alice n1 rm-mpirun --checkpoint 1h -n 1 true 2>"$work/level" || fail "no job may be saved: $(<"$work/level")"

# interrupted SIGNAL WHEN FILE WORDS CMD...: on n2.
interrupted() {
    local signal=$1 words=$4
    as alice n2 timeout 90 "$programs/interrupt" "$signal" "$2" "$3" "${@:5}" >"$work/said" 2>&1 || fail "$5: $(<"$work/said")"
    see "$2, SIG$signal: $(paste -sd ' ' "$work/said")"
    same "$5: it has ended by" "$(head -n 1 "$work/said")" "SIG$signal"
    same "$5: lines that are said" "$(wc -l <"$work/said")" 2
    grep -q "^rmctl: .*interrupted: $words" "$work/said" || fail "$5: unclear: $(<"$work/said")"
}
files() {
    on n1 sh -c 'ls -A /home/alice | grep "^saved" | paste -sd " "'
}
: >"$work/staged"
# Also without an rm-mover that goes on for nobody.
none_staged() {
    ! on n2 sh -c 'ls -d /var/lib/rmd/checkpoints/import-* /run/rmd/exchanges/* || pgrep -x rm-mover' >"$work/staged" 2>/dev/null
}
known() {
    as alice n1 rmctl list-checkpoints --no-header "$id" 2>/dev/null | awk '{ print $1 }' | grep -qx "$number"
}
nothing_imported() {
    must "what had come is left: $(paste -sd ' ' "$work/staged")" until_true 10 none_staged
    must "it is imported all the same" eval '! known'
    same "stores of the job on n2" "$(on n2 sh -c 'ls "/var/lib/rmd/checkpoints/$1" 2>/dev/null' sh "$id")" ""
}

start live n1 --checkpoint 1h --group-size 1 -n 2 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=20000
running live 60
id=$(job live)
as alice n1 rmctl checkpoint-job "$id" --timeout 60 >"$work/said" 2>&1 || fail "no checkpoint: $(<"$work/said")"
number=$(as alice n1 rmctl list-checkpoints --no-header "$id" | awk '/ DONE / { print $1 }' | tail -n 1)

for signal in INT TERM HUP; do
    interrupted $signal written saved "no file was written" rmctl export-checkpoint "$number" saved
    same "files in her home" "$(files)" ""
    must "an rm-mover goes on: $(paste -sd ' ' "$work/staged")" until_true 10 none_staged
done
# In the middle of what goes before the file.
interrupted INT started - "no file was written" rmctl export-checkpoint "$number" saved
same "files in her home" "$(files)" ""
as alice n2 rmctl export-checkpoint "$number" saved >"$work/said" 2>&1 || fail "it cannot be exported any more: $(<"$work/said")"

must "it cannot be cancelled" as alice n1 rmctl cancel-job "$id"
finish live 60
must "it cannot be removed" as alice n1 rmctl remove-checkpoint "$number"
must "its stores stay" until_true 20 eval '! on n2 test -e /var/lib/rmd/checkpoints/'"$id"
for signal in INT HUP; do
    interrupted $signal begun saved "nothing was imported" rmctl import-checkpoint saved
    nothing_imported
done
interrupted INT read saved "it had been sent; 'rmctl list-checkpoints' shows whether it was imported" rmctl import-checkpoint saved
nothing_imported

# As it does in a terminal's foreground, not as a job that does not hear of it.
as alice n2 sh -c 'trap "" INT; exec "$@"' sh "$programs/interrupt" INT begun saved rmctl import-checkpoint saved >"$work/said" 2>&1 || fail "$(<"$work/said")"
same "one that ignores SIGINT" "$(paste -sd ' ' "$work/said")" "exit 0"
must "the nodes do not know what n2 knows" until_true 20 eval 'asker=n2 all_joined'
must "it is not imported" known
must "it is no good" as alice n1 rmctl verify-checkpoint "$number" >"$work/said"
as alice n1 rm -f /home/alice/saved
