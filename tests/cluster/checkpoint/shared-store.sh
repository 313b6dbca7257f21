#!/bin/bash
# With a store that all nodes share ([checkpoint] store = PATH) any node exports a checkpoint, and any imports it, at once and with nothing copied; what is removed gives its room back, also when nothing else happens; an rmd that starts removes what imports of its own have left
# there, and what was being removed, but no imports of a node whose name begins like its own. A node that does not share the store says so.
# complete: checkpoint/faults saves, and unit tests show a store of several nodes
# limit: 300
. "${BASH_SOURCE[0]%/*}/../lib.sh"
store=/home/store

cluster 3 --cores 2 --set checkpoint.store=$store
must "there are no three voters" until_true 30 voters_up
until_true 20 as alice n1 rm-mpirun --checkpoint 1h -n 1 true 2>"$work/level" || fail "no job may be saved: $(<"$work/level")"

# restart_with NODE STORE
restart_with() {
    on "$1" sed -i "s|^store *=.*|store = $2|" /etc/rmd/rmd.conf
    bed_do restart-rmd "$1"
    must "$1 is not back" back "$1"
}
staged() {
    on n1 sh -c 'cd "$1" && ls -d import-*' sh $store 2>/dev/null | paste -sd ' '
}
start live n1 --checkpoint 1h --group-size 1 -n 3 "$programs/ordered" --stop-file="$(stop_file live)" --pause-usec=20000
running live 60
id=$(job live) number=$(job live).1
as alice n1 rmctl checkpoint-job "$id" --timeout 60 >"$work/said" 2>&1 || fail "no checkpoint: $(<"$work/said")"
for n in $(nodes); do
    as alice "$n" timeout 30 rmctl export-checkpoint "$number" "/home/alice/saved-$n" >"$work/said" 2>&1 || fail "$n cannot export it: $(<"$work/said")"
    see "$n: $(<"$work/said")"
done
must "a user looks into the store" eval '! as alice n1 ls $store >/dev/null 2>&1'

# One whose store is its own: it has no part of it, and can have none.
restart_with n3 partner
as alice n3 timeout 30 rmctl export-checkpoint "$number" /home/alice/saved >"$work/said" 2>&1 && fail "n3 exports what it has not"
see "n3, with another store: $(<"$work/said")"
grep -q 'is in a store that nodes share, and .* is another one on this node' "$work/said" || fail "unclear: $(<"$work/said")"
restart_with n3 $store

must "it cannot be cancelled" as alice n1 rmctl cancel-job "$id"
finish live
must "it cannot be removed" as alice n1 rmctl remove-checkpoint "$number"
must "its stores stay" until_true 100 eval '! on n1 test -e $store/$id'
as alice n2 timeout 60 rmctl import-checkpoint /home/alice/saved-n1 >"$work/said" 2>&1 || fail "it is not imported on n2: $(<"$work/said")"
see "$(<"$work/said")"
must "the nodes do not know what n2 knows" until_true 20 eval 'asker=n2 all_joined'
must "it is no good" as alice n3 rmctl verify-checkpoint "$number" >"$work/said"
until_true 20 eval '[[ ! $(staged) ]]' || fail "imports that are left: $(staged)"

# Left by rmds that were killed: n1's own, and another node's.
on n1 sh -c 'cd "$1" && mkdir -p import-n1-0123456789abcdef import-n1-a-0123456789abcdef import-n2-0123456789abcdef import-n1-1123456789abcdef.removed-0 4711.removed-3/head "$2/g7.removed-0"' sh $store "$id"
bed_do restart-rmd n1
must "n1 is not back" back n1
own_gone() {
    [[ $(staged) == "import-n1-a-0123456789abcdef import-n2-0123456789abcdef" && ! $(on n1 find $store -name '*.removed-*') ]]
}
must "imports that are left: $(staged)" until_true 20 own_gone
on n1 sh -c 'rmdir "$1"/import-*' sh $store

must "it cannot go on" as alice n1 rmctl restart-job "$number"
must "it does not go on" q state live RUNNING,FOLDED 60 >/dev/null
bed_do exec n1 --user alice -- rmctl attach-job "$id" </dev/null >"$work/live.out" 2>"$work/live.err" &
front_pid[live]=$!
sleep 2
release live
finish live 120
ended_well live hash
as alice n1 sh -c 'rm -f saved*'
same_as_undisturbed live 3 --group-size 1
must "the store is left: $(on n1 find $store)" until_true 100 eval '! on n1 test -e $store/$id'
on n1 rm -rf $store
