#!/bin/bash
# The topology file says which node hangs on which switch: all nodes know it, bad files are named with their line, and treematch brings ranks that
# talk below one switch, again when they begin to talk to others.
# limit: 150
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 6 --cores 1 --set "sched.traffic_interval = 1s" --set "sched.horizon = 5s" --set "sched.policy = treematch" \
    --set "sched.link_speed = 10" --set "cluster.voters = 1"
file=/etc/rmd/topology.conf
same "switches before" "$(rmctl show-node n1 | sed -n 's/^Switch: *//p')" -

put() {
    printf '%b' "$1" | bed_do exec n1 -- sh -c "cat >$file"
}

# switch_of GROUP: of job `live`.
switch_of() {
    rmctl list-nodes --json >"$work/nodes"
    on n1 python3 -c 'import json, sys
print(next(n["switch"][0] for n in json.loads(sys.argv[1])["nodes"] if n["name"] == sys.argv[2]))' "$(<"$work/nodes")" "$(q where live "$1")"
}

together() {
    [[ $(switch_of "$1") == "$(switch_of "$2")" ]]
}

placed() {
    local group
    for group in 0 1 2 3; do printf '%s on %s, ' "$group" "$(switch_of $group)"; done
}

# --- what is wrong is said with file and line, and nothing starts with it ---

on n1 sh -c "printf '\n[cluster]\ntopology = $file\n' >>/etc/rmd/rmd.conf"
on n1 rmd --check-config >"$work/said" 2>&1 && fail "a file that is not there is accepted"
grep -qF "rmd: [cluster] topology: cannot read $file" "$work/said" || fail "no file: $(<"$work/said")"
see "no file: $(<"$work/said")"
while IFS='|' read -r text expected; do
    put "$text"
    if on n1 rmd --check-config >"$work/said" 2>&1; then fail "'$text' is accepted"; fi
    grep -qF "rmd: $file:$expected" "$work/said" || fail "'$text': $(<"$work/said")"
    see "$(<"$work/said")"
done <<'END'
SwitchName=s1 Nodes=n[1-3]\nSwitchName=s2 Nodes=n[3-6]\n|2: node 'n3' is below switch 's1' (line 1) already
SwitchName=s1 Nodes=n1\nSwitchName=a Switches=b,s1\nSwitchName=b Switches=a\n|2: switch 'a' is below itself
SwitchName=top Switches=s[1-2]\nSwitchName=s1 Nodes=n1\n|1: there is no switch 's2'
SwitchName=s1 Nodes=n[1\n|1: Nodes: 'n[1' is not a host list
END

# --- nodes that do not fit are warned of, and no more ---

put 'SwitchName=s1 Nodes=n1,n3,n5,n77\nSwitchName=s2 Nodes=n2,n4\nSwitchName=core Switches=s[1-2]\n'
must "rmd does not start with it" bed_do restart-rmd n1
must "nobody knows the switches" until_true 20 sh -c "'$repo_dir/tools/testbed' exec --name '$bed' n4 -- rmctl show-node n4 </dev/null | grep -q 's2 below core'"
on n4 rmctl status >"$work/status"
grep -qF "$file:1: no node 'n77' in this cluster" "$work/status" || fail "nobody is told of n77: $(<"$work/status")"
grep -qF "$file: it has no switch for node 'n6'" "$work/status" || fail "nobody is told of n6: $(<"$work/status")"
grep -F topology.conf "$work/status" | while read -r line; do see "status: $line"; done
put 'SwitchName=s1 Nodes=n1,n3,n5\nSwitchName=s2 Nodes=n2,n4,n6\nSwitchName=core Switches=s[1-2]\n'
must "an edit is not known" until_true 20 sh -c "'$repo_dir/tools/testbed' exec --name '$bed' n2 -- rmctl show-node n6 </dev/null | grep -q 's2 below core'"
# Each node reads the file by itself.
not_warned() {
    ! on "$1" rmctl status | grep -qF topology.conf
}
must "n1 still warns" until_true 20 not_warned n1
must "not all nodes are back" until_true 20 all_joined
rmctl list-nodes | head -n 3 | while read -r line; do see "$line"; done
rmctl snapshot >"$work/snapshot"
see "snapshot: $(on n1 python3 -c 'import json, sys
print(*(n["name"] + " " + "<".join(n["switch"]) for n in json.loads(sys.argv[1])["nodes"]), sep=", ")' "$(<"$work/snapshot")")"

# --- partners come below one switch ---

shift_file=/home/alice/shift
start live n1 --group-size 1 -n 4 "$programs/pairs" --stop-file="$(stop_file live)" --shift-file=$shift_file
running live
see "it begins with $(placed)"
must "partners are below two switches: $(placed)" until_true 40 together 0 1
must "partners are below two switches: $(placed)" until_true 40 together 2 3
must "it does not come to rest" q settled 20 >/dev/null
see "then it has $(placed)after $(q moves live | wc -l) moves"
on n1 touch $shift_file
must "that they talk to others now changes nothing: $(placed)" until_true 60 together 0 3
must "that they talk to others now changes nothing: $(placed)" until_true 60 together 1 2
see "after the shift it has $(placed)after $(q moves live | wc -l) moves"
together 0 1 && fail "all are below one switch: $(placed)"

# --- the file is edited while the job runs ---

known_to_be_bad() {
    on n4 rmctl status >"$work/status"
    grep -qF "$file:2: node 'n3' is below switch 's1' (line 1) already; the switches stay as they were" "$work/status"
}

put 'SwitchName=s1 Nodes=n1,n3,n5\nSwitchName=s9 Nodes=n[2-6]\n'
must "nobody is told that the new file is bad" until_true 20 known_to_be_bad
see "status: $(grep -F "$file" "$work/status")"
same "after a bad edit n6 hangs on" "$(on n4 rmctl show-node n6 | sed -n 's/^Switch: *//p')" "s2 below core"
free=()
for node in $(nodes); do
    for group in 0 1 2 3; do [[ $(q where live $group) == "$node" ]] && continue 2; done
    free+=("$node")
done
same "nodes without a group" "${#free[@]}" 2
put "SwitchName=t1 Nodes=$(q where live 0),$(q where live 1),${free[0]}\nSwitchName=t2 Nodes=$(q where live 2),$(q where live 3),${free[1]}\n"
must "partners stay below two switches when the switches are others: $(placed)" until_true 60 together 0 3
must "partners stay below two switches when the switches are others: $(placed)" until_true 60 together 1 2
see "with other switches it has $(placed)after $(q moves live | wc -l) moves"
must "n4 still warns" until_true 20 not_warned n4
release live
finish live
ended_well live "all whole"
