#!/bin/bash
# A checkpoint that its owner has exported brings the job back after the cluster has removed the checkpoint and forgotten the job, on another node than it was exported on, and the result
# is the same to the last bit. Nobody else can take it away or bring it in, and no file that was changed, cut off or made up is believed, or leaves anything behind.
# limit: 400
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# Of her ended jobs two are known.
cluster 3 --cores 2 --set job.max_jobs_per_user=2 --set checkpoint.space_max_per_user=1G
must "there are no three voters" until_true 30 voters_up
bed_do stop-rmd n2
start_rmd_with_faults n2
must "not all joined" until_true 30 all_joined
until_true 20 as alice n1 rm-mpirun --checkpoint 1h -n 1 true 2>"$work/level" || fail "no job may be saved: $(<"$work/level")"

# export_by USER NODE FILE, import_by USER NODE FILE
export_by() {
    as "$1" "$2" rmctl export-checkpoint "$number" "$3" >"$work/said" 2>&1
}
import_by() {
    as "$1" "$2" rmctl import-checkpoint "$3" >"$work/said" 2>&1
}
# refused WHAT PATTERN CMD...
refused() {
    local what=$1 pattern=$2
    shift 2
    if "$@"; then fail "$what: it is believed: $(<"$work/said")"; fi
    see "$what: $(tail -n 1 "$work/said")"
    grep -q "$pattern" "$work/said" || fail "$what: it is refused for another reason: $(<"$work/said")"
    same "$what: lines that are said" "$(wc -l <"$work/said")" 1
}
# Of imports that came to nothing.
staged() {
    local node
    for node in $(nodes); do on "$node" sh -c 'ls -d /var/lib/rmd/checkpoints/import-* 2>/dev/null'; done
}
none_staged() {
    [[ -z $(staged) ]]
}
files() {
    as alice n1 sh -c 'ls -A /home/alice | grep "^saved" | paste -sd " "'
}
known() {
    as alice n1 rmctl list-checkpoints --no-header "$id" 2>/dev/null | awk '{ print $1 }' | grep -qx "$number"
}

# shellcheck disable=SC2016 # the job's shell expands it
start live n1 --checkpoint 1h --group-size 1 -n 3 sh -c 'exec 3>>/home/alice/kept.$OMPI_COMM_WORLD_RANK; echo begun >&3; exec "$@"' sh "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=20000
running live 60
id=$(job live)
as alice n1 rmctl checkpoint-job "$id" --timeout 60 >"$work/said" 2>&1 || fail "no checkpoint: $(<"$work/said")"
number=$(as alice n1 rmctl list-checkpoints --no-header "$id" | awk '/ DONE / { print $1 }' | tail -n 1)

refused "another user exports it" 'no job\|only' export_by bob n1 /home/bob/saved
refused "one that is not there" 'no checkpoint' as alice n1 sh -c "rmctl export-checkpoint $id.99 /home/alice/saved >/dev/null" 2>"$work/said"
for node in n1 n2 n3; do
    export_by alice $node "/home/alice/saved-$node" || fail "$node cannot export it: $(<"$work/said")"
    see "$node: $(<"$work/said")"
done
refused "onto a file" 'is there already' export_by alice n2 /home/alice/saved-n2
refused "into a directory of others" 'ermission' export_by alice n2 /root/saved
same "files in her home" "$(files)" "saved-n1 saved-n2 saved-n3"
same "mode and owner" "$(on n2 stat -c '%a %U' /home/alice/saved-n2)" "600 alice"
on n2 sh -c 'echo mover.export.data:fail >/run/rmd/fault'
refused "rm-mover fails" 'fault' export_by alice n2 /home/alice/saved-half
on n2 sh -c 'echo mover.export.data:kill >/run/rmd/fault'
refused "rm-mover is killed" 'unexpectedly' export_by alice n2 /home/alice/saved-half
same "files in her home" "$(files)" "saved-n1 saved-n2 saved-n3"
must "to standard output" as alice n3 sh -c "rm-checkpoint export $number - >saved-pipe"
same "its size" "$(on n2 stat -c %s /home/alice/saved-pipe)" "$(on n2 stat -c %s /home/alice/saved-n2)"

refused "the job runs" 'has not ended' import_by alice n2 /home/alice/saved-n2
must "it cannot be cancelled" as alice n1 rmctl cancel-job "$id"
finish live 60
refused "it is here" 'has a checkpoint' import_by alice n2 /home/alice/saved-n2
must "it cannot be removed" as alice n1 rmctl remove-checkpoint "$number"
must "it goes on from nothing" eval '! as alice n1 rmctl restart-job "$number" 2>/dev/null'

# spoil HOW: another file like it.
spoil() {
    on n2 python3 -c 'import os, sys
how = sys.argv[1]
with open("/home/alice/saved-n2", "rb") as f:
    data = bytearray(f.read())
place = {"line": 5, "key": 180, "head": 300, "middle": len(data) // 2, "late": len(data) - 60, "mac": len(data) - 3}
line, chunk = 256, (256 << 10) + 16
if how in place: data[place[how]] ^= 4
if how == "cut": del data[len(data) // 2:]
if how == "cut-mac": del data[-1:]
if how == "longer": data += b"x"
if how == "spliced": data[len(data) // 2:] = open("/home/alice/saved-n1", "rb").read()[len(data) // 2:]
if how == "random": data = bytearray(os.urandom(1 << 20))
if how == "empty": data = bytearray()
if how == "swapped": data[line + chunk:line + 3 * chunk] = data[line + 2 * chunk:line + 3 * chunk] + data[line + chunk:line + 2 * chunk]
if how == "repeated": data[line + 2 * chunk:line + 3 * chunk] = data[line + chunk:line + 2 * chunk]
if how == "left-out": del data[line + chunk:line + 2 * chunk]
if how == "cut-at-chunk": del data[line + 3 * chunk:]
if how == "line-of-another": data[:line] = open("/home/alice/saved-n1", "rb").read(line)
if how == "earlier": data[:line] = data[:line].replace(b"rmd-checkpoint 2 ", b"rmd-checkpoint 1 ")
if how == "twice": data = data + data
with open("/home/alice/saved-bad", "wb") as f:
    f.write(data)
if how == "sparse": os.truncate("/home/alice/saved-bad", 1 << 40)
if how == "nothing-but-sparse":
    os.truncate("/home/alice/saved-bad", 0)
    os.truncate("/home/alice/saved-bad", 1 << 40)
os.chown("/home/alice/saved-bad", os.stat("/home/alice").st_uid, os.stat("/home/alice").st_gid)' "$1"
}
for how in line key head middle late mac cut cut-mac cut-at-chunk longer spliced swapped repeated left-out line-of-another earlier \
    random empty twice sparse nothing-but-sparse; do
    spoil $how
    why=damaged
    [[ $how != earlier ]] || why='it is of format 1, and this rmd knows 2'
    refused "$how" "$why" import_by alice n2 /home/alice/saved-bad
done
on n2 cp /home/alice/saved-n2 /home/bob/saved
on n2 chown bob /home/bob/saved
refused "another user's" 'only this user' import_by bob n2 /home/bob/saved
on n2 rm /home/bob/saved

on n2 sh -c 'echo mover.import.data:kill >/run/rmd/fault'
refused "rm-mover is killed" 'unexpectedly' import_by alice n2 /home/alice/saved-n2
on n2 rm -f /run/rmd/fault

# One who goes in the middle.
bed_do exec n2 --user alice -- sh -c 'head -c $(($(stat -c %s saved-n2) / 2)) saved-n2 >saved-bad; (cat saved-bad; exec sleep 20) | timeout -s KILL 5 rmctl import-checkpoint -' </dev/null >/dev/null 2>&1 &
hanging=$!
must "nothing comes" until_true 20 eval '! none_staged'
wait "$hanging"
must "what an import that was broken off had brought is left: $(staged)" until_true 20 none_staged
must "the log knows of something" eval '! known'

on n2 sed -i 's/^space_max_per_user *=.*/space_max_per_user = 1M/' /etc/rmd/rmd.conf
must "rmd on n2 does not start again" bed_do restart-rmd n2
must "n2 is not back" back n2
refused "no room" 'no room' import_by alice n2 /home/alice/saved-n2
must "what there was no room for is left: $(staged)" until_true 20 none_staged

# All that the cluster knew of the job goes.
forgotten() {
    as alice n1 rm-mpirun -n 1 true
    ! as alice n1 rmctl show-job "$id" >/dev/null 2>&1
}
must "the job is not forgotten" until_true 60 forgotten
must "its stores stay" until_true 20 eval '! on n1 test -e /var/lib/rmd/checkpoints/'"$id"
# Nobody knows when the job has left, and what was added to its file since.
as alice n1 sh -c 'echo note >>kept.0'
import_by alice n3 /home/alice/saved-n1 || fail "it is not imported: $(<"$work/said")"
see "$(<"$work/said")"
must "the nodes do not know what n3 knows" until_true 20 eval 'asker=n3 all_joined'
must "it is not listed" known
must "it is no good" as alice n1 rmctl verify-checkpoint "$number"
same "the job" "$(as alice n1 rmctl list-jobs --all --no-header | awk -v id="$id" '$1 == id { print $2 }')" live

must "it cannot go on" as alice n1 rmctl restart-job "$number"
must "it does not go on" q state live RUNNING,FOLDED 60 >/dev/null
must "it is another job" test "$(job live)" = "$id"
must "what was added to its file is lost: $(on n1 sh -c 'ls /home/alice')" on n1 sh -c 'grep -qx note /home/alice/kept.0.cut-*'
same "its file" "$(on n1 cat /home/alice/kept.0)" begun
refused "it runs again" 'has not ended' import_by alice n1 /home/alice/saved-n1
bed_do exec n1 --user alice -- rmctl attach-job "$id" </dev/null >"$work/live.out" 2>"$work/live.err" &
front_pid[live]=$!
sleep 2
release live
finish live 120
ended_well live hash
same "restored from" "$(q job live restored_from)" "${number#*.}"

# It has ended well, and may go on from there once more all the same: through a pipe.
must "through a pipe" as alice n1 sh -c 'rm-checkpoint import - <saved-pipe'
must "it cannot go on from what has ended" as alice n1 rmctl restart-job "$number"
as alice n1 rmctl attach-job "$id" >"$work/again" 2>&1 || fail "it has not ended well: $(<"$work/again")"
grep -q "hash" "$work/again" || fail "what it prints is gone: $(<"$work/again")"
must "an import is left: $(staged)" none_staged
as alice n1 sh -c 'rm -f saved*'
same_as_undisturbed live 3 --group-size 1
