#!/bin/bash
# A checkpoint is damaged on a disk, in each kind of file: it is found and named, by who asks and by rmd itself, and copied again from a node that has it whole; where no good
# copy is left, the job goes on from the one before it. What a lost node had is copied again, too. A full disk costs a checkpoint, and never the job.
# complete: unit tests damage each kind of file of a store
# limit: 400
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# Only n1 reads by itself: on the others who asks must be the one who finds.
cluster 4 --cores 2 --set cluster.node_timeout=2s --set checkpoint.verify=0
on n1 sed -i 's/^verify *=.*/verify = 3s/' /etc/rmd/rmd.conf
must "n1 does not start again" bed_do restart-rmd n1
must "n1 is not back" back n1
must "there are no three voters" until_true 30 voters_up
must "not all joined" until_true 30 all_joined
until_true 20 as alice n1 rm-mpirun --checkpoint 1h -n 1 true 2>"$work/level" || fail "no job may be saved: $(<"$work/level")"

newest() {
    rmctl list-checkpoints --json "$(job live)" | python3 -c 'import json, sys; print(max(c["id"] for c in json.load(sys.stdin)["checkpoints"] if c["state"] == "DONE"))'
}
# holders GROUP [N]: who has that part of checkpoint N, the newest.
holders() {
    rmctl list-checkpoints --json "$(job live)" | python3 -c 'import json, sys
group, number = int(sys.argv[1]), int(sys.argv[2])
print(*[n for c in json.load(sys.stdin)["checkpoints"] if c["id"] == number for p in c["parts"] if p["capsule"] == group for n in p["stored"]])' "$1" "${2:-$(newest)}"
}
holds() {
    [[ " $(holders "$2" "$3") " == *" $1 "* ]]
}
two_hold() {
    [[ $(holders "$1" "$2") == *' '* ]]
}
save() {
    rmctl checkpoint-job "$(job live)" --timeout 60 >"$work/said" 2>&1
}
# flip NODE GROUP FILE PLACE: one bit of the byte there; negative: from the end.
flip() {
    on "$1" python3 -c 'import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(int(sys.argv[2]), 2 if int(sys.argv[2]) < 0 else 0)
    at = f.tell()
    byte = f.read(1)[0]
    f.seek(at)
    f.write(bytes([byte ^ 4]))' "/var/lib/rmd/checkpoints/$(job live)/g$2/$3" "$4"
}
verify() {
    rmctl verify-checkpoint "$(job live).$1" >"$work/verified" 2>&1
}
is_whole() {
    verify "$1" && two_hold 1 "$1"
}

start live n1 --on-node-loss restart --restarts 100 --checkpoint 24h --group-size 1 -n 4 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=20000
running live 40
save || fail "no checkpoint: $(<"$work/said")"
number=$(newest)
verify "$number" || fail "a good one is no good: $(<"$work/verified")"
see "good: $(paste -sd '|' "$work/verified")"
grep -q 'group' "$work/verified" && fail "a good part is said to be bad: $(<"$work/verified")"

must "bob may verify it" eval '! as bob n1 rmctl verify-checkpoint "$(job live).$number" 2>"$work/bob"'
see "another user: $(<"$work/bob")"

# One that holds it, and is not n1; twice in each kind of file, a file that is missing, half a manifest.
pack=pack-$number manifest=manifest-$number
for damage in "flip $pack 4000" "flip $pack -9" "flip $manifest 60" "flip $manifest -3" "rm $pack" "rm $manifest" "cut $manifest"; do
    read -r how file place <<<"$damage"
    victim=$(holders 1 "$number" | tr ' ' '\n' | grep -vx n1 | shuf -n 1)
    case $how in
    flip) flip "$victim" 1 "$file" "$place" ;;
    rm) on "$victim" rm "/var/lib/rmd/checkpoints/$(job live)/g1/$file" ;;
    cut) on "$victim" truncate -s 500 "/var/lib/rmd/checkpoints/$(job live)/g1/$file" ;;
    esac
    verify "$number" && fail "$damage on $victim: it is not found: $(<"$work/verified")"
    grep -q "^$victim: group 1: " "$work/verified" || fail "$damage on $victim: it is not named: $(<"$work/verified")"
    [[ $how != flip ]] || grep -q "^$victim: group 1: .*$file" "$work/verified" || fail "$damage on $victim: the file is not named: $(<"$work/verified")"
    until_true 20 is_whole "$number" || fail "$damage on $victim: it is not copied again: $(holders 1 "$number"), $(<"$work/verified")"
    see "$damage on $victim: $(rmctl events | grep checkpoint-copy-lost | tail -n 1 | sed 's/.*checkpoint-copy-lost *//'); then $(holders 1 "$number") have it"
done

# What n1 has it reads by itself.
group=$(for g in 0 1 2 3; do if holds n1 $g "$number"; then echo $g; fi; done | head -n 1)
if [[ $group ]]; then
    flip n1 "$group" "$pack" 4000
    must "n1 does not find by itself that group $group is damaged" until_true 20 eval 'rmctl events | grep "checkpoint-copy-lost.*n1" | grep -q "group '"$group"'\|checkpoint '"$(job live).$number"'"'
    must "it is not copied again" until_true 20 is_whole "$number"
    see "n1 by itself: $(rmctl events | grep checkpoint-copy-lost | tail -n 1)"
fi

# Halves of files, as of a copy that was given up with its checkpoint, go when the next one is made.
victim=$(holders 1 "$number" | tr ' ' '\n' | grep -vx -e "$(q where live 1)" | head -n 1) halves=()
for file in pack-1.part manifest-1.part "pack-$((number + 1)).part"; do halves+=("/var/lib/rmd/checkpoints/$(job live)/g1/$file"); done
on "$victim" touch "${halves[@]}"
save || fail "no other checkpoint: $(<"$work/said")"
no_halves() { ! on "$victim" ls "${halves[@]}" >"$work/halves" 2>/dev/null && [[ ! -s $work/halves ]]; }
must "halves of files stay on $victim: $(on "$victim" ls "/var/lib/rmd/checkpoints/$(job live)/g1" | tr '\n' ' ')" until_true 20 no_halves

# No good copy of group 1 of the newest: the one before it.
number=$(newest)
# At once, or n1 has it copied again from one that is still good.
for n in $(holders 1 "$number"); do
    flip "$n" 1 "manifest-$number" 60 &
    flips+=($!)
done
wait "${flips[@]}"
victim=$(q where live 1)
[[ $victim != n1 ]] || victim=$(q where live 2)
[[ $victim != n1 ]] || victim=$(q where live 3)
before=$(q job live attempt)
bed_do power-off "$victim"
goes_on() {
    (($(q job live attempt) > before)) && [[ $(q job live state) =~ RUNNING|FOLDED ]]
}
must "it does not go on after $victim was lost: $(q job live state), $(q job live reason); $(rmctl events | tail -n 8)" until_true 90 goes_on
from=$(q job live restored_from)
see "no good copy of group 1 in $number, $victim lost: it goes on from $from, attempt $(q job live attempt)"
((from > 0 && from < number)) || fail "it goes on from $from, not from the one before $number"

# The node stays away: what it had is copied again, from those that have it.
copied() {
    local g
    for g in 0 1 2 3; do
        (($(holders $g "$from" | tr ' ' '\n' | grep -vxc "$victim") >= 2)) || return 1
    done
}
must "what $victim had is not copied again: $(for g in 0 1 2 3; do holders $g "$from"; done)" until_true 100 copied
see "$victim away for a minute: now $(for g in 0 1 2 3; do holders $g "$from" | tr ' ' ,; done | paste -sd ' ') have it"
bed_do power-on "$victim"
must "$victim does not join" until_true 60 all_joined

# A full disk.
side=$(q where live 1)
on "$side" sh -c 'mkdir -p /var/lib/rmd/checkpoints && mount -t tmpfs -o size=64k,mode=0700 tmpfs /var/lib/rmd/checkpoints'
save && fail "a checkpoint is made on a full disk"
see "full disk: $(tail -n 1 "$work/said")"
grep -qiE 'space|room' "$work/said" || fail "it does not say that the disk is full: $(<"$work/said")"
[[ $(q job live state) =~ RUNNING|FOLDED ]] || fail "a full disk has ended the job: $(q job live state)"
on "$side" umount -l /var/lib/rmd/checkpoints
until_true 40 save || fail "no checkpoint once there is room: $(<"$work/said")"

release live
finish live 60
ended_well live hash
same_as_undisturbed live 4 --group-size 1
