#!/bin/bash
# A checkpoint is exported on a node that has none of it while a node that has is lost, before or in the middle: what that would have sent comes from the other one. Where no node is left that has
# a part, the command ends, and names the part and the node.
# complete: checkpoint/export exports, and unit tests show what is copied
# limit: 240
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 2 --set cluster.node_timeout=3s --set checkpoint.rate=3M
must "there are no three voters" until_true 30 voters_up
until_true 20 as alice n1 rm-mpirun --checkpoint 1h -n 1 true 2>"$work/level" || fail "no job may be saved: $(<"$work/level")"

# save NAME: a job that has ended, with one checkpoint: $number.
save() {
    start "$1" n1 --checkpoint 1h --group-size 1 -n 3 "$programs/memory" --mb=8 --zero-percent=0 --stop-file="$(stop_file "$1")"
    running "$1" 60
    rmctl checkpoint-job "$(job "$1")" --timeout 90 >"$work/said" 2>&1 || fail "$1: no checkpoint: $(<"$work/said")"
    number=$(job "$1").1
    must "$1 cannot be cancelled" rmctl cancel-job "$(job "$1")"
    finish "$1"
}
# holders: "GROUP NODE..." of each part of $number; the first node has captured it, and sends it as long as it is up.
holders() {
    on "$asker" python3 -c 'import json, sys
for c in json.loads(sys.argv[1])["checkpoints"]:
    if c["id"] == 1 and str(c["job"]) + ".1" == sys.argv[2]:
        for p in c["parts"]:
            print(p.get("capsule", 0), p["node"], *(n for n in p["stored"] if n != p["node"]))' "$(rmctl_on "$asker" list-checkpoints --json)" "$number"
}
rmctl_on() {
    on "$1" rmctl "${@:2}"
}
copied() {
    [[ $(holders | awk 'NF < 3' | wc -l) == 0 && $(holders | wc -l) == 4 ]]
}
# export_on NODE: its exit status in exported.
export_on() {
    exported=0
    as alice "$1" rm -f saved
    as alice "$1" timeout 120 rmctl export-checkpoint "$number" saved >"$work/said" 2>&1 || exported=$?
}

save first
must "it has no copies: $(holders)" until_true 60 copied
holders | sed 's/^/    /'
# A part that two others have: one of these is lost in the middle of it.
read -r part gone other < <(holders | awk '$2 != "n1"' | tail -n 1)
[[ $gone ]] || fail "no node but n1 has captured a part: $(holders)"
asker=$(nodes | grep -vx "$gone" | grep -vx "$other")
see "group $part is on $gone and $other; exported on $asker, while $gone is lost"
sends() {
    on "$gone" pgrep -x rm-mover >/dev/null
}
(export_on "$asker" && exit "$exported") &
exporting=$!
must "$gone sends nothing to $asker" until_true 20 sends
bed_do power-off "$gone"
lost=$EPOCHREALTIME
wait "$exporting" || fail "it is not exported without $gone: $(<"$work/said")"
see "$(<"$work/said")"
same "what $asker has" "$(holders | grep -c " $asker")" 4
export_on "$asker"
same "exit status after $gone was lost ($(<"$work/said"))" "$exported" 0
bed_do power-on "$gone"
must "$gone does not join" back "$gone" "$lost"
asker=n1
must "what was exported is no good" as alice n1 sh -c 'test -s saved && rm saved'

# Nobody else has a part.
for n in $(nodes); do
    on "$n" sed -i '/^\[checkpoint\]/a copies = 0' /etc/rmd/rmd.conf
    bed_do restart-rmd "$n"
done
must "not all are back" until_true 30 all_joined
must "there are no three voters" until_true 30 voters_up
save second
read -r part gone < <(holders | awk '$2 != "n1" && NF == 2' | head -n 1)
[[ $gone ]] || fail "no node but n1 has a part: $(holders)"
bed_do power-off "$gone"
lost=$EPOCHREALTIME
export_on n1
same "exit status without a holder ($(<"$work/said"))" "$exported" 1
see "$(<"$work/said")"
grep -q "no node that is up has group [0-9]* of it (that has: $gone)" "$work/said" || fail "the node is not named: $(<"$work/said")"
same "lines that are said" "$(wc -l <"$work/said")" 1
same "files in her home" "$(on n1 sh -c 'ls -A /home/alice | grep "^saved"')" ""
bed_do power-on "$gone"
must "$gone does not join" back "$gone" "$lost"
export_on n1
same "exit status when $gone is back ($(<"$work/said"))" "$exported" 0
as alice n1 rm -f saved
