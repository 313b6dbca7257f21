#!/bin/bash
# While the owner of a checkpoint exports it, and takes his time to connect, another user of the node connects to whatever the node shows him of that, thousands of times and with many
# connections at once. He gets no byte, the owner all of them and at once, and the log does not grow with each try.
# Of what the owner gets he can read nothing but by which key it is sealed. What comes back gives its owner neither groups that he
# is no member of any more, nor more jobs than he may have.
# limit: 150
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# Without compression, so that whatever is not encrypted is found.
cluster 2 --cores 2 --set checkpoint.codec=none --set job.max_jobs_per_user=2 --set job.max_capsules_per_core=2
# members [USER]: of the group proj, on both nodes; without one there is no such group.
members() {
    local node
    for node in n1 n2; do
        on $node sh -c 'sed -i /^proj:/d /etc/group; [ $# -eq 0 ] || echo "proj:x:2000:$1" >>/etc/group' sh "$@"
    done
}
members alice
until_true 20 as alice n1 rm-mpirun --checkpoint 1h -n 1 true 2>"$work/level" || fail "no job may be saved: $(<"$work/level")"
settings+=("PASSWORD=secret-of-a-rank")
start live n1 --checkpoint 1h -n 2 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=20000
running live 60
id=$(job live)
as alice n1 rmctl checkpoint-job "$id" --timeout 60 >"$work/said" 2>&1 || fail "no checkpoint: $(<"$work/said")"
number=$(as alice n1 rmctl list-checkpoints --no-header "$id" | awk '/ DONE / { print $1 }' | tail -n 1)
must "undisturbed" as alice n2 rmctl export-checkpoint "$number" /home/alice/alone >/dev/null
# found TEXT FILE...: in how many of these.
found() {
    on n2 sh -c 'text=$1; shift; cat "$@" | grep -aoF "$text" | wc -l' sh "$@"
}
for text in secret-of-a-rank "$(stop_file live)" alice; do
    stored=$(found "$text" $(on n2 sh -c "ls /var/lib/rmd/checkpoints/$id/*/*"))
    see "'$text': $stored times in the stores, $(found "$text" /home/alice/alone) times in the export"
    ((stored > 0)) || [[ $text == alice ]] || fail "the stores do not have '$text', so the export tells nothing"
    same "'$text' in the export" "$(found "$text" /home/alice/alone)" 0
done

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
# refused WHAT PATTERN CMD...
refused() {
    local what=$1 pattern=$2
    shift 2
    "$@" >"$work/said" 2>&1 && fail "$what: it is allowed: $(<"$work/said")"
    see "$what: $(tail -n 1 "$work/said")"
    grep -q "$pattern" "$work/said" || fail "$what: it is refused for another reason: $(<"$work/said")"
}
# goes_on CMD...: restarts the job, which runs and is cancelled.
goes_on() {
    must "it may not go on" "$@"
    q state live RUNNING 60 >/dev/null || fail "it does not go on"
    must "it cannot be cancelled" rmctl cancel-job "$id"
    q state live CANCELLED 60 >/dev/null || fail "it does not end"
}

see "the groups of the time when it was saved"
members
refused "an import with a group of long ago" 'not a member of any more (2000); root' as alice n2 rmctl import-checkpoint /home/alice/good
must "root may not import it" on n2 rmctl import-checkpoint /home/alice/good
refused "a restart with a group of long ago" 'not a member of any more (2000); root' as alice n2 rmctl restart-job "$id"
refused "root does not know" 'saved-rights' on n2 rmctl restart-job "$id"
refused "she says that she knows" 'for root' as alice n2 rmctl restart-job --saved-rights "$id"
on n1 sed -i 's/^alice:/carol:/' /etc/passwd
refused "the uid is another user's" 'was alice when' on n1 rmctl restart-job "$id"
on n1 sed -i 's/^carol:/alice:/' /etc/passwd
goes_on on n2 rmctl restart-job --saved-rights "$id"

see "more jobs than she may have"
members alice
must "n1 does not start again" bed_do restart-rmd n1 # who has asked before is known for a minute
must "n1 is not back" back n1
for name in one two; do
    as alice n1 rm-mpirun --detach --job-name $name -n 100 true >"$work/said" 2>&1 || fail "$name: $(<"$work/said")"
done
refused "a third one by a restart" 'restart-job: alice has 2 jobs that have not ended.*max_jobs_per_user' as alice n1 rmctl restart-job "$id"
for name in one two; do rmctl cancel-job "$(q job $name id)" || fail "$name cannot be cancelled"; done
goes_on as alice n1 rmctl restart-job "$id"
must "its checkpoint cannot be removed" as alice n1 rmctl remove-checkpoint "$number"
as alice n1 rm -f /home/alice/good

see "parked groups, which need no cores, fill no node"
refused "300 of them" 'max_capsules_per_core' as alice n1 rm-mpirun -n 1 --max-ranks 300 --group-size 1 true
start parked n1 --max-ranks 7 --group-size 1 -n 1 sleep 600
q state parked RUNNING 60 >/dev/null || fail "it does not run"
same "capsules of n1 and n2" "$(q place parked | awk '{ n[$2]++ } END { print n["n1"], n["n2"] }')" "4 4"
refused "a move to a full node" 'max_capsules_per_core' as alice n1 rmctl migrate-job "$(job parked)" --group 0 --to "$(q place parked | awk '$1 == 0 { print $2 == "n1" ? "n2" : "n1" }')"
as alice n1 rm-mpirun --detach --job-name more --max-ranks 2 --group-size 1 -n 1 true >"$work/said" 2>&1 || fail "more: $(<"$work/said")"
must "why another one waits is not told" until_true 30 eval '[[ $(q job more reason) == *max_capsules_per_core* ]]'
as bob n2 timeout 60 rm-mpirun -n 1 true || fail "who needs a core, and has one, waits for parked groups"
must "it cannot be cancelled" rmctl cancel-job "$(job parked)"
finish parked 60
q state more COMPLETED 60 >/dev/null || fail "another one waits for ever"
# What they have written is kept until somebody has it.
for name in live more; do as alice n1 rmctl attach-job "$(q job $name id)" >/dev/null 2>&1; done
