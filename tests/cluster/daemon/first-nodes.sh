#!/bin/bash
# An administrator sets up a cluster with one command on each node: no key may be seen by others or
# on the terminal, nothing that was there is lost, and what is set up works. systemd is told when
# rmd serves clients.
# limit: 120
. "${BASH_SOURCE[0]%/*}/../lib.sh"

cluster 3 --cores 2 --no-rmd
build=${RMD_DESTDIR:-$("$repo_dir/tools/build" --path)} || fail "no rmd"
for node in $(nodes); do
    must "rmd cannot be installed on $node" bed_do install "$node" "$build"
    on "$node" rm -r /etc/rmd
done

# refused NODE STATUS WORDS ARG...: nothing is written.
refused() {
    local text status=0
    text=$(on "$1" rmd "${@:4}" 2>&1) || status=$?
    same "exit status of rmd ${*:4}" "$status" "$2"
    [[ $text == *"$3"* ]] || fail "rmd ${*:4} does not say '$3': $text"
    [[ ! $(on "$1" find /etc/rmd 2>/dev/null) ]] || fail "rmd ${*:4} has written $(on "$1" find /etc/rmd)"
    see "refused: $text"
}
refused n2 1 "there is no key of the cluster" --join n1
refused n2 2 "is not a node to join through" --join 'n1;reboot'
on n2 sh -c 'echo "fd00::6 six" >>/etc/hosts'
refused n2 1 "no IPv4 address of 'six' is known here" --join six
refused n2 1 "no IPv4 address of 'nosuch' is known here" --join 10.77.0.1,nosuch:7700
refused n2 2 "give one of them" --join n1 --init-cluster
refused n2 1 "no interface 'eth7' is up" --init-cluster --uplink eth7
refused n2 2 "--uplink is for" --uplink eth0
is_called() {
    on n2 sh -c 'printf %s "$1" >/proc/sys/kernel/hostname' sh "$1"
}
for name in 'two words' böse -x "$(printf '%064d' 1)" localhost localhost.site.example; do
    must "n2 is not called '$name'" is_called "$name"
    refused n2 2 "hostnamectl set-hostname NAME" --init-cluster
done
must "n2 is not called n2" is_called n2
text=$(as alice n1 rmd --init-cluster 2>&1) && fail "alice can set up a cluster"
[[ $text == *"only root"* ]] || fail "alice is told: $text"

# Even if whoever calls it lets everybody read what is new.
text=$(on n1 sh -c 'umask 0; rmd --init-cluster' 2>&1) || fail "no cluster begins: $text"
see "$text"
same "mode and owner of the key" "$(on n1 stat -c '%a %u %h' /etc/rmd/cluster.key)" "600 0 1"
key=$(on n1 cat /etc/rmd/cluster.key)
[[ $key =~ ^[0-9a-f]{64}$ ]] || fail "the key has $(wc -c <<<"$key") characters"
[[ $text != *"${key:0:12}"* ]] || fail "the key is shown"
[[ $text == *"rmd --join 10.77.0.1"* ]] || fail "it does not say what to do on the next node"
on n1 rmd --check-config >/dev/null || fail "the configuration is not valid"
on n1 sh -c 'echo "# mine" >>/etc/rmd/rmd.conf'
before=$(on n1 sh -c 'cat /etc/rmd/*; stat -c "%i %Y" /etc/rmd/*')
text=$(on n1 rmd --init-cluster 2>&1) || fail "it cannot be repeated: $text"
same "what is there after it was repeated" "$(on n1 sh -c 'cat /etc/rmd/*; stat -c "%i %Y" /etc/rmd/*')" "$before"

# As systemd starts it.
on n1 sh -c 'rm -f /run/notify; exec timeout 30 socat -u UNIX-RECV:/run/notify STDOUT' >"$work/notified" 2>/dev/null &
manager=$!
until_true 10 on n1 test -S /run/notify || fail "no socket"
start_rmd_with n1 NOTIFY_SOCKET=/run/notify
until_true 10 grep -q 'READY=1' "$work/notified" || fail "systemd is not told that rmd serves clients: $(cat "$work/notified")"
on n1 rmctl status >/dev/null || fail "rmd says that it is ready, and serves nobody"
until_true 10 grep -q 'STATUS=node n1 of cluster rmd; leader: n1' "$work/notified" || fail "systemd is not told who leads: $(cat "$work/notified")"
same "processes of rmd that know the socket" "$(on n1 sh -c 'for p in $(pgrep rm-) $(pgrep criu); do tr "\0" "\n" </proc/$p/environ; done | grep -c NOTIFY')" 0

for node in n2 n3; do # which know n1 from /etc/hosts alone: there is no name server
    on n1 cat /etc/rmd/cluster.key | in_node "$node" -- sh -c 'umask 077; mkdir /etc/rmd; cat >/etc/rmd/cluster.key'
    on "$node" rmd --join n1,10.77.0.2 >"$work/joined" 2>&1 || fail "$node is not set up: $(<"$work/joined")"
    same "what $node joins through" "$(on "$node" grep ^peers /etc/rmd/rmd.conf)" "peers = n1 10.77.0.2"
    bed_do start-rmd "$node" || fail "rmd on $node does not start"
done
must "not all nodes join" until_true 20 all_joined
inventory_all >"$work/before"
run ring n1 -n 4 --group-size 2 "$programs/ordered" --iterations=20
ended_well ring hash
bed_do stop-rmd n1
until_true 10 grep -q 'STOPPING=1' "$work/notified" || fail "systemd is not told that rmd ends: $(cat "$work/notified")"
kill "$manager" 2>/dev/null
bed_do start-rmd n1
must "not all nodes are back" until_true 20 all_joined
see "$(on n2 rmctl list-nodes | sed -n 1,4p)"
