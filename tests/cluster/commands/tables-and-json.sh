#!/bin/bash
# Every list and show: a table with a head, none with --no-header, valid and versioned JSON with --json, the same from any node.
# limit: 60
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 4 --cores 2
start live n1 --group-size 2 -n 4 "$programs/spin" --stop-file="$(stop_file live)"
running live
number=$(job live)
move live 1 "$(a_node_but "$(q where live 1)")"
for command in list-nodes "show-node n2" list-jobs "show-job $number" list-moves list-policies status events; do
    for node in n1 n4; do
        # shellcheck disable=SC2086 # several arguments
        on $node rmctl $command --json >"$work/$node.json" 2>"$work/err" || fail "$command --json: $(<"$work/err")"
        on $node python3 -c 'import json, sys; d = json.loads(sys.argv[1]); sys.exit(d["version"] != 1)' "$(<"$work/$node.json")" ||
            fail "$command --json on $node: not versioned JSON: $(head -c 200 "$work/$node.json")"
    done
    # shellcheck disable=SC2086
    on n2 rmctl $command >"$work/table" 2>&1 || fail "$command: $(<"$work/table")"
    widest=$(awk '{ if (length($0) > w) w = length($0) } END { print w }' "$work/table")
    see "$(printf '%-14s %3d lines, %3d columns, %5d bytes of JSON' "${command% *}" "$(wc -l <"$work/table")" "$widest" "$(stat -c %s "$work/n1.json")")"
done
must "snapshot is not JSON" on n1 sh -c 'rmctl snapshot | python3 -c "import json, sys; json.load(sys.stdin)"'
same "list-nodes without head" "$(rmctl list-nodes --no-header | wc -l)" "$(($(rmctl list-nodes | wc -l) - 1))"
same "a host list" "$(rmctl list-nodes 'n[2-4]' --no-header | wc -l)" 3
same "a table in a narrow terminal" "$(on n1 env COLUMNS=60 rmctl list-jobs | awk 'length($0) > 60' | wc -l)" 0
same "columns of list-moves before the reason" "$(rmctl list-moves | awk 'NR == 1 { print index($0, "REASON") <= 104 && ! index($0, "RESTORE") }')" 1
must "--wide has no phases" grep -q RESTORE < <(rmctl list-moves --wide)

# What takes time tells on a terminal how far it is, and takes that away.
# on_terminal CMD...: what it writes to one.
on_terminal() {
    on n1 python3 -c 'import pty, sys
sys.exit(pty.spawn(sys.argv[1:]) >> 8)' "$@" </dev/null
}
group=$(q place live | awk '$1 >= 0 { print $1; exit }')
from=$(q where live "$group")
to=$(a_node_but "$from")
on_terminal rmctl migrate-job "$number" --group "$group" --to "$to" --wait >"$work/terminal" || fail "not moved: $(<"$work/terminal")"
grep -q "$from to $to, begun" "$work/terminal" || fail "a move tells nothing: $(cat -v "$work/terminal")"
on_terminal rmctl drain-node "$to" --wait >"$work/terminal" || fail "not drained: $(<"$work/terminal")"
grep -Eq "$to: [0-9]+ ranks in [0-9]+ capsules left" "$work/terminal" || fail "a drain tells nothing: $(cat -v "$work/terminal")"
see "$(tr '\r' '\n' <"$work/terminal" | cat -v | sort -u | head -n 6)"
rmctl resume-node "$to"
release live
finish live
