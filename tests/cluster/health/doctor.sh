#!/bin/bash
# A node from which or to which no job can be moved looks like all others, until a move fails. rmctl doctor, as any user on any node, names the node, what
# is wrong with it, and what repairs it; of nodes that are well it says so.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

# doctor CODE USER NODE ARG...: its exit status; what it says is in $work/out.
doctor() {
    local code=$1 status
    bed_do exec "$3" --user "$2" -- rmctl doctor "${@:4}" </dev/null >"$work/out" 2>"$work/err"
    status=$?
    ((status == code)) || fail "doctor ${*:4} on $3: exit $status, not $code: $(grep -v '^ ' "$work/out" "$work/err" | head -n 5 | tr '\n' '|')"
}
# says LINE [FIX]: a finding begins so, and is repaired so.
says() {
    grep -A 2 -E "^$1" "$work/out" >"$work/finding" || fail "doctor does not say '$1': $(grep -v '^ ' "$work/out" | tr '\n' '|')"
    see "$(head -n 1 "$work/finding")"
    grep -qF -- "${2-}" "$work/finding" || fail "the finding '$1' is not repaired by '$2': $(tail -n 1 "$work/finding")"
}
# What a node has found out counts for a few seconds.
well() {
    bed_do exec n1 -- rmctl doctor </dev/null >"$work/out" && grep -q ': 0 problems' "$work/out"
}

cluster 3 --cores 2 --set node.move_ports=7600-7601
must "nodes that are well have problems: $(grep problem: "$work/out" 2>/dev/null | tr '\n' '|')" until_true 45 well
doctor 0 alice n3 --all
says 'n\[1-3\]: ok: tracking'
says 'n\[1-3\]: ok: libraries'
says 'n\[1-3\]: ok: uplink'
says 'n\[1-3\]: warning: ports: .* 2 of ports 7600-7601, and' move_ports
doctor 1 alice n1 n9
grep -q 'known: n1 n2 n3' "$work/err" || fail "doctor of a node that is not there: $(<"$work/err")"

# Two are made unfit, each in two ways.
on n2 ip link set dev eth0 mtu 1400
on n2 sh -c 'lib=$(readlink -f /usr/lib/*/libmpi.so.40) && cp "$lib" /tmp/lib && cp --remove-destination "$lib" /tmp/kept && echo >>/tmp/lib && mv /tmp/lib "$lib"'
on n3 chmod 0640 /etc/rmd/cluster.key
bed_do exec n3 -- python3 -c '
import os, socket
sockets = [socket.create_server(("", port)) for port in (7600, 7601)]
if os.fork() == 0:
    os.setsid()
    os.closerange(0, 3)
    import signal
    signal.pause()' </dev/null >/dev/null 2>&1
until_true 20 eval '! well'
# Of each node what it found a moment before counts: n2 may be well in an answer in which n3 is not.
until_true 20 eval 'doctor 1 alice n1; (($(grep -c "^n[23]: problem:" "$work/out") >= 4))'
says 'n2: problem: uplink: the MTU of eth0 is 1400, but 1500 on n\[1,3\]' 'ip link set dev eth0 mtu 1500'
says 'n2: problem: libraries: libmpi.so.40: not as' 'apt install --reinstall'
says 'n3: problem: key: .*0640' 'chmod 0600'
says 'n3: problem: ports: movers can listen on none of ports 7600-7601' move_ports
! grep -q '^n1: problem' "$work/out" || fail "n1 has a problem: $(grep '^n1: problem' "$work/out")"
doctor 0 alice n3 n1
doctor 1 alice n3 --json
must "the JSON is not as it should be" python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
bad = sorted((f["node"], f["check"]) for f in d["findings"] if f["severity"] == "problem")
assert d["version"] == 1 and d["problems"] == 4 and d["nodes"] == ["n1", "n2", "n3"], d
assert bad == [("n2", "libraries"), ("n2", "uplink"), ("n3", "key"), ("n3", "ports")], bad
assert all(f["fix"] and f["means"] for f in d["findings"] if f["severity"] != "ok")' "$work/out"

# Of the key nobody learns more than that.
fingerprint=$(bed_do logs n1 | sed -n "s/.*fingerprint of the cluster's key: \([0-9a-f]*\).*/\1/p" | head -n 1)
[[ $fingerprint ]] || fail "the log does not say the key's fingerprint"
for node in n1 n2; do
    as alice n1 "$programs/raw" -r 190 "1=$node" >"$work/raw" || fail "facts of $node: $(<"$work/raw")"
    grep -qF eth0 "$work/raw" || fail "no facts of $node"
    ! grep -qF "$fingerprint" "$work/raw" || fail "alice gets the fingerprint of the key from $node"
done

# Repaired, all is well; one that has no rmd is not.
on n2 sh -c 'mv /tmp/kept "$(readlink -f /usr/lib/*/libmpi.so.40)"'
on n2 ip link set dev eth0 mtu 1500
on n3 chmod 0600 /etc/rmd/cluster.key
on n3 sh -c 'kill $(pgrep -f create_server)'
must "repaired nodes have problems: $(grep problem: "$work/out" | tr '\n' '|')" until_true 20 well
bed_do stop-rmd n3
doctor 1 root n1
says 'n3: problem: answer' 'rmd'
! grep -q '^n\[*[12].*problem' "$work/out" || fail "nodes that are well have problems"
